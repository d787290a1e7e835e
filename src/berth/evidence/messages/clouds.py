"""Cloud providers and autoscalers: node pools, provisioners, images of nodes."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
