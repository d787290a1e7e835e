"""L6. RDMA between the nodes fails: completions with an error, ports, GIDs, devices that a container may not use."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed, value, values
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.infiniband import RdmaPort

# Status of a completion (ibverbs): what NCCL prints as number, newer releases as name too.
LOCAL_LENGTH, LOCAL_QP, LOCAL_PROTECTION, FLUSHED = 1, 2, 4, 5
REMOTE_INVALID, REMOTE_ACCESS, REMOTE_OPERATION, RETRIES, RNR = 9, 10, 11, 12, 13
_NAMES = {
    "RETRY_EXC_ERR": RETRIES,
    "WR_FLUSH_ERR": FLUSHED,
    "LOC_PROT_ERR": LOCAL_PROTECTION,
    "RNR_RETRY_EXC_ERR": RNR,
    "REM_ACCESS_ERR": REMOTE_ACCESS,
}
_WORDS = (("protection", LOCAL_PROTECTION), ("remote access", REMOTE_ACCESS), ("flushed", FLUSHED), ("rnr", RNR))

_SOURCES = ("NCCL, src/transport/net_ib", "libibverbs: ibv_wc_status")
_VERIFY = (
    "ib_write_bw between the two nodes with the same device and GID: line rate",
    "all_reduce_perf over both nodes passes",
)

RETRIED = Code(
    name="RdmaRetriesExceeded",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="packets between two network cards do not arrive",
    meaning="The sender gave up after its retries (status 12). At the first transfer the cards cannot talk at all: "
    "GID, rail, "
    "routing, MTU; after hours a link or switch is at fault.",
    known_by="NCCL got a completion with status 12, mostly with vendor error 129.",
    disproved_by="perftest between the same two devices runs at line rate; then the peer process had died before.",
    counter_check="ib_write_bw -d <device> -x <gid index> between the nodes: runs",
    fix=Fix(
        steps=(
            "always the same device or peer: look at its port, cable and switch counters",
            "at once, RoCE: NCCL_IB_GID_INDEX unset from 2.21 on, else the index of RoCE v2 in show_gids; traffic "
            "class as the switches expect it",
            "rails that are not connected with each other: NCCL_CROSS_NIC=0 and the right NCCL_IB_HCA list on every "
            "node",
        ),
        risk="settings apply to all jobs that share the image or manifest",
        rollback="unset them",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
PROTECTION = Code(
    name="RdmaMemoryRefused",
    layer=Layer.L6,
    cause_class="p2p-acs-iommu",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="the network card may not access the memory that it was given",
    meaning="A local protection or remote access error: the path from card to GPU memory is cut by IOMMU or ACS, or "
    "peermem and driver do not fit.",
    known_by="A completion with status 4, 10 or 11, or a registration of GPU memory that is refused.",
    disproved_by="The same error with NCCL_NET_GDR_LEVEL=0, where host memory is used.",
    counter_check="NCCL_NET_GDR_LEVEL=LOC once: the same error, with host memory too",
    fix=Fix(
        steps=(
            "lspci -vvv | grep ACSCtl: SrcValid+ on bridges means ACS is on: off on bare metal; IOMMU off or iommu=pt",
            "rebuild or reload nvidia_peermem with the driver in use, or DMA-BUF",
            "NCCL_NET_GDR_LEVEL=LOC as a stopgap: slow and safe",
        ),
        risk="ACS off removes isolation between devices",
        rollback="put the BIOS setting back",
    ),
    verify=("ib_write_bw --use_cuda=0 between the nodes: runs", "all_reduce_perf over both nodes passes"),
    sources=_SOURCES,
)
FLUSH = Code(
    name="RdmaQueueFlushed",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Warning,
    effect=Effect.CollectiveFails,
    title="work of a broken connection was flushed: a consequence",
    meaning="Status 5 follows an earlier error of the same queue pair, here or at the peer.",
    known_by="Completions with status 5 only.",
    disproved_by="No earlier error on any rank.",
    counter_check="logs of all ranks, ordered by time: no error before it on any of them",
    fix=Fix(
        steps=("find the first error in time over all ranks: go to that rank and device",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
PORT = Code(
    name="RdmaPortDown",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="a port of a network card is down or reported an event",
    meaning="Cable, transceiver, switch port or subnet manager. Jobs over that port fail or hang; NCCL prints what "
    "the card reported.",
    known_by="An asynchronous event of the device, or a port that is not active.",
    disproved_by="The port is not cabled on purpose.",
    counter_check="ibstat and rdma link: ACTIVE, LinkUp at full width and rate; link_downed does not grow",
    fix=Fix(
        steps=(
            "mlxlink -d <device>: which end lacks the signal; clean or change cable and transceiver",
            "InfiniBand in state INIT: the subnet manager does not run or does not reach it",
            "keep the node out until the counters stand still",
        ),
        risk="the port's jobs end",
        rollback="nothing to undo",
    ),
    verify=("ibstat: Active, LinkUp, full rate on every port that is cabled", *_VERIFY),
    sources=(*_SOURCES, "libibverbs: ibv_get_async_event"),
)
GID = Code(
    name="RdmaGidWrong",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="the connection cannot be set up: GID, route or device do not fit in this network namespace",
    meaning="RoCE addresses (GIDs) belong to interfaces. A fixed index, or a device whose interface is not in the "
    "pod, names none.",
    known_by="ibv_modify_qp fails, or no usable GID.",
    disproved_by="show_gids in the pod lists a RoCE v2 GID at that index.",
    counter_check="show_gids in the pod: a RoCE v2 GID with the pod's address",
    fix=Fix(
        steps=(
            "unset NCCL_IB_GID_INDEX from NCCL 2.21 on; before, the index of RoCE v2",
            "give the pod the interface of the device (SR-IOV or host device network), not macvlan over a shared "
            "device",
        ),
        risk="settings apply to all jobs of the image",
        rollback="set the old index",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
DEVICE = Code(
    name="RdmaDeviceNotUsable",
    layer=Layer.L6,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="the container may not use the network card's device files, or lacks rights for them",
    meaning="/dev/infiniband is not in the container, not permitted, or capabilities are missing; privileged "
    "containers hide it.",
    known_by="Opening the device fails, or the job runs only with privileged: true.",
    disproved_by="ibv_devinfo in the container lists the devices.",
    counter_check="ls -l /dev/infiniband; ibv_devinfo in the container: the devices",
    fix=Fix(
        steps=(
            "ask for the RDMA resource of the device plugin (rdma/..., nvidia.com/hostdev) in limits",
            "capability IPC_LOCK; for memory placement SYS_NICE; libibverbs and its providers in the image",
            "give devices and capabilities one by one in place of privileged: true",
        ),
        risk="privileged containers own the node: not for workloads",
        rollback="take the resource out again",
    ),
    verify=("ibv_devinfo in the unprivileged container: the devices", "the job runs without privileged"),
    sources=("NCCL user guide: containers", "k8s-rdma-shared-dev-plugin, sriov-network-device-plugin"),
)

NARROW = Code(
    name="RdmaPortNarrow",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="an InfiniBand port runs on fewer lanes than its cable has",
    meaning="The link trained at a fraction of its width: a lane, a cable or a transceiver is bad. Everything over "
    "that port is slow.",
    known_by="The port is active with a width of 1X or 2X.",
    disproved_by="The cable is meant for that width.",
    counter_check="mlxlink -d <device>: width 4X, no lane without signal",
    fix=Fix(
        steps=("clean or change cable and transceiver; then the switch port",),
        risk="jobs over that port end",
        rollback="nothing to undo",
    ),
    verify=("ibstat: full rate at 4X",),
    sources=("InfiniBand: link width negotiation",),
)


def find(facts: Facts) -> Iterator[Answer]:
    by_status: dict[int, list[Said]] = {}
    for said in facts.said("nccl.completion", "rdma.failed_status"):
        by_status.setdefault(_status(said), []).append(said)
    if retried := [*by_status.get(RETRIES, ()), *by_status.get(RNR, ())]:
        yield RETRIED.finding(f"Transfers were given up after all retries.{_who(retried)}", LIKELY, retried)
    refused = [
        said for status in (LOCAL_PROTECTION, REMOTE_ACCESS, REMOTE_OPERATION) for said in by_status.get(status, ())
    ]
    refused += list(facts.said("nccl.reg_mr_refused", "rdma.memory_refused"))
    if refused:
        yield PROTECTION.finding(f"The card was refused access to memory.{_who(refused)}", POSSIBLE, refused)
    if (flushed := by_status.get(FLUSHED)) and len(by_status) == 1:
        yield FLUSH.finding(
            f"Only flushed work was seen.{_who(flushed)} The first error is elsewhere.", POSSIBLE, flushed
        )
    hinted = "NCCL takes it for a time-out on the way, or for rails that are not connected."
    if not retried:
        yield from heard(facts, RETRIED, ("nccl.hint_retries",), hinted, LIKELY)
    yield from heard(facts, GID, ("nccl.hint_gid",), "NCCL takes it for a wrong or changed GID.", LIKELY)
    yield from _ports(facts)
    for node, pod, found in by_place(facts.said("nccl.modify_qp")):
        yield GID.finding(
            f"A queue pair cannot be connected{': ' + why if (why := value(found[0], 'why')) else ''}.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    yield from heard(
        facts,
        DEVICE,
        ("nccl.device_not_opened", "nccl.privilege", "nvshmem.no_right", "rdma.no_device", "nccl.call_denied"),
        "The container lacks the device files or the rights for them.",
        POSSIBLE,
    )


def _ports(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("nccl.async_event")):
        events = listed([*values(found, "event")])
        yield PORT.finding(
            f"The card reported "
            f"{events or 'an event'}{' on ' + listed(values(found, 'hca')) if values(found, 'hca') else ''}.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    ports = facts.of(RdmaPort)
    active = any(port.state == "ACTIVE" for port in ports)
    for port in ports:
        if port.state == "ACTIVE" and port.layer == "InfiniBand" and port.width in ("1X", "2X"):
            cause = f"Port {port.port} of {port.device} runs at {port.width}, {port.rate_gbs:g} Gbit/s."
            yield NARROW.finding(cause, LIKELY, [port], subject=f"{port.device} port {port.port}")
        if port.state in ("", "ACTIVE"):
            continue
        unused = port.physical.lower() in ("disabled", "") and active
        sure = WEAK if unused or (port.layer == "Ethernet" and active) else POSSIBLE if active else LIKELY
        yield PORT.finding(
            f"Port {port.port} of {port.device} is {port.state} ({port.physical or 'link unknown'}).", sure, [port],
            subject=f"{port.device} port {port.port}" + (f" of node {port.node}" if port.node else ""),
        )  # fmt: skip


def _status(said: Said) -> int:
    if words := value(said, "text").lower():
        return next((status for part, status in _WORDS if part in words), RETRIES)
    return _NAMES.get(said.get("name"), int(said.get("status") or 0))


def _who(sayings: list[Said]) -> str:
    peers, hcas, vendors = values(sayings, "peer"), values(sayings, "hca"), values(sayings, "vendor")
    words = [
        f"peers {listed(peers)}" if peers else "",
        f"devices {listed(hcas)}" if hcas else "",
        f"vendor error {listed(vendors)}" if vendors else "",
    ]
    named = "; ".join(word for word in words if word)
    return f" Named: {named}." if named else ""


RULE = Rule((RETRIED, PROTECTION, FLUSH, PORT, GID, DEVICE, NARROW), find)
