"""L0. A GPU is slowed down by its own protection: heat, or the power brake of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import listed, value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import NO_PCI, Origin, pci_words
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

_SOURCES = ("nvidia-smi and NVML documentation, clocks event reasons",)
_VERIFY = (
    "nvidia-smi -q -d PERFORMANCE -i PCI.0 under load: HW Slowdown, HW Thermal Slowdown, HW Power Brake Not Active",
    "nvidia-smi -q -d TEMPERATURE,CLOCK -i PCI.0: cooler than the slowdown threshold, clocks as on its neighbours",
)

HOT = Code(
    name="GpuTooHot",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="a GPU slows down because it is too hot",
    meaning="The GPU halves its clocks or more to stay alive. One slow GPU makes a whole job wait; hotter still it "
    "switches off (Xid 79).",
    known_by="HW Thermal Slowdown (or SW Thermal Slowdown) is active, the temperature is at the slowdown threshold, or "
    "the machine's event log has it of a GPU or a fan.",
    disproved_by="It is not active under the same load, and the neighbours are as warm.",
    counter_check="nvidia-smi -q -d TEMPERATURE,PERFORMANCE -i PCI.0 while it works: HW and SW Thermal Slowdown Not "
    "Active",
    fix=Fix(
        steps=(
            "compare with the neighbours: one hot GPU is its heat sink, all hot is fans, air flow or the room",
            "kubectl cordon NODE where it is near its limit; fans, dust, blanks, liquid cooling flow",
            "until then: nvidia-smi -i PCI.0 -pl WATTS, or fewer GPUs at work",
        ),
        risk="a lower power limit makes it slower",
        rollback="nvidia-smi -i PCI.0 -pl with the default limit; kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)
BRAKED = Code(
    name="GpuPowerBrake",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="the machine cannot give a GPU its power",
    meaning="The machine's supply or its management holds the GPU back (power brake): jobs run many times slower. "
    "Under full load a supply that is too weak takes the GPU off the bus.",
    known_by="HW Power Brake Slowdown is active, or HW Slowdown without heat; or somebody says so of the supply.",
    disproved_by="It is off as soon as the load of the other GPUs falls: then the supply is simply too small.",
    counter_check="nvidia-smi -q -d PERFORMANCE -i PCI.0: HW Power Brake Slowdown Not Active",
    fix=Fix(
        steps=(
            "the machine's management (BMC): failed or missing power supplies, power capping, redundancy lost",
            "cables and connectors of the GPU's auxiliary power",
            "kubectl cordon NODE until then: one braked GPU slows all jobs that span it",
        ),
        risk="none",
        rollback="kubectl uncordon NODE",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)

CAPPED = Code(
    name="GpuAtPowerLimit",
    layer=Layer.L0,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.CollectiveSlow,
    title="a GPU that works at its power limit",
    meaning="Under full load the driver keeps the clocks where the power limit allows: SW Power Cap is then active on "
    "healthy GPUs. It is a fault only together with heat, power brake or a limit that nobody wanted.",
    known_by="SW Power Cap is active, and HW Slowdown, thermal slowdown and power brake are not.",
    disproved_by="The power limit in force is far below the default, or the neighbours do more under the same load.",
    counter_check="nvidia-smi -q -d POWER -i PCI.0: Current Power Limit equals Default; draw is near it under load",
    fix=Fix(
        steps=(
            "nothing to mend where draw is near the limit and the GPU is busy",
            "limit below the default and not meant: nvidia-smi -i PCI.0 -pl WATTS",
        ),
        risk="a higher limit takes more of supply and cooling",
        rollback="nvidia-smi -i PCI.0 -pl with the old limit",
    ),
    verify=_VERIFY,
    sources=_SOURCES,
    is_trap=True,
)

LOW = 0.8  # of the default: a limit that somebody set
_HEAT = ("hw_thermal_slowdown", "sw_thermal_slowdown")


_WORDS = ("reason", "xml", "said", "name", "told", "told2")  # groups of host.hw_slowdown, of which one is filled


def find(facts: Facts) -> Iterator[Answer]:
    """By device where nvidia-smi was read, else by what is said."""
    devices = facts.of(DeviceSeen)
    for device in devices:
        yield from _of(device)
    for said in facts.said("dcgm_health.hot"):
        gpu, seconds = value(said, "gpu"), said.get("seconds")
        where, lasting = f"GPU {gpu}" if gpu else "A GPU", f" for {seconds} s" if seconds else ""
        yield HOT.finding(
            f"{where} was slowed down by heat{lasting}, DCGM says.", LIKELY, [said], subject=gpu and f"GPU {gpu}"
        )
    yield from _at_limit(facts, devices)
    if any(device.slowed_by is not None for device in devices):
        return
    by_kind: dict[str, list[Origin]] = {}
    for said in facts.said("host.hw_slowdown"):
        words = next(said.get(name) for name in _WORDS if said.get(name)).lower().replace("_", " ")
        kind = "heat" if "thermal" in words else "brake" if "brake" in words or "brk" in words else "either"
        by_kind.setdefault(kind, []).append(said.origin)
    supply = [said.origin for said in facts.said("host.power_supply", "host.supply_event", "host.off_under_load")]
    hot = [said.origin for said in facts.said("host.gpu_hot", "host.cooling_failed")]
    if hot or "heat" in by_kind:
        quotes = [*by_kind.get("heat", []), *by_kind.get("either", []), *hot]
        yield HOT.finding("Heat slows a GPU down.", LIKELY if "heat" in by_kind else POSSIBLE, quotes)
    elif by_kind:
        sure = LIKELY if "brake" in by_kind else POSSIBLE
        quotes = [*by_kind.get("brake", []), *by_kind.get("either", [])]
        said_so = "The power brake is on" if "brake" in by_kind else "HW Slowdown is active"
        yield BRAKED.finding(f"{said_so}, and nothing tells of heat.", sure, [*quotes, *supply])
    elif supply:
        yield BRAKED.finding("The machine's power supply is said to be at its limit or failing.", POSSIBLE, supply)


def _at_limit(facts: Facts, devices: Sequence[DeviceSeen]) -> Iterator[Answer]:
    """One for all that are held by their limit alone; a GPU at rest is not asked."""
    held = [device for device in devices if "sw_power_cap" in (device.slowed_by or ()) and not any(_of(device))]
    quotes = [device.quote("slowed_by/sw_power_cap", "slowed_by") for device in held]
    if not any(device.slowed_by is not None for device in devices) and not any(facts.said("host.hw_slowdown")):
        capped = facts.said("host.sw_power_cap", "dcgm_health.power_capped", "harmless.power_capped")
        quotes += [said.origin for said in capped]
    if not quotes:
        return
    low = [
        f"{device.power_limit_w:g} W in force, {device.power_default_w:g} W by default"
        for device in held
        if device.power_limit_w and device.power_default_w and device.power_limit_w < LOW * device.power_default_w
    ]
    cause = "The power limit alone holds the clocks: no heat, no brake."
    yield CAPPED.finding(cause + (f" The limit was set low: {listed(low)}." if low else ""), LIKELY, quotes)


def _of(device: DeviceSeen) -> Iterator[Answer]:
    reasons = device.slowed_by or ()
    where = f"GPU {pci_words(device.pci)}" if device.pci != NO_PCI else "A GPU"
    at = f" at {device.temperature_c:g} °C" if device.temperature_c else ""
    heat = [reason for reason in reasons if reason in _HEAT]
    is_at_limit = (
        device.temperature_c is not None
        and device.temperature_slowdown_c is not None
        and device.temperature_c >= device.temperature_slowdown_c > 0
    ) or (device.margin_c is not None and device.margin_c <= 0)
    if heat or is_at_limit:
        yield HOT.finding(
            f"{where} is slowed down by heat{at}.",
            ESTABLISHED if heat else LIKELY,
            [device.quote("slowed_by", "temperature_c")],
            pci=device.pci,
        )
    elif "hw_power_brake_slowdown" in reasons or "hw_slowdown" in reasons:
        is_brake = "hw_power_brake_slowdown" in reasons
        by = "the power brake" if is_brake else "its hardware, without a sign of heat"
        yield BRAKED.finding(
            f"{where} is slowed down by {by}{at}.",
            ESTABLISHED if is_brake else POSSIBLE,
            [device.quote("slowed_by")],
            pci=device.pci,
        )


RULE = Rule((HOT, BRAKED, CAPPED), find)
