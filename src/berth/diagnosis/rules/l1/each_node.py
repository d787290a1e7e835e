"""A driver is of one node: what is known of a cluster is asked node by node, so that one node's words prove nothing of
another's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar
from weakref import WeakKeyDictionary

from berth.diagnosis.finding import Answer, Rule
from berth.evidence.fact import Fact, Said
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen, PodSeen
from berth.evidence.formats.machine_facts import KernelDriver, ModulesSeen, PciSeen
from berth.evidence.formats.smi_facts import DeviceSeen

SENTENCES = (
    "driver.", "modprobe.", "nvml.", "nvidia_smi.", "fabric.", "imex.", "selinux.", "apparmor.", "seccomp.",
    "secure_boot.", "security.", "cdi.", "amd.", "cuda.system_not_ready", "cuda.unknown", "kernel.driver_version",
    "toolkit.major_unknown", "mig.", "kernel.adapter_init", "kernel.wpr2", "kernel.gsp_boot",
    "runtime.said_not_injected", "runtime.cli_source_missing", "runtime.package_unavailable",
)  # fmt: skip
KINDS = (DeviceSeen, NodeSeen, PodSeen, PciSeen, ModulesSeen, KernelDriver)

Kind = TypeVar("Kind", bound=Fact)


class _OfNode(Facts):
    """One node's facts, which know whether anything was read from them."""

    was_read = False

    def of(self, kind: type[Kind]) -> list[Kind]:
        found = super().of(kind)
        self.was_read |= bool(found)
        return found

    def __iter__(self) -> Iterator[Fact]:
        self.was_read = True
        return super().__iter__()

    def __len__(self) -> int:
        self.was_read = True
        return super().__len__()


_Find = Callable[[Facts], Iterable[Answer]]
_split: WeakKeyDictionary[Facts, dict[str, Facts]] = WeakKeyDictionary()
_quiet: WeakKeyDictionary[Facts, tuple[list[Facts], list[list[_OfNode]]]] = WeakKeyDictionary()


def each_node(rule: Rule) -> Rule:
    """The same rule, asked of each node's facts."""

    def find(facts: Facts) -> Iterator[Answer]:
        heard, quiet = _by_silence(facts)
        for of_node in heard:
            yield from rule.find(of_node)
        for alike in quiet:
            for silent in alike:
                silent.was_read = False
                yield from rule.find(silent)
                # What it answered came of what is not there, and all the others lack that as well.
                if not silent.was_read:
                    break

    return Rule(rule.codes, find)


def _by_silence(facts: Facts) -> tuple[list[Facts], list[list[_OfNode]]]:
    """Nodes of which a sentence was read, and the others by the kinds of facts that they have: a large cluster has
    thousands that differ in nothing."""
    if (known := _quiet.get(facts)) is not None:
        return known
    heard: list[Facts] = []
    quiet: dict[tuple[bool, ...], list[_OfNode]] = {}
    for of_node in by_node(facts).values():
        if isinstance(of_node, _OfNode) and not isinstance(next(iter(of_node), None), Said):  # sentences come first
            quiet.setdefault(tuple(bool(of_node.of(kind)) for kind in KINDS), []).append(of_node)
        else:
            heard.append(of_node)
    _quiet[facts] = heard, list(quiet.values())
    return _quiet[facts]


def by_node(facts: Facts) -> dict[str, Facts]:
    """Facts of layer 1 by node. What names no node is of the only one that is named, else a place of its own."""
    if (known := _split.get(facts)) is not None:
        return known
    found: dict[str, Facts] = {}
    for said in facts.said(*SENTENCES):
        found.setdefault(said.node, _OfNode(kinds=facts.kinds)).add(said)
    for kind in KINDS:
        for fact in facts.of(kind):
            if (of_node := found.get(fact.node)) is None:
                of_node = found[fact.node] = _OfNode(kinds=facts.kinds)
            of_node.add(fact)
    named = [node for node in found if node]
    if len(named) == 1 and "" in found:
        for fact in found.pop(""):
            found[named[0]].add(fact)
    _split[facts] = found
    return found
