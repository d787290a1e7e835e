"""GPUs and accelerators of other makers as their device plugins, tools and engines tell of them: is there a driver?"""

from berth.evidence.message import Message

_FILE = r"/dev/(?:kfd|dri(?:/(?:renderD|card)\d+|/by-path)?|accel(?:/accel)?\d*|neuron\d+)"

MESSAGES: tuple[Message, ...] = (
    # A device file that a program may not open.
    Message(
        "makers.file_denied",
        ("/dev/kfd", "/dev/dri", "/dev/accel", "/dev/neuron", "default drm access group", "unable to find group "),
        rf"(?:open\w*|access\w*|read-write)\W[^\n]{{0,40}}?(?P<path>{_FILE})\b[^\n]{{0,60}}?"
        r"\b(?:permission denied|operation not permitted|EACCES|EPERM)\b"
        rf"|(?P<path2>{_FILE})\b[^\n]{{0,24}}?(?::| is| read-write:) ?(?:permission denied|operation not permitted)"
        rf"|\b(?:no|lacks?|missing|insufficient) permissions?\b[^\n]{{0,40}}?(?P<path3>{_FILE})\b"
        r"|\b(?:cannot|can't|could not|couldn't|not allowed to|unable to) (?:open|access|use) "
        rf"(?P<path4>{_FILE})\b(?![^\n]{{0,60}}(?:no such file|not exist|ENOENT))"
        r"|[Uu]nable to find group (?:render|video)\b"
        r"|is not (?:a )?member of \W?\w+\W? group, the default DRM access group",
    ),
    # A device file that is not there: for a program in a container, or for the engine on the host.
    Message(
        "makers.file_absent",
        ("/dev/kfd", "/dev/dri", "/dev/accel", "/dev/neuron"),
        rf"(?:open\w*|access\w*)\W[^\n]{{0,40}}?(?P<path>{_FILE})\b[^\n]{{0,60}}?"
        r"\b(?:no such file or directory|does not exist|ENOENT)\b"
        rf"|(?P<host>adding (?:custom )?device|statfs|stating device|lstat) "
        rf"\W{{0,2}}(?P<path2>{_FILE})\W{{1,4}}no such file or directory",
    ),
    # The kernel has no driver for it, as tools and plugins that walk through sysfs find out.
    Message(
        "makers.no_driver",
        (
            "/sys/class/drm",
            "/sys/class/kfd",
            "read sysfs folder",
            "not compatible device",
            "rock module is not loaded",
            "amdgpu driver not initialized",
            "driver not initialized (amdgpu",
            "no neuron device",
            "amdgpu driver is not loaded",
            "amdgpu not loaded",
            "amdgpu: unknown symbol",
            "no /dev/kfd",
            "amdgpu is not loaded",
            "amdgpu driver not loaded",
            "amdgpu driver unavailable",
            "dcmi init failed",
        ),
        r"(?:open|stat|lstat|readdir|read) /sys/class/(?:drm|kfd)\S*: no such file or directory"
        r"|[Cc]an't read sysfs folder|\bNot compatible device(?:: (?:version|renderD\d+))?"
        r"|ROCk module is NOT loaded|[Dd]river not initialized \(amdgpu not found in modules\)"
        r"|amdgpu driver not initialized|\bno neuron devices? (?:found|detected|available)"
        r"|\bamdgpu: Unknown symbol \w+|\bno /dev/kfd\b"
        r"|\bamdgpu (?:driver )?(?:is )?not loaded|amdgpu driver unavailable: |\bdcmi init failed\b",
    ),
    # AMD's plugin waits in silence where /sys/class/kfd is missing, and announces its plugins where it is not.
    Message(
        "makers.amd_plugin_starts", "amd gpu device plugin for kubernetes", r"AMD GPU device plugin for Kubernetes"
    ),
    Message(
        "makers.amd_plugin_serves",
        ("received new list of plugins", "adding a new plugin", "registering endpoint", "list of devices"),
        r"Received new list of plugins|Adding a new plugin|[Rr]egistering endpoint|[Ll]ist of devices",
    ),
)
