"""L2. The toolkit's installer does not get through: socket, configuration, file system, devices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

_RESTART_RISK = "the toolkit restarts the container runtime: container starts pause for seconds"

CANNOT_DIAL = Code(
    name="ToolkitCannotReachRuntime",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the toolkit cannot reach the container runtime's socket",
    meaning="The NVIDIA runtime is installed and not in effect: the runtime was not told to read its configuration "
    "again. The toolkit pod restarts, and everything of the operator that waits for it waits.",
    known_by="The toolkit cannot dial the socket that it was given.",
    disproved_by="The socket exists under that path and the toolkit says that it signalled the runtime.",
    counter_check="on NODE: ls -l /run/containerd/containerd.sock /run/k3s/containerd/containerd.sock : the one that "
    "the toolkit was told exists",
    fix=Fix(
        steps=(
            "find the socket: ps -ef | grep [c]ontainerd on NODE (K3s, RKE2: /run/k3s/containerd/containerd.sock; "
            "k0s: /run/k0s/containerd.sock; MicroK8s: /var/snap/microk8s/common/run/containerd.sock)",
            "give it to the toolkit together with the file that belongs to it: toolkit.env CONTAINERD_SOCKET and "
            "CONTAINERD_CONFIG, in the ClusterPolicy",
            "where both are set and it still dials the default path: that release does not hand the variable on "
            "(25.3.3 did so); take another release",
        ),
        risk=_RESTART_RISK,
        rollback="take the variables out of the ClusterPolicy",
    ),
    verify=("the toolkit's log: Successfully signaled containerd", "crictl info | grep nvidia : the handler is there"),
    sources=(
        "NVIDIA/nvidia-container-toolkit, cmd/nvidia-ctk-installer",
        "GPU Operator documentation, containerd options",
    ),
)

CANNOT_READ = Code(
    name="ToolkitCannotReadConfig",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the toolkit cannot read the container runtime's configuration",
    meaning="It stops before it adds the NVIDIA runtime; the operands wait for it.",
    known_by="The installer reports that it cannot load or parse the configuration, or that its version is "
    "unsupported.",
    disproved_by="The installer completes its set-up in its next run.",
    counter_check="the toolkit's log: Completed 'setup'",
    fix=Fix(
        steps=(
            "unsupported version 3: a toolkit older than 1.17 with containerd 2; take the toolkit that belongs to the "
            "operator's release, without an override of its version",
            "a template ({{ ... }}) is no TOML: point CONTAINERD_CONFIG at a drop-in or a file without templates",
            "else mend the line that it names in the file",
        ),
        risk=_RESTART_RISK,
        rollback="restore the saved file",
    ),
    verify=("the toolkit's log: Completed 'setup' for containerd",),
    sources=("NVIDIA/nvidia-container-toolkit, pkg/config/engine/containerd",),
)

READ_ONLY = Code(
    name="ToolkitDirectoryReadOnly",
    layer=Layer.L2,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the host's file system does not let the toolkit install",
    meaning="On systems with a read-only root (Talos, COS, Flatcar, Bottlerocket, ostree) the default directories "
    "cannot be written, so there is no NVIDIA runtime.",
    known_by="A write under the toolkit's or the runtime's directory fails with read-only file system.",
    disproved_by="The path is a writable mount of its own.",
    counter_check="on NODE: touch /usr/local/nvidia/.try : succeeds",
    fix=Fix(
        steps=(
            "use what the system brings: its NVIDIA extension or image, with toolkit.enabled=false",
            "or install to a writable place: toolkit.installDir, and CDI specifications under /var/run/cdi",
        ),
        risk=_RESTART_RISK,
        rollback="set toolkit.installDir back",
    ),
    verify=("the toolkit pod is Running", "ls TOOLKIT_DIR/toolkit/nvidia-container-runtime : there"),
    sources=("GPU Operator documentation, toolkit.installDir", "Talos documentation, NVIDIA GPU"),
)

RUNS_TWICE = Code(
    name="ToolkitRunsTwice",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Warning,
    effect=Effect.OperandsHeldBack,
    title="two toolkit installers run on one node",
    meaning="The second one stops; which of the two configurations is in effect depends on their order.",
    known_by="The installer cannot lock its pid file.",
    disproved_by="One toolkit pod runs on the node, and the old one was only ending.",
    counter_check="kubectl get pods -A -o wide | grep toolkit | grep NODE : one",
    fix=Fix(
        steps=("find the second operator or DaemonSet and remove it", "delete the toolkit pod that stays"),
        risk=_RESTART_RISK,
        rollback="nothing to undo",
    ),
    verify=("the toolkit pod is Running without restarts",),
    sources=("NVIDIA/nvidia-container-toolkit, cmd/nvidia-ctk-installer/main.go",),
)

NOT_INSTALLED = Code(
    name="ToolkitNotInstalled",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the toolkit's installer fails",
    meaning="The node has no NVIDIA runtime, or an old one; the operands wait for the toolkit.",
    known_by="The installer ends with an error.",
    disproved_by="It completes in its next run.",
    counter_check="kubectl logs of the toolkit pod on NODE : Completed 'setup'",
    fix=Fix(
        steps=(
            "read the reason in its log; a missing driver comes first: kubectl get pods -n gpu-operator -o wide",
            "mend what it names, then delete the toolkit pod so that it starts anew",
        ),
        risk=_RESTART_RISK,
        rollback="nothing to undo",
    ),
    verify=("the toolkit pod is Running", "/run/nvidia/validations/toolkit-ready exists on NODE"),
    sources=("NVIDIA/nvidia-container-toolkit, cmd/nvidia-ctk-installer",),
)

TOO_OLD = Code(
    name="ToolkitOlderThanDriver",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the toolkit does not know the devices of this driver",
    meaning="Driver 550 registers its character devices under another name than those before; a toolkit older than "
    "1.14.6 (GPU Operator 23.9.1 and before) looks for the old one, creates no device files, and the validator waits.",
    known_by="Toolkit or validator cannot determine the major number of nvidiactl.",
    disproved_by="grep nvidia /proc/devices on the node is empty: then the kernel module is not loaded.",
    counter_check="on NODE: grep nvidia /proc/devices : nothing (then the kernel module is not loaded); the toolkit's "
    "image tag : 1.14.6 or newer",
    fix=Fix(
        steps=(
            "set toolkit.version in the ClusterPolicy to 1.14.6 or newer, or bring the operator up to date",
            "until then: DISABLE_DEV_CHAR_SYMLINK_CREATION=true in validator.driver.env, with the symlinks made by "
            "hand",
        ),
        risk=_RESTART_RISK,
        rollback="set the version back",
    ),
    verify=("the validator's driver-validation completes", "ls -l /dev/nvidiactl on NODE : there"),
    sources=("NVIDIA/gpu-operator report 1015", "NVIDIA/nvidia-container-toolkit release notes 1.14.6"),
)

# What the installer reports on behalf of another rule.
_ELSEWHERE = (
    "cdi",
    "no nvidia device",
    "unable to dial",
    "load config",
    "config version",
    "restart containerd",
    "read-only",
    "flock",
)


_REASONS = ("why", *(f"why{number}" for number in range(2, 9)))


def _is_denied(said: list[Said]) -> bool:
    return all(re.search(r"permission denied|operation not permitted", one.origin.text, re.I) for one in said)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("toolkit.major_unknown")).items():
        yield TOO_OLD.finding("The major number of the device files is not found.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("toolkit.cannot_dial")).items():
        socket = first(said, "socket") or first(said, "why") or "the runtime's socket"
        yield CANNOT_DIAL.finding(f"The toolkit cannot reach {socket}.", ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("toolkit.cannot_read")).items():
        version = first(said, "version", "version2")
        why = f"it does not know version {version}" if version else first(said, *_REASONS)
        yield CANNOT_READ.finding(
            f"The configuration is not understood{': ' + why if why else ''}.",
            ESTABLISHED,
            said,
            node=node,
            cause_class="version-mismatch" if version else "permission" if _is_denied(said) else None,
        )
    for node, said in by_node(facts.said("toolkit.read_only")).items():
        yield READ_ONLY.finding("A directory that the toolkit writes to is read-only.", ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("toolkit.runs_twice")).items():
        yield RUNS_TWICE.finding("Another instance holds the lock.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("toolkit.cannot_install")).items():
        why = first(said, *_REASONS)
        if not any(mark in why.lower() for mark in _ELSEWHERE):
            by_setup = "setup runtime" in " ".join(one.origin.text for one in said)
            yield NOT_INSTALLED.finding(
                f"The installer ends with: {why}",
                LIKELY,
                said,
                node=node,
                cause_class="runtime-config" if by_setup else None,
            )


RULE = Rule((CANNOT_DIAL, CANNOT_READ, READ_ONLY, RUNS_TWICE, NOT_INSTALLED, TOO_OLD), find)
