"""L2. The NVIDIA runtime is configured, is not the default, and pods do not name it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen
from berth.evidence.formats.container_facts import RuntimeConfig

# What pods say that have been started by the plain runtime. A sign, not a cause.
SIGNS = (
    "runtime.no_nvml",
    "runtime.plugin_crashes",
    "runtime.crashes",
    "runtime.no_smi",
    "plugin.not_nvml_platform",
    "plugin.asks_for_runtime",
    "plugin.no_devices",
)
# What programs say then, and for other reasons as well.
_OF_PROGRAMS = ("cuda.no_device", "cuda.tool_missing", "cuda.driver_insufficient")

NOT_DEFAULT = Code(
    name="NvidiaRuntimeNotDefault",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="the NVIDIA runtime is neither the default nor named by the pods",
    meaning="Pods are started by plain runc and see neither driver library nor device: the device plugin finds no GPU "
    "and workloads get none. That `ctr run --gpus` or Docker works proves nothing of this path.",
    known_by="The configuration has the handler, default_runtime_name is another, and pods without runtimeClassName "
    "fail for want of the driver library.",
    disproved_by="The pods name runtimeClassName nvidia, or CDI injects the devices.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.runtimeClassName}' : nvidia",
    fix=Fix(
        steps=(
            "name the runtime: runtimeClassName: nvidia for the device plugin (chart value runtimeClassName) and for "
            "GPU pods, with a RuntimeClass whose handler is nvidia",
            "or make it the default: nvidia-ctk runtime configure --runtime=containerd --set-as-default; "
            "systemctl restart containerd on NODE",
        ),
        risk="a restart of containerd interrupts container starts for seconds; as the default every pod passes it",
        rollback="set default_runtime_name back to runc and restart",
    ),
    verify=(
        "kubectl logs of the plugin: Registered device plugin for 'nvidia.com/gpu'",
        "kubectl get node NODE -o jsonpath='{.status.allocatable}' : nvidia.com/gpu is there",
    ),
    sources=("NVIDIA/k8s-device-plugin, README: configure containerd", "containerd, docs/cri/config.md"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.told_needs_default")).items():
        yield NOT_DEFAULT.finding(
            "GPUs are there only where NVIDIA's runtime is the default.", POSSIBLE, said, node=node
        )
    signs = list(facts.said(*SIGNS))
    of_programs = [said for said in facts.said(*_OF_PROGRAMS) if not said.get("found")]
    if not signs and not of_programs:
        return
    plain = list(facts.said("runtime.default_plain"))
    if plain and signs and not any(True for _ in facts.of(RuntimeConfig)):
        other = next((one.get("default") for one in plain), "") or "another runtime"
        yield NOT_DEFAULT.finding(f"The default is {other}, and pods do not name another.", POSSIBLE, [*plain, *signs])
    named = [pod for pod in facts.of(PodSeen) if "nvidia" in pod.runtime_class]
    for config in facts.of(RuntimeConfig):
        default = config.handler(config.default_handler)
        if not config.nvidia_handlers or "nvidia" in config.default_handler or (default and default.is_nvidia) or named:
            continue
        seen = signs or ([] if config.enable_cdi else of_programs)
        here = [one for one in seen if not one.node or not config.node or one.node == config.node]
        if here:
            yield NOT_DEFAULT.finding(
                f"Handler {config.nvidia_handlers[0].name!r} is configured, the default is "
                f"{config.default_handler or 'not set to it'}, and no pod was seen to name it.",
                LIKELY if signs and (config.default_handler or config.is_whole) else POSSIBLE,
                [config, *here],
                node=config.node,
            )


RULE = Rule((NOT_DEFAULT,), find)
