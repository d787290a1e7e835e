"""The account of a made-up machine from look to look, as the NodeLedger has it, and read back from there."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from made_up_machine import MadeUpMachine, MadeUpNvml, NvmlError, nvml_device, pci_of, uuid_of

from berth.diagnosis.diagnose import diagnose
from berth.diagnosis.ledger import accounts
from berth.evidence.fact import Fact, Origin
from berth.evidence.facts import Facts
from berth.evidence.formats import node_ledger as wire
from berth.evidence.formats.boundary_facts import Given, KubeletOffers, Offered, PluginAnswer, Visible
from berth.evidence.formats.cluster_facts import Advertised
from berth.evidence.formats.smi_facts import DeviceSeen
from berth.evidence.piece import Piece
from berth.evidence.read import read
from berth.model.ledger import Boundary
from berth.node import metrics
from berth.node.keeper import Keeper, Report
from berth.node.look import Looking, Machine
from berth.node.status import lasting, memory_of
from berth.node.transitions import event_of, transitions

XID_79 = "NVRM: Xid (PCI:0000:11:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
GPU = "nvidia.com/gpu"


def keeper(machine: MadeUpMachine, nvml: MadeUpNvml) -> Keeper:
    return Keeper(Machine(machine.places, "n1", Looking(socket_s=0.2), nvml))


def two_gpus(**second: object) -> MadeUpNvml:
    return MadeUpNvml([nvml_device(0), nvml_device(1, **second)])


def states(report: Report) -> dict[str, tuple[str, str]]:
    return {one.pci: (one.state, one.code) for one in report.status.devices}


def object_of(status: wire.Status, node: str = "n1") -> bytes:
    return json.dumps({
        "apiVersion": "berth.dev/v1alpha1", "kind": "NodeLedger", "metadata": {"name": node},
        "status": msgspec.to_builtins(status),
    }).encode()  # fmt: skip


def facts_in(status: wire.Status) -> Facts:
    return read([Piece(object_of(status), "ledger.json")])


def test_a_healthy_machine_is_fit(tmp_path: Path) -> None:
    report = keeper(MadeUpMachine(tmp_path), two_gpus()).step()
    assert states(report) == {"0000:10:00": ("Fit", ""), "0000:11:00": ("Fit", "")}
    assert (report.status.state, report.status.gpus, report.status.driver.version) == ("Fit", "2/2", "580.95.05")
    assert not list(transitions(report.before, report.memory)), "that all is well is no news"


def test_a_gpu_that_falls_off_the_bus_is_unfit_with_the_kernels_words_and_stays_so(tmp_path: Path) -> None:
    machine, nvml = MadeUpMachine(tmp_path), two_gpus()
    keeps = keeper(machine, nvml)
    keeps.step()
    machine.say(XID_79)
    nvml.devices.pop()
    report = keeps.step()
    assert states(report) == {"0000:10:00": ("Fit", ""), "0000:11:00": ("Unfit", "GpuFellOffBus")}
    (lost,) = [one for one in report.status.devices if one.state == "Unfit"]
    assert "GPU has fallen off the bus" in lost.evidence and len(lost.digest) == 16
    assert lost.uuid == uuid_of(1), "its name is remembered"
    (news,) = [one for one in transitions(report.before, report.memory) if one.target == "0000:11:00"]
    event = json.loads(event_of(news, "n1", "u", report.looked.at_s, "pod"))
    assert (event["reason"], event["type"]) == ("GpuFellOffBus", "Warning")
    assert event["note"].startswith("GPU 0000:11:00 is Unfit, was Fit: ")
    # Another process of the agent, that knows the NodeLedger alone.
    again = keeper(machine, MadeUpNvml([nvml_device(0)]))
    again.go_on_from(report.status)
    assert states(again.step())["0000:11:00"] == ("Unfit", "GpuFellOffBus")
    machine.write("proc/sys/kernel/random/boot_id", "boot-2\n")
    machine.write("dev/kmsg", "")
    back = keeper(machine, two_gpus())
    back.go_on_from(report.status)
    assert states(back.step())["0000:11:00"] == ("Fit", ""), "the machine was started again"


def test_a_fault_of_a_program_takes_no_device_out(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.say("NVRM: Xid (PCI:0000:11:00): 31, pid=7, name=python, Ch 00000001, MMU Fault")
    report = keeper(machine, two_gpus()).step()
    assert states(report)["0000:11:00"] == ("Fit", "")


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("119, pid=7, name=python, Timeout after 6s of waiting for RPC response from GPU1 GSP! Expected function 76",
         ("Unfit", "GspTimeout")),
        ("95, pid=7, name=python, Uncontained: SM (0x1). RST: Yes", ("Unfit", "GpuMemoryUncorrectable")),
        ("94, pid=7, name=python, Contained: SM (0x1). RST: No, D-RST: No", ("Suspect", "GpuMemoryUncorrectable")),
        ("63, pid=7, name=python, Row remapper: New row marked for remapping, reset gpu to activate.",
         ("Suspect", "RowRemapPending")),
        ("74, pid=7, name=python, NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)",
         ("Unfit", "NvLinkFault")),
        ("13, pid=7, name=python, Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0)", ("Fit", "")),
    ],
)  # fmt: skip
def test_what_the_kernel_says_of_a_gpu_decides_as_the_policy_has_it(
    tmp_path: Path, said: str, state: tuple[str, str]
) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.say(f"NVRM: Xid (PCI:0000:11:00): {said}")
    found = states(keeper(machine, two_gpus()).step())
    assert found == {"0000:10:00": ("Fit", ""), "0000:11:00": state}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("sys/bus/pci/devices/0000:10:00.0/current_link_speed", "2.5 GT/s PCIe\n"),
        ("etc/containerd/config.toml", 'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n'),
        ("etc/containerd/config.toml", 'disabled_plugins = ["cri"]\n'),
        ("etc/crio/crio.conf", '[crio.runtime]\ndefault_runtime = "crun"\n'),
    ],
    ids=["a link that idles", "containerd without NVIDIA's runtime", "no CRI", "CRI-O"],
)
def test_what_is_no_fault_of_a_device_takes_none_out(tmp_path: Path, file: str, text: str) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.write(file, text)
    nvml = two_gpus()
    for device in nvml.devices:
        device.update(nvmlDeviceGetCurrPcieLinkGeneration=1, nvmlDeviceGetMaxPcieLinkGeneration=5)
    report = keeper(machine, nvml).step()
    assert (report.status.state, report.status.code) == ("Fit", "")


def test_a_fault_of_an_nvswitch_is_the_nodes(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.say("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Fatal, Link 32 egress non-posted PRIV error")
    report = keeper(machine, two_gpus()).step()
    assert (report.status.state, report.status.code) == ("Unfit", "NvSwitchFault")


def test_a_device_that_nvml_does_not_list_any_more_is_missing_when_that_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, nvml = MadeUpMachine(tmp_path), two_gpus()
    keeps = keeper(machine, nvml)
    now = [1_800_000_000.0]
    monkeypatch.setattr("berth.node.look.time", SimpleNamespace(time=lambda: now[0]))
    keeps.step()
    nvml.devices.pop()
    now[0] += 30
    report = keeps.step()
    assert "0000:11:00" in states(report) and states(report)["0000:11:00"][0] != "Fit"
    now[0] += 60
    assert states(keeps.step())["0000:11:00"] == ("Unfit", "DeviceMissing")


def test_a_failed_remap_is_unfit_until_the_device_was_reset(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    errors = [5]
    nvml = two_gpus(
        nvmlDeviceGetRemappedRows=lambda: (0, 3, 0, 1), nvmlDeviceGetTotalEccErrors=lambda kind, counter: errors[0]
    )
    keeps = keeper(machine, nvml)
    report = keeps.step()
    assert states(report)["0000:11:00"][0] == "Unfit"
    nvml.devices[1]["nvmlDeviceGetRemappedRows"] = (0, 3, 0, 0)
    assert states(keeps.step())["0000:11:00"][0] == "Unfit", "nothing has been reset"
    errors[0] = 0  # the driver counts from zero again
    assert states(keeps.step())["0000:11:00"][0] == "Fit"


def boundaries() -> list[Fact]:
    """What the API server and the kubelet would say of two devices, one of which a pod has."""
    said = Origin("test", node="n1")
    return [
        Advertised(origin=said, name="n1", resource=GPU, capacity=2, allocatable=2),
        KubeletOffers(origin=said, resource=GPU, ids=(uuid_of(0), uuid_of(1))),
        Given(origin=said, resource=GPU, of_pod="ml/train", container="main", ids=(uuid_of(0),)),
    ]


@pytest.mark.parametrize(("failed_remap", "code"), [(1, "RowRemapFailed"), (0, "LedgerParts")])
def test_a_plugin_that_withdraws_the_unfit_device_leaves_the_others_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed_remap: int, code: str
) -> None:
    """The node's word is then that of the device; of one that nothing says a word of, the account is at fault."""
    now = [1_800_000_000.0]
    monkeypatch.setattr("berth.node.look.time", SimpleNamespace(time=lambda: now[0]))
    keeps = keeper(MadeUpMachine(tmp_path), two_gpus(nvmlDeviceGetRemappedRows=lambda: (0, 3, 0, failed_remap)))
    said = Origin("test", node="n1")
    fewer: list[Fact] = [Advertised(origin=said, name="n1", resource=GPU, capacity=2, allocatable=1)]
    for _ in range(4):
        report = keeps.step(fewer)
        now[0] += 30
    assert not report.status.equal
    assert (report.status.state, report.status.code) == ("Suspect", code)


