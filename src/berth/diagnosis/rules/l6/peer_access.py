"""L6. GPUs do not reach each other's memory: ACS or the IOMMU redirect it, or the pair does not support it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.nccl_tests import CollectiveTest

BLOCKED = Code(
    name="PeerAccessBlocked",
    layer=Layer.L6,
    cause_class="p2p-acs-iommu",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="ACS or the IOMMU stands between GPUs",
    meaning="Peer accesses are sent up to the root complex and back, slowly, wrongly or never: the first collective "
    "hangs, or data is wrong. "
    "With NCCL_P2P_DISABLE=1 the job runs.",
    known_by="Bridges have ACS on (SrcValid+), the IOMMU reports faults, or peer access fails or returns wrong data.",
    disproved_by="ACS is off on all bridges and the IOMMU off or in passthrough mode, and it still fails.",
    counter_check="lspci -vvv | grep ACSCtl: SrcValid- everywhere; cat /proc/cmdline: iommu=pt or off",
    fix=Fix(
        steps=(
            "bare metal: ACS off in the BIOS, or by setpci at each boot; intel_iommu=off or iommu=pt",
            "virtual machines need ACS: there ATS on the network card is the right way",
            "NCCL_P2P_DISABLE=1 once, to confirm; do not leave it",
        ),
        risk="ACS off removes isolation between devices: no untrusted virtual machines on that host",
        rollback="put the BIOS setting back",
    ),
    verify=("p2pBandwidthLatencyTest and simpleP2P pass", "all_reduce_perf on the node passes with #wrong 0"),
    sources=("NCCL user guide: troubleshooting, PCI access control services",),
)
EXHAUSTED = Code(
    name="PeerMappingsExhausted",
    layer=Layer.L6,
    cause_class="p2p-acs-iommu",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="a GPU has more peers over PCI Express than it can map",
    meaning="Without NVSwitch a GPU maps eight peers at most. A program that uses more GPUs of one machine at once "
    "cannot enable peer access between all of them.",
    known_by="CUDA error 711, peer mapping resources exhausted.",
    disproved_by="The program uses eight GPUs or fewer, and no other one uses them.",
    counter_check="nvidia-smi topo -m: eight GPUs or fewer, or NVLink (NV#) between all of them",
    fix=Fix(
        steps=(
            "use at most eight GPUs of the machine in one communicator",
            "more: NCCL_P2P_LEVEL narrower, or NCCL_P2P_DISABLE=1",
        ),
        risk="traffic between GPUs goes through main memory",
        rollback="unset the variables",
    ),
    verify=("all_reduce_perf with that many GPUs passes",),
    sources=("CUDA driver API: CUDA_ERROR_TOO_MANY_PEERS", "CUDA programming guide: peer access"),
)
WRONG = Code(
    name="CollectiveDataWrong",
    layer=Layer.L6,
    cause_class="p2p-acs-iommu",
    severity=Severity.Critical,
    effect=Effect.CollectiveFails,
    title="a collective test delivered wrong data",
    meaning="Results of jobs on these machines are not to be trusted. Usual reasons: peer access through an IOMMU, a "
    "sick link, sick memory.",
    known_by="nccl-tests counts values out of bounds.",
    disproved_by="The test passes with another NCCL version on the same machines.",
    counter_check="the same test with another NCCL version on the same machines: 0 out of bounds",
    fix=Fix(
        steps=(
            "kubectl cordon the nodes of the test; bisect by node and by GPU pair",
            "ACS and IOMMU as for blocked peer access; dcgmi diag -r 3 on the node that is left",
        ),
        risk="none",
        rollback="kubectl uncordon NODE",
    ),
    verify=("nccl-tests: Out of bounds values : 0 OK, several times",),
    sources=("nccl-tests README",),
)
SLOW = Code(
    name="CollectiveBelowMinimum",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="a collective test stays below the bandwidth that it was given",
    meaning="The test compares with a minimum of its caller. Whether the machines are slow depends on that number: "
    "compare with the "
    "same test, sizes and ranks on machines that are known good.",
    known_by="nccl-tests marks the average bus bandwidth as failed.",
    disproved_by="Healthy machines of that kind stay below the same minimum.",
    counter_check="the same test on other nodes of the kind, three times: they stay below the minimum, too",
    fix=Fix(
        steps=(
            "repeat three times with the same size and ranks; then bisect by node",
            "NCCL_DEBUG=INFO: GDRDMA on all connections, no sockets; ports at full width",
        ),
        risk="a test loads the fabric: not beside production",
        rollback="nothing to undo",
    ),
    verify=("nccl-tests: no FAILED behind Avg bus bandwidth",),
    sources=("nccl-tests README: NCCL_TESTS_MIN_BW",),
)

# What a hanging test would be about instead.
_BLOCKED_BY = ("nccl.peer_access", "nccl.peer_refused", "nccl.hip_peer_refused", "host.plx_acs_on")
GUESS = 0.5  # the usual reason, told of by somebody
_OTHER_REASONS = (
    "nccl.unreachable",
    "nccl.no_socket_interface",
    "efa.",
    "nccl.completion",
    "nccl.shm_small",
    "kernel.xid",
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said(*_BLOCKED_BY)):
        # ACS alone is how virtual machines want it; with a collective or a failing access it is the reason.
        only_setting = all("ACSCtl" in said.origin.text for said in found)
        seen = facts.looked_at("nccl-log", "app-log", "nccl-tests")
        yield BLOCKED.finding(
            "Accesses between GPUs are redirected or refused on their way over PCI Express.",
            WEAK if only_setting and not seen else POSSIBLE,
            found,
            node=node,
            pod=pod,
        )
    hangs = list(facts.said("nccl.test_hangs_told"))
    if hangs and not any(facts.said("nccl.peer_access", *_OTHER_REASONS)):
        yield BLOCKED.finding(
            "A test among the GPUs of one machine hangs: mostly the IOMMU or ACS, or cards that offer peer access and "
            "do not have it.",
            POSSIBLE,
            hangs,
        )
    told = list(facts.said("nccl.parallel_hangs_told"))
    if told and not hangs and not any(facts.said("nccl.peer_access", "nccl.works_without", "told.", *_OTHER_REASONS)):
        yield BLOCKED.finding(
            "A program over several GPUs of one machine hangs: mostly they offer peer access and do not have it.",
            GUESS,
            told,
        )
    yield from heard(
        facts, EXHAUSTED, ("nccl.peer_mappings",), "CUDA has no more room for mappings of other GPUs.", LIKELY
    )
    for test in facts.of(CollectiveTest):
        if test.is_out_of_bounds_failed or test.out_of_bounds > 0:
            yield WRONG.finding(
                f"{test.test or 'The test'} counted {test.out_of_bounds} values out of bounds.", LIKELY, [test]
            )
        elif test.is_bandwidth_failed:
            yield SLOW.finding(
                f"{test.test or 'The test'} reached {test.average_busbw_gbs:g} GB/s on average over its sizes.",
                POSSIBLE,
                [test],
            )


RULE = Rule((BLOCKED, EXHAUSTED, WRONG, SLOW), find)
