"""What frameworks and their extensions miss in the image, or find built for something else."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "image.part_missing",
        (
            "have nccl built in",
            "no backend type associated with device type cuda",
            "not found in the system path",
            "cannot find ptxas",
            "`ptxas` failed with error code",
            "invoke ptxas --version",
            "find libdevice directory",
            "libdevice not found at",
            "bin/nvcc'",
            "could not find nvcc",
            "cuda_home does not exist",
            "find cuda toolkit",
            "cuda is not found.",
            "find the bitsandbytes cuda binary",
            "failed to open libnvrtc",
            "multiple cupy packages are installed",
            "_opnamespace",
            "libbitsandbytes",
            "failed to load nccl library",
            "libcudart is not loaded",
            "symlink of libcuda.so",
            "does not match the version torch was compiled with",
            "ninja is required to load",
            "nccl library not found",
            "shared_object_",
            "sharedobject",
            "shared object initialization failed",
            "shared object symbol not found",
            "is required for nccl symmetric memory",
            "install cuda-python",
            "failed to load libibverbs",
            "failed to load libmlx5",
            "is only supported on cuda 1",
            "no module named '",
            "curand_status_version_mismatch",
            "sublibrary_loading_failed",
            "unable to locate cutlass",
            "failed to create cudaexecutionprovider",
            "no attribute 'standardgpuresources'",
            "did not find a functional cuda",
            "find an appropriate cuda runtime",
            "detected cuda runtime version is",
            "no registered platform called",
            "likely mismatch of architecture",
            "unable to load backend library",
            "load module: file not found",
            "load module\": file not found",
            "library: libnvjpeg.so not found",
        ),
        r"Distributed package doesn't have NCCL built in|No backend type associated with device type cuda"
        r"|lib(?:cublas|cudnn|cudart|nvrtc|nccl)\S* not found in the system path|Cannot find ptxas"
        r"|`ptxas` failed with error code|Couldn't invoke ptxas --version|Can't find libdevice directory"
        r"|libdevice not found at|No such file or directory: '?\S*bin/nvcc'|Could not find nvcc\b"
        r"|CUDA_HOME does not exist|Cannot find CUDA toolkit|RuntimeError: CUDA is not found\."
        r"|Could not find the bitsandbytes CUDA binary|failed to open (?P<library>libnvrtc[\w.-]*)"
        r"|multiple CuPy packages are installed"
        r"|'_OpNamespace' '\w+' object has no attribute|(?P<library2>libbitsandbytes_\w+\.so): undefined symbol"
        r"|Failed to load NCCL library from|libcudart is not loaded in the current process"
        r"|Please create a symlink of libcuda\.so|does not match the version torch was compiled with"
        r"|Ninja is required to load C\+\+ extensions|NCCL library not found"
        r"|NCCL version \S+ or higher is required for NCCL symmetric memory|Please install cuda-python"
        r"|Unable to locate CUTLASS|Failed to load (?P<library3>libibverbs|libmlx5)\b"
        r"|is only supported on CUDA 1\d\.\d and above|No module named '(?P<library4>flash_attn_(?:2_cuda|3\w*)"
        r"|deep_ep|deep_gemm|flashinfer|sgl_kernel|nixl|tensorrt_llm|transformer_engine\w*|amp_C|fused_\w+_cuda"
        r"|\w+_cuda"
        r"|pynvml|cudf|rmm|cuda)\b"
        r"|SHARED_OBJECT_(?:SYMBOL_NOT_FOUND|INIT_FAILED)|cudaErrorSharedObject(?:SymbolNotFound|InitFailed)"
        r"|shared object (?:initialization failed|symbol not found)|CURAND_STATUS_VERSION_MISMATCH"
        r"|SUBLIBRARY_LOADING_FAILED"
        r"|Failed to create CUDAExecutionProvider|no attribute 'StandardGpuResources'"
        r"|did not find a functional CUDA|could not find an appropriate CUDA runtime"
        r"|Detected CUDA Runtime version is|no registered Platform called \W{0,2}CUDA"
        r"|ERROR: likely mismatch of architecture|unable to load backend library|load module\"?: file not found"
        r"|library: libnvjpeg\.so not found",
    ),
    Message(
        "image.arch_refused_by_library",
        (
            "cusolver_status_arch_mismatch",
            "cusparse_status_arch_mismatch",
            "curand_status_arch_mismatch",
            "supported_arch_mismatch",
            "cuda_error_invalid_image",
            "cuda_error_invalid_source",
            "cudaerrorinvaliddevicefunction",
            "cudaerrorinvalidkernelimage",
            "cudaerrorinvalidsource",
            "ptx jit compilation was disabled",
            "jitcompilationdisabled",
            "jit_compilation_disabled",
        ),
        r"CU(?:SOLVER|SPARSE|RAND)_STATUS_ARCH_MISMATCH|CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH"
        r"|CUDA_ERROR_INVALID_(?:IMAGE|SOURCE)|cudaErrorInvalid(?:DeviceFunction|KernelImage|Source)\b"
        r"|PTX JIT compilation was disabled|JitCompilationDisabled|JIT_COMPILATION_DISABLED",
    ),
    Message(
        "cuda.driver_too_old_for_call",
        (
            "supported_incompatible_cuda_driver",
            "driver/device not compatible",
            "the required nvenc api version",
            "optix_error_unsupported_abi_version",
            "update your nvidia gpu driver to support",
            "requires cuda driver version",
            "the cuda driver version ",
        ),
        r"CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER|driver/device not compatible"
        r"|Driver does not support the required nvenc API version|OPTIX_ERROR_UNSUPPORTED_ABI_VERSION"
        r"|update your NVIDIA GPU driver to support|requires CUDA driver version >="
        r"|The CUDA driver version \d+ is too old",
    ),
    # What is compiled at the first use is kept in the home directory, which a container's user may not have.
    Message(
        "app.cache_denied",
        ("/.cache", "/.triton", "torch_extensions", "torchinductor", "/.nv/", "/.vllm", "/.config/vllm"),
        r"(?:Permission denied|Read-only file system)\W{1,4}\S*(?:/\.cache|/\.triton|torch_extensions|torchinductor"
        r"|/\.nv/|/\.vllm|/\.config/vllm)",
    ),
    # Extensions that are compiled in the image, or at the first use.
    Message(
        "image.extension_not_built",
        (
            "unsupported gnu version",
            "nvcc error ",
            "error building extension",
            "compiling objects for extension",
            "could not find cuda (missing",
            "detect a default cuda architecture",
            "no cuda toolset found",
            "unknown cuda arch",
            "minimum required version by cuda",
            "has not been built",
            "cuda_runtime.h: no such file",
            "cuda_runtime_api.h: no such file",
            "cuda.h: no such file",
            "cuda_fp16.h: no such file",
            "nccl.h: no such file",
            "cudnn.h: no such file",
            "cublas_v2.h: no such file",
            "cusparse.h: no such file",
            "cusolverdn.h: no such file",
            "curand.h: no such file",
            "nvtoolsext.h: no such file",
            "arch_list[-1] += '+ptx'",
            "unable to find an engine to execute this computation",
            "find a valid cudnn algorithm",
            "no execution plans support the graph",
            "nvlink binary was found",
            "get ptxas/nvlink version string",
            "failed to launch ptxas",
            "in-memory cubin",
            "get the cuda toolkit path",
            "cudnn version is too old",
            "cicc: not found",
            "ld: cannot find -lcudart",
            "ld: cannot find -lnccl",
            "ld: cannot find -lcublas",
        ),
        r"unsupported GNU version|nvcc error +: |Error building extension '|Error compiling objects for extension"
        r"|Could not find CUDA \(missing|Failed to detect a default CUDA architecture|No CUDA toolset found"
        r"|Unknown CUDA arch \(|minimum required version by CUDA|Extension horovod\.\w+ has not been built"
        r"|(?:cuda_runtime(?:_api)?|cuda|cuda_fp16|nccl|cudnn|cublas_v2|cusparse|cusolverDn|curand"
        r"|nvToolsExt)\.h: No such "
        r"file|arch_list\[-1\] \+= '\+PTX'|unable to find an engine to execute this computation"
        r"|Unable to find a valid cuDNN algorithm|No execution plans support the graph"
        r"|no nvlink binary was found|Couldn't get ptxas/nvlink version string|Failed to launch ptxas"
        r"|Failed to load in-memory CUBIN|Failed to get the CUDA toolkit path|Cudnn version is too old"
        r"|cicc: not found|ld: cannot find -l(?:cudart|nccl|cublas)",
    ),
    Message(
        "image.transport_library_missing",
        (
            "libmlx5", "libmlx4", "libfabric", "libefa", "libucp", "libuct", "libucs", "libtorch", "libc10",
            "libgdrapi", "libcutensor", "libnpp", "libnvcomp", "libnvimgcodec", "libtensorflow", "librmm",
            "libcudf", "libpmix",
            "libhwloc", "libsharp", "libhcoll",
        ),
        r"(?P<library>lib(?:mlx[45]|fabric|efa|uc[pts]|torch|c10|gdrapi|cutensor|npp|nvcomp|nvimgcodec|tensorflow"
        r"|rmm|cudf"
        r"|pmix|hwloc|sharp|hcoll)[\w.+-]*\.so[\w.]*)\W{1,3}cannot open shared object",
    ),
)
