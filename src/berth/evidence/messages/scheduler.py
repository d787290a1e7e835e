"""The scheduler of Kubernetes, 1.30 to 1.37: why a pod waits, and what preemption found."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
