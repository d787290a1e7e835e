"""Past usage with a half-life: value hours that queues held, the older the less they count."""

from __future__ import annotations

from collections.abc import Mapping

HALF_LIFE_S = 7 * 86400.0


def decayed(
    used: Mapping[str, float], held: Mapping[str, float], seconds: float, half_life_s: float = HALF_LIFE_S
) -> dict[str, float]:
    """Value hours of each queue after so many seconds in which it held as much (GPUs times their value).

    Exact for what is held constant: two steps come to what one comes to. A clock that went back changes nothing.
    Without a half-life (0) nothing is forgotten.
    """
    if seconds <= 0:
        return dict(used)
    stays = 2.0 ** (-seconds / half_life_s) if half_life_s > 0 else 1.0
    # The integral of 2^(-t / half-life) over the time.
    counted_s = (1 - stays) * half_life_s / 0.6931471805599453 if half_life_s > 0 else seconds
    return {
        name: used.get(name, 0.0) * stays + held.get(name, 0.0) * counted_s / 3600
        for name in dict.fromkeys((*used, *held))
    }
