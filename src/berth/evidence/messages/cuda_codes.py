"""Any error code of CUDA's interfaces and libraries, by its form: what names none of those that cuda.py knows."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "code.cuda_other",
        (
            "gpuassert: ", "(error code ", "cuda error", "cuda runtime error", "cuda driver error", "cuda failure",
            "cuda runtime api error", "cuda driver api error", "cuda api error", "cudaerror", "cuda_error_",
            "cublas_status_", "cudnn_status_", "cusolver_status_", "cusparse_status_", "curand_status_", "cufft_",
            "nvrtc_error_", "triton error [cuda]",
        ),
        r"\bGPUassert: (?P<what>[a-z][^\n]{3,120}?) \S+\.\w{1,4} \d|\(error code (?P<what2>[a-z][\w ,'/]{3,140})\)!"
        r"|\bCUDA (?:(?:runtime |driver )?(?:API )?error|failure)\b(?: (?:code )?\d{1,3})?(?: (?:at|in) \S+)?"
        r"(?:[:,]|\W')\W{0,2}(?P<what3>(?!code\b|occurr?ed|\d)[a-zA-Z][^\n]{5,90})"
        r"|\bcudaError(?!NotReady|PeerAccessAlready|t\b|s\b|String|Name)(?P<what4>[A-Z]\w{3,})"
        r"|\bCUDA_ERROR_(?!NOT_READY|PEER_ACCESS_ALREADY|PROFILER)(?P<what5>[A-Z][A-Z_]{2,})"
        r"|\bCU(?:BLAS|DNN|SOLVER|SPARSE|RAND)_STATUS_(?!SUCCESS)(?P<what6>[A-Z]\w+)"
        r"|\b(?:CUFFT_(?:\w+_FAILED|INVALID_\w+|INTERNAL_ERROR)|NVRTC_ERROR_[A-Z]\w+|Triton Error \[CUDA\]: \w[^\n]+)",
    ),
    # Where processes hand each other their buffers.
    Message(
        "code.handle_refused",
        ("custom_all_reduce", "ipcgetmemhandle", "ipcopenmemhandle"),
        r"(?:custom_all_reduce|[Ii]pc(?:Get|Open)MemHandle)\b[^\n]{0,120}invalid argument"
        r"|invalid argument[^\n]{0,120}(?:custom_all_reduce|[Ii]pc(?:Get|Open)MemHandle)",
    ),
    # A kernel of a framework checks its indices itself and says which.
    Message(
        "cuda.assert_printed",
        ("] assertion `", "srcindex < srcselectdimsize", "probability tensor contains either"),
        r"\.cu:\d+: \w[^\n]{0,160}\] Assertion `[^\n]{1,120}failed|srcIndex < srcSelectDimSize"
        r"|probability tensor contains either",
    ),
    Message(
        "cuda.in_use_exclusively",
        ("exclusive-thread device already in use", "cudaerrordevicealreadyinuse", "cuda_error_context_already_in_use"),
        r"exclusive-thread device already in use|cudaErrorDeviceAlreadyInUse|CUDA_ERROR_CONTEXT_ALREADY_IN_USE",
    ),
)
