"""What a machine says of itself is parsed: lspci, lsmod, dmidecode, the driver's files; whole, short or cut."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from berth.evidence.facts import Facts
from berth.evidence.formats import dmidecode, lsmod, lspci, proc_driver
from berth.evidence.formats.boundary_facts import HostCount
from berth.evidence.formats.machine_facts import KernelDriver, MachineSeen, ModuleNoted, ModulesSeen, PciSeen, ProcGpu
from berth.evidence.piece import Piece, piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples"
needs_samples = pytest.mark.skipif(not (SAMPLES / "lspci").is_dir(), reason="BERTH_DATA has no samples")


def facts_of(text: str) -> Facts:
    return read([piece(text)])


def sample(name: str) -> Facts:
    return read([Piece((SAMPLES / name).read_bytes(), name)])


@needs_samples
def test_lspci_with_numbers_and_domains() -> None:
    found = sample("lspci/lspci-nn_a100.txt")
    gpus = [device for device in found.of(PciSeen) if device.is_gpu]
    assert [device.pci for device in gpus][:2] == [(1, 0, 0), (2, 0, 0)]
    assert len(gpus) == 8
    assert {(device.vendor, device.device, device.revision) for device in gpus} == {("10de", "20b2", "a1")}
    assert sum(device.is_nvidia and not device.is_gpu for device in found.of(PciSeen)) == 6  # NVSwitches
    assert [(count.by, count.count) for count in found.of(HostCount)] == [("lspci", 8)]


@needs_samples
def test_lspci_in_full() -> None:
    found = sample("lspci/lspci-vvv_nvidia_and_acs_bridges_trimmed.txt")
    gpu = found.of(PciSeen)[0]
    assert (gpu.pci, gpu.kind, gpu.driver) == ((0, 0x19, 0), "3D controller", "nvidia")
    assert (gpu.speed_gts, gpu.speed_max_gts, gpu.width, gpu.width_max) == (32.0, 32.0, 16, 16)
    assert [(region.number, region.size_bytes, region.is_assigned) for region in gpu.regions[:2]] == [
        (0, 16 * 2**20, True),
        (2, 128 * 2**30, True),
    ]
    assert "nouveau" in gpu.modules
    assert any("SrcValid" in device.acs for device in found.of(PciSeen))


def test_one_line_of_lspci_is_enough() -> None:
    (device,) = facts_of("3b:00.0 3D controller: NVIDIA Corporation Device 2330 (rev ff)").of(PciSeen)
    assert (device.pci, device.revision, device.is_dead, device.is_gpu) == ((0, 0x3B, 0), "ff", True, True)


def test_regions_without_a_place() -> None:
    (device,) = facts_of(
        "01:00.0 3D controller: NVIDIA Corporation GH100 (rev a1)\n"
        "\tRegion 0: Memory at <ignored> (32-bit, non-prefetchable) [size=16M]\n"
        "\tRegion 1: Memory at 6000000000 (64-bit, prefetchable) [disabled] [size=64G]\n"
    ).of(PciSeen)
    assert [region.is_assigned for region in device.regions] == [False, False]


def test_lsmod_whole_and_noted() -> None:
    (whole,) = facts_of(
        "Module                  Size  Used by\nnvidia_uvm           1527808  4\nnvidia_drm             77824  0\n"
        "nvidia_modeset       1306624  1 nvidia_drm\nnvidia              56717312  188 nvidia_uvm,nvidia_modeset\n"
    ).of(ModulesSeen)
    assert whole.is_whole
    assert whole.loaded["nvidia"] == ("nvidia_uvm", "nvidia_modeset")
    assert whole.references["nvidia"] == 188
    (short,) = facts_of("nouveau 1716224 1").of(ModulesSeen)
    assert not short.is_whole and "nouveau" in short.loaded
    (proc,) = facts_of("nvidia 56717312 188 nvidia_uvm,nvidia_modeset, Live 0xffffffffc0a00000 (POE)").of(ModulesSeen)
    assert proc.loaded["nvidia"] == ("nvidia_uvm", "nvidia_modeset")
    noted = facts_of("mlx5_ib, ib_umad missing").of(ModuleNoted)
    assert [(one.name, one.is_loaded) for one in noted] == [("mlx5_ib", False), ("ib_umad", False)]


@needs_samples
def test_dmidecode() -> None:
    (machine,) = sample("host/dmidecode.txt").of(MachineSeen)
    assert (machine.maker, machine.product) == ("Dell Inc.", "PowerEdge XE9680")


def test_the_drivers_own_files() -> None:
    (driver,) = facts_of(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build  (dvs-builder@U22)\n"
        "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
    ).of(KernelDriver)
    assert (driver.version, driver.is_open, driver.is_loaded) == ("570.158.01", True, True)
    assert driver.compiler.startswith("gcc version 11.4.0")
    (on_disk,) = facts_of(
        "filename:       /lib/modules/6.8.0-31-generic/updates/dkms/nvidia.ko\nversion:        550.54.15\n"
    ).of(KernelDriver)
    assert (on_disk.version, on_disk.is_loaded) == ("550.54.15", False)
    first, second = facts_of(
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 17\nGPU UUID: \t GPU-11111111-1111-1111-1111-111111111111\n"
        "Video BIOS: \t 96.00.5e.00.03\nBus Location: \t 0000:19:00.0\nDevice Minor: \t 0\n"
        "Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????-????-????-????????????\nVideo BIOS: \t ??.??.??.??.??\n"
        "Bus Location: \t 0000:3b:00.0\nDevice Minor: \t 1\n"
    ).of(ProcGpu)
    assert (first.pci, first.minor, first.vbios) == ((0, 0x19, 0), 0, "96.00.5e.00.03")
    assert "?" in second.uuid and second.pci == (0, 0x3B, 0)


def test_the_link_in_sysfs() -> None:
    (device,) = facts_of(
        "/sys/bus/pci/devices/0000:3b:00.0/current_link_speed:16.0 GT/s PCIe\n"
        "/sys/bus/pci/devices/0000:3b:00.0/max_link_speed:32.0 GT/s PCIe\n"
        "/sys/bus/pci/devices/0000:3b:00.0/current_link_width:8\n/sys/bus/pci/devices/0000:3b:00.0/max_link_width:16\n"
    ).of(PciSeen)
    assert (device.speed_gts, device.speed_max_gts, device.width, device.width_max) == (16.0, 32.0, 8, 16)


@needs_samples
@pytest.mark.parametrize("known", [lspci.FORMAT, lsmod.FORMAT, dmidecode.FORMAT, proc_driver.FORMAT])
def test_whatever_is_given_nothing_raises(known) -> None:  # type: ignore[no-untyped-def]
    whole = (SAMPLES / "lspci/lspci-vvv_nvidia_and_acs_bridges_trimmed.txt").read_bytes()
    for raw in (b"", b"\xff\xfe\x00\x01" * 500, whole[:1234], whole[777:4000], b"\n".join([b"x" * 20_000] * 3)):
        known.looks_like(raw)
        list(known.read(Piece(raw)))


def test_a_raw_record_of_dev_kmsg_has_its_time() -> None:
    found = facts_of("4,3973,227986636,-;NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.")
    (said,) = found.said("kernel.xid")
    assert said.origin.at_s == pytest.approx(227.986636)
