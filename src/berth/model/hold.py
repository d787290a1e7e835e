"""Holds: places kept for one workload and nobody else, until what stands there has left or time is up."""

from __future__ import annotations

from msgspec import Struct


class Place(Struct, frozen=True, gc=False):
    """So many pods of a pod set on a node."""

    pod_set: str
    node: str
    count: int = 1


class Leaving(Struct, frozen=True, gc=False):
    """A pod that has been asked to leave for the hold. While it is there it keeps what it holds."""

    namespace: str
    name: str
    uid: str = ""
    workload: str = ""  # identity of the workload that it belongs to


class Hold(Struct, frozen=True, gc=False):
    """Places for `workload` (a `Workload.identity`), for its minimum.

    What is held is nobody else's, except that of a workload of strictly higher priority. A hold does not count once
    `until_s` (seconds since the epoch) has passed, or its workload is gone or waits no longer.
    """

    workload: str
    places: tuple[Place, ...]
    uid: str = ""  # of the workload; "" where it is not known. Another workload of that name has no claim
    leaving: tuple[Leaving, ...] = ()
    until_s: float = 0.0
