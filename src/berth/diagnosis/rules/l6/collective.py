"""L6. A collective operation hangs or fails for what is in the job itself: versions, ranks, plugins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed, value, values
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, CauseClass, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.nccl_log import NcclRank, NcclVersion

WATCHDOG = Code(
    name="CollectiveTimedOut",
    layer=Layer.L6,
    cause_class="diagnosis-rule",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="a collective operation timed out: a symptom, the cause is on another rank",
    meaning="Some rank did not arrive: it crashed, waits for data, or its device or link hangs. The rank that prints "
    "the time-out "
    "is rarely the one at fault.",
    known_by="PyTorch's watchdog says so.",
    disproved_by="All ranks launched the same operation and none completed: then the network or a device hangs.",
    counter_check="the flight recorder of all ranks: all called the same operation and none completed it (then the "
    "network or a device hangs)",
    fix=Fix(
        steps=(
            "TORCH_FR_BUFFER_SIZE and a dump on time-out: the rank with the lowest last enqueued work is where to look",
            "on that rank's node: kernel log (Xid), the process's exit, storage and loader",
            "a longer time-out only hides it",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the job passes; the node of that rank is tested alone",),
    sources=("PyTorch: ProcessGroupNCCL watchdog, flight recorder",),
)
VERSIONS = Code(
    name="NcclVersionSkew",
    layer=Layer.L6,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="ranks of one job use different versions of NCCL",
    meaning="Images or wheels differ between the pods. Some pairs of versions hang, others fail at once.",
    known_by="NCCL says that the versions do not match, or logs of one communicator's ranks print different ones.",
    disproved_by="The logs are of different jobs.",
    counter_check="NCCL version in the log of each rank: one and the same",
    fix=Fix(
        steps=(
            "the same image digest for every pod of the job",
            "two copies in one image: LD_PRELOAD or a system libnccl beside the wheel's",
        ),
        risk="none",
        rollback="the old image",
    ),
    verify=("every rank prints the same NCCL version",),
    sources=("NCCL, src/bootstrap.cc and init.cc",),
)
DUPLICATE = Code(
    name="RanksShareOneGpu",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="two ranks use the same GPU",
    meaning="The program does not choose its device by local rank, or more processes than GPUs were started. Not a "
    "hardware fault.",
    known_by="NCCL: Duplicate GPU detected.",
    disproved_by="Every rank prints another device.",
    counter_check="nvidia-smi -L | wc -l in the pod: at least the processes per node",
    fix=Fix(
        steps=("torch.cuda.set_device(LOCAL_RANK) before the first collective; processes per node equal to the GPUs",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the job starts",),
    sources=("NCCL, src/init.cc",),
)
PLUGIN = Code(
    name="NetworkPluginNotUsed",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="NCCL's plugin for the machine's network does not start",
    meaning="Without the plugin (EFA, SHARP, a vendor's) NCCL falls back to sockets or ends. The image lacks the "
    "plugin or its library, or the pod lacks the device.",
    known_by="The plugin or NCCL says that it found no provider or could not be initialised.",
    disproved_by="NCCL says Using network with the plugin's name.",
    counter_check="NCCL_DEBUG=INFO: Using network with the plugin's name",
    fix=Fix(
        steps=(
            "ask for the device in limits (vpc.amazonaws.com/efa, rdma/...) for every pod",
            "an image with the plugin and its library in fitting versions; LD_LIBRARY_PATH to it; NCCL_NET_PLUGIN "
            "unset or right",
        ),
        risk="another plugin version changes performance",
        rollback="the old image",
    ),
    verify=("NCCL_DEBUG=INFO: Using network with the plugin's name on every rank",),
    sources=("aws-ofi-nccl documentation", "NCCL: network plugins"),
)
NO_WAY = Code(
    name="EfaTrafficDropped",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="EFA is in use, and its packets do not reach the other node",
    meaning="The plugin started and the peer does not answer. Traffic of EFA passes only where the security group "
    "allows everything from and to itself, in both directions, and only within one subnet.",
    known_by="The OFI plugin completes a request with an error, cannot take in the peer's address, or calls the "
    "receiver unresponsive.",
    disproved_by="fi_pingpong -p efa between the two nodes runs; then the peer's process had ended before.",
    counter_check="fi_pingpong -p efa on one node, with its address on the other: numbers for every size",
    fix=Fix(
        steps=(
            "security group of the nodes: an inbound and an outbound rule, all traffic, whose other end is the group "
            "itself (0.0.0.0/0 is not enough for EFA)",
            "all nodes of the job in one subnet or zone: a placement group, or affinity to one zone",
            "the same versions of plugin and libfabric on both ends; then the peer's log for how it ended",
        ),
        risk="members of the group reach each other on all ports",
        rollback="remove the rules",
    ),
    verify=("fi_pingpong -p efa between the nodes: runs", "all_reduce_perf over both nodes passes"),
    sources=("AWS: getting started with EFA, security group", "aws-ofi-nccl, src", "libfabric, prov/efa"),
)
MISMATCH = Code(
    name="RanksCallDifferently",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="ranks call different collectives, or with other sizes",
    meaning="Every rank must call the same operations in the same order with the same sizes and types. Not a fault of "
    "nodes or network.",
    known_by="NCCL or PyTorch says that collectives do not match, or that a message has another length than was "
    "expected.",
    disproved_by="All ranks print the same operations and sizes.",
    counter_check="TORCH_DISTRIBUTED_DEBUG=DETAIL, or NCCL_DEBUG_SUBSYS=COLL on all ranks: the same calls in order",
    fix=Fix(
        steps=(
            "the first call that differs: branches that depend on data or rank, uneven last batches, unused parameters",
            "the same NCCL version, image and settings (NCCL_ALGO, NCCL_PROTO) on every rank",
        ),
        risk="none",
        rollback="the old code",
    ),
    verify=("the job passes the step where it failed",),
    sources=("NCCL, src/init.cc and src/bootstrap.cc", "PyTorch: TORCH_DISTRIBUTED_DEBUG"),
)
ARGUMENT = Code(
    name="NcclCallInvalid",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="the program calls NCCL with an argument that cannot be",
    meaning="NCCL checks roots, types, operations and pointers before it begins. Not a fault of nodes or network.",
    known_by="NCCL names the argument, or the result is ncclInvalidArgument.",
    disproved_by="The same program runs elsewhere with the same number of ranks and devices.",
    counter_check="the same program elsewhere with as many ranks and devices: it runs",
    fix=Fix(
        steps=(
            "torch.cuda.set_device(LOCAL_RANK) before the first tensor; tensors on the device of their rank",
            "root below the number of ranks; a type that this version of NCCL has",
            "no call on a communicator that was destroyed or aborted",
        ),
        risk="none",
        rollback="the old code",
    ),
    verify=("the job passes the step where it failed",),
    sources=("NCCL, src/misc/argcheck.cc",),
)
CRASH = Code(
    name="NcclCrashes",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a process crashed inside libnccl",
    meaning="Mostly a communicator that was used after it was destroyed or after an error, or two copies of NCCL in "
    "one process.",
    known_by="The kernel logs a segfault in libnccl.",
    disproved_by="It comes on one node only: then look for memory errors there.",
    counter_check="the same job on other nodes: no crash (then look for memory errors on this one)",
    fix=Fix(
        steps=(
            "the first error in the log before the crash is the cause to look at",
            "one copy of NCCL in the image, in the version of the framework",
        ),
        risk="none",
        rollback="the old image",
    ),
    verify=("the job passes the point where it crashed",),
    sources=("kernel: segfault lines", "gpud: nccl component"),
)

# What a library says that is older than its caller: ENOPROTOOPT, ENOSYS, and a version that it does not have.
UNKNOWN_CALL = re.compile(
    r"Protocol not available|Function not implemented|RC: -(?:92|38)\b|version|resolve CUDA function"
    r"|Could(?:n't| not) (?:set|get) FI_OPT_|FI_OPT_\w+ (?:is true|not declared)",
    re.IGNORECASE,
)
SYMPTOM = 0.5  # whatever else was found stands before it


def find(facts: Facts) -> Iterator[Answer]:
    missed = list(facts.said("dist.desync"))
    for node, pod, found in by_place(facts.said("dist.watchdog", "dist.wait_in_vain")):
        if missed:
            late = listed(f"rank {said.get('rank')} (collective {said.get('missed')})" for said in missed)
            cause = f"Did not arrive: {late}. Look at that process: its stack, its data, its node."
        else:
            sequence, operation = value(found[0], "sequence"), value(found[0], "operation")
            what = f" ({operation}, sequence {sequence})" if operation else ""
            cause = (
                f"A rank waited in vain for others{what}. Who prints it is a victim: find the one that did not come."
            )
        yield WATCHDOG.finding(cause, SYMPTOM, [*missed, *found], node=node, pod=pod)
    yield from _versions(facts)
    for node, pod, found in by_place(facts.said("nccl.duplicate_gpu")):
        ranks = [value(found[0], "rank"), value(found[0], "rank2") or found[0].get("rank2")]
        who = f"Ranks {ranks[0]} and {ranks[1]} use" if ranks[0] else "Two ranks use"
        yield DUPLICATE.finding(f"{who} the same GPU.", ESTABLISHED, found, node=node, pod=pod)
    yield from heard(
        facts,
        PLUGIN,
        ("efa.unused", "nccl.plugin_failed", "sharp.failed"),
        "The network plugin finds no device or library in the container.",
        LIKELY,
    )
    if not any(facts.said("host.peermem_absent", "nvshmem.no_right")):
        cause = "NVSHMEM cannot begin with the transport that is wanted."
        yield from heard(facts, PLUGIN, ("nvshmem.failed",), cause, LIKELY)
    yield from _fails_in_use(facts)
    for node, pod, found in by_place(facts.said("nccl.mismatched_calls")):
        got, wanted = value(found[0], "got"), value(found[0], "wanted")
        sizes = f": {got} bytes came where {wanted} were expected" if got and wanted else ""
        yield MISMATCH.finding(f"Ranks do not call the same collective{sizes}.", LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("nccl.bad_argument", "dist.called_wrongly")):
        calls = listed(values(found, "call"))
        yield ARGUMENT.finding(
            f"NCCL refuses the arguments of {calls or 'a call'}.", LIKELY if calls else POSSIBLE, found, node=node,
            pod=pod,
        )  # fmt: skip
    for node, pod, found in by_place(facts.said("nccl.segfault")):
        yield CRASH.finding(
            f"A process crashed in {listed(values(found, 'library')) or 'libnccl'}.", LIKELY, found, node=node, pod=pod
        )


def _fails_in_use(facts: Facts) -> Iterator[Answer]:
    """The plugin runs; its traffic or a call of it fails."""
    dropped = list(facts.said("efa.no_way_through"))
    for node, pod, found in by_place(dropped):
        status = listed(values(found, "status"))
        cause = f"Requests of the OFI plugin end with an error{' (' + status + ')' if status else ''}: the peer is not"
        yield NO_WAY.finding(
            f"{cause} reached. On AWS that is mostly the security group, which must allow all traffic from and to "
            "itself.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    if not dropped and not any(facts.said("efa.unused")):
        for node, pod, found in by_place(facts.said("efa.other_error")):
            yield PLUGIN.finding(
                f"The network plugin reports: {found[0].get('why')[:160]}",
                POSSIBLE,
                found,
                node=node,
                pod=pod,
                cause_class=_class_of_call(found[0].get("why")),
            )


def _class_of_call(why: str) -> CauseClass | None:
    """By what libfabric answered; else it is the network's."""
    if UNKNOWN_CALL.search(why):
        return "version-mismatch"
    if re.search(r"Cannot allocate memory|RC: -12\b", why):
        return "host-limits"
    return "permission" if re.search(r"Operation not permitted|Permission denied|RC: -1(?:3)?\b", why) else None


