"""What Berth says of a scenario, as docs/reasons.md shows it."""

from __future__ import annotations

from berth.scheduling.cycle import cycle

from .reading import HERE, read


def example(name: str, reason: str) -> str:
    """The message of the first workload that waits for that reason, and a line for each thing that would help."""
    scenario = read(HERE / f"{name}.yaml")
    plan = cycle(scenario.snapshot, scenario.policy)
    for _, verdict in sorted(plan.verdicts.items()):
        if verdict.reason and verdict.reason.name == reason:
            return "\n".join([verdict.message, *(f"unlock: {text}" for text in verdict.causes[0].unlock)])
    return f"no workload of {name} waits for {reason}"
