"""Device plugins: NVIDIA's, GPU Feature Discovery, and those of others that follow the same interface."""

from berth.evidence.message import Message

_RESOURCE = r"(?P<resource>[\w.-]+\.[a-z]{2,}/[\w.-]+)"
_RESOURCE2 = r"(?P<resource2>[\w.-]+\.[a-z]{2,}/[\w.-]+)"
_DEVICE = r"(?P<device>(?:MIG-)?GPU-[0-9a-f-]+(?:/\d+/\d+)?(?:::\d+)?|MIG-[0-9a-f-]+(?:::\d+)?)"

MESSAGES: tuple[Message, ...] = (
    # It starts, and serves.
    Message(
        "plugin.registered", "registered device plugin", rf"Registered device plugin (?:for|with)\b(?:.*?{_RESOURCE})?"
    ),
    Message(
        "plugin.sees_new_kubelet",
        "kubelet.sock created, restarting",
        r"kubelet\.sock created, restarting",
    ),
    Message(
        "plugin.no_devices",
        ("no devices found. waiting", "found 0 amdgpus", "no gpu nodes found via properties", "gpu scan update"),
        r"No devices found\. Waiting indefinitely|Found 0 AMDGPUs|No GPU nodes found via properties|"
        r"GPU scan update: [1-9]\d*->0 '",
    ),
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
            "platform detection failed",
        ),
        r"Detected non-NVML platform|Incompatible (?:strategy|platform) detected|invalid device discovery strategy|"
        r"Unsupported platform detected|Detected platform: unknown|platform detection failed",
    ),
    Message(
        "plugin.asks_for_runtime",
        ("did you set the docker default runtime", "did you configure the nvidia container toolkit"),
        r"did you (?:set the docker default runtime|configure the NVIDIA Container Toolkit)",
    ),
    Message(
        "plugin.memory_not_supported",
        "error getting device memory",
        r"(?<!ignoring )error getting device memory(?: info)?: (?:Not Supported|ERROR_NOT_SUPPORTED)",
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
            "fsnotify: ",
            "inotify_init",
            "inotify_add_watch",
            "inotify instances",
            "inotify watches",
            "too many open files",
            "plugin watcher",
            "failed to watch /",
            "failed to create watcher for",
            ".sock to watcher: ",
        ),
        r"fsnotify: .{0,80}?(?:too many open files|no space left on device)|"
        r"too many open files\b.{0,40}?\binotify|Failed to serve [\w.-]+/[\w.-]+: too many open files|"
        r"(?:FS ?watcher|fsnotify watcher|plugin watcher|inotify_init\w*|inotify_add_watch|"
        r"inotify (?:instances|watches))\b.*?(?:too many open files|no space left on device|limit reached)|"
        r"inotify (?:instances|watches) (?:limit|exhausted|used up)|"
        r"failed to watch /\S+ err: (?:no space left on device|too many open files)|"
        r"Failed to create watcher for \S+: (?:no space left on device|too many open files)|"
        r"Failed to add \S+\.sock to watcher: (?:no space left on device|too many open files)",
    ),
    Message(
        "plugin.out_of_files",
        ("too many open files", "file table overflow"),
        r"(?:gRPC server|device-plugins/\S+|device[ -]plugin|podresources)\b.{0,160}?too many open files(?!.*inotify)|"
        r"(?:gRPC server|device-plugins/\S+)\b.{0,160}?file table overflow",
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
        r"^(?!.*device plugin registry)(?:.*?)(?:device-plugins\b/?\S*.{0,200}?permission denied|"
        r"permission denied.*?device-plugins/\S*\.sock|bind: permission denied.*?device-plugins|"
        r"(?<![\w/-])kubelet\.sock\b\W.{0,20}?permission denied)",
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
        r"listen unix (?P<socket>(?!\S*dra\.sock)\S+): (?:bind|listen): (?P<why>.+)|failed to create socket|"
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
            "registering with device plugin manager",
            "failed to be registered at kubelet",
            "dpi grpc server: ",
            "registration failed: ",
            "failed to start plugin's",
            "unable to establish test connection",
            "unable to restart server",
            "could not clean up socket",
            "error stopping plugins",
            "device plugin endpoint: ",
            "make sure that the deviceplugins feature gate",
            "cannot connect to kubelet service",
            "failed dial context at",
            ".sock is already in use",
            "error connecting to grpc server",
        ),
        r"(?:Could not|Failed to|Cannot|Unable to) (?:register|contact)\b"
        r".*?(?:device plugin|Kubelet)(?:.*?: (?P<why>.+))?|error registering with (?:kubelet|device plugin manager)|"
        r"failed to be registered at Kubelet(?:: (?P<why2>.+))?|Failed to setup a DPI gRPC server: (?P<why3>.+)|"
        r"\bRegistration failed: (?P<why4>(?:rpc error|context deadline|connection|dial unix).*)|"
        r"Failed to start plugin's \S+ server\b(?P<why5>.*)|"
        r"unable to establish test connection with \S+ gRPC server: (?P<why6>.+)|unable to restart server (?P<why7>.+)|"
        r"Could not clean up socket \S+: (?P<why8>.+)|error stopping plugins\b.*?: (?P<why9>.+)|"
        r"error starting \S+ device plugin endpoint: (?P<why10>.+)|"
        r"Make sure that the DevicePlugins feature gate is enabled|Cannot connect to kubelet service|"
        r"Failed dial context at \S*device-plugins/\S+\.sock|Socket \S+\.sock is already in use|"
        r"Error connecting to GRPC server: (?P<why11>.+)",
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
        (
            "has repeatedly crashed",
            "crashed with error",
            "start grpc server for",
            "failed to start gpu device manager",
        ),
        r"Failed to start gRPC server for|failed to start GPU device manager|"
        rf"GRPC server for '?{_RESOURCE}'? (?:has repeatedly crashed|crashed with error)",
    ),
    Message("plugin.panic", "panic:", r"panic: (?P<why>.*(?:nvml|nil pointer|device|MIG|index out of range).*)"),
    # Health.
    Message(
        "plugin.xid",
        "xidcriticalerror",
        rf"XidCriticalError:? (?:Xid ?=?)?(?P<xid>\d+)(?: on Device=(?:{_DEVICE})?)?",
    ),
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
        (
            "error waiting for event",
            "waiting for event",
            "failed to start health check",
            "health check: failed",
            "health checks disabled",
            "determine uuid for event",
            "get device handle from uuid",
            "the supported events for",
            "health channel full",
            "device health monitor: ",
            "for nvml eventset",
        ),
        r"Error waiting for event:? ?(?P<why>.*)|[Ff]ailed to start health check:? ?(?P<cause>.*)|"
        r"NVML init failed: (?P<why2>[^;\n]+); health checks disabled|Failed to determine uuid for event\b|"
        r"unable to get device handle from UUID: (?P<why3>[^;\n]+)|"
        r"unable to determine the supported events for\b|Health channel full! Device\b|"
        r"[Ff]ailed to (?:create|start)(?: NVML)? device health monitor: (?P<why4>.+)|"
        r"failed to register device \S+ for NVML eventSet: (?P<why5>.+)",
    ),
    # MIG.
    Message(
        "plugin.mig_profiles_differ",
        (
            "more than one mig device type",
            "migenabled value",
            "strategy single",
            "for mig-strategy=single",
            "same mig mode",
            "-mig-invalid",
            "not all gpus are partitioned",
            "partitions of different styles",
        ),
        r"gpu\.product\b.{0,80}?-MIG-INVALID\b"
        r"|strategy single\b.{0,60}?\b(?:different|several|mixed|unequal) (?:MIG )?profiles|"
        r"[Mm]ore than one MIG device type present|(?:all|not all) (?:devices|GPUs).*?same migEnabled value|"
        r"same migEnabled value|not all GPUs\b.{0,40}?\bsame MIG mode|"
        r"Invalid configuration detected for mig-strategy=single(?!.*\b(?:no|empty) MIG)|"
        r"Not all GPUs are partitioned as expected|Partitions of different styles across GPUs",
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
            "empty mig-enabled devices",
            "but no mig",
            "expected partition count",
        ),
        r"migEnabled=true was not configured correctly|No MIG devices (?:associated|configured)|has no MIG devices|"
        r"requires MIG-enabled devices|invalid MIG configuration|"
        r"does not match expected partition count|"
        r"failed to check for empty MIG-enabled devices|MIG[- ]mode (?:is )?enabled,? but no MIG",
    ),
    Message(
        "plugin.mig_files_unseen",
        (
            "mig capability device paths",
            "mig minors file",
            "instance capability path",
            "read capabilities directory",
            "instance access file",
            "instance capabilities dir",
            "nvidia-caps/nvidia-cap",
        ),
        r"error getting MIG capability device paths|error opening MIG minors file|"
        r"missing MIG (?:GPU|compute) instance capability path:? ?(?P<path>\S*)|"
        r"failed to read capabilities directory|GPU [Ii]nstance access file ?\((?P<path2>[^)\n]+)\)|"
        r"failed to read GPU instance capabilities dir|"
        r"instance device \((?P<path3>\S*nvidia-caps/nvidia-cap\d+)\) not foun[td]",
    ),
    Message(
        "plugin.mig_unplaced",
        ("could not determine device placement", "unable to parse uuid as mig"),
        rf"Could not determine device placement(?: for {_DEVICE})?|unable to parse UUID as MIG device",
    ),
    Message(
        "plugin.mig_name_unknown",
        "does not match any resource patterns",
        r"^(?!.*GPU name\b).*?(?P<profile>[^\s'\"]+)['\"]? does not match any resource patterns",
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
        ("maximum request size for shared resources", "invalid request for sharing gpu"),
        rf"(?:request for '?{_RESOURCE}(?:: (?P<asked>\d+))?.*?)?maximum request size for shared resources is "
        rf"(?P<most>\d+)"
        r"(?:; found (?P<found>\d+))?|"
        rf"invalid request for sharing GPU \([\w-]+\), at most (?P<most2>\d+) {_RESOURCE2} can be requested",
    ),
    Message(
        "plugin.unknown_device",
        ("unknown device:", "invalid allocation request"),
        rf"invalid allocation request for '?{_RESOURCE}'?: unknown device|invalid allocation request.*?unknown device|"
        r"invalid allocation request with non-existing (?:device|GPU partition):? \S+",
    ),
    Message(
        "plugin.device_map_fails",
        (
            "device map",
            "error visiting device",
            "error getting plugins",
            "unable to create cdi handler",
            "unable to create cdi spec file",
            "error creating cdi spec",
            "resource managers",
            "error getting product name for gpu",
            "error checking if mig is enabled on",
            "error getting mig profile",
            "instance id:",
            "error getting pci bus info",
            "error getting device attributes",
            "failed to get numa node for device",
            "call nvml.",
            "error ret=",
        ),
        r"error (?:building (?:\w+ )?device map|visiting device|getting plugins)(?:: ?(?P<why>.*))?|"
        r"failed to construct (?:NVML |Tegra |WSL )?resource managers\b(?!: )|"
        r"unable to create cdi (?:handler|spec file): ?(?P<handler>.*)|error creating CDI spec: ?(?P<spec>.*)|"
        r"error getting product name for GPU: ?(?P<why2>.*)|error checking if MIG is enabled on\b.*?: ?(?P<why3>.*)|"
        r"error getting MIG profiles?\b.*?: ?(?P<why4>.*)|error getting (?:GPU|Compute) Instance ID: ?(?P<why5>.*)|"
        r"error getting PCI Bus Info of device: ?(?P<why6>.*)|error getting device attributes: ?(?P<why7>.*)|"
        r"failed to get NUMA node for device(?: UUID)? \S+: ?(?P<why8>.*)|"
        r"call nvml\.\w+ with error: ?(?P<why9>.*)|nvml get \w[\w ]* error ret= ?(?P<why10>[^,\n]+)",
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
