"""L2. Devices are asked for in words that the engine cannot take, or by a way that it has no more."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

MALFORMED = Code(
    name="DeviceRequestMalformed",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the engine does not understand which GPUs are asked for",
    meaning="The container is not made. Several devices have to reach Docker in one pair of quotes of their own.",
    known_by="Docker says that count and device IDs were both set, or that the argument of --gpus is invalid.",
    disproved_by="The same request works with another image: then it is not the request.",
    counter_check="docker run --rm --gpus '\"device=0,1\"' ubuntu nvidia-smi -L : starts",
    fix=Fix(
        steps=(
            "docker run --gpus '\"device=0,1\"' (the inner quotes belong to the value)",
            "compose: either count or device_ids under reservations.devices, and capabilities: [gpu]",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("nvidia-smi -L in the container lists the devices that were asked for",),
    sources=("Docker documentation, --gpus", "Compose specification: devices"),
)

DRIVER_VOLUME = Code(
    name="DriverVolumeFails",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the driver volume of nvidia-docker 1 cannot be made or found",
    meaning="nvidia-docker 1 hands the driver over as a volume that its own daemon makes. It is long out of support; "
    "where the daemon is not running or the volume is of another driver, no GPU container starts.",
    known_by="Docker names the volume nvidia_driver_... or the volume plugin nvidia-docker.",
    disproved_by="systemctl status nvidia-docker is active and docker volume ls lists the volume of this driver.",
    counter_check="systemctl status nvidia-docker; docker volume ls | grep nvidia_driver : active, of this driver",
    fix=Fix(
        steps=(
            "replace it: remove nvidia-docker 1 and its volumes, install nvidia-container-toolkit, use --gpus",
            "until then: systemctl restart nvidia-docker; the volume's directory on the file system of the driver",
        ),
        risk="containers of the old volume have to be made again",
        rollback="the former package",
    ),
    verify=("docker run --rm --gpus all ubuntu nvidia-smi -L : lists the GPUs",),
    sources=("NVIDIA/nvidia-docker, wiki of version 1",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.request_malformed")).items():
        yield MALFORMED.finding("The request cannot be put together.", ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("runtime.driver_volume")).items():
        why = first(said, "why", "why2", "why3", "why4")
        yield DRIVER_VOLUME.finding(
            f"The volume: {why}." if why else "The volume fails.",
            LIKELY,
            said,
            node=node,
            # A container is bound to the volume of the driver with which it was made.
            cause_class="version-mismatch" if first(said, "why4") else None,
        )


RULE = Rule((MALFORMED, DRIVER_VOLUME), find)
