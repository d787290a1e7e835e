"""Making, signing and replacing the driver: installers, DKMS, driver containers, the driver manager."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
