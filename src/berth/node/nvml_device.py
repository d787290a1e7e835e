"""One device as NVML describes it, in the words of nvidia-smi, so that the same rules read both.

What a device or a driver does not know is left out; what it refuses to say is kept in `unreadable`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from berth.evidence.fact import LONGEST_TEXT, Origin, pci_of
from berth.evidence.formats.smi_facts import REASONS, DeviceSeen, MigDevice, Process

_ON = {0: "Disabled", 1: "Enabled"}
_COMPUTE = {0: "Default", 1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
_FABRIC = {0: "N/A", 1: "Not Started", 2: "In Progress", 3: "Completed"}
_RECOVERY = {0: "None", 1: "Reset", 2: "Reboot", 3: "Drain P2P", 4: "Drain and Reset", 5: "Recover IMEX Domain",
             6: "Bus Reset", 7: "Reboot"}  # fmt: skip
_CORRECTED, _UNCORRECTED, _VOLATILE, _AGGREGATE = 0, 1, 0, 1
_GPU_SENSOR, _SHUTDOWN, _SLOWDOWN = 0, 0, 1
_SM, _MEMORY = 1, 2
_UNKNOWN_COUNT = (1 << 64) - 1


class Lost(Exception):
    """The device does not answer any more; `device` is what it still said."""

    def __init__(self, words: str, device: DeviceSeen) -> None:
        super().__init__(words)
        self.device = device


class _Gone(Exception):
    pass


class _Asked:
    """Asks one device. Each answer may be refused; the values, and the words that say them, are collected."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self.values: dict[str, Any] = {}
        self.unreadable: dict[str, str] = {}
        self.quotes: dict[str, tuple[int, str]] = {}
        # A device may not have it, a driver may be older than the question, nobody may be allowed to ask.
        self._silent = {
            getattr(nvml, name, None)
            for name in (
                "NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_FUNCTION_NOT_FOUND", "NVML_ERROR_NO_PERMISSION",
                "NVML_ERROR_INVALID_ARGUMENT", "NVML_ERROR_NOT_FOUND", "NVML_ERROR_NO_DATA",
                "NVML_ERROR_ARGUMENT_VERSION_MISMATCH", "NVML_ERROR_DEPRECATED",
            )
        }  # fmt: skip

    def ask(self, field: str, name: str, *arguments: Any, handle: Any = None) -> Any:
        """None where there is no answer."""
        nvml = self._nvml
        function = getattr(nvml, name, None)
        if function is None:
            return None
        try:
            answer = function(self._handle if handle is None else handle, *arguments)
        except nvml.NVMLError as error:
            if error.value == nvml.NVML_ERROR_GPU_IS_LOST:
                raise _Gone("GPU is lost") from None
            if error.value not in self._silent:
                self.unreadable[field] = str(error)
                self.quotes[field] = (0, f"{name}: {error}")
            return None
        return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer

    def put(self, field: str, value: Any, words: str = "") -> None:
        if value is not None:
            self.values[field] = value
            if words:
                self.quotes[field] = (0, words[:LONGEST_TEXT])


def device_of(nvml: Any, handle: Any, index: int, node: str = "") -> DeviceSeen:
    """Raises Lost where the device is gone, NVMLError where it cannot be addressed at all."""
    asked = _Asked(nvml, handle)
    try:
        _identity(asked)
        _memory(asked)
        _ecc(nvml, asked)
        _heat(nvml, asked)
        _link(asked)
        _fabric(nvml, asked)
        _partitions(asked)
        _processes(asked)
    except _Gone as gone:
        asked.unreadable["uuid"] = str(gone)
        raise Lost(str(gone), _fact(asked, index, node, f"GPU {index}: {gone}")) from None
    name, uuid = asked.values.get("name", "GPU"), asked.values.get("uuid", "")
    return _fact(asked, index, node, f"GPU {index}: {name} (UUID: {uuid})")


def is_persistent(device: DeviceSeen) -> bool:
    return device.persistence_mode != "Disabled"


def _fact(asked: _Asked, index: int, node: str, words: str) -> DeviceSeen:
    return DeviceSeen(
        origin=Origin("NVML", "nvidia-smi", words, node=node),
        form="nvml",
        index=index,
        unreadable=asked.unreadable,
        quotes=asked.quotes,
        **asked.values,
    )


