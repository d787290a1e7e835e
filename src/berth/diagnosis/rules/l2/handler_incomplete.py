"""L2. The handler is there and says too little, or two things at once."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
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


NOT_NVIDIAS = Code(
    name="NvidiaHandlerRunsAnotherProgram",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="the handler named nvidia runs another program",
    meaning="Pods of the NVIDIA runtime class are started by plain runc: they run, and see neither driver nor device.",
    known_by="The options of the handler name a program that is not NVIDIA's, alone or under a second spelling of the "
    "same key (BinaryName and binaryName).",
    disproved_by="nvidia-smi works in a pod of that class.",
    counter_check="on NODE: containerd config dump | grep -i -A12 'runtimes.nvidia.options' : one BinaryName, NVIDIA's",
    fix=Fix(
        steps=(
            "take the lines of runc (binaryName, systemdCgroup in small letters, as Kubespray writes them) out of the "
            "handler's options: the toolkit copied them from runc's",
            "or let the first configuration use BinaryName and SystemdCgroup, then delete the toolkit's pod so that it "
            "writes again",
            "systemctl restart containerd on NODE",
        ),
        risk="a restart of containerd interrupts container starts for seconds",
        rollback="restore the saved file and restart containerd",
    ),
    verify=("nvidia-smi -L in a pod with runtimeClassName nvidia lists the GPUs",),
    sources=("NVIDIA/gpu-operator report 1374", "containerd, options of io.containerd.runc.v2"),
)

TYPE_GONE = Code(
    name="RuntimeShimMissing",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="a handler's runtime_type is one that this containerd does not have",
    meaning="containerd 2 has no io.containerd.runtime.v1.linux and no io.containerd.runc.v1 any more: pods of a "
    "handler that still names them do not start.",
    known_by="containerd looks for the shim of that type and does not find it.",
    disproved_by="The shim's program lies in containerd's path.",
    counter_check="on NODE: containerd config dump | grep runtime_type : io.containerd.runc.v2 throughout",
    fix=Fix(
        steps=(
            'set runtime_type = "io.containerd.runc.v2" in each handler\'s table; options then take BinaryName',
            "another type (kata, runsc): install its shim where containerd looks for programs",
            "systemctl restart containerd on NODE",
        ),
        risk="a restart of containerd interrupts container starts for seconds",
        rollback="restore the saved file and restart containerd",
    ),
    verify=("a pod with runtimeClassName nvidia becomes Running",),
    sources=("containerd, RELEASES.md: deprecated features", "containerd, runtime/v2 shim manager"),
)


def find(facts: Facts) -> Iterator[Answer]:
    said = list(facts.said("runtime.type_missing"))
    for node, of_node in by_node(said).items():
        yield TYPE_MISSING.finding(
            "containerd starts a container of a handler that has no runtime_type.", ESTABLISHED, of_node, node=node
        )
    for node, of_node in by_node(facts.said("runtime.shim_missing")).items():
        kind = first(of_node, "type", "type2")
        yield TYPE_GONE.finding(f"No shim for {kind} is installed.", ESTABLISHED, of_node, node=node)
    for config in facts.of(RuntimeConfig):
        if config.engine != "containerd" or config.is_template:
            continue
        for handler in config.nvidia_handlers:
            if handler.runtime_type or not handler.binary or not config.tables or V1_TABLE in config.tables:
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
        for handler in config.handlers:
            programs = [one for one in (handler.binary, handler.shadow) if one.rpartition("/")[2] in ("runc", "crun")]
            if handler.name.startswith("nvidia") and programs:
                also = f" and {handler.binary}" if handler.shadow else ""
                yield NOT_NVIDIAS.finding(
                    f"Handler {handler.name!r} names {programs[0]}{also}.",
                    LIKELY,
                    [config],
                    node=config.node,
                )
                break


RULE = Rule((TYPE_MISSING, NOT_NVIDIAS, TYPE_GONE), find)
