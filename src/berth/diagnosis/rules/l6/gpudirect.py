"""L6. RDMA without GPUDirect: data goes through host memory, a tenth of the speed, and nothing fails."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.heard import by_place, listed, values
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.nccl_log import NcclChannel, NcclVersion

# Up to here NCCL looks only at the path of the old module (nv_peer_mem).
LAST_WITH_OLD_PATH = (2, 22, 3)

_GUIDE = ("NCCL user guide: GPUDirect RDMA, nvidia-peermem and DMA-BUF",)
_VERIFY = (
    "NCCL_DEBUG=INFO: both [send] and [receive] lines end in GDRDMA",
    "busbw of all_reduce_perf is back at its reference",
)

OLD_NCCL = Code(
    name="GdrOffByOldNccl",
    layer=Layer.L6,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="NCCL switches GPUDirect RDMA off for the network cards",
    meaning="NCCL up to 2.22.3 looks for the old peer-memory path and does not see newer nvidia-peermem; after an "
    "upgrade of system "
    "or driver everything runs through host memory, at a tenth of the speed.",
    known_by="NCCL says that GPU Direct RDMA is disabled for its devices, and nothing shows that the module is absent.",
    disproved_by="nvidia_peermem is not loaded (then load it), or NCCL is 2.23 or newer.",
    counter_check="lsmod | grep nvidia_peermem: not loaded (then load it); or NCCL version in the log: 2.23 or newer",
    fix=Fix(
        steps=(
            "NCCL 2.23 or newer in the image",
            "lsmod | grep nvidia_peermem on every node: load it where it is missing",
            "open kernel modules: DMA-BUF needs no peermem at all",
        ),
        risk="another NCCL in the image: test it first",
        rollback="the old image",
    ),
    verify=_VERIFY,
    sources=(*_GUIDE, "NVIDIA/nccl#1676"),
)
NOT_LOADED = Code(
    name="PeermemNotLoaded",
    layer=Layer.L6,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="nvidia_peermem is not loaded, so RDMA goes through host memory",
    meaning="The module is not loaded by itself after a restart. One node without it slows the whole job.",
    known_by="Connections of NCCL over InfiniBand lack the suffix GDRDMA, and the module is missing.",
    disproved_by="NCCL uses DMA-BUF: the log says that it is available and lines end in GDRDMA.",
    counter_check="lsmod | grep nvidia_peermem on both nodes: loaded",
    fix=Fix(
        steps=(
            "modprobe nvidia_peermem; a file in /etc/modules-load.d so that it is loaded at boot",
            "operator: driver.rdma.enabled=true",
        ),
        risk="none for running programs",
        rollback="rmmod nvidia_peermem",
    ),
    verify=("lsmod | grep nvidia_peermem: loaded on every node", *_VERIFY),
    sources=_GUIDE,
)
NOT_REGISTERED = Code(
    name="PeermemNotRegistered",
    layer=Layer.L6,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="nvidia_peermem does not work with the installed RDMA stack",
    meaning="The module was built without the peer interface of the OFED in use: it does not load, or loads and "
    "registers nothing.",
    known_by="The path /sys/kernel/mm/memory_peers is not there, or the module is refused with Invalid argument or "
    "an unknown symbol.",
    disproved_by="The path exists, or NCCL uses DMA-BUF.",
    counter_check="cat /sys/kernel/mm/memory_peers/nv_mem/version: a version",
    fix=Fix(
        steps=(
            "install OFED first, then build the driver anew",
            "or open kernel modules with DMA-BUF: no peermem needed",
        ),
        risk="a driver rebuild empties the node",
        rollback="the old driver package",
    ),
    verify=("cat /sys/kernel/mm/memory_peers/nv_mem/version: a version, or NCCL: DMA-BUF is available", *_VERIFY),
    sources=(*_GUIDE, "NVIDIA/nccl#1939"),
)
ONE_SIDE = Code(
    name="GdrMissingOnNode",
    layer=Layer.L6,
    cause_class="driver-build",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="some connections use GPUDirect RDMA and others do not",
    meaning="The node of the side that lacks it has no peermem or DMA-BUF, or GPU and card are too far apart there.",
    known_by="GDRDMA stands on some InfiniBand connections of the job and not on others.",
    disproved_by="Distance: on those GPUs the nearest card is behind the host bridge (NCCL_NET_GDR_LEVEL).",
    counter_check="nvidia-smi topo -m on that node: GPU and NIC at PHB, NODE or SYS (then it is the distance); lsmod "
    "| grep nvidia_peermem: loaded there, too",
    fix=Fix(
        steps=("modprobe nvidia_peermem on the node that lacks it", "make its PCI topology like that of the others"),
        risk="none for running programs",
        rollback="rmmod nvidia_peermem",
    ),
    verify=_VERIFY,
    sources=(*_GUIDE, "NVIDIA/nccl#897"),
)

HELPERS = Code(
    name="GpuDirectHelperMissing",
    layer=Layer.L6,
    cause_class="driver-build",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="a kernel module for direct copies is not there (GDRCopy, GPUDirect Storage)",
    meaning="Small messages or file reads go the slow way, or the library refuses to begin.",
    known_by="gdr_open or cuFile fails, or gdrdrv or nvidia-fs is not loaded.",
    disproved_by="The module is loaded and its device file is in the container.",
    counter_check="lsmod | grep -e gdrdrv -e nvidia_fs; ls /dev/gdrdrv /dev/nvidia-fs*: present",
    fix=Fix(
        steps=("operator: gdrcopy.enabled or gds.enabled; else install the module for the running driver and kernel",),
        risk="a module that does not fit the kernel does not load",
        rollback="unload it",
    ),
    verify=("gdrcopy_copybw or gdscheck -p: supported",),
    sources=("NVIDIA GDRCopy", "NVIDIA GPUDirect Storage: gdscheck"),
)

NOT_ON_CARD = Code(
    name="GpuDirectNotOnCard",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="the card has no GPUDirect RDMA",
    meaning="The driver gives memory of data centre and workstation cards to other devices, not that of GeForce. "
    "GDRCopy, NVSHMEM and libraries on them do not work there.",
    known_by="GDRCopy asks for the card's support and gets none, or the driver refuses to pin memory with -22.",
    disproved_by="The card is a data centre card: then look at the open kernel modules and the limits of BAR1.",
    counter_check="nvidia-smi -L: a data centre card",
    fix=Fix(
        steps=("do without GPUDirect on such cards: through host memory, or NVSHMEM_DISABLE_GDRCOPY=1",),
        risk="slower",
        rollback="unset the variable",
    ),
    verify=("the job runs without it",),
    sources=("NVIDIA GPUDirect RDMA: supported systems", "NVIDIA GDRCopy issue 206"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("gdr.refused_by_card")):
        cause = "The driver does not give this card's memory to another device."
        yield NOT_ON_CARD.finding(cause, POSSIBLE, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("gdrcopy.absent", "gdrcopy.not_there", "gds.absent")):
        yield HELPERS.finding(
            "The module for direct copies is not loaded, or its device file is not in the container.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    unregistered = list(facts.said("host.peermem_unregistered"))
    absent = list(facts.said("host.peermem_absent"))
    disabled = list(facts.said("nccl.gdr_disabled"))
    channels = [one for one in facts.of(NcclChannel) if one.transport == "NET" and not one.way.startswith("Socket")]
    without = [one for one in channels if not one.is_gdr]
    for node, pod, found in by_place(unregistered):
        yield NOT_REGISTERED.finding(
            "nvidia_peermem is not registered with the RDMA stack of the node.",
            LIKELY,
            [*found, *disabled],
            node=node,
            pod=pod,
        )
    if unregistered:
        return
    if absent:
        yield NOT_LOADED.finding(
            "nvidia_peermem is not loaded on the node.",
            LIKELY,
            [*absent, *disabled, *without[:2]],
            node=absent[0].origin.node,
        )
        return
    if disabled:
        hcas = listed(values(disabled, "hca"))
        versions = sorted({_numbers(one.version) for one in facts.of(NcclVersion)})
        old = bool(versions) and versions[0] <= LAST_WITH_OLD_PATH
        new = bool(versions) and versions[0] > LAST_WITH_OLD_PATH
        if new:
            yield NOT_LOADED.finding(
                f"NCCL {'.'.join(map(str, versions[0]))} finds neither peermem nor DMA-BUF for "
                f"{hcas or 'its devices'}.",
                POSSIBLE,
                disabled,
            )
        else:
            yield OLD_NCCL.finding(
                f"NCCL switched GPUDirect RDMA off for {hcas or 'its devices'}.", LIKELY if old else POSSIBLE, disabled
            )
        yield Unconfirmed(
            "the loaded modules of the node",
            "lsmod | grep -e nvidia_peermem -e nv_peer_mem",
            NOT_LOADED.name,
            Layer.L1,
            disabled[0].origin.node,
        )
        return
    said_so = list(facts.said("nccl.no_gdr_suffix"))
    if without and len(without) < len(channels):
        hosts = listed(sorted({one.host for one in without if one.host}))
        yield ONE_SIDE.finding(
            f"{len(without)} of {len(channels)} connections over the network lack "
            f"GDRDMA{' on ' + hosts if hosts else ''}.",
            LIKELY,
            without[:3],
        )
    elif said_so or (without and not any(facts.said("nccl.begun"))):
        # A whole log of a run that began says no more than that NCCL chose this way: many machines have no other.
        yield NOT_LOADED.finding(
            "Connections over InfiniBand do not use GPUDirect RDMA.", POSSIBLE, [*without[:3], *said_so]
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


RULE = Rule((NOT_ON_CARD, OLD_NCCL, NOT_LOADED, NOT_REGISTERED, ONE_SIDE, HELPERS), find)
