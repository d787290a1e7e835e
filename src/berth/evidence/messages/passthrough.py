"""Devices given to virtual machines: VFIO, KubeVirt, IOMMU groups."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = ()
