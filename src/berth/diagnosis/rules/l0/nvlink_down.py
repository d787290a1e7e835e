"""L0. NVLinks that are down, by nvidia-smi: some of a GPU's, or all of one GPU among others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value, values
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Family
from berth.diagnosis.xid.story import story_of
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen
from berth.evidence.formats.dcgm_metrics import Sample
from berth.evidence.formats.smi_facts import DeviceSeen, NvlinkSeen

DOWN = Code(
    name="NvLinkDown",
    layer=Layer.L0,
    cause_class="fabric",
    severity=Severity.Error,
    effect=Effect.FabricDown,
    title="NVLinks of a GPU are down",
    meaning="The GPU reaches its peers over fewer links, or not at all. Collectives are slow, fall back to PCI "
    "Express, or fail to start.",
    known_by="nvidia-smi nvlink -s shows inactive links on a GPU whose other links, or whose neighbours, are active; "
    "or the driver cannot train or even detect them.",
    disproved_by="The board has no bridge or switch on these links, or Fabric Manager has not finished yet.",
    counter_check="nvidia-smi nvlink -s on all GPUs: the same number of active links; systemctl status "
    "nvidia-fabricmanager",
    fix=Fix(
        steps=(
            "journalctl -k | grep -e 'Xid.*: 74' -e 'Xid.*: 14[4-9]' -e 'Xid.*: 150' -e SXid: which end it began with",
            "kubectl cordon NODE, drain it; reset all GPUs together or restart the machine, with Fabric Manager after",
            "still down: reseat the bridge or baseboard connection, look at cables and switch; replace",
        ),
        risk="ends the jobs of all GPUs that share the fabric",
        rollback="kubectl uncordon NODE",
    ),
    verify=("nvidia-smi nvlink -s: every link at its speed on every GPU", "all_reduce_perf: usual bandwidth"),
    sources=("nvidia-smi documentation, nvlink", "open-gpu-kernel-modules, kernel/gpu/nvlink"),
)
ERRING = Code(
    name="NvLinkErrorsGrow",
    layer=Layer.L0,
    cause_class="fabric",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="an NVLink counts many errors",
    meaning="The link works and sends again what was damaged, or was trained anew while in use. It is slower, and may "
    "go down.",
    known_by="Recoveries, or many replays or checksum errors, on a link in nvidia-smi nvlink -e.",
    disproved_by="The counters are still while a collective runs.",
    counter_check="nvidia-smi nvlink -e, twice while all_reduce_perf runs: the same numbers",
    fix=Fix(
        steps=(
            "nvidia-smi nvlink -re resets the counters; see whether they grow again, and at which end",
            "kubectl cordon NODE, drain it; reset all GPUs together or restart the machine",
            "again: reseat, cables and cooling of the switch, field diagnostics; replace",
        ),
        risk="ends the jobs of all GPUs that share the fabric",
        rollback="kubectl uncordon NODE",
    ),
    verify=("nvidia-smi nvlink -e: counters do not grow under load",),
    sources=("nvidia-smi documentation, nvlink",),
)
NO_BRIDGE = Code(
    name="NvLinkWithoutBridge",
    layer=Layer.L0,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.BlindMonitoring,
    title="NVLinks are called down on a card that has no bridge",
    meaning="PCI Express cards have NVLink connectors, and links only where a bridge joins two of them. DCGM's health "
    "check calls open connectors down, and what watches it marks the node unfit.",
    known_by="The health check says that a link is down, the card is one for PCI Express, and no link of it is active.",
    disproved_by="A bridge is on the card, or nvidia-smi nvlink -s shows an active link of it.",
    counter_check="nvidia-smi topo -m: no NV# between the GPUs; nvidia-smi nvlink -s: no link is active on any card",
    fix=Fix(
        steps=(
            "no bridge is fitted: take NVLink out of the watched systems (dcgmi health -s without n, or the monitor's "
            "own setting), and lift the cordon",
            "a bridge is fitted: reseat it, with both cards in the slots that it is made for",
        ),
        risk="without that watch nobody sees a bridge that fails",
        rollback="dcgmi health -s a",
    ),
    verify=("dcgmi health -c: Healthy",),
    sources=("DCGM user guide: health monitor", "NVIDIA PCI Express cards: NVLink bridge is an accessory"),
    is_trap=True,
)

_CARD = re.compile(r"\bPCI-?E\b|\bA(?:10|16|30|40)\b|\bRTX\b", re.IGNORECASE)  # H100 NVL comes in bridged pairs
_BOARD = re.compile(r"SXM|HBM3\b|\bH(?:20|200|800)\b(?! NVL)|\bG?B[123]00\b", re.IGNORECASE)  # on a baseboard
_COUNTED = re.compile(r"DCGM_FI_DEV_NVLINK_(CRC|REPLAY|RECOVERY)\w*ERROR_COUNT_TOTAL")
_PRODUCT = "nvidia.com/gpu.product"
MANY = 1_000  # replays, checksum errors
_MANY = {"recovery_errors": 1, "fec_errors_0": 10**18}


def find(facts: Facts) -> Iterator[Answer]:
    """Where the kernel log tells of the event, that is the finding."""
    if not story_of(facts).roots(Family.NvLink):
        yield from _down(facts)
        yield from _erring(facts)


def _erring(facts: Facts) -> Iterator[Answer]:
    for said in facts.said("dcgm_health.nvlink_errors"):
        gpu = value(said, "gpu")
        yield ERRING.finding(f"GPU {gpu}: DCGM counts NVLink errors.", POSSIBLE, [said], subject=f"NVLink of GPU {gpu}")
    for sample in facts.of(Sample):
        kind = _COUNTED.match(sample.field)
        if kind and sample.value >= _MANY.get(f"{kind[1].lower()}_errors", MANY):
            yield ERRING.finding(
                f"{sample.field} is {sample.value:g} since the driver was loaded.", POSSIBLE, [sample], pci=sample.pci
            )
    for one in facts.of(NvlinkSeen):
        bad = []
        for link in one.links:
            counts = {name: int(count) for name, count in link.errors.items() if count >= _MANY.get(name, MANY)}
            bad += [f"link {link.number}: {count} {name.replace('_', ' ')}" for name, count in counts.items()]
        if bad:
            yield ERRING.finding(
                f"GPU {one.index}: {'; '.join(bad[:4])}{'; and more' if len(bad) > 4 else ''}.",
                POSSIBLE,
                [one],
                subject=_subject(one),
            )


def _subject(one: NvlinkSeen) -> str:
    return f"NVLink of GPU {one.index}" + (f" of node {one.node}" if one.node else "")


def _down(facts: Facts) -> Iterator[Answer]:
    unbridged = _has_only_cards(facts)
    cards = [one for one in facts.of(NvlinkSeen) if one.links or one.are_all_inactive]
    if cards and all(_CARD.search(one.name) and not any(link.is_active for link in one.links) for one in cards):
        yield NO_BRIDGE.finding(f"{cards[0].name}: no link has a bridge.", LIKELY, cards[:2])
    for said in facts.said("dcgm_health.nvlink_down"):
        if unbridged and not value(said, "switch") and not said.get("up"):
            which = f"GPU {value(said, 'gpu')}" if value(said, "gpu") else "A GPU"
            yield NO_BRIDGE.finding(
                f"{which} ({unbridged}): its links are down where no bridge is fitted.",
                LIKELY,
                [said],
                subject=f"NVLink of {which}",
            )
            continue
        gpu, link, switch = value(said, "gpu"), value(said, "link"), value(said, "switch")
        device = f"GPU {gpu}" if gpu else f"NVSwitch {switch}" if switch else "a device"
        up = said.get("up")
        which = f"link {link} is" if link else f"only {up} links are up, others are" if up else "a link is"
        yield DOWN.finding(
            f"{device[0].upper()}{device[1:]}: {which} down, DCGM says.", LIKELY, [said], subject=f"NVLink of {device}"
        )
    seen = [one for one in facts.of(NvlinkSeen) if one.links or one.are_all_inactive]
    active = {id(one): sum(1 for link in one.links if link.is_active) for one in seen}
    best = max(active.values(), default=0)
    told = False
    for one in seen:
        down = [link.number for link in one.links if link.is_active is False]
        if best and (down or one.are_all_inactive) and active[id(one)] < best:
            told = True
            which = f"links {', '.join(map(str, down))}" if down else "all links"
            yield DOWN.finding(
                f"GPU {one.index}: {which} {'are' if len(down) != 1 else 'is'} down; others have {best} active links.",
                LIKELY,
                [one],
                subject=_subject(one),
            )
        elif down and active[id(one)]:
            told = True
            yield DOWN.finding(
                f"GPU {one.index}: of {len(one.links)} links {len(down)} are down ({', '.join(map(str, down))}).",
                POSSIBLE,
                [one],
                subject=_subject(one),
            )
    boards = [one for one in seen if one.are_all_inactive and _BOARD.search(one.name)]  # these have links by design
    if len(seen) == len(boards) == 1:
        told = True
        yield DOWN.finding(
            f"GPU {boards[0].index}: all links are down, on a board that is built for NVLink.",
            POSSIBLE,
            boards,
            subject=_subject(boards[0]),
        )
    yield from _not_trained(facts, unbridged)
    for said in facts.said("host.nvlink_peers_parted"):
        yield DOWN.finding(
            f"NVLink joins GPUs {said.get('one')} and {said.get('other')}, and the driver allows no peer access.",
            POSSIBLE,
            [said],
        )
    if not told and not seen and not unbridged and (mixed := list(facts.said("nvlink.rows_mixed"))):
        told = True
        yield DOWN.finding(f"Link {mixed[0].get('link')} is down beside others that work.", POSSIBLE, mixed)
    if not told and not seen:
        inactive = list(facts.said("host.nvlink_inactive"))
        if inactive:
            yield DOWN.finding("NVLinks are said to be inactive.", POSSIBLE, inactive)


def _not_trained(facts: Facts, unbridged: str) -> Iterator[Answer]:
    """What the driver says while it brings links up, and what agents make of it."""
    undetected = list(facts.said("nvlink.not_detected"))
    if undetected and unbridged:
        yield NO_BRIDGE.finding(
            f"{unbridged}: the driver looks for links where no bridge is fitted.", LIKELY, undetected
        )
    elif undetected:
        yield DOWN.finding(
            "The driver cannot tell which links see their other end; calls of nvidia-smi may wait for it.",
            WEAK,
            undetected,
        )
    if bridge := list(facts.said("host.bridge_at_fault")):
        yield DOWN.finding(
            "It works without the bridge: the bridge, its contacts, or how it sits.",
            LIKELY,
            bridge,
            cause_class="hw-fault",
        )
    if untrained := list(facts.said("nvlink.not_trained")):
        gpu = next(iter(values(untrained, "gpu")), "")
        yield DOWN.finding(
            f"A link {f'of GPU {gpu} ' if gpu else ''}was not brought to its working state.", LIKELY, untrained
        )
    if said_so := list(facts.said("nvlink.agent_says")):
        yield DOWN.finding("A monitor on the node counts links that are not up.", LIKELY, said_so)


def _has_only_cards(facts: Facts) -> str:
    """The model, where all that are named are cards for PCI Express and none has an active link; "" otherwise."""
    if any(link.is_active for one in facts.of(NvlinkSeen) for link in one.links):
        return ""
    if any(facts.said("host.without_nvlink")):
        return "said to have no NVLink"
    names = [one.name for one in facts.of(DeviceSeen) if one.name]
    names += [one.get("model") for one in facts.said("smi.model")]
    names += [node.labels[_PRODUCT] for node in facts.of(NodeSeen) if _PRODUCT in node.labels]
    return names[0] if names and all(_CARD.search(name) for name in names) else ""


RULE = Rule((DOWN, ERRING, NO_BRIDGE), find)
