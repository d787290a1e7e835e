"""Run-time limits for traces that have none: as owners give them, mostly far too long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from berth.model.jobs import Jobs

FACTORS = (1.0, 1.5, 2.0, 5.0, 10.0)  # limit ÷ what the job takes, equally often


def with_limits(jobs: Jobs, seed: int) -> Jobs:
    """The jobs with a limit each, a start included; the same seed gives the same ones. A job is never cut short."""
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = rng.choice(FACTORS, len(jobs)) * (jobs.service_s + jobs.restart_s)
    factors = ", ".join(f"{factor:g}" for factor in FACTORS)
    has_one = jobs.limit_s > 0
    note = f"run-time limits are drawn (seed {seed}) where the trace has none: what a job takes times {factors}"
    return replace(jobs, limit_s=np.where(has_one, jobs.limit_s, drawn), notes=(*jobs.notes, note))
