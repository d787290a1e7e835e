"""Layer 1: what is a fault and what is none, which finding explains which, and whose it is."""

from __future__ import annotations

import pytest
from asked import codes, of_text

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.evidence.piece import piece
from berth.evidence.read import read


def of_pieces(*pieces: tuple[str, str, str]) -> Diagnosis:
    """Kind, node, text."""
    return diagnose(read([piece(text, kind, node=node) for kind, node, text in pieces]))


LOADED = """\
[    5.1] nvidia: loading out-of-tree module taints kernel.
[    5.1] nvidia: module license 'NVIDIA' taints kernel.
[    5.2] nvidia: module verification failed: signature and/or required key missing - tainting kernel
[    5.3] nvidia-nvlink: Nvlink Core is being initialized, major device number 236
[    5.4] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22-I3)
[    5.5] [drm] [nvidia-drm] [GPU ID 0x00008300] Loading driver
[    6.0] nvidia-uvm: Loaded the UVM driver, major device number 511.
"""
BUILT = """\
========== NVIDIA Software Installer ==========
Starting installation of NVIDIA driver version 550.127.05 for Linux kernel version 5.15.0-125-generic
Stopping NVIDIA persistence daemon...
Unloading NVIDIA driver kernel modules...
Resolving Linux kernel version...
Proceeding with Linux kernel version 5.15.0-125-generic
Installing Linux kernel headers...
warning: the compiler differs from the one used to build the kernel
  The kernel was built by: gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0
  You are using:           cc (Ubuntu 11.3.0-1ubuntu1~22.04) 11.3.0
-> Kernel module compilation complete.
Loading NVIDIA driver kernel modules...
+ modprobe nvidia
+ modprobe nvidia-uvm
Starting NVIDIA persistence daemon...
Mounting NVIDIA driver rootfs...
Done, now waiting for signal
"""
MANAGER_ACTIVE = """\
● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; preset: enabled)
     Active: active (running) since Fri 2025-05-16 15:10:10 UTC; 13min ago
   Main PID: 29850 (nv-fabricmanage)
May 16 15:10:22 gpu-1 nv-fabricmanager[29850]: [May 16 2025 15:10:21] [INFO] [tid 30042] GPU probe request received
"""
DRIVER_MANAGER = """\
nvidia driver module is already loaded with refcount 236
Shutting down all GPU clients on the current node by disabling their component-specific nodeSelector labels
Waiting for the operator-validator to shutdown
Successfully uninstalled nvidia driver components
"""


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("dmesg", LOADED),
        ("plugin-log", BUILT),
        ("host", MANAGER_ACTIVE),
        ("operator-log", DRIVER_MANAGER),
        ("host", "blacklist nouveau\noptions nouveau modeset=0\n"),
        ("host", "SecureBoot disabled\n"),
        ("host", "Enforcing\n"),
        ("node-json", "nvidia.com/gpu-driver-upgrade-state=upgrade-done\nnvidia.com/gpu.deploy.driver=true\n"),
        ("host", "/dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools\n"),
        ("app-log", "No devices were found\n"),
        ("dmesg", 'avc:  denied  { module_load } for  pid=1 comm="modprobe" path="/x/nvidia.ko" permissive=1\n'),
        ("nvidia-smi", "GPU 00000000:1B:00.0\n    Fabric\n        State   : Completed\n        Status  : Success\n"),
        ("report", "We use driver 550 with nvidia-fabricmanager 550 on H100 nodes; everything works with 550.127.08."),
        ("dmesg", "[1.0] Modules linked in: nvidia_uvm(OE) nvidia(OE)\n[1.1] RIP: 0010:ext4_foo+0x1/0x2 [ext4]\n"),
        ("plugin-log", "gcc-11 (Ubuntu 11.4.0) 11.4.0\nkernel was built by gcc-11\n"),
    ],
)
def test_what_is_well_gives_nothing(kind: str, text: str) -> None:
    found = [one for one in of_text(text, kind).findings if one.layer.name == "L1" and one.confidence > 0.4]
    assert [one.code for one in found] == []


def test_the_same_compiler_under_two_names_is_no_difference() -> None:
    text = (
        "warning: the compiler differs from the one used to build the kernel\n"
        "  The kernel was built by: x86_64-linux-gnu-gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0\n"
        "  You are using:           gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0\n"
    )
    assert "DriverCompilerDiffers" not in codes(of_text(text))
    assert "DriverCompilerDiffers" in codes(of_text(text.replace("13.3.0\n", "12.1.0\n", 1)))


def test_versions_that_differ_are_named() -> None:
    told = of_text(
        "NVRM: API mismatch: the client has the version 580.178.04, but\n"
        "NVRM: this kernel module has the version 580.173.02.  Please\nNVRM: make sure\n",
        "dmesg",
    )
    (finding,) = told.findings
    assert finding.code == "DriverVersionsDiffer"
    assert "580.178.04" in finding.cause
    assert "580.173.02" in finding.cause


