"""What the API server refuses or lets through unchanged: quotas, webhooks, policies, limit ranges."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
