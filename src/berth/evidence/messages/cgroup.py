"""Device rules of control groups, v1 and v2."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