def test_the_ledger_object_says_the_same_as_the_look(tmp_path: Path) -> None:
    """Facts → status → object → facts: the account and the state of each device are the same."""
    machine = MadeUpMachine(tmp_path)
    machine.run_container(nodes=(0,), asked=uuid_of(0))
    held = [SimpleNamespace(pid=500, usedGpuMemory=2**30)]
    nvml = MadeUpNvml([nvml_device(0, nvmlDeviceGetComputeRunningProcesses=held), nvml_device(1)])
    report = keeper(machine, nvml).step(boundaries(), {"ml/train": "research"})
    (account,) = report.accounts
    assert (account.host, account.capacity, account.requested, account.visible) == (2, 2, 1, 1)
    assert account.parts_at is None
    facts = facts_in(report.status)
    for fact in boundaries()[:1]:
        facts.add(fact)
    (read_back,) = accounts(facts)
    for field in ("node", "resource", "host", "capacity", "allocatable", "requested", "visible", "parts_at"):
        assert getattr(read_back, field) == getattr(account, field), field
    lines = {one.id: (one.request, one.visible, one.holders) for one in read_back.devices}
    assert lines == {one.id: (one.request, one.visible, one.holders) for one in account.devices}
    assert lines[uuid_of(0)] == ("ml/train", "ml/train", (("ml/train", 2**30),))
    assert report.status.holders[0].queue == "research"
    assert facts.looked_at("objects")


