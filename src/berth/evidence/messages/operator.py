"""The GPU Operator: ClusterPolicy, operands, validator, upgrades."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
