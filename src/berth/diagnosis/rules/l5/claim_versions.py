"""L5. NVIDIA's driver for claims on a Kubernetes or a GPU driver that is older than it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.versions import claims
from berth.diagnosis.versions.number import is_below, number
from berth.diagnosis.versions.seen import ImageOn, images, origins, seen
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen

TOO_OLD = Code(
    name="ClaimDriverFloorMissed",
    layer=Layer.L5,
    cause_class="version-mismatch",
    severity=Severity.Warning,
    effect=Effect.ClaimsUnprepared,
    title="the driver for resource claims needs a newer Kubernetes or GPU driver than the node has",
    meaning="The DRA driver for NVIDIA GPUs publishes devices by an API that Kubernetes serves from 1.32 on (by "
    "default from 1.34), and asks the GPU driver for what branch 565 brought. Without them it offers nothing, and "
    "claims wait.",
    known_by="The image of the DRA driver, the kubelet's version and the node's driver.",
    disproved_by="kubectl get resourceslices lists the node's GPUs.",
    counter_check="kubectl get resourceslices: the GPUs of NODE are there",
    fix=Fix(
        steps=(
            "Kubernetes 1.34 or newer; with 1.32 and 1.33 switch the gate DynamicResourceAllocation and the API on",
            "a GPU driver from 565 on for GPUs, from 570.158.01 on for ComputeDomains",
            "until then: the device plugin on these nodes",
        ),
        risk="upgrades of control plane, kubelets and driver",
        rollback="the device plugin",
    ),
    verify=("kubectl get resourceslices: one of gpu.nvidia.com for each GPU node",),
    sources=("dra-driver-nvidia-gpu, docs/prerequisites.md", "Kubernetes documentation: set up DRA in a cluster"),
)

_IMAGE = re.compile(r"dra-driver-(?:nvidia-)?gpu:v\d")


def find(facts: Facts) -> Iterator[Answer]:
    """One finding for a version that is too old, however many nodes have it."""
    if any(one.kind == "ResourceSlice" and "nvidia.com" in str(one.body.get("spec")) for one in facts.of(ObjectSeen)):
        return  # it publishes devices
    told = set[str]()
    for image in images(facts, _IMAGE.search):
        # Releases before 25 were made for the classic API of older clusters; after 25.12 came 0.4.
        version = number(image.image.rpartition(":")[2])
        if image.node and (version[:1] >= (25,) or (0, 4) <= version[:2] < (0, 100)):
            yield from _at(facts, image, told)


def _at(facts: Facts, image: ImageOn, told: set[str]) -> Iterator[Answer]:
    node = seen(facts).kubelets.get(image.node)
    driver = seen(facts).driver(image.node)
    if node is not None and not claims.has_api(node.kubelet) and node.kubelet not in told:
        told.add(node.kubelet)
        yield TOO_OLD.finding(
            f"The kubelet is {node.kubelet}; the DRA driver needs Kubernetes {claims.GPUS.kubernetes} or newer.",
            LIKELY,
            origins(image, node),
            node=image.node,
        )
    elif driver is not None and is_below(driver.version, claims.GPUS.driver) and driver.version not in told:
        told.add(driver.version)
        yield TOO_OLD.finding(
            f"The node's driver is {driver.version}; the DRA driver needs {claims.GPUS.driver} or newer for GPUs and "
            f"{claims.COMPUTE_DOMAINS.driver} for ComputeDomains.",
            LIKELY,
            origins(image, driver),
            node=image.node,
        )


RULE = Rule((TOO_OLD,), find)
