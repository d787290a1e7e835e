"""L3. What the kubelet or a driver of resource claims wrote down to remember is corrupt, lost, or not written."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.kubelet_files import Checkpoint

CORRUPT = Code(
    name="CheckpointCorrupt",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="a checkpoint is corrupt",
    meaning="Whoever needs it does not start (a driver of resource claims, the CPU manager) or starts with an empty "
    "account and may give devices away twice (the device manager).",
    known_by="'checkpoint is corrupted', a checksum that does not fit, or JSON that ends in the middle.",
    disproved_by="The file parses and the message is not repeated at the next start.",
    counter_check="on NODE: python3 -m json.tool < <the file>: parses to its end",
    fix=Fix(
        steps=("kubectl drain NODE: nothing may hold devices or claims there",
               "move the file away (not delete it): /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint, "
               "/var/lib/kubelet/plugins/<driver>/checkpoint.json, /var/lib/kubelet/cpu_manager_state",
               "restart the kubelet or the driver's pod; uncordon"),
        risk="with pods still running their devices are forgotten and given away again",
        rollback="put the file back",
    ),
    verify=("the process runs without a restart for ten minutes",),
    sources=("kubernetes pkg/kubelet/checkpointmanager", "dra-driver-nvidia-gpu issue 1100, kubernetes issue 135711"),
)  # fmt: skip

REMOVED = Code(
    name="CheckpointRemoved",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="the device manager's checkpoint was removed under running pods",
    meaning="The kubelet does not know any more which devices its pods hold: containers that restart get none, and the "
    "same devices are given to others.",
    known_by="kubelet_internal_checkpoint was removed.",
    disproved_by="No pod with devices ran on the node at that time.",
    counter_check="kubectl get pod -A --field-selector spec.nodeName=NODE: no pod with devices that is older than the "
    "removal",
    fix=Fix(
        steps=(
            "delete every pod with devices on NODE, so that they are admitted anew",
            "never remove the checkpoint before NODE is drained",
        ),
        risk="the work of these pods is lost since their last checkpoint",
        rollback="nothing to undo",
    ),
    verify=("NVIDIA_VISIBLE_DEVICES in each pod is what the PodResources API says",),
    sources=("kubernetes issue 116125",),
)

NOT_WRITTEN = Code(
    name="CheckpointNotWritten",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="the kubelet cannot write its checkpoint",
    meaning="Allocations fail, or are forgotten at the next restart.",
    known_by="A failure to write the checkpoint: no space, a read-only file system, rights.",
    disproved_by="The file's time moves on with each new pod.",
    counter_check="on NODE: touch /var/lib/kubelet/device-plugins/x: succeeds; df -h /var/lib/kubelet: room",
    fix=Fix(
        steps=("free space or make the file system writable", "restart the kubelet"),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("stat kubelet_internal_checkpoint: written when the next pod with devices starts",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go: writeCheckpoint",),
)

INIT_AGAIN = Code(
    name="InitContainerReallocated",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PodsRejected,
    title="a restart of the kubelet admits finished init containers anew",
    meaning="Pods whose init container asks for devices are rejected when the kubelet restarts, although they ran "
    "well.",
    known_by="'container not present in the initial running set' for an init container after a kubelet start.",
    disproved_by="The rejected pods have no init container that asks for devices.",
    counter_check="kubectl get pod POD -n NAMESPACE -o yaml | grep -B2 -A20 initContainers: no device under limits",
    fix=Fix(
        steps=("let the init container ask for no device where it can do without",
               "drain NODE before a planned restart of its kubelet", "delete the rejected pods"),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("after a kubelet restart the pods still run",),
    sources=("kubernetes issues 138446, 124345",),
)  # fmt: skip

ABSENT_AT_START = Code(
    name="CheckpointAbsentAtStart",
    layer=Layer.L3,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.AccountStale,
    title="no checkpoint at a kubelet's first start is no fault",
    meaning="A kubelet that has never given a device away has no checkpoint, and says so at each start.",
    known_by="'checkpoint is not found' for kubelet_internal_checkpoint.",
    disproved_by="Pods with devices ran on the node before that start: then the file was lost.",
    counter_check="kubectl get pod -A --field-selector spec.nodeName=NODE: no pod with devices older than the kubelet",
    fix=Fix(steps=("nothing to mend; look for the reason elsewhere",), risk="none", rollback="nothing to undo"),
    verify=("the file appears with the first pod that gets a device",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager/manager.go: readCheckpoint", "kubeadm issue 2685"),
    is_trap=True,
)


_OF_OTHER_SETTINGS = ("reported.state_file", "reported.policy_state_differs", "reported.state_file_blocks")
_AGAIN = (
    "kubelet.init_container_reallocated", "reported.init_container_other_device", "reported.allocates_again",
)  # fmt: skip
_TOLD = ("reported.checkpoint_spoilt", *_OF_OTHER_SETTINGS)


def find(facts: Facts) -> Iterator[Answer]:
    spoilt = facts.said("kubelet.checkpoint_corrupt", "kubelet.state_file_must_go", *_TOLD)
    for said in by_node(spoilt).values():
        file = said_of(one.get("file") for one in said)
        of_other = any(
            " in state" in one.origin.text or "differs from" in one.origin.text or one.message in _OF_OTHER_SETTINGS
            for one in said
        )
        what = "is of other settings than the kubelet's own" if of_other else "cannot be read"
        yield CORRUPT.finding(f"What was written down {what}{f': {file}' if file else ''}.", LIKELY, said)
    for checkpoint in facts.of(Checkpoint):
        if not checkpoint.is_whole:
            yield CORRUPT.finding(
                "The device manager's checkpoint is cut off: it is no JSON to its end.", POSSIBLE, [checkpoint]
            )
    for said in by_node(facts.said("kubelet.checkpoint_removed")).values():
        yield REMOVED.finding("The kubelet's account of devices was removed.", LIKELY, said)
    for said in by_node(facts.said("kubelet.checkpoint_not_written")).values():
        why = said_of(one.get("why") for one in said)
        yield NOT_WRITTEN.finding(f"The checkpoint is not written{f': {why}' if why else ''}.", LIKELY, said)
    for said in by_node(facts.said(*_AGAIN)).values():
        yield INIT_AGAIN.finding("The kubelet asks for devices for a container that has finished.", POSSIBLE, said)
    for said in by_node(facts.said("kubelet.checkpoint_absent")).values():
        yield ABSENT_AT_START.finding(
            "The kubelet starts without a checkpoint, as each first start does.", LIKELY, said
        )


RULE = Rule((CORRUPT, REMOVED, NOT_WRITTEN, INIT_AGAIN, ABSENT_AT_START), find)
