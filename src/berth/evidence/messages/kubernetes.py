"""Controllers and API versions of Kubernetes: skew, missing kinds, storage, images."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
