"""L1. The driver cannot be replaced while something uses it, and what waits for that."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import NO_PCI, Fact, pci_of
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen, PodSeen

STATE = "nvidia.com/gpu-driver-upgrade-state"
DEPLOY = "nvidia.com/gpu.deploy."
PAUSED = "paused-for-driver-upgrade"

_FREE = (
    "kubectl get pods -A --field-selector spec.nodeName=NODE: what asks for nvidia.com/gpu or mounts /dev",
    "on NODE: fuser -v /dev/nvidia*; lsmod | grep -E 'nvidia|gdrdrv': who holds it, also DCGM, exporters, X, gdrdrv",
    "drain the node (kubectl drain NODE --ignore-daemonsets), or wait for the jobs; then the driver pod goes on",
    "nothing found and still in use: reboot the node",
)
IN_USE = Code(
    name="DriverInUse",
    layer=Layer.L1,
    cause_class="driver-in-use",
    severity=Severity.Error,
    effect=Effect.DriverBusy,
    title="the driver cannot be unloaded: something uses it",
    meaning="The driver pod crash-loops before it installs anything; the operator's other components wait for it. "
    "Pods that hold a GPU go on with the old driver.",
    known_by="The driver manager, the driver container, an installer or rmmod says that the modules are in use, or the "
    "root of the old driver is; less surely, the init container k8s-driver-manager fails again and again.",
    disproved_by="The reference counts in /sys/module/nvidia*/refcnt are those of the modules among themselves.",
    counter_check="on NODE: fuser -v /dev/nvidia*: nobody; cat /sys/module/nvidia/refcnt: no more than the modules "
    "that lsmod names beside it",
    fix=Fix(steps=_FREE, risk="a drain ends the jobs of the node", rollback="kubectl uncordon NODE"),
    verify=(
        "kubectl get pods -n gpu-operator -l app=nvidia-driver-daemonset: Running",
        "on NODE: cat /proc/driver/nvidia/version: the new version",
    ),
    sources=("gpu-driver-container, _unload_driver", "k8s-driver-manager, cleanupDriver"),
)
NOT_RESET = Code(
    name="GpuResetRefused",
    layer=Layer.L1,
    cause_class="driver-in-use",
    severity=Severity.Error,
    effect=Effect.DriverBusy,
    title="a GPU is not reset: something uses it",
    meaning="The fault for which it was to be reset stays, until all that has the device open ends or the machine is "
    "restarted.",
    known_by="nvidia-smi says that the GPU could not be reset, or is in use by another client.",
    disproved_by="fuser -v /dev/nvidia* shows nobody, and the reset is refused for another reason (NVLink, a display).",
    counter_check="on NODE: fuser -v /dev/nvidia*; lsof /dev/nvidiactl: nobody",
    fix=Fix(
        steps=(
            "drain the node; stop DCGM, exporters, the device plugin, nvidia-persistenced, Fabric Manager and X",
            "with NVLink: reset all GPUs at once (nvidia-smi -r without -i)",
            "on NODE: fuser -v /dev/nvidia*: nobody; then nvidia-smi -r -i PCI",
            "refused still: restart the machine",
        ),
        risk="a drain ends the jobs of the node",
        rollback="kubectl uncordon NODE, and start the services",
    ),
    verify=("nvidia-smi -i PCI: a table without an error",),
    sources=("nvidia-smi(1), --gpu-reset",),
)
NOT_EVICTED = Code(
    name="DriverUpgradeEvictionOff",
    layer=Layer.L1,
    cause_class="driver-in-use",
    severity=Severity.Error,
    effect=Effect.DriverBusy,
    title="nobody evicts the pods that hold the driver",
    meaning="With the upgrade policy on, the driver manager leaves eviction and drain to the upgrade controller; where "
    "that may not do it, or the driver pod was deleted by hand, nobody does.",
    known_by="The driver manager says that eviction or drain is disabled by, or left to, the upgrade policy.",
    disproved_by="The upgrade state of the node moves on by itself.",
    counter_check="kubectl get node NODE -L nvidia.com/gpu-driver-upgrade-state, twice: it moves on; kubectl get "
    "clusterpolicy -o jsonpath='{..upgradePolicy}': podDeletion or drain is on",
    fix=Fix(
        steps=(
            "let the controller do it: kubectl label node NODE nvidia.com/gpu-driver-upgrade-state=upgrade-required "
            "--overwrite; upgradePolicy.gpuPodDeletion and drain.enable=true",
            "or switch driver.upgradePolicy.autoUpgrade off and set ENABLE_GPU_POD_EVICTION=true in driver.manager.env",
            "change driver.version instead of deleting driver pods",
        ),
        risk="GPU pods of the node are deleted",
        rollback="the former policy",
    ),
    verify=("kubectl get node NODE -L nvidia.com/gpu-driver-upgrade-state: upgrade-done",),
    sources=("k8s-driver-manager, messages", "GPU Operator, driver upgrades"),
)
STUCK = Code(
    name="DriverUpgradeStuck",
    layer=Layer.L1,
    cause_class="driver-in-use",
    severity=Severity.Error,
    effect=Effect.DriverBusy,
    title="a driver upgrade does not get on",
    meaning="The node keeps its old driver, or is cordoned half-way through. Where components are paused the device "
    "plugin has left, and the node offers no GPUs until the driver manager puts the labels back.",
    known_by="The upgrade state of the node is upgrade-failed or stays at a step, or labels nvidia.com/gpu.deploy.* "
    "have the value paused-for-driver-upgrade.",
    disproved_by="The upgrade is some minutes old, and the state changes.",
    counter_check="kubectl get nodes -L nvidia.com/gpu-driver-upgrade-state -w: it changes within minutes",
    fix=Fix(
        steps=(
            "kubectl logs -n gpu-operator -l app=nvidia-driver-daemonset -c k8s-driver-manager: what it waits for",
            "kubectl logs -n gpu-operator deploy/gpu-operator | grep -i upgrade: maxParallelUpgrades, maxUnavailable, "
            "pods that it may not delete, budgets of 0",
            *_FREE[:3],
            "after upgrade-failed: kubectl label node NODE nvidia.com/gpu-driver-upgrade-state=upgrade-required "
            "--overwrite",
            "no upgrade wanted any more, labels still paused: set nvidia.com/gpu.deploy.<component>=true for each",
        ),
        risk="GPU pods of the node are deleted; components that start too early hold the driver again",
        rollback="kubectl label node NODE nvidia.com/gpu-driver-upgrade.skip=true",
    ),
    verify=(
        "kubectl get node NODE -L nvidia.com/gpu-driver-upgrade-state: upgrade-done",
        "kubectl get node NODE --show-labels | grep -c paused-for: 0",
    ),
    sources=("k8s-driver-manager, evictAllGPUOperatorComponents", "k8s-operator-libs, pkg/upgrade"),
)


_FAILS = ("CrashLoopBackOff", "Error", "RunContainerError")
# What else stops the driver manager, and has a rule of its own.
_OTHERWISE_STOPPED = (
    "driver.eviction_off", "driver.two_installed", "driver.not_on_vfio", "driver.nouveau", "driver.vfio_held",
    "driver.precompiled_missing",
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    in_use = list(facts.said("driver.in_use", "driver.persistenced_held", "driver.display_runs"))
    told = list(facts.said("driver.held_told"))
    loaded = [] if any(facts.said("driver.uninstalled", "driver.built")) else list(facts.said("driver.already_loaded"))
    drain = list(facts.said("driver.drain_failed"))
    # A driver that the host has of its own is not to be taken away: then two of them are the matter.
    is_of_host = any(facts.said("driver.host_has_one")) and any(facts.said("driver.container_begins"))
    manager = [*facts.said("driver.manager_fails"), *_managers(facts)]
    if in_use or drain or told or loaded:
        holders = next((said.get("pods") for said in drain if said.get("pods")), "")
        yield IN_USE.finding(
            "The modules of the old driver are still in use and cannot be unloaded"
            + (f"; these pods hold claims: {holders}." if holders else "")
            + (f" ({loaded[0].get('count')} references)." if loaded and not holders else "" if holders else "."),
            POSSIBLE if is_of_host else ESTABLISHED if in_use else LIKELY if drain else POSSIBLE,
            [*in_use, *drain, *loaded, *told, *manager],
        )
    elif manager and not any(facts.said(*_OTHERWISE_STOPPED)):
        yield IN_USE.finding(
            "The container that takes the old driver away fails again and again: mostly something still uses it.",
            POSSIBLE,
            manager,
        )
    reset = list(facts.said("nvml.reset_refused"))
    holds = list(facts.said("nvml.in_use"))
    # Of a change of partitions the MIG manager's rule tells.
    of_mig = any(one.message != "mig.in_use" for one in facts.said("mig.")) or any(
        "mig" in f"{one.origin.kind} {one.origin.text}".lower() for one in holds
    )
    if holds and not of_mig and (reset or any("nvidia-smi -r" in one.origin.text for one in holds)):
        pci = next((pci_of(one.get("pci")) for one in (*holds, *reset) if one.get("pci")), NO_PCI)
        said_of_reset = [*reset, *holds]
        yield NOT_RESET.finding("A process still has the device open: it is not reset.", LIKELY, said_of_reset, pci=pci)
    if off := list(facts.said("driver.eviction_off")):
        node = next((said.get("node") or said.get("node2") for said in off), "")
        yield NOT_EVICTED.finding(
            "Neither the driver manager nor the upgrade controller evicts the pods that hold the driver.",
            LIKELY,
            off,
            node=node,
        )
    yield from _paused(facts)
    yield from _stuck(facts, is_held=bool(in_use or drain))


def _managers(facts: Facts) -> list[PodSeen]:
    """Pods whose init container, the driver manager, fails."""
    return [
        pod
        for pod in facts.of(PodSeen)
        if any(state.container == "k8s-driver-manager" and state.reason in _FAILS for state in pod.states)
    ]


def _paused(facts: Facts) -> Iterator[Answer]:
    by_node: dict[str, list[Fact]] = {}
    operands: dict[str, list[str]] = {}
    for node in facts.of(NodeSeen):
        held = [name.removeprefix(DEPLOY) for name, value in node.labels.items() if value.endswith(PAUSED)]
        if held:
            by_node.setdefault(node.name, []).append(node)
            operands.setdefault(node.name, []).extend(held)
    for said in facts.said("driver.paused"):
        if said.node in by_node or not (by_node and not said.node):
            by_node.setdefault(said.node, []).append(said)
            operands.setdefault(said.node, []).append(said.get("operand"))
    for name, evidence in by_node.items():
        known = ", ".join(sorted({one for one in operands[name] if one}))
        yield STUCK.finding(
            f"The driver manager paused {known or 'components'} and did not finish.",
            LIKELY,
            evidence,
            node=name,
            effect=Effect.OperandsHeldBack,
        )


def _stuck(facts: Facts, *, is_held: bool) -> Iterator[Answer]:
    states: dict[tuple[str, str], list[Fact]] = {}
    for node in facts.of(NodeSeen):
        if state := node.labels.get(STATE):
            states.setdefault((node.name, state), []).append(node)
    for said in facts.said("driver.upgrade_state"):
        states.setdefault((said.node, said.get("state")), []).append(said)
    told = list(facts.said("driver.upgrade_failed"))
    if told and not states:
        yield STUCK.finding("The driver upgrade is said to have failed or to stand still.", POSSIBLE, told)
    cordoned = {node.name for node in facts.of(NodeSeen) if node.is_cordoned}
    for (name, state), evidence in states.items():
        if state in ("upgrade-done", "") or not state.endswith(("required", "failed")):
            continue
        sure = LIKELY if state == "upgrade-failed" or is_held else POSSIBLE if told or name in cordoned else WEAK
        severity = Severity.Error if sure > WEAK else Severity.Warning
        yield STUCK.finding(f"The driver upgrade is at {state}.", sure, evidence, node=name, severity=severity)


RULE = Rule((IN_USE, NOT_RESET, NOT_EVICTED, STUCK), find)
