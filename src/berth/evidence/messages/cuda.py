"""CUDA and what runs on it: errors of the runtime and the driver interface, and of the frameworks above them."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # 802: fabric manager, IMEX or confidential computing are not ready yet.
    Message(
        "cuda.system_not_ready",
        (
            "error 802",
            "error: 802",
            "failure 802",
            "failure: 802",
            "system not yet initialized",
            "system_not_ready",
            "systemnotready",
            "(802)",
        ),
        r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady|CUDA\S* (?:error"
        r"|failure):? 802\b|\berror 802\b|\(802\)",
    ),
    # 35 and its paraphrases. PyTorch prints the version that it found; then there is a driver.
    Message(
        "cuda.driver_insufficient",
        (
            "driver version is insufficient",
            "insufficientdriver",
            "insufficient_driver",
            "driver on your system is too old",
            "cudageterrorstring: 35",
            "driver is too old",
        ),
        r"driver version is insufficient for (?:the )?CUDA runtime|cudaErrorInsufficientDriver"
        r"|CUDA_ERROR_INSUFFICIENT_DRIVER"
        r"|driver on your system is too old(?: \(found version (?P<found>\d+)\))?"
        r"|driver is too old(?: \(found version (?P<found2>\d+)\))?",
    ),
    Message(
        "cuda.forward_compatibility",
        (
            "cuda/compat",
            "/compat/",
            "forward compatibility was attempted",
            "compat_not_supported_on_device",
            "compatnotsupportedondevice",
            "system_driver_mismatch",
            "systemdrivermismatch",
            "unsupported display driver",
            "error 803",
            "error 804",
            "(803)",
            "(804)",
        ),
        r"forward compatibility was attempted on non ?supported HW|COMPAT_NOT_SUPPORTED_ON_DEVICE"
        r"|CompatNotSupportedOnDevice"
        r"|SYSTEM_DRIVER_MISMATCH|SystemDriverMismatch|unsupported display driver ?/ ?cuda driver combination"
        r"|\berror 80[34]\b|\(80[34]\)"
        r"|cuda/compat\b.{0,60}libcuda|libcuda\S*\s.{0,60}/compat/",
    ),
    Message(
        "cuda.ptx_too_new",
        (
            "installed cuda driver",
            "callrequiresnewerdriver",
            "built for nvidia driver release",
            "named symbol not found",
            "unsupported toolchain",
            "unsupported_ptx_version",
            "unsupportedptxversion",
            "ptx was compiled with",
        ),
        r"PTX was compiled with an unsupported toolchain|UNSUPPORTED_PTX_VERSION|UnsupportedPtxVersion"
        r"|API call is not supported in the installed CUDA driver|CallRequiresNewerDriver"
        r"|container was built for NVIDIA Driver Release|named symbol not found",
    ),
    Message(
        "cuda.no_kernel_image",
        (
            "invalid value for --gpu-architecture",
            "arch list",
            "architecture list",
            "cuda capability sm_",
            "no kernel image is available",
            "no_binary_for_gpu",
            "nokernelimagefordevice",
            "is not compatible with the current pytorch installation",
            "not compatible with current pytorch",
            "cudaerrornokernelimage",
            "device kernel image is invalid",
            "invalid device function",
            "value 'sm_",
            "unsupported gpu architecture",
            "cublas_status_arch_mismatch",
        ),
        r"no kernel image is available|CUBLAS_STATUS_ARCH_MISMATCH|NO_BINARY_FOR_GPU|cudaErrorNoKernelImage\w*"
        r"|CUDA capability (?P<capability>sm_\w+) is not compatible"
        r"|device kernel image is invalid|invalid device function|Unsupported gpu architecture \W*(?P<arch>\w+)"
        r"|Value '(?P<value>sm_\w+)' is not defined for option|is not compatible with the current PyTorch installation"
        r"|not in (?:the )?arch(?:itecture)? list"
        r"|invalid value for --gpu-architecture",
    ),
    Message(
        "cuda.no_device",
        (
            "cuda driver initialization failed",
            "cudasupporterror",
            "nvcuda init failure",
            "unable to load cudart",
            "unable to load cuda driver library",
            "no gpu ",
            "no gpus ",
            "no cuda-capable device",
            "cuda_error_no_device",
            "cudaerrornodevice",
            "no cuda gpus are available",
            "could not find cuda drivers",
            "found no nvidia driver",
            "no gpu/tpu found",
            "failed to infer device type",
            "no compatible gpus were discovered",
            "libcuda.so",
            "libcuda reported",
            "torch.cuda.is_available()",
            "gpu will not be used",
            "nvidia driver was not detected",
            "unknown backend: 'gpu'",
            "unable to initialize backend 'cuda'",
            "failed call to cuinit",
            "is not available as platform cuda",
            "cudagetdevicecount",
            "without nvidia driver",
            "cannot find cuda",
            "gpu device plugin",
            "ggml_cuda_init",
            "deserialize object on a cuda device",
        ),
        r"no CUDA-capable device|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice|no CUDA GPUs are available"
        r"|could not find cuda drivers"
        r"|found no NVIDIA driver|No GPU/TPU found|failed to infer device type|no compatible GPUs were discovered"
        r"|no GPUs? (?:were )?(?:found|detected)\b"
        r"|libcuda\.so(?:\.1)?\W*:? cannot open shared object|could not load dynamic library \W*libcuda\.so"
        r"|libcuda\.so(?:\.1)? (?:is )?not found"
        r"|torch\.cuda\.is_available\(\)\W*(?:is|returns|returned|->|=|:)*\s*False|NVIDIA Driver was not detected"
        r"|Unknown backend: 'gpu' requested|Unable to initialize backend 'cuda'"
        r"|failed call to cuInit: (?:CUDA_ERROR_NO_DEVICE|UNKNOWN ERROR \(100\)|UNKNOWN ERROR \(303\))"
        r"|ggml_cuda_init: failed to initialize CUDA: no CUDA-capable"
        r"|Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available"
        r"|cudaGetDeviceCount\W+returned 100\b"
        r"|CUDA driver initialization failed, you might not have a CUDA gpu|CudaSupportError"
        r"|nvcuda init failure: (?:100|999)|unable to load (?:cudart|cuda driver) library",
    ),
    Message(
        "cuda.tool_missing",
        ("nvidia-smi",),
        r"nvidia-smi\W*:? (?:command )?not found|exec: \W*nvidia-smi\W*: executable file not found",
    ),
    Message(
        "cuda.stub_library",
        ("stub library", "stub_library", "stublibrary", "/stubs/libcuda"),
        r"(?:CUDA )?driver is a stub library|CUDA_ERROR_STUB_LIBRARY|cudaErrorStubLibrary|/stubs/libcuda",
    ),
    Message(
        "cuda.busy",
        ("busy or unavailable", "devices_unavailable", "devicesunavailable", "device_unavailable", "deviceunavailable"),
        r"busy or unavailable|cudaErrorDevicesUnavailable|CUDA_ERROR_DEVICE_UNAVAILABLE|DEVICES_UNAVAILABLE",
    ),
    Message(
        "cuda.invalid_ordinal",
        ("invalid device ordinal", "cudaerrorinvaliddevice", "cuda_error_invalid_device"),
        r"invalid device ordinal|cudaErrorInvalidDevice\b|CUDA_ERROR_INVALID_DEVICE\b",
    ),
    Message(
        "cuda.visible_devices_unreadable",
        ("invalid literal for int() with base 10", "cuda_visible_devices"),
        r"invalid literal for int\(\) with base 10: '(?P<value>(?:GPU|MIG)-[\w/-]*)"
        r"|CUDA_VISIBLE_DEVICES\S*.*(?:is not (?:set correctly|an? integer)|cannot be parsed|unexpected)",
    ),
    Message(
        "cuda.unknown",
        (
            "error code unknown error",
            "initialization error",
            "cuda_error_not_initialized",
            "cudaerrorinitializationerror",
            "cuda failed to initialize",
            "cuda_error_unknown",
            "cudaerrorunknown",
            "cuda unknown error",
            "os call failed",
            "cuda_error_operating_system",
            "cudaerroroperatingsystem",
            "error 999",
            "failure 999",
            "error: 999",
            "error 304",
            "failure 304",
            "incorrectly set up environment",
        ),
        r"CUDA_ERROR_UNKNOWN|cudaErrorUnknown|CUDA unknown error|incorrectly set up environment"
        r"|OS call failed or operation not supported on this OS|CUDA_ERROR_OPERATING_SYSTEM|cudaErrorOperatingSystem"
        r"|\berror:? 999\b|\bfailure 999\b|\b(?:error|failure) 304\b"
        r"|error code unknown error|(?:cuda|cu\w+|error code|error:?) \W?initialization error"
        r"|CUDA_ERROR_NOT_INITIALIZED|cudaErrorInitializationError|CUDA failed to initialize\.\s+GPU functionality",
    ),
    # Errors that end the context: the program itself, or the device under it.
    Message(
        "cuda.kernel_fault",
        (
            "_status_execution_failed",
            "_status_internal_error",
            "cublas_status_",
            "cudnn_status_",
            "cufft_status_",
            "cusparse_status_",
            "illegal memory access",
            "illegal_address",
            "illegaladdress",
            "misaligned address",
            "misaligned_address",
            "misalignedaddress",
            "unspecified launch failure",
            "launch_failed",
            "launchfailure",
            "illegal instruction was encountered",
            "illegal_instruction",
            "cudaerrorillegalinstruction",
            "invalid program counter",
            "invalid_pc",
            "illegal address during kernel execution",
            "cudaerrorhardwarestackerror",
            "device-side assert",
            "device_side_assert",
            "cudaerrorassert",
            "warp illegal",
        ),
        r"(?P<what>illegal memory access|ILLEGAL_ADDRESS|cudaErrorIllegalAddress|misaligned address|MISALIGNED_ADDRESS"
        r"|cudaErrorMisalignedAddress"
        r"|unspecified launch failure|CUDA_ERROR_LAUNCH_FAILED|cudaErrorLaunchFailure"
        r"|illegal instruction was encountered|CUDA_ERROR_ILLEGAL_INSTRUCTION"
        r"|cudaErrorIllegalInstruction|invalid program counter|CUDA_ERROR_INVALID_PC|cudaErrorHardwareStackError"
        r"|device-side assert|cudaErrorAssert\b"
        r"|illegal address during kernel execution)"
        r"|(?P<what2>CU(?:BLAS|DNN|FFT|SPARSE)_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR))",
    ),
    Message(
        "cuda.ecc",
        ("uncorrectable ecc", "ecc_uncorrectable", "eccuncorrectable", "ecc error encountered"),
        r"uncorrectable ECC error encountered|CUDA_ERROR_ECC_UNCORRECTABLE|cudaErrorECCUncorrectable",
    ),
    Message(
        "cuda.nvlink_uncorrectable",
        ("uncorrectable nvlink error", "nvlink_uncorrectable", "nvlinkuncorrectable"),
        r"uncorrectable NVLink error|CUDA_ERROR_NVLINK_UNCORRECTABLE|cudaErrorNvlinkUncorrectable",
    ),
    # 226, from CUDA 12.8 on: the GPU contained an error whose source is a peer's memory, or itself.
    Message(
        "cuda.contained",
        ("cuda_error_contained", "cudaerrorcontained", "invalid access of peer gpu memory over nvlink"),
        r"CUDA_ERROR_CONTAINED|cudaErrorContained|invalid access of peer GPU memory over NVLink",
    ),
    # Memory of the device
    Message(
        "cuda.out_of_memory",
        (
            "hami-core error",
            "vgpu error",
            "gpu memory",
            "cuda memory",
            "device memory",
            "memory_allocated",
            "memory_reserved",
            "cudaerroroutofmemory",
            "cublas_status_not_initialized",
            "out of memory",
            "cuda_error_out_of_memory",
            "cudaerrormemoryallocation",
            "outofmemoryerror",
            "resource_exhausted",
            "resourceexhaustederror",
            "cublas_status_alloc_failed",
        ),
        r"CUDA out of memory(?:.*?Tried to allocate (?P<tried>[\d.]+ [KMGT]iB))?(?:.*?total capacity of "
        r"(?P<total>[\d.]+ [KMGT]iB))?(?:.*?of which (?P<free>[\d.]+ [KMGT]iB) is free)?"
        r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUDA error: out of memory"
        r"|torch(?:\.cuda)?\.OutOfMemoryError|RESOURCE_EXHAUSTED"
        r"|ResourceExhaustedError|cudaMalloc failed: out of memory|CUBLAS_STATUS_ALLOC_FAILED"
        r"|ran out of memory trying to allocate"
        r"|error code out of memory|Cuda failure (?:2 )?'out of memory'|cudaErrorOutOfMemory"
        r"|CUBLAS_STATUS_NOT_INITIALIZED|(?:cuda|hip)\w* .{0,40}\bout of memory\b"
        r"|(?:GPU|CUDA|device) memory (?:keeps? |is |usage )*(?:grow|increas|leak)\w*|memory_(?:allocated"
        r"|reserved)\S* (?:keeps? )?(?:grow|increas)\w*"
        r"|(?:HAMI-core|vGPU) ERROR.{0,120}Device \d+ OOM (?P<tried2>\d+) / (?P<total2>\d+)",
    ),
    Message(
        "cuda.other_process",
        ("ib memory in use", "memory in use. process", "of memory in use"),
        r"Process (?P<pid>\d+) has (?P<used>[\d.]+ [KMGT]iB) memory in use",
    ),
    Message(
        "cuda.startup_memory_short",
        (
            "less than desired",
            "no available memory for the cache blocks",
            "less than the desired",
            "free memory on device",
        ),
        r"Free memory on device\s*(?:\S+ )?\(?(?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\)? on startup is less than "
        r"desired GPU memory utilization(?: \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\))?"
        r"|No available memory for the cache blocks|free memory .* less than (?:the )?desired",
    ),
    Message(
        "cuda.cache_too_small",
        ("kv cache", "max_model_len"),
        r"max seq len \(?(?P<length>\d+)\)? is larger than the maximum number of tokens that can be stored in KV cache"
        r"|(?P<wanted>[\d.]+) GiB KV cache is needed, which is larger than the available KV cache memory"
        r"(?: \((?P<free>[\d.]+) GiB\))?",
    ),
    Message(
        "cuda.memory_without_process",
        (
            "no process",
            "no running process",
            "memory is held",
            "memory held",
            "memory is still",
            "memory still",
            "memory not released",
            "memory is not",
            "memory not freed",
            "memory occupied",
            "memory is occupied",
        ),
        r"memory used\W*(?P<used>\d{3,}) ?Mi?B.*no running process|(?P<used2>\d{3,}) ?MiB.*no running processes found"
        r"|(?:GPU )?memory (?:is )?(?:still )?(?:held|occupied|not (?:released|freed)).*"
        r"(?:no (?:running )?process|after .*(?:exit|kill))"
        r"|\d{2,} ?(?:MiB|GiB|GB|MB)\b.{0,60}\bno (?:running )?process",
    ),
    Message(
        "smi.processes_unseen",
        ("nvidia-smi",),
        r"nvidia-smi\b.{0,60}\b(?:no|any|not (?:show|list|see)\w*|doesn.t (?:show|list)|empty)\b.{0,30}\bprocess\w*"
        r".{0,40}\b(?:in|inside|within|from) (?:the |a |my )?(?:docker )?(?:container|pod)\b",
    ),
    Message(
        "cuda.host_memory_leak",
        (
            "zombie",
            "defunct",
        ),
        r"\[(?:python\w*|pt_main_thread|ray|torchrun|vllm)\S*\] <defunct>|<defunct>.*/dev/nvidia"
        r"|zombie\b.{0,60}\b(?:GPU|memory|nvidia)",
    ),
    Message(
        "cuda.not_supported",
        (
            "operation not supported",
            "cudaerrornotsupported",
            "cuda_error_not_supported",
            "failure 801",
            "error 801",
            "error: 801",
        ),
        r"CUDA error:? (?:801\b|operation not supported)|Cuda failure 801|cudaErrorNotSupported"
        r"|CUDA_ERROR_NOT_SUPPORTED|error 801",
    ),
    Message(
        "cuda.after_fork",
        ("re-initialize cuda in forked subprocess",),
        r"Cannot re-initialize CUDA in forked subprocess",
    ),
)