def _identity(asked: _Asked) -> None:
    asked.put("uuid", asked.ask("uuid", "nvmlDeviceGetUUID"))
    asked.put("name", asked.ask("name", "nvmlDeviceGetName"))
    if (pci := asked.ask("pci", "nvmlDeviceGetPciInfo_v3")) is not None:
        bus = pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId)
        asked.put("pci", pci_of(bus))
    asked.put("minor", asked.ask("minor", "nvmlDeviceGetMinorNumber"))
    asked.put("serial", asked.ask("serial", "nvmlDeviceGetSerial"))
    asked.put("vbios", asked.ask("vbios", "nvmlDeviceGetVbiosVersion"))
    asked.put("gsp_firmware", asked.ask("gsp_firmware", "nvmlDeviceGetGspFirmwareVersion"))
    asked.put("persistence_mode", _ON.get(asked.ask("persistence_mode", "nvmlDeviceGetPersistenceMode"), ""))
    asked.put("compute_mode", _COMPUTE.get(asked.ask("compute_mode", "nvmlDeviceGetComputeMode"), ""))


def _memory(asked: _Asked) -> None:
    if (memory := asked.ask("memory_total_bytes", "nvmlDeviceGetMemoryInfo")) is not None:
        asked.put("memory_total_bytes", int(memory.total))
        asked.put("memory_used_bytes", int(memory.used))
        asked.put("memory_free_bytes", int(memory.free))


def _ecc(nvml: Any, asked: _Asked) -> None:
    if (mode := asked.ask("ecc_mode", "nvmlDeviceGetEccMode")) is not None:
        asked.put("ecc_mode", _ON.get(mode[0], ""))
        asked.put("ecc_mode_pending", _ON.get(mode[1], ""))
    for field, kind, counter in (
        ("corrected_volatile", _CORRECTED, _VOLATILE), ("uncorrected_volatile", _UNCORRECTED, _VOLATILE),
        ("corrected_aggregate", _CORRECTED, _AGGREGATE), ("uncorrected_aggregate", _UNCORRECTED, _AGGREGATE),
    ):  # fmt: skip
        if (count := asked.ask(field, "nvmlDeviceGetTotalEccErrors", kind, counter)) is not None:
            asked.put(field, int(count), f"ECC errors, {field.replace('_', ', ')}: {count}")
    if (rows := asked.ask("remapped_uncorrectable", "nvmlDeviceGetRemappedRows")) is not None:
        corrected, uncorrected, pending, failed = rows
        yes = {True: "Yes", False: "No"}
        words = (
            f"Remapped rows: correctable {corrected}, uncorrectable {uncorrected}, pending {yes[bool(pending)]}, "
            f"remapping failure occurred {yes[bool(failed)]}"
        )
        asked.put("remapped_correctable", int(corrected), words)
        asked.put("remapped_uncorrectable", int(uncorrected), words)
        asked.put("is_remap_pending", bool(pending), words)
        asked.put("is_remap_failed", bool(failed), words)
    if (banks := asked.ask("remap_banks", "nvmlDeviceGetRowRemapperHistogram")) is not None:
        known = {name: int(getattr(banks, name)) for name in ("max", "high", "partial", "low", "none")}
        asked.put("remap_banks", known, f"Banks by spare rows: {known}")
    if (pending := asked.ask("is_retirement_pending", "nvmlDeviceGetRetiredPagesPendingStatus")) is not None:
        asked.put("is_retirement_pending", bool(pending), f"Retired pages pending: {bool(pending)}")
    if (repairs := asked.ask("is_channel_repair_pending", "nvmlDeviceGetRepairStatus")) is not None:
        asked.put("is_channel_repair_pending", bool(repairs[0]), f"Channel repair pending: {bool(repairs[0])}")
        asked.put("is_tpc_repair_pending", bool(repairs[1]), f"TPC repair pending: {bool(repairs[1])}")
    _sram(nvml, asked)
    action = _field(nvml, asked, "recovery_action", "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION")
    if action is not None:
        words = _RECOVERY.get(int(action), f"Unknown ({action})")
        asked.put("recovery_action", words, f"GPU Recovery Action: {words}")


