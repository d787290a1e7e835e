"""L2. The handler is there and says too little: no runtime_type."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import V1_TABLE, RuntimeConfig

TYPE_MISSING = Code(
    name="RuntimeTypeMissing",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="a runtime handler has no runtime_type",
    meaning="containerd knows the handler's name and cannot start anything with it: every pod that uses it, or every "
    "pod at all where it is the default, fails at its sandbox.",
    known_by="containerd asks for container.Runtime.Name; or the handler's table has options and no runtime_type.",
    disproved_by="`containerd config dump` shows runtime_type under the handler, from another file that is merged.",
    counter_check="on NODE: containerd config dump | grep -A3 'runtimes.nvidia]' : runtime_type is set",
    fix=Fix(
        steps=(
            'set runtime_type = "io.containerd.runc.v2" in the handler\'s own table, beside its options table',
            "where a toolkit wrote the file: take a release that writes it for this version of the configuration",
            "systemctl restart containerd on NODE",
        ),
        risk="a restart of containerd interrupts container starts for seconds",
        rollback="restore the saved file and restart containerd",
    ),
    verify=("a pod with runtimeClassName nvidia becomes Running",),
    sources=("containerd, docs/cri/config.md", "NVIDIA/nvidia-container-toolkit, pkg/config/engine/containerd"),
)


def find(facts: Facts) -> Iterator[Answer]:
    said = list(facts.said("runtime.type_missing"))
    for node, of_node in by_node(said).items():
        yield TYPE_MISSING.finding(
            "containerd starts a container of a handler that has no runtime_type.", ESTABLISHED, of_node, node=node
        )
    for config in facts.of(RuntimeConfig):
        if config.engine != "containerd" or V1_TABLE in config.tables or config.is_template:
            continue
        for handler in config.nvidia_handlers:
            if handler.runtime_type or not handler.binary:
                continue
            sure = LIKELY if said or config.is_in_effect or config.is_whole else POSSIBLE
            yield TYPE_MISSING.finding(
                f"Handler {handler.name!r} names {handler.binary} and no runtime_type"
                f"{' in ' + config.path if config.path else ''}.",
                sure,
                [*said, config],
                node=config.node,
            )
            break


RULE = Rule((TYPE_MISSING,), find)
