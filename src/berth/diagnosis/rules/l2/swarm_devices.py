"""L2. Docker Swarm counts GPUs by itself, and the NVIDIA runtime does not hear of it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NOT_PASSED_ON = Code(
    name="SwarmResourcesNotPassedOn",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="the GPUs that Swarm gives to a service are not those that its containers get",
    meaning="Swarm sets a variable with the chosen GPU, and the NVIDIA runtime reads another one: every replica sees "
    "all GPUs, or none.",
    known_by="Generic resources are configured, and containers do not see the GPU that they were given.",
    disproved_by="The container has the variable that swarm-resource names, and nvidia-smi -L shows that GPU alone.",
    counter_check="docker exec CONTAINER env | grep DOCKER_RESOURCE ; grep swarm-resource "
    "/etc/nvidia-container-runtime/config.toml : the same name",
    fix=Fix(
        steps=(
            'swarm-resource = "DOCKER_RESOURCE_<KIND>" in /etc/nvidia-container-runtime/config.toml, with the kind as '
            "node-generic-resources in daemon.json spells it, in capitals; default-runtime nvidia",
            "full UUIDs of nvidia-smi -L in node-generic-resources; no NVIDIA_VISIBLE_DEVICES in the image",
            "a toolkit in the mode legacy: in the mode cdi the setting has no effect",
            "systemctl restart docker",
        ),
        risk="a restart of Docker stops containers without live-restore",
        rollback="restore both files",
    ),
    verify=("nvidia-smi -L in each replica : one GPU, another in each",),
    sources=("NVIDIA/nvidia-container-toolkit, swarm-resource", "Docker documentation, generic resources"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.swarm_unmet")).items():
        yield NOT_PASSED_ON.finding("What Swarm counts is not what the containers get.", POSSIBLE, said, node=node)


RULE = Rule((NOT_PASSED_ON,), find)
