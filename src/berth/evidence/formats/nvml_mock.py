"""Profiles of NVIDIA's nvml-mock: a machine that does not exist, described as NVML would describe it.

Version 1.0 of the file. Each device is the defaults with what it says itself laid over them, so that a fault that
somebody injects (a pending remap, an error count, a reduced link) is read as the same facts as of a real machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from berth.base import yaml_tree
from berth.evidence.fact import Fact, Origin, pci_of
from berth.evidence.formats import Format
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen
from berth.evidence.piece import Piece

_SIGN = re.compile(rb"(?m)^device_defaults:")
_REASONS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown", "sw_power_cap")


def looks_like(head: bytes) -> bool:
    return b"device_defaults:" in head and _SIGN.search(head) is not None


def read(piece: Piece) -> Iterator[Fact]:
    try:
        tree = yaml_tree.parse(piece.raw)
    except (yaml_tree.YAMLError, RecursionError, ValueError):
        return
    if not isinstance(tree, dict):
        return
    system, defaults = _mapping(tree.get("system")), _mapping(tree.get("device_defaults"))
    version = _word(system.get("driver_version"))
    origin = Origin(piece.source, "nvidia-smi", f"driver_version {version}", node=piece.node)
    if version:
        yield DriverSeen(origin=origin, version=version, cuda=_word(system.get("cuda_version")))
    devices = tree.get("devices")
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict):
            yield _device(_over(defaults, device), version, piece)


def _device(told: Mapping[str, Any], version: str, piece: Piece) -> DeviceSeen:
    def part(*keys: str) -> Mapping[str, Any]:
        here: Any = told
        for key in keys:
            here = _mapping(here).get(key)
        return _mapping(here)

    memory, link, heat, power = part("memory"), part("pcie"), part("thermal"), part("power")
    errors, remapped, mig = part("ecc", "errors"), part("remapped_rows"), part("mig")
    slowed = part("clocks_throttle_reasons")
    uuid, pci = _word(told.get("uuid")), _word(part("pci").get("bus_id"))
    return DeviceSeen(
        origin=Origin(piece.source, "nvidia-smi", f"{_word(told.get('name'))} {uuid} {pci}".strip(), node=piece.node),
        form="mock",
        index=_number(told.get("index")),
        uuid=uuid,
        name=_word(told.get("name")),
        pci=pci_of(pci),
        serial=_word(told.get("serial")),
        minor=_number(told.get("minor_number")),
        architecture=_word(told.get("architecture")),
        vbios=_word(told.get("vbios_version")),
        driver=version,
        memory_total_bytes=_number(memory.get("total_bytes")),
        memory_used_bytes=_number(memory.get("used_bytes")),
        memory_free_bytes=_number(memory.get("free_bytes")),
        temperature_c=_number(heat.get("temperature_gpu_c")),
        temperature_shutdown_c=_number(heat.get("shutdown_threshold_c")),
        temperature_slowdown_c=_number(heat.get("slowdown_threshold_c")),
        power_draw_w=_watts(power.get("current_draw_mw")),
        power_limit_w=_watts(power.get("enforced_limit_mw")),
        slowed_by=tuple(reason for reason in _REASONS if slowed.get(reason) is True),
        ecc_mode=_word(part("ecc").get("mode_current")).capitalize(),
        uncorrected_volatile=_total(errors, "volatile", "double_bit"),
        uncorrected_aggregate=_total(errors, "aggregate", "double_bit"),
        corrected_volatile=_total(errors, "volatile", "single_bit"),
        corrected_aggregate=_total(errors, "aggregate", "single_bit"),
        remapped_correctable=_number(remapped.get("correctable")),
        remapped_uncorrectable=_number(remapped.get("uncorrectable")),
        is_remap_pending=_truth(remapped.get("pending")),
        is_remap_failed=_truth(remapped.get("failure_occurred")),
        mig_mode=_word(mig.get("mode_current")).capitalize(),
        mig_mode_pending=_word(mig.get("mode_pending")).capitalize(),
        pcie_gen=_number(link.get("current_link_gen")),
        pcie_gen_max=_number(link.get("max_link_gen")),
        pcie_width=_number(link.get("current_link_width")),
        pcie_width_max=_number(link.get("max_link_width")),
        persistence_mode=_word(told.get("persistence_mode")).capitalize(),
        compute_mode=_word(told.get("compute_mode")).capitalize(),
    )


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The second laid over the first, level by level."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: Any) -> str:
    return value if isinstance(value, str) and value != "N/A" else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _watts(value: Any) -> float | None:
    number = _number(value)
    return None if number is None else number / 1000


def _total(errors: Mapping[str, Any], since: str, kind: str) -> int | None:
    return _number(_mapping(_mapping(errors.get(since)).get(kind)).get("total"))


NVML_MOCK = Format("nvml-mock", ("nvidia-smi",), looks_like, read)