@pytest.mark.parametrize(("library", "differs"), [("580.178", True), ("580.173", False), ("580.17", True)])
def test_a_library_leaves_the_last_number_out(library: str, differs: bool) -> None:
    told = of_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC 2026\n"
        f"NVML library version: {library}\n",
        "host",
    )
    assert ("DriverVersionsDiffer" in codes(told)) == differs


def test_the_manager_and_the_driver_are_named() -> None:
    told = of_text(
        "fabric manager NVIDIA GPU driver interface version 595.71.05 don't match with driver version 590.48.01. "
        "Please update with matching NVIDIA driver package.\n"
        "nvidia-fabricmanager.service: Failed with result 'exit-code'.\n",
        "fabricmanager-log",
    )
    (finding,) = told.findings
    assert finding.code == "FabricManagerVersionDiffers"
    assert finding.cause == "Fabric Manager is 595.71.05, the driver 590.48.01."


def test_a_manager_with_nothing_to_do_is_a_trap_and_only_where_nothing_says_otherwise() -> None:
    words = (
        "request to query NVSwitch device information failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
    )
    alone = of_text(words, "fabricmanager-log")
    assert [one.code for one in alone.traps] == ["FabricManagerWithoutSwitch"]
    assert alone.findings == ()
    waits = of_text(
        f"{words}\nGPU 00000000:1B:00.0\n    Fabric\n        State   : In Progress\n        Status  : N/A\n"
    )
    assert "FabricManagerWithoutSwitch" not in codes(waits)
    assert waits.findings[0].cause_class == "fabric"
    blackwell = of_text(f"{words}\nGPU 0: NVIDIA B200 (UUID: GPU-19a556ea-38df-750d-fcf7-3da28757ba5b)\n")
    assert "FabricManagerWithoutSwitch" not in codes(blackwell)


def test_a_missing_library_is_the_managers_only_where_it_is_said() -> None:
    words = "error while loading shared libraries: libz.so.1: cannot open shared object file"
    assert "FabricManagerDown" not in codes(of_text(f"./train: {words}", "app-log"))
    assert "FabricManagerDown" in codes(of_text(words, "fabricmanager-log"))


