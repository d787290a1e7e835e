"""NCCL logs, nccl-tests, RDMA ports, resource slices and reports in Markdown, as public captures have them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from asked import codes, of_text

from berth.diagnosis.diagnose import diagnose
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import EventSeen, ObjectSeen, Operand, PodSeen
from berth.evidence.formats.infiniband import RdmaPort
from berth.evidence.formats.nccl_log import (
    NcclChannel,
    NcclDriver,
    NcclHcas,
    NcclInterface,
    NcclNetwork,
    NcclNvls,
    NcclPlugin,
    NcclRank,
    NcclSetting,
    NcclVersion,
    NcclWarn,
)
from berth.evidence.formats.nccl_tests import UNKNOWN, CollectiveRank, CollectiveRow, CollectiveTest
from berth.evidence.formats.resource_slices import devices_of
from berth.evidence.piece import Piece, piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples"
needs_samples = pytest.mark.skipif(not (SAMPLES / "manifest.json").is_file(), reason="BERTH_DATA has no samples")


def sample(name: str) -> Facts:
    path = SAMPLES / name
    return read([Piece(path.read_bytes(), path.name)])


def found_in(facts: Facts) -> set[str]:
    diagnosis = diagnose(facts)
    return {one.code for one in (*diagnosis.findings, *(two.finding for two in diagnosis.consequences))}


@needs_samples
def test_the_log_of_an_efa_job() -> None:
    facts = sample("nccl-log/aws_fsdp_efa_excerpt.log")
    assert [(one.version, one.cuda) for one in facts.of(NcclVersion)] == [("2.26.2", "12.2")] * 3
    assert [one.by.host for one in facts.of(NcclVersion)] == ["p5-dy-gpu-3", "p5-dy-gpu-2", "p5-dy-gpu-2"]
    assert [one.cuda_driver for one in facts.of(NcclDriver)] == [12080, 12040, 12040]
    assert [(one.plugin, one.version) for one in facts.of(NcclPlugin)] == [
        ("aws-ofi-nccl", "1.13.2-aws"),
        ("aws-ofi-nccl", "1.14.0"),
        ("aws-ofi-nccl", "1.14.0"),
    ]
    assert found_in(facts) == set()


@needs_samples
def test_the_examples_of_the_user_guide() -> None:
    facts = sample("nccl-log/nccl_userguide_examples.log")
    assert [(one.version, one.cuda) for one in facts.of(NcclVersion)] == [("2.30.3", "13.0")]
    (warn,) = facts.of(NcclWarn)
    assert (warn.by.host, warn.by.pid, warn.by.device, warn.place) == ("node-01", 189884, 3, "plugin/net.cc:334")
    assert warn.text == "Failed to initialize any NET plugin"
    assert warn.origin.time == "2026-05-05 06:16:47"
    assert [one.network for one in facts.of(NcclNetwork)] == ["IB", "IB"]
    assert {(one.rank, one.ranks, one.state) for one in facts.of(NcclRank)} == {
        (0, 2, "START"), (0, 4, "Destroy COMPLETE"), (1, 4, "Destroy COMPLETE"),
        (2, 4, "Destroy COMPLETE"), (3, 4, "Destroy COMPLETE"),
    }  # fmt: skip
    assert {(one.transport, one.way, one.direction, one.channels) for one in facts.of(NcclChannel)} == {
        ("SHM", "direct/direct", "", 2), ("NET", "Socket/0", "send", 2), ("P2P", "CUMEM", "", 2),
    }  # fmt: skip
    assert [(one.name, one.value) for one in facts.of(NcclSetting)] == [("NCCL_SHM_DISABLE", "1")]
    assert [(one.is_available, one.ranks) for one in facts.of(NcclNvls)] == [(True, 8)]


def test_channels_over_infiniband_and_the_devices_that_were_found() -> None:
    facts = read([piece(
        "train-1:77:140 [3] NCCL INFO Bootstrap: Using eth0:10.1.0.7<0>\n"
        "[1,3]<stdout>:train-1:77:140 [3] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; "
        "OOB eth0:10.1.0.7<0>\n"
        "3: train-1:77:140 [3] NCCL INFO Channel 00/0 : 11[3] -> 3[3] [receive] via NET/IB/0/GDRDMA\n"
        "3: train-1:77:140 [3] NCCL INFO Channel 08/0 : 11[3] -> 3[3] [receive] via NET/IB/0/GDRDMA\n"
        "train-1:77:140 [3] NCCL INFO Channel 00/0 : 3[3] -> 11[3] [send] via NET/IB/3(5)/GDRDMA/Shared\n"
        "train-1:77:140 [3] NCCL INFO Channel 01 : 3[1c000] -> 2[1b000] via P2P/IPC/read\n"
        "9[1a000] -> 2[6b000] [receive] via NET/IB/1\n"
        "(RayWorker pid=9) train-1:77:140 [3] NCCL INFO comm 0x55 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 1c000 "
        "commId 0x7b4 - Init COMPLETE\n"
    )])  # fmt: skip
    assert [(one.interface, one.address) for one in facts.of(NcclInterface)] == [("eth0", "10.1.0.7")]
    (hcas,) = facts.of(NcclHcas)
    assert (hcas.devices, hcas.interface) == ((("mlx5_0", 1, "IB"), ("mlx5_1", 1, "RoCE")), "eth0")
    assert [
        (one.rank, one.peer, one.direction, one.transport, one.is_gdr, one.channels) for one in facts.of(NcclChannel)
    ] == [
        (11, 3, "receive", "NET", True, 2),
        (3, 11, "send", "NET", True, 1),
        (3, 2, "", "P2P", False, 1),
        (9, 2, "receive", "NET", False, 1),
    ]
    (rank,) = facts.of(NcclRank)
    assert (rank.rank, rank.ranks, rank.bus, rank.communicator, rank.state) == (3, 16, "1c000", "0x7b4", "COMPLETE")


@needs_samples
def test_the_table_of_two_nodes() -> None:
    rows = sample("nccl-tests/aws_all_reduce_p5_2node.txt").of(CollectiveRow)
    assert len(rows) == 32
    last = rows[-1]
    assert (last.size_bytes, last.elements, last.dtype, last.operation, last.root) == (
        17179869184,
        4294967296,
        "float",
        "sum",
        -1,
    )
    assert (last.time_us, last.algbw_gbs, last.busbw_gbs, last.wrong) == (66132, 259.78, 487.09, 0)
    assert (last.in_place_busbw_gbs, last.in_place_wrong, last.repetitions) == (487.26, 0, UNKNOWN)
    slower = sample("nccl-tests/aws_all_reduce_p4de_2node.txt")
    assert (len(slower.of(CollectiveRow)), slower.of(CollectiveRow)[-1].busbw_gbs) == (29, 78.33)
    assert found_in(slower) == set()


@needs_samples
@pytest.mark.parametrize(
    ("name", "bounds", "is_bounds_failed", "is_slow", "found"),
    [
        ("pass", 0, False, False, set()),
        ("fail_oob", 2, True, False, {"CollectiveDataWrong"}),
        ("fail_bw", 0, False, True, {"CollectiveBelowMinimum"}),
    ],
)
def test_the_table_with_repetitions(
    name: str, bounds: int, is_bounds_failed: bool, is_slow: bool, found: set[str]
) -> None:
    facts = sample(f"nccl-tests/dcgm_mock_output_{name}.txt")
    (test,) = facts.of(CollectiveTest)
    assert (test.test, test.ranks, test.out_of_bounds) == ("all_reduce_perf", 1, bounds)
    assert (test.is_out_of_bounds_failed, test.is_bandwidth_failed) == (is_bounds_failed, is_slow)
    (rank,) = facts.of(CollectiveRank)
    assert (rank.host, rank.device, rank.bus, rank.gpu) == ("testhost", 0, "0000:1b:00", "NVIDIA Test GPU")
    (row,) = facts.of(CollectiveRow)
    assert (row.size_bytes, row.repetitions) == (33554432, 20)
    assert found_in(facts) == found


@needs_samples
def test_an_infiniband_port_from_sysfs() -> None:
    facts = sample("infiniband/sysfs_mlx5_0_h100.txt")
    (port,) = facts.of(RdmaPort)
    assert (port.device, port.port, port.state, port.physical) == ("mlx5_0", 1, "ACTIVE", "LinkUp")
    assert (port.rate_gbs, port.width, port.layer, port.firmware, port.model) == (
        400.0,
        "4X",
        "InfiniBand",
        "28.41.1000",
        "MT4129",
    )
    assert port.counters["link_downed"] == 0
    assert port.counters["port_rcv_errors"] == 14
    assert port.counters["roce_adp_retrans"] == 3
    assert found_in(facts) == set()


def test_ports_of_ibstat_and_of_rdma_link() -> None:
    facts = read([
        piece("CA 'mlx5_0'\n\tCA type: MT4129\n\tFirmware version: 28.39\n\tPort 1:\n\t\tState: Active\n"
              "\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"),
        piece("link mlx5_2/1 state DOWN physical_state DISABLED netdev ens3f0np0\n"),
        piece("hca_id: mlx5_7\n\tfw_ver: 28.39\n\t\tport:   1\n\t\t\tstate:  PORT_ACTIVE (4)\n"
              "\t\t\tlink_layer: Ethernet\n"),
    ])  # fmt: skip
    assert [(one.device, one.state, one.physical, one.layer, one.rate_gbs) for one in facts.of(RdmaPort)] == [
        ("mlx5_0", "ACTIVE", "LinkUp", "InfiniBand", 400.0),
        ("mlx5_2", "DOWN", "DISABLED", "", -1.0),
        ("mlx5_7", "ACTIVE", "", "Ethernet", -1.0),
    ]


@needs_samples
def test_devices_of_resource_slices_also_where_the_document_was_cut_off() -> None:
    facts = sample("dra/resourceslice_h100_excerpt.md")
    devices = [device for one in facts.of(ObjectSeen) for device in devices_of(one)]
    first, second = (one for one in devices if one.kind == "gpu")
    assert (first.driver, first.on, first.product) == ("gpu.nvidia.com", "gpu-node-1", "NVIDIA H100 80GB HBM3")
    assert (first.name, first.uuid) == ("gpu-1", "GPU-bc5610b9-79c8-fedd-8899-07539c7f868a")
    assert (first.pci, first.driver_version, first.memory_bytes) == ((0, 0x64, 0), "580.105.8", 81559 * 2**20)
    assert (second.pci, second.uuid) == ((0, 0x75, 0), "")
    assert {one.kind for one in devices if one.driver == "compute-domain.nvidia.com"} == {"daemon", "channel"}
    assert found_in(facts) == set()


@needs_samples
def test_reports_in_markdown_are_read_block_by_block() -> None:
    facts = sample("dra/dra-support_k8s135.md")
    drivers = [pod for pod in facts.of(PodSeen) if pod.name.startswith("nvidia-dra-driver-gpu-kubelet-plugin")]
    assert {pod.on for pod in drivers} == {"gpu-node-1", "gpu-node-2"}
    assert found_in(facts) == set()
    gang = sample("gang/kai_gang.md")
    workers = [pod for pod in gang.of(PodSeen) if pod.name == "gang-worker-0"]
    assert any(pod.scheduler == "kai-scheduler" for pod in workers)
    assert {one.name for one in gang.of(Operand)} >= {"binder", "kai-scheduler-default", "queue-controller"}
    assert found_in(gang) == set()


@needs_samples
def test_events_of_a_healthy_restart() -> None:
    facts = sample("pod-events/time-slicing-get-events.txt")
    assert len(facts.of(EventSeen)) == 24
    assert {one.reason for one in facts.of(EventSeen)} == {"Created", "Started", "Pulled"}
    assert found_in(facts) == set()


@needs_samples
@pytest.mark.parametrize("folder", ["nccl-log", "nccl-tests", "infiniband", "dra", "gang", "pod-events"])
def test_parsers_never_raise_on_what_was_cut_off(folder: str) -> None:
    for path in sorted((SAMPLES / folder).iterdir()):
        raw = path.read_bytes()
        for cut in range(0, len(raw), max(1, len(raw) // 25)):
            read([Piece(raw[:cut] + b"\x00\xff\xfe", path.name)])


def test_versions_are_compared_within_one_communicator_only() -> None:
    two = (
        "a:1:1 [0] NCCL INFO NCCL version 2.26.2+cuda12.2\nb:2:2 [0] NCCL INFO NCCL version 2.20.5+cuda12.4\n"
        "a:1:5 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1c000 commId 0xabc - Init START\n"
        "b:2:6 [0] NCCL INFO comm 0x2 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1c000 commId 0x{} - Init START\n"
    )
    assert "NcclVersionSkew" in codes(of_text(two.format("abc")))
    assert "NcclVersionSkew" not in codes(of_text(two.format("def")))
