"""What NCCL, frameworks and launchers say in runs that are well."""

from berth.evidence.message import Message, phrases

MESSAGES: tuple[Message, ...] = (
    Message(
        "dist.no_ipv6",
        ("socket cannot be initialized",),
        r"c10d\b.{0,20}The (?:server|client) socket cannot be initialized.{0,60}errno: 97",
    ),
    # PyTorch, 2.1 to 2.9, where init_process_group was given no device.
    Message(
        "dist.device_guessed",
        (
            "used by this process is currently unknown",
            "used by this process are currently unknown",
            "guessing device id based on global rank",
            "using the device under current context",
            "no device id is provided via",
        ),
        r"using GPU \d+ (?:to perform barrier )?as devices? (?:used by this process is currently unknown"
        r"|used by this process are currently unknown)"
        r"|Guessing device ID based on global rank"
        r"|barrier\(\): using the device under current context|No device id is provided via `init_process_group`",
    ),
    Message("nccl.ras_bind", ("ras failed to establish",), r"RAS failed to establish a client listening socket"),
    Message(
        "tf.numa_node", ("negative value (-1)",), r"successful NUMA node read from SysFS had negative value \(-1\)"
    ),
    Message(
        "tf.factory",
        ("unable to register cudnn factory", "unable to register cufft factory", "unable to register cublas factory"),
        r"Unable to register cu(?:DNN|FFT|BLAS) factory",
    ),
    # NCCL looks for plugins that most machines do not have, and goes on with what it brings.
    Message(
        "harmless.nccl_plugin_absent",
        (
            "libnccl-net.so",
            "libnccl-tuner",
            "libnccl-profiler",
            "libnccl-env",
            "libnccl-gin",
            "libnccl-rma",
            "using internal network plugin",
            "ncclnetplugin_v",
            "nccltunerplugin_v",
            "ncclcollnetplugin_v",
            "ncclcollnet_v",
            "using internal tuner plugin",
            "using internal implementation",
        ),
        r"(?:Could not find|No plugin found|Unable to load)\W.{0,40}libnccl-(?:net\.so|tuner|profiler|env|gin|rma)"
        r"|libnccl-net\.so(?:\.\d+)?\W{1,3}cannot open shared object"
        r"|libnccl-(?:tuner|profiler|env|gin|rma)\S*\W{1,3}cannot open"
        r"|Failed to find nccl(?:NetPlugin|CollNetPlugin|TunerPlugin|CollNet)_v\d+ symbol"
        r"|Using internal (?:network plugin|tuner plugin|implementation)",
    ),
    Message(
        "harmless.nccl_optional",
        (
            "dma-buf is available on",
            "multicast support is not available",
            "topology detection : could not read",
            "topology detection: could not read",
            "could not find real path of /sys",
            "falling back to simple order",
            "numa auto balancing enabled",
            "pxn disabled as plugin is",
        ),
        r"NVLS multicast support is not available|\bwhy\b.{0,60}DMA-BUF is available on"
        r"|Topology detection ?: could not read \S+.*ignoring"
        r"|Could not find real path of /sys|falling back to simple order"
        r"|NUMA auto balancing enabled which can lead to variability|PXN disabled as plugin is v\d",
    ),
    # NCCL measures how far a card is from each network device, and copies through host memory where it is too far.
    Message(
        "harmless.gdr_by_distance",
        "gpu direct rdma disabled",
        r"GPU Direct RDMA Disabled\b[^\n]*\(distance (?P<distance>\d+) >=? (?P<most>\d+)\)",
    ),
    # Who asks for peer access a second time is told so: 704, 50 before CUDA 10.1. Tools that watch calls print it.
    Message(
        "harmless.peer_access_on",
        (
            "peeraccessalreadyenabled",
            "peer_access_already_enabled",
            "enablepeeraccess",
            "peer access is already enabled",
            "peer access was already enabled",
            "peer access already enabled",
        ),
        r"cudaErrorPeerAccessAlreadyEnabled|CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"
        r"|peer access (?:is |was )?already enabled"
        r"|\b(?:cudaDevice|cuCtx)EnablePeerAccess\b[^\n]{0,60}\breturned \(?(?:0x2c0|704|0x32|50)\b",
    ),
    # A card may be of a newer minor capability than any that the program was built for: code of 12.0 runs on 12.1.
    Message(
        "harmless.capability_range",
        ("which is of cuda capability",),
        r"which is of cuda capability (?P<card>\d+\.\d+)\.[\s\S]{0,60}?Minimum and Maximum cuda capability supported "
        r"by this version of PyTorch is[\s\d:]*\((?P<least>\d+\.\d+)\) - \((?P<most>\d+\.\d+)\)",
        lines=5,
    ),
    # Programs that can use a GPU say so where there is none, and compute without.
    Message(
        "harmless.computes_without",
        (
            "but cuda is not available",
            "no accelerator is found",
            "could not find cuda drivers on your machine",
            "found no nvidia driver on your system",
            "no cuda runtime is found, using cuda_home",
            "the nvidia driver was not detected",
            "can't initialize nvml",
            "gpu available: false",
            "no gpu/tpu found, falling back to cpu",
            "failed call to cuinit",
            "could not load dynamic library 'libcuda",
            "an nvidia gpu may be present on this machine, but",
        ),
        r"but CUDA is not available\W+Disabling|no accelerator is found, then device pinned memory"
        r"|Could not find cuda drivers on your machine, GPU will not be used|Found no NVIDIA driver on your system"
        r"|No CUDA runtime is found, using CUDA_HOME|The NVIDIA Driver was not detected|Can't initialize NVML"
        r"|GPU available: False|No GPU/TPU found, falling back to CPU|failed call to cuInit"
        r"|Could not load dynamic library 'libcuda|An NVIDIA GPU may be present on this machine, but",
    ),
    Message(
        "harmless.builtin_disabled",
        (
            "is enabled, but cuda is not available",
            "user provided device_type of 'cuda', but",
            "then device pinned memory",
        ),
        r"GradScaler is enabled, but CUDA is not available"
        r"|User provided device_type of 'cuda', but CUDA is not available"
        r"|no accelerator is found, then device pinned memory",
    ),
    Message(
        "context.wants_no_gpu",
        (
            "without gpu",
            "without a gpu",
            "without an nvidia",
            "without nvidia",
            "no gpu",
            "no nvidia",
            "any gpu",
            "any nvidia",
            "have a gpu",
            "have an nvidia",
            "have gpu",
            "have nvidia",
            "cpu-only",
            "cpu only",
            "cpu node",
            "cpu pod",
            "cpu machine",
            "cpu runner",
            "cpu instance",
            "in ci",
            "on ci",
            "in our ci",
            "on our ci",
            "in the ci",
            "on the ci",
            "ci runner",
            "github action",
            "macbook",
        ),
        r"\b(?:machines?|laptops?|nodes?|hosts?|servers?|runners?|desktops?|VMs?|PCs?|workers?)\b[^.\n]{0,30}"
        r"\b(?:without GPU|without a GPU|without an NVIDIA GPU|without NVIDIA GPU|no GPU|no NVIDIA GPU"
        r"|(?:not|n't|without) (?:have )?(?:any GPU|any NVIDIA GPU)|(?:not|n't) (?:have a GPU|have an NVIDIA GPU"
        r"|have GPU|have NVIDIA GPU))"
        r"|\b(?:asks? for|requests?|wants?|needs?|requires?) (?:no GPU|no NVIDIA GPU)|\b(?:CPU-only|CPU only)\b"
        r"|\b(?:CPU node|CPU pod|CPU machine|CPU runner|CPU instance)|\b(?:in CI|on CI|in our CI|on our CI|in the CI"
        r"|on the CI)\b|\b(?:CI runner|GitHub Action|MacBook)",
    ),
    phrases(
        "harmless.torch",
        "does not have many workers which may be a bottleneck",
        "encountered error set by ProcessGroupNCCL: Process Group shutdown",
        "The CUDA Samples are not meant for performance measurements",
        "delaying package configuration, since apt-utils is not installed",
        "Grad strides do not match bucket view strides",
        "but did not find any unused parameters in the forward pass",
        "Producer process has been terminated before all shared CUDA tensors released",
        "Redirects are currently not supported in Windows",
        "master_addr is only used for static rdzv_backend",
        "torch.distributed.launch is deprecated",
        "Torch was not compiled with flash attention",
        "Torch was not compiled with memory efficient attention",
        "TORCH_CUDA_ARCH_LIST is not set, all archs for visible cards are included",
        "Detected call of `lr_scheduler.step()` before `optimizer.step()`",
        "Our suggested max number of worker in current system",
        "The current process just got forked, after parallelism has already been used",
        "None of the inputs have requires_grad=True",
        "use_reentrant parameter should be passed explicitly",
        "TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled",
        "skipping cudagraphs due to",
        "below the recommended minimum of 5.5.0",
        "doesn't support faster communication broadband via P2P or IB",
        "GPU available: True, used: False",
        "GPU available but not used",
        "TypedStorage is deprecated",
        "operator `torchvision::nms` will not be accelerated",
        "Failed to load image Python extension",
        "process group has NOT been destroyed before",
        "destroy_process_group() was not called before program exit",
        "has no effect for point-to-point",
        "has Tensor Cores. To properly utilize them",
        "there was no current CUDA context! Attempting to set the primary context",
        "expandable_segments not supported on this platform",
        "NCCL_ASYNC_ERROR_HANDLING is deprecated",
        "NCCL_BLOCKING_WAIT is deprecated",
        "TORCH_NCCL_AVOID_RECORD_STREAMS is the default",
        "PYTORCH_CUDA_ALLOC_CONF is deprecated",
        "Plan failed with a cudnnException",
        "The pynvml package is deprecated",
        "using a deprecated `pynvml` package",
        "Setting OMP_NUM_THREADS environment variable for each process to be 1",
        "Not enough SMs to use max_autotune_gemm",
        "leaked shared_memory objects to clean up at shutdown",
        "leaked semaphore objects to clean up at shutdown",
        "async_io requires the dev libaio",
        "sparse_attn requires a torch version",
        "using untested triton version",
        "hostname of the client socket cannot be retrieved",
    ),
    # What HAMi's library prints in every process that it limits.
    Message(
        "harmless.hami",
        ("hami-core", "4pdvgpu", "vgpu msg", "vgpu info", "vgpu debug", "vgpu warn"),
        r"(?:HAMI-core|4pdvGPU|vGPU) (?:Msg|Info|Debug|Warn)\b.{0,80}(?:Calling exit handler|Initializing|loaded|hijack"
        r"|put_device_info|driver version|Invalid device memory limit: CUDA_DEVICE_SM_LIMIT=0|get default cuda"
        r"|get_gpu_memory|shrreg)"
        r"|(?:HAMI-core|4pdvGPU|vGPU) Warn\b.{0,60}(?:get default cuda|SM_LIMIT=0)",
    ),
    phrases(
        "harmless.tensorflow",
        "this does not indicate an error and you can ignore this message",
        "Relying on driver to perform ptx compilation",
        "Couldn't get ptxas version",
        "Delay kernel timed out: measured time has sub-optimal accuracy",
        "Overriding orig_value setting because the TF_FORCE_GPU_ALLOW_GROWTH",
        "Overriding allow_growth setting because",
        "Trying algorithm eng0",
        "You are using a deprecated version of ptxas",
        "kernel may have been built without NUMA support",
        "TF-TRT Warning: Could not find TensorRT",
        "Could not load dynamic library 'libnvinfer",
        "computation placer already registered",
        "All log messages before absl::InitializeLog() is called",
        "TensorFlow binary is optimized",
        "Skipping the delay kernel, measurement accuracy",
        "The caller indicates that this is not a failure",
        "Local rendezvous is aborting with status: OUT_OF_RANGE",
        "XLA is disabling parallel compilation",
        "fallback to the NVIDIA driver for some compilation",
        "Unable to initialize backend 'tpu'",
        "Unable to initialize backend 'rocm'",
        "Unable to initialize backend 'tpu_driver'",
        "Unable to initialize backend 'interpreter'",
    ),
    phrases(
        "harmless.serving",
        "Custom allreduce is disabled",
        "Custom all-reduce is disabled",
        "communicator is not available",
        "Cannot use FlashAttention",
        "FlashAttention-2 is not supported",
        "does not have native support for FP8",
        "Using default MoE config",
        "Reducing Torch parallelism from",
        "CUDA lazy loading is not enabled",
        "Unable to get power limit for GPU",
        "Unable to get power usage for GPU",
        "Minor Version Compatibility mode ENABLED",
        "CUDA Forward Compatibility mode ENABLED",
        "MOFED driver for multi-node communication was not detected",
        "No InfiniBand devices detected. Multi-node communication",
        "The SHMEM allocation limit is set to the default of 64MB",
    ),
    Message(
        "harmless.memory_counted",
        ("mem_get_info", "memory_allocated", "memory_reserved", "nvtop", "cudamemgetinfo"),
        r"\b(?:mem_get_info|memory_allocated|memory_reserved|nvtop|cudaMemGetInfo)\b.{0,60}\bnvidia-smi\b.{0,60}"
        r"\b(?:differ\w*|not (?:match|the same|equal)|more|less|higher|lower)"
        r"|\bnvidia-smi\b.{0,80}\b(?:differ\w*|not (?:match|the same|equal)|more|less|higher|lower)\b.{0,60}"
        r"\b(?:mem_get_info|memory_allocated|memory_reserved|nvtop|cudaMemGetInfo)\b",
    ),
    # CUDA takes the first partition that it is given; others are for other processes.
    Message(
        "harmless.one_partition",
        ("mig device", "mig instance", "mig slice", "mig partition", "nvidia.com/mig-"),
        r"\b(?:two|2|three|3|several|multiple|more than one|many) MIG (?:devices?|instances?|slices?"
        r"|partitions?)\b.{0,160}"
        r"\b(?:only (?:one|1|a single)|returns 1|shows? 1|sees? (?:only )?(?:one|1))\b"
        r"|\b(?:only (?:one|1|a single)|device_count\(\) (?:returns|is) 1)\b.{0,160}\bMIG (?:devices?|instances?"
        r"|slices?|partitions?)\b",
    ),
    Message(
        "harmless.mpi",
        (
            "read -1, expected",
            "no preset parameters were found for the device",
            "error initializing an openfabrics device",
            "ports on a device are not used by default",
            "authorization required, but no authorization protocol",
            "unused env variable",
            "ignoring pci device with non-16bit domain",
            "mca_base_component_repository_open",
            "gds_ds12_lock_pthread",
            "but cma is not available",
            "was unable to find any relevant network interfaces",
            "was not returned to mpool",
            "unused environment variable",
            "hwloc has encountered what looks like an error",
            "hwloc received invalid information",
        ),
        r"Read -1, expected \d+, errno = 1\b|No preset parameters were found for the device that Open MPI"
        r"|error initializing an OpenFabrics device|ports on a device are not used by default"
        r"|Authorization required, but no authorization protocol specified"
        r"|hwloc/linux: Ignoring PCI device with non-16bit domain"
        r"|mca_base_component_repository_open: unable to open mca_\w+: [^\n]*\(ignored\)"
        r"|PMIX ERROR: [^\n]*gds_ds12_lock_pthread|btl_vader_single_copy_mechanism[^\n]*but CMA is not available"
        r"|point-to-point messaging module\s+was unable to find any relevant network interfaces"
        r"|UCX +WARN +[^\n]*(?:unused env variable|unused environment variable|was not returned to mpool)"
        r"|hwloc has encountered what looks like an error|hwloc received invalid information",
    ),
)
