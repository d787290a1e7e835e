"""L4. Feature discovery: labels that are not written, or say less than there is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen

NO_LABELS = Code(
    name="NoGpuLabels",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.LabelsMissing,
    title="GPU Feature Discovery runs and writes no labels",
    meaning="Pods that select a GPU by its labels wait, and components that need them (MIG manager, MPS daemon) stay "
    "away.",
    known_by="'No valid resources detected, no labels will be created': it sees no GPU in its container.",
    disproved_by="nvidia.com/gpu.product is on the node.",
    counter_check="kubectl get node NODE -L nvidia.com/gpu.product,nvidia.com/gpu.count: values",
    fix=Fix(
        steps=("start it with the NVIDIA runtime: runtimeClassName: nvidia, or nvidia as the default handler",
               "it came before the driver: delete its pod once the driver is there",
               "a node without GPUs: nothing to mend"),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("label nvidia.com/gpu.product appears within a minute",),
    sources=("k8s-device-plugin cmd/gpu-feature-discovery, internal/lm", "gpu-feature-discovery issues 36, 71, 75"),
)  # fmt: skip

NOT_WRITTEN = Code(
    name="GpuLabelsNotWritten",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.LabelsMissing,
    title="labels were found out and cannot be handed on",
    meaning="GPU Feature Discovery cannot write its file or its NodeFeature object, or Node Feature Discovery does not "
    "read it.",
    known_by="An error on features.d/gfd, or on nodefeatures.nfd.k8s-sigs.io (forbidden, not found).",
    disproved_by="The labels are on the node.",
    counter_check="kubectl get node NODE --show-labels | tr , '\\n' | grep nvidia.com/gpu: the labels are there",
    fix=Fix(
        steps=("object forbidden or kind unknown: install the NFD CRDs and the RBAC of the same chart version",
               "file: mount /etc/kubernetes/node-feature-discovery/features.d into both, writable for discovery",
               "restart nfd-master and gpu-feature-discovery"),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("label nvidia.com/gpu.product appears within a minute",),
    sources=("Node Feature Discovery documentation: local source, NodeFeature API",),
)  # fmt: skip

MODELS_DIFFER = Code(
    name="ModelsDifferOnNode",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Warning,
    effect=Effect.LabelsMissing,
    title="a node has GPUs of several models, and its labels name one",
    meaning="A pod that selects by product or memory may get another model: labels are per node, devices are not "
    "chosen by them.",
    known_by="'Multiple device types detected'.",
    disproved_by="All models do for the pods that come there.",
    counter_check="on NODE: nvidia-smi --query-gpu=name --format=csv | sort | uniq -c: one model",
    fix=Fix(
        steps=("one model a node, or pods that take any of them",
               "choose devices by resource claims (attributes of the device) instead of labels"),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("nvidia-smi on NODE: one model, or claims in use",),
    sources=("k8s-device-plugin internal/lm", "gpu-feature-discovery issue 66"),
)  # fmt: skip

NFD_MISSING = Code(
    name="NfdLabelsMissing",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Error,
    effect=Effect.OperandsHeldBack,
    title="Node Feature Discovery's labels are missing: the operator sees no GPU node",
    meaning="The operator deploys its components only on nodes with feature.node.kubernetes.io/pci-10de.present=true; "
    "without it nothing happens, and nothing is reported.",
    known_by="The operator finds no GPU node or no kernel version among the labels, or the PCI labels have another "
    "form (pci-0302_10de.present).",
    disproved_by="The node has feature.node.kubernetes.io/pci-10de.present=true.",
    counter_check="kubectl get node NODE --show-labels | tr , '\\n' | grep -e pci-10de -e kernel-version.full: both",
    fix=Fix(
        steps=("does nfd-worker run on NODE? It must tolerate the node's taints (its chart default tolerates only "
               "nvidia.com/gpu=present)",
               "one NFD in the cluster; with deviceLabelFields: [vendor] and deviceClassWhitelist with 03",
               "stopgap: kubectl label node NODE feature.node.kubernetes.io/pci-10de.present=true"),
        risk="the operator deploys driver and toolkit on the node",
        rollback="remove the label",
    ),
    verify=("kubectl get ds -n gpu-operator: DESIRED is the number of GPU nodes",),
    sources=("gpu-operator controllers/state_manager.go", "gpu-operator issues 78, 114, 149, 1469, k8s-device-plugin "
             "1934"),
)  # fmt: skip

STALE = Code(
    name="GpuLabelsStale",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Warning,
    effect=Effect.LabelsMissing,
    title="labels of GPUs are on a node that does not have these GPUs",
    meaning="Components are deployed and pods are sent where nothing is; labels survive a removed card, a renamed node "
    "or an uninstalled operator.",
    known_by="nvidia.com/gpu labels on a node without GPUs, or of another model than nvidia-smi shows.",
    disproved_by="lspci -d 10de: lists the devices.",
    counter_check="on NODE: lspci -d 10de:: as many devices as its labels say",
    fix=Fix(
        steps=(
            "remove what is no longer written: kubectl label node NODE nvidia.com/gpu.present- "
            "nvidia.com/gpu.product- …",
            "stale NodeFeature object or file of features.d: delete it, restart nfd-worker",
            "another card of the vendor (audio, NIC) made the PCI label: narrow deviceClassWhitelist to 0300, 0302",
        ),
        risk="components leave the node",
        rollback="set the labels again",
    ),
    verify=("the labels do not come back within five minutes",),
    sources=("gpu-operator issues 1274, 2495", "Node Feature Discovery documentation"),
)

SUFFIXED = Code(
    name="ProductLabelSuffixed",
    layer=Layer.L4,
    cause_class="node-labels",
    severity=Severity.Warning,
    effect=Effect.PodsWait,
    title="the product label has a suffix since GPUs are shared or partitioned",
    meaning="GPU Feature Discovery adds -SHARED with time slicing or MPS, and -MIG-<profile> with strategy single: "
    "pods that select the plain name wait.",
    known_by="nvidia.com/gpu.product ends in -SHARED or -MIG-…, and a selector asks for the name without it.",
    disproved_by="The selector has the operator In with both names.",
    counter_check="kubectl get node NODE -L nvidia.com/gpu.product; kubectl get pod POD -o "
    "jsonpath={.spec.nodeSelector}: the same name",
    fix=Fix(
        steps=(
            "select by nvidia.com/gpu.family or gpu.memory, or name both products in a node affinity",
            "renameByDefault: true keeps the product without -SHARED and renames the resource instead",
        ),
        risk="pods move to shared GPUs: they may get less than before",
        rollback="the former selector",
    ),
    verify=("the pod is placed",),
    sources=("k8s-device-plugin README: shared access, labels", "k8s-device-plugin internal/lm"),
)
_PCI_LABEL = "feature.node.kubernetes.io/pci-10de.present"


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("gfd.no_labels")).values():
        nvml = list(facts.said("plugin.no_nvml"))
        yield NO_LABELS.finding(
            "GPU Feature Discovery sees no GPU" + (": it cannot load NVML." if nvml else " in its container."),
            LIKELY,
            [*said, *nvml],
        )
    for said in by_node(facts.said("gfd.cannot_write")).values():
        is_right = any("forbidden" in one.origin.text for one in said)
        yield NOT_WRITTEN.finding(
            "The account may not write the NodeFeature object."
            if is_right
            else "The labels cannot be handed to Node Feature Discovery.",
            LIKELY,
            said,
            cause_class="permission" if is_right else None,
        )
    for said in by_node(facts.said("gfd.value_invalid")).values():
        yield NOT_WRITTEN.finding(
            f"{said_of(one.get('value') for one in said)} holds signs that a label's value may not have.", LIKELY, said
        )
    yield from _of_another_system(facts)
    for said in by_node(facts.said("gfd.models_differ")).values():
        models = said_of(one.get("models") for one in said)
        yield MODELS_DIFFER.finding(f"Several models on one node: {models}.", LIKELY, said)
    for said in by_node(facts.said("operator.nfd_absent")).values():
        yield NFD_MISSING.finding(
            "The operator finds no node that Node Feature Discovery calls one with GPUs.", LIKELY, said
        )
    refused = {said.origin.text for said in facts.said("admission.privileged")}  # that says more
    denied = [said for said in facts.said("operator.nfd_pod_denied") if said.origin.text not in refused]
    for said in by_node(denied).values():
        yield NFD_MISSING.finding("Node Feature Discovery itself does not work.", POSSIBLE, said)
    for said in by_node(facts.said("kai.memory_unknown")).values():
        yield NO_LABELS.finding(
            "The scheduler does not know how much memory the node's GPUs have: nvidia.com/gpu.memory is missing.",
            LIKELY,
            said,
        )
    for said in by_node(facts.said("gfd.product_suffix")).values():
        product = said_of(one.get("product") for one in said)
        yield SUFFIXED.finding(f"The node's product is {product}, and the pods select another name.", LIKELY, said)
    for said in by_node(facts.said("nfd.tainted_away")).values():
        yield NFD_MISSING.finding("Node Feature Discovery's worker does not run on the node.", LIKELY, said)
    for said in by_node(facts.said("nfd.other_label")).values():
        form = said_of(one.get("form") or one.get("form2") or one.get("form3") or one.get("form4") for one in said)
        if not any(_PCI_LABEL in one.labels for one in facts.of(NodeSeen)):
            yield NFD_MISSING.finding(
                f"The label has the form pci-{form}, which the operator does not know.", LIKELY, said
            )
    for said in by_node(facts.said("nfd.not_published")).values():
        yield NFD_MISSING.finding("Node Feature Discovery cannot publish or read what it found.", LIKELY, said)
    yield from _configured(facts)
    for said in by_node(facts.said("reported.nfd_missing")).values():
        yield NFD_MISSING.finding("Node Feature Discovery's label of the card is missing.", LIKELY, said)
    for said in by_node(facts.said("reported.labels_missing")).values():
        yield NO_LABELS.finding("Labels of the GPUs are missing on the node.", POSSIBLE, said)
    for said in by_node(facts.said("reported.count_zero")).values():
        yield NO_LABELS.finding("nvidia.com/gpu.count is 0: discovery saw no GPU in its container.", POSSIBLE, said)
    for said in by_node(facts.said("reported.labels_stale")).values():
        yield STALE.finding("Labels of GPUs are on a node that does not have them.", POSSIBLE, said)
    for said in by_node(facts.said("operator.sets_absent")).values():
        yield NFD_MISSING.finding("The operator takes the node for one without GPUs.", POSSIBLE, said)
    for said in by_node(facts.said("nfd.node_gone")).values():
        yield STALE.finding("Node Feature Discovery keeps objects of nodes that are gone.", POSSIBLE, said)
    for node in facts.of(NodeSeen):
        memory = node.labels.get("nvidia.com/gpu.memory", "")
        if memory.isdecimal() and int(memory) > _MOST_MIB:
            yield STALE.finding(
                f"nvidia.com/gpu.memory is {memory}: that is in bytes, as an older discovery wrote it; MiB are meant.",
                LIKELY,
                [node],
                node=node.name,
            )
        odd = [key for key in node.labels if "_10de" in key and key.startswith("feature.node.kubernetes.io/pci-")]
        if odd and _PCI_LABEL not in node.labels and "nvidia.com/gpu.present" not in node.labels:
            yield NFD_MISSING.finding(
                f"{odd[0]} is there in place of {_PCI_LABEL}: the operator does not know that form.",
                LIKELY,
                [node],
                node=node.name,
            )
        elif node.labels.get(_PCI_LABEL) == "true" and node.labels.get("nvidia.com/gpu.present") == "false":
            yield NFD_MISSING.finding(
                "nvidia.com/gpu.present=false contradicts the PCI label.", POSSIBLE, [node], node=node.name
            )


def _of_another_system(facts: Facts) -> Iterator[Answer]:
    """Labels of the system or kernel that the node ran before: images are chosen by them."""
    for node, labels in by_node(facts.said("nfd.system_label")).items():
        systems = [one for one in facts.said("node.system") if one.node == node]
        for name in ("version", "kernel"):
            written = {one.get(name).rstrip(".") for one in labels if one.get(name)}
            runs = {one.get(name).rstrip(".") for one in systems if one.get(name)}
            if len(written) == len(runs) == 1 and written != runs:
                yield STALE.finding(
                    f"The label says {written.pop()}, the node runs {runs.pop()}: discovery did not look since.",
                    LIKELY,
                    [*labels, *systems],
                )


def _configured(facts: Facts) -> Iterator[Answer]:
    """What the configuration of Node Feature Discovery makes of a GPU's label, where no node shows the right one."""
    if any(_PCI_LABEL in node.labels for node in facts.of(NodeSeen)):
        return
    for said in facts.said("nfd.label_fields"):
        fields = _listed(said.get("fields"))
        if fields and fields != ["vendor"]:
            form = "_".join(_EXAMPLE.get(field, field) for field in _ORDER if field in fields)
            yield NFD_MISSING.finding(
                f"deviceLabelFields is {', '.join(fields)}: the label becomes pci-{form}.present, and the operator "
                f"looks for pci-10de.present.",
                POSSIBLE,
                [said],
            )
    for said in facts.said("nfd.device_classes"):
        classes = _listed(said.get("classes"))
        if classes and not any(one in ("03", "0300", "0302") for one in classes):
            yield NFD_MISSING.finding(
                f"deviceClassWhitelist is {', '.join(classes)}: no class of GPUs (03, 0300, 0302) is among them.",
                POSSIBLE,
                [said],
            )


_MOST_MIB = 4 * 2**20  # 4 TiB: no card has as much
# The parts of a label come in this order, whatever the order of the fields.
_ORDER = ("class", "vendor", "device", "subsystem_vendor", "subsystem_device")
_EXAMPLE = {"class": "0302", "vendor": "10de", "device": "<device>"}


def _listed(yaml: str) -> list[str]:
    """Items of a list in either form of YAML, without those that are comments."""
    kept = "\n".join(line.partition("#")[0] for line in yaml.splitlines())
    return re.findall(r"\w+", kept)


RULE = Rule((NO_LABELS, NOT_WRITTEN, MODELS_DIFFER, SUFFIXED, NFD_MISSING, STALE), find)
