"""NVML: the driver's own view of the devices, through nvidia-ml-py, which is imported here and nowhere else.

The library is that of the machine: its own, or the one that a driver container brings. It is opened for each look and
closed again, so that the agent does not hold the driver when somebody wants to replace it; only where a device is
not in persistence mode it stays open, since each opening would wake the device up.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from berth.evidence.fact import LONGEST_TEXT, Origin, pci_of, pci_words
from berth.evidence.formats.boundary_facts import HostCount
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen
from berth.evidence.piece import Piece
from berth.node.nvml_device import Lost, device_of, is_persistent
from berth.node.places import Places
from berth.node.seen import NotSeen, Sight

WHAT = "NVML"
LIBRARY = "libnvidia-ml.so.1"
# Below the machine's root, and below a driver container's, which the operator mounts at /run/nvidia/driver.
_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/lib/wsl/lib",
            "opt/nvidia/lib64", "home/kubernetes/bin/nvidia/lib64", "run/opengl-driver/lib")  # fmt: skip
_ROOTS = ("", "run/nvidia/driver")


class Nvml:
    """Looks at the devices through NVML. `module` stands in for pynvml in tests."""

    def __init__(self, places: Places, node: str = "", module: ModuleType | Any | None = None) -> None:
        self._places = places
        self._node = node
        self._module = module
        self._is_open = False

    def look(self) -> Iterator[Sight]:
        """DriverSeen, HostCount and a DeviceSeen for each device; or why there are none."""
        nvml = self._library()
        if nvml is None:
            yield NotSeen(WHAT, f"no {LIBRARY} on this machine, or it cannot be loaded")
            return
        try:
            if not self._is_open:
                nvml.nvmlInit()
                self._is_open = True
        except nvml.NVMLError as error:
            words = error_words(nvml, error)
            yield NotSeen(WHAT, words)
            if error.value != nvml.NVML_ERROR_LIBRARY_NOT_FOUND:
                yield Piece(f"Failed to initialize NVML: {words}\n".encode(), WHAT, "nvidia-smi", self._node)
            return
        stays = False
        try:
            yield self._driver(nvml)
            count = int(nvml.nvmlDeviceGetCount())
            yield HostCount(origin=self._origin(f"nvmlDeviceGetCount: {count}"), by="nvml", count=count)
            for index in range(count):
                for seen in self._device(nvml, index):
                    stays = stays or (isinstance(seen, DeviceSeen) and not is_persistent(seen))
                    yield seen
        except nvml.NVMLError as error:
            yield NotSeen(WHAT, error_words(nvml, error))
            stays = False
        finally:
            if not stays:
                self.close()

    def close(self) -> None:
        if self._is_open and self._module is not None:
            self._is_open = False
            try:
                self._module.nvmlShutdown()
            except self._module.NVMLError:
                return  # the driver is gone

    def _library(self) -> Any:
        """pynvml with the machine's library; None where either is missing."""
        if self._module is not None:
            return self._module
        # The library first: where there is none, the module would only take up memory.
        library = _load(self._places)
        if library is None:
            return None
        try:
            import pynvml
        except ImportError:
            return None
        pynvml.nvmlLib = library
        self._module = pynvml
        return pynvml

    def _driver(self, nvml: Any) -> DriverSeen:
        version, library = _quietly(nvml, "nvmlSystemGetDriverVersion"), _quietly(nvml, "nvmlSystemGetNVMLVersion")
        cuda = _quietly(nvml, "nvmlSystemGetCudaDriverVersion_v2") or 0
        newest = f"{int(cuda) // 1000}.{int(cuda) % 1000 // 10}" if cuda else ""
        words = f"driver {version or '?'}, NVML {library or '?'}, CUDA {newest or '?'}"
        return DriverSeen(origin=self._origin(words), version=version or "", cuda=newest, nvml=library or "")

    def _device(self, nvml: Any, index: int) -> Iterator[Sight]:
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            yield device_of(nvml, handle, index, self._node)
        except Lost as lost:
            yield lost.device
            yield self._lost(pci_words(lost.device.pci) + ".0", str(lost))
        except nvml.NVMLError as error:
            words = error_words(nvml, error)
            yield DeviceSeen(
                origin=self._origin(f"GPU {index}: {words}"), form="nvml", index=index, unreadable={"uuid": words}
            )
            yield self._lost("", words)

    def _lost(self, pci: str, words: str) -> Piece:
        """In the words of nvidia-smi, which the doctor knows."""
        device = f" {pci}" if pci and pci_of(pci)[1] >= 0 else ""
        text = f"Unable to determine the device handle for GPU{device}: {words}.\n"
        return Piece(text.encode(), WHAT, "nvidia-smi", self._node)

    def _origin(self, words: str) -> Origin:
        return Origin(WHAT, "nvidia-smi", words[:LONGEST_TEXT], node=self._node)


def error_words(nvml: Any, error: Exception) -> str:
    """As NVML itself words it where its library is there, which is what people search for."""
    try:
        words = nvml.nvmlErrorString(error.value)  # type: ignore[attr-defined]
        return words.decode() if isinstance(words, bytes) else str(words)
    except Exception:
        return str(error)


def _quietly(nvml: Any, name: str) -> Any:
    try:
        found = getattr(nvml, name)()
    except (nvml.NVMLError, AttributeError):
        return None
    return found.decode() if isinstance(found, bytes) else found


def _load(places: Places) -> ctypes.CDLL | None:
    """The machine's library by its path, else what the loader finds."""
    candidates = [
        str(path)
        for root in _ROOTS
        for folder in _FOLDERS
        if (path := places.root / root / folder / LIBRARY).exists() or Path(path).is_symlink()
    ]
    for name in (*candidates, LIBRARY):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
