"""L4. Pods of the operator that cannot start or do not live long, for reasons of their own."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, CauseClass, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ContainerState, PodSeen

IMAGE_FAILS = Code(
    name="OperandImageFails",
    layer=Layer.L4,
    cause_class="image",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="an image of the operator cannot be pulled or used",
    meaning="That component does not start, and what comes after it waits.",
    known_by="ErrImagePull or ImagePullBackOff for an image of the operator; the operator knows no image for a "
    "component; or its program does not go with the image's libraries.",
    disproved_by="The image is there by now (a slow or limited registry).",
    counter_check="kubectl describe pod POD -n NAMESPACE: the last event is Pulled",
    fix=Fix(
        steps=("not found: does that tag exist? a driver image is named <version>-<os><release>: not each OS has one",
               "no access: pull secret in the operator's namespace, imagePullSecrets of each component",
               "air gap: mirror all images and rewrite repository and version of each component in the values",
               "certificate or proxy: configure the runtime on the node",
               "no image named: repository, image and version of that component in the ClusterPolicy, or those of the "
               "operator's own release",
               "GLIBC not found: another tag of that image (ubi8, ubi9, ubuntu) or a newer release"),
        risk="none",
        rollback="the former version",
    ),
    verify=("kubectl get pod -n gpu-operator: no ImagePullBackOff",),
    sources=("GPU Operator documentation: air-gapped installation", "gpu-operator issue 388"),
)  # fmt: skip

OUT_OF_MEMORY = Code(
    name="OperatorOutOfMemory",
    layer=Layer.L4,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator or feature discovery is killed for memory",
    meaning="With many nodes and objects their caches outgrow the chart's limit; nodes are not labelled, components "
    "not deployed.",
    known_by="OOMKilled of gpu-operator, nfd-master or nfd-worker.",
    disproved_by="The node itself ran out of memory and killed others too.",
    counter_check="kubectl describe pod of it: Last State is not OOMKilled; or dmesg on its node: the whole machine "
    "ran out of memory",
    fix=Fix(
        steps=(
            "raise the limit: operator.resources.limits.memory (1Gi and more), node-feature-discovery.master.resources",
        ),
        risk="none",
        rollback="the former limit",
    ),
    verify=("kubectl get pod -n gpu-operator: no restart within a day",),
    sources=("gpu-operator deployments/gpu-operator/values.yaml",),
)

CRASHES = Code(
    name="OperandCrashes",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Error,
    effect=Effect.BlindMonitoring,
    title="a component beside the chain of driver, toolkit and plugin ends again and again",
    meaning="Devices are offered and used all the same; figures, labels or new layouts do not come.",
    known_by="Its pod is in CrashLoopBackOff or Error while driver, toolkit, plugin and validator run.",
    disproved_by="Its last line names another reason.",
    counter_check="kubectl -n gpu-operator logs -p <the pod>: a last line that names a reason of its own",
    fix=Fix(
        steps=(
            "read its last line (logs -p), and give it to the doctor",
            "dcgm-exporter: memory limit, hostengine address, counters that the GPU lacks",
            "mig-manager: configuration and its clients file; gpu-feature-discovery: rights on NodeFeature objects",
        ),
        risk="none by looking",
        rollback="nothing to undo",
    ),
    verify=("kubectl get pod of it: Running, no new restarts in ten minutes",),
    sources=("GPU Operator documentation: components", "dcgm-exporter issue 61"),
)

# Component → class of cause, where nothing but the crash is known.
_BESIDE: dict[str, CauseClass] = {
    "dcgm": "monitoring",
    "mig-manager": "mig-state",
    "gpu-feature-discovery": "node-labels",
}
_ENDS = ("CrashLoopBackOff", "Error", "RunContainerError")
_OF_OPERATOR = ("nvidia-", "gpu-operator", "gpu-feature", "node-feature", "dcgm", "nvdp-")


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("operator.image_fails")).values():
        image = said_of(one.get("image") for one in said)
        yield IMAGE_FAILS.finding(f"{image or 'An image of the operator'} cannot be pulled.", LIKELY, said)
    if not any(facts.of(PodSeen)):
        for said in by_node(facts.said("operator.image_waited_for")).values():
            pods = sorted({one.get("pod") for one in said})
            yield IMAGE_FAILS.finding(f"{', '.join(pods[:3])} waits for its image.", LIKELY, said)
    for said in by_node(facts.said("operator.bundle_fails")).values():
        yield IMAGE_FAILS.finding(
            "The operator's bundle is not unpacked: its image cannot be pulled, or its job does not end.", LIKELY, said
        )
    for said in by_node(facts.said("operator.image_unset")).values():
        yield IMAGE_FAILS.finding(
            "The policy names no image for a component: repository, image or version is missing.", LIKELY, said
        )
    for said in by_node(facts.said("operator.program_unfit")).values():
        program = said_of(one.get("program") for one in said)
        yield IMAGE_FAILS.finding(f"{program} was built for a newer C library than its image has.", LIKELY, said)
    for pod in facts.of(PodSeen):
        if pod.name.startswith(_OF_OPERATOR):
            pulls = [
                one for one in pod.states if one.reason.removeprefix("Init:") in ("ImagePullBackOff", "ErrImagePull")
            ]
            if pulls:
                yield IMAGE_FAILS.finding(f"{pod.name} waits for its image.", LIKELY, [pod], pod=pod.key, node=pod.on)
            if _is_killed(pod) and "dcgm" not in pod.name:
                yield OUT_OF_MEMORY.finding(
                    f"{pod.name} was killed for memory.", LIKELY, [pod], pod=pod.key, node=pod.on
                )
    yield from _beside(facts)
    for one in facts.said("plugin.panic"):
        if "dcgm" in f"{one.origin.kind} {one.origin.source} {one.origin.text}".lower():
            yield CRASHES.finding("The exporter's own code fails.", POSSIBLE, [one])
    for one in facts.said("dcgm.crashes"):
        yield CRASHES.finding("DCGM's library ends the program that loaded it.", POSSIBLE, [one])
    for one in facts.said("operator.oom"):
        who = value(one, "who") or one.get("what")
        if "dcgm" not in who:
            yield OUT_OF_MEMORY.finding(f"{who} was killed for memory.", LIKELY, [one])
    if not any(facts.of(PodSeen)):
        for one in facts.said("operator.beside_crashes"):
            name = next(name for name in _BESIDE if name in one.get("pod"))
            yield CRASHES.finding(
                f"{one.get('pod')} ends again and again; why is not among what was given.",
                WEAK,
                [one],
                cause_class=_BESIDE[name],
            )


def _beside(facts: Facts) -> Iterator[Answer]:
    """Only where the chain itself runs: else it is the cause."""
    pods = [pod for pod in facts.of(PodSeen) if pod.name.startswith(_OF_OPERATOR)]
    ill = {pod.key: pod for pod in pods if any(_ends(state) for state in pod.states)}
    beside = {key: name for key, pod in ill.items() for name in _BESIDE if name in pod.name}
    if ill.keys() - beside.keys():
        return
    for key, name in beside.items():
        pod = ill[key]
        yield CRASHES.finding(
            f"{pod.name} ends again and again; why is not among what was given.",
            WEAK,
            [pod],
            pod=key,
            node=pod.on,
            cause_class=_BESIDE[name],
        )


def _ends(state: ContainerState) -> bool:
    return state.reason.removeprefix("Init:") in _ENDS


def _is_killed(pod: PodSeen) -> bool:
    def is_of(state: ContainerState) -> bool:
        return "OOMKilled" in (state.reason, state.last_reason)

    return any(map(is_of, pod.states))


RULE = Rule((IMAGE_FAILS, OUT_OF_MEMORY, CRASHES), find)
