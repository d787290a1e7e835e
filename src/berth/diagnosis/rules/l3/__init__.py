"""Rules of layer 3: device plugin and kubelet."""

from berth.diagnosis.finding import Rule

RULES: tuple[Rule, ...] = ()
