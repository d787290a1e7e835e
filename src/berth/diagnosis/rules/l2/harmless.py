"""L2. Warnings of the toolkit and the container runtime that stop nothing."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, Effect, Layer
from berth.evidence.facts import Facts

OPTIONAL = trap(
    "CdiOptionalFileAbsent",
    Layer.L2,
    Effect.BlindMonitoring,
    "the toolkit names files that this machine does not have",
    meaning="It looks for everything that a driver may bring (X server, sockets of daemons, MPS, sandbox library) and "
    "warns of each that is not there. The specification has all the others.",
    known_by="Warnings that a file was not located, about others than libcuda and libnvidia-ml, and no error.",
    disproved_by="The command ends with an error, or the specification names no device.",
    counter_check="nvidia-ctk cdi list: a device for each GPU, and all",
    sources=("nvidia-container-toolkit, internal/lookup and issue 972",),
)
STARTUP = trap(
    "RuntimeStartupNoise",
    Layer.L2,
    Effect.BlindMonitoring,
    "lines of containerd's start that go away by themselves",
    meaning="It looks for a network plugin before one is installed, and for snapshotters of file systems that are not "
    "used. Later it loads the network by itself.",
    known_by="These lines at the start of containerd.",
    disproved_by="The node stays NotReady with NetworkPluginNotReady.",
    counter_check="kubectl get node NODE: Ready",
    sources=("containerd, CRI plugin and snapshotters",),
)
NOTES = trap(
    "ToolkitNotes",
    Layer.L2,
    Effect.BlindMonitoring,
    "the toolkit names settings and parts that do not apply here",
    meaning="It leaves out options that another engine has, tools and 32-bit libraries that are not installed, and the "
    "loading of modules where it has not the rights for it; the runtime hands on calls that start no container; "
    "the engine cannot read the runtime's version. All go on.",
    known_by="These warnings alone, and no error after them.",
    disproved_by="The command ends with an error, or libcuda or libnvidia-ml itself is missed.",
    counter_check="docker run --rm --gpus all ubuntu nvidia-smi: a table",
    sources=(
        "nvidia-container-toolkit, cmd/nvidia-ctk; libnvidia-container, src/nvc_info.c",
        "moby, daemon/info_unix.go",
    ),
)
PRIVILEGED = trap(
    "PrivilegedSeesAllGpus",
    Layer.L2,
    Effect.DevicesNotInjected,
    "a privileged container sees all GPUs of the node",
    meaning="Privileged means all devices of the machine, whatever was asked for; nothing can hide them. The "
    "account of the kubelet is right all the same.",
    known_by="A privileged container that sees more devices than it asked for.",
    disproved_by="The container is not privileged: then look at NVIDIA_VISIBLE_DEVICES in its image.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{..privileged}': true",
    sources=("Kubernetes documentation: privileged containers", "kubernetes issue 81256"),
    steps=("take privileged out where isolation is wanted; give the capabilities that are needed one by one",),
)
SANDBOX = trap(
    "SandboxMadeAfterWaiting",
    Layer.L2,
    Effect.PodsWait,
    "the pod's sandbox could not be made, and then was: its old event is still there",
    meaning="While the toolkit installs itself the runtime does not know the handler yet, and pods that name it are "
    "refused and tried again. A container starts in a sandbox only: where one has started the wait is over.",
    known_by="FailedCreatePodSandBox for the handler, and after it the start of a container of the same pod.",
    disproved_by="The pod is not Running now, or the refusals go on.",
    counter_check="kubectl get pod POD -n NAMESPACE: Running or Completed",
    sources=("Kubernetes, kubelet events", "gpu-operator: order of the operands"),
    instead_of=("RuntimeHandlerMissing",),
)


def find(facts: Facts) -> Iterator[Answer]:
    yield from noted(facts, OPTIONAL, ("harmless.cdi_optional_file",), "What is not there is left out.")
    yield from noted(
        facts,
        STARTUP,
        ("harmless.runtime_startup", "harmless.snapshotter_absent"),
        "Lines of this kind come at every start.",
    )
    yield from noted(facts, NOTES, ("harmless.toolkit_notes",), "What does not apply here is left out.")
    yield from noted(facts, PRIVILEGED, ("harmless.privileged_sees_all",), "The container is privileged.")
    yield from _over(facts)


def _over(facts: Facts) -> Iterator[Answer]:
    """In the events of one pod; a list of many names the object of each."""
    refused, started = list(facts.said("runtime.no_handler")), list(facts.said("harmless.container_started"))
    if not refused or not started:
        return
    last = max(said.origin.line for said in started)
    source = started[0].origin.source
    if all(
        one.origin.source == source
        and one.origin.line < last
        and "FailedCreatePodSandBox" in one.origin.text
        and "pod/" not in one.origin.text
        for one in refused
    ):
        yield SANDBOX.finding("A container of the pod started after that.", LIKELY, [*refused[:2], *started[:2]])


RULE = Rule((OPTIONAL, STARTUP, NOTES, PRIVILEGED, SANDBOX), find)
