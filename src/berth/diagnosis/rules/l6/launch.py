"""L6. A start that does not fit: a picture of the machine that NCCL cannot use, processes without a number, libraries
that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed, values
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

TOPOLOGY = Code(
    name="NcclTopologyUnusable",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="NCCL cannot use the picture of the machine that it has",
    meaning="NCCL_TOPO_FILE and NCCL_GRAPH_FILE (also in /etc/nccl.conf or ~/.nccl.conf) replace what it would see. "
    "A graph for another number of GPUs or a file that lacks attributes ends it. Without such files it is an NCCL that "
    "is older than the machine, or a virtual machine that hides its buses.",
    known_by="XML Import Channel … not found, Attribute … of node … not found, or no path between two devices.",
    disproved_by="Neither variable nor configuration file names a file, and a current NCCL says the same.",
    counter_check="env | grep -e NCCL_TOPO -e NCCL_GRAPH; cat /etc/nccl.conf ~/.nccl.conf in the container: no file",
    fix=Fix(
        steps=(
            "unset NCCL_GRAPH_FILE everywhere: it is for experiments only",
            "NCCL_TOPO_FILE: only the one that the cloud ships for this machine type, in its current version",
            "no file is given: a newer NCCL in the image (one that knows this GPU generation)",
        ),
        risk="none",
        rollback="set the variable again",
    ),
    verify=("all_reduce_perf -g N over all GPUs of the pod: Init COMPLETE",),
    sources=("NCCL, src/graph/xml.cc, search.cc, paths.cc", "NCCL issues 379, 1008, 1240 and 1726"),
)
LAUNCH = Code(
    name="LaunchedWithoutRanks",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a distributed program was started without a launcher",
    meaning="Each process must know its number, how many there are and where the first one is. torchrun, mpirun or a "
    "training operator set that; a plain python does not.",
    known_by="RANK, WORLD_SIZE, MASTER_ADDR or LOCAL_RANK is expected and not set.",
    disproved_by="The environment of the process has all of them.",
    counter_check="env | grep -e RANK -e WORLD_SIZE -e MASTER_ in the container: all are set",
    fix=Fix(
        steps=("start it with torchrun --nproc-per-node=N, or with the operator's job kind (PyTorchJob, MPIJob)",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("every process prints another rank",),
    sources=("PyTorch, torch/distributed/rendezvous.py",),
)
VARIABLES = Code(
    name="ServiceVariableTaken",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a variable of a Kubernetes service is taken for a setting of the program",
    meaning="The kubelet gives each pod NAME_PORT=tcp://… for every service of its namespace. A service that is called "
    "like the program (vllm) thereby sets the program's own variable to something that is no number.",
    known_by="The program says that its port appears to be a URI.",
    disproved_by="The pod has no such variable: env | grep _PORT=tcp.",
    counter_check="kubectl get svc -n NAMESPACE: none is called like the program; env | grep _PORT= in the pod",
    fix=Fix(
        steps=("enableServiceLinks: false in the pod's spec, or another name for the service",),
        risk="what reads those variables has to use DNS names",
        rollback="enableServiceLinks: true",
    ),
    verify=("env | grep _PORT=tcp in the pod: nothing", "the program starts"),
    sources=("Kubernetes documentation: accessing a service, environment variables", "vLLM, envs.py"),
)
CAPABILITY = Code(
    name="DriverCapabilityUnasked",
    layer=Layer.L6,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the container did not ask for the driver's graphics or video libraries",
    meaning="The runtime mounts compute and utility libraries unless NVIDIA_DRIVER_CAPABILITIES asks for more: video "
    "for NVENC and NVDEC, graphics and display for EGL, GLX and Vulkan. CUDA works meanwhile.",
    known_by="libnvcuvid, libnvidia-encode, libEGL_nvidia or the like cannot be loaded, or an encoder is refused.",
    disproved_by="The library is in the container, or the host has none: a driver without it was installed.",
    counter_check="echo $NVIDIA_DRIVER_CAPABILITIES in the container: all, or video and graphics; on the host: "
    "ldconfig -p | grep -e nvcuvid -e EGL_nvidia",
    fix=Fix(
        steps=(
            "NVIDIA_DRIVER_CAPABILITIES=all, or compute,utility,video,graphics, in the pod or image",
            "the host has no such library: install the driver with its graphics and video parts (no -server or "
            "headless package)",
        ),
        risk="the pod has to be made anew",
        rollback="take the variable out",
    ),
    verify=("ldconfig -p | grep nvcuvid in the container: there",),
    sources=("NVIDIA Container Toolkit documentation: driver capabilities",),
)


def find(facts: Facts) -> Iterator[Answer]:
    yield from heard(
        facts,
        TOPOLOGY,
        ("nccl.topology_file", "nccl.hint_topology"),
        "A topology or graph file does not fit this machine.",
        LIKELY,
    )
    if not any(facts.said("nccl.topology_file")):
        yield from heard(
            facts,
            TOPOLOGY,
            ("nccl.topology_unknown",),
            "NCCL finds no way between two devices: it is older than the machine, or the machine is hidden from it.",
            POSSIBLE,
            cause_class="image",
        )
    for node, pod, found in by_place(facts.said("image.capability_unasked")):
        cause = f"{listed(values(found, 'library'))} is not in the container: nobody asked for it."
        yield CAPABILITY.finding(cause, LIKELY, found, node=node, pod=pod)
    yield from heard(
        facts, CAPABILITY, ("image.video_refused",), "Encoding or decoding is refused: its library is not there.",
        POSSIBLE,
    )  # fmt: skip
    for node, pod, found in by_place(facts.said("runtime.graphics_missing", "image.graphics_unasked")):
        cause = "What graphics needs of the driver is not in the container."
        yield CAPABILITY.finding(cause, POSSIBLE, found, node=node, pod=pod)
    taken = "A service's variable has the name of the program's own."
    yield from heard(facts, VARIABLES, ("app.port_is_uri",), taken, ESTABLISHED)
    for node, pod, found in by_place(facts.said("dist.launch_incomplete")):
        names = listed(values(found, "name"))
        cause = f"{names} is not set: no launcher started the program."
        yield LAUNCH.finding(cause, ESTABLISHED, found, node=node, pod=pod)


RULE = Rule((TOPOLOGY, LAUNCH, CAPABILITY, VARIABLES), find)
