"""Device plugins: NVIDIA's, GPU Feature Discovery, and those of others that follow the same interface."""

from berth.evidence.message import Message

_RESOURCE = r"(?P<resource>[\w.-]+\.[a-z]{2,}/[\w.-]+)"
_DEVICE = r"(?P<device>(?:MIG-)?GPU-[0-9a-f-]+(?:/\d+/\d+)?(?:::\d+)?|MIG-[0-9a-f-]+(?:::\d+)?)"

MESSAGES: tuple[Message, ...] = (
    # It starts, and serves.
    Message(
        "plugin.registered", "registered device plugin", rf"Registered device plugin (?:for|with)\b(?:.*?{_RESOURCE})?"
    ),
    Message("plugin.no_devices", "no devices found. waiting", r"No devices found\. Waiting indefinitely"),
    Message("plugin.terminated", "received signal", r"Received signal \\?\"?(?P<signal>terminated|killed|interrupt)"),
    # The runtime did not hand the driver to it.
    Message(
        "plugin.no_nvml",
        (
            "could not load nvml library",
            "library_not_found",
            "error loading nvml",
        ),
        r"could not load NVML library|ERROR_LIBRARY_NOT_FOUND|error loading NVML",
    ),
    # The API server refuses it what it asks of its node. Accounts that carry a component's name are the operator's.
    Message(
        "plugin.rights_missing",
        "is forbidden: user",
        r"^(?=.*(?:device-?plugin|\bplugin\.go|\bpodmanager\.go|\bregister\.go|\bnodelabel\w*\.go|node annotation))"
        r".*is forbidden: User \W{0,2}system:serviceaccount:"
        r"(?![\w-]+:[\w-]*(?:gpu-operator|nvidia|node-feature|nfd|gpu-feature|dcgm|mig-manager))"
        r"(?P<account>[\w-]+:[\w.-]+)\W{1,3}cannot (?P<verb>\w+) resource \W{0,2}(?P<what>[\w./-]+)",
    ),
    Message(
        "plugin.not_nvml_platform",
        (
            "non-nvml platform",
            "incompatible strategy detected",
            "invalid device discovery strategy",
            "incompatible platform detected",
            "unsupported platform detected",
            "detected platform: unknown",
        ),
        r"Detected non-NVML platform|Incompatible (?:strategy|platform) detected|invalid device discovery strategy|"
        r"Unsupported platform detected|Detected platform: unknown",
    ),
    Message(
        "plugin.asks_for_runtime",
        ("did you set the docker default runtime", "did you configure the nvidia container toolkit"),
        r"did you (?:set the docker default runtime|configure the NVIDIA Container Toolkit)",
    ),
    Message(
        "plugin.memory_not_supported",
        "error getting device memory",
        r"error getting device memory(?: info)?: (?:Not Supported|ERROR_NOT_SUPPORTED)",
    ),
    Message(
        "plugin.no_minor_number",
        "device minor number",
        r"device minor number: (?:Not Supported|ERROR_NOT_SUPPORTED)",
    ),
    # It watches directories and talks to the kubelet.
    Message(
        "plugin.watcher_limit",
        (
            "fs watcher",
            "fswatcher",
            "fsnotify watcher",
            "inotify_init",
            "inotify_add_watch",
            "inotify instances",
            "inotify watches",
            "too many open files",
            "plugin watcher",
        ),
        r"too many open files\b.{0,40}?\binotify|"
        r"(?:FS ?watcher|fsnotify watcher|plugin watcher|inotify_init\w*|inotify_add_watch|"
        r"inotify (?:instances|watches))\b.*?(?:too many open files|no space left on device|limit reached)|"
        r"inotify (?:instances|watches) (?:limit|exhausted|used up)",
    ),
    Message(
        "plugin.watcher_no_directory",
        ("fs watcher", "fswatcher", "hostpath type check failed"),
        r"Failed to created? FS ?watcher\b(?!.*(?:too many open|no space|permission denied))|"
        r"FS ?watcher.*?no such file or directory|"
        r"hostPath type check failed: \S*/(?:device-plugins|plugins_registry|plugins|pod-resources)\b",
    ),
    Message(
        "plugin.socket_denied",
        ("kubelet.sock", "device-plugins"),
        r"device-plugins\b/?\S*.{0,200}?permission denied|permission denied.*?device-plugins/\S*\.sock|"
        r"bind: permission denied.*?device-plugins",
    ),
    Message(
        "plugin.socket_absent",
        ("kubelet.sock", "device-plugins/"),
        r"device-plugins/kubelet\.sock\b.*?(?:no such file or directory|(?P<refused>connection refused)|"
        r"not a directory)|(?:no such file|(?P<refused2>connection refused)).*?device-plugins/kubelet\.sock",
    ),
    Message(
        "plugin.cannot_bind",
        ("failed to create socket", "address already in use", "listen unix", "could not start device plugin"),
        r"listen unix (?P<socket>\S+): (?:bind|listen): (?P<why>.+)|failed to create socket|"
        r"Could not start device plugin for '?[\w./-]+'?: (?P<reason>.+)",
    ),
    Message(
        "plugin.cannot_register",
        (
            "could not register",
            "could not contact",
            "failed to register",
            "failed to contact",
            "cannot register",
            "cannot contact",
            "unable to register",
            "unable to contact",
            "error registering with kubelet",
        ),
        r"(?:Could not|Failed to|Cannot|Unable to) (?:register|contact)\b"
        r".*?(?:device plugin|Kubelet)(?:.*?: (?P<why>.+))?|error registering with kubelet",
    ),
    Message(
        "plugin.api_not_served",
        ("unknown service", "unimplemented", "supported by kubelet"),
        r"(?:Unimplemented|unknown service)\b.*?(?:deviceplugin|v1beta1|v1alpha|Registration)|"
        r"(?:register|device plugin).*?(?:Unimplemented|unknown service)|"
        r"requested API version .*? is not supported by kubelet|API version .*?not supported by kubelet",
    ),
    Message(
        "plugin.bad_name",
        ("bad registration request", "invalid resource name", "the resourcename"),
        rf"Bad registration request from device plugin|the ResourceName \"?{_RESOURCE}\"? is invalid|"
        r"(?:plugin|resource).*?: invalid resource name\b",
    ),
    Message(
        "plugin.grpc_crashes",
        ("has repeatedly crashed", "crashed with error", "start grpc server for"),
        r"Failed to start gRPC server for|"
        rf"GRPC server for '?{_RESOURCE}'? (?:has repeatedly crashed|crashed with error)",
    ),
    Message("plugin.panic", "panic:", r"panic: (?P<why>.*(?:nvml|nil pointer|device|MIG|index out of range).*)"),
    # Health.
    Message("plugin.xid", "xidcriticalerror", rf"XidCriticalError: Xid=(?P<xid>\d+)(?: on Device=(?:{_DEVICE})?)?"),
    Message(
        "plugin.marked_unhealthy",
        ("marked unhealthy", "marking", "as unhealthy", "will go unhealthy", "went unhealthy"),
        rf"(?:'?{_RESOURCE}'? )?device marked unhealthy(?:: {_DEVICE})?|marking (?:it|all devices|"
        rf"device) (?:as )?unhealthy"
        rf"|Marking device \S+ as unhealthy|devices? (?:will go|went) unhealthy",
    ),
    Message("plugin.too_old_for_health", "too old to support", r"too old to support heal\w+"),
    Message(
        "plugin.health_events_fail",
        ("error waiting for event", "waiting for event", "failed to start health check", "health check: failed"),
        r"Error waiting for event:? ?(?P<why>.*)|[Ff]ailed to start health check:? ?(?P<cause>.*)",
    ),
    # MIG.
    Message(
        "plugin.mig_profiles_differ",
        ("more than one mig device type", "migenabled value", "strategy single"),
        r"strategy single\b.{0,60}?\b(?:different|several|mixed|unequal) (?:MIG )?profiles|"
        r"[Mm]ore than one MIG device type present|(?:all|not all) (?:devices|GPUs).*?same migEnabled value|"
        r"same migEnabled value",
    ),
    Message(
        "plugin.mig_empty",
        (
            "was not configured correctly",
            "no mig devices associated",
            "no mig devices configured",
            "has no mig devices",
            "requires mig-enabled devices",
            "invalid mig configuration",
        ),
        r"migEnabled=true was not configured correctly|No MIG devices (?:associated|configured)|has no MIG devices|"
        r"requires MIG-enabled devices|invalid MIG configuration",
    ),
    Message(
        "plugin.mig_unplaced",
        ("could not determine device placement", "unable to parse uuid as mig"),
        rf"Could not determine device placement(?: for {_DEVICE})?|unable to parse UUID as MIG device",
    ),
    Message(
        "plugin.mig_name_unknown",
        ("does not match any resource patterns", "resource patterns"),
        r"(?P<profile>\S+)['\"]? does not match any resource patterns",
    ),
    Message(
        "plugin.mig_denied",
        ("insufficient permissions", "insufficient pemmissions", "error_no_permission"),
        r"(?:MIG|device memory|visiting device|nvidia-caps|GpuInstance|device map)"
        r".*?(?:Insufficient Pe[rm]missions|ERROR_NO_PERMISSION)",
    ),
    # Allocation.
    Message(
        "plugin.preferred_fails",
        (
            "getpreferredallocation",
            "preferred allocation",
            "device link information",
            "unable to retrieve list of available devices",
        ),
        r"GetPreferredAllocation rpc failed|error getting list of preferred allocation|"
        r"unable to get device link information|Unable to retrieve list of available devices:? ?(?P<why>.*)",
    ),
    Message(
        "plugin.preferred_lost_gpu",
        ("gpu is lost", "gpu_is_lost", "fallen off"),
        r"(?:preferred ?allocation|list of available devices|device link|creating nvml\.Device|nvml)"
        r".*?(?:GPU[ _]is[ _]lost|fallen off)",
    ),
    Message(
        "plugin.shared_request_too_large",
        "maximum request size for shared resources",
        rf"(?:request for '?{_RESOURCE}(?:: (?P<asked>\d+))?.*?)?maximum request size for shared resources is "
        rf"(?P<most>\d+)"
        r"(?:; found (?P<found>\d+))?",
    ),
    Message(
        "plugin.unknown_device",
        ("unknown device:", "invalid allocation request"),
        rf"invalid allocation request for '?{_RESOURCE}'?: unknown device|invalid allocation request.*?unknown device",
    ),
    # Plugins that read the scheduler's decision from annotations (HAMi, Volcano, and kin).
    Message(
        "plugin.annotation_race",
        (
            "device number not matched",
            "no binding pod found",
            "empty id from pod annotation",
            "node lock not set",
            "no pending pod",
            "device request not found",
            "node mismatch for pod",
            "no assume timestamp for pod",
            "unknown device id: no-gpu-has",
        ),
        r"device number not matched|no binding pod found|empty id from pod annotation|[Nn]ode lock not set|"
        r"no pending pod found|device request not found|[Nn]ode mismatch for pod \S+ pick up|"
        r"[Nn]o assume timestamp for pod|unknown device id: no-gpu-has-",
    ),
    Message(
        "plugin.device_map_fails",
        ("device map", "error visiting device", "error getting plugins"),
        r"error (?:building (?:\w+ )?device map|visiting device|getting plugins): ?(?P<why>.*)",
    ),
    # Configuration.
    Message(
        "plugin.config_refused",
        (
            "resource name may not be empty",
            "unable to load config",
            "unable to finalize config",
            "unable to validate flags",
            "error parsing config file",
            "unable to parse config",
            "-strategy option",
            "unsupported strategy",
            "mig strategy",
            "mig-strategy",
            "migstrategy",
            "not supported with mps",
            "mps is not supported on",
        ),
        r"get node error:? (?P<empty>resource name may not be empty)|"
        r"unable to (?:load|finalize|parse) config(?: file)?\b(?::? ?(?P<why>.*))?|"
        r"unable to validate flags: (?P<reason>.*)|error parsing config file: (?P<why2>.*)|"
        r"invalid --(?P<option>(?:mig|device-list|device-id|device-discovery)-strategy option.*)|"
        r"(?P<option2>unsupported strategy:? \W{0,2}(?:auto|none|single|mixed|\w+)\b(?=\W*$))|"
        r"(?P<option3>(?:unknown|unsupported|invalid)(?: value)?(?: for)? (?:the )?MIG[ -]?strategy\b.*)|"
        r"(?P<option4>\S+ is not supported with MPS)|(?P<option5>MPS is not supported on .*)",
    ),
    Message(
        "plugin.config_name_unknown",
        ("specified config", "all fallbacks failed", "no configuration files available"),
        r"specified config (?P<name>\S*) ?does not exist|"
        r"no config was set, no default was provided, and all fallbacks failed|no configuration files available",
    ),
    Message(
        "plugin.config_map_absent",
        ("configmap", "config map"),
        r"MountVolume\.SetUp failed for volume \S*(?:slic|plugin|nvidia|gpu|mps|config)\S* ?: configmap \\?\""
        r"(?P<name>[\w.-]*(?:slic|device-plugin|plugin-config|nvidia|gpu|mps)[\w.-]*)\\?\" not found|"
        r"(?i:config ?map) \\?\"?(?P<other>[\w./-]*(?:slic|device-plugin|plugin-config|mps)[\w.-]*)\\?\"? not found",
    ),
    Message(
        "plugin.config_ignored",
        ("supported in the config", "renamebydefault"),
        r"(?P<name>renameByDefault) (?:has no effect|(?:is|appears to be|seems to be) ignored)|"
        r"(?:Customizing|Setting) the '(?P<option>\w+)' field.*?not (?:yet )?supported in the config",
    ),
    # GPU Feature Discovery.
    Message(
        "gfd.no_labels",
        ("no valid resources detected", "no labels generated", "no labels will be created", "creating empty labels"),
        # The plugin says "creating a null CDI handler" after the same words; that is not about labels.
        r"[Nn]o valid resources detected(?!,? creating a null)|no labels (?:generated|will be created)",
    ),
    Message(
        "gfd.cannot_write",
        (
            "nodefeature",
            "features.d",
            "output labels",
            "outputting labels",
            "a valid label must",
            "ignoring label",
            "is not allowed",
            "failed to advertise labels",
            "invalid label",
        ),
        r"nodefeatures(?:\.nfd[\w.-]*)? .*?(?:forbidden|not found|could not find)|"
        r"(?:error|failed)\b.{0,160}?(?:features\.d/gfd|output(?:ting)? labels)|"
        r"features\.d.*?(?:permission denied|no such file|read-only)|failed to create NodeFeature object|"
        r"failed to advertise labels|Namespace '?nvidia\.com'? is not allowed|"
        r"(?:nvidia\.com|label).{0,160}?(?:a valid label must|invalid label value)|"
        r"[Ii]gnoring label .*?nvidia\.com\S*.*?invalid",
    ),
    Message(
        "gfd.models_differ",
        "multiple device types detected",
        r"Multiple device types detected:? ?\[?(?P<models>[^\]]*)",
    ),
)
