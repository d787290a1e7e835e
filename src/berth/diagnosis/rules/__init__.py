"""The rules by layer, deepest first. One file a rule; nothing registers itself."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules import l0, l1, l2, l3, l4, l5, l6

RULES: tuple[Rule, ...] = (*l0.RULES, *l1.RULES, *l2.RULES, *l3.RULES, *l4.RULES, *l5.RULES, *l6.RULES)
