"""Container runtimes: containerd, CRI-O, runc, nvidia-container-cli, and what the kubelet repeats of them."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
