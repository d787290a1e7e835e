"""Rules of layer 4: node and operator."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules.l4 import (
    autoscaling,
    dcgm_engine,
    deploy_labels,
    discovery,
    exporter,
    latched_figures,
    mig_change,
    mig_manager,
    old_resources,
    operator_api,
    operator_chain,
    operator_pods,
    sharing_config,
    switch_library,
    unplaced_operands,
)

RULES: tuple[Rule, ...] = (
    discovery.RULE,
    deploy_labels.RULE,
    operator_api.RULE,
    operator_chain.RULE,
    operator_pods.RULE,
    unplaced_operands.RULE,
    sharing_config.RULE,
    old_resources.RULE,
    mig_change.RULE,
    mig_manager.RULE,
    autoscaling.RULE,
    dcgm_engine.RULE,
    exporter.RULE,
    latched_figures.RULE,
    switch_library.RULE,
)
