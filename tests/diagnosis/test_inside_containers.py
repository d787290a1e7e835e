"""Near misses of what goes wrong inside containers: texts that nearly say it, and mean something else."""

from __future__ import annotations

import pytest
from asked import of_text


def told(text: str, kind: str = "") -> list[str]:
    return [one.code for one in of_text(text, kind).findings]


@pytest.mark.parametrize(
    ("text", "not_this"),
    [
        ("['CUDAExecutionProvider', 'CPUExecutionProvider']", "FrameworkWithoutCuda"),
        ("Available providers: ['TensorrtExecutionProvider', 'CUDAExecutionProvider']", "FrameworkWithoutCuda"),
        ("torch.version.cuda is 12.4 and torch.cuda.is_available() is True", "FrameworkWithoutCuda"),
        ("@ray.remote(num_gpus=1) trains well and uses the GPU", "RayTaskWithoutGpu"),
        ("We train on nvidia/cuda:12.4.1-devel-ubuntu22.04 with 8 GPUs", "ImageLibraryMissing"),
        ("libdevice of CUDA 12.4 found in /usr/local/cuda/nvvm/libdevice", "ImageLibraryMissing"),
        ("set /dev/shm to 16 GiB with --shm-size before the start", "SharedMemorySmall"),
        ("OSError: [Errno 28] No space left on device: '/data/checkpoints/step_100'", "SharedMemorySmall"),
        ("The pod has a memory limit of 64Gi and was running for days", "HostMemoryExhausted"),
        ("the two nodes hang in all-reduce over InfiniBand with 16 GPUs", "PeerAccessBlocked"),
        ("data loader with 2 GPUs hangs while it downloads", "PeerAccessBlocked"),
        ("NCCL_SOCKET_IFNAME=eth0 was set, that changed nothing", "RanksDoNotReach"),
        ("cuda driver library init failure: 100", "CudaUnknownError"),
        ("cuda driver library init failure: 999", "NoGpuInContainer"),
        ("we set memlock to unlimited on all machines", "LockedMemorySmall"),
    ],
)
def test_what_nearly_says_it_is_not_taken_for_it(text: str, not_this: str) -> None:
    assert not_this not in told(text)


def test_a_driver_that_answers_nvml_is_there_and_only_too_old() -> None:
    refused = "failed to allocate pinned system memory: CUDA driver version is insufficient for CUDA runtime version"
    assert told(refused) == ["NoGpuInContainer"]
    assert told("metrics.cc:164] found 1 GPUs supporting NVML metrics\n" + refused) == ["DriverTooOldForImage"]


def test_causes_that_ray_only_lists_are_less_sure_than_a_line_of_the_kernel() -> None:
    listed = of_text("(1) The process is killed by SIGKILL by OOM killer due to high memory usage.").findings[0]
    seen = of_text("Out of memory: Killed process 812 (python) total-vm:78521468kB, anon-rss:54398260kB").findings[0]
    assert listed.code == seen.code == "HostMemoryExhausted"
    assert listed.confidence < 0.6 < seen.confidence


def test_memory_without_a_process_is_the_drivers_own_only_below_a_gibibyte() -> None:
    assert told("256MB is used, but no process is running on the GPU") == []
    assert told("23040MB is used, but no process is running on the GPU") == ["GpuMemoryWithoutProcess"]
    assert told("22 GB is used, but no process is running on the GPU") == ["GpuMemoryWithoutProcess"]


def test_rights_that_are_lacking_are_a_fault_where_no_partition_is() -> None:
    assert told("Failed to initialize NVML: Insufficient Permissions") == ["NvmlNoPermission"]
    assert "PartitionHidesWholeDevice" not in {
        one.code for one in of_text("Total : Insufficient Permissions\nGPU 0: NVIDIA T4").traps
    }


def test_an_assertion_of_the_driver_is_noise_only_where_the_device_goes_on() -> None:
    line = "NVRM: nvAssertFailedNoLog: Assertion failed: 0 @ osapi.c:1688\n"
    assert [one.code for one in of_text(line).traps] == ["DriverStartupNoise"]
    assert of_text(line + "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.").traps == ()
    lost = "NVRM: nvAssertOkFailedNoLog: Assertion failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F)"
    assert of_text(lost).traps == ()


def test_a_later_collective_that_times_out_says_nothing_of_the_way() -> None:
    late = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, Timeout(ms)=600000)"
    assert told(late) == ["CollectiveTimedOut"]


