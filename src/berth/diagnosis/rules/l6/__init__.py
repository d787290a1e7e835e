"""Rules of layer 6: inside the container."""

from berth.diagnosis.finding import Rule

RULES: tuple[Rule, ...] = ()
