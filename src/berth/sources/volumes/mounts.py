"""Which pods use which claims."""

from __future__ import annotations

from msgspec import Struct

from berth.model.volumes import ClaimKey

PodKey = tuple[str, str]  # (namespace, name)


class Mount(Struct, frozen=True, gc=False):
    """A pod that uses claims of its namespace. `has_place`: it has a node."""

    pod: PodKey
    claims: tuple[str, ...]
    has_place: bool
    created_s: float


class Mounts:
    """Pods that have not ended, by the claims that they mount."""

    def __init__(self) -> None:
        self._by_claim: dict[ClaimKey, dict[PodKey, Mount]] = {}
        self._by_pod: dict[PodKey, Mount] = {}

    def put(self, mount: Mount) -> bool:
        """Whether anything of it is new."""
        if self._by_pod.get(mount.pod) == mount:
            return False
        self.drop(mount.pod)
        self._by_pod[mount.pod] = mount
        for name in mount.claims:
            self._by_claim.setdefault((mount.pod[0], name), {})[mount.pod] = mount
        return True

    def drop(self, pod: PodKey) -> Mount | None:
        mount = self._by_pod.pop(pod, None)
        for name in mount.claims if mount else ():
            pods = self._by_claim.get((pod[0], name), {})
            pods.pop(pod, None)
            if not pods:
                self._by_claim.pop((pod[0], name), None)
        return mount

    def claims(self, pod: PodKey) -> tuple[str, ...]:
        """What a pod uses."""
        mount = self._by_pod.get(pod)
        return mount.claims if mount is not None else ()

    def pods(self, claim: ClaimKey) -> list[PodKey]:
        """Who uses a claim."""
        return list(self._by_claim.get(claim, ()))

    def all_pods(self) -> list[PodKey]:
        return list(self._by_pod)

    def first(self, claim: ClaimKey) -> PodKey | None:
        """Who has a claim that one pod alone may use: a pod with a node, else the oldest that waits for one."""
        mounts = self._by_claim.get(claim)
        if not mounts:
            return None
        return min(mounts.values(), key=lambda m: (not m.has_place, m.created_s, m.pod)).pod
