"""L4. A change of MIG mode or layout that does not come about."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.mig_strategy import EMPTY
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, NodeSeen
from berth.evidence.formats.smi_facts import DeviceSeen

GPU_IN_USE = Code(
    name="MigGpuInUse",
    layer=Layer.L4,
    cause_class="driver-in-use",
    severity=Severity.Error,
    effect=Effect.MigNotApplied,
    title="a GPU cannot be reset for the change of MIG, because a client holds it",
    meaning="The mode stays as it is (before Hopper it takes a reset), and the layout is not applied.",
    known_by="mig-parted or nvidia-smi: 'In use by another client', 'could not be reset'.",
    disproved_by="No process holds /dev/nvidia* and nvidia_drm is not loaded: then instances of the GPU still exist.",
    counter_check="on NODE: fuser -v /dev/nvidia*; lsmod | grep nvidia_drm: nothing",
    fix=Fix(
        steps=("drain NODE; stop DCGM, persistenced, Fabric Manager, X and other clients (the MIG manager stops those "
               "that its configuration names)",
               "nvidia_drm loaded: systemctl isolate multi-user; rmmod nvidia_drm nvidia_modeset",
               "or reboot: migManager.env WITH_REBOOT=true",
               "toggle the label: nvidia.com/mig.config to another value and back"),
        risk="a reset or reboot ends everything on the GPU",
        rollback="the former label",
    ),
    verify=("label nvidia.com/mig.config.state: success, set after the change", "nvidia-smi -L: the partitions"),
    sources=("mig-parted README", "mig-parted issue 181, gpu-operator issue 1845"),
)  # fmt: skip

MODE_PENDING = Code(
    name="MigModePending",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.MigNotApplied,
    title="a change of the MIG mode waits for a reset or a reboot",
    meaning="Until then the GPU keeps its former mode, and no layout of the new one can be made.",
    known_by="'mode change pending', or the current mode differs from the pending one.",
    disproved_by="Current and pending mode are equal now.",
    counter_check="on NODE: nvidia-smi --query-gpu=mig.mode.current,mig.mode.pending --format=csv: equal",
    fix=Fix(
        steps=("drain NODE, then nvidia-smi --gpu-reset, or reboot",
               "let the MIG manager do so: migManager.env WITH_REBOOT=true (virtual machines and clouds need it)"),
        risk="a reset or reboot ends everything on the GPU",
        rollback="set the former mode",
    ),
    verify=("mig.mode.current = mig.mode.pending on all GPUs", "label nvidia.com/mig.config.state: success"),
    sources=("NVIDIA MIG user guide", "gpu-operator issue 668"),
)  # fmt: skip

WITHOUT_EFFECT = Code(
    name="MigAppliedWithoutEffect",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Warning,
    effect=Effect.MigNotApplied,
    title="the layout is reported as applied, and no partition was seen",
    meaning="Where a reset has no effect (virtual machines, passthrough) or the tool does not know the board, it "
    "reports success with nothing made.",
    known_by="'MIG configuration applied successfully' or a mode that stays, without partitions in what was given.",
    disproved_by="nvidia-smi -L lists the partitions.",
    counter_check="on NODE: nvidia-smi -L | grep -c MIG: the number that the layout has",
    fix=Fix(
        steps=("look: nvidia-smi -L on NODE", "none there: drain and reboot NODE (migManager.env WITH_REBOOT=true)",
               "board unknown to the tool ('failed to find device with id'): a newer MIG manager",
               "with vGPU the mode is changed on the hypervisor"),
        risk="a reboot ends everything on the node",
        rollback="nothing to undo",
    ),
    verify=("nvidia-smi -L: the partitions", "kubectl get node NODE: allocatable shows them"),
    sources=("gpu-operator issue 603, mig-parted issues 9, 97, HAMi issue 2131",),
)  # fmt: skip

LAYOUT_UNKNOWN = Code(
    name="MigLayoutUnknown",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.MigNotApplied,
    title="the label asks for a layout that the MIG manager does not have",
    meaning="The MIG manager sets the state to failed and changes nothing.",
    known_by="The selected configuration is not in its file.",
    disproved_by="The ConfigMap that the MIG manager has mounted contains that name.",
    counter_check="kubectl get cm -n gpu-operator -o yaml | grep -A0 '<the name>:': is there",
    fix=Fix(
        steps=("name one that exists (all-disabled, all-balanced, all-<profile of this board>)",
               "own layouts: a ConfigMap with config.yaml, named in migManager.config.name, in the operator's "
               "namespace"),
        risk="repartitioning ends what runs on the GPUs",
        rollback="the former label",
    ),
    verify=("label nvidia.com/mig.config.state: success",),
    sources=("mig-parted api/spec/v1", "GPU Operator documentation: MIG"),
)  # fmt: skip

LAYOUT_IMPOSSIBLE = Code(
    name="MigLayoutImpossible",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.MigNotApplied,
    title="the board cannot have the layout that was asked for",
    meaning="The profile does not exist on it or under that name, or the partitions do not fit next to each other.",
    known_by="An unsupported profile, a device id that the tool does not know, or no ordering that succeeds.",
    disproved_by="nvidia-smi mig -lgip lists the profile with enough free instances.",
    counter_check="on NODE: nvidia-smi mig -lgip; -lgipp: the profile with enough free instances and placements",
    fix=Fix(
        steps=("take profiles of this board (sizes differ: 1g.10gb on 80 GB, 1g.18gb on 141 GB)",
               "profile names with another memory size: the driver's own spelling in nvidia-smi mig -lgip",
               "unknown board or device id: a newer MIG manager; the partitions in the way: destroy them first"),
        risk="repartitioning ends what runs on the GPUs",
        rollback="the former layout",
    ),
    verify=("nvidia-smi -L: the partitions",),
    sources=("NVIDIA MIG user guide: supported profiles", "gpu-operator issues 351, 622, mig-parted issue 157"),
)  # fmt: skip

CHANGE_FAILED = Code(
    name="MigChangeFailed",
    layer=Layer.L4,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.MigNotApplied,
    title="the MIG manager could not apply the layout",
    meaning="The node keeps its former layout, or none at all.",
    known_by="An error while mode or layout were applied, or the label mig.config.state=failed.",
    disproved_by="A later run set the state to success.",
    counter_check="kubectl get node NODE -L nvidia.com/mig.config,nvidia.com/mig.config.state: success",
    fix=Fix(
        steps=("read the log of the MIG manager on NODE: the line before 'failed' names the reason",
               "drain NODE, toggle nvidia.com/mig.config through another value",
               "host driver: WITH_SHUTDOWN_HOST_GPU_CLIENTS=true, or a reboot"),
        risk="repartitioning ends what runs on the GPUs",
        rollback="the former label",
    ),
    verify=("label nvidia.com/mig.config.state: success", "nvidia-smi -L: the partitions"),
    sources=("mig-parted pkg/mig/reconfigure",),
)  # fmt: skip


_PARTS = re.compile(r"all-\d+g\.\d+gb|all-balanced")


_OF_INSTANCES = ("mig", "compute instance", "gpu instance")


def find(facts: Facts) -> Iterator[Answer]:
    in_use = by_node(one for one in facts.said("mig.in_use") if _is_of_mig(one, facts))
    for node, said in in_use.items():
        drm = [one for one in facts.said("mig.drm_holds") if one.node in ("", node)]
        gpus = sorted({one.get("pci") for one in said if one.get("pci")})
        kept = all("instance" in one.origin.text.lower() for one in said)
        what = "An instance could not be destroyed" if kept else f"{', '.join(gpus) or 'A GPU'} could not be reset"
        yield GPU_IN_USE.finding(
            f"{what}: a client holds it"
            + (", nvidia_drm among them." if drm else " (DCGM, nvidia_drm, persistenced, Fabric Manager, a pod)."),
            LIKELY,
            [*said, *drm],
        )
    pending = by_node(facts.said("mig.mode_pending", "mig.mode_disabled"))
    for node, said in pending.items():
        if node not in in_use:
            yield MODE_PENDING.finding(
                "A change of the MIG mode was asked for and has not come into effect.", LIKELY, said
            )
    for node, said in by_node(facts.said("mig.needs_reboot")).items():
        if node not in in_use and node not in pending:
            yield MODE_PENDING.finding(
                "The MIG mode of this machine changes only with a reset or a reboot, which somebody has to do.",
                POSSIBLE,
                said,
            )
    yield from _pending_modes(facts, {*in_use, *pending})
    yield from _without_effect(facts, {*in_use, *pending})
    yield from _without_partitions(facts)
    yield from _on_and_empty(facts)
    unknown = by_node(facts.said("mig.config_unknown"))
    for said in unknown.values():
        name = said_of(one.get("name") or one.get("wanted") for one in said)
        yield LAYOUT_UNKNOWN.finding(f"There is no layout {name or 'of that name'}.", LIKELY, said)
    impossible = by_node(
        one for one in facts.said("mig.profile_unsupported", "mig.orderings_failed") if _is_parted(one)
    )
    for node, said in impossible.items():
        if any("ERROR_IN_USE" in one.origin.text for one in facts.said("mig.orderings_failed", "nvml.in_use")):
            yield GPU_IN_USE.finding("What is to be taken away is in use: a pod computes on it.", LIKELY, said)
        elif node not in in_use:
            profile = said_of(one.get("profile") for one in said)
            yield LAYOUT_IMPOSSIBLE.finding(f"{profile or 'The layout'} cannot be made on this board.", LIKELY, said)
    told = {*in_use, *pending, *unknown, *impossible}
    for node, said in by_node(facts.said("mig.apply_failed", "mig.toggle_unsupported")).items():
        if node not in told:
            yield CHANGE_FAILED.finding("Mode or layout could not be applied.", POSSIBLE, said)


def _pending_modes(facts: Facts, told: set[str]) -> Iterator[Answer]:
    modes = ("Enabled", "Disabled")
    for device in facts.of(DeviceSeen):
        now, then = device.mig_mode, device.mig_mode_pending
        if now in modes and then in modes and now != then and device.node not in told:
            yield MODE_PENDING.finding(
                f"MIG mode of GPU {device.uuid if device.index is None else device.index} is {now}, pending {then}.",
                ESTABLISHED,
                [device],
                node=device.node,
                pci=device.pci,
            )


def _without_partitions(facts: Facts) -> Iterator[Answer]:
    """Strategy single: the product that discovery writes ends in -MIG-<profile> once the partitions are there."""
    for node in facts.of(NodeSeen):
        labels = node.labels
        layout = labels.get("nvidia.com/mig.config", "")
        product = labels.get("nvidia.com/gpu.product", "")
        is_done = labels.get("nvidia.com/mig.config.state") == "success"
        is_wanted = _PARTS.match(layout) and labels.get("nvidia.com/mig.strategy") == "single"
        if is_done and is_wanted and product and "-MIG-" not in product:
            yield WITHOUT_EFFECT.finding(
                f"{layout} is called a success, and discovery writes {product} without partitions.",
                POSSIBLE,
                [node],
                node=node.name,
            )


def _on_and_empty(facts: Facts) -> Iterator[Answer]:
    """CUDA takes no device in MIG mode without a partition: it calls all of them busy or unavailable."""
    rows, busy = list(facts.said("mig.on_in_table")), list(facts.said("cuda.busy"))
    if rows and busy and not any(device.mig for device in facts.of(DeviceSeen)):
        yield EMPTY.finding(
            "MIG is on, no partition is listed, and CUDA calls all devices busy or unavailable.",
            LIKELY,
            [*rows, *busy],
            layer=Layer.L4,
        )


def _is_of_mig(said: Said, facts: Facts) -> bool:
    """The same words come from other resets; here only with a sign of MIG in the text or in the same source."""
    text = said.origin.text.lower()
    if any(word in text for word in _OF_INSTANCES) or said.origin.kind == "mig-log":
        return True
    near = facts.said("mig.appl", "mig.mode_checked", "mig.mode_now", "mig.mode_pending", "mig.state_set")
    return any(one.origin.source == said.origin.source for one in near)


def _is_parted(said: Said) -> bool:
    """Resource claims make partitions too, in words that are alike; those are another rule's."""
    words = ("claim", "prepare", "creating mig device")
    return not any(word in said.origin.text.lower() for word in words)


def _without_effect(facts: Facts, told: set[str]) -> Iterator[Answer]:
    for said in by_node(
        facts.said("mig.applied_without_effect", "reported.mig_reverts", "mig.lost_at_reboot")
    ).values():
        yield WITHOUT_EFFECT.finding("Success is reported, and the mode or the partitions are as before.", LIKELY, said)
    offered = any("/mig-" in one.resource and max(one.capacity, one.allocatable) > 0 for one in facts.of(Advertised))
    went_on = {one.origin.source for one in facts.said("mig.state_set")}  # a whole log goes on after that line
    for node, said in by_node(facts.said("mig.applied")).items():
        alone = [one for one in said if one.origin.source not in went_on]
        modes = [one for one in facts.said("mig.mode_now") if one.get("mode") == "Enabled"]
        if alone and modes and not offered and node not in told:
            yield WITHOUT_EFFECT.finding(
                "The tool says that it applied the layout; no partition is among what was given.",
                WEAK,
                [*modes, *alone],
            )


RULE = Rule((GPU_IN_USE, MODE_PENDING, WITHOUT_EFFECT, LAYOUT_UNKNOWN, LAYOUT_IMPOSSIBLE, CHANGE_FAILED), find)
