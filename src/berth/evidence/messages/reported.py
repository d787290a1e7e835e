"""What people write about a machine in their own words: 'module missing', 'process in state D'."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
