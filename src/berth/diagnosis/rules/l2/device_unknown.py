"""L2. The runtime is asked for a device that is not there under this name."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, values
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

DEVICE_UNKNOWN = Code(
    name="DeviceUnknownToRuntime",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the runtime is asked for a GPU that does not exist under this name",
    meaning="The container does not start. The name was right once (a replaced card, MIG instances made anew) or was "
    "never right (an index beyond the last GPU).",
    known_by="nvidia-container-cli reports an unknown device.",
    disproved_by="nvidia-smi -L on the node lists the name.",
    counter_check="on NODE: nvidia-smi -L : the index or UUID is listed",
    fix=Fix(
        steps=(
            "a UUID that is gone: restart the device plugin so that it advertises what is there, then delete the pod",
            "a fixed NVIDIA_VISIBLE_DEVICES in the manifest or image: take it out and ask for the resource",
            "fewer GPUs than before: look at layer 0",
        ),
        risk="none for what runs",
        rollback="nothing to undo",
    ),
    verify=("the pod starts; nvidia-smi -L in it lists its device",),
    sources=("NVIDIA/libnvidia-container, src/cli/common.c",),
)

NOT_RESERVED = Code(
    name="ShareNotReserved",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a GPU share was never reserved for the pod",
    meaning="The sharing plugin found no pod that waits for this share and hands out a name that says so; the runtime "
    "refuses it.",
    known_by="The device's name begins with no-gpu-has-.",
    disproved_by="The pod carries the annotation of the sharing scheduler that names its GPU.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.metadata.annotations}{.spec.schedulerName}' : "
    "the GPU "
    "that was assigned",
    fix=Fix(
        steps=(
            "let the scheduler with the sharing extender place the pod; check that the extender is registered and its "
            "unit of memory is that of the plugin",
            "delete the pod",
        ),
        risk="none for what runs",
        rollback="nothing to undo",
    ),
    verify=("the pod has the annotation and starts",),
    sources=("AliyunContainerService/gpushare-device-plugin, allocation",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.cli_device")).items():
        shares = [one for one in said if one.get("device").startswith("no-gpu-has")]
        others = [one for one in said if one not in shares]
        if shares:
            yield NOT_RESERVED.finding(
                f"The plugin answered {values(shares, 'device')[0]!r} in the place of a device.",
                LIKELY,
                shares,
                node=node,
            )
        if others:
            named = ", ".join(values(others, "device", "device2", "device3"))
            yield DEVICE_UNKNOWN.finding(
                f"The node has no device {named}.",
                POSSIBLE,
                others,
                node=node,
                # Partitions change their names when they are made anew, and with the driver's release.
                cause_class="mig-state" if named.startswith("MIG-") else None,
            )


RULE = Rule((DEVICE_UNKNOWN, NOT_RESERVED), find)
