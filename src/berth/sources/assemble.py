"""From the objects of a cluster to a Snapshot: nodes, what is held, what waits, queues and topology."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from msgspec.structs import replace

from berth.base.errors import UNREADABLE, BadInput
from berth.base.units import counted
from berth.kube.wire_state import BerthState
from berth.model.as_written import problems
from berth.model.cluster import GpuClass, Node
from berth.model.gpus import GpuMapping, joined, read_mapping
from berth.model.queue import Queue
from berth.model.snapshot import Snapshot
from berth.model.topology import Level, discover
from berth.sources.bookings import bookings_in
from berth.sources.domains import Domains
from berth.sources.dump import Dump
from berth.sources.health import SILENT_S, heartbeat_of, heed, is_silent, report_of, silent_note
from berth.sources.inventory import Inventory, seconds
from berth.sources.nodes import read_node
from berth.sources.past_usage import Usage
from berth.sources.pods import Pods
from berth.sources.queues_read import queues_in
from berth.sources.slices import devices_by_node, held_devices

Asked = Callable[[Inventory], None]


def read_snapshot(
    path: str,
    *,
    now_s: float,
    gpu_mapping: str | None = None,
    levels: tuple[Level, ...] = (),
    asked: Asked = lambda inventory: None,
) -> Snapshot:
    """The cluster that a dump shows. `path` is a file, a folder or `-`; `gpu_mapping` a mapping file.

    `levels` of topology, from wide to narrow, go before those that the cluster names or is known to carry. `asked` gets
    what was read before the nodes are told: whoever asks for what is not there says there what it is.

    Raises BadInput, with exit code 3 where the dump cannot be read. What could not be seen is in `notes`.
    """
    mapping = mapping_in(gpu_mapping)
    dump = Dump(path)
    inventory = Inventory()
    for found in dump:
        inventory.add(found)
    _refuse_blind(dump, inventory)
    refuse_uncarried(levels, inventory)
    notes = list(dump.notes)
    if inventory.state is not None:
        mapping, levels = _as_configured(inventory.state, mapping, levels)
        inventory.listed = _listed(inventory.state, dump)
        notes.append(f"given by a scheduler at {inventory.state.at}, Berth {inventory.state.version}")
    return snapshot_of(
        inventory, now_s=now_s, mapping=mapping, notes=tuple(notes), levels=levels, asked=asked,
        taken_s=_taken_s(inventory),
    )  # fmt: skip


def _taken_s(inventory: Inventory) -> float | None:
    """When the dump was taken, as far as it tells: what the scheduler says that gave it, else the last heartbeat of an
    agent. Heartbeats of an old dump are old, and say nothing of who was silent then."""
    if inventory.state is not None and (at_s := seconds(inventory.state.at)):
        return at_s
    return max((seconds(heartbeat_of(one)) for one in inventory.ledgers.values()), default=None)


def _listed(state: BerthState, dump: Dump) -> frozenset[str]:
    """Kinds that the scheduler that gave the dump has listed: all that decide, but for those that it was refused.

    Where none of such a kind is in the dump, there is none: a claim that is not there does not exist.
    """
    from berth.sources.cluster import KINDS  # here: other dumps need nothing of a live cluster

    if "" in dump.refused:  # it does not say which kind
        return frozenset()
    return frozenset(
        kind.kind for kind in KINDS if kind.resource not in dump.refused and kind.group not in state.not_seen
    )


def _as_configured(
    state: BerthState, mapping: GpuMapping | None, levels: tuple[Level, ...]
) -> tuple[GpuMapping | None, tuple[Level, ...]]:
    """What the scheduler that gave the dump was configured with, where the reader says nothing else."""
    known = state.configuration
    if mapping is None and known.gpu_classes:
        mapping = read_mapping(known.gpu_classes, f"{state.kind}: configuration.gpuClasses")
    return mapping, levels or tuple(Level(level.name, level.label) for level in known.levels)


def snapshot_of(
    inventory: Inventory,
    *,
    now_s: float,
    mapping: GpuMapping | None = None,
    notes: tuple[str, ...] = (),
    levels: tuple[Level, ...] = (),
    asked: Asked = lambda inventory: None,
    taken_s: float | None = None,
) -> Snapshot:
    """The snapshot of what an inventory holds. `asked` as in `read_snapshot`; `taken_s` where that was not now."""
    told = [*notes, *inventory.notes()]
    if inventory.gpu_classes:
        mapping, troubles = joined(mapping, inventory.gpu_classes)
        told.extend(troubles)
    named = devices_by_node(inventory.slices)
    classes: dict[str, GpuClass] = {}
    nodes: list[Node] = []
    silent: list[str] = []
    silent_s = inventory.state.configuration.silent_after_s if inventory.state is not None else SILENT_S
    for node in inventory.nodes.values():
        name = node.metadata.name if node.metadata and node.metadata.name else ""
        reading = read_node(node, named.get(name, ()), mapping, inventory.share)
        seen = reading.node
        if ledger := inventory.ledgers.get(name):
            heard_s = seconds(heartbeat_of(ledger))
            if has_gone := is_silent(heard_s, now_s if taken_s is None else taken_s, silent_s):
                silent.append(name)
            seen = heed(seen, report_of(ledger), has_gone)
        nodes.append(seen)
        for gpu_class in reading.gpu_classes:
            classes.setdefault(gpu_class.name, gpu_class)
        told.extend(f"node {name}: {problem}" for problem in reading.problems)
    pods = Pods(inventory, held_devices(inventory.claims, named))
    topology = discover([n.labels for n in nodes], levels or levels_of(inventory), pods.levels_asked())
    pods.place_in(Domains(topology, nodes))
    offers, all_nodes = inventory.offers, inventory.device_classes.told(nodes)
    offers.stand_on(all_nodes)
    allocations, workloads = pods.held(), pods.waiting()
    asked(inventory)
    bookings = bookings_in(inventory.reservations)
    made = Snapshot(
        nodes=offers.put_on(all_nodes, frozenset(offers.known)),
        allocations=allocations,
        workloads=workloads,
        gpu_classes=tuple(classes[name] for name in sorted(classes)),
        queues=queues_of(inventory),
        topology=topology,
        now_s=now_s,
        notes=(*told, *silent_note(silent, silent_s), *pods.notes(frozenset(inventory.nodes))),
        owners=pods.owners(),
        budgets=tuple(inventory.budgets.values()),
        bookings=bookings,
        usage=_usage(inventory, now_s),
        findings=pods.findings(),
    )
    unread = inventory.reservations.keys() - {booking.name for booking in bookings}
    doubts = (*(f"GPUReservation {name} cannot be read, and keeps nothing" for name in sorted(unread)), *problems(made))
    return replace(made, notes=(*made.notes, *doubts)) if doubts else made


def _refuse_blind(dump: Dump, inventory: Inventory) -> None:
    """Without nodes or pods that are there, but that nobody was allowed to see, every answer would be wrong."""
    for kind, is_seen in (("nodes", bool(inventory.nodes)), ("pods", bool(inventory.seen_pods))):
        said = dump.refused.get(kind) or dump.refused.get("")
        if said and not is_seen:
            remedy = f"Dump {kind} with an account that may list them in the whole cluster."
            raise BadInput(dump.path, f"{said.rstrip('.')}.", remedy, UNREADABLE)
    bound = [pod for pod in inventory.pods.values() if pod.node]
    if bound and not inventory.nodes:
        pods = counted(len(bound), "pod is bound to a node", "pods are bound to nodes")
        first = f"{bound[0].namespace}/{bound[0].name} to {bound[0].node}"
        problem = f"it holds no nodes, while {pods} ({first})."
        raise BadInput(dump.path, problem, "Dump nodes and pods: kubectl get nodes,pods -A -o json.", UNREADABLE)


def refuse_uncarried(levels: tuple[Level, ...], inventory: Inventory) -> None:
    """Raises BadInput for a level that somebody typed and whose label no node carries."""
    carried = {key for node in inventory.nodes.values() for key in (node.metadata and node.metadata.labels) or ()}
    for level in levels:
        if carried and level.label not in carried:
            close = get_close_matches(level.label, sorted(carried), 1, 0.7)
            remedy = f"Close to it: {close[0]}." if close else "kubectl get nodes --show-labels lists what they carry."
            given = level.name if level.name == level.label else f"{level.name}={level.label}"
            raise BadInput(f"--topology {given}", f"no node carries the label {level.label}.", remedy)


def mapping_in(file: str | None) -> GpuMapping | None:
    """What a mapping file says; None without one. Raises BadInput."""
    if not file:
        return None
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(file, f"cannot be read: {reason}.", "Name a file that maps labels to classes.") from None
    return read_mapping(text, file)


def levels_of(inventory: Inventory) -> tuple[Level, ...]:
    """Levels that a topology object names: Berth's own before Kueue's and KAI's, the first by name."""
    found = []
    for group, topology in inventory.topologies:
        name = (topology.metadata.name if topology.metadata else None) or ""
        levels = tuple(
            Level(level.name or level.alias or key, key)
            for level in (topology.spec.levels if topology.spec else None) or ()
            if (key := level.label or level.node_label)
        )
        if levels:
            found.append((group != "berth.dev", name, levels))
    return min(found)[2] if found else ()


def _usage(inventory: Inventory, now_s: float) -> dict[str, float]:
    """What queues have used, as their status says it."""
    usage = Usage()
    for queue in inventory.queues.values():
        usage.put(queue)
    return usage.now(now_s)


def queues_of(inventory: Inventory) -> tuple[Queue, ...]:
    return queues_in(inventory.queues)
