"""The device plugin's configuration: its file, its flags, and the manager that chooses one by a label of the node."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Set by hand: what the plugin prints is what it was told, and "auto" where nobody told it.
    Message(
        "plugin.told_tegra",
        ("devicediscoverystrategy", "device-discovery-strategy", "device_discovery_strategy"),
        r"(?:deviceDiscoveryStrategy|device-discovery-strategy|device_discovery_strategy)\W{1,6}tegra\b",
    ),
    Message("plugin.told_single", "mig_strategy", r"\bMIG_STRATEGY\W{1,4}(?:value\W{1,4})?single\b"),
    Message(
        "host.is_tegra",
        ("jetson", "orin", "xavier", "-tegra", "(release), revision"),
        r"\bJetson\b|\bOrin\b|\bXavier\b|\d-tegra\b|# R\d+ \(release\), REVISION",
    ),
    Message("host.many_cpus", ("cpu:", '"cpu":'), r"^\s*\"?cpu\"?:\s+\"?(?P<count>(?:1[6-9]|[2-9]\d|\d{3,}))\"?,?\s*$"),
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
            "no replicas specified",
            "no resource name specified",
            "but the only valid",
            "devices set as ",
            "type for device",
            "resources must have a",
            "invalid devicelist",
            "channelids must be",
            "devices to be replicated",
            "ids of devices to replicate",
            "match any resource patterns",
            "required flag",
            "invalid configuration(s) given",
            "no resources configuration found",
            "incorrect rdma subsystem network namespace",
        ),
        r"get node error:? (?P<empty>resource name may not be empty)|"
        r"unable to (?:load|finalize|parse) config(?: file)?\b(?! for runtime)(?::? ?(?P<why>.*))?|"
        r"unable to validate flags: (?P<reason>.*)|error parsing config file: (?P<why2>.*)|"
        r"invalid --(?P<option>(?:mig|device-list|device-id|device-discovery)-strategy option.*)|"
        r"(?P<option2>unsupported strategy:? \W{0,2}(?:auto|none|single|mixed|\w+)\b(?=\W*$))|"
        r"(?P<option3>(?:unknown|unsupported|invalid)(?: value)?(?: for)? (?:the )?MIG[ -]?strategy\b.*"
        r"|MIG strategy: (?:unknown|unsupported|invalid) strategy\b.*)|"
        r"(?P<option4>\S+ is not supported with MPS)|(?P<option5>MPS is not supported on .*)|"
        r"(?P<option6>CDI --device-list-strategy options are only supported .*|invalid deviceListStrategy.*)|"
        r"(?P<why3>no (?:replicas|resource name) specified|resources must have a \W{1,2}\w+\W{1,2} field set"
        r"|devices set as .*? but (?:the only valid|a count of).*|(?:unrecognized|unsupported) type for devices? spec.*"
        r"|channelIDs must be .*)|"
        r"(?P<why4>requested \d+ devices to be replicated, but only \d+\b.*|unable to get IDs of devices to replicate.*"
        r"|GPU name \W{1,2}(?P<model>[^'\"]+?)\W{1,2} does not match any resource patterns)|"
        r"(?P<why6>one or more invalid configuration\(s\) given|no resources configuration found"
        r"|incorrect RDMA subsystem network namespace.*)|"
        r"(?P<why5>required flag \W*(?:node-name|namespace)\W* not set)",
    ),
    Message(
        "plugin.config_name_unknown",
        (
            "specified config",
            "all fallbacks failed",
            "no configuration files available",
        ),
        r"specified config (?P<name>\S*) ?does not exist|"
        r"no config was set, no default was provided, and all fallbacks failed|no configuration files available",
    ),
    # The manager tells the plugin of its new file by a signal, and looks for the process by its name.
    Message(
        "plugin.config_unsignalled",
        (
            "error finding pid",
            "error sending signal",
            "signal: no process found",
            "error creating symlink",
            "error removing existing config",
            "error evaluating realpath",
            "list of configuration files",
            "unknown fallback strategy",
            ">: must not be empty",
        ),
        r"error getting list of configuration files: ?(?P<why4>.*)|unknown fallback strategy: ?(?P<why5>.*)|"
        r"invalid <(?P<why6>node-name|node-label|config-file-\w+)>: must not be empty|"
        r"error removing existing config: ?(?P<why2>.*)|error evaluating realpath of \S*config\S*: ?(?P<why3>.*)|"
        r"error creating symlink: symlink \S+ \S*config\S*: (?P<exists>file exists)|"
        r"error finding pid: ?(?P<why>.*)|error sending signal: ?(?P<denied>.*)|signal: no process found",
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
)
