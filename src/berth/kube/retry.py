"""When a request may be sent again, and how long to wait first."""

from __future__ import annotations

import random

from berth.kube.errors import TOO_MANY, UNAVAILABLE, ApiError, Unreachable

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 10.0


class Backoff:
    """Waits that double, each drawn evenly from nothing to its bound (full jitter), so that clients spread out."""

    def __init__(
        self, first_s: float = FIRST_WAIT_S, longest_s: float = LONGEST_WAIT_S, draw: random.Random | None = None
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._draw = draw or random.Random()
        self.failures = 0

    def next_s(self, at_least_s: float | None = None) -> float:
        """The next wait. `at_least_s` is what the server asked for (Retry-After); the jitter comes on top."""
        # The exponent is bounded: after a night of failures 2 ** failures would overflow a float.
        bound = min(self._longest_s, self._first_s * 2 ** min(self.failures, 30))
        self.failures += 1
        return (at_least_s or 0.0) + self._draw.uniform(0.0, bound)

    def succeeded(self) -> None:
        self.failures = 0


def may_repeat(error: ApiError, is_idempotent: bool) -> bool:
    """Whether sending again cannot do the same thing twice.

    A 429 was refused before anything was done, so was a 503 that says when to come back, and a request that
    never left. After anything else, what is not idempotent may have been done: the caller looks and decides.
    """
    if isinstance(error, Unreachable) and not error.may_have_arrived:
        return True
    if error.status == TOO_MANY or (error.status == UNAVAILABLE and error.retry_after_s is not None):
        return True
    return is_idempotent and error.is_retriable
