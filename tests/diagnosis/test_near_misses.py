"""Sentences that stand near a fault's own: of each kind one that means something else, or nothing."""

from __future__ import annotations

import pytest
from asked import codes, of_text

TEGRA = '"deviceDiscoveryStrategy": "tegra"\n  cpu: "96"\n'
DIAL = (
    '"Unable to connect to device plugin client with socket path" err="failed to dial device plugin: {why}" '
    'path="{directory}/fpga.sock"\n'
)
ASKED = '"Got registration request from device plugin with resource" resourceName="example.com/fpga"\n'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("  CC [M]  nvidia/nv-acpi.o\n  CC [M]  nvidia/nv-dma.o\n  LD [M]  nvidia.ko\n", "DriverBuildFails"),
        ("  CC [M]  drivers/net/foo.o\ndrivers/net/foo.c:1:2: error: no such member\n", "DriverBuildFails"),
        ('{\n  "runtimes": {\n    "nvidia": {"path": "nvidia-container-runtime"}\n  }\n}\n', "DockerConfigRefused"),
        ('{\n  ...\n  "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}\n}\n', "DockerConfigRefused"),
        ("trainer-0   0/1   OutOfnvidia.com/gpu   0   3h\n", "AdmittedBeforePlugin"),
        ("the kernel image is available in the boot directory", "NoKernelForDevice"),
        (
            'running PreBind plugin "DynamicResources": the object has been modified',
            "ClaimPluginFails",
        ),
        ("connecting to nfd-master at nfd-master:8080 ...\nRegistered labels\n", "NfdLabelsMissing"),
        (TEGRA + "Linux node 5.15.148-tegra aarch64\n", "PluginLooksForTegra"),
        (TEGRA.replace("tegra", "auto"), "PluginLooksForTegra"),
        ("    nvidia.com/gpu:  8\n# systemctl restart kubelet\n    nvidia.com/gpu:  8\n", "PluginStreamBroken"),
        (
            "# systemctl restart kubelet\n  nvidia.com/gpu:  0\n# sleep 30\n  nvidia.com/gpu:  8\n",
            "PluginStreamBroken",
        ),
        ("w1:1:1 [0] NCCL INFO NET/Socket : Using interface lo:127.0.0.1<0>\n", "WrongBootstrapInterface"),
        (
            "w1:1:1 [0] NCCL INFO NET/Socket : Using interface eth0:10.0.0.1<0>\n"
            "w2:1:1 [0] NCCL INFO NET/Socket : Using interface eth0:10.0.0.2<0>\n",
            "WrongBootstrapInterface",
        ),
        ("NCCL WARN Failed to open libibverbs.so[.1]\n", "SocketInsteadOfRdma"),
        ('export CUDA_VISIBLE_DEVICES="0"\nno CUDA-capable device is detected\n', "DevicesHiddenByProgram"),
        ('export CUDA_VISIBLE_DEVICES=""\npytest passed\n', "DevicesHiddenByProgram"),
        ("The capacity plugin lets the job be enqueued.", "QueueRefuses"),
        ("Unable to reset this GPU: in use by another client", "MigGpuInUse"),
        ("the rolling update is done, the old pod was removed and its GPU is free", "RolloutHoldsDevices"),
        ("the update replaced the old pods one by one, each new one has a GPU", "RolloutHoldsDevices"),
        ("Argo CD shows the ClusterPolicy as OutOfSync since the CRD sets a default", "SchedulerCacheStale"),
        ("nvidia.com/gpu.memory=81920", "GpuLabelsStale"),
        ("scale_down.go:1 Node gpu-1 was removed, it was unneeded for 10m", "IdleNodeStays"),
        ('msg="Falling back to metric file /etc/dcgm-exporter/default-counters.csv"', "ExporterFieldsRefused"),
    ],
)
def test_what_is_near_is_not_it(text: str, code: str) -> None:
    assert code not in codes(of_text(text))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("GPU 0 thermal violations totaling 12.5 seconds started at 3.0 seconds into the test", "GpuTooHot"),
        ("NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'", "GdrOffByOldNccl"),
        ('running PreBind plugin "VolumeBinding": no volume', "BindingFails"),
        ("Node didn't have enough resource: nvidia.com/gpu, requested: 4, used: 8, capacity: 8", "NodeOutOfResource"),
        ("no CUDA-capable device is detected", "NoGpuInContainer"),
    ],
)
def test_the_fault_beside_it_is_still_found(text: str, code: str) -> None:
    assert code in codes(of_text(text))


@pytest.mark.parametrize(
    ("text", "cause_class"),
    [
        (ASKED + DIAL.format(why="context deadline exceeded", directory="/var/lib/kubelet/device-plugins"),
         "plugin-health"),
        (DIAL.format(why="context deadline exceeded", directory="/var/lib/kubelet/plugins_registry"), "path-mount"),
        (ASKED + DIAL.format(why="no such file or directory", directory="/var/lib/kubelet/device-plugins"),
         "path-mount"),
    ],
)  # fmt: skip
def test_who_asked_through_that_directory_has_the_right_path(text: str, cause_class: str) -> None:
    assert [one.cause_class for one in of_text(text, "kubelet-log").findings] == [cause_class]


@pytest.mark.parametrize(("mount", "cause_class"), [("hidepid=2", "path-mount"), ("hidepid=0", "runtime-config")])
def test_a_hook_that_cannot_see_the_process(mount: str, cause_class: str) -> None:
    text = f"proc on /proc type proc (rw,{mount})\n" + (
        "nvidia-container-cli: container error: stat failed: /proc/99/ns: no such file or directory\n"
    )
    assert [one.cause_class for one in of_text(text).findings] == [cause_class]


def test_an_event_of_nvlink_that_is_not_fatal_is_not_sure() -> None:
    line = "NVRM: Xid (PCI:0018:01:00): 145, RLW_SRC_TRACK {} XC1 i0 Link 00 (0x000000e2 0x00000004 0x0)"
    mild, fatal = (of_text(line.format(word)).findings[0].confidence for word in ("Nonfatal", "Fatal"))
    assert mild < fatal
