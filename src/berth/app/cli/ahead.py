"""Decisions ahead of what is shown: a thread that plays jobs over time and hands over scenes in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from math import inf
from threading import Condition, Thread
from time import monotonic

from berth.scheduling.starts import Start
from berth.simulation.queueing.scene import Scene, scene_of
from berth.simulation.queueing.state import State
from berth.simulation.queueing.stories import Kind, Story, stories_of

MOST_AHEAD = 48  # scenes
STOPS_WITHIN_S = 1.0


class Ahead(Thread):
    """Plays `going` until `length_s`. Scenes lie `spacing_s` of simulated time apart at least, or a tenth of a second
    of real time where that is 0; a story that is worth telling has a scene at once."""

    def __init__(
        self,
        going: Generator[State, None, None],
        length_s: float,
        spacing_s: float,
        starts: Callable[[State], Mapping[int, Start]],
    ) -> None:
        super().__init__(name="decisions", daemon=True)
        self.spacing_s = spacing_s
        self.front_s = -inf  # decided up to here
        self.is_done = False
        self.error: BaseException | None = None
        self.state: State | None = None
        self._going, self._length_s, self._starts = going, length_s, starts
        self._scenes: deque[Scene] = deque()
        self._turn = Condition()
        self._stopped = False

    def run(self) -> None:
        try:
            self._play()
        except BaseException as error:
            self.error = error
        with self._turn:
            self.is_done = True
            self._turn.notify_all()

    def _play(self) -> None:
        stories: list[Story] = []
        last_s, made_at = -inf, -inf
        for state in self._going:
            if self._stopped or state.now_s > self._length_s:
                return
            self.state = state
            found = stories_of(state)
            stories += found
            is_due = state.now_s - last_s >= self.spacing_s if self.spacing_s else monotonic() - made_at >= 0.1
            if is_due or any(story.kind < Kind.Starts for story in found):
                self._hand_over(scene_of(state, stories, self._starts(state)))
                stories, last_s, made_at = [], state.now_s, monotonic()
            self.front_s = state.now_s
        if self.state is not None and stories:
            self._hand_over(scene_of(self.state, stories, self._starts(self.state)))

    def _hand_over(self, scene: Scene) -> None:
        with self._turn:
            while len(self._scenes) >= MOST_AHEAD and not self._stopped:
                self._turn.wait(0.5)
            self._scenes.append(scene)

    def until(self, now_s: float) -> list[Scene]:
        """Those whose time has come, and that have not been handed over before."""
        found = []
        with self._turn:
            while self._scenes and self._scenes[0].at_s <= now_s:
                found.append(self._scenes.popleft())
            self._turn.notify_all()
        return found

    @property
    def is_over(self) -> bool:
        """Everything has been decided and handed over."""
        return self.is_done and not self._scenes

    def stop(self) -> None:
        """No more decisions. One that takes long is left alone: what scenes were made of is only added to."""
        self._stopped = True
        with self._turn:
            self._turn.notify_all()
        if self.is_alive():
            self.join(STOPS_WITHIN_S)
