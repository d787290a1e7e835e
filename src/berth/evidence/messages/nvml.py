"""NVML and nvidia-smi: what they answer where there is no answer."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
