"""L3. The kubelet's side of resource claims: what a driver's plugin refuses, and claims that are not let go."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

SETTINGS = Code(
    name="DraPluginSettingsRefused",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the claims' driver refuses its settings, or was not told to do what a claim asks for",
    meaning="Gates of the driver exclude or require each other; sharing, partitions on demand and passthrough each "
    "have one. With the wrong set the plugin ends at its start, or a claim that asks for such a thing is never "
    "prepared.",
    known_by="The plugin names a gate, a flag or a strategy that it does not take.",
    disproved_by="A later start with the same values succeeds, and the claim is prepared.",
    counter_check="kubectl -n <namespace> get ds -o yaml | grep -i -A1 FEATURE_GATES: the gate that the words name",
    fix=Fix(
        steps=(
            "sharing in a claim: featureGates.TimeSlicingSettings or featureGates.MPSSupport of the chart to true",
            "gates that exclude each other (DynamicMIG, PassthroughSupport, health checks): choose one",
            "a flag: the value that the words name",
        ),
        risk="the plugin restarts; prepared claims stay",
        rollback="the former values",
    ),
    verify=("kubectl get resourceslices: one of gpu.nvidia.com for NODE", "a new pod with the claim starts"),
    sources=("dra-driver-nvidia-gpu pkg/featuregates, cmd/gpu-kubelet-plugin/main.go, api/nvidia.com/resource",),
)

HOST_UNSEEN = Code(
    name="DraPluginHostUnseen",
    layer=Layer.L3,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the claims' driver does not see a path of the host that it needs",
    meaning="Passthrough needs the host's root in the plugin's container, and the plugin copies its hook to the "
    "kubelet's directory. Without them it ends at its start.",
    known_by="The plugin says that the host's root is not mounted, or that its hook could not be set up.",
    disproved_by="The mount is in the running pod.",
    counter_check="kubectl -n <namespace> get ds -o yaml | grep -A3 hostPath: the path that the words name",
    fix=Fix(
        steps=(
            "the chart of the same release as the image: its mounts belong to it",
            "an own manifest: mount / of the host at /host-root, and the kubelet's plugins directory writable",
        ),
        risk="the plugin restarts",
        rollback="the former manifest",
    ),
    verify=("kubectl get resourceslices: one of gpu.nvidia.com for NODE",),
    sources=("dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/main.go",),
)

SLICE = Code(
    name="ResourceSliceRefused",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CapacityMissing,
    title="the API server refuses the devices that a claims' driver publishes",
    meaning="Nothing of the node is offered as long as the ResourceSlice is not accepted. The driver describes "
    "something that its devices do not have (partitions on GPUs without MIG), or that the API server does not know or "
    "allow.",
    known_by="'ResourceSlice … is invalid' or 'forbidden' when the driver publishes.",
    disproved_by="kubectl get resourceslices lists the node's devices.",
    counter_check="kubectl get resourceslices --field-selector spec.nodeName=NODE: devices of the driver",
    fix=Fix(
        steps=(
            "'is invalid': look at the field that is named; switch the gate off that asks for it (DynamicMIG on GPUs "
            "without MIG), or take a driver that fits the cluster's release",
            "'is forbidden': apply the ClusterRole and binding of the driver's chart",
        ),
        risk="the plugin restarts; prepared claims stay",
        rollback="the former values",
    ),
    verify=("kubectl get resourceslices: one of the driver for NODE",),
    sources=("k8s.io/dynamic-resource-allocation/resourceslice", "dra-driver-nvidia-gpu issue 1092"),
)

KEPT = Code(
    name="ClaimNotLetGo",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.AccountStale,
    title="the kubelet cannot take back a pod's claims",
    meaning="The pod stays in Terminating, its devices stay taken, and the kubelet tries again and again: it does not "
    "find the claim's name or the driver that prepared it.",
    known_by="'unprepare dynamic resources' with an error, again and again.",
    disproved_by="The pod goes by itself within a minute.",
    counter_check="kubectl get pod POD -n NAMESPACE -o yaml | grep -A4 resourceClaimStatuses: the claims' names; "
    "kubectl get pods -A -o wide | grep kubelet-plugin: Running on NODE",
    fix=Fix(
        steps=(
            "the driver is not there: start its plugin on NODE; the kubelet goes on by itself",
            "the pod's status names no claims (a client of an older API wrote it over): delete the pod with "
            "--grace-period=0 --force, then restart the kubelet",
            "update whoever writes pods' status as a whole",
        ),
        risk="a device that is still in use may be given away",
        rollback="nothing to undo",
    ),
    verify=("the pod is gone, and kubectl get resourceclaim shows no reservedFor of it",),
    sources=("kubernetes pkg/kubelet/cm/dra/manager.go: UnprepareResources", "kubernetes issue 139772"),
)

_WHY = ("why", "why2", "why3", "why4", "why5")


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("dra.settings_refused")).values():
        why = said_of(next((one.get(name) for name in _WHY if one.get(name)), "") for one in said)
        strategy = said_of(one.get("strategy") for one in said)
        yield SETTINGS.finding(
            f"The driver does not know the strategy {strategy}: its gate is off."
            if strategy
            else f"The driver refuses its settings{f': {why[:200]}' if why else ''}.",
            LIKELY,
            said,
        )
    for said in by_node(facts.said("dra.host_unmounted")).values():
        path = said_of(one.get("path") for one in said)
        yield HOST_UNSEEN.finding(f"Not in the plugin's container: {path or 'its hook'}.", LIKELY, said)
    for said in by_node(facts.said("dra.slice_refused")).values():
        why = said_of(one.get("why") for one in said)
        yield SLICE.finding(f"The API server refuses the slice: {why[:200]}.", LIKELY, said)
    for said in by_node(facts.said("dra.slices_forbidden")).values():
        account = said_of(one.get("account") for one in said)
        yield SLICE.finding(f"{account} may not write slices.", LIKELY, said, cause_class="permission")
    for said in by_node(facts.said("kubelet.claim_kept")).values():
        why = said_of(one.get("why") or one.get("why2") for one in said)
        yield KEPT.finding(f"The kubelet fails to unprepare: {why[:160]}.", LIKELY, said)


RULE = Rule((SETTINGS, HOST_UNSEEN, SLICE, KEPT), find)
