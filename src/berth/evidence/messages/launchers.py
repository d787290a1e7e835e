"""Ray, and whoever else gives each process its GPUs by setting what it sees."""

from berth.evidence.message import Message

_GPU = r"(?:GPUs?|CUDA\w*|cuda\.is_available\S*)"

MESSAGES: tuple[Message, ...] = (
    # Ray hides all GPUs from a task or actor that asked for none.
    Message(
        "ray.asked_for_none",
        (
            "num_gpus",
            "ray.get_gpu_ids",
            "ray does not manage gpu",
            "@ray.remote",
            "ray workers",
            "ray actor",
            "ray worker",
            "ray task",
            "raytaskerror",
            "rayworkerwrapper",
            "rolloutworker",
            "ray::",
            "ray.exceptions",
            "current node has no gpu",
        ),
        r"Ray does not manage GPU allocations to the driver|ray\.get_gpu_ids\(\)[^\n]{0,60}(?:empty|\[\])"
        rf"|\bnum_gpus\b[^\n]{{0,120}}\b{_GPU}\b[^\n]{{0,60}}(?:\bFalse\b|not available|\berror\b|not (?:see|found))"
        rf"|\b(?:not|n't|without|missing) (?:\w+ )?`?num_gpus\b|num_gpus\W{{1,3}}(?:is )?(?:not set|0\b|missing)"
        r"|\bRay (?:actors?|workers?|tasks?)\b[^\n]{0,160}\b(?:not|n't|cannot)\b[^\n]{0,30}\b(?:recogni[sz]e"
        r"|see|use|find|detect)\b[^\n]{0,40}\b(?:GPUs?|CUDA\w*)"
        r"|\bray(?:::|TaskError|WorkerWrapper|\.exceptions)[^\n]{0,200}(?:No CUDA GPUs are available"
        r"|no CUDA-capable device)"
        r"|RolloutWorker[^\n]{0,200}No CUDA GPUs are available"
        r"|Current node has no GPU available",
    ),
    # Ray's own account has GPUs: whoever sees none was given none by it.
    Message(
        "ray.counts_gpus",
        ("cluster_resources", "available_resources", "ray status", "ray dashboard"),
        r"\b(?:cluster|available)_resources\(\)[^\n]{0,200}\bGPU\W{1,4}[1-9]"
        r"|\b(?:ray status|Ray dashboard)\b[^\n]{0,80}\b(?:\d|both|all|two|four|eight|the) (?:\w+ )?GPUs?\b",
    ),
)
