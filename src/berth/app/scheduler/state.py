"""What is looked at of a replica, over HTTP and in a snapshot of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from berth.actions.binding import Binder
from berth.app.scheduler.driver import Driver
from berth.app.scheduler.leader import Leadership
from berth.sources.live.follow import Follower
from berth.sources.live.world import World
from berth.views.metrics import Measures


class Telling(Protocol):
    """What has been written for people, by what it was."""

    @property
    def counts(self) -> Mapping[str, int]: ...


class State(Protocol):
    """The parts of one replica that are looked at. `leadership` None: there is no election, it always leads."""

    @property
    def world(self) -> World: ...
    @property
    def driver(self) -> Driver: ...
    @property
    def leadership(self) -> Leadership | None: ...
    @property
    def binder(self) -> Binder | None: ...
    @property
    def follower(self) -> Follower: ...
    @property
    def teller(self) -> Telling | None: ...
    @property
    def measures(self) -> Measures: ...
