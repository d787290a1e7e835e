"""The machine and its system services: systemd, modprobe, memory, file descriptors, file systems."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
