"""Which workload was placed where and who was asked to leave for whom: a line each in the log, and no flood of them."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence

log = logging.getLogger("berth.decisions")

MOST_LINES = 50  # a second, of each kind
MOST_NODES = 8  # named in a line


class Journal:
    """Lines at level info. What is beyond the bound is counted and told as a number, a second later at the earliest."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._second = float("-inf")
        self._lines: Counter[str] = Counter()
        self._untold: Counter[str] = Counter()

    def placed(self, workload: str, nodes: Sequence[str]) -> None:
        """Binds of a workload were handed over, a node for each pod."""
        if self._may("placed"):
            by_node = Counter(nodes)
            log.info("placed", extra={"workload": workload, "pods": len(nodes), "nodes": _named(by_node)})

    def asked_to_leave(self, pod: str, node: str, beneficiary: str) -> None:
        """A pod was asked to leave, and goes."""
        if self._may("asked to leave"):
            log.info("asked to leave", extra={"pod": pod, "node": node, "for": beneficiary})

    def differs(self, pod: str, node: str, berth: str) -> None:
        """In shadow: another scheduler bound the pod to the node, and Berth would have done something else."""
        if self._may("decided otherwise"):
            log.info("decided otherwise", extra={"pod": pod, "bound": node, "berth": berth})

    def _may(self, what: str) -> bool:
        if not log.isEnabledFor(logging.INFO):
            return False
        now_s = self._clock()
        if now_s - self._second >= 1.0:
            for kind, number in sorted(self._untold.items()):
                log.info(f"{kind}, more than are told", extra={"number": number})
            self._second = now_s
            self._lines.clear()
            self._untold.clear()
        self._lines[what] += 1
        if self._lines[what] <= MOST_LINES:
            return True
        self._untold[what] += 1
        return False


def _named(nodes: Counter[str]) -> str:
    """Such as `n-1, n-2 (4)`: with how many pods, where it is more than one."""
    told = [f"{node} ({number})" if number > 1 else node for node, number in list(nodes.items())[:MOST_NODES]]
    rest = len(nodes) - len(told)
    return ", ".join(told) + (f" and {rest} more" if rest else "")
