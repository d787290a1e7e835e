"""What programs and their images say when they fail for reasons of their own: limits, libraries, sizes."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Shared memory of the host
    Message(
        "app.shm_small",
        (
            "unable to write to file </torch_",
            "unable to write to file /torch_",
            "/dev/shm",
            "sigbus",
            "exit code",
            "exitcode",
            "return code = -7",
            "shared memory",
            "bus error",
            "unable to mmap",
            "torch_shm_manager",
        ),
        r"dataloader.s workers are out of shared memory|insufficient shared memory|(?:is )?killed by signal: Bus error"
        r"|(?<!PCIe )\bBus error\b(?: \(core dumped\))?"
        r"|unable to (?:open|allocate|write to|resize)\S* shared memory(?: object)?.*(?:No space|\(28\)"
        r"|Cannot allocate)|unable to mmap \d+ bytes from file.*Cannot allocate"
        r"|/dev/shm.*(?:No space left|100%|is full|too small|only has|less than)|raise your shared memory limit"
        r"|signal 7 \(SIGBUS\)|killed by SIGBUS|received SIGBUS|exit ?code\W{1,3}-7\b|return code = -7\b"
        r"|Signal: Bus error"
        r"|No space left on device.{0,20}/dev/shm|unable to write to file <?/torch_",
    ),
    Message(
        "app.shm_size_default",
        ("/dev/shm",),
        r"(?:shm|tmpfs)\s+(?:64M|65536K?|64\.0M|67108864)\s.*\s/dev/shm",
    ),
    Message(
        "app.too_many_files",
        ("inotify", "too many open files", "received 0 items of ancdata"),
        r"(?:OSError|RuntimeError|NCCL|Errno 24|error)\W.{0,300}(?:Too many open files|received 0 items of ancdata)"
        r"|\[Errno 24\] Too many open files"
        r"|inotify\S*.*(?:Too many open files|No space left)",
    ),
    Message(
        "app.too_many_threads",
        ("start new thread", "blas_thread_init", "resource temporarily unavailable", "pthread_create failed"),
        r"pthread_create failed|can.t start new thread|(?:fork|clone|thread\w*)\W.*Resource temporarily unavailable"
        r"|blas_thread_init.*failed",
    ),
    # Images
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
        ),
        r"(?P<library>lib(?:cudart|cublas\w*|cudnn\w*|cufft\w*|curand|cusolver\w*|cusparse\w*|nccl(?!-)|nvrtc\w*"
        r"|nvinfer\w*"
        r"|nvjpeg|nvToolsExt|cufile|cupti|nvJitLink|nvonnxparser|nvshmem\w*|mpi\w*|ibverbs"
        r"|rdmacm)[\w.+-]*)\W*:? cannot open shared object"
        r"|could not load dynamic library \W*(?P<library2>lib(?!cuda\.)(?!nvidia)(?!nvinfer)[\w.+-]+)"
        r"|unable to load any of \W*\{(?P<library3>libcudnn[^}]*)"
        r"|cannot find -lcuda\b|Failed to find C compiler|CUDA_HOME environment variable is not set"
        r"|ImportError: (?P<library4>lib(?!cuda\.|nvidia)[\w.+-]+): cannot open shared|nvcc\W.{0,20}not found"
        r"|Cannot dlopen some GPU libraries",
    ),
    Message(
        "image.symbol_missing",
        (
            "undefined symbol",
            "version `",
            "not found (required by",
            "cudnn version incompatibility",
            "was compiled against cudnn",
        ),
        r"undefined symbol:? \W*(?P<symbol>\w*(?:nccl|cudnn|cublas|cuda|cusparse|nvJitLink|c10|torch|at\d)\w*)"
        r"|version `(?P<version>(?:GLIBC|GLIBCXX|CXXABI|libcu\w+)[\w.]*)' not found"
        r"|cuDNN version incompatibility",
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
        ),
        r"DNN library initialization failed|CUDNN_STATUS_(?:NOT_INITIALIZED|ARCH_MISMATCH|\w*VERSION_MISMATCH)"
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
            "requires ",
            "require ",
            "world size",
            "tensor parallel size",
            "tensor_parallel_size",
            "number of gpus",
            "not enough gpus",
            "placement group",
            "nproc_per_node",
        ),
        r"(?:world size|tensor.parallel.size)\W*\(?\d*\)?.*(?:is )?(?:larger"
        r"|greater) than the number of (?:available )?GPUs|requires? \d+ GPUs?.*(?:only|but)\D*\d+ (?:GPU|available"
        r"|found)"
        r"|number of required GPUs exceeds the total number of available GPUs"
        r"|not enough GPUs available|Cannot provide a placement group of",
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
            "bfloat16 is only supported",
        ),
        r"Bfloat16 is only supported on GPUs with compute capability|minimum (?:required )?CUDA compute capability"
        r"|requires compute capability|compute capability \S+ (?:or higher|is not supported)"
        r"|less than (?:the )?minimum compute capability"
        r"|FlashAttention only supports|only supports? (?:Ampere|Hopper|Turing|Volta|Blackwell) GPUs? or newer"
        r"|requires? (?:an? )?(?:Ampere|Hopper|Blackwell) (?:GPU|or newer)",
    ),
    Message(
        "app.segfault",
        (
            "exit code",
            "exitcode",
            "segmentation fault",
            "sigsegv",
        ),
        r"exit ?code\W{1,3}(?:139|-11)\b|Segmentation fault \(core dumped\)|Fatal Python error: Segmentation fault"
        r"|signal 11 \(S(?:IGSEGV|egmentation fault)\)",
    ),
    Message(
        "image.verbs_missing",
        "ibverbs",
        r"libibverbs\S*\W.{0,40}(?:missing|not (?:found|installed|in)|\(?empty\)?|absent)|(?:no|without"
        r"|missing) libibverbs|ldconfig\b.{0,40}ibverbs.{0,30}(?:empty|nothing|no output)",
    ),
)
