"""What a scheduler says of itself in /debug/snapshot, beside the objects of the cluster: berth.dev/v1alpha1 BerthState.

It is no kind of the API server. A reader that knows a later version of it passes over what it does not know.
"""

from __future__ import annotations

from msgspec import Struct

API_VERSION, KIND = "berth.dev/v1alpha1", "BerthState"


class Part(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all."""


class StateMeta(Part, frozen=True, gc=False):
    name: str = ""


class StateLevel(Part, frozen=True, gc=False):
    name: str = ""
    label: str = ""


class StateConfiguration(Part, frozen=True, gc=False):
    """What of the configuration changes what nodes and pods mean."""

    scheduler_names: tuple[str, ...] = ()
    levels: tuple[StateLevel, ...] = ()
    gpu_classes: str = ""
    silent_after_s: float = 300.0  # without a heartbeat an agent counts as silent


class AssumedBind(Part, frozen=True, gc=False):
    """A pod whose bind is on its way. In the list it stands on its node, as the scheduler counts it."""

    namespace: str = ""
    pod: str = ""
    node: str = ""


class StateNearest(Part, frozen=True, gc=False):
    node: str = ""
    lacks: str = ""


class StateCause(Part, frozen=True, gc=False):
    """`blocks` are nodes by what keeps one pod off them, `codes` the unfit and suspect ones by what was found there;
    most nodes first."""

    reason: str = ""
    sentence: str = ""
    need: int = 0
    have: int = 0
    unit: str = ""
    where: str = ""
    unlock: tuple[str, ...] = ()
    blocks: dict[str, int] = {}
    nearest: tuple[StateNearest, ...] = ()
    proven: bool = True
    codes: dict[str, int] = {}


class StateVerdict(Part, frozen=True, gc=False):
    """What the last plan says of a workload; `workload` is its identity, `Job team-a/train`."""

    workload: str = ""
    verdict: str = ""
    causes: tuple[StateCause, ...] = ()


class StateTimings(Part, frozen=True, gc=False):
    """Seconds. `steps` are of all cycles together."""

    cycles: int = 0
    last_cycle_s: float = 0.0
    steps: dict[str, float] = {}


class BerthState(Part, frozen=True, gc=False, omit_defaults=False):
    """`not_seen` are API groups whose server did not answer. Kinds that may not be listed follow the objects as a
    Status each; every other kind that decides has been listed, so where the List holds none, there is none."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: StateMeta = StateMeta()
    version: str = ""
    at: str = ""
    is_leader: bool = False
    epoch: int = 0
    configuration: StateConfiguration = StateConfiguration()
    known: dict[str, int] = {}
    assumed: tuple[AssumedBind, ...] = ()
    verdicts: tuple[StateVerdict, ...] = ()
    timings: StateTimings = StateTimings()
    not_seen: tuple[str, ...] = ()
