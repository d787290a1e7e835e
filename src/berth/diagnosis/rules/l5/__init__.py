"""Rules of layer 5: scheduling and admission."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules.l5 import (
    admission,
    autoscaler,
    claims,
    gang,
    kueue,
    node_refuses,
    passthrough,
    quota,
    shares,
    unplaced_affinity,
    unplaced_resource,
    unplaced_taint,
    virtual_gpus,
)

RULES: tuple[Rule, ...] = (
    unplaced_resource.RULE,
    unplaced_taint.RULE,
    unplaced_affinity.RULE,
    quota.RULE,
    gang.RULE,
    kueue.RULE,
    shares.RULE,
    admission.RULE,
    autoscaler.RULE,
    node_refuses.RULE,
    claims.RULE,
    passthrough.RULE,
    virtual_gpus.RULE,
)
