"""Dynamic resource allocation: claims, drivers, ComputeDomains."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
