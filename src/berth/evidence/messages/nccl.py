"""NCCL, RDMA and the transports below it, and the launchers above."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
