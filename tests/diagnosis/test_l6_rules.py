"""Inside the container: one text with several causes, chains from below, and lines of healthy programs."""

from __future__ import annotations

import pytest
from asked import codes, of_text

from berth.diagnosis.diagnose import diagnose
from berth.evidence.piece import piece
from berth.evidence.read import read


def top(text: str, kind: str = "") -> tuple[str, str, str]:
    one = of_text(text, kind).findings[0]
    return one.code, one.layer.name, one.cause_class


def test_insufficient_driver_means_no_device_unless_a_version_was_found() -> None:
    assert top("CUDA driver version is insufficient for CUDA runtime version")[0] == "NoGpuInContainer"
    old = of_text("The NVIDIA driver on your system is too old (found version 11040).").findings[0]
    assert (old.code, old.cause_class) == ("DriverTooOldForImage", "version-mismatch")
    assert "CUDA 11.4" in old.cause


def test_gdr_off_is_the_fault_of_an_old_nccl_or_of_a_missing_module() -> None:
    line = "n:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"
    assert top(line) == ("GdrOffByOldNccl", "L6", "version-mismatch")
    assert top(f"NCCL version 2.21.5+cuda12.4\n{line}")[0] == "GdrOffByOldNccl"
    assert top(f"NCCL version 2.26.2+cuda12.4\n{line}")[0] == "PeermemNotLoaded"
    assert top(f"{line}\nnvidia_peermem missing")[0] == "PeermemNotLoaded"


def test_gdr_on_all_connections_is_no_finding() -> None:
    text = (
        "n:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n"
        "n:1:1 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"
        "n:1:1 [0] NCCL INFO Channel 01/0 : 0[0] -> 8[0] [send] via NET/AWS Libfabric/2/GDRDMA/Shared\n"
    )
    assert codes(of_text(text)) == set()


def test_101_is_a_launch_error_and_in_nccl_a_missing_domain() -> None:
    assert top("RuntimeError: CUDA error: invalid device ordinal")[2] == "app"
    assert top("NCCL WARN Cuda failure 101 'invalid device ordinal'", "nccl-log")[2] == "fabric"


def test_memory_that_another_process_holds_is_not_the_programs_own() -> None:
    text = "CUDA out of memory. Tried to allocate 2.00 GiB. Process 71 has 60.00 GiB memory in use."
    assert codes(of_text(text)) == {"GpuMemoryHeldByOthers"}
    assert codes(of_text("CUDA out of memory. Tried to allocate 2.00 GiB.")) == {"GpuMemoryFull"}


def test_flushed_work_is_a_consequence_of_the_error_before_it() -> None:
    flushed = (
        "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<1> with status=5 opcode=0 len=0 vendor err 249 (Send)\n"
    )
    retried = (
        "NCCL WARN NET/IB : Got completion from peer 10.0.0.3<1> with status=12 opcode=0 len=0 vendor err 129 (Send)\n"
    )
    assert codes(of_text(flushed)) == {"RdmaQueueFlushed"}
    assert codes(of_text(retried + flushed)) == {"RdmaRetriesExceeded"}
    assert "10.0.0.3" in of_text(retried).findings[0].cause


def test_no_rdma_device_is_a_fault_only_where_the_machine_has_one() -> None:
    alone = "n1:1:2 [0] NCCL INFO NET/IB : No device found.\nn1:1:2 [0] NCCL INFO Using network Socket\n"
    diagnosis = of_text(alone)
    assert not diagnosis.findings
    assert [one.code for one in diagnosis.traps] == ["NoRdmaOnMachine"]
    mixed = of_text(f"{alone}n2:1:2 [0] NCCL INFO Using network IB\n")
    assert [one.code for one in mixed.findings] == ["SocketInsteadOfRdma"]
    port = read([piece(alone, "nccl-log"), piece("mlx5_0/ports/1/state=4: ACTIVE\n", "infiniband")])
    assert [one.code for one in diagnose(port).findings] == ["SocketInsteadOfRdma"]


