"""The NVIDIA Container Toolkit's installer and configuration."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
