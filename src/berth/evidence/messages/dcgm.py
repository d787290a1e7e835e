"""DCGM, its hostengine, and dcgm-exporter; agents that build on them."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "dcgm.profiling_absent",
        (
            "failed to load module 8",
            "module of dcgm that is not currently loaded",
            "profiling is not supported",
            "dcgm_profiling_sr",
            "not collecting dcp metrics",
            "profiling module returned",
            "profiling module failed",
            "metric not enabled",
            "metrics not enabled",
            "dcgm_fi_prof",
            "profiling module",
            "profile module",
            "cannot be collected in a single pass",
            "dcgm_st_profiling_",
        ),
        r"DCGM_ST_PROFILING_(?:LIBRARY_ERROR|NOT_SUPPORTED|MULTI_PASS)"
        r"|profiling metrics cannot be collected in a single pass|Failed to load module 8|"
        r"module of DCGM that is not currently loaded|Profiling is not supported|"
        r"DCGM_PROFILING_SR_\w+ failed|Not collecting DCP metrics|[Pp]rofiling module (?:returned|failed)|"
        r"(?:fail\w* to|unable to|cannot|can't|could not) (?:load|get) (?:the )?(?:DCGM )?profil(?:ing|e) module\b|"
        r"\b[Pp]rofil(?:ing|e) module\b.{0,40}?(?:\bnot|n't|\bnever|\bfails? to|\bstopped|\bcannot) (?:be )?load\w*|"
        r"DCGM_FI_PROF_\w+.*?(?:DCP metrics|metrics?) not enabled|"
        r"DCGM_FI_PROF_\w+ (?:is |are )?(?:missing|absent|not (?:available|supported|exported))",
    ),
    Message(
        "dcgm.profiling_module_state",
        "profiling",
        r"^\W*8\W+Profiling\W+(?P<state>Failed to load|Not loaded|Denylisted|Blacklisted)",
    ),
    Message(
        "dcgm.profiling_taken",
        ("profiling", "watch fields", "watching fields"),
        r"[Pp]rofiling.*?(?:in use by|another (?:client|tool|process|application))|"
        r"(?:watch|watching) fields.*?(?:already in use|in use by another)",
    ),
    Message(
        "dcgm.hostengine_gone",
        ("host engine", "hostengine", "unable to establish a connection", "dcgm_st_connection_not_valid"),
        r"DCGM_ST_CONNECTION_NOT_VALID|Host ?engine connection invalid"
        r"|unable to establish a connection to the specified host|"
        r"(?:[Ee]rror|[Ff]ailed|[Uu]nable|could ?n[o']t).{0,40}?connect\w*.{0,40}?(?:nv-)?host ?engine|"
        r"(?:nv-)?host ?engine.{0,60}?(?:connection refused|not running|timed? ?out|no such host)",
    ),
    Message(
        "dcgm.library_absent",
        (
            "libdcgm.so",
            "dcgm initialization error",
            "error starting nv-hostengine",
            "dcgm library",
            "failed to start host engine server",
            "while waiting for sigusr1",
            "cachemanager init",
            "failed to start dcgm server",
            "error while loading shared libraries",
            "symbol lookup error",
            "relocation error: ",
            "not found (required by ",
            "host engine already running with pid",
            "the nvvs binary was not found",
            "failed to start the host engine",
            "unable to terminate host engine",
            "unable to complete diagnostic for group",
            "error when executing the diagnostic",
            "return: the group is not found",
            "dcgm_st_init_error",
            "dcgm_st_library_not_found",
            "dcgm_st_ver_mismatch",
            "dcgm_st_insufficient_driver",
            "dcgm_st_nvml_not_loaded",
            "dcgm_st_nvvs_binary_not_found",
            "libdcgmmodule",
        ),
        r"DCGM_ST_(?:INIT_ERROR|LIBRARY_NOT_FOUND|VER_MISMATCH|INSUFFICIENT_DRIVER_VERSION|NVML_NOT_LOADED"
        r"|NVVS_BINARY_NOT_FOUND)|libdcgmmodule\w+\.so\S*: (?:cannot open|undefined symbol)"
        r"|Unable to (?:terminate host engine|complete diagnostic for group)|Error when executing the diagnostic"
        r"|Return: The Group is not found|Host engine already running with pid|The NVVS binary was not found in"
        r"|Failed to start the host engine"
        r"|libdcgm\.so[.\d]*(?::|.*?(?:cannot open|not [Ff]ound))|DCGM initialization error|"
        r"[Ee]rror starting nv-hostengine|CacheManager Init Failed|Failed to start host engine server"
        r"|Got error \d+ while waiting for SIGUSR1|Failed to start DCGM Server|"
        # What the loader says of DCGM's programs: a library that is missing, or of another release.
        r"(?:dcgm-exporter|nv-hostengine|dcgmi|nvvs|dcgmproftester\w*): (?:error while loading shared libraries|"
        r"symbol lookup error|relocation error: |/\S+: version \S+ not found \(required by )",
    ),
    Message(
        "dcgm.versions_differ",
        (
            "version mismatch",
            "different version of dcgm",
            "api version",
            "requested function was not found",
            "driver version is insufficient for this api",
        ),
        r"[Ii]nstalled driver version is insufficient for this API|[Tt]he requested function was not found|"
        r"(?:DCGM|dcgm|hostengine|host engine).*?[Vv]ersion mismatch|"
        r"API version.*?(?:dcgm|hostengine).*?mismatch|"
        r"(?:exporter|device information|DCGM|hostengine|collect metrics)\b.{0,120}?API version mismatch",
    ),
    Message(
        "dcgm.fields_refused",
        (
            "error watching fields",
            "failed to watch metrics",
            "failed to watch fields",
            "error setting watches",
            "could not find dcgm field",
            "unknown field",
            "unknown dcgm field",
            "failed to watch dcgm fields",
            "field id is not supported by the api",
            "find prometheus metric type",
            "watches to dcgm",
            "dcgm_st_requires_root",
            "dcgm_st_unknown_field",
        ),
        r"(?P<why2>DCGM_ST_REQUIRES_ROOT)|DCGM_ST_UNKNOWN_FIELD|Unknown field identifier"
        r"|given field ID is not supported by the API|[Cc]ould not find Prometheus metric type"
        r"|Unable to add field watches to DCGM|"
        r"(?:[Ee]rror watching fields|[Ff]ailed to watch (?:metrics|fields|DCGM fields)|Error setting watches)"
        r".*?(?P<why>Host engine is running as non-root|Feature not supported|Bad parameter[\w ]*|not supported|"
        r"unrecoverable error|.*)|"
        r"[Cc]ould not find DCGM [Ff]ield|DCGM_FI_\w+\W.{0,20}?unknown field|unknown (?:DCGM )?field:? \S*DCGM_FI_",
    ),
    Message(
        "dcgm.collect_fails",
        ("failed to collect metrics", "failed to collect gpu metrics", "failed to collect"),
        r"[Ff]ailed to collect (?:gpu )?metrics",
    ),
    Message(
        "dcgm.counters_unreadable",
        (
            "malformed csv",
            "malformed configmap",
            "could not retrieve configmap",
            "wrong number of fields",
            "failed to convert to string",
            "failed to parse",
            "failed to read",
            "could not read",
            "could not parse",
        ),
        r"[Mm]alformed (?:csv|CSV|configmap contents)|Could not retrieve ConfigMap|"
        r"record on line \d+: wrong number of fields|"
        r"\bDCGM_FI_\w+.*?FAILED TO CONVERT TO STRING|"
        r"(?:[Ff]ailed to (?:parse|read)|[Cc]ould not (?:read|parse)).*?(?:csv|metrics? file|counters|prometheus)",
    ),
    Message(
        "dcgm.pods_unmapped",
        (
            "pod-resources",
            "podresources",
            "pod resources",
            "kubelet socket",
            "of the wrong pod",
            "pod label",
            "namespace label",
            "container label",
            "dcgm",
        ),
        r"(?:metrics|figures) of the wrong pod|"
        r"(?:[Ff]ail\w*|[Ee]rror|[Uu]nable|\b[Nn]o)\b.{0,160}?"
        r"(?:pod-resources|[Pp]od ?[Rr]esources|[Kk]ubelet socket)|"
        r"pod-resources/kubelet\.sock.*?(?:no such file|refused|permission|deadline)|"
        r"(?:[Nn]o|missing|empty) .{0,30}(?:pod|namespace) labels? .{0,40}(?:metrics|dcgm)|"
        r"\b(?:pod|namespace)\b.{0,40}\b(?:missing|absent|empty|not (?:set|there|shown))\b.{0,40}dcgm|"
        r"(?:metrics|DCGM|dcgm)\b.{0,40}\b(?:without|lack|miss)\b.{0,20}\b(?:pod|namespace) labels?\b|"
        r"dcgm\w*\b.{0,60}?\bexported_pod\b|"
        r"\b(?:pod|namespace|container) labels?\b.{0,40}\b(?:missing|absent|empty|not (?:set|there|shown))\b"
        r".{0,40}\b(?:MIG|GPU|exporter|metrics)\b|"
        r"\b(?:MIG|GPU|exporter|metrics)\b.{0,60}\b(?:without|lacks?|ha(?:s|ve) no)\b.{0,20}"
        r"\b(?:pod|namespace|container) labels?\b|"
        r"\b(?:exporter|metrics?|series)\b.{0,80}?\b(?:pod|namespace|container) labels?\b.{0,20}?"
        r"(?:\bnot|n't) (?:coming|come|showing|show|shown|set|there|present|populated|attached|added|filled)\b|"
        r"\b(?:[Pp]od|[Nn]amespace|[Cc]ontainer) labels?\b.{0,40}?\b(?:missing|absent|empty|lost|"
        r"(?:not|n't) (?:coming|come|showing|show|shown|set|there|present|populated))\b.{0,40}?"
        r"\b(?:e\.g|dcgm|DCGM|exporter|GPU|metrics?)",
    ),
    Message(
        "dcgm.scrape_fails",
        (":9400", "9400->", "9400/metrics"),
        r":9400\S*.*?(?:i/o timeout|context deadline exceeded|connection refused|broken pipe|EOF)|9400->.*?i/o timeout",
    ),
    # The exporter serves, and nobody fetches: what Prometheus selects by does not fit.
    Message(
        "dcgm.not_selected",
        ("servicemonitor", "podmonitor"),  # kubectl's table of them is empty, or people say so
        r"get (?:service|pod)monitors?\b[^\n]*\n[^\n]*No resources found|"
        r"(?:Service|Pod)Monitor\b.{0,80}?\b(?:not (?:picked up|selected|matched|discovered|scraped)|"
        r"(?:does not|doesn't|do not|don't) match|is ignored)|"
        r"(?:\bnot|n't) (?:see|find|have|create|get|deploy)\w* (?:any|a|the) (?:\w+ )?(?:Service|Pod)Monitor\b|"
        r"\b(?:there is|there's|with) no (?:Service|Pod)Monitor\b|"
        r"(?:Service|Pod)Monitor\b(?! CRD).{0,20}?\b(?:is|was|are) (?:not (?:created|deployed|there|present)"
        r"|missing)\b",
        lines=2,
    ),
    Message(
        "dcgm.cannot_listen",
        ("failed to listen and serve", "listen tcp", "listen and server"),
        r"(?:[Ff]ailed to [Ll]isten and [Ss]erver?\b|listen tcp)"
        r".*?\b9400\b(?:.*?(?P<why>missing port|address already in use|permission denied))?",
    ),
    Message(
        "dcgm.xid_stays",
        "xid_error",
        r"DCGM_FI_DEV_XID_ERRORS?\b(?:\{[^}]*\})?(?:.{0,60}?\b"
        r"(?:still|stays|remains|keeps|latched|never (?:resets|clears)|not (?:reset|cleared)|for (?:days|hours|weeks)"
        r"|no Xid in)\b|\s*(?:!=|>=?)\s*\d)",
    ),
    Message(
        "dcgm.exporter_oom",
        ("dcgm-exporter", "nv-hostengin", "dcgm exporter"),
        r"(?:^[ \t]*(?:\S+[ \t]+)?\S*dcgm-exporter\S*[ \t]+\d/\d[^\n]*\n(?:[^\n]*\n){0,6}?[^\n]*OOMKilled|"
        r"Killed process \d+ \((?:dcgm-exporter|nv-hostengine?)\)|(?:dcgm-exporter|nv-hostengine)\S*.*?OOMKilled|"
        r"OOMKilled.*?dcgm-exporter|dcgm-exporter\b.*?(?:memory leak|out of memory)|"
        r"(?:dcgm.exporter|nv-hostengine)\b.{0,20}?\b(?:memory|RSS)\b.{0,20}?\b(?:grow\w*|leak\w*|climbs|increas\w+))",
        lines=8,
    ),
    # HAMi's figures of use by container: a library that asks the driver in a way that newer cards do not answer.
    Message(
        "hami.use_is_zero",
        ("hami_container_core_util", "hami_container_device_utilization", "device_utilization_desc_of_container"),
        r"(?:hami_container_(?:core_util|device_utilization)\w*|Device_utilization_desc_of_container)"
        r"(?:\{[^}\n]*\})?\s+0(?:\.0+)?\s*$",
    ),
    Message(
        "hami.host_busy",
        ("hami_host_gpu_utilization", "hostcoreutilization"),
        r"(?:hami_host_gpu_utilization\w*|HostCoreUtilization)(?:\{[^}\n]*\})?\s+(?!0(?:\.0+)?\s*$)\d[\d.]*\s*$",
    ),
    # A crash in the library, below the exporter's own code.
    Message(
        "dcgm.crashes",
        ("sigsegv", "segmentation violation", "unexpected signal during runtime", "signal arrived during cgo"),
        r"(?:SIGSEGV|segmentation violation|unexpected signal during runtime|signal arrived during cgo)[^\n]*\n"
        r"(?:[^\n]*\n){0,10}?[^\n]*\b(?:go-dcgm|dcgm-exporter|nv-hostengine)\b",
        lines=12,
    ),
    Message(
        "dcgm.exporter_hangs",
        ("dcgm-exporter", "exporter"),
        r"DCGM_FI\w+.*?\bexporter (?:hangs|hung|is stuck)|"
        r"dcgm-?exporter.*?(?:\bhangs?\b|\bhung\b|"
        r"stuck(?! (?:in|at) (?:the )?(?:Init|Pending|Container|Terminat|Crash))|no (?:new )?metrics|stale metrics|"
        r"stops? (?:reporting|collecting))",
    ),
    # Other programs that show figures: scripts of DCGM's own bindings, exporters that call nvidia-smi.
    Message(
        "dcgm.program_fails",
        (
            "dcgmprometheus",
            "pydcgm",
            "dcgm_structs",
            "exporter.go:",
            "dcgm-exporter: line ",
            "was collected before with the same name",
        ),
        r"DCGM_\w+[^\n]{0,400}was collected before with the same name and label values|\b(?:DcgmPrometheus|pydcgm"
        r"|dcgm_structs)\b.{0,80}(?:Error|object has no attribute)|"
        r"\bexporter\.go:\d+\W.{0,20}\b(?:error|err)=|dcgm-exporter: line \d+: \S+: command not found",
    ),
    Message(
        "dcgm.mig_unseen",
        ("metrics", "dcgm", "gpu_util", "utilisation", "utilization", "figures"),
        r"(?:\b[Nn]o|\b[Mm]issing|\bwithout)\b.{0,30}?\b(?:metrics|figures)\b.{0,40}?\bMIG\b|"
        r"\bMIG\b.{0,60}?\b(?:metrics|DCGM_FI\w+)\b.{0,20}?\b"
        r"(?:missing|absent|not (?:exported|reported|shown|available))",
    ),
    # NVML has no utilisation of a GPU that is in MIG mode.
    Message(
        "dcgm.mig_no_utilisation",
        ("gpu_util", "gpu-util", "copy_util", "utilisation", "utilization", "0% gpu", "0% usage"),
        r"^(?=.*\bMIG\b).*?(?:\b(?:only|always|just)\b.{0,20}?\b0% (?:GPU )?(?:usage|util\w*)|"
        r"\b(?:no|missing|without)\b.{0,30}?(?:GPU[_-]UTIL|COPY_UTIL|utili[sz]ation)|"
        r"(?:GPU[_-]UTIL|COPY_UTIL|utili[sz]ation)\b.{0,60}?\b(?:missing|absent|empty|doesn'?t|does not|isn'?t|cannot|"
        r"not (?:reported|exported|shown|available|supported|there|collected)|"
        r"(?:(?:is|are|stays?|reads?|shows?) (?:always )?)?(?:0|N/A|nothing)\b))",
    ),
    # The libraries that read NVSwitches; DCGM looks for them whether there are any or not.
    Message(
        "dcgm.switch_library_absent",
        (
            "could not load nscq",
            "could not load nvsdm",
            "attachtonscq() returned",
            "attachtonvsdm() returned",
            "not attached to nvswitches",
            "not attached to nvsdm",
            "not attached to nscq",
            "readnvswitchstatusallswitches() returned",
            "could not initialize switch manager",
            "libnvidia-nscq",
            "libnvsdm",
        ),
        r"Could not load (?:NSCQ|NVSDM)|AttachToN(?:scq|vsdm)\(\) returned -?[1-9]|Not attached to (?:NvSwitches|NVSDM|"
        r"NSCQ)|(?:libnvidia-nscq|libnvsdm)\.so\S*: cannot open shared object|"
        r"ReadNvSwitchStatusAllSwitches\(\) returned|Could not initialize switch manager",
    ),
    Message(
        "dcgm.nvml_absent",
        ("nvml doesn't exist", "nvml shared library", "libnvidia-ml"),
        r"NVML doesn't exist on this system|(?:dcgm|DCGM).*?libnvidia-ml\.so.*?(?:not found|cannot open)"
        r"|DCGM failed to load libnvidia-ml",
    ),
    Message(
        "dcgm.wrong_values",
        ("4294967295", "9223372036854775794", "18446744073709551"),
        r"DCGM_FI_\w+.*?\b(?:4294967295|9223372036854775794|18446744073709551\d{3})\b",
    ),
)
