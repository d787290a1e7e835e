"""Fabric Manager, NVSwitch and IMEX: their logs."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
