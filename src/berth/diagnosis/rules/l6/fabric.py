"""L6. NVLink beyond a pair of GPUs fails: multicast in a node (NVLS), memory handles between nodes (MNNVL, IMEX)."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

_IMEX = ("NVIDIA IMEX service guide", "NCCL user guide: NCCL_MNNVL_ENABLE", "dra-driver-nvidia-gpu: ComputeDomain")

NVLS = Code(
    name="NvlsSetupFails",
    layer=Layer.L6,
    cause_class="fabric",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="NCCL cannot set up multicast over NVLink (NVLS)",
    meaning="The devices say that they can, and the switch fabric does not: Fabric Manager is not running or not "
    "done, or IMEX "
    "channels are missing. Tests of single GPUs pass meanwhile.",
    known_by="Binding or making a multicast group fails, mostly with CUDA error 401.",
    disproved_by="Fabric State Completed on all GPUs and the same failure: then memory of the group is used up, or "
    "it is a bug.",
    counter_check="nvidia-smi -q | grep -A3 Fabric: Completed, Success on all GPUs",
    fix=Fix(
        steps=(
            "systemctl status nvidia-fabricmanager: running, in the driver's version; restart it when no program "
            "uses the GPUs",
            "GB200: load the module option for IMEX channels, or give the pod a ComputeDomain channel",
            "NCCL_NVLS_ENABLE=0 as a stopgap: slower",
        ),
        risk="a restart of Fabric Manager ends CUDA programs on the node",
        rollback="unset NCCL_NVLS_ENABLE",
    ),
    verify=("NCCL_DEBUG=INFO: nvls channels above 0, and the job starts",),
    sources=("NCCL, src/transport/nvls.cc", "NVIDIA Fabric Manager user guide"),
)
MNNVL = Code(
    name="NvlinkDomainImportFails",
    layer=Layer.L6,
    cause_class="fabric",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="GPU memory of another node cannot be imported over NVLink",
    meaning="The nodes share NVLink switches, and no IMEX domain connects their operating systems: handles of the "
    "other node mean nothing here.",
    known_by="NCCL fails with CUDA 101 at an import, or says that MNNVL is available but not working.",
    disproved_by="nvidia-imex-ctl -N shows all nodes of the job READY and connected.",
    counter_check="nvidia-imex-ctl -N: domain UP, every node of the job READY",
    fix=Fix(
        steps=(
            "run the job in a ComputeDomain (DRA driver), or start nvidia-imex on all nodes with the same node list",
            "NCCL_MNNVL_ENABLE=0 as a stopgap: traffic goes over the network",
        ),
        risk="a restart of IMEX ends jobs of the domain",
        rollback="unset NCCL_MNNVL_ENABLE",
    ),
    verify=("nvbandwidth multinode: passes", "NCCL_DEBUG=INFO: via P2P/MNNVL between the nodes"),
    sources=_IMEX,
)
CHANNEL = Code(
    name="ImexChannelMissing",
    layer=Layer.L6,
    cause_class="fabric",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="the container has no IMEX channel",
    meaning="Shareable memory of an NVLink domain needs the device file of a channel. Without it the driver answers "
    "that the operation is not permitted.",
    known_by="CUDA error 800, not permitted, where shareable memory is made or imported; or the channel's file is "
    "missing.",
    disproved_by="/dev/nvidia-caps-imex-channels/channel0 is in the container.",
    counter_check="ls /dev/nvidia-caps-imex-channels in the container: channel0",
    fix=Fix(
        steps=(
            "a ComputeDomain channel claim in the pod",
            "without DRA: module option NVreg_CreateImexChannel0=1, and the file in the container",
        ),
        risk="one channel for all jobs of a node does not separate them",
        rollback="take the claim out",
    ),
    verify=("ls /dev/nvidia-caps-imex-channels in the container: channel0", "the multi-node test runs"),
    sources=_IMEX,
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("nccl.nvls_bind", "nccl.multicast_refused")):
        yield NVLS.finding(
            "A multicast group over NVLink cannot be made: the switch fabric is not ready.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(facts.said("nccl.mnnvl")):
        yield MNNVL.finding(
            "Memory of another node cannot be imported: no IMEX domain connects the nodes.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    needs_rights = any(facts.said("nccl.privilege"))  # the report itself says what helps
    for node, pod, found in by_place(facts.said("cuda.not_permitted", "host.imex_channel_absent")):
        if needs_rights and all(said.message == "cuda.not_permitted" for said in found):
            continue
        sure = LIKELY if any(said.message == "host.imex_channel_absent" for said in found) else POSSIBLE
        yield CHANNEL.finding(
            "The container has no channel device of the NVLink domain.", sure, found, node=node, pod=pod
        )


RULE = Rule((NVLS, MNNVL, CHANNEL), find)
