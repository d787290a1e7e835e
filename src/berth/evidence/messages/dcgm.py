"""DCGM, its exporter and other agents that watch GPUs."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
