"""Fabric Manager, the NVLink Subnet Manager, NVSwitch and IMEX: journals of their units, their own logs, and what the
driver container writes when it starts them."""

from berth.evidence.message import Message

_V = r"\d{3}\.\d+(?:\.\d+)?"
_FM = r"(?:nvidia-|nv-)?fabric[ _-]?manager"

MESSAGES: tuple[Message, ...] = (
    Message(
        "fabric.version_mismatch",
        ("match with driver version", ": version mismatch"),
        rf"interface version (?P<fm>{_V}|\d{{3}}\S*) (?:don't|does not|doesn't|do not) match with driver version "
        rf"(?P<driver>{_V}|\d{{3}}\S*)|"
        rf"nvidia-nvswitch\S*: Version mismatch,? kernel version (?P<kernel>{_V}) user version (?P<user>{_V})",
    ),
    # As people and other tools say it.
    Message(
        "fabric.version_mismatch_told",
        ("fabric manager", "fabricmanager", "fabric-manager", "fabric_manager"),
        rf"{_FM}[^\n]{{0,80}}(?:version )?(?:mismatch|differ|not match|incompatible|do(?:es)?n't match)|"
        rf"version mismatch[^\n]{{0,60}}{_FM}",
    ),
    # Two versions in one sentence; the same one twice is no difference.
    Message(
        "fabric.versions_told",
        ("fabric manager", "fabricmanager", "fabric-manager", "fabric_manager"),
        rf"{_FM}[^\n]{{0,60}}?\b(?P<fm>{_V})\b[^\n]{{0,60}}\bdriver\b[^\n\d]{{0,30}}(?P<driver>{_V})\b|"
        rf"\bdriver\b[^\n\d]{{0,30}}(?P<driver2>{_V})\b[^\n]{{0,60}}{_FM}[^\n]{{0,60}}?\b(?P<fm2>{_V})\b",
    ),
    Message("fabric.nothing_to_do", "nv_warn_nothing_to_do", r"NV_WARN_NOTHING_TO_DO"),
    Message(
        "fabric.unit_failed",
        (
            "fabricmanager",
            "fabric manager",
            "fabric-manager",
            "fabric_manager",
            "nvlsm",
            "fabric topology file",
            "for: fm starting",
            "nvlsm: ",
        ),
        r"failed to (?:open|read|parse) (?:the )?fabric topology file|timeout waiting for: FM starting|"
        r"fabricmanager: fm\w+: |"
        r"(?:nvidia-fabricmanager|nvlsm)(?:\.service)?: "
        r"(?:(?:Main|Control) process exited|Failed with result|start (?:request|operation timed out))|"
        r"nvlsm: (?:No local ports detected|Error from osm_\w+)|"
        r"Failed to start (?:\S+ - )?NVIDIA Fabric ?Manager|Job for nvidia-fabricmanager\.service failed|"
        r"/nv-fabricmanager [^\n]*failed! Exit code|"
        r"fabric manager config file item: (?P<item>\w+) has an invalid value|"
        rf"\bfailing {_FM}\b|{_FM}[^\n]{{0,60}}\b(?:shown?|shows|marked|reported|listed) as failed\b|"
        rf"{_FM}[^\n]{{0,60}}(?:fail(?:s|ed)?(?: to (?:start|come up|run|initiali[sz]e))|crash|exited|exits with|"
        r"dead\b|has stopped|restarting|CrashLoop)|"
        rf"Could not start NVIDIA {_FM} daemon"
        r"|nvidia-fabricmanager(?:\.service)?:?(?: is| has| shows| in state| state| unit)? failed\b",
    ),
    Message(
        "fabric.service_status",
        ("nvidia-fabricmanager.service", "nvidia-fabricmanager"),
        r"nvidia-fabricmanager(?:\.service)?\b[\s\S]*?Active: (?P<active>\w+)(?: \((?P<sub>[^)]*)\))?",
        lines=8,
    ),
    Message(
        "fabric.absent",
        ("fabric manager", "fabricmanager", "fabric-manager", "fabric_manager"),
        r"Unit nvidia-fabricmanager(?:\.service)? (?:could not be found|not found|not loaded)|"
        r"nvidia-fabricmanager(?:\.service)?\s+(?:not-found|masked)|nv-fabricmanager: (?:command )?not found|"
        r"Failed to (?:start|enable|restart) nvidia-fabricmanager\.service: Unit[^\n]*not found|"
        rf"(?:without|missing|no running) (?:a |the )?(?:running |NVIDIA |nvidia )*{_FM}\b|"
        rf"{_FM}[`'\"]?(?:\.service|\s+service|\s+daemon)?[`'\"]?\s+(?:is |was |were |has )?(?:not |never |"
        rf"n't )(?:been )?"
        r"(?:installed|running|started|active|present|found|up|loaded|enabled)|"
        rf"{_FM}(?:\.service)?\s+(?:is )?(?:missing|absent|inactive|stopped|down|disabled|masked)\b|"
        r"fabric manager (?:found but|is) not active",
    ),
    Message(
        "fabric.socket_missing",
        ("/nvidia-fabricmanager/socket", "nvidia-fabricmanager/fm_sm_ipc"),
        r"/run/nvidia-fabricmanager/socket\W[^\n]*no such file|"
        r"fail\w* to (?:open|connect to|bind)[^\n]*nvidia-fabricmanager/fm_sm_ipc\.socket",
    ),
    Message(
        "fabric.missing_library",
        "error while loading shared libraries",
        r"(?:(?P<program>nv-fabricmanager|nvidia-fabricmanager|nvlsm|nvidia-imex|nvidia-persistenced)\S* ?:? )?"
        r"error while loading shared libraries: (?P<library>\S+?):",
    ),
    Message(
        "fabric.wrong_option",
        ("script options]", "unknown option", "fabricmanager"),
        r"Unknown option: \S*(?:fabricmanager|nvlsm)\S*|nvidia-fabricmanager-start\.sh \[script options\]|"
        r"(?:invalid|unrecogni[sz]ed|unknown) (?:option|argument)[^\n]*fabricmanager",
    ),
    # 0: bare metal and full passthrough; 1: shared NVSwitch; 2: vGPU. The wrong one gives guests CUDA 802.
    Message(
        "fabric.wrong_mode",
        "fabric_mode",
        r"(?:802|wrong|instead|fail\w*|broken|not (?:work|initiali)\w*)[^\n]{0,80}FABRIC_MODE|"
        r"FABRIC_MODE[^\n]{0,80}(?:802|instead|wrong|must|should be|fail|broken|not (?:work|initiali))",
    ),
    Message(
        "fabric.starting",
        ("starting nvidia fabric manager daemon", "detected nvlink5+", "detected pre-nvl5", "detected nvl5"),
        r"Starting NVIDIA fabric manager daemon(?P<new> for NVLink5\+)?|Detected (?P<generation>NVLink5\+|Pre-NVL5|"
        r"NVL5\+?)"
        r" system",
    ),
    Message(
        "fabric.still_initializing",
        "fabric",
        rf"(?:{_FM}|fabric)[^\n]{{0,30}}(?:is )?(?:still )?(?:initiali[sz]ing|being initiali[sz]ed|training|"
        rf"registering)|"
        r"waiting for (?:the )?(?:NVLink )?fabric|fabric (?:is )?not (?:yet )?(?:ready|initiali[sz]ed)",
    ),
    # HGX B200 and B300: the switches are reached through the InfiniBand stack of the kernel.
    Message(
        "fabric.ib_modules_missing",
        ("ib_umad", "mlx5_ib", "linux-modules-extra", "no infiniband nvswitch detected", "no nvswitch lpf"),
        r"No InfiniBand NVSwitch detected|no NVSwitch LPF device found|"
        r"waiting for the (?:mlx5_core|mlx5_ib) and ib_umad kernel modules|"
        r"(?:mlx5_ib|ib_umad)\b[^\n]{0,40}(?:missing|not loaded|not found|absent|not present|unavailable|n't loaded)|"
        r"(?:missing|no|without|load) (?:module )?(?:mlx5_ib|ib_umad)\b|Module (?:ib_umad|mlx5_ib) not found|"
        r"linux-modules-extra[^\n]{0,40}(?:missing|not installed|not (?:included|shipped|present|found))|"
        r"(?:missing|without|no) linux-modules-extra",
    ),
    Message(
        "fabric.log_error",
        ("[error] [tid", "[fatal] [tid", "[critical] [tid", "nv-fabricmanager["),
        r"(?:\] \[(?:ERROR|FATAL|CRITICAL)\] \[tid \d+\]|nv-fabricmanager\[\d+\]:)"
        r"(?P<what>(?![^\n]*non-fatal)[^\n]*\b(?:fail(?:ed|ure)? to|unable to|cannot|could not|aborting|exiting|"
        r"not trained|timed out|mismatch|"
        r"unsupported|"
        r"not supported)\b[^\n]*)",
    ),
    Message(
        "fabric.not_all_trained",
        (
            "not all",
            "to train",
            "training failed",
            "number of nvswitch",
            "count of nvswitch",
            "all the available",
            "degraded mode",
            "access link failure",
            "trunk link failure",
            "insufficient resources",
            "topology",
        ),
        r"not all (?:the )?(?:available )?NVLinks? (?:are|were)?\s*(?:trained|active|configured)|"
        r"NVLinks? (?:failed to train|"
        r"training failed)|(?:number|count) of NVSwitch(?:es)? (?:don't|does not|doesn't|do not) match|"
        r"Fail(?:ed|ure)? to (?:initialize|configure) all the available (?:GPUs|NVSwitches)|"
        r"topology[^\n]*(?:not supported|"
        r"don't match|does not match any|mismatch)[^\n]*NVSwitch|degraded mode|"
        r"NVLink (?:access|trunk) link failure|fabric[^\n]{0,40}insufficient resources",
    ),
    Message(
        "fabric.stuck",
        "fabric",
        r"(?:GPU )?fabric[^\n]{0,40}(?:stuck|forever|never (?:completes?|ready|registers?)|indefinitely|"
        r"not complet\w+)|"
        r"(?:register\w*|registration)[^\n]{0,30}(?:NVLink )?fabric[^\n]{0,30}(?:stuck|fail|never|hang|timed? ?out|"
        r"not)|"
        r"NVML_GPU_FABRIC_STATE_(?P<state>IN_PROGRESS|NOT_STARTED)",
    ),
    # NVLink 5 systems (HGX B200 and newer) need it beside the manager.
    Message(
        "fabric.subnet_manager",
        "nvlsm",
        r"nvlsm[^\n]{0,80}(?:missing|fail\w*|error|not (?:running|installed|found|started)|exited|crash\w*)|"
        r"(?:without|missing|no|needs?|requires?|lacks?) (?:the )?nvlsm",
    ),
    # Internode memory exchange: the daemon and its control tool.
    Message(
        "imex.daemon_failed",
        ("nvidia-imex", "imex", "no matching network interface ip address"),
        r"nvidia-imex(?:\.service)?: (?:(?:Main|Control) process exited|Failed with result|start operation timed out)|"
        r"No matching network interface IP address[^\n]*node config|Failed to bind IMEX server|"
        r"Failed to start (?:\S+ - )?NVIDIA IMEX|(?:nvidia-)?imex(?: daemon| service|\.service)?[^\n]{0,40}"
        r"(?:fail(?:s|ed)? to (?:start|initiali[sz]e)|crash|not running|is not (?:running|installed|active|started)|"
        r"inactive \(dead\)|exited)",
    ),
    Message(
        "imex.version_mismatch",
        "imex",
        r"IMEX[^\n]{0,60}version[^\n]{0,30}(?:mismatch|do(?:es)?n't match|does not match|differ|incompatible)|"
        r"version mismatch[^\n]{0,60}IMEX|IMEX[^\n]{0,40}different[^\n]{0,20}versions?",
    ),
    Message(
        "imex.domain_not_up",
        ("domain state", "imex", "attempting connection for target node", "node configuration mismatch"),
        r"Domain State:\s*(?P<state>DOWN|DEGRADED|NOT[_ ]READY|INITIALIZING)|"
        r"IMEX[^\n]{0,100}domain[^\n]{0,30}(?:never|does not|doesn't) (?:become|come|reach)|"
        r"IMEX (?:domain|channels?|node)[^\n]{0,40}\b(?:not (?:yet )?(?:ready|up|available|reachable|configured)|"
        r"un(?:ready|available|reachable))|"
        r"Node configuration mismatch detected|"
        r"Attempting connection for target node \d+ - (?!\S*compute-domain)[^\s,]+,? attempt #\d{3,}",
    ),
    Message(
        "imex.memory_refused",
        ("memory reference", "export ref for uuid", "import response from node"),
        r"Failed to (?:get new|allocate) memory reference[^\n]*|Failed to get export ref for UUID|"
        r"Received import response from node id \d+ with failure",
    ),
    Message(
        "imex.channel_missing",
        ("caps-imex-channels", "imex channel"),
        r"nvidia-caps-imex-channels\S*\W[^\n]{0,30}(?:no such file|not found|missing|does not exist|not there)|"
        r"(?:no|missing|without) (?:an? )?IMEX channels?|IMEX channels? [^\n]{0,20}(?:missing|not (?:there|found|"
        r"present|"
        r"created|available))",
    ),
)
