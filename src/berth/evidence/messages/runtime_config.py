"""Configuration of containerd, CRI-O, Docker and the NVIDIA runtime: which runtimes there are, and from which file."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Which runtimes there are.
    Message(
        "runtime.no_handler",
        (
            "no runtime for",
            "find runtime handler",
            "runtimehandler",
            "runtime handler",
            "unknown runtime ",
            "invalid runtime ",
            "unknown runtime type",
            "default oci runtime",
            "requested oci runtime",
            "requested docker runtime",
            "default runtime nvidia",
            "specified default runtime ",
        ),
        r"no runtime for \W*(?P<handler>[\w.-]+)\W* is configured"
        r"|(?:failed|unable) to find runtime handler \W*(?P<handler2>[\w.-]+)"
        r"|RuntimeHandler \W*(?P<handler3>[\w.-]+)\W* not supported"
        r"|runtime handler \W*(?P<handler4>[\w.-]+)\W* (?:is )?not (?:found|supported|configured|registered)"
        r"|unknown (?:or invalid )?runtime (?:name|specified|type):? \W*(?P<handler5>[\w.-]+)"
        r"|invalid runtime name:? \W*(?P<handler6>[\w.-]+)"
        r"|(?:default|requested) OCI runtime \W*(?P<handler7>nvidia[\w.-]*)\W* (?:is )?not (?:found|available)"
        r"|requested docker runtime\s+\W{0,3}(?P<handler8>[\w.-]+)\W{0,3} was not found"
        r"|requires runtime handler \W*(?P<handler9>[\w.-]+)\W*, but [\w-]+ does not have it"
        r"|default runtime (?P<handler10>nvidia[\w.-]*) was not found"  # K3s, which looks for them itself
        r"|specified default runtime \W?(?P<handler11>[\w.-]+)\W? does not exist",
        lines=2,
    ),
    # Docker's own configuration names the NVIDIA runtime: a Docker that does not know it has not read it.
    Message(
        "runtime.docker_names_nvidia",
        ('nvidia-container-runtime"', "nvidia-container-runtime'"),
        r"[\"']path[\"']\s*:\s*[\"'][\w./-]*nvidia-container-runtime[\"']",
    ),
    Message(
        "runtime.class_missing",
        "runtimeclass",
        r"RuntimeClass(?:es)?(?:\.node\.k8s\.io)? \W*(?P<name>[\w.-]+)\W* not found",
    ),
    Message("runtime.type_missing", "runtime.name must be set", r"Runtime\.Name must be set"),
    Message(
        "runtime.config_refused",
        (
            "failed to load toml",
            "failed to unmarshal toml",
            "containerd: toml: ",
            "expected containerd config version",
            "invalid disabled plugin uri",
            "higher than root config version",
            "load required plugin ",
            "invalid plugin key uri",
        ),
        r"containerd: toml: (?P<why3>[^\n]{3,160})"
        r"|failed to (?:load|unmarshal) TOML(?: from (?P<path>[^\s:]+))?(?:: (?P<why>[^\n]{0,160}))?"
        r"|expected containerd config version equal to or less than \W*(?P<most>\d)\W*, got \W*(?P<version>\d)"
        r"|drop-in config (?:\S+ )?version (?P<drop>\d+) (?:is )?higher than root config version (?P<root>\d+)"
        r"|load required plugin (?P<why2>io\.containerd\.[^\n]{0,160})"
        r"|invalid disabled plugin URI|invalid plugin key URI",
    ),
    Message(
        "runtime.key_ignored",
        "unknown key in toml",
        r"Ignoring unknown key in TOML(?:.*\bkey=\W*(?P<key>[\w. -]+?)\W*(?:\w+=|$))?",
    ),
    Message(
        "runtime.cri_off",
        ("unknown service runtime.v1", "api is not implemented", "cri plugin", "api for endpoint"),
        r"unknown service runtime\.v1(?:alpha2)?\.(?:Runtime|Image)Service|CRI v1 \w+ API is not implemented"
        r"|validate CRI v1 \w+ API for endpoint [^\n]{0,120}\bUnimplemented\b"
        r"|\bcri plugin (?:is |was )?(?:disabled|not enabled)",
    ),
    Message(
        "runtime.cri_unloadable",
        ("failed to load plugin", "invalid plugin config", "no corresponding runtime configured"),
        r"failed to load plugin\W+io\.containerd\.(?:grpc\.v1\.cri|cri\.v1\.\w+)\b"
        r"(?:[^\n]*?\berror=\W*(?P<why>[^\n]{0,240}))?"
        r"|failed to load plugin\b[^\n]{0,400}\bid=\W{0,3}io\.containerd\.(?:grpc\.v1\.cri|cri\.v1\.\w+)\b"
        r"|invalid plugin config: (?P<why2>[^\n]{0,240})"
        r"|no corresponding runtime configured in [^\n]{0,160}",
    ),
    Message(
        "runtime.shim_missing",
        "containerd-shim-",
        r"exec: \W{0,3}(?P<type2>containerd-shim-[\w-]+)\W{1,6}executable file not found"
        r"|runtime \W*(?P<type>io\.containerd\.[\w.-]+)\W* binary not installed[^\n]{0,20}containerd-shim-[\w-]+",
    ),
    # A sign of a distribution that brings its own containerd, with its own configuration.
    Message(
        "runtime.embedded",
        (
            "/var/lib/rancher/",
            "/run/k3s/",
            "-k3s",
            "+k3s",
            "+rke2",
            " k3s[",
            "/var/snap/microk8s",
            "/run/k0s",
            "/etc/k0s",
            "+k0s",
        ),
        r"/var/lib/rancher/(?P<distribution>k3s|rke2)|/run/(?P<distribution2>k3s|k0s)/"
        r"|[-+](?P<distribution3>k3s|rke2|k0s)"
        r"| (?P<distribution4>k3s)\[|/var/snap/(?P<distribution5>microk8s)|/etc/(?P<distribution6>k0s)",
    ),
    Message(
        "runtime.config_regenerated",
        ("config.toml", "config-v3.toml", "containerd.toml", "containerd-template", "infer options from runtimes"),
        r"could not infer options from runtimes \[[^\]\n]*\]; using defaults"
        r"|^(?=.*\b(?:re-?generate[sd]|over-?wr(?:itten|ites?|ote)|re-?rendered|renders|revert(?:ed|s)|stomped|"
        r"replaced)\b)"
        r".*?(?P<path>(?:/[\w.-]+)*/?\b(?:config(?:-v3)?|containerd(?:-template)?)\.toml(?:\.tmpl)?)"
        r"|(?P<path2>config\.toml\.tmpl)\b[^\n]{0,60}\bignored\b"
        r"|(?P<path3>config-v3\.toml\.tmpl)\b[^\n]{0,40}\b(?:needed|required|missing|instead|absent)\b",
    ),
    Message(
        "runtime.not_imported",
        ("imports", "conf.d", "containerd.d/", "drop-in", "imported"),
        r"(?P<path>/etc/containerd/(?:conf|containerd)\.d/\S*?\.toml|\bdrop-in\b)[^\n]{0,60}"
        r"\b(?:not (?:in|listed in|part of)|missing (?:from|in)|absent from|not imported|never imported)\b"
        r"|\bimports\b[^\n]{0,40}\b(?:lacks?|without|does not (?:have|list|include|contain|name))\b[^\n]{0,60}"
        r"(?P<path2>/etc/containerd/(?:conf|containerd)\.d|conf\.d)",
    ),
    Message(
        "runtime.template_broken",
        (
            "template: compiled",
            "compiled_template",
            "containerd template",
            "containerd config template",
            "config.toml.tmpl",
            "config-v3.toml.tmpl",
        ),
        r"template:? \W*compiled(?:_template)?\W*:\d+"
        r"|containerd (?:config )?template\b[^\n]{0,60}\b(?:error|fail\w*|invalid)"
        r"|(?:error|fail\w*|invalid)\b[^\n]{0,80}config(?:-v3)?\.toml\.tmpl",
    ),
    Message(
        "runtime.config_lost",
        (
            "removed",
            "is gone",
            "are gone",
            "disappear",
            "is lost",
            "reverted",
            "overrides the containerd",
            "overwrites the containerd",
            "overwrote the containerd",
            "overrode the containerd",
            "replaces the containerd",
            "resets the containerd",
        ),
        r"\b(?:reboot|restart)\w*\b[^\n]{0,120}\bnvidia\b[^\n]{0,120}\b(?:removed|gone|lost|disappears?|disappeared|"
        r"reverted)\b"
        r"|\bnvidia\b[^\n]{0,120}\b(?:removed|gone|lost|disappears?|disappeared|reverted)\b[^\n]{0,120}\b(?:after|"
        r"when|on|"
        r"at)\b[^\n]{0,120}"
        r"\b(?:reboot|restart)"
        r"|\b(?:overrides|overwrites|overwrote|overrode|replaces|resets) the containerd config",
    ),
    # The toolkit's own settings, and NRI, through which a newer toolkit adds devices.
    Message(
        "runtime.settings_broken",
        (
            "hook config",
            "invalid runtime mode",
            "error loading config",
            "default configuration file",
            "configure the docker daemon",
            "toml: line ",
            "is not host-relative",
            "specified both as a flag",
            "match any configuration option",
            "both path and runtimetype",
            "either a runtimetype or a path",
            "cannot be used with a path runtime",
            "cannot be used with a runtimetype runtime",
        ),
        r"nvidia-(?:container|ctk|cdi)\S*[^\n]{0,120}toml: line |error getting hook config"
        r"|invalid runtime mode:? \W*(?P<mode>[\w-]+)"
        r"|(?:nvidia|NVIDIA)[^\n]{0,200}error loading config|couldn't open default configuration file"
        r"|nvidia-container-cli\.ldconfig value \W*(?P<ldconfig>/[\w/.-]+)\W* is not host-relative"
        r"|(?:unable to configure the Docker daemon with file )(?P<docker>/[^\s:]+): (?P<why>[^\n]{0,200})"
        r"|(?P<docker4>the following directives don't match any configuration option): (?P<why4>[^\n]{1,120})"
        r"|(?P<docker3>runtime [\w.-]+): (?P<why3>cannot configure both path and runtimeType[^\n]{0,40}"
        r"|either a runtimeType or a path must be configured|\w+ cannot be used with a (?:path|runtimeType) runtime)"
        r"|(?P<docker2>/\S+\.json): (?P<why2>the following directives are specified both as a flag[^\n]{0,160})",
    ),
    Message(
        "runtime.nri_absent",
        (
            "nri.sock",
            "nri is disabled",
            "nri disabled",
            "nri is not enabled",
            "nri not enabled",
            "nri plugin",
            "nri container ",
            "nri runpodsandbox",
            "nri-adjust",
            "after registering readiness",
        ),
        r"nri\.sock\b[^\n]{0,80}(?:no such file|connection refused)|\bNRI (?:is )?(?:disabled|not enabled)"
        r"|(?:failed|unable) to (?:connect|register|start|run)[^\n]{0,60}\bNRI plugin"
        r"|\bNRI plugin\b[^\n]{0,60}(?:failed|exited)"
        r"|\bNRI (?:container (?:start|update|creat\w+)|RunPodSandbox) failed|failed to NRI-adjust container Spec"
        r"|plugin failed after registering readiness",
    ),
    Message(
        "runtime.hooks_not_searched",
        ("hooks_dir", "hooks.d", "oci hooks"),
        r"\b(?:changed|moved|new|another|other|different|non-standard)\b[^\n]{0,60}\bhooks?\b[^\n]{0,30}/hooks\.d\b"
        r"|(?:hooks_dir|crio?\b|cri-o)[^\n]{0,120}\b(?:lacks?|without|missing|not configured to look"
        r"|does not (?:look|search|include|contain|list|have)|is not looking)\b[^\n]{0,80}"
        r"(?:hooks\.d|hooks_dir|OCI hooks)",
    ),
    # Versions and abilities.
    Message(
        "runtime.containerd_version",
        ("containerd://", "containerd/containerd", "containerd 1.", "containerd 2.", "containerd v"),
        r"containerd://v?(?P<version>\d+\.\d+[\w.+-]*)"
        r"|github\.com/containerd/containerd(?:/v2)? v?(?P<version2>\d+\.\d+[\w.+-]*)"
        r"|\bcontainerd v?(?P<version3>\d+\.\d+)\b",
    ),
    Message(
        "runtime.mounts_off",
        ("accept-nvidia-visible-devices-as-volume-mounts", "accept_nvidia_visible_devices_as_volume_mounts"),
        r"accept[-_]nvidia[-_]visible[-_]devices[-_]as[-_]volume[-_]mounts\W{0,6}(?:value\W{1,6})?(?:is |=)?\W*"
        r"(?:false|unset|not set|off|missing)\b",
        lines=2,
    ),
    Message("runtime.cdi_strategy", ("cdi-cri", "cdi-annotations"), r"\b(?P<strategy>cdi-cri|cdi-annotations)\b"),
    Message(
        "runtime.volume_strategy",
        ("devicelist", "device_list_strategy", "device-list", "volume-mounts"),
        r"device[-_]?list[-_]?strategy\W+[\s\S]{0,60}?volume-mounts"
        r"|\b(?:plugin|strategy)\b[^\n]{0,40}\b(?:uses?|is|with|set to)\b[^\n]{0,12}volume-mounts",
        lines=5,
    ),
    # What people state of a configuration that they do not quote.
    Message(
        "runtime.table_of_version",
        ("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "plugins.cri"),
        r"^(?!\s*\[).*version\W{0,3}(?P<version>[1-4])\b(?![.\d])[^\n]*\b(?P<table>io\.containerd\.grpc\.v1\.cri"
        r"|io\.containerd\.cri\.v1\.runtime|plugins\.cri)\b"
        r"|^(?!\s*\[).*\b(?P<table2>io\.containerd\.grpc\.v1\.cri|io\.containerd\.cri\.v1\.runtime|plugins\.cri)\b"
        r"[^\n]*\bversion\W{0,3}(?P<version2>[1-4])\b(?![.\d])",
    ),
    Message(
        "runtime.docker_only",
        ("docker ", "docker's "),
        r"\b(?:kubernetes|kubelet|cluster)\b[^\n]{0,40}\b(?:uses?|runs? on|is on|talks to) (?P<engine>containerd|"
        r"cri-o)\b[^\n]*\bdocker(?:'s)? [^\n]*\b(?:daemon\.json|nvidia)",
    ),
    Message(
        "runtime.own_containerd",
        ("own containerd", "embedded containerd", "bundled containerd", "separate containerd", "another containerd"),
        r"\b(?P<distribution>k3s|rke2|k0s|microk8s)\b[^\n]*\b(?:own|bundled|embedded|separate|another) containerd"
        r"|(?:own|bundled|embedded|separate|another) containerd\b[^\n]*\b(?P<distribution2>k3s|rke2|k0s|microk8s)\b",
    ),
    Message(
        "runtime.default_plain",
        ("default_runtime", "default runtime", "default-runtime", "default container runtime"),
        r"default[_ -]runtime(?:_name)?\b\W*(?:is|was|=|:|still)?\W*(?P<default>runc|crun|containerd)\b"
        r"|\bnvidia\b[^\n]{0,40}\bnot (?:set as |configured as )?(?:the )?default(?: container)? runtime",
    ),
    Message(
        "runtime.class_unset",
        "runtimeclass",
        r"\bruntimeClass(?:Name)?\b\W{0,4}(?:\"?nvidia\"? )?(?:was |is )?(?:missing|not set|absent|unset)\b"
        r"|\b(?:without|missing|lacks?|forgot|has no|have no)\b(?: a| the)? runtimeClass(?:Name)?\b",
    ),
    Message("runtime.no_cgroups", "no-cgroups", r"(?<![#\w])\s*no-cgroups\s*=\s*true"),
)
