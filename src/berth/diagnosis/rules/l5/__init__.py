"""Rules of layer 5: scheduling and admission."""

from berth.diagnosis.finding import Rule

RULES: tuple[Rule, ...] = ()
