"""Rules of layer 3: device plugin and kubelet."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules.l3 import (
    admission_before_plugin,
    allocation_calls,
    device_holders,
    ghost_allocations,
    kubelet_down,
    kubelet_memory,
    mig_strategy,
    mps,
    plugin_answers,
    plugin_health,
    plugin_refuses_config,
    plugin_registration,
    plugin_rights,
    plugin_start,
    plugin_stream,
    plugin_watcher,
    two_accounts,
)

RULES: tuple[Rule, ...] = (
    plugin_answers.RULE,
    device_holders.RULE,
    plugin_start.RULE,
    plugin_rights.RULE,
    plugin_watcher.RULE,
    plugin_registration.RULE,
    plugin_stream.RULE,
    plugin_health.RULE,
    plugin_refuses_config.RULE,
    mig_strategy.RULE,
    mps.RULE,
    two_accounts.RULE,
    allocation_calls.RULE,
    admission_before_plugin.RULE,
    ghost_allocations.RULE,
    kubelet_down.RULE,
    kubelet_memory.RULE,
)
