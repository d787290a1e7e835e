"""L5. Dynamic resource allocation: a claim is allocated, and the node does not prepare its devices."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, value
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.machine_facts import PciSeen

_DRIVER = ("kubernetes-sigs/dra-driver-nvidia-gpu, kubelet plugins",)
_PREPARED = ("kubectl get resourceclaim -n NAMESPACE: allocated,reserved", "kubectl get pod POD -n NAMESPACE: Running")

UNREGISTERED = Code(
    name="DraDriverNotRegistered",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the kubelet knows no DRA driver of that name on the node",
    meaning="The driver's kubelet plugin does not run there, or its registration socket is not where the kubelet "
    "looks.",
    known_by="FailedPrepareDynamicResources: DRA driver is not registered.",
    disproved_by="The plugin's pod runs on the node and its socket is in plugins_registry.",
    counter_check="ls /var/lib/kubelet/plugins_registry on NODE: the driver's socket is there",
    fix=Fix(
        steps=(
            "kubectl get pods -A -o wide | grep kubelet-plugin: Running on NODE",
            "after a node restart pods may start before the plugin: they are tried again",
            "kubelet with another --root-dir: set the path in the chart",
        ),
        risk="a restart of the plugin does not touch running pods",
        rollback="nothing to undo",
    ),
    verify=_PREPARED,
    sources=("kubernetes, pkg/kubelet/cm/dra", *_DRIVER),
)
MIG = Code(
    name="ClaimMigRefused",
    layer=Layer.L5,
    cause_class="mig-state",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the driver cannot make the MIG device of a claim",
    meaning="Instances that the driver does not know of hold the slices, or the placement is taken.",
    known_by="error creating MIG device: Insufficient Resources or In use.",
    disproved_by="nvidia-smi mig -lgi lists only instances of allocated claims, and the placement is free.",
    counter_check="nvidia-smi mig -lgi and -lgipp on NODE: free slices for the profile",
    fix=Fix(
        steps=(
            "nvidia-smi mig -lgi, -lci: destroy instances that no claim owns (-dci, then -dgi)",
            "leave MIG to one owner: no MIG manager beside the driver",
        ),
        risk="destroying an instance ends what runs on it",
        rollback="make the instance again",
    ),
    verify=_PREPARED,
    sources=_DRIVER,
)
DENIED = Code(
    name="DraDriverFileDenied",
    layer=Layer.L5,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="a part of the DRA driver may not write its file",
    meaning="The IMEX daemon's container writes its list of nodes, the kubelet plugins their checkpoint and socket. "
    "Where the security context does not let them, they end, and claims of the node are not prepared.",
    known_by="Permission denied, or a read-only file system, for nodes_config.cfg or a file of the driver's plugin.",
    disproved_by="The same pod runs with the security context of the chart and can write.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.metadata.annotations.openshift\\.io/scc}': "
    "privileged; on NODE: ausearch -m avc -ts recent: nothing of nvidia",
    fix=Fix(
        steps=(
            "OpenShift: give the driver's service accounts the privileged SCC (oc adm policy add-scc-to-user "
            "privileged -z ACCOUNT -n NAMESPACE), those of the ComputeDomain daemons too",
            "a namespace with a Pod Security level: label pod-security.kubernetes.io/enforce=privileged",
            "the daemon's container runs as root in the driver's chart: no runAsUser from a policy engine",
        ),
        risk="privileged pods own the node: for the driver's namespace only",
        rollback="oc adm policy remove-scc-from-user",
    ),
    verify=("the pod of the daemon is Ready", *_PREPARED),
    sources=("dra-driver-nvidia-gpu, cmd/compute-domain-daemon", "OpenShift: security context constraints"),
)
SHARING = Code(
    name="ClaimSharingFails",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the driver cannot set up the sharing that a claim asks for",
    meaning="A claim's GpuConfig may ask for time slices or MPS. Compute mode and time slice are set with nvidia-smi, "
    "MPS by a Deployment of its own in the driver's namespace; where that does not come up the claim waits.",
    known_by="The driver: compute mode or time slice not set, or the MPS control daemon does not come online.",
    disproved_by="The next try succeeds; a daemon takes its time when its image is pulled.",
    counter_check="kubectl get deploy -A | grep mps-control: ready; on NODE: nvidia-smi -q -d COMPUTE",
    fix=Fix(
        steps=(
            "kubectl describe the pod mps-control-daemon-…: image, node's taints, Pod Security, quota",
            "feature gates MPSSupport and TimeSlicingSettings of the driver on where the version has them",
            "MIG devices and time slices do not go together; multi-user MPS: a newer driver",
        ),
        risk="a change of the compute mode is felt by all that use the GPU",
        rollback="a claim without that configuration",
    ),
    verify=_PREPARED,
    sources=("dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/sharing.go",),
)
CHECKPOINT = Code(
    name="DraCheckpointUnreadable",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the DRA driver cannot read its checkpoint",
    meaning="The kubelet plugin writes down what it has prepared. After a downgrade, or a crash while it wrote, it "
    "cannot read that file and does not start or refuses claims.",
    known_by="checkpoint failed checksum verification, or an unknown version of the checkpoint.",
    disproved_by="The plugin runs, and prepares new claims.",
    counter_check="on NODE: head -c 200 /var/lib/kubelet/plugins/gpu.nvidia.com/checkpoint.json: whole JSON",
    fix=Fix(
        steps=(
            "drain NODE of pods with claims, delete checkpoint.json of that plugin, restart its pod",
            "after a downgrade: the newer version again, end the pods with claims, then the older one",
        ),
        risk="with pods on the node the plugin forgets what they hold, and gives it out twice",
        rollback="put the file back",
    ),
    verify=_PREPARED,
    sources=("dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/checkpoint.go",),
)
CONFIG = Code(
    name="ClaimConfigInvalid",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the driver does not take the configuration that a claim or its class carries",
    meaning="Opaque parameters are read by the driver alone: another apiVersion or kind, an unknown field, a feature "
    "that is off, or a configuration for another kind of device. The webhook refuses it at once; without the webhook "
    "the claim is allocated and never prepared.",
    known_by="configs failed to validate, or error decoding, normalizing or validating the configuration.",
    disproved_by="The same claim without its config is prepared, and the error stays.",
    counter_check="kubectl get resourceclaim,deviceclass -A -o yaml | grep -A12 'opaque:': kind and fields of the "
    "driver's release",
    fix=Fix(
        steps=(
            "write the configuration for the driver that runs: resource.nvidia.com/v1beta1, GpuConfig for GPUs, "
            "MigDeviceConfig for MIG devices, sharing only with its feature gate on",
            "claims of a ComputeDomain: take the template that the domain made, unchanged",
            "install the chart's webhook, so that a wrong one is refused where it is written",
        ),
        risk="none: the pod does not run yet",
        rollback="the former claim",
    ),
    verify=_PREPARED,
    sources=("dra-driver-nvidia-gpu, cmd/webhook and device_state.go: GetOpaqueDeviceConfigs",),
)
PREPARE = Code(
    name="ClaimPreparationFails",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a claim is allocated, and the node cannot prepare it",
    meaning="The pod stays in ContainerCreating and the kubelet tries again; the driver's own error stands behind "
    "the event.",
    known_by="FailedPrepareDynamicResources.",
    disproved_by="The next try succeeds.",
    counter_check="kubectl logs of the driver's kubelet plugin on NODE: no error for the claim",
    fix=Fix(
        steps=(
            "read the driver's error in its kubelet plugin's log on NODE",
            "restart the plugin's pod where it holds an old picture of devices or CDI files",
        ),
        risk="running pods are not touched",
        rollback="nothing to undo",
    ),
    verify=_PREPARED,
    sources=_DRIVER,
)

_SHARP = (
    "dra.driver_unregistered",
    "dra.domain_not_ready",
    "dra.mig_refused",
    "dra.api_absent",
    "dra.claim_missing",
    "dra.domain_mixed",
    "dra.sharing_fails",
    "dra.config_invalid",
    "dra.settings_refused",
    "dra.not_allocatable",
    "dra.checkpoint",
    "vfio.not_switched",
)
_KNOWN_ELSEWHERE = ("cdi", "empty device edits", "checkpoint")  # layers below name these


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("dra.driver_unregistered")):
        yield UNREGISTERED.finding(
            f"DRA driver {value(found[0], 'driver')} is not registered with the kubelet.",
            LIKELY,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(facts.said("dra.file_denied")):
        yield DENIED.finding(
            f"The driver may not write {value(found[0], 'path', 'its file')}.", LIKELY, found, node=node, pod=pod
        )
    yield from heard(
        facts,
        MIG,
        ("dra.mig_refused",),
        "The slices for the profile are held by instances that the driver does not own, or the GPU has no such "
        "profile.",
        LIKELY,
    )
    yield from heard(
        facts, CHECKPOINT, ("dra.checkpoint",), "The plugin's checkpoint is damaged or of another version.", LIKELY
    )
    for node, pod, found in by_place(facts.said("dra.sharing_fails")):
        what = value(found[0], "what") or ("multi-user MPS" if value(found[0], "users") else "MPS")
        yield SHARING.finding(f"The driver cannot set up {what}.", LIKELY, found, node=node, pod=pod)
    settings = {said.origin.text for said in facts.said("dra.settings_refused", "dra.not_allocatable")}
    invalid = [said for said in facts.said("dra.config_invalid") if said.origin.text not in settings]
    for node, pod, found in by_place(invalid):
        why = value(found[0], "why")
        cause = f"The driver does not take the configuration of the claim{': ' + why[:160] if why else ''}."
        yield CONFIG.finding(cause, LIKELY, found, node=node, pod=pod)
    if not any(True for _ in facts.said(*_SHARP)):
        for node, pod, found in by_place(facts.said("dra.prepare_failed")):
            text = " ".join(said.origin.text for said in found).lower()
            is_vfio = "uuid: not found" in text and _is_with_vfio(facts)
            sure = POSSIBLE if not any(word in text for word in _KNOWN_ELSEWHERE) else POSSIBLE - 0.1
            yield PREPARE.finding(
                f"The node cannot prepare the claim. {value(found[0], 'why')[:160]}".rstrip(),
                sure,
                found,
                node=node,
                pod=pod,
                cause_class="passthrough" if is_vfio else None,
            )


def _is_with_vfio(facts: Facts) -> bool:
    """NVML does not see a device that vfio has: a claim of one that is bound already cannot be prepared anew."""
    return any(one.driver.startswith("vfio") for one in facts.of(PciSeen)) or any(facts.said("vfio."))


RULE = Rule((UNREGISTERED, MIG, DENIED, SHARING, CHECKPOINT, CONFIG, PREPARE), find)
