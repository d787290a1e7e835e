"""Rules of layer 0: hardware and PCIe."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules.l0 import fallen_off_bus

RULES: tuple[Rule, ...] = (fallen_off_bus.RULE,)
