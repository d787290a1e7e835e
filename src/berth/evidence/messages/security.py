"""Who may do what on a node: SELinux, AppArmor, capabilities, ownership."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
