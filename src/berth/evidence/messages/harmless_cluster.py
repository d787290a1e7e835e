"""What toolkit, runtimes, kubelet, plugin, operator and DCGM say on nodes and clusters that are well."""

from berth.evidence.message import Message, phrases

MESSAGES: tuple[Message, ...] = (
    Message(
        "harmless.kai_not_enforced",
        ("kai ", "kai-scheduler", "kai scheduler", "kai's"),
        r"\bKAI\b(?:[ -]scheduler)?[^\n]{0,30}\b(?:not|n't|never)\b[^\n]{0,12}\b(?:limit|enforc|isolat|restrict)\w*"
        r"[^\n]{0,40}\bmemory\b"
        r"|\bmemory\b[^\n]{0,60}\b(?:not|n't|never)\b[^\n]{0,12}\b(?:limit|enforc|isolat|restrict)\w*[^\n]{0,40}\bKAI\b",
    ),
    # Specifications are made of what is there: each file that a machine does not have is told.
    Message(
        "harmless.cdi_optional_file",
        (
            "could not locate",
            "failed to locate",
            "failed to evaluate symlink",
            "ignoring error in locating",
            "failed to init nvsandboxutils",
            "failed to shutdown nvml: uninitialized",
            "could not find ld.so.cache",
        ),
        r"Could not locate (?!libcuda|libnvidia-ml|libdxcore|/dev/nvidia-caps/nvidia-cap\d{2})\S+: pattern"
        r"|Could not locate /(?!dev/|\S*nvidia-smi)\S+"
        r"|Failed to evaluate symlink /dev/dri"
        r"|Failed to init nvsandboxutils|failed to shutdown NVML: Uninitialized"
        r"|Ignoring error in locating libnvidia-sandboxutils|Could not find ld\.so\.cache at"
        r"|Could not locate /dev/nvidia-(?:modeset|fs\d*|nvlink|nvswitch\S*): "
        r"|Failed to locate (?:nvidia-cdi-hook|nvidia-ctk|:)",
    ),
    Message(
        "harmless.runtime_startup",
        (
            "failed to load cni during init",
            "skip loading plugin",
            "cleaning up after shim disconnected",
            "cleanup warnings time=",
            "no network config found in /etc/cni",
        ),
        r"failed to load cni during init, please check CRI plugin status|skip loading plugin\b"
        r"|cleaning up after shim disconnected|cleanup warnings time="
        r"|cni config load failed: no network config found in /etc/cni",
    ),
    # A dry run leaves out what the chart's crds/ folder would install first.
    Message(
        "harmless.dry_run",
        "--dry-run",
        r"\bhelm\b[^\n]*--dry-run[\s\S]{0,800}?no matches for kind \S+ in version",
        lines=8,
    ),
    # Nodes that have no GPU
    Message(
        "harmless.node_without_gpu",
        (
            "cpu-only",
            "cpu only",
            "non-gpu",
            "without gpu",
            "without a gpu",
            "without any gpu",
            "has no gpu",
            "have no gpu",
            "has no nvidia gpu",
            "have no nvidia gpu",
            "no nvidia pci device",
            "cpu node",
            "cpu worker",
            "cpu-worker",
            "cpu-node",
            "does not have a gpu",
            "doesn't have a gpu",
            "do not have gpu",
            "don't have gpu",
        ),
        r"\bCPU[- ]only (?:\w+[- ]){0,3}(?:nodes?|machines?|workers?|hosts?|pool)"
        r"|\bnon-GPU (?:\w+ )?(?:nodes?|machines?|workers?|hosts?)"
        r"|\b(?:nodes?|machines?|workers?|hosts?|masters?)\b.{0,40}?\b(?:without (?:a |any )?GPUs?"
        r"|ha(?:s|ve) no (?:NVIDIA )?GPUs?|(?:does not|doesn't) have a GPU|(?:do not|don't) have GPUs?)\b"
        r"|no NVIDIA PCI device|\bCPU[- ](?:nodes?|workers?)\b",
    ),
    # Containers wait until the one before is done
    Message(
        "harmless.completed_validator",
        ("validator", "node-feature-discovery-prune", "upgrade-crd", "cleanup-crd"),
        r"^\s*(?:[\w-]+\s+)?[\w-]*(?:node-feature-discovery-prune|upgrade-crd|cleanup-crd)\S*\s+0/1\s+Completed\b"
        r"|^\s*(?:[\w-]+\s+)?nvidia-(?:cuda|device-plugin|plugin)-validator\S*\s+0/1\s+Completed\b"
        r"|validators?\b.{0,60}\bCompleted\b.{0,80}\b(?:not (?:Running|ready)|why|normal|expected|0/1)"
        r"|(?:why|should)\b.{0,60}validators?\b.{0,60}\bCompleted\b",
    ),
    Message(
        "harmless.conflict_retried",
        ("the object has been modified",),
        r"the object has been modified; please apply your changes to the latest version",
    ),
    Message(
        "harmless.lease_waited_for",
        ("attempting to acquire leader lease", "tls handshake error from"),
        r"http: TLS handshake error from \S+ (?:EOF|read tcp .* connection reset by peer)",
    ),
    # Figures that a machine cannot have
    Message(
        "harmless.metric_optional",
        ("not collecting ", "gomaxprocs="),
        r"Not collecting (?:NvSwitch|NvLink|switch|link|CPU|CPU[ _]Core|Grace)\w* metrics"
        r"|Leaving GOMAXPROCS=\d+: CPU quota undefined",
    ),
    # Memory utilisation is the time in which memory was read or written, not how full it is.
    Message(
        "harmless.memory_time",
        ("copy_util", "memory utili", "utilization.memory", "memory-util"),
        r"(?:MEM_COPY_UTIL|memory utili[sz]ation|utilization\.memory)\b.{0,60}\b(?:always|only|low|stays?|not|shows?"
        r"|is|0|1|2)\b"
        r".{0,80}\b(?:although|but|while|even though|whereas|however|used)\b",
    ),
    Message(
        "harmless.nvlink_without_links",
        ("nvlink_bandwidth", "nvlink_l", "nvlink metrics", "nvlink bandwidth"),
        r"NVLINK\w*(?: metrics| bandwidth)?\b.{0,60}\b(?:0|missing|absent|N/A|empty)\b.{0,60}"
        r"\b(?:L40S?|T4|A10G?|L4|PCIe|A30|A16|RTX|GeForce)\b",
    ),
    Message(
        "harmless.old_resource",
        "nvidia.com/",
        r"nvidia\.com/mig-\S+?\W{1,3}0\b.{0,60}\b(?:after|since|because|when)\b.{0,40}\bMIG\b.{0,30}"
        r"\b(?:off|disabled|changed|reconfigured|another|removed)\b",
    ),
    Message(
        "harmless.dcgm_optional_module",
        ("incompatible hardware vendor for sysmon", "open cpu vendor info", "failed to load module 9"),
        r"Incompatible hardware vendor for sysmon|Couldn.t open CPU Vendor info|Failed to load module 9\b",
    ),
    Message(
        "harmless.diagnostic_not_here",
        ("is incompatible with the diagnostic", "is_allowed", "dcgmi diag", "dcgm diag"),
        r"MIG configuration is incompatible with the diagnostic|\bis_allowed\b"
        r"|dcgmi? diag\w*\b.{0,40}(?:does not support|not supported (?:for|with|on)) MIG",
    ),
    Message(
        "harmless.discovery_waits",
        ("sleeping for ", "/etc/nv_tegra_release", "waiting for change to "),
        r"\bSleeping for \d{9,}|\bWaiting for change to \W?nvidia\.com/"
        r"|non-?Tegra platform: could not find /etc/nv_tegra_release"
        r"|could not find /etc/nv_tegra_release",
    ),
    Message(
        "harmless.consumer_card",
        ("geforce", "rtx ", "quadro", "gtx ", "titan "),
        r"\b(?:GeForce|GTX \d{3,4}|Quadro|Titan (?:V|X|RTX))\b|\bRTX \d{4}\b",
    ),
    # The account is of what there is, not of what is free.
    Message(
        "harmless.allocatable_is_total",
        ("allocatable",),
        r"\ballocatable\b.{0,80}\b(?:not|never|doesn.t|isn.t|no longer) (?:be |been )?(?:reduc(?:es?|ed)"
        r"|decreas(?:es?|ed)|chang(?:es?|ed)|go(?:es)? down|lower(?:s|ed)?|drops?|subtracted)\b"
        r"|\bstill\b.{0,30}\bgpus?\b.{0,40}\ballocatable\b|\ballocatable\b.{0,60}\b(?:still|always)\b.{0,60}\bpods?\b",
    ),
    phrases(
        "harmless.driver_preinstalled",
        "driver is already pre-installed on the node, will not proceed",
        "gpu.deploy.driver=pre-installed and",
        "nvidia-driver-daemonset at 0",
    ),
    Message(
        "harmless.preinstalled_told",
        ("pre-installed", "preinstalled", "pre installed", "pre- installed", "already installed"),
        r"\bdriver-daemonset\b[^\n]{0,100}\b(?:not|no|missing|absent|0)\b[^\n]{0,120}\bdrivers? (?:\w+ )?"
        r"(?:pre-? ?installed|already installed)",
    ),
    Message(
        "harmless.driver_set_empty",
        "nvidia.com/gpu.deploy.driver=true",
        r"Node-Selectors?:\s+nvidia\.com/gpu\.deploy\.driver=true[\s\S]{0,900}?Desired Number of Nodes Scheduled: 0\b",
        lines=20,
    ),
    Message(
        "harmless.operand_unwanted",
        ("nvidia-mig-manager", "vgpu-manager-daemonset", "nvidia-vgpu-device-manager", "sandbox-device-plugin"),
        r"^\s*(?:[\w-]+\s+)?(?:daemonset\.apps/)?nvidia-(?:mig-manager|vgpu-manager-daemonset|vgpu-device-manager"
        r"|sandbox-device-plugin-daemonset)\s+0\s+0\s+0\s+0\s+0\s",
    ),
    Message(
        "harmless.imex_idle",
        ("imex daemon status", "dcgm_fr_imex_unhealthy"),
        r"IMEX daemon status is(?: (?P<stopped>-3)\b)?|DCGM_FR_IMEX_UNHEALTHY",
    ),
    Message(
        "harmless.no_domain_in_use",
        ("computedomain", "compute domain", "idle gb", "idle node", "idle and"),
        r"\bno (?:active )?Compute ?Domains?\b|\bidle (?:GB[23]00|nodes?)\b|without (?:a "
        r"|any )?Compute ?Domains?",
    ),
    # One device counted many times
    Message(
        "harmless.replicas_counted",
        ("gpu.replicas", "replicas", "time-slic", "timeslic", "time slic"),
        r"(?:nvidia\.com/)?gpu\.replicas\W{1,4}(?:[2-9]|[1-9]\d)\b"
        r"|(?:time[- ]?slic\w*|replicas)\b.{0,60}\b(?:shows?|reports?|has|sees?|advertis\w+|capacity|allocatable)"
        r"\b.{0,30}\b\d{1,3}\b"
        r".{0,40}\b(?:GPUs?|nvidia\.com/gpu)\b.{0,60}\b(?:physical|real|only|instead of|but)\b"
        r"|nvidia\.com/gpu\W{1,3}\d+\b.{0,80}\b(?:time[- ]?slic\w*|\d+ replicas)"
        r"|\b(?:physical|real)\b.{0,40}GPUs?\b.{0,100}(?:time[- ]?slic\w*|replicas)\b",
    ),
    Message(
        "harmless.replicas_on_one_gpu",
        ("time-slic", "timeslic", "time slic", "replica"),
        r"(?:time[- ]?slic\w*|replicas?)\b.{0,120}\b(?:both|all|two|same)\b.{0,40}\b(?:one|same|single)\b.{0,20}\bGPU\b"
        r"|(?:requests?|request(?:ed|ing)|ask\w*)\b.{0,40}\b(?:2|two|more)\b.{0,60}\b(?:time[- ]?slic\w*|replicas?)\b"
        r".{0,100}"
        r"\b(?:not|no) (?:more|faster|increase|proportional)",
    ),
    Message(
        "harmless.shares_no_faster",
        ("time-slic", "timeslic", "time slic", "memory isolation", "isolate memory"),
        r"\b(?:no|not|without|n't)\b.{0,20}\b(?:memory isolation|isolate memory)\b"
        r"|time[- ]?slic\w*\b.{0,60}\b(?:throughput|speed|performance)\b.{0,60}\b(?:constant|same|unchanged"
        r"|not (?:increase|change))",
    ),
    Message(
        "harmless.memory_not_divided",
        ("time-slic", "timeslic", "time slic"),
        r"time[- ]?slic\w*\b.{0,160}\b(?:whole|full|all(?: the)?|entire|total)\b.{0,30}(?:\bmemory|\b\d+ ?Gi?B)\b"
        r"|\b(?:whole|full|entire|total)\b.{0,30}\bmemory\b.{0,100}\btime[- ]?slic",
    ),
    Message(
        "harmless.privileged_sees_all",
        ("privileged",),
        r"privileged\b.{0,80}\b(?:sees?|shows?|access\w*|visible|lists?)\b.{0,20}\ball\b.{0,20}\bGPUs?\b"
        r"|\ball\b.{0,20}\bGPUs?\b.{0,60}\b(?:visible|seen|shown|accessible)\b.{0,60}\bprivileged"
        # A command that chooses devices and is privileged at once.
        r"|(?:NV_GPU|NVIDIA_VISIBLE_DEVICES)=(?:\d|GPU-)[^\n]*--privileged"
        r"|--privileged\b[^\n]*(?:NVIDIA_VISIBLE_DEVICES=(?:\d|GPU-)|--gpus \W*device=)",
    ),
    phrases(
        "harmless.container_forgotten",
        "Failed to create existing container",
        "Cannot read vendor id correctly",
        "Failed to get system container stats",
    ),
    Message(
        "harmless.reserved_memory",
        "fb_used",
        r"FB_FREE\b.{0,60}FB_USED\b.{0,60}\b(?:not match|mismatch|differs?|less than|smaller|not equal|not add up)",
    ),
    Message(
        "harmless.claim_waits",
        ("no pod uses", "no pod references", "no pod consumes", "waiting for first consumer"),
        r"claim\b.{0,100}\bno pod (?:uses|references|consumes)|waiting for first consumer to be created before binding",
    ),
    Message(
        "harmless.plugin_everywhere",
        ("all nodes", "every node"),
        r"plugin\b.{0,40}\b(?:runs?|running|scheduled|deployed|started)\b.{0,20}\b(?:all|every) nodes?\b",
    ),
    phrases("harmless.endpoint_ended", "Endpoint became unhealthy"),
    Message(
        "harmless.admitted",
        ("quotareserved=true", "admitted=true", "admitted by clusterqueue", "quota reserved in clusterqueue"),
        r"QuotaReserved=True|Admitted=True|Admitted by ClusterQueue|Quota reserved in ClusterQueue",
    ),
    Message(
        "harmless.container_started",
        ("started container", "created container"),
        r"^\s*(?:\S+\s+)?Normal\s+(?:Started|Created)\s+.*\b(?:Started|Created) container\b",
    ),
    Message(
        "harmless.pod_scheduled",
        ("successfully assigned",),
        r"Successfully assigned (?:(?P<pod>[\w.-]+/[\w.-]+)|\S+) to",
    ),
)