def test_the_watchdog_is_explained_by_what_lies_below_it() -> None:
    text = (
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE) ran\n"
        "NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n"
    )
    diagnosis = of_text(text)
    assert {one.code for one in diagnosis.findings} >= {"RdmaPortDown"}
    lost = of_text(text + "NVRM: Xid (PCI:0000:b3:00): 79, pid=1, name=x, GPU has fallen off the bus.\n")
    assert lost.findings[0].code == "GpuFellOffBus"
    assert "CollectiveTimedOut" in {one.finding.code for one in lost.consequences}


def test_a_port_that_is_not_cabled_is_a_hint_only() -> None:
    text = (
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0\n"
        "link mlx5_1/1 state DOWN physical_state DISABLED netdev eth1\n"
    )
    (one,) = of_text(text).findings
    assert one.confidence <= 0.4


def test_exit_137_without_more_is_less_sure_than_oomkilled() -> None:
    assert of_text("Last State: Terminated Reason: OOMKilled").findings[0].confidence > 0.8
    assert of_text("container exited with exit code 137").findings[0].confidence < 0.8


@pytest.mark.parametrize(
    "text",
    [
        "n1:1:2 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.4<0>",
        "NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0\nNCCL INFO Bootstrap: Using eth0:1.2.3.4<0>",
        "n1:1:2 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
        "n1:1:2 [0] NCCL INFO NCCL_DEBUG set by environment to INFO.",
        "NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file: No such file",
        "NCCL INFO TUNER/Plugin: libnccl-tuner.so: cannot open shared object file: No such file or directory",
        "W tensorflow/stream_executor: Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7",
        "TF-TRT Warning: Could not find TensorRT",
        "Custom allreduce is disabled because your platform lacks GPU P2P capability or P2P test failed.",
        "[rank0]:[W ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed",
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default",
        "INFO 01-01 Automatically detected platform cuda.\nINFO Available KV cache memory: 51.63 GiB",
        "[Gloo] Rank 0 is connected to 0 peer ranks. Expected number of connected peer ranks is : 0",
        "Warning  Unhealthy  kubelet  Readiness probe failed: dial tcp 10.0.0.4:8000: connect: connection refused",
        "I0101 server.cc:674] | model | 1 | READY |\nStarted HTTPService at 0.0.0.0:8000",
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.105.08",
        "wandb: Network error (ConnectTimeout), entering retry loop.",
        "NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol.",
        "NCCL INFO [Service thread] Connection closed by localRank 0",
        "NCCL INFO MNNVL busId 0x1c000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0",
        "n1:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.",
        "n1:1:2 [0] NCCL INFO NVLS multicast support is available on dev 0",
        "n1:1:2 [0] NCCL INFO NVLS Creating Multicast group nranks 8 size 2097152 on rank 0",
        "n1:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
        "n1:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1c000 commId 0x7 - Init COMPLETE",
        "n1:1:2 [0] NCCL INFO GPU Direct RDMA Enabled for HCA 0 'mlx5_0'",
        "max locked memory       (kbytes, -l) unlimited",
        "tmpfs            32G     0   32G   0% /dev/shm",
        "shm              64M     0   64M   0% /dev/shm",
        "torch.cuda.is_available() True",
        "GPU KV cache size: 410,128 tokens\nMaximum concurrency for 131,072 tokens per request: 3.13x",
        "nvidia_peermem         16384  0\nib_uverbs             163840  2 nvidia_peermem,mlx5_ib",
        "ACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-",
        "Test PASSED\nDone",
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 338.8\n",
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0",
        "exit code 0\nExit Code:    0\n",
        "Loaded cuDNN version 8902",
        "|  No running processes found                                                             |",
        "| N/A   32C    P0   66W / 700W |  0MiB /  81559MiB |      0%      Default |",
        "[rank0]: loss 2.31 step 1004 tokens/s 5762",
        "MPI startup(): libfabric provider: tcp",
    ],
)
def test_lines_of_healthy_programs_are_no_findings(text: str) -> None:
    found = of_text(text)
    assert not found.findings and not found.consequences


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "CudaKernelFault"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "GpuMemoryFull"),
        ("Last State: Terminated Reason: OOMKilled", "HostMemoryExhausted"),
        ("NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129", "RdmaRetriesExceeded"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "EccErrorSeenByProgram"),
    ],
)
def test_a_time_out_stands_behind_what_one_rank_says(text: str, code: str) -> None:
    watchdog = "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)"
    assert of_text(f"{watchdog}\n{text}").findings[0].code == code
