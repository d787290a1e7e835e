"""What host, runtimes, toolkit, kubelet and MPS say on nodes that are well."""

from berth.evidence.message import Message, phrases

MESSAGES: tuple[Message, ...] = (
    # The bus and its other devices
    Message(
        "harmless.slot_power_untold",
        ("detected insufficient power on the pcie slot", "advertised sufficient power"),
        r"Detected insufficient power on the PCIe slot|PCIe slot advertised sufficient power",
    ),
    Message(
        "harmless.no_io_ports",
        ("[io ",),
        r"(?:no space for|failed to assign|can't assign;? no space|bridge window|BAR \d+:?) \[io  ?size 0x",
    ),
    Message(
        "harmless.card_audio",
        ("snd_hda_intel", "hda-intel", "hdaudio"),
        r"snd_hda_intel \S+: (?:Disabling MSI|Handle vga_switcheroo|no codecs found|no codecs initialized"
        r"|Codec #\d+ probe error|CORB reset timeout|Force to non-snoop|can't change power state)"
        r"|hdaudio hdaudioC\d+D\d+: (?:no AFG or MFG node|unable to configure)",
    ),
    # The driver as it is built and loaded
    phrases(
        "harmless.display_absent",
        "Cannot find any crtc or sizes",
        "No compatible format found",
        "Lost display notification",
        "Unregistered Nvlink Core, major device number",
        "nvidia-modeset: Unloading",
        "no longer has permission to remove its runtime data directory",
        "Correcting number of heads for current head",
        "Can't find an IRQ for your NVIDIA card for display",
    ),
    phrases(
        "harmless.module_notes",
        "Unrecognized AMD processor in cpuidInfoAMD",
        "Unrecognized Intel processor",
        "FBHUB Interrupt detected. Clearing it",
        "CC secret cleanup successful",
        "from proprietary module nvidia, inheriting taint",
        "inheriting taint",
        "Failed to grab the console semaphore",
    ),
    Message(
        "harmless.compiler_differs",
        ("warning: compiler version check failed",),
        r"Warning: Compiler version check failed",
    ),
    phrases(
        "harmless.build_notes",
        "W: Possible missing firmware",
        "Possible missing firmware",
        "Deprecated feature: REMAKE_INITRD",
        "Deprecated feature: CLEAN",
        "Deprecated feature: MODULES_CONF",
        "Unable to determine if Secure Boot is enabled",
        "no Vulkan ICD loader was detected",
        "One or more modprobe configuration files to disable Nouveau are already present",
        "installation has been altered since it was initially installed",
        "Unable to perform the runtime configuration check for",
        "Unable to determine the default X library path",
        "nvidia-installer will not install a kernel module as part of this driver installation",
        "will not be able to detect xorg server ABI",
    ),
    # What could serve a device is listed whether it is loaded or not.
    Message(
        "harmless.modules_listed",
        ("kernel modules", "kernel module:"),
        r"\bnouveau\b[^\n]{0,60}\b(?:listed|shown|appears|in|under|still)\b[^\n]{0,30}\bkernel modules\b"
        r"|\bkernel modules\b[^\n]{0,40}\b(?:list|show|contain|include|have|mention|say)\w*\b[^\n]{0,30}\bnouveau\b",
    ),
    Message(
        "context.nvidia_serves",
        "kernel driver in use",
        r"Kernel driver in use:? ?nvidia\b",
    ),
    # The loader of libraries on hosts whose libraries are files where links are usual
    Message(
        "harmless.not_symbolic_link",
        ("is not a symbolic link",),
        r"ldconfig\S*: \S+\.so\S* is not a symbolic link",
    ),
    # Toolkit and runtimes
    Message(
        "harmless.toolkit_notes",
        (
            "ignoring runtime-config-override",
            "version: unknown output format",
            "executing runc doing nothing",
            '"docker-runc" binary not found',
            "failed to set inheritable capabilities",
            "skipping kernel modules load due to failure",
            "dxcore initialization failed, continuing",
            "missing library",
            "missing compat32 library",
            "missing binary",
            "missing ipc",
            "missing firmware",
        ),
        r"Ignoring runtime-config-override flag"
        r"|failed to retrieve \S*nvidia\S* version: unknown output format"
        r"|, executing runc doing nothing|\"docker-runc\" binary not found"
        r"|failed to set inheritable capabilities|skipping kernel modules load due to failure"
        r"|dxcore initialization failed, continuing assuming a non-WSL"
        r"|nvc\w*\.c:\d+\] (?:missing library|missing compat32 library|missing binary|missing ipc|missing firmware)\b",
    ),
    Message(
        "harmless.snapshotter_absent",
        (
            "skip plugin",
            "could not use snapshotter",
            "no swap limit support",
            "no blkio throttle",
            "bridge-nf-call-ip",
            "failed to load plugin",
            "container event discarded",
            "is deprecated since containerd",
        ),
        r"failed to load plugin\b[^\n]*\b(?:devmapper|zfs|btrfs|aufs|blockfile|tracing|nri|image-verifier)\b"
        r"|could not use snapshotter (?:devmapper|zfs|btrfs|aufs|blockfile)|: skip plugin\b"
        r"|WARNING: (?:No (?:swap limit support|blkio throttle)|bridge-nf-call-ip\w+ is disabled)"
        r"|container event discarded|is deprecated since containerd v",
    ),
    # The kubelet as it starts
    Message(
        "harmless.kubelet_starts",
        (
            "containerstatus from runtime service failed",
            "deletecontainer returned error",
            "invalid capacity 0 on image filesystem",
            "image garbage collection failed once",
            "unable to find data in memory cache",
            "required revision has been compacted",
            "nameserver limits",
            "failed to get rootfs info",
            "partial failures: [",
            "path does not exist, ignoring",
            "unable to retrieve some image pull secrets",
            "dnsconfigforming",
            "has been deprecated, this parameter should be set via the config file",
            "failed to ensure lease exists",
            "nri is disabled",
            "non-existent device plugin endpoint",
            "failed to get imagefs info",
        ),
        r"ContainerStatus from runtime service failed[^\n]*(?:code = NotFound|not found)|DeleteContainer returned error"
        r"|invalid capacity 0 on image filesystem|Image garbage collection failed once"
        r"|unable to find data in memory cache|required revision has been compacted"
        r"|Nameserver limits (?:were )?exceeded|DNSConfigForming|Partial failures: \["
        r"|path does not exist, ignoring|Unable to retrieve some image pull secrets"
        r"|has been deprecated, This parameter should be set via the config file",
    ),
    # Each restart of the kubelet makes its socket anew, and every plugin serves anew.
    Message(
        "harmless.plugin_follows_kubelet",
        ("kubelet.sock recreated", "server stopped serving: <nil>", "kubelet.sock created, restarting"),
        r"kubelet\.sock recreated|device-plugin server stopped serving: <nil>|kubelet\.sock created, restarting",
    ),
    # The control daemon of MPS asks each client twice, and notes when it leaves.
    Message(
        "harmless.mps_log",
        (
            "user did not send valid credentials",
            "server is not ready",
            "assuming client exit",
            "client process disconnected",
        ),
        r"\b(?:Control|Server|Other)\b[^\n]{0,12}\] ?(?:User did not send valid credentials"
        r"|NEW CLIENT \d+ from user \d+: Server is not ready|Receive command failed, assuming client exit"
        r"|Client process disconnected)",
    ),
    # Figures and labels of partitions and idle GPUs
    Message(
        "harmless.partition_figures",
        ("clock", "gpu_temp", "temperature", "power_usage", "power "),
        r"^(?=.*\bMIG\b).*?(?<![a-z])(?:SM_CLOCK|MEM_CLOCK|clocks?|GPU_TEMP|temperature|POWER_USAGE|power )"
        r"[^\n]{0,100}\b(?:same|identical|equal|not (?:differ|per)|whole)\b",
    ),
    Message(
        "harmless.count_is_physical",
        "gpu.count",
        r"^(?=[^\n]*\bMIG\b)[^\n]*?\bgpu\.count\b[^\n]{0,80}?\b(?:(?:not|n't) (?:change|update|follow|count|include)\w*"
        r"|still (?:shows?|says?|is|counts?)|stays?|physical)\b",
    ),
    Message(
        "harmless.sharers_figures",
        ("identical", "same "),
        r"^(?=[^\n]*\b(?:time[- ]?slic|MPS\b|shared? (?:the |one |a )?(?:same )?GPU|virtual[-_ ]gpus))[^\n]*?\b"
        r"(?:identical|the same|same) (?:\w+ ){0,2}?(?:power|values?|metrics?|utili[sz]ation|figures?|usage|numbers?)\b"
        r"[^\n]{0,60}|^(?=[^\n]*\b(?:time[- ]?slic|MPS\b))[^\n]*?\b(?:values?|metrics?|power|utili[sz]ation) "
        r"(?:\w+ ){0,6}?(?:is|are) (?:identical|the same) (?:for|across|in|on) (?:all|each|every|both) (?:\w+ )?"
        r"(?:pods?|containers?|replicas?)\b",
    ),
    Message(
        "harmless.idle_has_no_pod",
        ("idle", "no pod", "unused", "not used", "without a pod", "nobody uses"),
        r"\b(?:pod|namespace|container)s?\b[^\n]{0,60}\b(?:labels?|fields?|names?)?\b[^\n]{0,30}\b(?:empty|missing"
        r"|blank|absent)\b[^\n]{0,60}\b(?:idle|no pods?\b|unused|not used|nobody uses)"
        r"|\b(?:idle|unused|not used by (?:any|a)|nobody uses)\b[^\n]{0,80}\b(?:no|empty|without|blank|missing) "
        r"(?:\w+ )?(?:pod|namespace|container)\b",
    ),
    # A share of time in which anything ran, beside a share of the multiprocessors that did.
    Message(
        "harmless.utilisation_is_time",
        ("sm_active", "sm active", "gr_engine_active", "sm occupancy", "sm_occupancy"),
        r"(?:GPU_UTIL|GPU-Util|GPU Util|utilization|utilisation)[^\n]{0,120}"
        r"(?:SM_ACTIVE|SM active|GR_ENGINE_ACTIVE|SM occupancy|SM_OCCUPANCY)"
        r"|(?:SM_ACTIVE|SM active|GR_ENGINE_ACTIVE|SM occupancy|SM_OCCUPANCY)[^\n]{0,120}"
        r"(?:GPU_UTIL|GPU-Util|GPU Util|utilization|utilisation)",
    ),
    # What a GeForce does not count
    Message(
        "context.memory_fields_missing",
        ("dcgm_fi_dev_ecc", "dcgm_fi_dev_retired", "dcgm_fi_dev_row_remap", "dcgm_fi_dev_memory_temp", "ecc metric"),
        r"(?:DCGM_FI_DEV_ECC|DCGM_FI_DEV_RETIRED|DCGM_FI_DEV_ROW_REMAP|DCGM_FI_DEV_MEMORY_TEMP|\bECC metrics?\b)"
        r"[^\n]{0,80}\b(?:missing|absent|empty|not|no|N/A)\b",
    ),
    # The distance to the limit: it falls as heat rises.
    Message(
        "harmless.headroom_told",
        ("t.limit", "tlimit", "t limit temp"),
        r"\bT\.?[ -]?Limit\b[^\n]{0,100}\b(?:smaller|lower|low|decreas\w+|drops?|falls?|negative|wrong|broken"
        r"|goes down|shrinks?"
        r"|differs?|not match)\b",
    ),
    # Fields without a value, printed one a line or asked for by name
    Message(
        "harmless.fields_absent",
        ("[n/a]", ": n/a", "nvmlerror_notsupported"),
        r"\b(?:ecc\.|fan\.speed|power\.|retired_pages\.|temperature\.memory|mig\.mode)\S*\W{1,4}\[N/A\]"
        r"|^\s*(?:Serial Number|GPU Part Number|Image Version|ECC Object|Power Draw|Power Limit|Fan Speed)"
        r"\s*: N/A|\bNVMLError_NotSupported\b",
    ),
    # A model is loaded first; probes before that are refused.
    Message(
        "harmless.loads_then_ready",
        ("to load", "to start", "loading the model", "loads the model"),
        r"\b(?:takes?|needs?)\b[^\n]{0,40}\b(?:minutes?|seconds?|long)\b[^\n]{0,20}\b(?:to load|to start)\b"
        r"[^\n]{0,60}\b(?:then|after that|afterwards)\b[^\n]{0,40}\b(?:ready|runs|works|fine)\b",
    ),
    Message(
        "harmless.small_messages",
        ("small message", "small size", "small buffer"),
        r"\b(?:busbw|algbw|bus bandwidth|bandwidth)\b[^\n]{0,60}(?:small message|small size|small buffer)"
        r"|(?:small message|small size|small buffer)[^\n]{0,60}\b(?:busbw|algbw|bandwidth)\b",
    ),
    phrases(
        "harmless.mps_server_listed",
        "nvidia-cuda-mps-server",
    ),
    phrases(
        "harmless.operator_notes",
        "No GPU workload config found",
        "label not set, using default",
        "Couldn't find KubeVirt",
        "Kata Manager disabled, ignore",
        "Sandbox workloads disabled",
        "ServiceMonitor CRD is not present",
        "ServiceMonitor resource type is not available",
        "failed to read net iface attribute",
        "failed to read kconfig",
        "failed to detect kernel config",
        "Not setting Pod Security Admission labels",
        "skipping namespace monitoring verification",
        "vgpu.config.state=pending",
        "assuming config changed",
        "driver is pre-installed on host",
        "vfio-pci validations to complete",
        "cleaning up all NVIDIA driver daemonsets",
    ),
)
