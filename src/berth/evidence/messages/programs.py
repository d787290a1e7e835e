"""What programs and their images say when they fail for reasons of their own: limits, libraries, sizes."""

from berth.evidence.message import Message, exit_codes

MESSAGES: tuple[Message, ...] = (
    # Shared memory of the host
    Message(
        "app.shm_small",
        (
            "unable to write to file </torch_",
            "unable to write to file /torch_",
            "out of shared memory",
            "insufficient shared memory",
            "shared memory limit",
            "shared memory exhaust",
            " shared memory",
            "bus error",
            "unable to mmap",
        ),
        r"out of shared memory|insufficient shared memory|shared memory exhaust\w*"
        r"|raise your shared memory limit|(?<!PCIe )(?<!PCI )\bBus error\b"
        r"|unable to (?:open|allocate|write to|resize)\S* shared memory(?: ?\(shm\)| object)?.*(?:No space|\(28\)"
        r"|\(11\)|Cannot allocate|temporarily unavailable)"
        r"|unable to mmap \d+ bytes from file.*Cannot allocate|unable to write to file <?/torch_",
    ),
    Message(
        "app.shm_full",
        ("/dev/shm", "no space left on device", "ncclshmopen"),
        r"Please check that /dev/shm or the directory you specified has more|ncclShmOpen\b.{0,80}(?:error|fail|unable)"
        r"|(?:error|fail\w*|unable)\b.{0,60}\bncclShmOpen|creating shared memory segment /dev/shm"
        r"|No space left on device: '?/(?:dev/shm|torch_|psm_|sem\.)"
        r"|(?-i:/dev/shm)(?:.*(?:No space left|100%|is full|too small|(?:only has|has only)|less than))"
        r"|No space left on device.{0,20}/dev/shm",
    ),
    # Of a file system that is not the disk, where somebody looked at the disk.
    Message(
        "app.no_space",
        "no space left on device",
        r"(?:OSError|RuntimeError|IOError|Error)\b[^\n]{0,40}No space left on device(?!\W{1,4}['\"]?/)",
    ),
    Message(
        "host.disk_has_room",
        ("disk", " df "),
        r"\b(?:disks?|df)\b[^\n]{0,60}\b(?:plenty|free|empty|enough|lots of|half|not full"
        r"|has (?:\w+ )?(?:space|room))\b"
        r"|\b(?:plenty of|enough|free|lots of) (?:\w+ )?disk\b",
    ),
    Message(
        "app.bus_signal",
        ("sigbus", "dataloader worker (pid", "return code = -7", *exit_codes(-7)),
        r"DataLoader worker \(pid[^\n]{0,40}exited unexpectedly|signal 7 \(SIGBUS\)|killed by SIGBUS|received SIGBUS"
        r"|exit ?code\W{1,3}-7\b|return code = -7\b",
    ),
    Message(
        "app.shm_size_default",
        ("/dev/shm",),
        r"(?:shm|tmpfs)\s+(?:64M|65536K?|64\.0M|67108864)\s.*\s/dev/shm",
    ),
    Message(
        "app.too_many_files",
        ("inotify", "too many open files", "received 0 items of ancdata"),
        r"DataLoader\b[^\n]{0,60}Too many open files|Too many open files[^\n]{0,60}DataLoader"
        r"|(?:OSError|RuntimeError|NCCL|Errno 24|error)\W.{0,300}(?:Too many open files|received 0 items of ancdata)"
        r"|\[Errno 24\] Too many open files"
        r"|inotify\S*.*(?:Too many open files|No space left)",
    ),
    Message(
        "app.too_many_threads",
        ("start new thread", "blas_thread_init", "resource temporarily unavailable", "pthread_create failed"),
        r"pthread_create failed|can.t start new thread|(?:fork|clone|thread\w*)\W.*Resource temporarily unavailable"
        r"|blas_thread_init.*failed",
    ),
    # Through NVML, which comes with the driver: it is there.
    Message(
        "app.nvml_counts_gpus",
        ("gpus supporting nvml", "gpu supporting nvml", "collecting metrics for gpu"),
        r"found [1-9]\d* GPUs? supporting NVML|Collecting metrics for GPU \d+:",
    ),
    # Images
    Message(
        "image.tag_absent",
        ("nvidia/cuda", "nvcr.io/nvidia/", "pytorch/pytorch", "tensorflow/tensorflow", "vllm/vllm-openai"),
        r"(?P<image>(?:nvidia/cuda|nvcr\.io/nvidia/(?:pytorch|tensorflow|cuda|tritonserver|k8s/cuda-sample|nemo)"
        r"|pytorch/pytorch|tensorflow/tensorflow|vllm/vllm-openai)[\w:./-]*)\W{0,3}[^\n]{0,80}?"
        r"(?:manifest unknown|\bnot found\b(?!\W*in (?:the )?PATH)|does not exist|no matching manifest)",
    ),
    Message(
        "image.library_missing",
        (
            "cannot dlopen some gpu libraries",
            "failed to find c compiler",
            "cuda_home environment variable is not set",
            "importerror: lib",
            "nvcc",
            "cannot open shared object",
            "could not load dynamic library",
            "cannot find -l",
            "unable to load any of",
            "nvvmsupporterror",
            "cuda setup failed despite",
            "modulenotfounderror",
            "load library",
            "unsupported .version",
        ),
        r"(?P<library>lib(?:cudart|cublas\w*|cudnn\w*|cufft\w*|curand|cusolver\w*|cusparse\w*|nccl(?!-)|nvrtc\w*"
        r"|(?<!dlerror: lib)nvinfer\w*"
        r"|nvjpeg|nvToolsExt|cufile|cupti|nvJitLink|nvonnxparser|nvshmem\w*|mpi\w*|ibverbs"
        r"|rdmacm)[\w.+-]*)\W*:? cannot open shared object"
        r"|could not load dynamic library \W*(?P<library2>lib(?!cuda\.)(?!nvidia)(?!nvinfer)[\w.+-]+)"
        r"|unable to load any of \W*\{(?P<library3>libcudnn[^}]*)"
        r"|cannot find -lcuda\b|Failed to find C compiler|CUDA_HOME environment variable is not set"
        r"|ImportError: (?P<library4>lib(?!cuda\.|nvidia)[\w.+-]+): cannot open shared|nvcc\W.{0,20}not found"
        r"|Cannot dlopen some GPU libraries|NvvmSupportError|CUDA Setup failed despite GPU"
        r"|ModuleNotFoundError: No module named '(?P<library6>(?:torch|tensorrt|vllm|triton|flash_attn|apex|deepspeed"
        r"|cupy|pynvml"
        r"|transformer_engine|nvidia|tensorflow|jaxlib|sglang|xformers|bitsandbytes)[\w.]*)'|(?:Could not load"
        r"|Unable to load) library \W*(?P<library5>lib(?!cuda\b|nvidia)[\w.]+)"
        r"|ptxas\b.{0,120}Unsupported \.version",
    ),
    # Libraries of the driver that the container gets only where it asks for graphics or video.
    Message(
        "image.capability_unasked",
        (
            "libnvcuvid",
            "libnvidia-encode",
            "libegl_nvidia",
            "libglx_nvidia",
            "libnvoptix",
            "libnvidia-glcore",
            "libnvidia-opticalflow",
            "libnvidia-ptxjitcompiler",
        ),
        r"(?:[Cc]annot|[Cc]ould not|[Ff]ailed to|[Uu]nable to) (?:load|open|find)\W{1,3}(?P<library>lib(?:nvcuvid"
        r"|nvidia-encode"
        r"|EGL_nvidia|GLX_nvidia|nvoptix|nvidia-glcore|nvidia-opticalflow)[\w.]*)"
        r"|(?P<library2>lib(?:nvcuvid|nvidia-encode|EGL_nvidia|GLX_nvidia|nvoptix|nvidia-glcore"
        r"|nvidia-opticalflow)[\w.]*)"
        r"\W{0,3}:? ?(?:cannot open shared|not found|is missing|No such file)",
    ),
    # NVENC and NVDEC where CUDA works: their libraries are another capability of the driver.
    Message(
        "image.video_refused",
        ("nvenc", "openencodesessionex", "nvdec", "cuvid", "ptx jit compiler library not found"),
        r"No NVENC capable devices found|minimum required Nvidia driver for nvenc"
        r"|\bnvEncOpenEncodeSession(?:Ex)?\b[^\n]{0,80}\breturned error"
        r"|OpenEncodeSessionEx failed: (?:unsupported device"
        r"|no encode device)|\b(?:NvEncodeAPI|cuvid)\w+\([^\n]{0,80}\breturned error"
        r"|\bcuvid(?:Create|Get)\w+[^\n]{0,40}\bfail|_(?:nvenc|cuvid)\b[^\n]{0,120}(?:Invalid argument|probe failed"
        r"|not available|Cannot load)|PTX JIT compiler library not found",
    ),
    Message(
        "image.symbol_missing",
        (
            "undefined symbol",
            "version `",
            "not found (required by",
            "glibcxx_",
            "glibc_",
            "cxxabi_",
            "cudnn version incompatibility",
            "mismatched pjrt plugin",
            "was compiled against cudnn",
        ),
        r"undefined symbol:? \W*(?P<symbol>\w*(?:nccl|cudnn|cublas|cuda|cusparse|nvJitLink|c10|torch|at\d)\w*)"
        r"|version `(?P<version>(?:GLIBC|GLIBCXX|CXXABI|libcu\w+)[\w.]*)' not found"
        r"|\b(?P<version2>(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+\d)\W{0,3}(?:is )?not found"
        r"|cuDNN version incompatibility|Mismatched PJRT plugin (?:PJRT )?API version",
    ),
    Message(
        "image.toolkit_differs",
        ("mismatches the version that was used to compile",),
        r"detected CUDA version \((?P<found>[\d.]+)\) mismatches the version that was used to compile \w+ "
        r"\((?P<wanted>[\d.]+)\)",
    ),
    Message(
        "image.cudnn",
        (
            "engine plan file is",
            "serialization",
            "version_mismatch",
            "cudnn_status_not_initialized",
            "cudnn_status_arch_mismatch",
            "loaded runtime cudnn library",
            "dnn library initialization failed",
            "unable to load plan file",
            "deserializecudaengine",
            "unable to create tensorrt engine",
            "failed to deserialize cuda engine",
            "failed to deserialize engine",
            "cannot deserialize engine",
            "cannot deserialize cuda engine",
        ),
        r"unable to load plan file|deserializeCudaEngine\w*\b.{0,40}Error|unable to create TensorRT engine"
        r"|(?:Failed to|Cannot) deserialize (?:cuda )?engine|DNN library initialization failed"
        r"|CUDNN_STATUS_(?:NOT_INITIALIZED|ARCH_MISMATCH|\w*VERSION_MISMATCH)"
        r"|Loaded runtime CuDNN library: (?P<found>[\d.]+) but source was compiled with: (?P<wanted>[\d.]+)"
        r"|engine plan file is (?:not compatible|generated on an incompatible)|serialization(?:::| ).*(?:version"
        r"|Version tag).*(?:mismatch|does not match)",
    ),
    Message(
        "image.cpu_build",
        (
            "without cuda support",
            "without gpu support",
            "not built with",
            "not compiled with",
            "cuda-enabled jaxlib",
            "compiled without cuda",
            "cpu-only",
            "+cpu",
        ),
        r"Torch not compiled with CUDA enabled|(?:compiled|built) without (?:CUDA|GPU) support|not (?:built"
        r"|compiled) with (?:CUDA|GPU)|CPU-only (?:build|version|jaxlib)|torch\S*\s*\S*\+cpu\b"
        r"|CUDA-enabled jaxlib is not installed",
    ),
    # What the operator of a service sees of it
    Message(
        "app.parallel_size",
        (
            "number of required gpus",
            "than the number of",
            "exceeds available gpus",
            "than a reserved number of gpus",
            "requires ",
            "require ",
            "world size",
            "tensor parallel size",
            "tensor_parallel_size",
            "must be divisible by",
            "number of gpus",
            "not enough gpus",
            "placement group",
            "nproc_per_node",
            "number of devices requested",
        ),
        r"(?:world size|tensor.parallel.size)\W*\(?\d*\)?.*(?:is )?(?:larger"
        r"|greater) than the number of (?:available )?GPUs|requires? \d+ GPUs?.*(?:only|but)\D*\d+ (?:GPU|available"
        r"|found)"
        r"|number of required GPUs exceeds the total number of available GPUs"
        r"|tensor.parallel.size\W{0,3}\d+\)? (?:exceeds available GPUs|is bigger than a reserved number of GPUs)"
        r"|Invalid number of devices requested: \d+"
        r"|not enough GPUs available|Cannot provide a placement group of"
        r"|(?:tensor|pipeline).parallel.size\b[^\n]{0,60}must be divisible by|attention heads\b[^\n]{0,60}must be "
        r"divisible by tensor parallel",
    ),
    Message(
        "app.capability_too_low",
        (
            "flashattention only supports",
            "gpus or newer",
            "gpu or newer",
            "requires ampere",
            "require ampere",
            "requires hopper",
            "require hopper",
            "requires blackwell",
            "require blackwell",
            "requires a ",
            "requires an ",
            "require a ",
            "require an ",
            "compute capability",
            "supported for the current gpu",
            "bfloat16 is only supported",
        ),
        r"Bfloat16 is only supported on GPUs with compute capability|minimum (?:required )?CUDA compute capability"
        r"|requires compute capability|compute capability \S+ (?:or higher|is not supported)"
        r"|less than (?:the )?minimum compute capability|not supported for the current GPU\b"
        r"|FlashAttention only supports|only supports? (?:Ampere|Hopper|Turing|Volta|Blackwell) GPUs? or newer"
        r"|requires? (?:an? )?(?:Ampere|Hopper|Blackwell) (?:GPU|or newer)",
    ),
    Message(
        "app.segfault",
        (
            *exit_codes(139, -11),
            "segmentation fault",
            "sigsegv",
        ),
        r"exit ?code\W{1,3}(?:139|-11)\b|Segmentation fault \(core dumped\)|Fatal Python error: Segmentation fault"
        r"|signal 11 \(S(?:IGSEGV|egmentation fault)\)",
    ),
    # What a launcher or a server says of a process that ended, and what ends one at once.
    Message(
        "app.ended",
        (
            "childfailederror",
            "engine core initialization failed",
            "floating point exception",
            "aborted (core dumped)",
            "signal: aborted",
            "terminate called after throwing",
            "expected all tensors to be on the same device",
            *exit_codes(134, -6),
        ),
        r"\bChildFailedError\b|Engine core initialization failed|[Ff]loating point exception|Aborted \(core dumped\)"
        r"|signal: aborted|terminate called after throwing|Expected all tensors to be on the same device"
        r"|exit ?code\W{1,3}(?:134|-6)\b",
    ),
    Message(
        "image.verbs_missing",
        "ibverbs",
        r"libibverbs: Warning: Driver \w+ does not support the kernel ABI"
        r"|libibverbs: Warning: (?:no userspace device-specific driver|couldn't load driver"
        r"|couldn't open config directory)|libibverbs\S*\W.{0,40}(?:missing|not (?:found|installed|in)|\(?empty\)?"
        r"|absent)|(?:no|without"
        r"|missing) libibverbs|ldconfig\b.{0,40}ibverbs.{0,30}(?:empty|nothing|no output)",
    ),
)
