"""L4. The operator's chain driver, toolkit, CUDA, plugin: the first part that is not ready holds up the others."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import POSSIBLE, WEAK, CauseClass, Effect, Layer, Severity
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen, PodSeen
from berth.evidence.formats.validations import ValidationFiles

_SOURCES = ("gpu-operator validator/main.go", "GPU Operator documentation: troubleshooting")


def _stopped(
    name: str, layer: Layer, cause_class: CauseClass, effect: Effect, part: str, look: tuple[str, ...], proof: str
) -> Code:
    return Code(
        name=name,
        layer=layer,
        cause_class=cause_class,
        severity=Severity.Error,
        effect=effect,
        title=f"the operator's chain stops at {part}",
        meaning=f"Everything after {part} waits in its init containers; the node offers no GPUs until it is mended.",
        known_by="The validator's file for it is missing while those before it are there; its pod is not ready; or the "
        "next ones say that they wait for it.",
        disproved_by="Its file is there now, or its pod became ready after the waiting was seen.",
        counter_check=f"on NODE: ls /run/nvidia/validations: {proof}",
        fix=Fix(steps=look, risk="none by looking", rollback="nothing to undo"),
        verify=(f"ls /run/nvidia/validations on NODE: {proof}", "kubectl get clusterpolicy: ready"),
        sources=_SOURCES,
    )


AT_DRIVER = Code(
    name="DriverPodFails",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.OperandsHeldBack,
    title="the driver does not come up: its pod or its validation fails",
    meaning="All other components of the operator on this node wait for the driver.",
    known_by="The pod of nvidia-driver-daemonset is in CrashLoopBackOff, Error, or cannot pull its image; the "
    "validator's driver-ready is missing, or the components after it say that they wait for the driver.",
    disproved_by="The pod is Running and its log ends with `now waiting for signal`; driver-ready is there.",
    counter_check="kubectl logs -n gpu-operator -l app=nvidia-driver-daemonset --all-containers --tail=50: ends with "
    "`now waiting for signal`; on NODE: ls /run/nvidia/validations: driver-ready",
    fix=Fix(
        steps=(
            "read the log of the container that fails: k8s-driver-manager unloads the old driver, nvidia-driver-ctr "
            "builds and loads the new one; download, build, signing, in use",
            "mend what it names, then delete the pod",
            "a driver on the host: driver.enabled=false, and nvidia-smi must work on NODE",
        ),
        risk="none for what runs",
        rollback="nothing to undo",
    ),
    verify=(
        "kubectl get pods -n gpu-operator -l app=nvidia-driver-daemonset: Running",
        "ls /run/nvidia/validations on NODE: driver-ready",
    ),
    sources=("GPU Operator, driver DaemonSet", "gpu-driver-container", *_SOURCES),
)
AT_TOOLKIT = _stopped(
    "ValidationStopsAtToolkit", Layer.L2, "runtime-config", Effect.RuntimeAbsent, "the container toolkit",
    ("kubectl -n gpu-operator logs ds/nvidia-container-toolkit-daemonset, and its events",
     "is the runtime's configuration the one that this containerd or CRI-O reads (K3s, RKE2, k0s, MicroK8s have their "
     "own)?",
     "kubectl -n gpu-operator logs <nvidia-operator-validator pod> -c toolkit-validation"),
    "toolkit-ready",
)  # fmt: skip
AT_CUDA = _stopped(
    "ValidationStopsAtCuda", Layer.L2, "runtime-config", Effect.DevicesNotInjected, "the CUDA test",
    ("kubectl -n gpu-operator logs <nvidia-cuda-validator pod> -c cuda-validation: the CUDA error",
     "802: Fabric Manager; no device: runtime class or MIG without partitions"),
    "cuda-ready",
)  # fmt: skip
AT_PLUGIN = _stopped(
    "ValidationStopsAtPlugin", Layer.L3, "plugin-config", Effect.PluginDown, "the device plugin",
    ("kubectl -n gpu-operator logs ds/nvidia-device-plugin-daemonset --all-containers --tail=50",
     "its test pod needs a free GPU: kubectl describe node NODE, Allocated resources"),
    "plugin-ready",
)  # fmt: skip

AT_MOFED = _stopped(
    "ValidationWaitsForMofed",
    Layer.L1,
    "driver-build",
    Effect.DriverAbsent,
    "the network driver (MOFED)",
    (
        "kubectl -n network-operator logs ds/mofed: build, unload of inbox modules, kernel headers",
        "no network operator here: driver.rdma.enabled=false, or driver.rdma.useHostMofed=true with it on the host",
    ),
    "mofed-ready",
)

NOT_READY = Code(
    name="ClusterPolicyNotReady",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator's policy is not ready",
    meaning="Some component that the policy wants does not run on some node.",
    known_by="ClusterPolicy status notReady, or the operator lists states that are not ready.",
    disproved_by="It is ready by now.",
    counter_check="kubectl get clusterpolicy: ready",
    fix=Fix(
        steps=(
            "kubectl get pod -n gpu-operator -o wide: the first that is not Running, in the order driver, toolkit, "
            "validator, plugin",
            "kubectl logs and describe of that pod",
        ),
        risk="none by looking",
        rollback="nothing to undo",
    ),
    verify=("kubectl get clusterpolicy: ready",),
    sources=_SOURCES,
)


class _Part(Struct, frozen=True):
    """A part of the chain, in its order."""

    code: Code
    file: str  # that the validator leaves
    pods: tuple[str, ...]  # names begin so
    states: tuple[str, ...]  # as the operator names it


_CHAIN = (
    _Part(AT_DRIVER, "driver-ready", ("nvidia-driver-daemonset", "nvidia-gpu-driver"), ("state-driver",)),
    _Part(AT_TOOLKIT, "toolkit-ready", ("nvidia-container-toolkit",), ("state-container-toolkit",)),
    _Part(AT_CUDA, "cuda-ready", ("nvidia-cuda-validator",), ()),
    _Part(AT_PLUGIN, "plugin-ready", ("nvidia-device-plugin-daemonset",), ("state-device-plugin",)),
)
_WAITS = {"operator.waits_for_toolkit": AT_TOOLKIT, "operator.toolkit_invalid": AT_TOOLKIT,
          "operator.waits_for_driver": AT_DRIVER, "operator.driver_invalid": AT_DRIVER,
          "operator.cuda_invalid": AT_CUDA, "operator.waits_for_plugin": AT_PLUGIN,
          "operator.plugin_invalid": AT_PLUGIN, "driver.pod_fails": AT_DRIVER}  # fmt: skip
# What the command of a check that is repeated asks for. The toolkit's is nvidia-smi alone.
_CHECKS = {"/run/nvidia/driver": AT_DRIVER, ".driver-ctr-ready": AT_DRIVER, "nvidia_fs": AT_DRIVER,
           "gdrdrv": AT_DRIVER, "nvidia_peermem": AT_DRIVER, "nvidia-smi with args []": AT_TOOLKIT}  # fmt: skip
_PARTS = {"driver": AT_DRIVER, "toolkit": AT_TOOLKIT, "cuda": AT_CUDA, "plugin": AT_PLUGIN}
_RUNTIMES_OWN = ("OCI runtime create failed", "failed to create containerd task", "nvidia-container-cli")
_ILL = ("CrashLoopBackOff", "Error", "Init:CrashLoopBackOff", "Init:Error", "RunContainerError", "CreateContainerError")
_NO_IMAGE = ("ImagePullBackOff", "ErrImagePull", "Init:ImagePullBackOff", "Init:ErrImagePull")  # says all


def find(facts: Facts) -> Iterator[Answer]:
    stops = [*_by_files(facts), *_by_pods(facts), *_by_words(facts)]
    seen: set[tuple[str, str]] = set()
    for code, why, evidence, node in stops:
        first = next(
            (
                part.code.name
                for part in _CHAIN
                if any(stop[0] is part.code and stop[3] in ("", node) for stop in stops)
            ),
            "",
        )
        if code.name == first and (code.name, node) not in seen:
            seen.add((code.name, node))
            # 802 is no affair of the runtime: NVLink's fabric is not ready.
            # Without the plugin that the policy leaves out there is nothing that could be validated.
            is_off = code is AT_PLUGIN and next(facts.said("operator.plugin_off"), None) is not None
            of_fabric = code is AT_CUDA and next(facts.said("cuda.system_not_ready"), None) is not None
            yield code.finding(
                why,
                POSSIBLE,
                evidence,
                node=node,
                layer=Layer.L1 if of_fabric else None,
                cause_class="fabric" if of_fabric else "plugin-config" if is_off else None,
            )
    mofed = [
        one
        for one in facts.said("operator.check_repeated")
        if "mlx5_core" in one.origin.text or "/run/mellanox/drivers" in one.origin.text
    ]
    for said in by_node([*facts.said("operator.waits_for_mofed"), *mofed]).values():
        yield AT_MOFED.finding("The GPU driver waits for the network driver.", POSSIBLE, said)
    yield from _policy(facts, bool(stops))


_Stop = tuple[Code, str, list[Fact], str]  # where, why, evidence, node


def _by_files(facts: Facts) -> Iterator[_Stop]:
    for files in facts.of(ValidationFiles):
        passed = {name.lstrip(".") for name in files.names}
        missing = next((part for part in _CHAIN if part.file not in passed), None)
        # A driver on the host leaves another file than one in a container.
        if missing and missing.file == "driver-ready" and "driver-ctr-ready" in passed:
            missing = next((part for part in _CHAIN[1:] if part.file not in passed), None)
        if missing:
            yield (
                missing.code,
                f"{missing.file} is missing; there are {', '.join(sorted(passed)) or 'none'}.",
                [files],
                files.node,
            )


def _by_pods(facts: Facts) -> Iterator[_Stop]:
    """The first part whose pod is ill, where others of the operator wait in their init containers."""
    by_place: dict[str, list[PodSeen]] = {}
    for pod in facts.of(PodSeen):
        by_place.setdefault(pod.on, []).append(pod)
    for node, pods in by_place.items():
        waiting = [pod for pod in pods if _waits(pod) and pod.name.startswith(("nvidia-", "gpu-feature"))]
        for part in _CHAIN:
            mine = [pod for pod in pods if pod.name.startswith(part.pods)]
            ill = [pod for pod in mine if any(state.reason in _ILL for state in pod.states)]
            if any(state.reason in _NO_IMAGE for pod in mine for state in pod.states):
                break
            if ill and part.code is not AT_PLUGIN:
                yield part.code, f"{ill[0].name} is not ready ({_reason(ill[0])}).", [*ill, *waiting], node
                break
        else:
            toolkit_runs = any(
                pod.name.startswith("nvidia-container-toolkit") and pod.phase == "Running" for pod in pods
            )
            stuck = [
                pod
                for pod in waiting
                if pod.name.startswith(("nvidia-device-plugin-daemonset", "nvidia-operator-validator"))
            ]
            if (
                stuck
                and toolkit_runs
                and not any(pod.name.startswith("nvidia-container-toolkit") and _waits(pod) for pod in pods)
            ):
                yield (
                    AT_TOOLKIT,
                    f"{stuck[0].name} waits in its init containers, the toolkit's pod runs.",
                    list(stuck),
                    node,
                )


def _waits(pod: PodSeen) -> bool:
    reasons = [state.reason for state in pod.states if state.reason not in _NO_IMAGE]
    return any(reason.startswith("Init:") or reason == "PodInitializing" for reason in reasons)


def _reason(pod: PodSeen) -> str:
    return next((state.reason for state in pod.states if state.reason), pod.phase)


def _by_words(facts: Facts) -> Iterator[_Stop]:
    # A toolkit too old for the driver: the validator names the driver, and the driver is well.
    elsewhere = {(one.origin.source, one.origin.line) for one in facts.said("toolkit.major_unknown")}
    # What tells more: no image, or no memory.
    never_began = any("driver" in one.get("image") for one in facts.said("operator.image_fails"))
    # What the driver manager itself says of modules that are in use is the answer.
    never_began = never_began or (
        any(facts.said("driver.already_loaded")) and not any(facts.said("driver.uninstalled", "driver.built"))
    )
    never_began = never_began or any("driver" in one.get("who") for one in facts.said("operator.oom"))
    for message, code in _WAITS.items():
        if message == "driver.pod_fails" and never_began:
            continue
        told = [
            one
            for one in facts.said(message)
            if (one.origin.source, one.origin.line) not in elsewhere
            and not any(state in one.origin.text for state in _NO_IMAGE)
            and not any(words in one.origin.text for words in _RUNTIMES_OWN)
        ]
        why = (
            "The pod that brings the driver fails again and again."
            if message == "driver.pod_fails"
            else "A later part says that it waits for it, or that it is not valid."
        )
        for node, said in by_node(told).items():
            yield code, why, list(said), node
    for one in facts.said("operator.check_repeated"):
        for words, code in _CHECKS.items():
            if words in one.origin.text:
                yield code, "The validator repeats its check, which fails.", [one], one.node
                break
    for one in facts.said("operator.validation_restarts"):
        if not any(words in one.origin.text for words in _RUNTIMES_OWN):
            part = value(one, "part")
            yield _PARTS[part.lower()], f"The validator's container {part}-validation fails.", [one], one.node


_SEEN = 0.5  # that something is not ready is sure, and no cause: whatever names one goes before it
_REASONS = (
    "operator.api_absent", "operator.group_absent", "operator.crd_old", "operator.rights_missing",
    "operator.nfd_absent", "operator.image_fails", "admission.privileged",
)  # fmt: skip


def _policy(facts: Facts, is_told: bool) -> Iterator[Answer]:
    """By itself a hint: which component is not ready says more, and why it is not says all."""
    if next(facts.said(*_REASONS), None) is not None:
        return
    evidence: list[Fact] = list(facts.said("operator.not_ready", "operator.policy_state"))
    for one in facts.of(ObjectSeen):
        status = one.body.get("status") if one.kind == "ClusterPolicy" else None
        if isinstance(status, dict) and status.get("state") == "notReady":
            evidence.append(one)
    if evidence:
        yield NOT_READY.finding(_states(facts) or "The policy is not ready.", WEAK if is_told else _SEEN, evidence)


def _states(facts: Facts) -> str:
    names = next((one.get("states") for one in facts.said("operator.not_ready") if one.get("states")), "")
    return f"Not ready: {names.strip()}." if names else ""


RULE = Rule((AT_DRIVER, AT_TOOLKIT, AT_CUDA, AT_PLUGIN, AT_MOFED, NOT_READY), find)