def _sram(nvml: Any, asked: _Asked) -> None:
    shape = getattr(nvml, "c_nvmlEccSramErrorStatus_v1_t", None)
    if shape is None:
        return
    status = shape()
    status.version = nvml.nvmlEccSramErrorStatus_v1
    if asked.ask("is_sram_threshold_exceeded", "nvmlDeviceGetSramEccErrorStatus", ctypes.byref(status)) is None:
        return
    exceeded = bool(status.bThresholdExceeded)
    asked.put("is_sram_threshold_exceeded", exceeded, f"SRAM threshold exceeded: {'Yes' if exceeded else 'No'}")
    uncorrected = int(status.volatileUncParity) + int(status.volatileUncSecDed)
    aggregate = int(status.aggregateUncParity) + int(status.aggregateUncSecDed)
    asked.put("sram_uncorrected_volatile", uncorrected, f"SRAM uncorrectable, volatile: {uncorrected}")
    asked.put("sram_uncorrected_aggregate", aggregate, f"SRAM uncorrectable, aggregate: {aggregate}")


def _heat(nvml: Any, asked: _Asked) -> None:
    if (degrees := asked.ask("temperature_c", "nvmlDeviceGetTemperature", _GPU_SENSOR)) is not None:
        asked.put("temperature_c", float(degrees), f"GPU current temperature: {degrees} C")
    if (margin := asked.ask("margin_c", "nvmlDeviceGetMarginTemperature")) is not None:
        asked.put("margin_c", float(margin), f"GPU T.Limit temperature: {margin} C")
    for field, threshold in (("temperature_shutdown_c", _SHUTDOWN), ("temperature_slowdown_c", _SLOWDOWN)):
        if (limit := asked.ask(field, "nvmlDeviceGetTemperatureThreshold", threshold)) is not None:
            asked.put(field, float(limit))
    memory = _field(nvml, asked, "memory_temperature_c", "NVML_FI_DEV_MEMORY_TEMP")
    asked.put("memory_temperature_c", float(memory) if memory else None)
    for field, name in (
        ("power_draw_w", "nvmlDeviceGetPowerUsage"), ("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit"),
    ):  # fmt: skip
        if (milliwatts := asked.ask(field, name)) is not None:
            asked.put(field, milliwatts / 1000)
    if (state := asked.ask("performance_state", "nvmlDeviceGetPerformanceState")) is not None and 0 <= state <= 15:
        asked.put("performance_state", f"P{state}")
    if (use := asked.ask("gpu_percent", "nvmlDeviceGetUtilizationRates")) is not None:
        asked.put("gpu_percent", float(use.gpu))
    bits = asked.ask("slowed_by", "nvmlDeviceGetCurrentClocksEventReasons")
    if bits is None:
        bits = asked.ask("slowed_by", "nvmlDeviceGetCurrentClocksThrottleReasons")
    if bits is not None:
        reasons = tuple(name for bit, name in REASONS.items() if int(bits) & bit)
        asked.put("slowed_by", reasons, f"Clocks event reasons: {', '.join(reasons) or 'none'} ({int(bits):#x})")
    for field, name, clock in (
        ("sm_clock_mhz", "nvmlDeviceGetClockInfo", _SM), ("sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", _SM),
    ):  # fmt: skip
        if (mhz := asked.ask(field, name, clock)) is not None:
            asked.put(field, float(mhz))


