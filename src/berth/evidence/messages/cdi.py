"""Container Device Interface: specifications, names, registries."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
