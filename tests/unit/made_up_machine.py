"""A made-up machine for the node agent: its folders as a tree, and an NVML that answers what a test wants."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from berth.node.places import Places

KMSG = "6,{number},{us},-;{text}\n"
UPTIME_S = 600
POD_UID = "0d5f4f3c-8f2e-4a63-9d1e-3f1c2b7a9e10"
CONTAINER_ID = "c" * 64


def uuid_of(index: int) -> str:
    return f"GPU-0000000{index}-1111-2222-3333-444444444444"


def pci_of(index: int) -> str:
    return f"0000:{0x10 + index:02x}:00.0"


class MadeUpMachine:
    """`places` is what a collector gets."""

    def __init__(self, root: Path, gpus: int = 2) -> None:
        self.root = root
        self.places = Places.of(str(root))
        for folder in ("sys/bus/pci/devices", "dev", "etc", "run", "proc/sys/kernel/random", "var/log/pods",
                       "var/log/containers", "var/lib/kubelet/device-plugins"):  # fmt: skip
            (root / folder).mkdir(parents=True)
        self.write("proc/stat", f"cpu 1 2 3\nbtime {int(time.time()) - UPTIME_S}\n")
        self.write("proc/sys/kernel/random/boot_id", "boot-1\n")
        self.write("proc/modules", "nvidia_uvm 1929216 0 - Live 0x0\nnvidia 56717312 188 nvidia_uvm, Live 0x0\n")
        self.write("dev/kmsg", "")
        self._records = 0
        for index in range(gpus):
            self.add_gpu(index)
        if gpus:
            self.write(
                "proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n",
            )

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def add_gpu(self, index: int, *, revision: str = "0xa1", header: bytes = b"\xde\x10\x30\x23") -> None:
        address = pci_of(index)
        folder = f"sys/bus/pci/devices/{address}"
        for name, text in (
            ("vendor", "0x10de"), ("device", "0x2330"), ("class", "0x030200"), ("revision", revision),
            ("current_link_speed", "32.0 GT/s PCIe"), ("current_link_width", "16"),
            ("max_link_speed", "32.0 GT/s PCIe"), ("max_link_width", "16"),
        ):  # fmt: skip
            self.write(f"{folder}/{name}", f"{text}\n")
        self.write(f"{folder}/config", header + b"\0" * 60)
        self.write(
            f"proc/driver/nvidia/gpus/{address}/information",
            f"Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 1\nGPU UUID: \t {uuid_of(index)}\n"
            f"Video BIOS: \t 96.00\nBus Type: \t PCIe\nBus Location: \t {address}\nDevice Minor: \t {index}\n",
        )
        self.write(f"dev/nvidia{index}", "")
        self.write("dev/nvidiactl", "")

    def say(self, text: str, after_boot_s: float = 100.0) -> None:
        """A record of the kernel."""
        self._records += 1
        with (self.root / "dev/kmsg").open("a") as log:
            log.write(KMSG.format(number=self._records, us=int(after_boot_s * 1e6), text=text))

    def run_container(
        self, pid: int = 500, *, pod: str = "ml/train", name: str = "main", asked: str = "",
        nodes: tuple[int, ...] = (), opened: tuple[int, ...] = (), cgroup: str = "", uid: str = POD_UID,
        id: str = CONTAINER_ID,
    ) -> None:  # fmt: skip
        namespace, _, pod_name = pod.partition("/")
        line = cgroup or f"0::/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/cri-containerd-{id}.scope"
        self.write(f"proc/{pid}/cgroup", f"{line}\n")
        self.write(f"proc/{pid}/comm", "python\n")
        environment = ["PATH=/bin", *([f"NVIDIA_VISIBLE_DEVICES={asked}"] if asked else [])]
        self.write(f"proc/{pid}/environ", "\0".join(environment))
        (self.root / f"proc/{pid}/root/dev").mkdir(parents=True)
        for minor in nodes:
            self.write(f"proc/{pid}/root/dev/nvidia{minor}", "")
        (self.root / f"proc/{pid}/fd").mkdir()
        for number, minor in enumerate(opened, 3):
            (self.root / f"proc/{pid}/fd/{number}").symlink_to(f"/dev/nvidia{minor}")
        (self.root / f"var/log/pods/{namespace}_{pod_name}_{uid}").mkdir(exist_ok=True)
        self.write(f"var/log/containers/{pod_name}_{namespace}_{name}-{id}.log", "")


class NvmlError(Exception):
    """As pynvml's NVMLError."""

    def __init__(self, value: int) -> None:
        super().__init__(_WORDS.get(value, f"error {value}"))
        self.value = value


_WORDS = {
    3: "Not Supported", 9: "Driver Not Loaded", 13: "Function Not Found", 15: "GPU is lost", 16: "GPU requires reset",
    18: "Driver/library version mismatch", 999: "Unknown Error",
}  # fmt: skip


class MadeUpNvml:
    """Stands in for the module pynvml: `devices` are mappings from a function's name to its answer, or to the number of
    an error. A function that a device does not name is not supported."""

    NVMLError = NvmlError
    NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_FUNCTION_NOT_FOUND, NVML_ERROR_NOT_FOUND = 3, 13, 6
    NVML_ERROR_NO_PERMISSION, NVML_ERROR_INVALID_ARGUMENT, NVML_ERROR_LIBRARY_NOT_FOUND = 4, 2, 12
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230

    def __init__(self, devices: list[dict[str, Any]], init: int = 0) -> None:
        self.devices = devices
        self.init = init
        self.opened = 0
        self.is_open = False

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init:
            raise NvmlError(self.init)
        self.opened += 1
        self.is_open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.is_open = False

    def nvmlErrorString(self, number: int) -> str:  # noqa: N802
        return _WORDS.get(number, f"error {number}")

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.95.05"

    def nvmlSystemGetNVMLVersion(self) -> str:  # noqa: N802
        return "13.580.95.05"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:  # noqa: N802
        return 13000

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:  # noqa: N802
        device = self.devices[index]
        if isinstance(device.get("handle"), int):
            raise NvmlError(device["handle"])
        return device

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvmlDevice"):
            raise AttributeError(name)

        def ask(handle: dict[str, Any], *arguments: Any) -> Any:
            if name not in handle:
                raise NvmlError(3)
            answer = handle[name]
            if callable(answer):
                answer = answer(*arguments)
            if isinstance(answer, NvmlError):
                raise answer
            return answer

        return ask


def nvml_device(index: int, **answers: Any) -> dict[str, Any]:
    """A healthy device; `answers` go before its own."""
    return {
        "nvmlDeviceGetUUID": uuid_of(index),
        "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
        "nvmlDeviceGetPciInfo_v3": SimpleNamespace(busId=f"0000{pci_of(index).upper()}"),
        "nvmlDeviceGetMinorNumber": index,
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * 2**30, used=2**30, free=79 * 2**30),
        "nvmlDeviceGetEccMode": [1, 1],
        "nvmlDeviceGetTotalEccErrors": lambda kind, counter: 0,
        "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
        "nvmlDeviceGetTemperature": lambda sensor: 41,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
        "nvmlDeviceGetCurrPcieLinkGeneration": 5,
        "nvmlDeviceGetCurrPcieLinkWidth": 16,
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetComputeRunningProcesses": [],
        **answers,
    }
