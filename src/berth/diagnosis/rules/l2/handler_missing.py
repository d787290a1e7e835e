"""L2. A pod names a runtime that the container runtime of its node does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Finding, Fix, Rule, Unconfirmed
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Fact, Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen, PodSeen
from berth.evidence.formats.container_facts import RuntimeConfig

_HANDLERS = ("handler", *(f"handler{number}" for number in range(2, 12)))

_OF_DOCKER = r"unknown runtime specified|invalid runtime name|requested docker runtime"

HANDLER_MISSING = Code(
    name="RuntimeHandlerMissing",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the container runtime does not know the runtime that pods name",
    meaning="Pods of this RuntimeClass get no sandbox on the node. The operator's own pods are among them, so no GPU "
    "is advertised either.",
    known_by="The runtime refuses the sandbox and names the handler; or its configuration in effect lacks the handler "
    "that a RuntimeClass names.",
    disproved_by="`crictl info` of that node lists the handler.",
    counter_check="on NODE: crictl info | grep -o '\"nvidia[a-z-]*\"' : the handler is listed",
    fix=Fix(
        steps=(
            "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE | grep -e toolkit -e driver : "
            "a driver or toolkit pod that is not ready explains it; mend that first",
            "find the file that the runtime reads: `ps -ef | grep -e containerd -e crio` for --config, then "
            "`containerd config dump | grep nvidia`",
            "let the toolkit write there: CONTAINERD_CONFIG and CONTAINERD_SOCKET of the toolkit DaemonSet, or "
            "`nvidia-ctk runtime configure --runtime=containerd --config=PATH`",
            "systemctl restart containerd (crio) on NODE",
        ),
        risk="a restart of the runtime interrupts container starts on the node for seconds",
        rollback="restore the saved configuration and restart the runtime",
    ),
    verify=(
        "on NODE: crictl info | grep nvidia : the handler is there",
        "a pod with runtimeClassName nvidia becomes Running",
    ),
    sources=(
        "containerd, internal/cri/server/podsandbox: runtime handlers",
        "cri-o, internal/oci: runtime handlers",
        "Kubernetes documentation, Runtime Class",
    ),
)

CLASS_MISSING = Code(
    name="RuntimeClassMissing",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.PodsNotMade,
    title="pods name a RuntimeClass that the cluster does not have",
    meaning="The API server refuses such pods; their owner reports FailedCreate and no pod appears.",
    known_by="Admission says that the RuntimeClass is not found.",
    disproved_by="`kubectl get runtimeclass` lists it.",
    counter_check="kubectl get runtimeclass : the named class is listed",
    fix=Fix(
        steps=(
            "kubectl get runtimeclass : see which there are",
            "create it with the handler's name (the GPU Operator makes `nvidia`; a plain device plugin does not), or "
            "take runtimeClassName out of the pod where nvidia is the default runtime",
        ),
        risk="none for what runs",
        rollback="kubectl delete runtimeclass NAME",
    ),
    verify=("kubectl get runtimeclass : listed", "the owner's pods are created"),
    sources=("Kubernetes documentation, Runtime Class", "Kubernetes, plugin/pkg/admission/runtimeclass"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.no_handler")).items():
        handler = first(said, *_HANDLERS) or "nvidia"
        if handler.startswith("nvidia") and all(re.search(_OF_DOCKER, one.origin.text, re.IGNORECASE) for one in said):
            yield _docker_without(facts, handler, said, node)
            continue
        yield HANDLER_MISSING.finding(
            f"The runtime that serves the kubelet has no handler {handler!r}: the toolkit has not finished, it "
            "wrote to "
            f"a file that the runtime does not read, or the runtime was not restarted. "
            f"{sum(one.times for one in said)} refusals were seen.",
            LIKELY,
            said,
            node=node,
        )
        if not facts.looked_at("containerd-config", "crio-config"):
            yield Unconfirmed(
                what=f"the runtime configuration in effect on {node or 'the node'}",
                how="crictl info; containerd config dump",
                wanted_for=HANDLER_MISSING.name,
                layer=Layer.L2,
                node=node,
            )
    for node, said in by_node(facts.said("runtime.class_missing")).items():
        name = first(said, "name")
        yield CLASS_MISSING.finding(f"There is no RuntimeClass {name!r}.", ESTABLISHED, said, node=node)
    yield from _told(facts)
    yield from _by_configuration(facts)


def _docker_without(facts: Facts, handler: str, said: list[Said], node: str) -> Finding:
    """Docker learns of runtimes from daemon.json, which the toolkit writes when it is set up: mostly it never was."""
    names_it = [
        *facts.said("runtime.toolkit_there", "runtime.docker_names_nvidia"),
        *facts.said("runtime.told_not_restarted", "runtime.told_other_daemon"),
        *(one for one in facts.of(RuntimeConfig) if one.engine == "docker" and one.handler(handler)),
    ]
    return HANDLER_MISSING.finding(
        f"The configuration names {handler!r} and this Docker has not read it: it was not restarted, or another Docker "
        "answers (rootless, snap, Docker Desktop)."
        if names_it
        else f"Docker knows no runtime {handler!r}: the toolkit is not set up for this Docker, or not installed.",
        LIKELY,
        [*said, *names_it],
        node=node,
    )


def _told(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.told_no_handler")).items():
        yield HANDLER_MISSING.finding(
            "The runtime's configuration is said to have no NVIDIA handler.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("runtime.told_not_restarted")).items():
        yield HANDLER_MISSING.finding(
            "The runtime was configured and not restarted: it does not know the handler yet.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("runtime.told_no_class")).items():
        yield CLASS_MISSING.finding("The cluster is said to have no such RuntimeClass.", POSSIBLE, said, node=node)


def _by_configuration(facts: Facts) -> Iterator[Answer]:
    """A handler that a RuntimeClass names and that a complete configuration does not have."""
    handlers = {
        one.name: str(one.body.get("handler") or one.name) for one in facts.of(ObjectSeen) if one.kind == "RuntimeClass"
    }
    for config in facts.of(RuntimeConfig):
        if config.engine == "docker" or not (config.is_whole or config.is_in_effect) or not config.handlers:
            continue
        for pod in facts.of(PodSeen):
            handler = handlers.get(pod.runtime_class, pod.runtime_class)
            on_this = pod.on == config.node or not config.node or not pod.on
            if handler and on_this and pod.phase in ("Pending", "") and config.handler(handler) is None:
                evidence: list[Fact] = [config, pod]
                yield HANDLER_MISSING.finding(
                    f"Pod {pod.key} names RuntimeClass {pod.runtime_class}, whose handler {handler!r} is not among "
                    f"those configured: {', '.join(one.name for one in config.handlers)}.",
                    LIKELY,
                    evidence,
                    node=config.node or pod.on,
                )
                break


RULE = Rule((HANDLER_MISSING, CLASS_MISSING), find)
