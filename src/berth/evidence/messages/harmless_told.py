"""What people ask of machines that are well: figures that differ, fields without a value, warnings."""

from berth.evidence.message import Message, phrases

_TOOL = r"(?:gpustat|nvitop|nvtop|pynvml|py3nvml|nvidia-ml-py|nvmlDeviceGetMemoryInfo|rocm-smi|gpu-?monitor\w*)"

MESSAGES: tuple[Message, ...] = (
    # In MIG mode the figures of the whole device belong to nobody: a container may not read them.
    Message(
        "harmless.mig_figures_hidden",
        ("insufficient permissions",),
        r"\[N/A\][^\n]{0,60}\[Insufficient Permissions\]"
        r"|<(?:total|used|free|reserved)>Insufficient Permissions<|^\s*(?:Total|Used|Free|Reserved)\s*:\s*Insufficient "
        r"Permissions|\|\s*Insufficient Permissions\s*\|",
    ),
    Message(
        "context.mig_mode",
        ("<current_mig>enabled", "mig-", "mig mode", "mig device", "migs", "nvidia-smi", "memory.total", "mig m."),
        r"<current_mig>Enabled|\bMIG(?:-| [Mm]ode| [Dd]evice| [Mm]\.)|memory\.total \[MiB\]",
    ),
    # Lines of a node's account that were cut out of it.
    Message(
        "harmless.old_resource_lines",
        "nvidia.com/",
        r"^\s*nvidia\.com/(?:gpu|mig-[\w.]+):\s+[1-9]\d*\s*\n\s*nvidia\.com/mig-[\w.]+:\s+0\s*$"
        r"|^\s*nvidia\.com/(?:gpu|mig-[\w.]+):\s+0\s*\n\s*nvidia\.com/mig-[\w.]+:\s+[1-9]\d*\s*$",
        lines=2,
    ),
    # Programs of CUDA run GeForce cards in P2.
    Message(
        "harmless.compute_in_p2",
        (
            *(f"{before}p2{after}" for before in " (" for after in " ,.):;"),
            *(f"{quote}p2{quote}" for quote in "'\"`"),
            *(f"{word} p2" for word in ("in", "to", "at", "is", "on", "of", "state", "mode")),
            *(f"p2{sign}{word}" for sign in " -" for word in ("state", "mode")),
            "instead of p0",
            "rather than p0",
            "not p0",
        ),
        r"\b(?:state|perf\w*|mode|clocks?|nvidia-smi)\b[^\n]{0,60}\bP2\b(?![^\n]{0,10}\b(?:P|to) ?\d)"
        r"|\bP2\b[^\n]{0,40}\b(?:state|instead of P0|rather than P0|not P0|under load|CUDA|comput\w+)\b",
    ),
    # Who asks of profiling figures names a card that has none.
    Message(
        "context.profiling_asked",
        ("dcgm_fi_prof", "dcp metric", "profiling metric", "prof metric", "dcp metrics"),
        r"(?:DCGM_FI_PROF\w*|DCP metrics?|prof(?:iling)? metrics?)\b",
    ),
    Message(
        "context.card_number",
        (
            *(f"{line}{sign}{first}" for line in ("rtx", "gtx") for sign in (" ", "-", "") for first in range(1, 5)),
            *(f"{number}0{sign}{kind}" for number in (5, 6, 7, 8, 9) for sign in ("", " ") for kind in ("ti", "super")),
            "tesla ",
        ),
        r"\b(?:RTX|GTX)[ -]?(?:[1-4]0[5-9]0|16[5-6]0)\b|\b(?:10[5-8]0|20[6-8]0|30[5-9]0|40[6-9]0) ?(?:Ti|SUPER)\b"
        r"|\bTesla (?:P4|P6|P40|P100|M\d+|K\d+)\b",
    ),
    # Fields that this card does not have, in the engine's own log.
    Message(
        "harmless.dcgm_no_data",
        ("getlatestsample returned", "got nvmlst 3"),
        r"GetLatestSample returned (?:No data is available|Feature not supported)"
        r"|Got nvmlSt 3\b[^\n]{0,40}\bnvmlDeviceGetFieldValues\b",
    ),
    # The plugin's DaemonSet goes to all nodes; those without a GPU have nothing for it.
    Message(
        "harmless.plugin_on_plain_node",
        (
            "non-gpu",
            "non gpu",
            "without gpu",
            "without a gpu",
            "without any gpu",
            "cpu node",
            "cpu-only node",
            "cpu worker",
            "cpu-only worker",
        ),
        r"(?:non[- ]gpu|cpu(?:-only)?) (?:worker )?nodes?\b[^\n]{0,60}\b(?:CrashLoopBackOff|crash\w*|[Ww]aiting "
        r"indefinitely|[Nn]o devices found)|\bnodes? without (?:a |any )?GPUs?\b[^\n]{0,60}\b(?:CrashLoopBackOff"
        r"|crash\w*|[Ww]aiting indefinitely|[Nn]o devices found)"
        r"|\b(?:device[- ])?plugin\b[^\n]{0,60}\bon (?:these |those |the |my )?(?:non[- ]gpu|cpu(?:-only)?) (?:worker "
        r")?nodes?\b",
    ),
    # GPUs that use the machine's memory have no figure of their own.
    Message(
        "harmless.memory_absent",
        ("memory.used", "memory.free", "memory.total"),
        r"\bmemory\.(?:used|free|total) \[MiB\][^\n]*\n[^\n]*\[N/A\]",
        lines=2,
    ),
    Message("context.unified_memory", ("gb10", "dgx spark", "jetson"), r"\b(?:GB10|DGX[- ]Spark|Jetson)\b"),
    Message(
        "harmless.power_settles",
        ("idle", "seconds after", "seconds later"),
        r"\bpower\b[^\n]{0,40}\b(?:settles|stays|remains)\b[^\n]{0,40}\b\d+ ?W\b[^\n]{0,30}\binstead of\b[^\n]{0,60}"
        r"\bidle\b|\breturns? to (?:idle|\d+ ?W)\b[^\n]{0,20}\bseconds (?:after|later)\b",
    ),
    Message(
        "harmless.alert_told",
        ("alert",),
        r"\balerts?\b[^\n]{0,60}\bfalse[- ]positive|\bfalse[- ]positive\b[^\n]{0,40}\balerts?\b",
    ),
    # Frameworks take the memory first and divide it themselves.
    Message(
        "harmless.takes_all_memory",
        (
            "gpu memory",
            "gpu's memory",
            "gpus' memory",
            "entire gpu",
            "whole gpu",
            "vram",
            "memory growth",
            "allow_growth",
        ),
        r"\b(?:TensorFlow|TF|JAX|memory growth|allow_growth|preallocat\w+|vLLM|version)\b[^\n]{0,120}"
        r"\b(?:takes?|taking|us(?:es?|ing)|allocat(?:es?|ing)|occup(?:ies|ying)|reserv(?:es?|ing)|grabs?)\b[^\n]{0,20}"
        r"\b(?:all|entire|whole|almost|nearly|most|90 ?%)\b[^\n]{0,30}\b(?:GPU\S{0,2}|VRAM|memory)\b",
    ),
    # The first call makes the context, and compiles what was not compiled for the card.
    Message(
        "harmless.first_call_slow",
        (
            "first",
            *(
                f"initial {of}{act}"
                for of in ("", "cuda ", "gpu ", "model ", "inference ")
                for act in ("call", "run", "time", "inference", "request", "use", "operation")
            ),
            "slow cuda init",
        ),
        r"^(?!.*nvidia-smi)(?=.*\b(?:CUDA|GPU|cuda\(|Emgu|OpenCV|torch|TensorFlow))"
        r".*?(?:\b(?:first (?:\S+ ){0,4}?|initial (?:(?:CUDA|GPU|model|inference) )?)"
        r"(?:call|run|time|inference|request|use|operation)\b[^\n]{0,60}"
        r"\b(?:slow\w*|delays?|takes? (?:so )?(?:long|~?\d+)|long time)\b"
        r"|\b(?:slow|long)\b[^\n]{0,40}\b(?:at |on |for )?(?:the )?first (?:time|call|run)\b"
        r"|\bslow CUDA init\w*[^\n]{0,60}\bfirst\b)",
    ),
    # CUDA counts the fastest device first, the driver's tools by the bus.
    Message(
        "harmless.order_differs",
        ("nvidia-smi", "pci_bus_id", "cuda_device_order"),
        r"^(?!.*\b[Vv]ersion)(?=.*?\b(?:index(?:es)?|indices|device numbers?|gpu (?:ids?|numbers?|index)"
        r"|numbers? the GPUs?|ordering|number)\b[^\n]{0,100}\b(?:not match\w*|mismatch\w*|differ\w*|disagree\w*"
        r"|aren't the same|not the same|inconsistent"
        r"|does not by default|another GPU)\b|.*?\b(?:do(?:es)?n'?t|do(?:es)? not|not) match\b[^\n]{0,60}"
        r"\b(?:device|GPU) (?:number|index|id)|.*?\b[Ss]elected GPUs? \d[^\n]{0,80}"
        r"\bnvidia-smi\b[^\n]{0,80}\bon GPUs? \d).*?(?:nvidia-smi|PCI_BUS_ID|CUDA_DEVICE_ORDER)",
    ),
    # The GPU waits for what the processor prepares.
    Message(
        "harmless.waits_for_data",
        ("utilization", "utilisation", "gpu-util", "gpu util", "gpu usage"),
        r"\b(?:utili[sz]ation|GPU[- ]Util|GPU usage)\b[^\n]{0,60}\b(?:low|fluctua\w+|unstable|not stable"
        r"|[0-4]?\d ?%)[^\n]{0,200}(?:\b(?:wait\w*|data ?loader|loading (?:\w+ )?data|data loading"
        r"|pre-?process\w*|collat\w+"
        r"|num_workers)\b)|\bGPU[- ]Util\w* is (?:very )?low and fluctua\w+",
    ),
    # A program looks for GPUs to watch, and goes on where there are none.
    phrases(
        "harmless.monitoring_off",
        "NVIDIA monitoring disabled",
        "GPU monitoring disabled",
        "GPU monitoring is disabled",
        "disabling GPU monitoring",
        "GPU metrics disabled",
        "GPU metrics will not be collected",
        "GPU stats will not be",
    ),
    Message(
        "context.no_nvidia_here",
        (
            "have it",
            "have one",
            "not have any",
            "n't have any",
            "nt have any",
            "have an nvidia",
            "have a nvidia",
            "have any nvidia",
            "no nvidia",
            "completely normal",
        ),
        r"\b(?:nvidia|GPU)\b[^\n]{0,60}\b(?:do(?:es)?n'?t|do(?:es)? not) have (?:it|one|any)\b"
        r"|\b(?:do(?:es)?n'?t|do(?:es)? not) have (?:an?|any) nvidia\b"
        r"|\bno nvidia (?:library|GPU|card)\b[^\n]{0,80}\bcompletely normal\b",
    ),
    # Checks within the driver that go on.
    Message(
        "harmless.driver_assertion",
        ("nvassertfailed", "nvassertokfailed", "nvcheckokfailed", "nvcheckfailed"),
        r"NVRM:? nv(?:Assert|Check)(?:Ok)?Failed\w*:(?!.*(?:GPU_IS_LOST|GPU lost|NV_ERR_TIMEOUT|RESET_REQUIRED"
        r"|NO_MEMORY|INSUFFICIENT_RESOURCES))",
    ),
    Message(
        "harmless.pids_of_host",
        ("nvidia-smi", "nvml", "gpustat", "nvitop", "process not show", "processes not show"),
        r"\bGPU process(?:es)? not show(?:n|ing)\b[^\n]{0,20}\b(?:pod|container|docker)\b|"
        r"^(?=.*?(?:\b(?:pids?|process(?:es)?)\b[^\n]{0,60}\b(?:not|n't|no|never) (?:be )?(?:visible|shown?|listed"
        r"|displayed|see)\b[^\n]{0,80}\bnvidia-smi\b|\b(?:wrong|host(?:'s)?|real) pids?\b[^\n]{0,80}\b(?:container"
        r"|docker|pod|host)\b"
        r"|\bpids?\b[^\n]{0,40}\b(?:of|on|from) (?:the )?host\b[^\n]{0,60}\b(?:container|docker|pod)\b"
        r"|\bnvidia-smi\b[^\n]{0,40}\b(?:inside|in|within)\b[^\n]{0,30}\b(?:container|pod)\b[^\n]{0,30}\b"
        r"(?:cannot|can't|can not|do(?:es)? not|don't|doesn't) (?:see|show|list)\b[^\n]{0,40}\bprocess))"
        r".*?(?:nvidia-smi|nvml|gpustat|nvitop)",
    ),
    # A scheduler that books an amount of memory, and leaves it to the program to keep to it.
    Message(
        "harmless.memory_only_booked",
        ("more gpu memory than", "gpu memory is not enforced", "memory isolation"),
        r"\b(?:us(?:e[sd]?|ing)|exceed\w*)\b.{0,12}\bmore GPU memory than\b.{0,60}\bannotation",
    ),
    # Figures of a container are there once it has used its card.
    Message(
        "harmless.figure_not_yet",
        ("device_utilization_desc_of_container", "device_memory_desc_of_container", "vgpu_device_memory_usage",
         "hami_container_"),
        r"(?:Device_(?:utilization|memory)_desc_of_container|vGPU_device_memory_usage\w*|hami_container_\w+)\b.{0,30}"
        r"\b(?:does not exist|doesn't exist|not exist|is missing|is absent|not found)\b",
    ),
    # An image is built without a GPU and runs with one.
    Message(
        "harmless.build_without_gpu",
        (
            "docker build",
            "building a docker",
            "building the docker",
            "image build",
            "building the image",
            "build the image",
            "during build",
            "at build time",
            "while building",
            "during the build",
            "run nvidia-smi",
        ),
        r"^\s*RUN nvidia-smi\b|"
        r"\b(?:docker build|build(?:ing)?|build time)\b[^\n]{0,200}\b(?:libcuda|CUDA\w*|GPU|driver|device)\b"
        r"[^\n]{0,200}\b(?:pass(?:es)?|works?|fine|correctly|ok)\b[^\n]{0,60}\b(?:run|running|start\w*|container)\b",
    ),
    # Rows were put aside; nothing is pending.
    Message(
        "harmless.driver_recovered",
        ("row remapp", "recovers", "recovered", "remapped", "uncorrectable ecc"),
        r"\b(?:driver|NVIDIA) (?:performs?|performed|did|does|recovers?|recovered)\b[^\n]{0,60}"
        r"\b(?:row remapping|uncorrectable ECC)\b(?![^\n]{0,80}\bpending\b)",
    ),
    # No samples of processes while nothing computes.
    Message(
        "harmless.no_samples",
        ("processutilization", "accountingstats"),
        r"(?:nvmlDeviceGet)?(?:ProcessUtilization|AccountingStats)\b[^\n]{0,60}(?:\bNot Found|NOT_FOUND|NotFound)\b",
    ),
    # Lists of names of devices are older than the newest device; only the name is missing.
    Message(
        "harmless.device_name_unknown",
        "unable to get device name",
        r"WARNING: unable to get device name: \W{0,2}failed to find device with id",
    ),
    Message(
        "harmless.kept_memory_told",
        (
            "no process",
            "any process",
            "without process",
            "0 process",
            "running process",
            "reserved memory",
            "memory is reserved",
        ),
        r"(?<![\d.])(?P<used>\d{1,3}) ?M(?:i?B)?\b[^\n]{0,80}\b(?:no|without|any) (?:running )?process"
        r"|\bno (?:running )?process\w*\b[^\n]{0,80}(?<![\d.])(?P<used2>\d{1,3}) ?M(?:i?B)\b",
    ),
    Message(
        "context.two_tools",
        ("gpustat", "nvitop", "nvtop", "nvml", "nvidia-ml-py", "rocm-smi"),
        rf"\b{_TOOL}\b[^\n]{{0,100}}\bnvidia-smi\b[^\n]{{0,60}}"
        r"|\bnvidia-smi\b[^\n]{0,100}\b(?:gpustat|nvitop|nvtop|pynvml|py3nvml|nvidia-ml-py)\b",
    ),
    Message(
        "context.memory_differs",
        (
            "differ",
            "mismatch",
            "not match",
            "not the same",
            "but nvidia-smi",
            "not see",
            "not show",
            "higher",
            "lower",
            "wrong",
            "more",
            "less",
        ),
        r"^(?=.*\b[Mm]emory\b).*?\b(?:but nvidia-smi|differ\w*|mismatch\w*"
        r"|not (?:match\w*|the same|seeing|see|show)|more|less|higher"
        r"|lower|wrong)\b",
    ),
    # A version was chosen for the image; the tool shows the driver's.
    Message(
        "harmless.cuda_expected",
        ("cuda version", "cudaversion", "nvidia-smi"),
        r"\b(?:expect\w*|select\w*|install\w*|want\w*|chose\w*|specif\w*)\b[^\n]{0,160}\bCUDA Version:? ?[\d.]+"
        r"[^\n]{0,60}(?:nvidia-smi|on the host)|\bnvidia-smi\b[^\n]{0,40}\b(?:still|does(?:n't| not) (?:reflect|change"
        r"|match|show))\b[^\n]{0,60}\bCUDA\b|\bCUDA\b[^\n]{0,60}\bnot (?:reflected|changed)\b[^\n]{0,40}\bnvidia-smi",
    ),
    # Kinds of rest that the tools of monitoring tell as if they were a fault.
    phrases(
        "harmless.power_watch",
        "DCGM_FR_CLOCK_THROTTLE_POWER",
        "DCGM_FR_CLOCKS_EVENT_POWER",
    ),
    phrases(
        "harmless.imex_watch",
        "DCGM_FR_IMEX_UNHEALTHY",
    ),
    # Where a program's image has more ways than this machine can go.
    phrases(
        "harmless.program_chatter",
        "A matching Triton is not available",
        "maybe TCPStore server has shut down too early",
        "gpu VRAM usage didn't recover within timeout",
        "The following directories listed in your path were found to be non-existent",
        "flash_attn is not installed",
        "flash-attn is not installed",
        "FlashAttention2 is not installed",
        "Flash Attention is not available, using",
        "FlashInfer is not available. Falling back",
        "Failed to import from vllm._moe_C",
        "SymmMemCommunicator: Device capability",
        "Unable to detect current VLLM config",
        "Unable to import torchao",
        "Apex is not installed",
        "No ROCm runtime is found, using ROCM_HOME",
    ),
)
