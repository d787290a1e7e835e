"""L2. The toolkit looks for the driver in another root than the one that it is installed in."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import ToolkitConfig

CONTAINER_ROOT = "/run/nvidia/driver"

_FIX = Fix(
    steps=(
        f"see where the driver is: ls {CONTAINER_ROOT}/usr/bin/nvidia-smi (driver container) or which nvidia-smi "
        "(host)",
        "driver on the host: driver.enabled=false in the ClusterPolicy, so that the root becomes /; a driver that "
        "appears on the host later is noticed only after the validator's and toolkit's pods are deleted",
        "driver in a container: its pod must be Ready and mount /run/nvidia shared",
        'look at the result: root = "/" or "/run/nvidia/driver" in the toolkit\'s config.toml, then delete the '
        "toolkit pod",
    ),
    risk="the toolkit restarts the container runtime: container starts pause for seconds",
    rollback="set driver.enabled back",
)

ROOT_EMPTY = Code(
    name="DriverRootEmpty",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the driver's root that the toolkit was given is empty",
    meaning="GPU containers do not start: libraries and device files are looked for where no driver is, although the "
    "host may have one that works.",
    known_by=f"A file under {CONTAINER_ROOT} is not found, or the root cannot be entered.",
    disproved_by=f"ls {CONTAINER_ROOT}/dev/nvidiactl on the node shows the file: the driver container was only late.",
    counter_check=f"on NODE: ls {CONTAINER_ROOT}/dev/nvidiactl : there by now",
    fix=_FIX,
    verify=(
        "on NODE: nvidia-container-cli --root=ROOT info : driver version and devices",
        "the validator is Completed",
    ),
    sources=("GPU Operator, validator and toolkit: driver root", "NVIDIA/libnvidia-container, src/nvc.c"),
)

LIBRARY_MISSING = Code(
    name="DriverLibraryNotFound",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the container runtime does not find the driver's library",
    meaning="Every GPU container of the node fails at its start.",
    known_by="nvidia-container-cli cannot load libnvidia-ml.so.1 from the root and cache that it was given.",
    disproved_by="`nvidia-container-cli info` on the node lists the driver.",
    counter_check="on NODE: ldconfig -p | grep libnvidia-ml ; grep root /etc/nvidia-container-runtime/config.toml : "
    "library in the cache, root / for a host driver",
    fix=Fix(
        steps=(
            "nvidia-smi on NODE: where it fails too, the driver is what is missing (layer 1)",
            *_FIX.steps[1:],
            "driver in an unusual place: ldconfig after adding its directory to /etc/ld.so.conf.d",
            "Docker Desktop, snap, rootless: that daemon runs in another system than the driver; use the native daemon",
        ),
        risk=_FIX.risk,
        rollback=_FIX.rollback,
    ),
    verify=("on NODE: nvidia-container-cli info : driver version and devices", "a GPU pod starts"),
    sources=("NVIDIA/libnvidia-container, src/driver.c", "NVIDIA/gpu-operator, driver root"),
)


def find(facts: Facts) -> Iterator[Answer]:
    roots = [one for one in facts.of(ToolkitConfig) if one.driver_root not in ("", "/")]
    # A capability file of MIG that is gone under a root that is there is another matter (cdi_faults.py).
    empty = [one for one in facts.said("toolkit.driver_root_empty") if "nvidia-cap" not in one.get("path")]
    for node, said in by_node((*empty, *facts.said("runtime.cli_root"))).items():
        path = first(said, "path") or CONTAINER_ROOT
        yield ROOT_EMPTY.finding(f"{path} is not there.", ESTABLISHED, [*said, *roots], node=node)
    for node, said in by_node(facts.said("toolkit.root_unfit")).items():
        yield ROOT_EMPTY.finding(f"The root is {CONTAINER_ROOT}, and the driver is elsewhere.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.driver_half_found")).items():
        yield LIBRARY_MISSING.finding(
            f"nvidia-smi is under {first(said, 'root')} and libnvidia-ml.so.1 is in none of the directories that are "
            "searched there.",
            LIKELY,
            said,
            node=node,
            cause_class="path-mount",
        )
    for node, said in by_node(facts.said("runtime.cli_library")).items():
        library = first(said, "library", "library2", "library3") or "the driver's libraries"
        in_container = any(".real" in one.origin.text or "/usr/local/nvidia/toolkit" in one.origin.text for one in said)
        where = f" under {roots[0].driver_root}" if roots else f" under {CONTAINER_ROOT}" if in_container else ""
        yield LIBRARY_MISSING.finding(
            f"The container runtime does not find {library}{where}: no driver is installed in the root that it was "
            "given.",
            LIKELY,
            [*said, *roots],
            node=node,
        )


RULE = Rule((ROOT_EMPTY, LIBRARY_MISSING), find)
