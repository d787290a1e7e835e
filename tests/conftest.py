"""Property tests draw the same examples each time, so that what fails is a change; BERTH_RANDOM=1 draws others."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("random" if os.environ.get("BERTH_RANDOM") else "same")
