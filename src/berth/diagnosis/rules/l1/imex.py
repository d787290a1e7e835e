"""L1. IMEX, which shares GPU memory between the machines of an NVLink domain, is not up."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

IMEX = Code(
    name="ImexDown",
    layer=Layer.L1,
    cause_class="fabric",
    severity=Severity.Error,
    effect=Effect.FabricDown,
    title="the IMEX domain is not up",
    meaning="Memory cannot be shared between machines over NVLink: multi-node programs fail at the import of a handle, "
    "or NCCL falls back to the network. Programs of one machine are not touched.",
    known_by="The daemon fails, its domain is not UP, or nodes have different versions.",
    disproved_by="`nvidia-imex-ctl -N` shows all nodes READY and the matrix connected.",
    counter_check="on NODE: systemctl is-active nvidia-imex: active; nvidia-imex-ctl -N: every node of "
    "nodes_config.cfg READY and connected",
    fix=Fix(
        steps=(
            "the same list of addresses on all nodes (nodes_config.cfg), the same version as the driver",
            "port 50000 open between them; then restart nvidia-imex on all of them",
            "Kubernetes: ComputeDomains start their own daemons; then nvidia-imex of the host has to be masked",
        ),
        risk="programs that share memory over the domain end",
        rollback="the former configuration",
    ),
    verify=("nvidia-imex-ctl -N: Domain State UP", "nvbandwidth -t multinode_device_to_device_memcpy_read_ce: runs"),
    sources=("NVIDIA IMEX guide", "NVIDIA DRA driver, ComputeDomains"),
)


def find(facts: Facts) -> Iterator[Answer]:
    versions = list(facts.said("imex.version_mismatch"))
    failed = list(facts.said("imex.daemon_failed"))
    domain = list(facts.said("imex.domain_not_up"))
    refused = list(facts.said("imex.memory_refused"))
    if refused and not (versions or failed or domain):
        yield IMEX.finding("The daemons run, and do not give out each other's memory.", POSSIBLE, refused)
    if versions or failed or domain:
        state = next((said.get("state") for said in domain if said.get("state")), "")
        yield IMEX.finding(
            "Its nodes have different versions."
            if versions
            else f"The domain is {state}."
            if state
            else "The daemon does not run.",
            LIKELY if versions or failed else POSSIBLE,
            [*versions, *failed, *domain, *refused],
        )


RULE = Rule((IMEX,), find)
