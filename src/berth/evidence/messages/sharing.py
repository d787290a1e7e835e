"""Time-slicing and MPS."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
