"""CUDA, frameworks and what a program prints when a GPU fails it."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
