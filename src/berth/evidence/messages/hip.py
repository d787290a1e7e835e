"""AMD's HIP and ROCm inside a container: the words of their runtime for what CUDA says in its own."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "image.hip_code_missing",
        (
            "hiperrornobinaryforgpu",
            "illegal seek for gpu arch",
            "find rocm device library for",
            "initialize tensile host",
            "tensilelibrary",
        ),
        r"hipErrorNoBinaryForGpu|Illegal seek for GPU arch|cannot find ROCm device library for (?P<arch>gfx\w+)"
        r"|Could not initialize Tensile host|Cannot read \S*TensileLibrary\w*\.dat",
    ),
    Message(
        "cuda.no_hip_device",
        ("no hip gpus are available", "no rocm-capable device", "hiperrornodevice"),
        r"No HIP GPUs are available|no ROCm-capable device|hipErrorNoDevice\b",
    ),
    Message(
        "cuda.hip_fault",
        (
            "memory access fault by gpu node",
            "hsa_status_error_exception",
            "hsa_status_error_out_of_resources",
            "hsa_status_error_memory_aperture_violation",
            "hsa_status_error_illegal_instruction",
            "miopenstatusunknownerror",
            "miopenstatusinternalerror",
            "hiperrorlaunchfailure",
            "hiperrorillegaladdress",
        ),
        r"(?P<what>Memory access fault by GPU node|HSA_STATUS_ERROR_(?:EXCEPTION|OUT_OF_RESOURCES"
        r"|MEMORY_APERTURE_VIOLATION|ILLEGAL_INSTRUCTION)|miopenStatus(?:Unknown|Internal)Error"
        r"|hipError(?:LaunchFailure|IllegalAddress))",
    ),
    Message(
        "image.hip_library_missing",
        ("librccl", "libamdhip64", "librocblas", "libhipblas", "libmiopen", "libhsa-runtime64", "librocm"),
        r"(?P<library>lib(?:rccl|amdhip64|rocblas|hipblas\w*|MIOpen|hsa-runtime64|rocm\w*)[\w.+-]*\.so[\w.]*)\W{1,3}"
        r"cannot open shared object",
    ),
    Message("nccl.hip_peer_refused", "hiperrorpeeraccessunsupported", r"hipErrorPeerAccessUnsupported"),
)