def test_a_silent_plugin_is_read_back_as_silent(tmp_path: Path) -> None:
    status = wire.Status(plugins=(
        wire.PluginSaid("nvidia-gpu.sock", GPU, "no answer within 3 s"),
        wire.PluginSaid("amd.sock", "amd.com/gpu"),
        wire.PluginSaid("x.sock", "x/y", "", True, (wire.OfferSaid("1", False),)),
    ))  # fmt: skip
    answers = {one.resource: one for one in facts_in(status).of(PluginAnswer)}
    assert set(answers) == {GPU, "x/y"}, "one that was not asked for its list says nothing"
    assert not answers[GPU].answered and answers["x/y"].devices == (Offered("1", False),)
    (account,) = [one for one in accounts(facts_in(status)) if one.resource == GPU]
    assert account.parts_at is Boundary.Plugin


def test_the_words_of_a_fault_are_found_by_the_doctor_again(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.say(XID_79)
    report = keeper(machine, two_gpus()).step()
    found = diagnose(facts_in(report.status))
    assert [(one.code, one.node, one.pci) for one in found.findings] == [("GpuFellOffBus", "n1", (0, 0x11, 0))]


def test_a_device_that_is_gone_is_no_device_of_the_host(tmp_path: Path) -> None:
    status = wire.Status(devices=(
        wire.DeviceSaid("0000:10:00", "Fit", uuid_of(0)),
        wire.DeviceSaid("0000:11:00", "Unfit", uuid_of(1), is_gone=True),
    ))  # fmt: skip
    assert [one.uuid for one in facts_in(status).of(DeviceSeen)] == [uuid_of(0)]


def test_of_an_agent_that_is_silent_only_the_faults_are_believed(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.say(XID_79)
    status = keeper(machine, two_gpus()).step(boundaries()).status
    heard_s = datetime.fromisoformat(status.heartbeat).timestamp()
    fresh, old = (read([Piece(object_of(status), "x", taken_s=heard_s + late)]) for late in (60, 600))
    assert [one.is_silent for one in fresh.of(wire.AgentHeard)] == [False]
    assert [(one.is_silent, one.state) for one in old.of(wire.AgentHeard)] == [(True, "Suspect")]
    assert fresh.of(DeviceSeen) and fresh.of(Given) and not old.of(DeviceSeen) and not old.of(Given)
    assert [one.code for one in diagnose(old).findings] == ["GpuFellOffBus"]


@pytest.mark.parametrize("status", [b"null", b"[]", b'{"devices": 3}', b'"x"'])
def test_an_object_of_another_shape_says_nothing(status: bytes) -> None:
    raw = b'{"kind": "NodeLedger", "metadata": {"name": "n1"}, "status": ' + status + b"}"
    assert not len(read([Piece(raw, "x")]))


def test_memory_goes_through_the_object_whole(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.say(XID_79)
    report = keeper(machine, two_gpus()).step()
    status = wire.status_in(object_of(report.status))
    assert status == report.status
    memory = memory_of(status)
    assert {one.key for one in memory.faults} == {one.key for one in report.memory.faults}
    assert [one.ruling.until for one in memory.faults] == [one.ruling.until for one in report.memory.faults]
    assert {t: (s.state, s.code) for t, s in memory.standings.items()} == {
        t: (s.state, s.code) for t, s in report.memory.standings.items()
    }


def test_what_is_measured_is_no_change_and_what_is_judged_is(tmp_path: Path) -> None:
    machine, nvml = MadeUpMachine(tmp_path), two_gpus()
    keeps = keeper(machine, nvml)
    first = keeps.step().status
    nvml.devices[0]["nvmlDeviceGetMemoryInfo"] = SimpleNamespace(total=80 * 2**30, used=7, free=1)
    nvml.devices[0]["nvmlDeviceGetTotalEccErrors"] = lambda kind, counter: 1 - kind
    second = keeps.step().status
    assert first != second and lasting(first) == lasting(second)
    machine.say(XID_79)
    assert lasting(keeps.step().status) != lasting(first)


def test_a_pod_that_was_given_none_and_reaches_one_is_told(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.run_container(pod="ml/thief", nodes=(1,))
    found = keeper(machine, two_gpus()).step(boundaries())
    # Nobody could ask the kubelet here, so nothing is held against the pod.
    assert [one.asked_for_none for one in found.looked.facts.of(Visible)] == [False]


# ---- metrics


def test_series_join_device_pod_and_queue(tmp_path: Path) -> None:
    machine = MadeUpMachine(tmp_path)
    machine.run_container(nodes=(0,), asked=uuid_of(0))
    machine.say(XID_79)
    held = [SimpleNamespace(pid=500, usedGpuMemory=2**30)]
    nvml = MadeUpNvml([nvml_device(0, nvmlDeviceGetComputeRunningProcesses=held), nvml_device(1)])
    keeps = keeper(machine, nvml)
    measures = metrics.Measures("n1")
    assert b"berth_agent_looks_total 0.0" in measures.exposition()
    report = keeps.step(boundaries())
    measures.looked(report, {"ml/train": "research"}, {("nodes get", "done"): 2}, keeps.risen)
    text = measures.exposition().decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len({line.rpartition(" ")[0] for line in lines}) == len(lines), "no series is there twice"
    who = 'namespace="ml",node="n1",pod="train",queue="research"'
    one, two = uuid_of(0), uuid_of(1)
    for wanted in (
        f'berth_device_given{{container="main",device="{one}",{who},resource="{GPU}"}} 1.0',
        f'berth_device_memory_bytes{{container="main",device="{one}",{who}}} {float(2**30)}',
        f'berth_device_state{{device="{two}",index="1",node="n1",pci="0000:11:00",'
        'product="NVIDIA H100 80GB HBM3",state="Unfit"} 1.0',
        f'berth_fault{{code="GpuFellOffBus",device="{two}",node="n1"}} 1.0',
        f'berth_ledger_units{{boundary="capacity",node="n1",resource="{GPU}"}} 2.0',
        f'berth_device_temperature_celsius{{device="{one}",node="n1"}} 41.0',
        'berth_agent_requests_total{result="done",what="nodes get"} 2.0',
    ):
        assert _sorted(wanted) in {_sorted(line) for line in lines}, wanted


def _sorted(line: str) -> tuple[str, tuple[str, ...], float]:
    """A series whatever the order of its labels."""
    series, _, value = line.rpartition(" ")
    name, _, labels = series.partition("{")
    return name, tuple(sorted(labels.rstrip("}").split(","))), float(value)


def test_errors_are_counted_over_a_reset(tmp_path: Path) -> None:
    errors = [3]
    nvml = MadeUpNvml([nvml_device(0, nvmlDeviceGetTotalEccErrors=lambda kind, counter: errors[0])])
    keeps = keeper(MadeUpMachine(tmp_path, gpus=1), nvml)
    for errors[0] in (3, 5, 1, 4):
        keeps.step()
    assert keeps.risen["0000:10:00", "uncorrected_volatile"] == 2 + 1 + 3
    assert pci_of(0).startswith("0000:10:00") and NvmlError(15).value == 15
