"""The NVIDIA Container Toolkit's installer: what it says where it cannot set a runtime up."""

from berth.evidence.message import Message

_INSTALLER = r"error running (?:nvidia-toolkit|nvidia-ctk-installer|toolkit):? "

MESSAGES: tuple[Message, ...] = (
    Message(
        "toolkit.cannot_dial",
        (
            "unable to dial",
            "unable to restart ",
            "error signaling",
            "unable to signal ",
            "unable to send sighup",
            "using systemd",
        ),
        r"unable to dial: (?:dial unix \W*(?P<socket>/[^\s:]+)(?:: connect)?: )?(?P<why>[^\n\"]*)"
        r"|unable to restart (?P<engine>containerd|docker|crio?)|Error signaling (?P<engine2>containerd|docker|crio)"
        r"|unable to (?:signal|send SIGHUP to) \W?(?P<engine3>containerd|docker)"
        r"|error restarting (?P<engine4>containerd|docker|crio?) using systemd",
    ),
    Message(
        "toolkit.cannot_read",
        (
            "unable to load ",
            "unable to parse ",
            "unsupported config version",
            "determine runtime options",
            "unable to create config: ",
            "unable to flush config",
            "unable to update config",
            "unable to configure ",
            "unable to unconfigure ",
            "cri runtime plugin name",
            "parse config version",
            "type for version field",
        ),
        # Device plugins say that they cannot load their configuration in nearly the same words.
        r"^(?!.*(?:starting plugins|finalize config|validate flags|unmarshal|parse config file)).*"
        r"unable to (?:load|parse)(?: (?:containerd|docker|crio|cri-o))? config: "
        r"(?:unsupported config version: (?P<version2>\d+)|(?P<why>[^\n\"]{0,200}))"
        r"|unable to load config for runtime \W*(?:\w+\W{1,3})?(?P<why3>[^\n]{0,200})"
        r"|unable to create config: (?P<why4>\(\d+, \d+\): [^\n]{0,200})"
        r"|unable to (?:flush|update) config: (?!error updating symlink)(?P<why5>[^\n]{0,200})"
        r"|unable to (?:un)?configure (?:containerd|docker|cri-o): (?!unable to restart)(?P<why6>[^\n]{0,200})"
        r"|failed to get CRI runtime plugin name: (?P<why7>[^\n]{0,160})"
        r"|(?P<why8>failed to parse config version[^\n]{0,120}|unsupported type for version field[^\n]{0,40})"
        r"|unsupported config version: (?P<version>\d+)|unable to determine runtime options: (?P<why2>[^\n\"]{0,200})",
    ),
    Message(
        "toolkit.cannot_install",
        (
            "error running nvidia-",
            "error running toolkit",
            "unable to install toolkit",
            "unable to setup runtime",
            "install toolkit components",
            "nvidia container toolkit config",
            "create required directories",
            "unable to cleanup runtime",
            "unable to create pidfile",
        ),
        rf"{_INSTALLER}(?P<why>[^\n]{{0,300}})|unable to (?:install toolkit|setup runtime): (?P<why2>[^\n]{{0,300}})"
        r"|could not install toolkit components: (?P<why3>[^\n]{0,300})"
        r"|error installing NVIDIA container toolkit config: (?P<why4>[^\n]{0,300})"
        r"|could not create required directories: (?P<why5>[^\n]{0,300})"
        r"|unable to cleanup runtime: (?P<why6>[^\n]{0,300})|unable to create pidfile: (?P<why7>[^\n]{0,200})",
    ),
    Message(
        "toolkit.major_unknown",
        ("failed to determine major", "create nvidia device nodes"),
        r"failed to create NVIDIA device nodes:[^\n]{0,120}failed to determine major"
        r"|failed to determine major: invalid device node",
    ),
    Message(
        "toolkit.runs_twice",
        ("flock on pidfile", "instance of the nvidia toolkit container is already running"),
        r"unable to get flock on pidfile|instance of the NVIDIA toolkit Container is already running",
    ),
    Message(
        "toolkit.read_only",
        "read-only file system",
        r"(?:/usr/local/nvidia|/opt/nvidia|mkdir /run/nvidia|/etc/containerd|/etc/cdi|/etc/crio|ldconfig)\S*[^\n]*"
        r"read-only file system",
    ),
    Message("toolkit.no_devices", "no nvidia device", r"no NVIDIA devices?(?: nodes?)? (?:were )?found"),
    # Where the toolkit looks for a driver that is in a container, and the driver is not there.
    Message(
        "toolkit.driver_root_empty",
        "/run/nvidia/driver",
        r"^(?!.*(?:Skipping library candidate|level=(?:info|debug)|\[DEBUG\]|\bstatx?\b.*retrying))"
        r".*?(?:lstat|stat|statx|open|access|chroot|chdir|readlink|root directory to)\w*:? "
        r"\W*(?P<path>/run/nvidia/driver[^\s:'\"]*)\W*"
        r"(?:no such file|not a directory)",
    ),
    Message(
        "toolkit.root_unfit",
        "/run/nvidia/driver",
        r"\bdriver\.enabled\W{1,3}false\b[^\n]{0,120}/run/nvidia/driver\b"
        r"|/run/nvidia/driver\b[^\n]{0,120}\bdriver\.enabled\W{1,3}false\b"
        r"|\broot\W{1,6}/run/nvidia/driver\b[^\n]{0,120}\b(?:host|pre-?installed|empty|not mounted|does not exist)\b",
    ),
    Message(
        "toolkit.wrote",
        ("flushing config", "/etc/containerd/"),
        r"Flushing config to \W*(?P<path>/[^\s\"']+)"
        r"|\b(?:operator|toolkit|nvidia-ctk|configured|edited|changed|added)\b[^\n]{0,80}"
        r"(?P<path2>/etc/containerd/(?:config\.toml|conf\.d/\S+))",
    ),
    # A drop-in, by the program itself, and that the engine does not read it.
    Message(
        "toolkit.dropin_unread",
        ("config.d/", "conf.d/", "drop-in", "dropin", "99-nvidia"),
        r"Wrote updated config to (?P<path>/etc/containerd/config\.d/\S+)"
        r"|(?:drop-?in|99-nvidia\.toml|/etc/(?:containerd|crio)/\S*conf(?:ig)?\.d/\S*)[^\n]{0,80}\b(?:not (?:read"
        r"|loaded"
        r"|imported|picked up|used|effective|in effect)|ignored|never (?:read|loaded))",
    ),
    Message(
        "toolkit.sends_signal",
        ("sighup signal to", "successfully signaled"),
        r"Sending SIGHUP signal to (?P<engine>\w+)|Successfully signaled",
    ),
    # It has told the runtime to read its configuration again, and is ended itself within the same minute.
    Message(
        "toolkit.ended_at_once",
        "waiting for signal",
        r"T(?P<minute>\d\d:\d\d):\d\d\S* [^\n]{0,20}msg=\"?Waiting for signal\"?\s+[^\n]{0,80}T(?P=minute):\d\d\S* "
        r"[^\n]{0,20}msg=\"?(?:Cleaning up Runtime|Starting 'cleanup'|Shutting Down)",
        lines=2,
    ),
)
