"""L0. NVSwitch: its SXids, from its driver or from Fabric Manager."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value, values
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Event
from berth.diagnosis.xid.story import story_of
from berth.diagnosis.xid.switches import is_corrected, is_fatal, made_by, switch_lines
from berth.diagnosis.xid.sxid import sxid
from berth.evidence.fact import Origin, Pci, Said, pci_of, pci_words
from berth.evidence.facts import Facts

_SOURCES = ("NVIDIA Fabric Manager guide, SXid errors", "open-gpu-kernel-modules, src/common/nvswitch")
_CHECK = "journalctl -k | grep SXid: no fatal one since the last reset; nvidia-smi nvlink -s: all links up"
_VERIFY = (
    "nvidia-smi -q | grep -A3 Fabric: Completed, Success on every GPU",
    "all_reduce_perf over all GPUs of the node: usual bandwidth, no new SXid",
)

FAULT = Code(
    name="NvSwitchFault",
    layer=Layer.L0,
    cause_class="fabric",
    severity=Severity.Critical,
    effect=Effect.FabricDown,
    title="an NVSwitch reports a fatal error",
    meaning="A link or the whole switch stopped to carry traffic. GPUs behind it show Xid 74 or 45, and their "
    "collectives hang.",
    known_by="A line `SXid (PCI:…): number, Fatal`, a number that the guide calls fatal, or a switch that its driver "
    "cannot start.",
    disproved_by="The line says Non-fatal and all links of the switch are up.",
    counter_check=_CHECK,
    fix=Fix(
        steps=(
            "kubectl cordon NODE, then drain it",
            "restart the machine, which resets all GPUs and switches of the fabric; then look that Fabric Manager runs",
            "the same port again: seating and cooling of baseboard and switches; nvidia-bug-report.sh to the vendor",
        ),
        risk="a restart ends everything on the node",
        rollback="kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
NON_FATAL = Code(
    name="NvSwitchErrorNotFatal",
    layer=Layer.L0,
    cause_class="fabric",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="an NVSwitch reports errors that are not fatal",
    meaning="The switch goes on. One access may have failed, and the link may be slower; many of these come before a "
    "fatal one.",
    known_by="SXids of which neither the line nor the guide says fatal, and which are more than a corrected bit.",
    disproved_by="They do not come again, and the links run at full speed.",
    counter_check=_CHECK,
    fix=Fix(
        ("watch whether they grow on the same port; look for Xid 74 and 45 of the GPU behind it",
         "GPUs behind it were torn down: reset GPUs and switches together, or restart the machine"),
        "a restart ends everything on the node",
        "nothing to undo",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)  # fmt: skip
CORRECTED = Code(
    name="NvSwitchErrorCorrected",
    layer=Layer.L0,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.CollectiveSlow,
    title="an NVSwitch corrected an error by itself",
    meaning="Single bits and repeated packets are mended by the hardware. The lines look like faults and ask for "
    "nothing.",
    known_by="Only SXids of corrected single bits, repeated packets or informational events.",
    disproved_by="They come many times a minute on one port, or a fatal SXid or Xid 74 stands beside them.",
    counter_check=_CHECK,
    fix=Fix(("leave the node in service; watch the port's error rate",), "none", "nothing to undo"),
    verify=_VERIFY,
    sources=_SOURCES,
    is_trap=True,
)


def find(facts: Facts) -> Iterator[Answer]:
    """The gravest of each switch."""
    by_switch: dict[tuple[str, Pci], list[Said]] = {}
    for said in switch_lines(facts):
        by_switch.setdefault((said.node, pci_of(said.get("pci"))), []).append(said)
    events = story_of(facts).events
    for (node, pci), lines in by_switch.items():
        fatal = [said for said in lines if is_fatal(said)]
        grave = fatal or [said for said in lines if not is_corrected(said)]
        made = made_by(grave, events)
        code = FAULT if fatal else NON_FATAL if grave else CORRECTED
        where = f"NVSwitch {pci_words(pci)}" if pci_words(pci) else "an NVSwitch"
        yield code.finding(
            f"{where[0].upper()}{where[1:]}: {_told(grave or lines)}.{_made(made)}",
            ESTABLISHED if fatal and lines[0].message != "kernel.sxid_named" else LIKELY,
            [*_first_of_each(grave or lines), *_first_of_each_code(made)],
            subject=f"{where} of node {node}" if node else where,
            node=node,
        )
    if not by_switch:
        yield from _by_dcgm(facts)
        yield from _by_driver(facts)


def _by_dcgm(facts: Facts) -> Iterator[Answer]:
    """What DCGM's health check says of a switch, where no line of the driver tells which error it was."""
    for said in facts.said("dcgm_health.switch_error"):
        is_fatal_one = not value(said, "fatality").lower().startswith("non")
        where = f"NVSwitch {said.get('switch')}" if said.get("switch") else "an NVSwitch"
        link = f" on link {said.get('link')}" if said.get("link") else ""
        yield (FAULT if is_fatal_one else NON_FATAL).finding(
            f"{where[0].upper()}{where[1:]}: DCGM counts {'fatal' if is_fatal_one else 'non-fatal'} errors{link}.",
            LIKELY,
            [said],
            subject=where,
        )


def _by_driver(facts: Facts) -> Iterator[Answer]:
    """A switch that does not start, or that an agent calls bad, without a number."""
    if dead := list(facts.said("nvswitch.not_started")):
        pci = next(iter(values(dead, "pci")), "")
        number = next((said.get("switch") for said in dead if said.get("switch")), "")
        where = f"NVSwitch {pci or number}".strip()
        yield FAULT.finding(f"{where}: its driver could not start it or gave it up.", LIKELY, dead, subject=where)
    if said_so := list(facts.said("nvswitch.agent_says")):
        yield FAULT.finding("A monitor on the node read a fatal error of an NVSwitch.", LIKELY, said_so)


def _made(made: Sequence[Event]) -> str:
    counts = Counter[int]()
    for one in made:
        counts[one.code] += one.times
    words = ", ".join(f"Xid {code}" + (f" ({times} times)" if times > 1 else "") for code, times in counts.items())
    return f" GPUs behind it followed: {words}." if words else ""


def _first_of_each(lines: Sequence[Said]) -> list[Said]:
    first: dict[str, Said] = {}
    for said in lines:
        first.setdefault(said.get("code"), said)
    return list(first.values())


def _first_of_each_code(made: Sequence[Event]) -> list[Origin]:
    first: dict[int, Origin] = {}
    for one in made:
        first.setdefault(one.code, one.origin)
    return list(first.values())


def _told(lines: Sequence[Said]) -> str:
    counts = Counter[int]()
    links: dict[int, set[str]] = {}
    for said in lines:
        counts[int(said.get("code"))] += said.times
        links.setdefault(int(said.get("code")), set()).update([link] if (link := said.get("link")) else [])
    return "; ".join(
        sxid(code).sentence
        + (f", link {', '.join(sorted(links[code]))}" if links[code] else "")
        + (f", {times} lines" if times > 1 else "")
        for code, times in counts.most_common(4)
    )


RULE = Rule((FAULT, NON_FATAL, CORRECTED), find)
