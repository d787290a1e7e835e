"""L0 and L1: sentences that stand near a fault of machine or driver, and tell of something else or of nothing."""

from __future__ import annotations

import pytest
from asked import codes, of_text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("gdrdrv:gdrdrv_init:loading gdrdrv version 2.5 built for proprietary NVIDIA driver\n", "DriverCompanionFails"),
        ("nvidia_fs: registered correctly with major number 510\n", "DriverCompanionFails"),
        ("gdrdrv                 45056  0\nnvidia_fs             282624  0\n", "DriverCompanionFails"),
        ("NVRM: No NVIDIA GPU found.\n", "DriverWhereNoGpuIs"),  # of a machine that nobody says anything of
        ("the login node is an m6i.large and has no GPU\n", "DriverWhereNoGpuIs"),
        ("lspci | grep -i nvidia: 3b:00.0 3D controller: NVIDIA Corporation GA100\n", "GpuMissing"),
        ("lspci lists the card\n", "GpuMissing"),
        ("the NVIDIA drivers are installed on the nodes, driver.enabled=false\n", "SecondNvidiaDriver"),
        ("Starting installation of NVIDIA driver version 570.124.06 for Linux kernel version 6.8.0\n",
         "SecondNvidiaDriver"),
        ("Linux version 6.8.12 (gcc version 13.2.0) #1\ngcc --version: gcc (Debian 13.2.0-25) 13.2.0\n",
         "DriverCompilerDiffers"),
        ("nvidia.service: Deactivated successfully.\n", "DriverBuildFails"),
        ("pod-nvidia.service: Main process exited, code=exited, status=1/FAILURE\n", "DriverBuildFails"),
        ("nodes with V100 run the proprietary modules, B200 has an image of its own\n", "DriverModuleKindWrong"),
        ("nvidia 0000:41:00.0: loading /lib/firmware/nvidia/575.57.08/gsp_ga10x.bin\n", "GspFirmwareMissing"),
        ("hw slowdown events per minute 0.00 (0 in all)\n", "GpuPowerBrake"),
        ("amdgpu 0000:43:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block\n",
         "AmdGpuMemoryUncorrectable"),
        ("amdgpu 0000:43:00.0: amdgpu: 3 correctable hardware errors detected in umc block, no user action\n",
         "AmdGpuMemoryUncorrectable"),
        ("amdgpu 0000:03:00.0: amdgpu: Will use PSP to load VCN firmware\n", "AmdFirmwareMissing"),
        ("[drm] amdgpu: initializing kernel modesetting, GPU init done\n", "AmdGpuNotStarting"),
        ("amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0\n", "AmdGpuHangs"),
        ("Direct firmware load for amdgpu/gc_11_0_0_mes_2.bin failed with error -2\n"
         "amdgpu 0000:03:00.0: amdgpu: Fatal error during GPU init\n", "AmdGpuNotStarting"),  # the file is why
        ("after updating the nvidia driver to 580.95.05 everything works\n", "DriverVersionsDiffer"),
        ("NVML: can't get GPU #1, error code 3\n", "GpuFellOffBus"),
        ("the GPU on the riser is as fast as the others\n", "GpuSaidFaulty"),
        ("a network policy prevents the exporter from starting on nvidia nodes\n", "DriverNotLoaded"),
        ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{gpu=\"2\"} 12\n", "GpuMemoryErrorsCorrected"),
        ("the pod is not scheduled due to uncorrectable ECC errors that we simulate\n", "GpuMemoryUncorrectable"),
        ("VBIOS version 96.00.74, GPU firmware 24.09, all fine\n", "FirmwareOutdated"),
        ("SELinux is permissive on the nodes, the nvidia module loads\n", "SelinuxDeniesDriver"),
        ("the pod was denied by SELinux to read the model directory\n", "SelinuxDeniesDriver"),
        ("MOFED drivers are not ready, skipping probe for the nvidia-peermem module\n", "PeerMemoryModuleFails"),
        ("nvidia-persistenced: device 0000:3b:00.0 - persistence mode enabled.\n", "PersistenceDaemonFails"),
        ("nvidia-persistenced: Started (1234)\n", "PersistenceDaemonFails"),
        ("Skipping BTF generation for nvidia.ko due to unavailability of vmlinux\n", "DriverBuildFails"),
        ("Found pre-compiled installer for this kernel\n", "DriverBuildFails"),
        ("nvidia-fabricmanager-wrapper: socket found\n", "FabricManagerDown"),
        ("nvlsm: Entering DISCOVERING state\n", "FabricManagerDown"),
        ("main.c:3:5: error: implicit declaration of function 'frobnicate'\n", "DriverBuildFails"),
        ("PKCS#7 signature not signed with a trusted key\n", "DriverModuleUnsigned"),
        ("Normal  GPUDriverUpgrade  2m  nvidia-gpu-operator  Successfully drained the node\n", "DriverInUse"),
        ("Normal  GPUDriverUpgrade  2m  nvidia-gpu-operator  Scheduling drain of the node\n", "DriverInUse"),
        ("xe 0000:03:00.0: [drm] Using GuC firmware from xe/bmg_guc_70.bin version 70\n", "OtherMakersModuleFails"),
        ("amdgpu: loading out-of-tree module taints kernel.\n", "OtherMakersModuleFails"),
        ("sysfs: cannot create duplicate filename '/devices/virtual/net/veth0'\n", "SecondNvidiaDriver"),
        ("[Sep 18 2026 06:40:33] [INFO] [tid 77] IMEX library communication bind port = 50000\n", "ImexDown"),
        ("E: Unable to locate package nvidia-container-toolkit\n", "DriverPackagesConflict"),
        ("Error: Unable to find a match: nvidia-docker2\n", "DriverPackagesConflict"),
        ("Installing Linux kernel headers...\nInstalling Linux kernel module files...\n", "KernelHeadersMissing"),
        ("Verifying archive integrity... OK\nUncompressing NVIDIA Accelerated Graphics Driver\n", "DriverBuildFails"),
        ("[Jun 10 2025 10:11:12] [INFO] [tid 12] NVLink trunk connections are trained\n", "FabricManagerDown"),
        ("cat /proc/driver/nvidia/version: NVRM version: NVIDIA UNIX x86_64 Kernel Module 550.54.15\n",
         "DriverNotLoaded"),
        ("firmware: direct-loading firmware nvidia/550.54.15/gsp_ga10x.bin\n", "GspFirmwareMissing"),
        ("depmod: WARNING: /lib/modules/6.1.0/extra/zfs.ko needs unknown symbol foo\n", "DriverModuleForOtherKernel"),
        ("vfio-pci 0000:61:00.0: not ready 1023ms after bus reset; waiting\n", "GpuNotWaking"),
    ],
)  # fmt: skip
def test_a_near_miss_is_no_hit(text: str, code: str) -> None:
    assert code not in codes(of_text(text))
