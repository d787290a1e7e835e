"""L4, L1. What the operator's own controllers say: no API server, drivers that claim one node, upgrades that stop."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l1.driver_in_use import STUCK
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

API_UNREACHED = Code(
    name="ApiServerNotReached",
    layer=Layer.L4,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="a component does not reach the API server in time",
    meaning="The operator ends when it cannot renew its lease, and begins anew; discovery, drivers and plugins that "
    "ask the API server fail alike. What runs goes on, nothing new is deployed meanwhile.",
    known_by="Leader election lost, a lease that is not renewed, or a time-out of the service's address.",
    disproved_by="The log goes on after it: a short outage (an upgrade of the control plane, a restart of the node).",
    counter_check="from a pod on NODE: curl -k https://kubernetes.default.svc/healthz: ok, within a second",
    fix=Fix(
        steps=(
            "now and then, with other controllers: a slow etcd or API server; look at its latency and at what lists "
            "whole clusters",
            "always, on one node: CNI, kube-proxy or a firewall between the pod and the service's address",
            "after a restart of a machine whose control plane runs on it: it recovers by itself",
        ),
        risk="none by looking",
        rollback="nothing to undo",
    ),
    verify=("kubectl get pod -n gpu-operator: no restarts within an hour",),
    sources=("client-go, tools/leaderelection", "gpu-operator issue 772, pull request 2767"),
)

SELECTORS = Code(
    name="DriverSelectorsConflict",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="not exactly one NVIDIADriver selects the node",
    meaning="The operator deploys one driver a node. Where several NVIDIADriver objects select a node it deploys none "
    "of them anew; where none does the node gets no driver.",
    known_by="The operator: conflicting node selectors, several that match a node, or no nodes that match.",
    disproved_by="Each GPU node matches the selector of one NVIDIADriver.",
    counter_check="kubectl get nvidiadriver -o custom-columns=N:.metadata.name,S:.spec.nodeSelector; kubectl get node "
    "-l nvidia.com/gpu.present=true --show-labels: one for each",
    fix=Fix(
        steps=(
            "give each NVIDIADriver a nodeSelector of its own, and nodes the labels; one without a selector takes all",
            "no node matches: labels of the nodes (nvidia.com/gpu.present comes from discovery), spelling",
        ),
        risk="a node that changes its NVIDIADriver gets another driver: its GPU pods end",
        rollback="the former selectors",
    ),
    verify=("kubectl get nvidiadriver: ready",),
    sources=("gpu-operator internal/validator, internal/state/driver.go", "gpu-operator issue 961"),
)

SETTINGS = Code(
    name="OperatorSettingsContradict",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator refuses settings that do not go together",
    meaning="Before it deploys anything the operator checks ClusterPolicy and NVIDIADriver. Where two settings exclude "
    "each other it stops, and everything stays as it was.",
    known_by="ClusterPolicy validation failed, or an error that names the two settings.",
    disproved_by="The object was changed since, and its state is ready.",
    counter_check="kubectl get clusterpolicy -o jsonpath='{.items[0].status.conditions}': no error; kubectl logs of "
    "the operator: no 'validation failed'",
    fix=Fix(
        steps=(
            "device plugin and DRA driver for GPUs: one of them (devicePlugin.enabled=false, or the GPU part of the "
            "DRA driver off)",
            "NRI plugin: cdi.enabled=true; NVIDIADriver objects: driver.useNvidiaDriverCRD=true",
            "GDS or GDRCopy: no precompiled drivers (usePrecompiled=false), and open modules "
            "(driver.kernelModuleType=open)",
            "DRA: a cluster that serves resource.k8s.io (1.34 and newer by default)",
        ),
        risk="a change of the driver's settings reinstalls drivers: pods with GPUs end",
        rollback="the former values",
    ),
    verify=("kubectl get clusterpolicy: ready",),
    sources=("gpu-operator internal/validator, internal/state", "gpu-operator issue 1541"),
)

UNMADE = Code(
    name="OperandNotMade",
    layer=Layer.L4,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator cannot complete the manifest of a component",
    meaning="The policy refers to something that is not there (a ConfigMap of certificates, of a repository, of module "
    "options) or sets what that component does not allow. Its DaemonSet is not made or not changed.",
    known_by="An error of the operator while it transforms a DaemonSet or mounts a ConfigMap.",
    disproved_by="A later reconciliation is ready with the same policy.",
    counter_check="kubectl get cm -n gpu-operator: the name of the message is there; kubectl get ds -n gpu-operator",
    fix=Fix(
        steps=(
            "make the ConfigMap in the operator's namespace, with the keys of the documentation, or take the reference "
            "out (driver.certConfig, driver.repoConfig, driver.kernelModuleConfig)",
            "precompiled drivers: repository, image and version, a tag and no digest",
            "custom runtime paths: operator.runtimeClass and toolkit.env as the runtime on the nodes needs",
        ),
        risk="a change of the driver's settings reinstalls drivers: pods with GPUs end",
        rollback="the former values",
    ),
    verify=("kubectl get clusterpolicy: ready",),
    sources=("gpu-operator controllers/object_controls.go", "GPU Operator documentation: custom driver parameters"),
)

TOOLKIT_UNUSED = Code(
    name="DriverToolkitUnusable",
    layer=Layer.L4,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="the operator cannot use OpenShift's driver toolkit",
    meaning="The driver is built in an image that the release brings for its kernel. Without that image, or without "
    "the label of the node's RHCOS version, the operator builds with packages that need an entitlement, or not at all.",
    known_by="An alert or error about DriverToolkit: Node Feature Discovery too old, image stream or tag missing.",
    disproved_by="Driver pods have a container openshift-driver-toolkit-ctr.",
    counter_check="oc get istag -n openshift | grep driver-toolkit; oc get node -o yaml | grep OSTREE_VERSION: one tag "
    "for each version",
    fix=Fix(
        steps=(
            "the Node Feature Discovery operator of the same OpenShift release",
            "image stream missing: a pull secret of the cluster that reads quay.io, a mirror that holds the release's "
            "driver-toolkit; oc import-image driver-toolkit -n openshift --all",
            "nodes of RHEL instead of RHCOS: operator.use_ocp_driver_toolkit=false, with an entitlement",
        ),
        risk="driver pods start anew",
        rollback="the former release of the operators",
    ),
    verify=("oc get pod -n nvidia-gpu-operator -l app=nvidia-driver-daemonset: 2/2",),
    sources=("gpu-operator controllers/state_manager.go: OCP driver toolkit", "gpu-operator issue 319"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("operator.api_unreached")).values():
        yield API_UNREACHED.finding("The API server did not answer in time.", POSSIBLE, said)
    for said in by_node(facts.said("operator.driver_selectors")).values():
        on = next((one for each in said if (one := value(each, "node"))), "")
        why = (
            "No node matches the selector of the NVIDIADriver."
            if all(one.get("none") for one in said)
            else f"Several NVIDIADriver objects select {on or 'the same node'}."
        )
        yield SELECTORS.finding(why, LIKELY, said, node=on)
    for said in by_node(facts.said("operator.settings_refused")).values():
        why = next((one.strip(" .") for each in said if (one := value(each, "why"))), "")
        no_api = any(one.get("api") for one in said) or "Dynamic Resource Allocation is not enabled" in why
        why = why or ("The cluster does not serve resource claims" if no_api else "Two settings exclude each other")
        yield SETTINGS.finding(f"{why[:200]}.", LIKELY, said, cause_class="version-mismatch" if no_api else None)
    for said in by_node(facts.said("operator.operand_unmade")).values():
        what = next((one for each in said if (one := value(each, "what"))), "")
        yield UNMADE.finding(f"{what or 'A part of the manifest'} cannot be had.", POSSIBLE, said)
    for said in by_node(facts.said("openshift.toolkit_missing")).values():
        too_old = any("nfd" in one.origin.text.lower() for one in said)
        yield TOOLKIT_UNUSED.finding(
            "Node Feature Discovery is too old for it." if too_old else "The image of the node's release is not there.",
            LIKELY,
            said,
        )
    labels = {said.origin.text for said in facts.said("driver.upgrade_state")}
    failed = [said for said in facts.said("operator.upgrade_failed") if said.origin.text not in labels]
    for said in by_node(failed).values():
        why = next((one.strip() for each in said if (one := value(each, "why"))), "")
        yield STUCK.finding(
            f"The upgrade controller cannot do its next step{': ' + why[:160] if why else ''}.", LIKELY, said
        )


RULE = Rule((API_UNREACHED, SELECTORS, SETTINGS, UNMADE, TOOLKIT_UNUSED), find)
