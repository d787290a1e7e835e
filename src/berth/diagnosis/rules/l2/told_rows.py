"""L2 and L3. What somebody tells of containers that get no GPU, or of a plugin's other devices, and what causes it.

They are asked before those of the upper layers (l5/told.py): the first row that fits a line answers.
"""

from __future__ import annotations

from berth.diagnosis.rules.l2 import (
    cdi_off,
    cdi_unresolvable,
    denied,
    device_rules,
    handler_missing,
    hook_fails,
    loader_cache,
    not_default,
    not_injected,
    other_boxes,
    program_missing,
    swarm_devices,
    visible_unasked,
    wrong_file,
)
from berth.diagnosis.rules.l3 import device_holders, mig_strategy, plugin_pool, plugin_registration
from berth.diagnosis.told_row import Row
from berth.diagnosis.words import POSSIBLE

# Components of the upper layers, which have words of their own.
_ABOVE = "plugin, operand, operator, claims, kubelet, partitions, queue, autoscaler, figures, exporter, slurm"
_LOST = "Containers had their GPUs and lose them: their device rules were written anew, mostly by systemd."
_BUILT = "An image is built without the NVIDIA runtime: the steps of a build see no GPU unless the builder hands it on."
_OTHER_HOME = "The kubelet keeps its sockets where the plugin does not look."
_NESTED = "The outer container does not hand its GPUs on, or may not set rules for the inner one."
_OTHER_RUNTIME = "The host has its GPU and the container does not: it was not started by the NVIDIA runtime."