def _link(asked: _Asked) -> None:
    for field, name in (
        ("pcie_gen", "nvmlDeviceGetCurrPcieLinkGeneration"), ("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
        ("pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration"), ("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
        ("pcie_gen_device_max", "nvmlDeviceGetGpuMaxPcieLinkGeneration"),
        ("pcie_replays", "nvmlDeviceGetPcieReplayCounter"),
    ):  # fmt: skip
        if (number := asked.ask(field, name)) is not None:
            asked.put(field, int(number), f"PCIe {field.removeprefix('pcie_').replace('_', ' ')}: {number}")


def _fabric(nvml: Any, asked: _Asked) -> None:
    shape = getattr(nvml, "c_nvmlGpuFabricInfoV_t", None)
    if shape is None:
        return
    fabric = shape()
    fabric.version = nvml.nvmlGpuFabricInfo_v2
    if asked.ask("fabric_state", "nvmlDeviceGetGpuFabricInfoV", ctypes.byref(fabric)) is None:
        return
    state = _FABRIC.get(int(fabric.state), "")
    status = "Success" if not fabric.status else _status_words(nvml, int(fabric.status))
    if state in ("", "N/A"):
        asked.put("fabric_state", state or None)
        return
    words = f"Fabric: state {state}, status {status}"
    asked.put("fabric_state", state, words)
    asked.put("fabric_status", status if state == "Completed" else "N/A", words)
    asked.put("fabric_clique", str(int(fabric.cliqueId)))
    uuid = bytes(fabric.clusterUuid).hex()
    if uuid.strip("0"):
        asked.put("fabric_cluster", f"{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}")


def _status_words(nvml: Any, status: int) -> str:
    try:
        words = nvml.nvmlErrorString(status)
    except Exception:
        return f"error {status}"
    return words.decode() if isinstance(words, bytes) else str(words)


def _partitions(asked: _Asked) -> None:
    if (modes := asked.ask("mig_mode", "nvmlDeviceGetMigMode")) is None:
        return
    current, pending = modes
    asked.put("mig_mode", _ON.get(current, ""), f"MIG mode: current {_ON.get(current)}, pending {_ON.get(pending)}")
    asked.put("mig_mode_pending", _ON.get(pending, ""))
    if current:
        asked.put("mig", tuple(_mig(asked)))


def _mig(asked: _Asked) -> Iterator[MigDevice]:
    for index in range(int(asked.ask("mig", "nvmlDeviceGetMaxMigDeviceCount") or 0)):
        handle = asked.ask("mig", "nvmlDeviceGetMigDeviceHandleByIndex", index)
        if handle is None:
            continue
        name = asked.ask("mig", "nvmlDeviceGetName", handle=handle) or ""
        memory = asked.ask("mig", "nvmlDeviceGetMemoryInfo", handle=handle)
        attributes = asked.ask("mig", "nvmlDeviceGetAttributes_v2", handle=handle)
        yield MigDevice(
            index=index,
            uuid=asked.ask("mig", "nvmlDeviceGetUUID", handle=handle) or "",
            profile=name.partition("MIG ")[2].strip(),
            gi=asked.ask("mig", "nvmlDeviceGetGpuInstanceId", handle=handle),
            ci=asked.ask("mig", "nvmlDeviceGetComputeInstanceId", handle=handle),
            memory_total_bytes=int(memory.total) if memory is not None else None,
            memory_used_bytes=int(memory.used) if memory is not None else None,
            multiprocessors=int(attributes.multiprocessorCount) if attributes is not None else None,
        )


def _processes(asked: _Asked) -> None:
    found: dict[int, Process] = {}
    is_known = False
    for name, kind in (
        ("nvmlDeviceGetComputeRunningProcesses", "C"), ("nvmlDeviceGetGraphicsRunningProcesses", "G"),
        ("nvmlDeviceGetMPSComputeRunningProcesses", "M+C"),
    ):  # fmt: skip
        listed = asked.ask("processes", name)
        if listed is None:
            continue
        is_known = True
        for one in listed:
            used = one.usedGpuMemory
            instance = getattr(one, "gpuInstanceId", 0xFFFFFFFF)
            found.setdefault(
                one.pid,
                Process(
                    pid=one.pid,
                    type=kind,
                    memory_bytes=None if used is None or used == _UNKNOWN_COUNT else int(used),
                    gi=None if instance in (None, 0xFFFFFFFF) else instance,
                ),
            )
    if is_known:
        asked.put("processes", tuple(found.values()))


def _field(nvml: Any, asked: _Asked, field: str, name: str) -> int | None:
    """One of NVML's numbered fields."""
    number = getattr(nvml, name, None)
    if number is None:
        return None
    values = asked.ask(field, "nvmlDeviceGetFieldValues", [number])
    if not values or values[0].nvmlReturn != 0:
        return None
    return int(values[0].value.uiVal)
