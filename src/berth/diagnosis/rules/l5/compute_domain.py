"""L5. Compute domains: nodes that share memory over NVLink by their IMEX daemons."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.trap import trap
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import ObjectSeen

_DRIVER = ("kubernetes-sigs/dra-driver-nvidia-gpu, kubelet plugins",)
_PREPARED = ("kubectl get resourceclaim -n NAMESPACE: allocated,reserved", "kubectl get pod POD -n NAMESPACE: Running")

DOMAIN = Code(
    name="ComputeDomainNotReady",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="the node is not ready in its compute domain",
    meaning="The IMEX daemon of the domain does not see its peers or is not up. Pods of the domain wait at the "
    "preparation of their channel.",
    known_by="FailedPrepareDynamicResources: current node not ready in ComputeDomain, or the daemon's pod is not "
    "ready.",
    disproved_by="The ComputeDomain's status lists the node as Ready.",
    counter_check="kubectl get computedomain -n NAMESPACE -o yaml: every node Ready; nvidia-imex-ctl -N in the "
    "daemon's pod: UP",
    fix=Fix(
        steps=(
            "log of the IMEX daemon's pod on NODE: peers that are not reached, version mismatch",
            "all nodes of one clique (label nvidia.com/gpu.clique); port 50000 and 50005 open between them; the "
            "host's own nvidia-imex off",
        ),
        risk="a restart of the daemon ends the domain's jobs",
        rollback="nothing to undo",
    ),
    verify=("kubectl get computedomain -n NAMESPACE: Ready", *_PREPARED),
    sources=_DRIVER,
)
MIXED = Code(
    name="ComputeDomainMixedUp",
    layer=Layer.L5,
    cause_class="dra",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="a claim of a channel does not go with the node's compute domain",
    meaning="A node belongs to one domain at a time, a claim lives in the namespace of its domain, and one channel of "
    "a node goes to one pod. Otherwise the driver does not prepare the claim.",
    known_by="The driver: label of a different ComputeDomain, another namespace, more channels than the node has.",
    disproved_by="The former domain is deleted by now and its label gone.",
    counter_check="kubectl get node NODE -L resource.nvidia.com/computeDomain; kubectl get computedomain -A: the "
    "same uid",
    fix=Fix(
        steps=(
            "another domain on the node: end its pods and delete that ComputeDomain; a label that stays behind: "
            "kubectl label node NODE resource.nvidia.com/computeDomain-",
            "take the ResourceClaimTemplate that the ComputeDomain made, in its own namespace",
            "more channels than one: channel.allocationMode: All, in one pod a node",
        ),
        risk="deleting a domain ends its jobs",
        rollback="make the domain again",
    ),
    verify=_PREPARED,
    sources=("dra-driver-nvidia-gpu, cmd/compute-domain-kubelet-plugin",),
)
HOST_IMEX = trap(
    "ImexOfHostUnused",
    Layer.L4,
    Effect.BlindMonitoring,
    "DCGM calls the host's IMEX unhealthy where compute domains bring their own",
    meaning="DCGM asks the service nvidia-imex of the host. Where the DRA driver starts an IMEX daemon for each "
    "compute domain that service is off on purpose, and domains work.",
    known_by="DCGM_FR_IMEX_UNHEALTHY, and compute domains or resource claims are in use.",
    disproved_by="A domain is not Ready, or jobs fail to import memory of other nodes.",
    counter_check="kubectl get computedomain -A: Ready; nvidia-imex-ctl -N in the daemon's pod: UP",
    sources=("DCGM issue 308", "dra-driver-nvidia-gpu documentation: prerequisites"),
    steps=("leave IMEX out of DCGM's health watches on these nodes",),
)


def find(facts: Facts) -> Iterator[Answer]:
    unwell = list(facts.said("dcgm.imex_unhealthy"))
    by_claims = unwell and list(facts.said("dra.in_use"))
    if by_claims and not any(facts.said("dra.domain_not_ready")):
        yield HOST_IMEX.finding("DCGM looks at the IMEX service of the host.", LIKELY, [*unwell, *by_claims])
    for node, pod, found in by_place(facts.said("dra.domain_mixed")):
        cause = (
            "The node still belongs to another compute domain."
            if value(found[0], "other")
            else "Claim and compute domain are in different namespaces."
            if value(found[0], "namespace")
            else "The node has not the channels that are asked for: another pod on it has them."
        )
        yield MIXED.finding(cause, LIKELY, found, node=node, pod=pod)
    for node, pod, found in by_place(facts.said("dra.domain_not_ready")):
        seen, wanted = value(found[0], "seen"), value(found[0], "wanted")
        if seen and seen == wanted:
            continue
        cause = (
            f"The domain waits for {wanted} nodes, {seen} have come: do as many pods with its claim run?"
            if seen
            else "The IMEX daemon of the domain is not ready on the node: peers, clique, names or ports."
        )
        yield DOMAIN.finding(cause, LIKELY, found, node=node, pod=pod)
    if not any(facts.said("dra.domain_not_ready")):
        yield from _by_status(facts)


def _by_status(facts: Facts) -> Iterator[Answer]:
    for one in facts.of(ObjectSeen):
        status, spec = one.body.get("status"), one.body.get("spec")
        if one.kind != "ComputeDomain" or not isinstance(status, dict) or status.get("status") != "NotReady":
            continue
        nodes = [node for node in status.get("nodes") or () if isinstance(node, dict)]
        ready = sum(node.get("status") == "Ready" for node in nodes)
        wanted = spec.get("numNodes") if isinstance(spec, dict) else None
        cause = f"{len(nodes)} nodes have come to the domain, {ready} of them are ready"
        cause += f"; {wanted} are wanted: do as many pods with its claim run?" if wanted else "."
        yield DOMAIN.finding(cause, POSSIBLE, [one])


RULE = Rule((DOMAIN, MIXED, HOST_IMEX), find)
