"""Rules of layer 6: inside the container."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules.l6 import (
    collective,
    connections,
    device_error,
    fabric,
    gpudirect,
    harmless,
    host_limits,
    image,
    memory,
    memory_account,
    no_device,
    peer_access,
    rdma_errors,
    system_not_ready,
    without_reason,
)

RULES: tuple[Rule, ...] = (
    system_not_ready.RULE,
    no_device.RULE,
    image.RULE,
    device_error.RULE,
    memory.RULE,
    memory_account.RULE,
    host_limits.RULE,
    gpudirect.RULE,
    rdma_errors.RULE,
    connections.RULE,
    fabric.RULE,
    peer_access.RULE,
    collective.RULE,
    without_reason.RULE,
    harmless.RULE,
)
