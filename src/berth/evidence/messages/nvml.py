"""NVML and nvidia-smi, in the words of the tool, of its C names, and of the Go and Python bindings."""

from berth.evidence.message import Message

_CANNOT = r"(?:initiali[sz]\w+ (?:of )?NVML|NVML:?|nvmlInit\w*(?:\(\))?|NVMLError\w*|nvidia-smi|NVIDIA-SMI)"

MESSAGES: tuple[Message, ...] = (
    Message(
        "nvml.version_mismatch",
        (
            "version mismatch", "version_mismatch", "versionmismatch", "mismatch in versions", "driver and librar",
        ),
        r"Driver/library version mismatch|NVML version mismatch|Mismatch in versions between nvidia-smi and NVML|"
        r"(?:NVML_)?ERROR_LIB_RM_VERSION_MISMATCH|LibRmVersionMismatch|"
        r"driver and librar(?:y|ies) (?:versions? )?(?:mismatch|do not match|don't match|differ)|"
        r"^(?!.*\b(?:fabric|imex|guest|CUDA|cuDNN)\b).*\bnvidia[- ]driver version mismatch",
    ),
    # The library's own version, printed under the mismatch since R525.
    Message(
        "nvml.library_version",
        ("nvml library version", "libnvidia-ml.so.", "libcuda.so.", "nvml version"),
        r"(?:NVML library version:|NVML version\s*:|lib(?:nvidia-ml|cuda)\.so\.)\s*(?P<version>\d{3}\.\d+(?:\.\d+)?)",
    ),
    Message(
        "nvml.no_driver",
        (
            "communicate with the nvidia driver", "driver not loaded", "driver_not_loaded", "drivernotloaded",
            "nvidia driver is not loaded", "nvidia kernel driver is not loaded", "driver is not running",
            "could not load kernel module nvidia",
        ),
        r"communicate with the NVIDIA driver"
        r"|(?<!gdrdrv )(?<!nvidia-fs )(?<!nvfs )(?<!peermem )(?<!nvswitch )Driver Not Loaded"
        r"|ERROR_DRIVER_NOT_LOADED|DriverNotLoaded|"
        r"NVIDIA (?:kernel )?driver is not (?:loaded|running)|nvc\.c:\d+\] could not load kernel module nvidia\s*$",
    ),
    Message(
        "nvml.no_devices",
        ("no devices were found", "no devices found"),
        r"(?<!_IMPL: )No devices (?:were )?found\b(?!\. Waiting| allocated in local)",
    ),
    Message(
        "nvml.unknown_error",
        ("unknown error", "error_unknown"),
        rf"{_CANNOT}[^\n]*?\bUnknown Error|NVML_ERROR_UNKNOWN\b|(?:NVML|nvml)[^\n]*ERROR_UNKNOWN\b",
    ),
    Message(
        "nvml.no_permission",
        ("insufficient permissions", "no_permission", "nopermission"),
        r"Insufficient Permissions|(?:NVML_)?ERROR_NO_PERMISSION\b|NoPermission\b",
    ),
    # Where no driver is installed there is not even the tool; in a container that says less.
    Message(
        "nvml.not_installed",
        (
            "couldn't find libnvidia-ml", "nvidia-smi: command not found", "nvidia-smi: not found",
            "bin/nvidia-smi: no such file", "command 'nvidia-smi' not found", "/proc/driver/nvidia",
            "libnvidia-ml.so.1: file too short",
        ),
        r"couldn't find libnvidia-ml\.so library in your system|nvidia-smi: (?:command )?not found|"
        r"bin/nvidia-smi: No such file|Command 'nvidia-smi' not found|libnvidia-ml\.so\.1: file too short|"
        r"/proc/driver/nvidia(?:/version)?'?: No such file",
    ),
    # The operator's validator looks into the root of the driver, the host's or a container's.
    Message(
        "nvml.not_in_root",
        ("chroot: failed to run command", "could not find 'nvidia-smi'", "nvidia gpu driver been set up"),
        r"chroot: failed to run command [\W]?nvidia-smi[\W]?: No such file or directory|"
        # What the driver for resource claims says before it starts its plugins.
        r"Could not find 'nvidia-smi'|Has the NVIDIA GPU driver been set up\?",
    ),
    # As a list of modules shows, or as people tell.
    Message(
        "nvml.modules_told",
        (
            "modules not load", "modules are not load", "modules do not load", "modules don't load", "not list them",
            "module is not load", "module not load", "module was not load", "module isn't load", "module does not load",
            "module doesn't load", "drivers/nvidia\" to exist", "modules aren't load", "modules were not load",
        ),
        r"nvidia (?:kernel )?(?:modules (?:not load|(?:are|were) not load|aren't load|do not load|don't load)|"
        r"module (?:not load|(?:is|was) not load|isn't load|does not load|doesn't load))|"
        # Talos: a service of the driver waits for the directory that the loaded module makes.
        r"Waiting for file \"/sys/bus/pci/drivers/nvidia\" to exist|"
        r"nvidia (?:kernel )?modules?\b[^\n]{0,80}does not list them",
    ),
    Message(
        "nvml.confidential_not_ready",
        "gpus ready state",
        r"Confidential Compute GPUs Ready state ?: ?not[- ]ready",
    ),
    # Performance counters are for administrators, unless the module was loaded with another option.
    Message(
        "nvml.counters_refused",
        ("err_nvgpuctrperm", "cupti_error_insufficient_privileges", "access nvidia gpu performance counters"),
        r"ERR_NVGPUCTRPERM|CUPTI_ERROR_INSUFFICIENT_PRIVILEGES|permission to access NVIDIA GPU Performance Counters",
    ),
    # As dpkg and rpm list what is installed; what is loaded may be older.
    Message(
        "nvml.library_package",
        ("libnvidia-compute", "libnvidia-ml1", "nvidia-utils", "nvidia-smi", "nvidia-driver-"),
        r"^ii\s+(?:libnvidia-compute|libnvidia-ml1|nvidia-utils|nvidia-smi)\S*\s+(?P<version>\d{3}\.\d+(?:\.\d+)?)|"
        r"^nvidia-driver-cuda-libs-(?P<version2>\d{3}\.\d+(?:\.\d+)?)|"
        # As apt and people name a package; one that could be installed is not.
        r"^(?!.*(?:upgradable|Candidate)).*\b(?:nvidia-driver|libnvidia-compute|nvidia-utils)-\d{3}(?:-server|-open)*"
        r"(?::amd64|:arm64)?[ /=(]+(?P<version3>\d{3}\.\d+(?:\.\d+)?)-",
    ),
    Message(
        "nvml.function_not_found",
        ("function not found", "function_not_found", "functionnotfound", "undefined symbol: nvml"),
        r"(?:NVML|nvml)[^\n]*Function Not Found|(?:NVML_)?ERROR_FUNCTION_NOT_FOUND|FunctionNotFound|"
        r"undefined symbol: (?P<symbol>nvml\w+)",
    ),
    Message(
        "nvml.reset_required",
        ("gpu requires reset", "gpu requires a reset", "reset_required", "resetrequired"),
        r"GPU requires (?:a )?reset|(?:NVML_|CUDA_)?ERROR_RESET_REQUIRED|NV_ERR_RESET_REQUIRED",
    ),
    # A process that holds the device: what a reset and a change of MIG mode run into.
    Message(
        "nvml.in_use",
        ("in use by another client", "error_in_use", "used by one or more", "in use by one or more"),
        r"(?:GPU (?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]):? *)?In use by another client|"
        r"(?:NVML_)?ERROR_IN_USE\b|is currently (?:being used|in use) by one or more other processes",
    ),
    Message(
        "nvml.reset_refused",
        ("could not be reset", "unable to reset this gpu", "unable to reset gpu", "resetting gpu"),
        r"following GPUs could not be reset|Unable to reset (?:this )?GPU\b|"
        r"GPU (?P<pci>[0-9a-f:.]+) could not be reset",
    ),
    # A line or column that somebody copied without its section.
    Message(
        "nvidia_smi.fabric_state",
        ("fabric state", "fabric_state", "fabric.state", "state=in progress", "state=not started", ": in progress",
         ": not started"),
        r"^\s*State {3,}: (?P<state3>In Progress|Not Started)\s*$|"
        r"GPU-[0-9a-f-]{36}: state=(?P<state2>In Progress|Not Started)|"
        r"fabric[ _.]state\W*(?:is|was|stays|stuck|remains|still|:|=|at|in)*\W*(?P<state>In Progress|Not Started|"
        r"Completed|"
        r"InProgress|NotStarted|Not Supported)",
    ),
)  # fmt: skip