def _versions(facts: Facts) -> Iterator[Answer]:
    for node, pod, cut in by_place(facts.said("nccl.bootstrap_truncated")):
        sizes = f"{cut[0].get('got')} bytes in place of {cut[0].get('wanted')}"
        yield VERSIONS.finding(
            f"A rank was sent {sizes} before the job began, as by another version of NCCL (or by a stranger at its "
            "port).",
            POSSIBLE,
            cut,
            node=node,
            pod=pod,
        )
    unread = "What a rank sent at the start is not an address to this one, as from another version of NCCL."
    yield from heard(facts, VERSIONS, ("nccl.address_unread",), unread, POSSIBLE)
    built = "The NCCL that is loaded is not the one that the program was built with."
    yield from heard(facts, VERSIONS, ("nccl.other_build",), built, LIKELY)
    told = list(facts.said("nccl.version_mismatch"))
    if told:
        versions = (
            listed([value(told[0], "version"), told[0].get("version2")]) if told[0].get("version") else "different ones"
        )
        yield VERSIONS.finding(f"Ranks of the job use {versions}.", ESTABLISHED, told)
        return
    # One communicator's ranks name their processes; versions are only compared within it.
    by_process = {(one.by.host, one.by.pid): one for one in facts.of(NcclVersion) if one.by.host}
    members: dict[str, list[NcclVersion]] = {}
    for rank in facts.of(NcclRank):
        if rank.communicator and (version := by_process.get((rank.by.host, rank.by.pid))):
            members.setdefault(rank.communicator, []).append(version)
    for found in members.values():
        if len({one.version for one in found}) > 1:
            words = listed(sorted(f"{one.version} on {one.by.host}" for one in found))
            yield VERSIONS.finding(f"Ranks of one communicator use {words}.", ESTABLISHED, found)


RULE = Rule((WATCHDOG, VERSIONS, DUPLICATE, PLUGIN, NO_WAY, MISMATCH, ARGUMENT, CRASH), find)
