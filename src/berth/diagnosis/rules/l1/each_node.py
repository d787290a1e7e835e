"""A driver is of one node: what is known of a cluster is asked node by node, so that one node's words prove nothing of
another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from weakref import WeakKeyDictionary

from berth.diagnosis.finding import Answer, Rule
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen, PodSeen
from berth.evidence.formats.machine_facts import KernelDriver, ModulesSeen, PciSeen
from berth.evidence.formats.smi_facts import DeviceSeen

SENTENCES = (
    "driver.", "modprobe.", "nvml.", "nvidia_smi.", "fabric.", "imex.", "selinux.", "apparmor.", "seccomp.",
    "secure_boot.", "security.", "cdi.", "cuda.system_not_ready", "cuda.unknown", "kernel.driver_version",
    "toolkit.major_unknown", "mig.", "kernel.adapter_init", "kernel.wpr2", "kernel.gsp_boot",
    "runtime.said_not_injected", "runtime.cli_source_missing", "runtime.package_unavailable",
)  # fmt: skip
KINDS = (DeviceSeen, NodeSeen, PodSeen, PciSeen, ModulesSeen, KernelDriver)

_Find = Callable[[Facts], Iterable[Answer]]
_split: WeakKeyDictionary[Facts, dict[str, Facts]] = WeakKeyDictionary()


def each_node(rule: Rule) -> Rule:
    """The same rule, asked of each node's facts."""

    def find(facts: Facts) -> Iterator[Answer]:
        for of_node in by_node(facts).values():
            yield from rule.find(of_node)

    return Rule(rule.codes, find)


def by_node(facts: Facts) -> dict[str, Facts]:
    """Facts of layer 1 by node. What names no node is of the only one that is named, else a place of its own."""
    if (known := _split.get(facts)) is not None:
        return known
    found: dict[str, Facts] = {}
    for said in facts.said(*SENTENCES):
        found.setdefault(said.node, Facts(kinds=facts.kinds)).add(said)
    for kind in KINDS:
        for fact in facts.of(kind):
            found.setdefault(fact.node, Facts(kinds=facts.kinds)).add(fact)
    named = [node for node in found if node]
    if len(named) == 1 and "" in found:
        for fact in found.pop(""):
            found[named[0]].add(fact)
    _split[facts] = found
    return found
