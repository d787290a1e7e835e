"""A question about one pod, node or job: the boundaries walked down from where it stands, and what bears on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from berth.diagnosis.diagnose import Diagnosis
from berth.diagnosis.finding import Finding
from berth.diagnosis.gate import gate_of
from berth.diagnosis.ledger import accounts, is_gpu, of_pod
from berth.diagnosis.words import Layer
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen, PodSeen
from berth.model.ledger import Account


class Step(Struct, frozen=True):
    """One boundary on the way down: does the expected value arrive? None is not seen."""

    layer: Layer
    question: str
    holds: bool | None
    answer: str


def focused(
    diagnosis: Diagnosis, facts: Facts, target: str, namespace: str = ""
) -> tuple[Diagnosis, tuple[Step, ...]] | None:
    """What bears on the target, and the way down from it. None where nothing of that name was read."""
    name = target.rpartition("/")[2]
    kind = target.rpartition("/")[0].lower()
    pods = [pod for pod in facts.of(PodSeen) if _is(pod, target, name, kind, namespace)]
    is_node = kind in ("", "node", "nodes") and (
        any(node.name == name for node in facts.of(NodeSeen)) or name in facts.nodes
    )
    if not pods and not is_node:
        return None
    nodes = {pod.on for pod in pods if pod.on} | ({name} if is_node else set())
    keys = {pod.key for pod in pods}

    def bears(one: Finding) -> bool:
        if one.pod:
            return one.pod in keys or (one.node in nodes and one.layer < Layer.L5)
        return not one.node or one.node in nodes

    # A cause elsewhere bears on the target where it explains what is wrong here.
    causes = [one.explained_by for one in diagnosis.consequences if bears(one.finding)]
    findings = tuple(one for one in diagnosis.findings if bears(one) or one in causes)
    unconfirmed = tuple(one for one in diagnosis.unconfirmed if not one.node or one.node in nodes)
    found = replace(
        diagnosis,
        findings=findings,
        consequences=tuple(
            one for one in diagnosis.consequences if one.explained_by in findings and bears(one.finding)
        ),
        unconfirmed=unconfirmed,
        traps=tuple(one for one in diagnosis.traps if bears(one)),
        gate=gate_of(findings, unconfirmed, facts),
    )
    steps = tuple(_steps(facts, pods, sorted(nodes)))
    return stopped(found, steps), steps


def stopped(diagnosis: Diagnosis, steps: Sequence[Step]) -> Diagnosis:
    """Nobody goes on over a boundary that breaks, whether a finding says why or not."""
    broken = next((one for one in steps if one.holds is False), None)
    if broken is None or not diagnosis.gate.go:
        return diagnosis
    sentence = f"stop: {broken.question}: no ({broken.answer})"
    return replace(diagnosis, gate=replace(diagnosis.gate, go=False, stage="discovery", sentence=sentence))


def parted(facts: Facts) -> tuple[Step, ...]:
    """The accounts of all nodes that part: what a walk down from each of them would say."""
    return tuple(_of_account(one) for one in accounts(facts) if not one.is_equal)


def _is(pod: PodSeen, target: str, name: str, kind: str, namespace: str) -> bool:
    if namespace and pod.namespace != namespace:
        return False
    if target == pod.key or (pod.name == name and kind in ("", "pod", "pods")):
        return True
    owner_kind, _, owner = pod.owner.partition("/")
    jobs = (pod.labels.get("job-name", ""), pod.labels.get("batch.kubernetes.io/job-name", ""), owner)
    return name in jobs and kind in ("", "job", "jobs", owner_kind.lower())


def _steps(facts: Facts, pods: Sequence[PodSeen], nodes: Sequence[str]) -> Iterator[Step]:
    for pod in pods[:1]:
        yield from _of_pod(pod)
    for account in accounts(facts):
        if account.node in nodes:
            yield _of_account(account)


def _of_account(account: Account) -> Step:
    words = account.sentence or "hardware, plugin, node and requests agree as far as they were seen"
    holds = False if account.parts_at is not None else (True if account.host is not None else None)
    return Step(Layer.L3, f"{account.resource} on {account.node}", holds, words)


def _of_pod(pod: PodSeen) -> Iterator[Step]:
    asked = {
        resource: of_pod(pod, resource)
        for limit in pod.limits
        for resource in limit.devices
        if is_gpu(resource)
    }
    claims = [claim for limit in pod.limits for claim in limit.claims]
    words = ", ".join(f"{count} × {resource}" for resource, count in asked.items()) or ", ".join(claims)
    yield Step(Layer.L5, "asks for GPUs", bool(asked or claims), words or "no container asks for one")
    gates = f"held by {', '.join(pod.gates)}" if pod.gates else ""
    scheduled = next((one for one in pod.conditions if one.type == "PodScheduled"), None)
    why = gates or (scheduled.message if scheduled and scheduled.status != "True" else "")
    yield Step(Layer.L5, "has a node", bool(pod.on), pod.on or why or "not scheduled")
    if not pod.on:
        return
    refused = pod.reason if pod.phase == "Failed" and not pod.states else ""
    yield Step(Layer.L3, "admitted by the kubelet", not refused, (refused and f"{refused}: {pod.message}") or "yes")
    waiting = next((one for one in pod.states if one.state == "waiting"), None)
    started = any(one.state in ("running", "terminated") for one in pod.states)
    answer = f"{waiting.container}: {waiting.reason} {waiting.message}".strip() if waiting else pod.phase
    yield Step(Layer.L2, "containers started", started and waiting is None if pod.states else None, answer)
    ended = next((one for one in pod.states if one.exit_code and one.state != "running"), None)
    if ended is not None:
        yield Step(Layer.L6, "program runs", False, f"{ended.container} ended with {ended.exit_code} {ended.reason}")
