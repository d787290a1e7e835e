"""Frameworks and libraries of an image that do not go together: built without CUDA, for another CUDA, or not found."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Not even the first one: the server sees none, or none that it can use.
    Message("app.first_gpu_refused", "unsupported gpu id", r"specifies invalid or unsupported gpu id 0\b"),
    # The images of the maker and those who use them: the card came later than the image.
    Message(
        "image.card_newer",
        ("not yet supported in this version", "predates", "which needs cuda", "no supported gpu(s)"),
        r"GPU, which is not yet supported in this version of the container|No supported GPU\(s\) detected to run this"
        r"|\b(?:image|Dockerfile|container|PyTorch|CUDA)\b[^\n]{0,80}\bpredates (?:the )?(?:Blackwell|Hopper|Ada|Ampere"
        r"|sm_\d+)|\brequires sm_\d+\w? which needs CUDA\b",
    ),
    # Two copies of a library for collectives, as somebody found.
    Message(
        "image.collectives_told",
        ("nccl",),
        r"\b(?:mismatch\w*|conflict\w*|incompatib\w+)\b[^\n]{0,60}\bNCCL\b[^\n]{0,40}\b(?:[Pp]y)?[Tt]orch\b"
        r"|\b(?:mismatch\w*|conflict\w*|incompatib\w+)\b[^\n]{0,60}\b(?:[Pp]y)?[Tt]orch\b[^\n]{0,60}\bNCCL\b",
    ),
    # Code that is not there for the card is made at each start, where nobody keeps it.
    Message(
        "image.compiled_at_start",
        (" jit", "jit ", "jit-", "(jit", " ptx", "ptx ", "ptx-", "(ptx"),
        r"\b(?:JIT|PTX)\b[^\n]{0,20}\bcompil\w+[^\n]{0,140}\b(?:minutes?|cold start|start-?up|each start|every start)\b"
        r"|\b(?:cold[- ]start|slow start\w*|start-?up)\b[^\n]{0,100}\b(?:JIT|PTX)\b",
    ),
    # Who counts devices through NVML knows nothing of partitions.
    Message(
        "cuda.partition_not_counted",
        ("cuda_visible_devices=mig-", "device_count()"),
        r"CUDA_VISIBLE_DEVICES=MIG-\S+[^\n]*\n(?:[^\n]*\n){0,2}[^\n]*device_count\(\)[^\n]*\n[^\n]{0,12}\b0\b"
        r"|device_count\(\)`?\W{0,8}(?:returns? )?`?0\b[^\n]{0,60}\bMIG\b",
        lines=5,
    ),
    # Each framework has words of its own for a build that knows no GPU.
    Message(
        "image.cpu_build_named",
        (
            "cudaexecutionprovider",
            "rocmexecutionprovider",
            "cuda execution provider",
            "tensorrt execution provider",
            "tensorrtexecutionprovider",
            "cpuexecutionprovider",
            "gpuallocatorconfig",
            "no usable gpu found",
            "was not enabled in this build",
            "use_cuda=1",
            "is_built_with_cuda",
            "torch.version.cuda",
            "onnxruntime-gpu",
            "with_cuda",
            "built to run on cpu only",
            "without cublas",
            "without openblas",
            "not linked with cuda",
            "cuda_is_available",
        ),
        r"(?:CUDA|Tensorrt|ROCM)ExecutionProvider\b\W{0,6}(?:is )?not (?:available|in available|found|enabled)"
        r"|(?:CUDA|TensorRT) execution provider is not (?:enabled|available)"
        r"|(?:providers?\b[^\n]{0,60}|^\s*\S{0,3}\s*|>>> )\[(?:'AzureExecutionProvider', )?'CPUExecutionProvider'\]"
        r"|module 'jaxlib\.xla_extension' has no attribute 'GpuAllocatorConfig'"
        r"|no usable GPU found, --(?:n-)?gpu-layers option will be ignored"
        r"|GPU Tree Learner was not enabled in this build|(?:recompile|compile)\b[^\n]{0,20} with USE_CUDA=1"
        r"|is_built_with_cuda\(\)\W{0,4}(?:is |returns |=+ ?)?False|torch\.version\.cuda\)?\W{0,4}(?:is |== ?)?None\b",
    ),
    # Libraries that are looked for by name, and what older loaders of frameworks say.
    Message(
        "image.library_not_opened",
        (
            "couldn't open cuda library",
            "unable to load cudnn dso",
            "find libdevice directory",
            "libdevice not found",
            "unable to load cupti",
            "unable to load cusparse",
            "unable to load cudnn",
            "unable to load cublas",
            "unable to load cufft",
            "unable to load cusolver",
            "is it installed?",
            "could not find cuda toolkit",
            "failed to find nvcc",
            "could not find nvcc",
            "unable to find nvcc",
            "no nvcc found",
            "could not locate cudnn",
            *(
                f"{failed} {quote}lib{name}"
                for failed in ("unable to find", "cannot load library")
                for quote in ("", "'", '"', "`")
                for name in ("cu", "nccl", "nvrtc")
            ),
            "nvrtc",
            "attempt to open cnn_infer failed",
            "failed to load cudnn",
            "libcudnn",
            "libcublas",
            "could not find ptxas",
            "couldn't invoke ptxas",
            "ptxas returned an error",
            "couldn't get ptxas version",
        ),
        r"Couldn't open CUDA library (?P<library>(?!libcuda\.so)lib[\w.]+)|Unable to load cuDNN DSO"
        r"|Can't find libdevice directory|libdevice not found at"
        r"|Unable to load (?P<library2>cuPTI|cuSPARSE|cuDNN|cuBLAS|cuFFT|cuSOLVER)\b[^\n]{0,10}\bIs it installed"
        r"|(?:Failed to|Could not|Unable to) find nvcc\b|no nvcc found|Could not find CUDA toolkit"
        r"|Could not locate (?P<library3>cudnn\w*)\.dll|(?:Unable to find|Cannot load library) ['\"`]?(?P<library4>lib"
        r"(?:cu\w+|nccl|nvrtc)[\w.]*)"
        r"|(?P<library5>lib(?:cudnn|cublas|nvrtc)\w*\.so[\w.]*)\W{0,3} (?:is )?(?:missing|not found)\b"
        r"|(?:Could not find|Couldn't invoke) ptxas|Couldn't get ptxas version",
    ),
    # Two parts that were built with different releases, as the framework compares them at its start.
    Message(
        "image.built_for_other",
        (
            "but jax was built against",
            " installation found",
            "incompatible with jax",
            "jax plugin configuration error",
            "xformers was built for",
            "can't load c++/cuda extensions",
            "were built for",
            "pytorch has cuda version",
            "compiled with cuda version",
            "was compiled with cuda",
            "different cuda versions",
            "different cuda major",
            "has different cuda",
            "pjrt plugin",
            "incompatible with the cuda",
            "requires a different cuda",
            "cuda_runtime_api version",
            "mixed cuda",
            "minimum version of cudnn",
        ),
        r"Found (?:CUDA|cuDNN|cuBLAS|cuSPARSE|cuFFT|cuPTI|cuSOLVER) version (?P<found>\d+), but JAX was built against"
        r"|Outdated \w+ installation found|jaxlib (?:version )?\S+ is (?:newer than and )?incompatible with jax"
        r"|Jax plugin configuration error|xFormers can't load C\+\+/CUDA extensions|xFormers was built for"
        r"|PyTorch and \w+ (?:were|have been|has been) compiled with different CUDA (?:major )?versions"
        r"|PyTorch has CUDA Version=\S+ and \w+ has CUDA Version=",
    ),
    # A base image without what the program needs, as people tell of it.
    Message(
        "image.base_told",
        ("nvidia/cuda", "base image", "cudnn-runtime", "cudnn-devel", "devel image", "cuda image", "cudnn image"),
        r"\b(?:chang\w+|replac\w+|switch\w+|us(?:e|ing)|mov\w+)\b[^\n]{0,60}\bnvidia/cuda:\S+[^\n]{0,80}"
        r"\b(?:works?|worked|solv\w+|fix\w+|resolv\w+|help\w*)\b"
        r"|\b(?:not using|instead of|need\w*|requires?|wants?|without) (?:the |a )?"
        r"(?:CUDA|cudnn(?:-runtime|-devel)?|devel) (?:base )?image\b"
        r"|\b(?:solv\w+|fix\w+|resolv\w+)\b[^\n]{0,40}\b(?:replac|chang)\w+ (?:the )?base image",
    ),
)
