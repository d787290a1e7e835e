"""Which field of DeviceSeen each word of nvidia-smi fills: `-q`, its XML, and the columns of `--query-gpu`.

Names are in one spelling (smi_cells.py), sections joined by `/`. Several spellings stand for one field because drivers
from 418 to 595 name it differently; the first that was printed counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from berth.evidence.fact import LONGEST_TEXT, NO_PCI, Origin, Pci, pci_of
from berth.evidence.formats.smi_cells import (
    HEX,
    Cell,
    Cells,
    is_absent,
    is_odd,
    number,
    size_bytes,
    whole,
    words,
    words_if_any,
    yes_or_no,
)
from berth.evidence.formats.smi_facts import REASONS, DeviceSeen, MigDevice, Process

_PCIE = "pci/gpu_link_info"
_PCIE_XML = "pci/pci_gpu_link_info"
_POWER = ("gpu_power_readings", "power_readings", "power")

Reader = Callable[[str], Any]
FIELDS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "uuid": (words_if_any, ("gpu_uuid", "uuid")),
    "name": (words_if_any, ("product_name", "name", "gpu_name")),
    "serial": (words_if_any, ("serial_number", "serial", "gpu_serial")),
    "index": (whole, ("index",)),
    "minor": (whole, ("minor_number",)),
    "architecture": (words_if_any, ("product_architecture",)),
    "vbios": (words_if_any, ("vbios_version",)),
    "gsp_firmware": (words_if_any, ("gsp_firmware_version",)),
    "driver": (words_if_any, ("kmd_version", "driver_version")),
    "memory_total_bytes": (size_bytes, ("fb_memory_usage/total", "memory_usage/total", "memory/total")),
    "memory_used_bytes": (size_bytes, ("fb_memory_usage/used", "memory_usage/used", "memory/used")),
    "memory_free_bytes": (size_bytes, ("fb_memory_usage/free", "memory_usage/free", "memory/free")),
    "memory_reserved_bytes": (size_bytes, ("fb_memory_usage/reserved", "memory/reserved")),
    "bar1_total_bytes": (size_bytes, ("bar1_memory_usage/total",)),
    "temperature_c": (number, ("temperature/gpu_current_temp", "temperature/gpu_temp", "temperature/gpu")),
    "temperature_shutdown_c": (number, ("temperature/gpu_shutdown_temp", "temperature/gpu_temp_max_threshold")),
    "temperature_slowdown_c": (number, ("temperature/gpu_slowdown_temp", "temperature/gpu_temp_slow_threshold")),
    "temperature_max_c": (number, ("temperature/gpu_max_operating_temp", "temperature/gpu_temp_max_gpu_threshold")),
    "margin_c": (number, ("temperature/gpu_t_limit_temp", "temperature/gpu_temp_tlimit", "temperature/gpu/tlimit")),
    "margin_shutdown_c": (
        number, ("temperature/gpu_shutdown_t_limit_temp", "temperature/gpu_temp_max_tlimit_threshold"),
    ),
    "margin_slowdown_c": (
        number, ("temperature/gpu_slowdown_t_limit_temp", "temperature/gpu_temp_slow_tlimit_threshold"),
    ),
    "margin_max_c": (
        number, ("temperature/gpu_max_operating_t_limit_temp", "temperature/gpu_temp_max_gpu_tlimit_threshold"),
    ),
    "memory_temperature_c": (
        number, ("temperature/memory_current_temp", "temperature/memory_temp", "temperature/memory"),
    ),
    "memory_temperature_max_c": (
        number, ("temperature/memory_max_operating_temp", "temperature/gpu_temp_max_mem_threshold"),
    ),
    "power_draw_w": (
        number,
        tuple(f"{section}/{name}" for section in _POWER for name in (
            "average_power_draw", "power_draw", "draw", "draw/average", "instantaneous_power_draw",
            "instant_power_draw", "draw/instant",
        )),
    ),
    "power_limit_w": (
        number,
        (
            *(f"{section}/{name}" for section in _POWER for name in ("enforced_power_limit", "current_power_limit")),
            "enforced/power/limit",
            *(f"{section}/{name}" for section in _POWER for name in ("power_limit", "limit")),
        ),
    ),
    "power_default_w": (number, tuple(f"{s}/{n}" for s in _POWER for n in ("default_power_limit", "default_limit"))),
    "power_min_w": (number, tuple(f"{s}/{n}" for s in _POWER for n in ("min_power_limit", "min_limit"))),
    "power_max_w": (number, tuple(f"{s}/{n}" for s in _POWER for n in ("max_power_limit", "max_limit"))),
    "performance_state": (words_if_any, ("performance_state", "pstate")),
    "gpu_percent": (number, ("utilization/gpu", "utilization/gpu_util")),
    "memory_percent": (number, ("utilization/memory", "utilization/memory_util")),
    "sm_clock_mhz": (number, ("clocks/sm", "clocks/sm_clock", "clocks/current/sm")),
    "sm_clock_max_mhz": (number, ("max_clocks/sm", "max_clocks/sm_clock", "clocks/max/sm")),
    "memory_clock_mhz": (number, ("clocks/memory", "clocks/mem_clock", "clocks/mem", "clocks/current/memory")),
    "memory_clock_max_mhz": (
        number, ("max_clocks/memory", "max_clocks/mem_clock", "clocks/max/memory", "clocks/max/mem"),
    ),
    "ecc_mode": (words, ("ecc_mode/current", "ecc_mode/current_ecc", "ecc/mode/current")),
    "ecc_mode_pending": (words, ("ecc_mode/pending", "ecc_mode/pending_ecc", "ecc/mode/pending")),
    "is_sram_threshold_exceeded": (
        yes_or_no,
        (
            "ecc_errors/aggregate/sram_threshold_exceeded",
            "ecc/errors/uncorrected/aggregate/sram/thresholdexceeded",
        ),
    ),
    "is_channel_repair_pending": (yes_or_no, ("ecc_errors/channel_repair_pending",)),
    "is_tpc_repair_pending": (yes_or_no, ("ecc_errors/tpc_repair_pending",)),
    "is_memory_unrepairable": (yes_or_no, ("ecc_errors/unrepairable_memory",)),
    "remapped_correctable": (
        whole,
        ("remapped_rows/correctable_error", "remapped_rows/remapped_row_corr", "remapped_rows/correctable"),
    ),
    "remapped_uncorrectable": (
        whole,
        ("remapped_rows/uncorrectable_error", "remapped_rows/remapped_row_unc", "remapped_rows/uncorrectable"),
    ),
    "is_remap_pending": (yes_or_no, ("remapped_rows/pending", "remapped_rows/remapped_row_pending")),
    "is_remap_failed": (
        yes_or_no,
        ("remapped_rows/remapping_failure_occurred", "remapped_rows/remapped_row_failure", "remapped_rows/failure"),
    ),
    "retired_single_bit": (
        whole,
        (
            "retired_pages/single_bit_ecc",
            "retired_pages/multiple_single_bit_retirement/retired_count",
            "retired_pages/single_bit_ecc/count",
        ),
    ),
    "retired_double_bit": (
        whole,
        (
            "retired_pages/double_bit_ecc",
            "retired_pages/double_bit_retirement/retired_count",
            "retired_pages/double_bit/count",
        ),
    ),
    "is_retirement_pending": (
        yes_or_no,
        (
            "retired_pages/pending_page_blacklist", "retired_pages/pending_page_retirement",
            "retired_pages/pending", "retired_pages/pending_blacklist", "retired_pages/pending_retirement",
        ),
    ),
    "recovery_action": (words, ("gpu_recovery_action",)),
    "is_reset_required": (yes_or_no, ("gpu_reset_status/reset_required", "reset_status/reset/required")),
    "mig_mode": (words, ("mig_mode/current", "mig_mode/current_mig", "mig/mode/current")),
    "mig_mode_pending": (words, ("mig_mode/pending", "mig_mode/pending_mig", "mig/mode/pending")),
    "pcie_gen": (
        whole, (f"{_PCIE}/pcie_generation/current", f"{_PCIE_XML}/pcie_gen/current_link_gen", "pcie/link/gen/current",
                f"{_PCIE}/pcie_generation/device_current", "pcie/link/gen/gpucurrent",
                "gpu_link_info/pcie_generation/current", "pcie_generation/current"),
    ),
    "pcie_gen_max": (
        whole, (f"{_PCIE}/pcie_generation/max", f"{_PCIE_XML}/pcie_gen/max_link_gen", "pcie/link/gen/max",
                "gpu_link_info/pcie_generation/max", "pcie_generation/max"),
    ),
    "pcie_gen_device_max": (
        whole,
        (f"{_PCIE}/pcie_generation/device_max", f"{_PCIE_XML}/pcie_gen/max_device_link_gen", "pcie/link/gen/gpumax"),
    ),
    "pcie_gen_host_max": (
        whole,
        (f"{_PCIE}/pcie_generation/host_max", f"{_PCIE_XML}/pcie_gen/max_host_link_gen", "pcie/link/gen/hostmax"),
    ),
    "pcie_width": (
        whole,
        (f"{_PCIE}/link_width/current", f"{_PCIE_XML}/link_widths/current_link_width", "pcie/link/width/current",
         "gpu_link_info/link_width/current", "link_width/current"),
    ),
    "pcie_width_max": (
        whole, (f"{_PCIE}/link_width/max", f"{_PCIE_XML}/link_widths/max_link_width", "pcie/link/width/max",
                "gpu_link_info/link_width/max", "link_width/max"),
    ),
    "pcie_replays": (whole, ("pci/replays_since_reset", "pci/replay_counter", "pci/replay_number_since_reset")),
    "fabric_state": (words, ("fabric/state",)),
    "fabric_status": (words, ("fabric/status",)),
    "fabric_clique": (words_if_any, ("fabric/cliqueid", "fabric/clique_id")),
    "fabric_cluster": (words_if_any, ("fabric/clusteruuid", "fabric/cluster_uuid")),
    "persistence_mode": (words_if_any, ("persistence_mode",)),
    "compute_mode": (words_if_any, ("compute_mode",)),
    "virtualization": (words, ("gpu_virtualization_mode/virtualization_mode",)),
    "license_status": (
        words, ("vgpu_software_licensed_product/license_status", "grid_licensed_product/license_status"),
    ),
    "module_id": (words_if_any, ("platform_info/module_id", "platforminfo/module_id", "gpu_module_id",
                                 "platform/module_id")),
}  # fmt: skip

# ECC counts are sums of what each generation of boards prints: (section, what it counts) → parts.
_COUNTED = {
    "corrected": ("sram_correctable", "dram_correctable", "single_bit/total"),
    "uncorrected": (
        "sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_sec_ded", "sram_uncorrectable_secded",
        "dram_uncorrectable", "double_bit/total",
    ),
    "sram_uncorrected": (
        "sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_sec_ded", "sram_uncorrectable_secded",
    ),
    "dram_uncorrected": ("dram_uncorrectable",),
}  # fmt: skip
_COUNTED_COLUMNS = {
    "corrected": "corrected/{}/total",
    "uncorrected": "uncorrected/{}/total",
    "sram_uncorrected": "uncorrected/{}/sram",
    "dram_uncorrected": "uncorrected/{}/dram",
}
_REASON = re.compile(r"^clocks_(?:event|throttle)_reasons/(?:.*/)?(?:clocks_(?:event|throttle)_reason_)?(\w+)$")
_COUNTER = re.compile(r"^clocks_event_reasons_counters/(?:clocks_event_reasons_counters_)?(\w+)$")
_REASON_NAMES = {
    "idle": "gpu_idle", "display_clock_setting": "display_clocks_setting",
    "application_clocks_setting": "applications_clocks_setting", "sw_power_capping": "sw_power_cap",
    "hw_power_braking": "hw_power_brake_slowdown", "hw_power_brake": "hw_power_brake_slowdown",
    "hw_therm_slowdown": "hw_thermal_slowdown", "sw_therm_slowdown": "sw_thermal_slowdown",
}  # fmt: skip
_BANKS = re.compile(r"^remapped_rows/(?:bank_remap_availability_histogram|row_remapper_histogram|histogram)/"
                    r"(?:row_remapper_histogram_)?(max|high|partial|low|none)$")  # fmt: skip
_HEALTH = re.compile(r"^fabric/health/(\w+)$")


def device(
    form: str,
    cells: Cells,
    origin: Origin,
    *,
    pci: Pci = NO_PCI,
    index: int | None = None,
    driver: str = "",
    cuda: str = "",
    mig: Iterable[MigDevice] = (),
    processes: Iterable[Process] | None = None,
) -> DeviceSeen:
    """What the cells of one device say."""
    known: dict[str, Any] = {}
    unreadable: dict[str, str] = {}
    quotes: dict[str, tuple[int, str]] = {}

    def found(field: str, cell: Cell, value: object) -> None:
        quotes.setdefault(field, (cell.line, cell.text[:LONGEST_TEXT]))
        if is_odd(cell.value) and not field.startswith("fabric_"):  # there an error is the value
            unreadable.setdefault(field, words(cell.value))
        elif value is not None and value != "":
            known.setdefault(field, value)

    for field, (read, names) in FIELDS.items():
        for name in names:
            if name in cells:
                found(field, cells[name], read(cells[name].value))
                if field in known:
                    break
    for field, cell, count in _counts(cells):
        found(field, cell, count)
    _slowed(cells, known, quotes)
    # NVML's answer to any question about such a device; where the recovery action is not printed, this is it.
    if field := next((field for field, said in unreadable.items() if "requires reset" in said.lower()), ""):
        known["is_reset_required"] = True
        known.setdefault("recovery_action", "Reset")
        quotes.setdefault("recovery_action", quotes[field])
    for maps, pattern, reader in (("remap_banks", _BANKS, whole), ("fabric_health", _HEALTH, words)):
        for name, cell in cells.items():
            if (match := pattern.match(name)) and (value := reader(cell.value)) is not None:
                known.setdefault(maps, {})[match[1]] = value
                quotes.setdefault(f"{maps}/{match[1]}", (cell.line, cell.text[:LONGEST_TEXT]))
    address = pci if pci != NO_PCI else _address(cells)
    known.setdefault("index", index)
    known.setdefault("driver", driver)
    known.setdefault("cuda", cuda)
    return DeviceSeen(
        form=form, origin=origin, pci=address, mig=tuple(mig), unreadable=unreadable, quotes=quotes,
        processes=None if processes is None else tuple(processes), **known,
    )  # fmt: skip


def _address(cells: Cells) -> Pci:
    for name in ("pci/bus_id", "pci/pci_bus_id", "gpu_bus_id"):
        if name in cells and (address := pci_of(cells[name].value)) != NO_PCI:
            return address
    return NO_PCI


def _counts(cells: Cells) -> Iterable[tuple[str, Cell, int | None]]:
    for when in ("volatile", "aggregate"):
        for what, parts in _COUNTED.items():
            column = "ecc/errors/" + _COUNTED_COLUMNS[what].format(when)
            if column in cells:
                yield f"{what}_{when}", cells[column], whole(cells[column].value)
                continue
            printed = [cells[name] for part in parts if (name := f"ecc_errors/{when}/{part}") in cells]
            counts = [count for cell in printed if (count := whole(cell.value)) is not None]
            if printed:
                worst = max(printed, key=lambda cell: whole(cell.value) or 0)
                yield f"{what}_{when}", worst, sum(counts) if counts else None


def _slowed(cells: Cells, known: dict[str, Any], quotes: dict[str, tuple[int, str]]) -> None:
    active: list[str] = []
    times: dict[str, int] = {}
    is_said = False
    for name, cell in cells.items():
        if (match := _COUNTER.match(name)) and (count := whole(cell.value)) is not None:
            times[_REASON_NAMES.get(match[1], match[1])] = count
        elif match := _REASON.match(name):
            reason = _REASON_NAMES.get(match[1], match[1])
            if reason == "active" and (bits := HEX.search(cell.value)):
                is_said = True
                active += [word for bit, word in REASONS.items() if int(bits[0], 16) & bit]
            elif reason not in ("active", "supported") and cell.value.strip() in ("Active", "Not Active"):
                is_said = True
                if cell.value.strip() == "Active":
                    active.append(reason)
                    quotes.setdefault(f"slowed_by/{reason}", (cell.line, cell.text[:LONGEST_TEXT]))
                    quotes.setdefault("slowed_by", (cell.line, cell.text[:LONGEST_TEXT]))
    if is_said:
        known["slowed_by"] = tuple(dict.fromkeys(active))
    if times:
        known["slowed_us"] = times


def mig_device(cells: Mapping[str, Cell]) -> MigDevice:
    """A partition from the cells below `MIG Device`."""

    def read(reader: Reader, *names: str) -> Any:
        return next((reader(cells[name].value) for name in names if name in cells), None)

    return MigDevice(
        index=read(whole, "index"),
        gi=read(whole, "gpu_instance_id"),
        ci=read(whole, "compute_instance_id"),
        multiprocessors=read(whole, "device_attributes/shared/multiprocessor_count"),
        sram_uncorrected=read(
            whole, "ecc_errors/volatile/sram_uncorrectable", "ecc_error_count/volatile_count/sram_uncorrectable"
        ),
        memory_total_bytes=read(
            size_bytes, "fb_memory_usage/total", "shared_fb_memory_usage/total", "shared_memory_usage/total"
        ),
        memory_used_bytes=read(
            size_bytes, "fb_memory_usage/used", "shared_fb_memory_usage/used", "shared_memory_usage/used"
        ),
    )


def process(cells: Mapping[str, Cell]) -> Process | None:
    """A process from its cells; None without a number."""
    value = {name.rpartition("/")[2]: cell.value for name, cell in cells.items()}
    pid = whole(value.get("process_id", value.get("pid", "")))
    if pid is None:
        return None
    memory = value.get("used_gpu_memory", value.get("used_memory", ""))
    return Process(
        pid=pid,
        name=value.get("name", value.get("process_name", "")).strip(),
        type=value.get("type", "").strip(),
        memory_bytes=None if is_absent(memory) else size_bytes(memory),
        gi=whole(value.get("gpu_instance_id", "")),
        ci=whole(value.get("compute_instance_id", "")),
    )