ROWS: tuple[Row, ...] = (
    Row("kept, pod is gone, gpus", device_holders.GHOST, "The account keeps a device for a pod that is gone.",
        POSSIBLE, unless="claims, queue, quota, operator, memory ill, slurm"),
    Row("partitions, gpus none, view", mig_strategy.EMPTY, "MIG is on, and no partition is offered.",
        unless="mig manager, claims, sharing, share scheduler, labels, taint"),
    Row("partitions, plugin, no gpu inside", mig_strategy.EMPTY, "MIG is on, and no partition is offered.",
        unless="mig manager, claims, sharing, share scheduler, labels, taint"),
    Row("swarm, gpus", swarm_devices.NOT_PASSED_ON, "Swarm's resources are not handed to the NVIDIA runtime.", POSSIBLE,
        unless="plugin"),
    Row("mandatory control, engine, no gpu inside", denied.SELINUX, "The host's security confines the container.",
        POSSIBLE, unless=_ABOVE),
    Row("mandatory control, engine, crashes", denied.SELINUX, "The host's security confines the container.",
        POSSIBLE, unless=_ABOVE),
    Row("sees too many, unasked", visible_unasked.UNASKED, "The NVIDIA runtime hands out GPUs that nobody asked for.",
        POSSIBLE, unless="claims, sharing, share scheduler, partitions, slurm, swarm, queue"),
    Row("visible devices, rootless, no gpu inside", cdi_off.MOUNTS_REFUSED, "The toolkit does not heed what containers "
        "without privileges ask for.", POSSIBLE),
    Row("plugin socket, not allowed", plugin_registration.SOCKET_DENIED, "The plugin may not use the kubelet's "
        "directory.", POSSIBLE),
    Row("kubelet home, plugin socket", plugin_registration.SOCKET_ABSENT, _OTHER_HOME, POSSIBLE),
    Row("kubelet home, plugin, gpus none", plugin_registration.SOCKET_ABSENT, _OTHER_HOME, POSSIBLE),
    Row("kubelet home, plugin, resource none", plugin_registration.SOCKET_ABSENT, _OTHER_HOME, POSSIBLE),
    Row("loses it, control groups", device_rules.REVOKED, _LOST, POSSIBLE, unless="plugin, claims, unhealthy"),
    Row("container update, no gpu inside", device_rules.REVOKED, _LOST, POSSIBLE, unless=_ABOVE),
    Row("container update, loses it", device_rules.REVOKED, _LOST, POSSIBLE, unless=_ABOVE),
    Row("loses it, after a while", device_rules.REVOKED, _LOST, POSSIBLE, unless="plugin, claims, unhealthy"),
    Row("in container, no gpu inside, after a while", device_rules.REVOKED, _LOST, unless=_ABOVE),
    Row("in container, no gpu inside, after a while, policies", device_rules.REVOKED, _LOST, unless="plugin, claims"),
    Row("loses it, gpus", device_rules.REVOKED, _LOST, unless=f"{_ABOVE}, reboot, view, unhealthy, power, ill"),
    Row("control groups, engine, no gpu inside", device_rules.RULES_NOT_WRITABLE,
        "The rules for device files cannot be set as they are asked for.", unless=_ABOVE),
    Row("image build, no gpu inside", not_injected.WITHOUT_LIBRARY, _BUILT, unless=_ABOVE),
    Row("cdi, engine, no gpu inside", cdi_unresolvable.UNRESOLVABLE, "The engine does not find what CDI names.",
        unless=_ABOVE),
    Row("cdi, engine, crashes", cdi_unresolvable.UNRESOLVABLE, "The engine does not find what CDI names.",
        unless=_ABOVE),
    Row("cdi, removed", cdi_unresolvable.UNRESOLVABLE, "What CDI names is written nowhere any more.",
        unless="plugin, operand, partitions, figures"),
    Row("cdi, gpu toolkit, missing", cdi_unresolvable.UNRESOLVABLE, "The engine does not find what CDI names.",
        unless=_ABOVE),
    Row("nested, no gpu inside", not_injected.WITHOUT_LIBRARY, _NESTED, unless=_ABOVE),
    Row("rootless, control groups, not allowed", device_rules.RULES_NOT_WRITABLE,
        "A user's own engine may not write the rules of control groups.", unless=_ABOVE),
    Row("rootless, engine, no gpu inside", denied.RUNTIME_DENIED, "A user's own engine may not do what root's does.",
        unless=_ABOVE),
    Row("rootless, engine, crashes, gpus", denied.RUNTIME_DENIED, "A user's own engine may not do what root's does.",
        unless=_ABOVE),
    Row("rootless, nvidia, not allowed", denied.RUNTIME_DENIED, "A user's own engine may not do what root's does.",
        unless=_ABOVE),
    Row("control groups, gpu toolkit, crashes", device_rules.RULES_NOT_WRITABLE,
        "The toolkit does not manage control groups of this version.", unless=_ABOVE),
    Row("wsl, engine, no gpu inside", other_boxes.WSL_NO_GPU, "WSL2 hands no GPU to the engine.", unless=_ABOVE),
    Row("device library, gpu toolkit, missing", loader_cache.CACHE_UNUSABLE,
        "The toolkit does not find the driver's libraries where it looks.", unless=_ABOVE),
    Row("device library, in container, not handed in", not_injected.WITHOUT_LIBRARY,
        "The runtime hands in only the libraries of the capabilities that are asked for.", unless=_ABOVE),
    Row("gpu toolkit, not installed", program_missing.MISSING, "The toolkit is not on the machine.", unless=_ABOVE),
    Row("snap, engine, gpus", program_missing.NOT_SET_UP, "Docker of a snap does not use the host's toolkit.",
        unless=_ABOVE),
    Row("compose, no gpu inside", not_injected.WITHOUT_LIBRARY, "What compose asks for is not in effect.",
        unless=_ABOVE),
    Row("nvidia runtime, engine, missing", handler_missing.HANDLER_MISSING, "The engine does not know the runtime.",
        unless=_ABOVE),
    Row("in container, no gpu inside, host is well", not_injected.WITHOUT_LIBRARY, _OTHER_RUNTIME, unless=_ABOVE),
    Row("engine, no gpu inside, host is well", not_injected.WITHOUT_LIBRARY, _OTHER_RUNTIME, unless=_ABOVE),
    Row("gpu toolkit, no gpu inside", not_injected.WITHOUT_LIBRARY, _OTHER_RUNTIME, unless=f"{_ABOVE}, module"),
    Row("hpc engine, device library, missing", not_injected.WITHOUT_LIBRARY,
        "The container gets none of the driver's files.", unless=_ABOVE),
    Row("hpc engine, no gpu inside", not_injected.WITHOUT_LIBRARY,
        "The container gets none of the driver's files.", unless=_ABOVE),
    Row("engine, operator, again and again", wrong_file.OVERWRITTEN, "The toolkit writes what the engine cannot read."),
    Row("gpu toolkit, engine, crashes", wrong_file.OVERWRITTEN,
        "The toolkit and the engine do not agree on the engine's configuration.",
        unless="plugin, claims, kubelet, partitions, figures, in container, module, a driver, slurm"),
    Row("engine, configuration, node is down", wrong_file.OVERWRITTEN,
        "What was written into the engine's configuration stops the node."),
    Row("engine, no gpu inside", not_injected.WITHOUT_LIBRARY, _OTHER_RUNTIME,
        unless=f"{_ABOVE}, view, module, a driver"),
    Row("gpu toolkit, crashes", hook_fails.FAILS, "The toolkit is said to fail.", unless=f"{_ABOVE}, module, a driver"),
    Row("nvidia runtime, crashes", hook_fails.FAILS, "The NVIDIA runtime is said to fail.",
        unless=f"{_ABOVE}, module, a driver"),
    Row("nvidia runtime, helps, gpus none", not_default.NOT_DEFAULT,
        "The plugin's container gets no GPU of the default runtime.", unless="operator, claims, partitions, sharing"),
    Row("upgrade, engine, plugin, gpus none", wrong_file.OVERWRITTEN,
        "After the engine's upgrade its settings are others.", unless="operator, claims, partitions, sharing, kubelet"),
    Row("runtime, no gpu inside, view", not_default.NOT_DEFAULT, _OTHER_RUNTIME,
        unless=f"{_ABOVE}, reboot, labels, pending, visible devices"),
    Row("network device, resource none", plugin_pool.POOL_EMPTY, "A plugin offers none of its devices.",
        unless="claims, pending, queue, sharing, runtime"),
)  # fmt: skip
