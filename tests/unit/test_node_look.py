"""A look at a made-up machine: what each collector finds, and what is told where one finds nothing."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_up_machine import CONTAINER_ID, POD_UID, MadeUpMachine, MadeUpNvml, NvmlError, nvml_device, pci_of, uuid_of

from berth.diagnosis.diagnose import diagnose
from berth.evidence.formats.boundary_facts import Holder, HostCount, Visible
from berth.evidence.formats.container_facts import CdiSpec
from berth.evidence.formats.machine_facts import KernelDriver, ModulesSeen, PciSeen
from berth.evidence.formats.smi_facts import DeviceSeen
from berth.node import pci_bus
from berth.node.bounded import Bounded
from berth.node.kernel_log import KernelLog, as_printed
from berth.node.look import Looking, Machine
from berth.node.nvml import Nvml
from berth.node.seen import NotSeen, parted
from berth.node.texts import Texts


def look(machine: MadeUpMachine, nvml: MadeUpNvml | None = None, **how: object):  # type: ignore[no-untyped-def]
    return Machine(machine.places, "n1", Looking(socket_s=0.2, **how), nvml).look()  # type: ignore[arg-type]


def counts(looked) -> dict[str, int]:  # type: ignore[no-untyped-def]
    return {one.by: one.count for one in looked.facts.of(HostCount)}


def test_bus_driver_nvml_and_device_files_are_counted_each_by_itself(tmp_path: Path) -> None:
    looked = look(MadeUpMachine(tmp_path), MadeUpNvml([nvml_device(0), nvml_device(1)]))
    assert counts(looked) == {"lspci": 2, "/proc/driver/nvidia/gpus": 2, "/dev": 2, "nvml": 2}
    assert looked.has_nvml and looked.boot_id == "boot-1"
    (driver,) = looked.facts.of(KernelDriver)
    assert driver.version == "580.95.05" and driver.is_open
    assert "nvidia_uvm" in looked.facts.of(ModulesSeen)[0].loaded
    assert [one.uuid for one in looked.devices] == [uuid_of(0), uuid_of(1)]
    assert all(fact.node == "n1" for fact in looked.facts)
    assert not diagnose(looked.facts).findings


def test_a_machine_without_a_gpu_says_so_and_misses_nothing_of_the_bus(tmp_path: Path) -> None:
    looked = look(MadeUpMachine(tmp_path, gpus=0))
    assert counts(looked) == {"lspci": 0, "/dev": 0}
    missing = {one.what: one.why for one in looked.not_seen}
    assert missing["NVML"].startswith("no libnvidia-ml.so.1")
    assert "no such file" in missing["the kernel driver"]
    assert not looked.has_nvml


def test_what_cannot_be_read_at_all_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    machine = Machine(MadeUpMachine(tmp_path / "x", gpus=0).places.of(str(tmp_path / "empty")), "n1", Looking(0.2))
    looked = machine.look()
    named = {one.what for one in looked.not_seen}
    assert {
        "the PCI bus", "the kernel driver", "NVML", "the kernel log", "the device files", "device plugins",
        "what the kubelet takes for allocatable", "the kubelet's checkpoint of devices", "containers",
    } <= named  # fmt: skip
    assert not len(looked.facts)


def test_a_configuration_space_of_all_ones_is_a_device_that_is_gone(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path, gpus=1)
    machine.add_gpu(1, header=b"\xff" * 4)
    machine.add_gpu(2, revision="0xff")
    facts, _, _ = parted(pci_bus.look(machine.places, "n1"))
    seen = [one for one in facts if isinstance(one, PciSeen)]
    assert [one.is_dead for one in seen] == [False, True, True]
    assert (seen[0].speed_gts, seen[0].width, seen[0].kind_id) == (32.0, 16, "0302")
    assert facts[-1].count == 3


def test_bridges_and_cards_of_others_are_not_gpus(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path, gpus=1)
    machine.write("sys/bus/pci/devices/0000:80:00.0/vendor", "0x15b3\n")
    machine.write("sys/bus/pci/devices/0000:80:00.0/class", "0x020700\n")
    machine.write("sys/bus/pci/devices/0000:81:00.0/vendor", "0x10de\n")
    machine.write("sys/bus/pci/devices/0000:81:00.0/class", "0x068000\n")
    facts, _, _ = parted(pci_bus.look(machine.places))
    assert [one.kind_id for one in facts if isinstance(one, PciSeen)] == ["0302", "0680"]
    assert facts[-1].count == 1


# ---- NVML


def test_a_device_that_is_lost_is_told_with_what_it_still_said(tmp_path: Path) -> None:
    gone = nvml_device(1, nvmlDeviceGetMemoryInfo=NvmlError(15))
    looked = look(MadeUpMachine(tmp_path), MadeUpNvml([nvml_device(0), gone]))
    lost = looked.devices[1]
    assert (lost.uuid, lost.unreadable) == (uuid_of(1), {"uuid": "GPU is lost"})
    findings = {one.code: one for one in diagnose(looked.facts).findings}
    assert findings["GpuFellOffBus"].pci == (0, 0x11, 0)


def test_a_device_without_a_handle_is_told_by_its_index(tmp_path: Path) -> None:
    looked = look(MadeUpMachine(tmp_path), MadeUpNvml([nvml_device(0), {"handle": 999}]))
    assert (looked.devices[1].index, looked.devices[1].unreadable) == (1, {"uuid": "Unknown Error"})


def test_versions_that_do_not_match_are_told_in_the_words_that_the_doctor_knows(tmp_path: Path) -> None:
    looked = look(MadeUpMachine(tmp_path), MadeUpNvml([], init=18))
    assert [one.why for one in looked.not_seen if one.what == "NVML"] == ["Driver/library version mismatch"]
    assert any("nvml" in said.message or "mismatch" in said.origin.text for said in looked.facts.said("nvml."))


def test_remapped_rows_and_clocks_are_read_with_their_words(tmp_path: Path) -> None:
    device = nvml_device(
        0, nvmlDeviceGetRemappedRows=(1, 2, 1, 0), nvmlDeviceGetCurrentClocksEventReasons=0x8 | 0x40,
        nvmlDeviceGetFieldValues=lambda ids: [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=1))],
        nvmlDeviceGetTotalEccErrors=lambda kind, counter: 7 if (kind, counter) == (1, 0) else 0,
    )  # fmt: skip
    (seen,) = look(MadeUpMachine(tmp_path, gpus=1), MadeUpNvml([device])).devices
    assert (seen.is_remap_pending, seen.is_remap_failed, seen.remapped_uncorrectable) == (True, False, 2)
    assert seen.quote("is_remap_pending").text == (
        "Remapped rows: correctable 1, uncorrectable 2, pending Yes, remapping failure occurred No"
    )
    assert seen.slowed_by == ("hw_slowdown", "hw_thermal_slowdown")
    assert (seen.uncorrected_volatile, seen.corrected_volatile, seen.recovery_action) == (7, 0, "Reset")
    assert seen.temperature_c == 41 and seen.memory_total_bytes == 80 * 2**30


def test_partitions_are_read_with_their_profile(tmp_path: Path) -> None:
    part = {
        "nvmlDeviceGetUUID": "MIG-1", "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=10, used=1, free=9),
        "nvmlDeviceGetGpuInstanceId": 7, "nvmlDeviceGetComputeInstanceId": 0,
    }  # fmt: skip
    device = nvml_device(
        0, nvmlDeviceGetMigMode=[1, 1], nvmlDeviceGetMaxMigDeviceCount=7,
        nvmlDeviceGetMigDeviceHandleByIndex=lambda index: part if index == 2 else NvmlError(6),
    )  # fmt: skip
    (seen,) = look(MadeUpMachine(tmp_path, gpus=1), MadeUpNvml([device])).devices
    (mig,) = seen.mig
    assert (seen.mig_mode, mig.index, mig.uuid, mig.profile, mig.gi) == ("Enabled", 2, "MIG-1", "1g.10gb", 7)


def test_nvml_is_closed_after_each_look_unless_that_would_wake_a_device_up(tmp_path: Path) -> None:
    places = MadeUpMachine(tmp_path, gpus=1).places
    persistent = MadeUpNvml([nvml_device(0)])
    asked = Nvml(places, "n1", persistent)
    list(asked.look())
    assert not persistent.is_open
    list(asked.look())
    assert persistent.opened == 2
    sleepy = MadeUpNvml([nvml_device(0, nvmlDeviceGetPersistenceMode=0)])
    asked = Nvml(places, "n1", sleepy)
    list(asked.look())
    list(asked.look())
    assert sleepy.is_open and sleepy.opened == 1
    asked.close()
    assert not sleepy.is_open


def test_what_hangs_is_named_and_not_asked_a_second_time(tmp_path: Path) -> None:
    ends = threading.Event()
    asked: list[float] = []

    def hangs() -> list[NotSeen]:
        asked.append(time.monotonic())
        ends.wait(10)
        return []

    bounded = Bounded()
    assert bounded.run("NVML", hangs, 0.05) == [NotSeen("NVML", "no answer within 0.05 s")]
    (again,) = bounded.run("NVML", hangs, 0.05)
    assert isinstance(again, NotSeen) and again.why.startswith("still no answer after")
    assert len(asked) == 1
    ends.set()
    until = time.monotonic() + 5
    while any(thread.name == "look-NVML" for thread in threading.enumerate()) and time.monotonic() < until:
        time.sleep(0.01)
    assert bounded.run("NVML", list, 1.0) == []


def test_a_look_that_raises_is_told_and_does_not_spread() -> None:
    def breaks() -> list[NotSeen]:
        raise RuntimeError("surprise")

    assert Bounded().run("the bus", breaks, 1.0) == [NotSeen("the bus", "RuntimeError: surprise")]


# ---- the kernel's log


def test_the_log_is_read_from_boot_and_then_followed_with_times_of_the_clock(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.say("NVRM: Xid (PCI:0000:10:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", 50)
    log = KernelLog(machine.places.dev / "kmsg", "n1", lambda: 1_000_000_000.0)
    assert {one.message for one in log.catch_up()} >= {"kernel.xid"}
    assert log.catch_up() == []
    machine.say("NVRM: Xid (PCI:0000:11:00): 31, pid=7, name=python, Ch 00000001", 60)
    (new,) = log.catch_up()
    assert (new.get("code"), new.origin.at_s) == ("31", 1_000_000_060.0)
    assert {one.get("code") for one in log.since(1_000_000_055.0)} == {"31"}
    log.close()


def test_records_are_told_as_dmesg_prints_them() -> None:
    raw = b"6,1,100000007,-;NVRM: a\n SUBSYSTEM=pci\n DEVICE=+pci:0000:10:00.0\n3,2,2500000,c,more;b: 7,8;9\nplain\n"
    assert as_printed(raw) == b"[  100.000007] NVRM: a\n[    2.500000] b: 7,8;9\nplain\n"


def test_a_log_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    (machine.root / "dev/kmsg").unlink()
    looked = look(machine, MadeUpNvml([nvml_device(0), nvml_device(1)]))
    assert ("the kernel log", "/dev/kmsg: no such file or directory") in {(n.what, n.why) for n in looked.not_seen}


# ---- containers


def test_a_container_is_seen_by_the_device_files_that_it_has(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.run_container(asked="all", nodes=(1,), opened=(1,))
    nvml = MadeUpNvml([nvml_device(0), nvml_device(1)])
    (seen,) = look(machine, nvml).facts.of(Visible)
    assert (seen.of_pod, seen.container, seen.ids, seen.minors) == ("ml/train", "main", (uuid_of(1),), (1,))
    assert not seen.asked_for_none, "nobody could ask the kubelet what it gave"


def test_an_image_that_says_all_and_has_no_device_files_reaches_nothing(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.run_container(asked="all")
    assert not look(machine, MadeUpNvml([nvml_device(0), nvml_device(1)])).facts.of(Visible)


@pytest.mark.parametrize(
    "cgroup",
    [
        "11:memory:/kubepods/burstable/pod{uid}/{id}",
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{_uid}.slice/cri-containerd-{id}.scope",
        "0::/../../pod{uid}/crio-{id}.scope",
        "4:devices:/some-group/kubepods/besteffort/pod{uid}/{id}",
    ],
)
def test_control_groups_of_every_runtime_name_the_pod(tmp_path: Path, cgroup: str) -> None:
    machine = MadeUpMachine(tmp_path)
    line = cgroup.format(uid=POD_UID, _uid=POD_UID.replace("-", "_"), id=CONTAINER_ID)
    machine.run_container(nodes=(0,), cgroup=line)
    (seen,) = look(machine, MadeUpNvml([nvml_device(0), nvml_device(1)])).facts.of(Visible)
    assert seen.of_pod == "ml/train"


def test_who_holds_memory_is_named_by_pod_or_as_a_process_of_the_machine(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path, gpus=1)
    machine.run_container(500, nodes=(0,))
    machine.write("proc/900/cgroup", "0::/system.slice/xorg.service\n")
    machine.write("proc/900/comm", "Xorg\n")
    held = [SimpleNamespace(pid=500, usedGpuMemory=5 * 2**30), SimpleNamespace(pid=900, usedGpuMemory=2**20)]
    looked = look(machine, MadeUpNvml([nvml_device(0, nvmlDeviceGetComputeRunningProcesses=held)]))
    found = {one.pid: (one.of_pod, one.process, one.memory_bytes) for one in looked.facts.of(Holder)}
    assert found == {500: ("ml/train", "python", 5 * 2**30), 900: ("", "Xorg", 2**20)}


def test_pods_of_the_operator_bypass_nothing(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.run_container(pod="gpu-operator/nvidia-device-plugin", nodes=(0, 1))
    assert not look(machine, MadeUpNvml([nvml_device(0), nvml_device(1)])).facts.of(Visible)


def test_configuration_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    spec = "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices:\n- name: '0'\n  containerEdits: {}\n"
    file = machine.write("etc/cdi/nvidia.yaml", spec)
    texts = Texts(machine.places, "n1")
    (first,) = [one for one in texts.look() if isinstance(one, CdiSpec)]
    assert next(one for one in texts.look() if isinstance(one, CdiSpec)) is first
    file.write_text(spec.replace("'0'", "all"))
    (second,) = [one for one in texts.look() if isinstance(one, CdiSpec)]
    assert second.names == ("nvidia.com/gpu=all",)
    file.unlink()
    assert not [one for one in texts.look() if isinstance(one, CdiSpec)]


def test_addresses_are_of_everything_that_lists_a_gpu(tmp_path: Path) -> None:
    looked = look(MadeUpMachine(tmp_path), MadeUpNvml([nvml_device(0)]))
    assert looked.addresses == {(0, 0x10, 0): uuid_of(0), (0, 0x11, 0): uuid_of(1)}
    assert pci_of(1) == "0000:11:00.0" and isinstance(looked.devices[0], DeviceSeen)
