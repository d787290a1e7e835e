"""MIG: mig-parted, the MIG manager, nvidia-smi mig."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
