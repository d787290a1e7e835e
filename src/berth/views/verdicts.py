"""What `check` and `why` print: the verdict, its numbers, the nodes by cause, and what would unlock it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from berth.base.units import capital, counted, duration, from_milli
from berth.model.reasons import Answer, Verdict
from berth.scheduling.answer import Answered, Placed
from berth.views.records import cause_record
from berth.views.tables import QUIET_STYLE, Signs, signs
from berth.views.words import INDENT, WORDS, nodes_words

MOST_NODES = 8
ONLY_SET = "pods"  # what a set is called that has no name: "1 pod of pods" says nothing


def show(answers: Sequence[Answered], screen: Console) -> None:
    """One block for each workload; copies that get the same refusal share one."""
    draw = signs(screen)
    for i, alike in enumerate(_alike(answers)):
        one = alike[0]
        if i:
            screen.print()
        _head(one, screen, draw)
        if one.placed:
            _placement(one.placed, screen, draw)
        if one.verdict.causes:
            _causes(one.verdict, screen)
        for line in one.remarks:
            _line(screen, line, style=QUIET_STYLE)
        if len(alike) > 1:
            last = alike[-1].workload.key
            _line(screen, f"the same holds for {counted(len(alike) - 1, 'more workload')}, up to {last}")


def _alike(answers: Sequence[Answered]) -> list[list[Answered]]:
    """Answers in their order; those that refuse their neighbour's twin for the same causes are one group."""
    groups: list[list[Answered]] = []
    for one in answers:
        before = groups[-1][0] if groups else None
        if (
            before is not None
            and one.verdict.causes
            and one.verdict.causes == before.verdict.causes
            and one.workload.pod_sets == before.workload.pod_sets
            and (one.workload.namespace, one.workload.kind) == (before.workload.namespace, before.workload.kind)
            and (one.rules, one.remarks) == (before.rules, before.remarks)
        ):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def record(one: Answered) -> dict[str, Any]:
    """A stable record of one answer."""
    first = one.verdict.causes[0] if one.verdict.causes else None
    return {
        "workload": one.workload.key,
        "kind": one.workload.kind,
        "verdict": one.verdict.answer.value,
        "fits": one.verdict.answer is Answer.Fits,
        "running": one.is_running,
        "reason": first.reason.name if first else None,
        "sentence": first.sentence if first else None,
        "need": first.need if first else None,
        "have": first.have if first else None,
        "unit": first.unit if first else None,
        "where": first.where if first else None,
        "nodes": {block.name: nodes for block, nodes in first.blocks} if first else {},
        "codes": dict(first.codes) if first else {},
        "nearest": [{"node": node, "lacks": lacks} for node, lacks in first.nearest] if first else [],
        "unlock": list(first.unlock) if first else [],
        "causes": [cause_record(cause) for cause in one.verdict.causes],
        "pods": one.workload.pod_count,
        "gpus": one.gpus,
        "scope": one.scope,
        "placement": [
            {
                "podSet": p.pod_set,
                "node": p.node,
                "pods": p.pods,
                "devices": [list(d) for d in p.devices],
                "devicesAre": "named" if p.named else "predicted",
                "domains": dict(p.domains),
            }
            for p in one.placed
        ],
        "rules": one.rules,
        "provenance": dict(one.workload.provenance),
        "remarks": list(one.remarks),
        "wouldLeave": [
            {
                "pod": f"{e.allocation.namespace}/{e.allocation.name}",
                "node": e.allocation.node,
                "gpuHours": round(e.gpu_hours, 2) if e.is_loss_known else None,
            }
            for e in one.leaving
        ],
    }


def _head(one: Answered, screen: Console, draw: Signs) -> None:
    word, style = ("RUNNING", "bold green") if one.is_running else WORDS[one.verdict.answer]
    head = Text()
    head.append(f"{word:<9}", style=style)
    if one.verdict.reason:
        head.append(f"{one.verdict.reason.name}  ", style="bold")
    head.append(one.workload.key)
    facts = [one.workload.kind, counted(one.workload.pod_count, "pod")]
    if one.gpus:
        facts.append(f"{from_milli(round(one.gpus * 1000))} GPU{'' if one.gpus == 1 else 's'}")
    if one.waited_s > 0:
        facts.append(f"waits {duration(one.waited_s)}")
    head.append("  " + f" {draw.dot} ".join(facts), style=QUIET_STYLE)
    screen.print(head, soft_wrap=True)


def _placement(placed: Sequence[Placed], screen: Console, draw: Signs) -> None:
    for p in placed[:MOST_NODES]:
        of = "" if p.pod_set == ONLY_SET else f" of {p.pod_set}"
        text = f"{counted(p.pods, 'pod')}{of} on {p.node}"
        chosen = sorted({g for d in p.devices for g in d})
        if chosen:
            text += f", GPU{'' if len(chosen) == 1 else 's'} {', '.join(map(str, chosen))}"
            text += "" if p.named else " (prediction: the kubelet chooses)"
        where = f" {draw.dot} ".join(f"{level} {name}" for level, name in p.domains if name)
        _line(screen, text, where)
    if len(placed) > MOST_NODES:
        rest = placed[MOST_NODES:]
        _line(screen, f"and {counted(sum(p.pods for p in rest), 'pod')} on {counted(len(rest), 'more node')}")


def _causes(verdict: Verdict, screen: Console) -> None:
    for i, cause in enumerate(verdict.causes):
        lead = "" if i == 0 else f"{cause.reason.name}: "
        _line(screen, lead + capital(cause.sentence) + ".")
        if i:
            continue
        if cause.blocks:
            blocks = ((block.name, nodes) for block, nodes in cause.blocks)
            _line(screen, f"nodes: {nodes_words(blocks, cause.codes)}")
        if cause.nearest:
            _line(screen, "nearest: " + ", ".join(f"{node} ({lacks})" for node, lacks in cause.nearest))
        for unlock in cause.unlock:
            _line(screen, f"would unlock it: {unlock}")
        if not cause.proven:
            _line(screen, "not proven: the exact search ended at its bound")


def _line(screen: Console, text: str, quiet: str = "", style: str = "") -> None:
    line = Text(" " * INDENT + text, style=style)
    if quiet:
        line.append("  " + quiet, style=QUIET_STYLE)
    screen.print(line, soft_wrap=True)
