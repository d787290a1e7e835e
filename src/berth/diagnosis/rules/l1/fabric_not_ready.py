"""L1. GPUs do not get their place in the NVLink fabric, or lose it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l1.fabric_evidence import layer_of, not_ready, states_not_ready
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

_VERIFY = (
    "nvidia-smi -q | grep -A2 Fabric: State Completed, Status Success, on every GPU",
    "a CUDA sample: Test PASSED",
)
IB_MODULES = Code(
    name="FabricInfinibandModulesMissing",
    layer=Layer.L1,
    cause_class="fabric",
    severity=Severity.Critical,
    effect=Effect.FabricDown,
    title="the kernel modules that reach the NVSwitches are not loaded",
    meaning="HGX B200 and B300 manage their switches through the InfiniBand stack. Without mlx5_ib and ib_umad the "
    "driver container takes the machine for an older one and starts Fabric Manager the old way, or waits for ever.",
    known_by="mlx5_ib or ib_umad are missing, or the driver container waits for them.",
    disproved_by="`ls /sys/class/infiniband` lists the switches' devices, and the machine is older than Blackwell.",
    counter_check="on NODE: lsmod | grep -E 'mlx5_ib|ib_umad': both; ls /sys/class/infiniband: the switches' devices",
    fix=Fix(
        steps=(
            "on NODE: apt-get install linux-modules-extra-$(uname -r); modprobe -a mlx5_ib ib_umad",
            "have them loaded at boot: /etc/modules-load.d/nvlink5.conf; put both into the node image",
            "then delete the driver pod, so that it starts Fabric Manager and NVLSM the new way",
        ),
        risk="the GPU pods of the node have to leave for the restart of the driver pod",
        rollback="remove the file and the package",
    ),
    verify=("ls /sys/class/infiniband: the devices of the switches", *_VERIFY),
    sources=("Fabric Manager user guide, NVLink 5 systems", "gpu-driver-container, _ensure_nvlink5_prerequisites"),
)
NOT_READY = Code(
    name="FabricNotReady",
    layer=Layer.L1,
    cause_class="fabric",
    severity=Severity.Critical,
    effect=Effect.FabricDown,
    title="GPUs are not registered with the NVLink fabric",
    meaning="CUDA does not begin on them: 802, system not yet initialized. nvidia-smi looks healthy otherwise. It may "
    "last some seconds after a start; longer, and Fabric Manager is not doing its work.",
    known_by="The fabric state of a device is In Progress or Not Started, or registration is said to be stuck.",
    disproved_by="The state is Completed when it is looked at again after a minute.",
    counter_check="on NODE, a minute later: nvidia-smi -q | grep -A2 Fabric: Completed, Success",
    fix=Fix(
        steps=(
            "see that Fabric Manager runs and has the driver's version; on B200 and newer NVLSM and ib_umad too",
            "restart it: systemctl restart nvidia-fabricmanager (or the driver pod)",
            "still so: reset all GPUs of the machine, or reboot; rack-scale systems: see the switch trays",
        ),
        risk="a reset ends everything on the node",
        rollback="nothing to undo",
    ),
    verify=_VERIFY,
    sources=("NVML, nvmlGpuFabricInfo", "Fabric Manager user guide"),
)
UNHEALTHY = Code(
    name="FabricUnhealthy",
    layer=Layer.L1,
    cause_class="fabric",
    severity=Severity.Error,
    effect=Effect.FabricDown,
    title="a GPU's place in the NVLink fabric is not healthy",
    meaning="The device is registered, but routes are lost, bandwidth is reduced or the configuration is wrong. "
    "Collectives over NVLink are slow or fail.",
    known_by="The fabric status is not Success, or its health says unhealthy, degraded or incorrect.",
    disproved_by="All fields of the health are in order when they are read again.",
    counter_check="on NODE: nvidia-smi -q | grep -A12 Fabric: all in order; nvidia-smi nvlink -s: all links up; dmesg "
    "| grep -E 'Xid|SXid': nothing",
    fix=Fix(
        steps=(
            "keep jobs off the device: kubectl cordon NODE",
            "look for NVLink Xids and SXids and at the links; reset the GPUs, then reseat or replace what stays bad",
            "wrong configuration: same driver and firmware everywhere in the domain, then restart Fabric Manager",
        ),
        risk="a reset ends everything on the node",
        rollback="kubectl uncordon NODE",
    ),
    verify=("nvidia-smi -q | grep -A12 Fabric: Summary Healthy",),
    sources=("NVML, nvmlGpuFabricInfo, health mask",),
)
_BAD_HEALTH = {
    "summary": ("unhealthy", "limited capacity"),
    "bandwidth": ("degraded",),
    "route_unhealthy": ("true", "yes"),
    "access_timeout_recovery": ("true", "yes"),
}
_RIGHT = ("", "none", "n/a", "not supported", "false", "no")


def find(facts: Facts) -> Iterator[Answer]:
    modules = list(facts.said("fabric.ib_modules_missing"))
    states = states_not_ready(facts)
    if modules:
        yield IB_MODULES.finding(
            "mlx5_ib and ib_umad are needed to reach the NVSwitches and are not loaded.",
            ESTABLISHED if states else LIKELY,
            [*modules, *states, *facts.said("cuda.system_not_ready"), *facts.said("fabric.starting")],
        )
    elif not _is_known_why(facts):
        yield from _not_ready(facts)
    yield from _unhealthy(facts)


def _not_ready(facts: Facts) -> Iterator[Answer]:
    states = states_not_ready(facts)
    stuck = [*facts.said("fabric.stuck"), *facts.said("fabric.not_all_trained"), *facts.said("fabric.log_error")]
    starting = list(facts.said("fabric.still_initializing"))
    if not (states or stuck or starting):
        return
    devices = not_ready(facts)
    yield NOT_READY.finding(
        f"{len(devices)} GPUs are not registered with the fabric: {devices[0].fabric_state}."
        if devices
        else "GPUs are not registered with the fabric."
        if states or stuck
        else "Fabric Manager has not finished to set up the fabric.",
        LIKELY if states else POSSIBLE,
        [*states, *stuck, *starting, *facts.said("cuda.system_not_ready")],
        layer=Layer.L1 if states else layer_of(facts),
    )


def _is_known_why(facts: Facts) -> bool:
    names = (
        "fabric.version_mismatch", "fabric.version_mismatch_told", "fabric.unit_failed", "fabric.absent",
        "fabric.wrong_option", "fabric.missing_library", "fabric.socket_missing", "fabric.nothing_to_do",
    )  # fmt: skip
    return any(facts.said(*names))


def _unhealthy(facts: Facts) -> Iterator[Answer]:
    for one in facts.of(DeviceSeen):
        wrong = _wrong(one)
        if wrong:
            yield UNHEALTHY.finding(
                f"GPU {pci_words(one.pci) or one.index}: {', '.join(wrong)}.",
                # A registration that ends with an error may be the switches' fault as well as the software's.
                ESTABLISHED if any(name in wrong[0] for name in one.fabric_health) else LIKELY,
                [
                    one.quote(
                        *(f"fabric_health/{name}" for name in one.fabric_health if name in wrong[0]), "fabric_status"
                    )
                ],
                pci=one.pci,
            )


def _wrong(one: DeviceSeen) -> list[str]:
    health = {name: value.lower() for name, value in one.fabric_health.items()}
    wrong = [f"{name} {value}" for name, value in health.items() if value in _BAD_HEALTH.get(name, ())]
    if health.get("incorrect_configuration", "") not in _RIGHT:
        wrong.append(f"incorrect_configuration {health['incorrect_configuration']}")
    if one.fabric_state.lower() == "completed" and one.fabric_status.lower() not in ("success", *_RIGHT):
        wrong.append(f"status {one.fabric_status}")
    return wrong


RULE = Rule((IB_MODULES, NOT_READY, UNHEALTHY), find)
