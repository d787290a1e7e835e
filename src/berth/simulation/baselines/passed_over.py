"""What of a trace the published policies know nothing of: they are compared with those who do, so it is told."""

from __future__ import annotations

import numpy as np

from berth.base.units import counted
from berth.model.jobs import Jobs


def passed_over(jobs: Jobs) -> str:
    """A sentence, "" where there is nothing of the kind."""
    events, given_up = len(jobs.node_events), int(np.isfinite(jobs.cancelled_s).sum())
    elastic = int((jobs.min_pods * jobs.pod_gpus < jobs.width).sum()) if len(jobs.min_pods) else 0
    limited, saving = int((jobs.limit_s > 0).sum()), int((jobs.checkpoint_every_s > 0).sum())
    parts = [
        words
        for number, words in (
            (events, f"{counted(events, 'node event')} (nodes never fail)"),
            (given_up, f"{counted(given_up, 'cancelled job')} (none is given up)"),
            (elastic, f"{counted(elastic, 'job')} with min_pods (all pods or none)"),
            (limited, f"{counted(limited, 'run-time limit')}"),
            (saving, f"{counted(saving, 'job')} with checkpoint_every"),
            (len(np.unique(jobs.priority)) - 1, "priorities"),
        )
        if number > 0
    ]
    if not parts:
        return ""
    return f"published policies pass over what Berth's own heed of this trace: {', '.join(parts)}"
