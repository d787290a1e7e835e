"""Memory of devices: used up, held by others, not given back, and who is seen to hold it."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "cuda.out_of_memory",
        (
            "hami-core error",
            "vgpu error",
            "4pdvgpu error",
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
            "mem-fraction-static",
            "failed to get convolution algorithm",
        ),
        r"CUDA out of memory(?:.*?Tried to allocate (?P<tried>[\d.]+ [KMGT]iB))?(?:.*?total capacity of "
        r"(?P<total>[\d.]+ [KMGT]iB))?(?:.*?of which (?P<free>[\d.]+ [KMGT]iB) is free)?"
        r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUDA error: out of memory"
        r"|torch(?:\.cuda)?\.OutOfMemoryError|RESOURCE_EXHAUSTED"
        r"|ResourceExhaustedError|cudaMalloc failed: out of memory|CUBLAS_STATUS_ALLOC_FAILED"
        r"|ran out of memory trying to allocate(?!.*not a failure)"
        r"|error code out of memory|Cuda failure (?:2 )?'out of memory'|cudaErrorOutOfMemory"
        r"|Failed to get convolution algorithm|CUBLAS_STATUS_NOT_INITIALIZED|(?:cuda|hip)\w* .{0,40}\bout of memory\b"
        r"|(?:GPU|CUDA|device) memory (?:keeps? |is |usage )*(?:grow|increas|leak)\w*|memory_(?:allocated"
        r"|reserved)\S* (?:keeps? )?(?:grow|increas)\w*"
        r"|Not enough memory\. Please try to increase --mem-fraction-static|CUDA runtime error in \S.*\bout of memory"
        r"|(?:HAMI-core|4pdvGPU|vGPU) ERROR.{0,120}Device \d+ OOM (?P<tried2>\d+) / (?P<total2>\d+)",
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
            "memory occupied",
            "not released",
            "not freed",
            "memory is occupied",
            "still occupied",
            "still held",
            "is occupied",
            "is held",
        ),
        r"memory used\W*(?P<used>\d{3,}) ?Mi?B.*no running process|(?P<used2>\d{3,}) ?MiB.*no running processes found"
        r"|(?:GPU )?memory (?:\d\S* )?(?:is )?(?:still )?(?:held|occupied|not (?:released|freed)).*"
        r"(?:no (?:running )?process|after .*(?:exit|kill))"
        r"|(?<![\d.])(?P<used3>\d{2,}) ?(?:MiB|MB)\b.{0,60}\bno (?:running )?process"
        r"|\d{2,} ?(?:GiB|GB)\b.{0,60}\bno (?:running )?process",
    ),
    Message(
        "hami.library_error",
        ("hami-core error", "vgpu error"),
        r"(?:HAMI-core|vGPU) ERROR\b[^\]]*\]:? ?(?P<why>(?!.{0,60}OOM \d+ ?/).+)",
    ),
    Message(
        "smi.processes_unseen",
        ("nvidia-smi", "gpustat", "gpu process", "nvtop"),
        r"nvidia-smi\b.{0,60}\b(?:no|any|not (?:show|list|see)\w*|doesn.t (?:show|list)|empty)\b.{0,30}\bprocess\w*"
        r".{0,40}\b(?:in|inside|within|from) (?:the |a |my )?(?:docker )?(?:container|pod)\b"
        r"|\bGPU process(?:es)?\b.{0,30}\b(?:not|n't) (?:be )?(?:listed|shown|visible|seen|displayed)\b.{0,60}"
        r"\b(?:in|inside|within|from) (?:the |a |my )?(?:docker )?(?:container|pod)\b"
        r"|\b(?:gpustat|nvtop)\b.{0,60}\b(?:no|any|not (?:show|list|see)\w*|n't (?:show|list)|empty)\b.{0,30}"
        r"\bprocess.{0,40}\b(?:in|inside|within|from) (?:the |a |my )?(?:docker )?(?:container|pod)\b"
        r"|\b(?:physical[- ]?)?host\b.{0,60}\bnvidia-smi\b.{0,40}\b(?:shows?|shown|lists?)\b.{0,30}\bprocess"
        r"|nvidia-smi\b.{0,20}\b(?:in|inside|within|from) (?:the |a |my )?(?:docker )?(?:container|pod)\b.{0,40}"
        r"\b(?:no|any|not (?:show|list|see)\w*|doesn.t (?:show|list)|empty)\b.{0,30}\bprocess",
    ),
    Message(
        "smi.processes_none_here",
        "no running processes found",
        r"No running processes found[\s\S]{0,160}?\b(?:in|inside|within|from) (?:the |a "
        r"|my )?(?:docker )?(?:container|pod)\b",
        lines=4,
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
)
