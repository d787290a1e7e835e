"""Frameworks and servers: what PyTorch, TensorFlow, JAX, TensorRT, vLLM, SGLang and their extensions print when they do
not begin or cannot go on. What CUDA itself answers is in cuda.py."""

from berth.evidence.message import Message, phrases

MESSAGES: tuple[Message, ...] = (
    # Ranks
    Message(
        "dist.store_lost",
        (
            "error connecting to ",
            "runtimeerror: socket timeout",
            "gloo::enforcenotmet",
            "gloo::ioexception",
            "horovod has been shut down",
            "timed out waiting for tasks to start",
            "stop_waiting response is expected",
            "every node should have a unique ip address",
            "sendbytes failed on socketimpl",
            "poll for socket socketimpl",
            "gpu communicator error",
            "failed to initialize gpu clique",
            "get communicator from acquired gpu clique",
            "horovod unable to connect",
            "runtimeerror: connection reset by peer",
            "runtimeerror: broken pipe",
            "failed to connect to ray cluster",
            "could not find any running ray instance",
            "failed to bind to",
            "failed to listen on",
            "did gcs start successfully",
            "failed to get the system config from raylet",
            "unable to connect to gcs",
            "failed to connect to socket",
            "failed to register worker",
            "engine_info_bootstrap_port",
            "failed to connect to bootstrap server",
        ),
        r"\[\d+\]: Error connecting to \S|Horovod has been shut down|Timed out waiting for tasks to start"
        r"|Stop_waiting response is expected|Every node should have a unique IP address"
        r"|sendBytes failed on SocketImpl\b[^\n]{0,160}Broken pipe"
        r"|poll for socket SocketImpl\b[^\n]{0,60}likely a timeout|GPU communicator error"
        r"|Failed to initialize GPU clique"
        r"|Unable to get communicator from acquired GPU clique|Horovod unable to connect"
        r"|RuntimeError: (?:Socket Timeout|Connection reset by peer|Broken pipe)\b"
        r"|gloo::(?:EnforceNotMet|IoException)|Failed to connect to Ray cluster"
        r"|Could not find any running Ray instance"
        r"|server socket has failed to (?:bind to|listen on)\b|Did GCS start successfully"
        r"|Failed to get the system config from raylet|Unable to connect to GCS"
        r"|Failed to connect to socket at address:?\S*raylet|Failed to register worker to Raylet"
        r"|engine_info_bootstrap_port \d+ is already in use|Failed to connect to bootstrap server",
    ),
    Message(
        "dist.wait_in_vain",
        (
            "nccl operations have failed or timed out",
            "successfully reached monitoredbarrier",
            "detected timeout during barrier",
            "detected by watchdog at work",
            "due to a collective timeout from",
            "to avoid data inconsistency, we are taking the entire process down",
            "scheduler watchdog timeout",
            "watchdog timeout (self.watchdog_last_forward_ct",
            "waiting for remainder of ranks",
        ),
        r"Some NCCL operations have failed or timed out|successfully reached monitoredBarrier, but received errors"
        r"|Detected timeout during barrier|detected by watchdog at work: \d+|due to a collective timeout from"
        r"|To avoid data inconsistency, we are taking the entire process down|(?:scheduler )?watchdog timeout "
        r"\(self\.watchdog_last_forward_ct|waiting for remainder of ranks",
    ),
    # Keys and accounts between launcher and workers
    Message(
        "mpi.refused",
        (
            "unable to load host key",
            "no hostkeys available",
            "' are too open",
            "host key verification failed",
            "permission denied (publickey",
            "bad owner or permissions on",
            "cannot open: permission denied",
            "authentication refused: bad ownership",
            "privilege separation user sshd does not exist",
            "missing privilege separation directory",
        ),
        r"Unable to load host key \"?\S+: bad permissions|sshd: no hostkeys available|"
        r"Permissions 0\d{3} for '\S+' are too open|Host key verification failed|Permission denied \(publickey"
        r"|Bad owner or permissions on \S*\.?ssh|^\S+: Cannot open: Permission denied"
        r"|Authentication refused: bad ownership or modes|Privilege separation user sshd does not exist"
        r"|Missing privilege separation directory",
    ),
    Message(
        "mpi.no_way",
        (
            "mpi_init failed for some reason",
            "pmix_err_unreach",
            "ssh exited with exit code 255",
            "orte was unable to reliably start",
            "launcher 'pdsh' not installed",
        ),
        r"MPI_INIT failed for some reason|PMIX_ERR_UNREACH|\bpdsh@\S+: \S+: ssh exited with exit code 255"
        r"|ORTE was unable to reliably start one or more daemons"
        r"|launcher 'pdsh' not installed",
    ),
    # Too few or the wrong devices
    Message(
        "app.too_few_devices",
        (
            "torch.cuda.device_count() is ",
            "invalid number of gpus: ",
            "no slot '",
            "gpu resources available",
            "mpisize == tp * pp",
            "gpus requested but only",
            "not enough gpus: ",
            "gpus requested but not available",
            "you requested gpu: [",
            "world_size (",
            "world size (",
        ),
        r"deserialize object on CUDA device \d+ but torch\.cuda\.device_count\(\) is \d+"
        r"|Invalid number of GPUs: \d+ requested but only \d+|No slot '\d+' specified on host"
        r"|Unable to proceed, no GPU resources available|Assertion failed: mpiSize == tp \* pp"
        r"|Not enough GPUs: |GPUs requested but not available"
        r"|You requested gpu: \[[\d, ]*\]\s+But your machine only has"
        r"|world[_ ]size \(\d+\) is not (?:divisible by|equal to) ",
    ),
    Message(
        "app.device_unassigned",
        ("cannot assign a device for operation", "could not satisfy explicit device specification"),
        r"(?:Cannot assign a device for operation|Could not satisfy explicit device specification)\b[^\n]{0,240}GPU"
        r"[^\n]{0,120}devices(?: are|:) \[(?![^\n]*GPU)",
    ),
    Message(
        "app.needs_newer_card",
        (
            "expected is_sm",
            "requires gpu compute capability",
            "requires a blackwell",
            "requires a hopper",
            "requires sm90",
            "requires sm100",
            "requires sm120",
            "requires sm80",
            "cuda capability is ",
            "minimum required cuda capability",
            "requires an nvidia gpu with sm",
            "is not supported on gpu with compute capability",
            "compute capability >= ",
            "not supported in this architecture",
            "too old to be supported by the triton",
            "requires gpus with sm",
            "only supported on cuda devices with compute capability",
            "requires gpu with compute capability",
            "cutlass_scaled_mm not supported on this device",
            "not supported on this gpu architecture",
            "fp8 is only supported",
            "device does not support multicasting",
        ),
        r"Expected is_sm\d+\b[^\n]{0,60}to be true, but got false|requires GPU compute capability (?:>= )?\d"
        r"|requires a (?:Blackwell|Hopper) (?:GPU|\(SM)(?! for)|requires SM(?:80|90|100|120)\w*\b"
        r"|The minimum required Cuda capability is \d|requires an NVIDIA GPU with SM"
        r"|is not supported on GPU with compute capability|requires CUDA compute capability >= \d"
        r"|fp8e\w+ not supported in this architecture|too old to be supported by the triton GPU compiler"
        r"|requires GPUs with sm\d|only supported on CUDA devices with compute capability"
        r"|requires GPU with compute capability|cutlass_scaled_mm not supported on this device"
        r"|Compute capability >= \d[\d.]* (?:is )?(?:required|needed)|not supported on this GPU architecture"
        r"|fp8 is only supported (?:on|for)|Device does not support multicasting",
    ),
    # Memory
    Message(
        "app.memory_short_told_by_server",
        (
            "memory capacity is unbalanced",
            "error in memory profiling",
            "initial free memory",
            "dst tensor is not initialized",
            "blas gemm launch failed",
            "blas xgemm launch failed",
            "blas sgemm launch failed",
            "error code 2: outofmemory",
            "no free gpu memory",
            "status: out of memory",
            "error 2: out of memory",
            "create cublas handle",
            "leave no gpu memory for the kv cache",
            "cumemcreate",
            "openencodesessionex failed: out of memory",
            "runs out of memory. please set a smaller",
            "curand_status_allocation_failed",
            "cusolver_status_alloc_failed",
            "cusparse_status_alloc_failed",
            "cudnn_status_alloc_failed",
            "cufft_alloc_failed",
            "device_allocation_failed",
            "cusparse_status_insufficient_resources",
            "failed to cuda malloc",
            "failed to cuda calloc",
            "gpuassert: out of memory",
        ),
        r"memory capacity is unbalanced\. Some GPUs may be occupied|Error in memory profiling\. Initial free memory"
        r"|Dst tensor is not initialized|Blas (?:x|S)?GEMM launch failed|Error Code 2: OutOfMemory"
        r"|no free GPU memory|cuda\w*\(\) failed\. Status: out of memory|Error 2: out of memory"
        r"|failed to create cublas handle: (?:cublas error|CUBLAS_STATUS_NOT_INITIALIZED)"
        r"|leave no GPU memory for the KV cache|cuMemCreate\S* failed\W+out of memory"
        r"|OpenEncodeSessionEx failed: out of memory|runs out of memory\. Please set a smaller"
        r"|CURAND_STATUS_ALLOCATION_FAILED|CU(?:SOLVER|SPARSE|DNN)_STATUS_ALLOC_FAILED|CUFFT_ALLOC_FAILED"
        r"|DEVICE_ALLOCATION_FAILED"
        r"|CUSPARSE_STATUS_INSUFFICIENT_RESOURCES|Failed to CUDA (?:malloc|calloc(?: async)?) \d+ bytes"
        r"|GPUassert: out of memory",
    ),
    # TensorFlow and XLA read the kernel module's version and that of the library in the container.
    Message(
        "driver.dso_differs",
        "does not match dso version",
        r"kernel version (?P<kernel>\d[\d.]+\d) does not match DSO version (?P<library>\d[\d.]+\d)",
    ),
    # No device
    Message(
        "cuda.none_for_framework",
        (
            "no supported devices found for platform cuda",
            "cuda initialization failure with error: 35",
            "cuda initialization failure with error: 100",
            "cuda initialization failure with error: 3",
            "no clients are alive!",
            "couldn't init cuda",
            "libcuda.so cannot found",
            "failed to load cuda driver!",
            "failed to open libcuda",
            "nvml shared library not found",
            "no visible gpu devices",
            "no available gpu was found",
            "only supported with gpus, no gpus found",
            "cuda unavailable, invalid device",
            "can't initialize nvml",
            "for option 'init_hw_device'",
            "initialize a specified accelerator device",
            "no cuda devices found, cuda will be disabled",
            "no supported gpu backend found",
            "since the accelerator is not available",
            "gpu is required to quantize",
            "requires a gpu (not 'cpu')",
            "quantization requires a gpu",
            "library=cpu",
            "inference requires a gpu",
            "training requires a gpu",
        ),
        r"no supported devices found for platform CUDA|CUDA initialization failure with error: (?:35|100)\b"
        r"|No clients are alive!|Couldn't init CUDA\b|libcuda\.so cannot found(?!.{0,20}Possible files)"
        r"|Failed to load CUDA driver!|Failed to open libcuda\b"
        r"|NVML Shared Library Not Found|No visible GPU devices"
        r"|Failed to set value 'cuda\S*' for option 'init_hw_device'"
        r"|Could not find/initialize a specified accelerator device|Can't initialize NVML"
        r"|no CUDA devices found, CUDA will be disabled|No supported gpu backend found"
        r"|since the accelerator is not available|GPU is required to quantize|requires a GPU \(not 'cpu'\)"
        r"|(?:quantization|inference|training) requires a GPU\b|\"inference compute\"[^\n]{0,40}library=cpu"
        r"|only supported with GPUs, no GPUs found|No available GPU was found|CUDA unavailable, invalid device",
    ),
    # A directory that Ray reads instead of asking NVML.
    Message(
        "app.driver_files_denied",
        "/proc/driver/nvidia",
        r"Permission ?(?:Error|denied)\b[^\n]{0,60}/proc/driver/nvidia"
        r"|/proc/driver/nvidia\S*\W{1,3}Permission denied",
    ),
    Message(
        "app.shm_short_for_program",
        (
            "instead of /dev/shm because",
            "please check shared memory limits by",
            "insufficient space in /dev/shm",
        ),
        r"Insufficient space in /dev/shm|object store is using \S+ instead of /dev/shm because"
        r"|please check shared memory limits by 'ipcs -l'",
    ),
    # Kubernetes gives each service variables of its own name.
    phrases("app.port_is_uri", "appears to be a URI. This may be caused by a Kubernetes service discovery issue"),
    phrases(
        "app.server_ended",
        "Engine process failed to start",
        "Engine loop is not running. Inspect the stacktrace",
        "EngineDeadError",
        "EngineCore encountered an issue",
        "scheduler is dead. Please check if there are relevant logs",
        "ProcessExitedException",
        "ProcessRaisedException",
        "Pin memory thread exited unexpectedly",
        "Executor worker encountered an error",
        "failed to load all models",
        "WorkerProc initialization failed due to an exception in a background process",
        "The actor died unexpectedly before finishing this task",
        "Some processes that the driver launched have died",
        "is killed by signal: Killed",
        "The actor is dead because its worker process has died",
        "Error executing method 'determine_num_available_blocks'",
        "failed (exitcode: 1) local_rank",
        "Worker process died",
        "died unexpectedly, shutting down executor",
        "died with <Signals.SIG",
        "It usually means one child failed",
        "It usually means the child failed",
        "Initialization failed. Please see the error messages above",
        "RPC call to execute_model timed out",
        "RPC call to sample_tokens timed out",
        "actor died because of an error raised in its creation task",
        "The task's local raylet died",
        "mpirun noticed that process rank",
        "MPI_ABORT was invoked on rank",
        "Primary job  terminated normally, but",
    ),
    phrases("context.expandable_segments", "expandable_segments:True"),
    # Peers
    Message(
        "nccl.peer_refused",
        (
            "transport/p2p.cc:",
            "failed to peer with device",
            "peer query failed between dev",
            " is not accessible",
            "peer-to-peer access capability are required",
            "cudaipcgetmemhandle failed",
            "cudaipcopenmemhandle failed",
            "cuipcopenmemhandle",
            "gpu-to-gpu peer accesses passed verification",
            "cudaerrorpeeraccessnotenabled",
            "peer_access_not_enabled",
            "peer access has not been enabled",
        ),
        r"transport/p2p\.cc:\d+ (?:\(\w+\) )?NCCL WARN Cuda failure (?:\d+ )?'(?:invalid argument|unknown error"
        r"|mapping of buffer object failed)|failed to peer with device \d|peer query failed between dev"
        r"|Peer GPU \d+ is not accessible"
        r"|Two or more GPUs with Peer-to-Peer access capability are required"
        r"|cudaIpc(?:Get|Open)MemHandle failed|cuIpcOpenMemHandle\w*\(?\S* failed"
        r"|p2p: only \d+/\d+ GPU-to-GPU peer accesses passed verification"
        r"|cudaErrorPeerAccessNotEnabled|CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
    ),
    Message(
        "nccl.multicast_refused",
        (
            "fabric mismatch detected in clique",
            "needs multicast memory",
            "multicast mapping is unavailable",
            "requires nvlink multicast",
            "nvls multicast",
            "cumulticastcreate",
        ),
        r"Fabric mismatch detected in clique|needs multicast memory|NVLink multicast mapping is unavailable"
        r"|requires NVLink multicast"
        r"|NVLS Multicast bind\b[^\n]{0,80}failed|\bin expression cuMulticastCreate",
    ),
    # How the program uses its process groups
    phrases(
        "dist.called_wrongly",
        "trying to initialize the default process group twice",
        "Default process group has not been initialized",
        "parallel group is already initialized",
        "Tensors must be CUDA and dense",
        "No backend type associated with device type cpu",
        "is not supported for NCCL process group",
        "Expected to have finished reduction in the prior iteration",
        "Expected to mark a variable ready only once",
        "world group already initialized with a different world size",
        "Tensor list input to scatter/gather must match number of collective participants",
        "Invalid scalar type for NCCL",
        "ProcessGroup does not support",
        "Tensors must be on distinct GPU devices",
        "using multiple GPUs per process is not supported",
    ),
    # The first call fails and names no reason.
    Message(
        "cuda.count_unknown",
        ("cudagetdevicecount returned ", "failed to get device properties, error code: "),
        r"cudaGetDeviceCount returned (?:3|30|304|999)\b|Failed to get device properties, error code: (?:30|999)\b",
    ),
    Message(
        "cuda.busy_by_number",
        ("cudagetdevicecount returned 46", "failed to get device context 46"),
        r"cudaGetDeviceCount returned 46\b|failed to get device context 46\b",
    ),
    Message(
        "app.graph_or_event_failed",
        (
            "failed to launch cuda kernel",
            "could not synchronize cuda stream",
            "error recording cuda event",
            "failed to query event",
            "synchronous memcpy from device to host",
            "failed to launch cuda graph",
            "failed to instantiate cuda graph",
        ),
        r"Failed to launch CUDA (?:kernel|graph)|Could not synchronize CUDA stream|Error recording CUDA event"
        r"|[Ff]ailed to query event: |failed to synchronous memcpy from device to host"
        r"|Failed to instantiate CUDA graph",
    ),
)
