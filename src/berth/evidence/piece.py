"""A piece of evidence as it was found: bytes, where they are from, and whose they are."""

from __future__ import annotations

from msgspec import Struct

# What a piece may be. A kind may be absent or wrong: content decides (recognise.py), a kind only says where a sentence
# was found.
KINDS = (
    "apiserver-log", "app-log", "bug-report", "cdi", "code", "configmap", "containerd", "containerd-config",
    "containerd-log", "crio-config", "dcgm", "dcgm-log", "dcgm-metrics", "describe", "device-plugin", "dmesg",
    "dmidecode", "fabricmanager-log", "fabric-log", "host", "infiniband", "kubectl", "kubelet-checkpoint",
    "kubelet-config", "kubelet-log", "lsmod", "lspci", "manifest", "mig-config", "mig-log", "mps-log", "nccl-log",
    "nccl-tests", "node-json", "node-ledger", "node-labels", "nvidia-smi", "objects", "operator-log", "plugin-log",
    "pod-events", "pod-resources", "probe", "report", "resource-slices", "runtime-log", "scheduler-log", "validations",
)  # fmt: skip


PROBED = 64 * 1024  # bytes that tell whether it is a text


class Piece(Struct, frozen=True):
    """Evidence to be read. `raw` is as found: any encoding, any length, truncated or not."""

    raw: bytes
    source: str = ""  # what a reader looks up again: a file, an object, a command
    kind: str = ""  # one of KINDS where somebody says so; "" where content has to tell
    node: str = ""
    pod: str = ""  # namespace/name
    taken_s: float = 0.0  # when it was collected, Unix time; 0.0 where nobody says
    damage: str = ""  # what of its source is missing, where whoever brings it knows: "it is cut off or damaged"

    @property
    def text(self) -> str:
        return self.raw.decode("utf-8", "replace")


def is_text(raw: bytes) -> bool:
    """Whether most of it is meant to be read. A log may hold NULs where a machine went down, and be in any encoding."""
    words = raw[:PROBED].replace(b"\0", b"").strip()
    if not words:
        return bool(raw[PROBED:].replace(b"\0", b"").strip())
    text = words.decode("utf-8", "replace")
    odd = sum(c == "\ufffd" or not (c.isprintable() or c.isspace() or c == "\x1b") for c in text)
    return odd * 3 < len(text)


def piece(text: str, kind: str = "", source: str = "", node: str = "", pod: str = "") -> Piece:
    return Piece(text.encode(), source or kind, kind, node, pod)
