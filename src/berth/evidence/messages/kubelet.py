"""The kubelet: device manager, admission, topology, checkpoints, registration."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
