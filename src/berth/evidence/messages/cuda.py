"""CUDA and what runs on it: errors of the runtime and the driver interface, and of the frameworks above them. Those of
memory are in cuda_memory.py."""

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
            "with 802",
            "returned 802",
            "returns 802",
            "code 802",
            "code: 802",
            "code=802",
            "802 system",
        ),
        r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady|CUDA\S* (?:error"
        r"|failure):? 802\b|\berror 802\b|\(802\)|\b(?:cu\w+|CUDA)\b[^\n]{0,60}\b(?:with|returned|returns"
        r"|code[:=]?) ?802\b|\b802 system (?:error|not)",
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
            "returned 803",
            "returned 804",
        ),
        r"forward compatibility was attempted on non ?supported HW|COMPAT_NOT_SUPPORTED_ON_DEVICE"
        r"|CompatNotSupportedOnDevice"
        r"|SYSTEM_DRIVER_MISMATCH|SystemDriverMismatch|unsupported display driver ?/ ?cuda driver combination"
        r"|\berror 80[34]\b|\(80[34]\)|\bcu\w+\(\w*\) returned 80[34]\b"
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
        r"|container was built for NVIDIA Driver Release|(?<!Cuda failure ')named symbol not found",
    ),
    Message(
        "cuda.ptx_refused",
        ("invalid_ptx", "invalidptx", "ptx jit compilation failed", "jit_compiler_not_found"),
        r"CUDA_ERROR_INVALID_PTX|cudaErrorInvalidPtx|PTX JIT compilation failed|JIT_COMPILER_NOT_FOUND",
    ),
    Message(
        "cuda.no_kernel_image",
        (
            "invalid value for --gpu-architecture",
            "arch list",
            "architecture list",
            "cuda capability sm_",
            "no kernel image ",
            "cuda failure 'named symbol not found",  # NCCL, built for other cards
            "no suitable kernel image",
            "no compatible kernel image",
            "no_binary_for_gpu",
            "nokernelimagefordevice",
            "is not compatible with the current pytorch installation",
            "not compatible with current pytorch",
            "cudaerrornokernelimage",
            "device kernel image is invalid",
            "invalid device function",
            "value 'sm_",
            "is not a recognized processor for this target",
            "unsupported gpu architecture",
            "cublas_status_arch_mismatch",
            "cuda capability supported by this version of pytorch",
            "install supports cuda capabilities",
            "pytorch no longer supports this gpu",
        ),
        r"no (?:suitable |compatible )?kernel image (?:is |was |has been )?(?:available|found|to run"
        r"|for (?:execution|this|the|your|device|sm_))"
        r"|CUBLAS_STATUS_ARCH_MISMATCH|NO_BINARY_FOR_GPU|cudaErrorNoKernelImage\w*"
        r"|CUDA capability (?P<capability>sm_\w+) is not compatible"
        r"|device kernel image is invalid|invalid device function|Unsupported gpu architecture \W*(?P<arch>\w+)"
        r"|Value '(?P<value>sm_\w+)' is not defined for option|is not compatible with the current PyTorch installation"
        r"|'(?P<processor>sm_\w+)' is not a recognized processor for this target"
        r"|not in (?:the )?arch(?:itecture)? list|Cuda failure 'named symbol not found"
        r"|invalid value for --gpu-architecture|Maximum cuda capability supported by this version of PyTorch"
        r"|PyTorch install supports CUDA capabilities|PyTorch no longer supports this GPU because it is too old",
    ),
    Message(
        "cuda.no_device",
        (
            "cuda driver initialization failed",
            "cudasupporterror",
            "nvcuda init failure",
            "driver library init failure",
            "no nvidia devices detected",
            "cuda driver library",
            "no system cuda driver",
            "load library",
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
            "error loading cuda libraries",
            "is not available as platform cuda",
            "cudagetdevicecount",
            "without nvidia driver",
            "cannot find cuda",
            "gpu device plugin",
            "ggml_cuda_init",
            "deserialize object on a cuda device",
            "find cuda library libcuda",
            "failed to open libnvidia-ml",
        ),
        r"no CUDA-capable device|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice|no CUDA GPUs are available"
        r"|could not find cuda drivers"
        r"|found no NVIDIA driver|No GPU/TPU found|failed to infer device type|no compatible GPUs were discovered"
        r"|no GPUs? (?:were )?(?:found|detected)\b"
        r"|libcuda\.so(?:\.1)?\W*:? cannot open shared object|could not load dynamic library \W*libcuda\.so"
        r"|libcuda\.so(?:\.1)? (?:is )?not found"
        r"|cannot load libcuda\.so"
        r"|torch\.cuda\.is_available\(\)\W*(?:is|returns|returned|->|=|:)*\s*False|NVIDIA Driver was not detected"
        r"|Unknown backend: 'gpu' requested|Unable to initialize backend 'cuda'"
        r"|Error loading CUDA libraries|failed call to cuInit: (?:CUDA_ERROR_NO_DEVICE|UNKNOWN ERROR \(100\)"
        r"|UNKNOWN ERROR \(303\))"
        r"|ggml_cuda_init: failed to initialize CUDA: no CUDA-capable"
        r"|Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available"
        r"|cudaGetDeviceCount\W+returned 100\b"
        r"|CUDA driver initialization failed, you might not have a CUDA gpu|CudaSupportError"
        r"|Failed to find CUDA library libcuda|NCCL WARN Failed to open libnvidia-ml"
        r"|(?:nvcuda|cuda driver library) init failure: (?:100|35|3)\b|unable to load (?:cudart|cuda driver) library"
        r"|no nvidia devices detected\b|Could not find (?:the )?CUDA driver library|No system CUDA driver found"
        r"|could not load library \W?libcuda\b",
    ),
    Message(
        "cuda.tool_missing",
        ("nvidia-smi",),
        r"nvidia-smi\W*:? (?:command )?not found|exec: \W*nvidia-smi\W*: executable file not found",
    ),
    Message(
        "cuda.stub_library",
        ("stub library", "stub_library", "stublibrary", "/stubs/libcuda", "ld_library_path"),
        r"(?:CUDA )?driver is a stub library|CUDA_ERROR_STUB_LIBRARY|cudaErrorStubLibrary|/stubs/libcuda"
        r"|LD_LIBRARY_PATH\b(?!=|[^\n]*nvidia-smi)[^\n]{0,60}\bstubs\b",
    ),
    Message(
        "cuda.busy",
        ("busy or unavailable", "devices_unavailable", "devicesunavailable", "device_unavailable", "deviceunavailable"),
        r"busy or unavailable|cudaErrorDevicesUnavailable|CUDA_ERROR_DEVICE_UNAVAILABLE|DEVICES_UNAVAILABLE",
    ),
    Message(
        "cuda.invalid_ordinal",
        (
            "invalid device ordinal",
            "cudaerrorinvaliddevice",
            "cuda_error_invalid_device",
            "provided device ordinal",
            "unsupported gpu id",
            "device < num_gpus",
        ),
        r"provided device ordinal \d+ is invalid|invalid or unsupported gpu id (?!0\b)|invalid device ordinal"
        r"|device < num_gpus|cudaErrorInvalidDevice\b|CUDA_ERROR_INVALID_DEVICE\b",
    ),
    Message(
        "cuda.visible_devices_unreadable",
        ("invalid literal for int() with base 10", "cuda_visible_devices"),
        r"invalid literal for int\(\) with base 10: '(?P<value>(?:GPU|MIG)-[\w/-]*)"
        r"|CUDA_VISIBLE_DEVICES\S*.*(?:is not (?:set correctly|an? integer)|cannot be parsed|unexpected)",
    ),
    # The program's own line, before it asks CUDA.
    Message(
        "cuda.hidden_by_program",
        ("cuda_visible_devices",),
        r"(?:environ(?:\.setdefault)?[\[(]\W?CUDA_VISIBLE_DEVICES\W{1,4}[=,]|setenv\(\WCUDA_VISIBLE_DEVICES\W,"
        r"|export CUDA_VISIBLE_DEVICES=|^CUDA_VISIBLE_DEVICES=|putenv\(\WCUDA_VISIBLE_DEVICES=)"
        r"\s*(?:['\"]?-1\b|['\"]['\"]|['\"]?NoDevFiles\b)",
    ),
    Message(
        "cuda.unknown",
        (
            "error code unknown error",
            "cuda runtime error in ",
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
            "cuda error: unknown error",
            "error 3: init",
            "init failure: 999",
            "init failure: 304",
            "cuinit err: 999",
            "incorrectly set up environment",
        ),
        r"CUDA_ERROR_UNKNOWN|cudaErrorUnknown|CUDA unknown error|incorrectly set up environment"
        r"|OS call failed or operation not supported on this OS|CUDA_ERROR_OPERATING_SYSTEM|cudaErrorOperatingSystem"
        r"|\berror:? 999\b|\bfailure 999\b|\b(?:error|failure) 304\b|\binit failure: (?:999|304)\b|cuInit err: 999\b"
        r"|CUDA runtime error in \S.{0,60}: unknown error|error code unknown error|CUDA error: unknown error"
        r"|(?:cuda|cu\w+|error code|Cuda failure(?: 3)?|error 3:|error:?) \W?initialization error"
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
    # The other codes: what the program asked for cannot be done, and mostly by nobody else's fault.
    Message(
        "cuda.call_refused",
        (
            "cuda error",
            "cuda runtime error",
            "cuda failure",
            "cuda runtime failure",
            "cuda driver failure",
            "cuda driver error",
            "too many resources requested for launch",
            "launch timed out and was terminated",
            "too many blocks in cooperative launch",
            "does not correspond to a registered memory",
            "memory range is already mapped",
            "out of resource: ",
            "when stream is capturing",
            "previous error during capture",
            "ucx  error cu",
            "ucx error cu",
            "unable to start cuda context",
            "cudaerrorlaunchoutofresources",
            "cudaerrorlaunchtimeout",
            "cudaerrorinvalidvalue",
            "cudaerrorinvalidconfiguration",
            "cudaerrorstreamcapture",
            "cudaerrorcontextisdestroyed",
            "cudaerrorcudartunloading",
            "cudaerrorgraphexecupdate",
            "cudaerrorinvalidaddressspace",
            "cudaerrorcooperativelaunch",
        ),
        r"(?P<what>too many resources requested for launch|launch timed out and was terminated"
        r"|too many blocks in cooperative launch|does not correspond to a registered memory region"
        r"|memory range is already mapped|out of resource: \w[\w ]{0,20}, Required"
        r"|operation not permitted when stream is capturing"
        r"|operation failed due to a previous error during capture|cudaError(?:LaunchOutOfResources|LaunchTimeout"
        r"|InvalidValue|InvalidConfiguration|StreamCapture\w+|ContextIsDestroyed|CudartUnloading"
        r"|GraphExecUpdate\w+|InvalidAddressSpace|CooperativeLaunch\w+))"
        r"|UCX +ERROR +cu\w{1,40}\([^\n]{0,80}?\bfailed\b[^\n]{0,12}?(?P<what3>[a-z][a-z ]{3,40})"
        r"|Unable to start CUDA Context"
        r"|CUDA (?:runtime |driver )?(?:error|failure)\b[^\n]{0,16}?(?P<what2>invalid (?:argument|resource handle"
        r"|configuration argument|device context|pitch argument)|context is destroyed|driver shutting down"
        r"|hardware stack error|operation not supported on global/shared address space"
        r"|graph update was not performed)",
    ),
    Message(
        "cuda.after_fork",
        ("re-initialize cuda in forked subprocess",),
        r"Cannot re-initialize CUDA in forked subprocess",
    ),
)
