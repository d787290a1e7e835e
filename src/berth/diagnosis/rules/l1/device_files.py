"""L1. The driver is there and its device files are not, or not all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import ModulesSeen

_FIX = Fix(
    steps=(
        "on NODE: nvidia-modprobe -u -c=0; nvidia-smi: they make the files; nvidia-smi -L first, then CUDA",
        "have it done at boot, before the kubelet and CDI: nvidia-persistenced, or a unit with nvidia-modprobe -u -c=0",
        "the validator stops at /dev/char where it may not load modules: validator.driver.env "
        "DISABLE_DEV_CHAR_SYMLINK_CREATION=true",
        "then make the CDI specification again: nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml",
    ),
    risk="none",
    rollback="nothing to undo",
)
MISSING = Code(
    name="DeviceFilesMissing",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DeviceNodesMissing,
    title="the device files of the GPUs are not there",
    meaning="/dev/nvidia* are made when something first asks for them. What looks before that, a CDI generator or a "
    "plugin at boot, finds none, and containers get an incomplete set.",
    known_by="/dev/nvidia* are missing on the node while the driver is loaded.",
    disproved_by="`ls /dev/nvidia*` on the node shows nvidia0, nvidiactl and nvidia-uvm.",
    counter_check="on NODE: ls -l /dev/nvidia* /dev/nvidia-caps: nvidia0, nvidiactl and nvidia-uvm are there",
    fix=_FIX,
    verify=("on NODE: ls /dev/nvidia*: nvidia0 … nvidiactl, nvidia-uvm", "nvidia-ctk cdi list: nvidia.com/gpu=0 …"),
    sources=("nvidia-modprobe(1)", "driver README, device files"),
)
UVM = Code(
    name="UvmMissing",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DeviceNodesMissing,
    title="nvidia-uvm is not loaded, or its device file is missing",
    meaning="nvidia-smi and validators that use NVML look healthy; CUDA does not begin in any container.",
    known_by="The module nvidia_uvm or /dev/nvidia-uvm is missing.",
    disproved_by="`lsmod | grep nvidia_uvm` shows it and /dev/nvidia-uvm is there, on the node and in the container.",
    counter_check="on NODE: lsmod | grep nvidia_uvm; ls -l /dev/nvidia-uvm*: both there, in the container too",
    fix=Fix(
        steps=(
            "on NODE: modprobe nvidia-uvm; nvidia-modprobe -u -c=0",
            "not found: the driver is installed without it for this kernel; reinstall the modules",
            "driver container: delete the driver pod; it loads nvidia-uvm and makes the files",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("on NODE: ls -l /dev/nvidia-uvm /dev/nvidia-uvm-tools", "a CUDA sample in a pod: Test PASSED"),
    sources=("nvidia-modprobe(1)", "gpu-driver-container, _load_driver"),
)
PERSISTENCED = Code(
    name="PersistenceDaemonFails",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DeviceNodesMissing,
    title="the persistence daemon does not start",
    meaning="It is the first that opens the devices: it fails where the driver is not loaded, does not fit, or a "
    "device file cannot be opened. The driver container stops there.",
    known_by="nvidia-persistenced says that it failed to initialise or to query the devices.",
    disproved_by="nvidia-smi works on the node; then only the unit or its user is wrong.",
    counter_check="on NODE: systemctl is-active nvidia-persistenced: active; or nvidia-smi: works (then only the unit "
    "or its user is wrong)",
    fix=Fix(
        steps=(
            "see why the devices cannot be opened: dmesg | grep -i nvrm; nvidia-smi",
            "a stale /var/run/nvidia-persistenced of another version: remove it and start the unit again",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("systemctl is-active nvidia-persistenced: active",),
    sources=("nvidia-persistenced(1)",),
)
# Inside a container the same words mean that the devices were not given to it: another layer's question.
_OPERAND = re.compile(r"nvidia|gpu-operator|dcgm|device-plugin")
_OF_NODE = ("host", "dmesg", "lsmod", "cdi", "bug-report", "probe", "operator-log", "validations", "report", "")


def find(facts: Facts) -> Iterator[Answer]:
    missing = _of_node(facts, "driver.device_nodes_missing")
    cdi = [*facts.said("cdi.nodes_absent"), *facts.said("cdi.without_nodes")]
    cdi += [said for said in missing if "cdi" in said.origin.text.lower()]
    if missing:
        is_host = any(said.origin.kind in ("host", "probe", "bug-report") for said in missing)
        # A specification that names them was made when they were there.
        is_named = any(facts.said("cdi.stale", "cdi.said_stale"))
        how = "names them." if is_named else "was made without them."
        yield MISSING.finding(
            "The device files did not exist when they were looked for"
            + (f", and the CDI specification {how}" if cdi else "."),
            LIKELY if is_host or (cdi and not is_named) else POSSIBLE,
            [*missing, *cdi],
            cause_class="cdi" if cdi else None,
        )
    elif linked := _links(facts):
        yield MISSING.finding(
            "The validator could not make the device files or the links to them under /dev/char.", POSSIBLE, linked
        )
    if uvm := _of_node(facts, "driver.uvm_missing"):
        yield UVM.finding("nvidia-uvm is missing, without which CUDA does not begin.", LIKELY, uvm)
    elif (unknown := list(facts.said("cuda.unknown", "driver.cuda_alone_fails"))) and (
        without := [one for one in facts.of(ModulesSeen) if _lacks_uvm(one)]
    ):
        yield UVM.finding("nvidia is loaded and nvidia-uvm is not.", LIKELY, [*without, *unknown])
    if denied := list(facts.said("driver.persistenced_denied")):
        yield PERSISTENCED.finding(
            "nvidia-persistenced has not the right to do what it has to: mostly it runs as a user that may not.",
            LIKELY,
            [*denied, *facts.said("driver.persistenced_failed")],
            cause_class="permission",
        )
    elif failed := list(facts.said("driver.persistenced_failed")):
        yield PERSISTENCED.finding("nvidia-persistenced cannot open the devices.", POSSIBLE, failed)


def _links(facts: Facts) -> list[Said]:
    """Where the major number is what is not found, the toolkit is older than the driver: another layer's question."""
    elsewhere = {(one.origin.source, one.origin.line) for one in facts.said("toolkit.major_unknown")}
    failed = facts.said("driver.dev_char_failed")
    return [one for one in failed if (one.origin.source, one.origin.line) not in elsewhere]


def _lacks_uvm(modules: ModulesSeen) -> bool:
    """A filtered list counts if it has other modules of NVIDIA: then it was filtered by that name."""
    ours = [name for name in modules.loaded if name.startswith("nvidia")]
    is_there = "nvidia" in ours or "nvidia_modeset" in ours
    return is_there and "nvidia_uvm" not in ours and (modules.is_whole or len(ours) > 1)


def _of_node(facts: Facts, message: str) -> list[Said]:
    elsewhere = ("runtime.said_not_injected", "runtime.cli_source_missing", "cdi.stale", "cdi.said_stale")
    others = {(one.origin.source, one.origin.line) for one in facts.said(*elsewhere)}
    return [
        said
        for said in facts.said(message)
        if (said.origin.source, said.origin.line) not in others
        and "gres.conf" not in said.origin.text  # what Slurm's configuration names may never have been there
        # An engine looks for them outside of containers.
        and (said.origin.kind in _OF_NODE or "lstat /dev/" in said.origin.text)
        and (not said.origin.pod or _OPERAND.search(said.origin.pod))
    ]


RULE = Rule((MISSING, UVM, PERSISTENCED), find)
