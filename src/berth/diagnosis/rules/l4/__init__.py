"""Rules of layer 4: node and operator."""

from berth.diagnosis.finding import Rule

RULES: tuple[Rule, ...] = ()
