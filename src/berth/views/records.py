"""What commands write as JSON or CSV: plain structures with stable keys."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from berth.model.reasons import Cause, Verdict

if TYPE_CHECKING:
    from berth.simulation.outcome import Outcome
    from berth.simulation.packing import Run, Summary


def to_json(record: Any) -> str:
    """JSON with two spaces, keys in the order in which they are made."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode()


def to_json_line(record: Any) -> str:
    """The same in one line."""
    return msgspec.json.encode(record).decode()


def to_yaml(record: Any) -> str:
    """YAML, keys in the order in which they are made."""
    import yaml

    plain = msgspec.to_builtins(record)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(plain, Dumper=dumper, sort_keys=False, allow_unicode=True, width=10_000))


def day(outcome: Outcome) -> dict[str, Any]:
    """The record of a simulated day; verdicts by their codes."""
    record = {name: getattr(outcome, name) for name in outcome.__struct_fields__}
    record["decisions_per_second"] = outcome.decisions_per_second
    record["left"] = [
        {**{n: getattr(one, n) for n in one.__struct_fields__}, "verdict": verdict(one.verdict)} for one in outcome.left
    ]
    return {"kind": "SimulatedDay", **record}


def verdict(said: Verdict | None) -> dict[str, Any] | None:
    """A verdict with its causes; None where nothing was said."""
    if said is None:
        return None
    return {
        "answer": said.answer.value,
        "reason": said.reason.name if said.reason else None,
        "message": said.message,
        "causes": [cause_record(cause) for cause in said.causes],
    }


def cause_record(cause: Cause) -> dict[str, Any]:
    record = {name: getattr(cause, name) for name in cause.__struct_fields__}
    record["reason"] = cause.reason.name
    record["blocks"] = {block.name: nodes for block, nodes in cause.blocks}
    record["codes"] = dict(cause.codes)
    record["nearest"] = [{"node": node, "lacks": lacks} for node, lacks in cause.nearest]
    return record


def packing(runs: Sequence[Run], summaries: Sequence[Summary], demand: str) -> dict[str, Any]:
    """`runs`: one for each trace, policy and seed; `summary`: mean and standard deviation over the seeds.

    `demand` says what Berth's own policy knew: known or learned."""
    return {
        "kind": "PackingExperiment",
        "demand": demand,
        "runs": [asdict(run) for run in runs],
        "summary": [asdict(summary) for summary in summaries],
    }


def day_csv(outcome: Outcome) -> str:
    """One line a GPU class."""
    rows = [(c.name, c.gpus, c.held_back, f"{c.mean_pct:.3f}", f"{c.end_pct:.3f}", *c.room) for c in outcome.classes]
    rooms = [f"room_{n}_gpu" for n in (1, 2, 4, 8)]
    return to_csv(("gpu_class", "gpus", "held_back", "mean_pct", "end_pct", *rooms), rows)


def packing_csv(runs: Sequence[Run]) -> str:
    """One line for each run and load."""
    rows = [
        (run.trace, run.policy, run.seed, load, *(_cell(getattr(run, metric)[load]) for metric in _METRICS),
         run.failed_pods, f"{run.placements_per_second:.0f}")
        for run in runs
        for load in run.unallocated_gpu_pct
    ]  # fmt: skip
    heads = ("trace", "policy", "seed", "arrived_pct", *_METRICS, "failed_pods", "placements_per_second")
    return to_csv(heads, rows)


_METRICS = ("unallocated_gpu_pct", "frag_rate_pct", "frag_pct_of_capacity")


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"


def to_csv(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV with line feeds. Text that a spreadsheet would take for a formula gets a leading quote."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([[_safe(cell) for cell in row] for row in rows])
    return out.getvalue()


def _safe(cell: object) -> object:
    return "'" + cell if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t") else cell
