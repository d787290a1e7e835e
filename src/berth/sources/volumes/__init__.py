"""Volumes: which nodes a pod's claims allow it, what nodes have left for other claims, and which volume who gets."""

from berth.sources.volumes.storage import Storage, StorageClass
from berth.sources.volumes.wishes import Wishes, wishes_of

__all__ = ["Storage", "StorageClass", "Wishes", "wishes_of"]
