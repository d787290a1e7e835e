"""Device plugins and GPU Feature Discovery: NVIDIA's and its kin."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