def test_a_plugin_on_all_machines_is_no_difference() -> None:
    loaded = "a:1:1 [0] NCCL INFO NET/Plugin: Loaded net plugin IBext (v8)"
    assert "SocketInsteadOfRdma" not in told(loaded + "\n" + loaded.replace("a:1", "b:1"))
    none = "a:1:1 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin."
    assert told(none + "\n" + none.replace("a:1", "b:1")) == []


def test_a_component_that_says_why_stands_before_what_is_told() -> None:
    hangs = "two nodes hang at init_process_group with NCCL\n"
    assert told(hangs) == ["RanksDoNotReach"]
    full = "NCCL WARN Error: failed to extend /dev/shm/nccl-x to 33030532 bytes, error: No space left on device (28)"
    assert told(hangs + full) == ["SharedMemorySmall"]


def test_a_missing_driver_is_a_fault_where_nobody_says_that_no_gpu_is_wanted() -> None:
    missing = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"
    assert told(missing) == ["StartedWithoutNvidiaRuntime"]
    assert told(missing + "\nNVIDIA monitoring disabled.") == []


def test_memory_without_a_figure_is_by_design_only_where_it_is_shared() -> None:
    rows = "memory.total [MiB], memory.used [MiB]\n[N/A], [N/A]\n"
    assert "IntegratedGpuFieldsEmpty" in {one.code for one in of_text("NVIDIA GB10\n" + rows).traps}
    assert "IntegratedGpuFieldsEmpty" not in {one.code for one in of_text("NVIDIA A100\n" + rows).traps}


def test_a_plugin_that_waits_on_nodes_with_gpus_is_not_excused() -> None:
    waits = "the plugin's pods on the GPU nodes say: No devices found. Waiting indefinitely."
    assert of_text(waits).traps == ()


def test_memory_that_is_taken_is_a_fault_where_a_program_fails_for_it() -> None:
    takes = "TensorFlow takes all the GPU memory at its start\n"
    assert [one.code for one in of_text(takes).traps] == ["FrameworkTakesAllMemory"]
    assert of_text(takes + "CUDA_ERROR_OUT_OF_MEMORY").traps == ()
    assert told(takes + "CUDA_ERROR_OUT_OF_MEMORY") == ["GpuMemoryFull"]


def test_a_slow_start_is_the_images_where_somebody_says_what_is_compiled() -> None:
    slow = "the first call of model.cuda() takes 90 seconds"
    assert [one.code for one in of_text(slow).traps] == ["FirstCallSlow"]
    assert told(slow) == []
    assert told(slow + "\nPTX is compiled at every cold start, which takes minutes") == ["KernelsCompiledAtStart"]
    assert of_text("the first training run is slow because the network drive is").traps == ()


def test_an_uninitialised_library_is_a_weaker_sign_of_full_memory_than_the_word() -> None:
    weak, strong = (of_text(one).findings[0] for one in ("CUBLAS_STATUS_NOT_INITIALIZED", "CUDA out of memory"))
    assert weak.code == strong.code == "GpuMemoryFull"
    assert weak.confidence < strong.confidence


def test_the_first_gpu_is_missing_and_the_second_is_too_many() -> None:
    assert told("specifies invalid or unsupported gpu id 0. GPUs with at least") == ["NoGpuInContainer"]
    assert told("specifies invalid or unsupported gpu id 1. GPUs with at least") == ["DeviceOrdinalInvalid"]


def test_memory_of_the_group_below_its_limit_kills_nobody() -> None:
    assert told("memory: usage 131072kB, limit 131072kB, failcnt 12") == ["HostMemoryExhausted"]
    assert told("memory: usage 1072kB, limit 131072kB, failcnt 0") == []


@pytest.mark.parametrize(
    ("text", "not_this"),
    [
        ("GPU utilization is 98% all the time and the data loader is quick", "GpuWaitsForData"),
        ("GPU-Util drops to 3 % after 20 minutes at 87 C", "GpuWaitsForData"),
        (
            "the driver version that nvidia-smi shows does not match the device number of the module",
            "DeviceOrderDiffers",
        ),
        ("nvidia-smi lists the GPUs by number", "DeviceOrderDiffers"),
        ("vLLM takes a minute to load a model on the GPU", "FrameworkTakesAllMemory"),
        ("the first node has a GPU, the second has none", "FirstCallSlow"),
    ],
)
def test_what_nearly_is_no_fault_is_not_taken_for_it(text: str, not_this: str) -> None:
    assert not_this not in {one.code for one in of_text(text).traps}


def test_a_model_that_is_unloaded_after_a_while_is_no_lost_device() -> None:
    assert told("the container unloads the model after some time and frees the GPU") == []
    assert told("the program runs on the CPU only, after a while it ends") == []