def test_what_keeps_the_driver_out_explains_that_nobody_reaches_it() -> None:
    told = of_pieces(
        ("dmesg", "gpu-1", "Loading of unsigned module is rejected"),
        ("nvidia-smi", "gpu-1", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
    )
    assert [one.code for one in told.findings] == ["DriverModuleUnsigned"]
    assert [(one.finding.code, one.explained_by.code) for one in told.consequences] == [
        ("DriverNotLoaded", "DriverModuleUnsigned")
    ]


def test_a_driver_in_use_explains_a_pod_that_fails() -> None:
    told = of_pieces(
        ("operator-log", "gpu-1", "Could not unload NVIDIA driver kernel modules, driver is in use"),
        ("kubectl", "gpu-1", "nvidia-driver-daemonset-6xzh7   0/1   Init:CrashLoopBackOff   822   2d22h"),
    )
    assert [one.code for one in told.findings] == ["DriverInUse"]
    assert [one.finding.code for one in told.consequences] == ["DriverPodFails"]


def test_one_nodes_words_prove_nothing_of_anothers() -> None:
    told = of_pieces(
        ("dmesg", "gpu-1", "NVRM: GPU 0000:3b:00.0 is already bound to nouveau."),
        ("nvidia-smi", "gpu-2", "Failed to initialize NVML: Driver/library version mismatch"),
    )
    assert {(one.code, one.node) for one in told.findings} == {
        ("NouveauHoldsGpu", "gpu-1"),
        ("DriverVersionsDiffer", "gpu-2"),
    }


def test_a_refusal_is_sure_with_lockdown_and_another_matter_without_it() -> None:
    words = "modprobe: ERROR: could not insert 'nvidia': Operation not permitted"
    alone = of_text(words)
    assert alone.findings[0].confidence < 0.9
    assert any("Secure Boot" in one.what for one in alone.unconfirmed)
    locked = of_text(f"{words}\nSecureBoot enabled\n")
    assert locked.findings[0].confidence >= 0.95
    assert locked.unconfirmed == ()
    off = of_text(f"{words}\nSecureBoot disabled\n")
    assert off.findings[0].cause_class == "permission"


def test_a_pending_upgrade_alone_is_a_hint() -> None:
    state = "nvidia.com/gpu-driver-upgrade-state: upgrade-required\n"
    (hint,) = of_text(state, "node-json").findings
    assert hint.confidence <= 0.4
    both = of_text(f"{state}Could not unload NVIDIA driver kernel modules, driver is in use\n")
    assert {one.code: one.confidence for one in both.findings}["DriverUpgradeStuck"] >= 0.85


def test_paused_components_are_named_with_their_node() -> None:
    node = (
        '{"apiVersion":"v1","kind":"Node","metadata":{"name":"gpu-9","labels":{'
        '"nvidia.com/gpu.deploy.dcgm":"paused-for-driver-upgrade",'
        '"nvidia.com/gpu.deploy.device-plugin":"paused-for-driver-upgrade",'
        '"nvidia.com/gpu.deploy.driver":"true"}},"status":{}}'
    )
    (finding,) = of_text(node, "node-json").findings
    assert (finding.code, finding.node) == ("DriverUpgradeStuck", "gpu-9")
    assert "dcgm, device-plugin" in finding.cause


def test_an_unhealthy_place_in_the_fabric_quotes_its_words() -> None:
    told = of_text(
        "GPU 00000008:01:00.0\n    Fabric\n        State        : Completed\n        Status       : Success\n"
        "        Health\n            Summary              : Unhealthy\n            Bandwidth            : Degraded\n",
        "nvidia-smi",
    )
    (finding,) = told.findings
    assert (finding.code, finding.pci) == ("FabricUnhealthy", (8, 1, 0))
    assert "summary unhealthy, bandwidth degraded" in finding.cause
    assert "Unhealthy" in finding.evidence[0].text


def test_device_files_are_the_nodes_only_on_the_node() -> None:
    words = "ls: cannot access '/dev/nvidia*': No such file or directory"
    assert "DeviceFilesMissing" in codes(of_text(words, "host"))
    assert "DeviceFilesMissing" not in codes(of_text(words, "app-log"))


GPU = "17:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 80GB] [10de:20b5] (rev a1)\n"
MODULES = "Module                  Size  Used by\nxt_mark                16384  2\nveth                   32768  0\n"


@pytest.mark.parametrize(
    ("lspci", "lsmod", "is_absent"),
    [
        (GPU + "\tKernel modules: nvidiafb, nouveau\n", "", True),
        (GPU, MODULES, True),
        (GPU, MODULES + "nvidia 56717312 188 nvidia_uvm\n", False),
        (GPU, "xt_mark                16384  2\n", False),  # not the whole list
        (GPU, "", False),  # lspci without -k says nothing of drivers
        (GPU + "\tKernel driver in use: nvidia\n\tKernel modules: nvidia\n", MODULES, False),
        (GPU + "\tKernel driver in use: vfio-pci\n\tKernel modules: nvidiafb\n", MODULES, False),  # of a guest
        ("", MODULES, False),  # a node without GPUs
    ],
)
def test_a_gpu_that_no_driver_has(lspci: str, lsmod: str, is_absent: bool) -> None:
    found = codes(of_pieces(("lspci", "gpu-1", lspci), ("lsmod", "gpu-1", lsmod)))
    assert ("DriverNotLoaded" in found) is is_absent


def test_the_tool_that_is_not_there_says_it_of_the_node_alone() -> None:
    for kind, says_so in (("host", True), ("app-log", False), ("pod-events", False)):
        assert ("DriverNotLoaded" in codes(of_text("bash: nvidia-smi: command not found", kind))) is says_so


def test_a_module_that_others_are_listed_without() -> None:
    listed = "nvidia_modeset       1306624  0\nnvidia              56696832  1 nvidia_modeset\n"
    failed = "cuInit: CUDA_ERROR_UNKNOWN (999)\n"
    uvm = "nvidia_uvm           2306048  0\n"
    assert "UvmMissing" in codes(of_pieces(("lsmod", "n", listed), ("app-log", "n", failed)))
    assert "UvmMissing" not in codes(of_pieces(("lsmod", "n", listed + uvm), ("app-log", "n", failed)))
    assert "UvmMissing" not in codes(of_pieces(("lsmod", "n", listed)))
    assert "UvmMissing" not in codes(of_pieces(("lsmod", "m", listed), ("app-log", "n", failed)))


def test_a_licence_is_asked_of_guests_only() -> None:
    head = "==============NVSMI LOG==============\nAttached GPUs : 1\nGPU 00000000:02:01.0\n"
    guest = "    GPU Virtualization Mode\n        Virtualization Mode : VGPU\n"
    whole = "    GPU Virtualization Mode\n        Virtualization Mode : Pass-Through\n"
    without = "    vGPU Software Licensed Product\n        License Status : Unlicensed (Unrestricted)\n"
    licensed = "    vGPU Software Licensed Product\n        License Status : Licensed (Expiry: 2027-1-17 7:33:36 GMT)\n"
    assert "VgpuUnlicensed" in codes(of_text(head + guest + without, "nvidia-smi-q"))
    assert "VgpuUnlicensed" not in codes(of_text(head + whole + without, "nvidia-smi-q"))
    assert "VgpuUnlicensed" not in codes(of_text(head + guest + licensed, "nvidia-smi-q"))


@pytest.mark.parametrize(("installed", "differs"), [("535.183.01-0ubuntu1", True), ("535.104.05-0ubuntu1", False)])
def test_a_package_is_compared_with_what_is_loaded(installed: str, differs: bool) -> None:
    loaded = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
    text = f"{loaded}ii  libnvidia-compute-535  {installed}\n"
    assert ("DriverVersionsDiffer" in codes(of_text(text, "host"))) is differs
