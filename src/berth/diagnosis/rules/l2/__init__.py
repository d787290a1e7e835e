"""Rules of layer 2: container runtime and CDI."""

from berth.diagnosis.finding import Rule

RULES: tuple[Rule, ...] = ()
