"""Rules of layer 1: the kernel driver."""

from berth.diagnosis.finding import Rule

RULES: tuple[Rule, ...] = ()
