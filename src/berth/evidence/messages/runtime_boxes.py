"""Boxes that are more than a container: WSL2, gVisor, Kata, Jetson; and the host's security."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # Jetson: what the runtime mounts from the host. An image has empty files in its place.
    Message(
        "runtime.no_tegra_libraries",
        ("libnvrm", "libnvdla_compiler", "libnvos.so", "file too short"),
        r"\blib(?:nvrm\w*|nvdla_compiler|nvos)\.so\S*: cannot open shared object"
        r"|/aarch64-linux-gnu/\S+\.so\S*: file too short",
    ),
    # Security modules.
    Message(
        "runtime.selinux_device",
        ("avc:", "selinux is preventing", "target objects ", "#============= "),
        r"avc:\s+denied\s+\{(?!\s*module_load)[^}]*\}.*(?:/dev/nvidia[\w-]*|name=\"nvidia(?:\d+|ctl|-uvm\S*"
        r"|-modeset|-caps?\S*)\""
        r"|:(?:xserver_misc_device_t|dri_device_t):)"
        r"|SELinux is preventing \S+ from [\w, ']+ access(?:es)? on the "
        r"(?:chr_file|character device|labeled \w+ chr_file) \W*(?:/dev/)?nvidia"
        # The same as setroubleshoot's table, and as what audit2allow makes of it.
        r"|Target Objects  *(?:/dev/)?(?:nvidia[\w/-]*|dri/\w+)\s*\[ (?:chr_file|dir) \]"
        r"|#============= container\w* =+\s[\s\S]{0,200}?allow container\w* "
        r"(?:xserver_misc_device_t|dri_device_t):chr_file",
        lines=4,
    ),
    # Graphics in a container, without the driver's part of it.
    Message(
        "runtime.graphics_missing",
        (
            "_incompatible_driver",
            "nvidia_icd",
            "10_nvidia.json",
            "find libglx_nvidia",
            "optix_error_library",
            "nvidia_driver_capabilities",
        ),
        r"\b(?:VK_)?ERROR_INCOMPATIBLE_DRIVER\b|\bCan.?t find libGLX_nvidia|OPTIX_ERROR_LIBRARY_NOT_FOUND"
        r"|\b(?:nvidia_icd[\w.]*|10_nvidia\.json)\W{1,3}(?:is |was )?(?:missing|not (?:there|found)|absent)\b"
        r"|NVIDIA_DRIVER_CAPABILITIES\b[^\n]{0,60}\b(?:graphics|video|display)\b (?:is |was )?(?:missing"
        r"|not (?:there|set|in it))"
        r"|NVIDIA_DRIVER_CAPABILITIES\b[^\n]{0,40}\b(?:lacks?|without|does not (?:have|include|contain)) "
        r"(?:the )?(?:graphics|video|display)\b",
    ),
    # Jetson: the memory manager's device file is for the group video.
    Message(
        "runtime.tegra_denied",
        ("nvrmmeminitnvmap", "/dev/nvmap", "/dev/nvhost-"),
        r"NvRmMemInitNvmap failed with Permission denied|(?P<path>/dev/(?:nvmap|nvhost-[\w-]+))\W[^\n]{0,40}"
        r"Permission denied",
    ),
    # Other kinds of boxes.
    Message(
        "runtime.wsl_no_adapter",
        ("wsl environment detected", "libdxcore.so", "/usr/lib/wsl"),
        r"WSL environment detected but no adapters were found|libdxcore\.so(?!.*continuing)[^\n]*(?:not found"
        r"|no such file|cannot open)",
    ),
    Message(
        "runtime.wsl",
        ("libdxcore.so", "/usr/lib/wsl", "microsoft-standard-wsl"),
        r"/usr/lib/wsl/|libdxcore\.so|microsoft-standard-WSL2?",
    ),
    Message("runtime.wsl_told", ("wsl2", "wsl 2", "in wsl", "under wsl", "on wsl", "wsl -"), r"\bWSL ?2?\b"),
    Message(
        "runtime.in_engine_told",
        (
            "docker run",
            "podman run",
            "nerdctl run",
            "docker container",
            "docker compose",
            "docker-compose",
            "no-cgroups",
        ),
        r"\b(?:docker run|podman run|nerdctl run|docker container|docker compose|docker-compose)\b|no-cgroups",
    ),
    # Programs that hand GPUs to virtual machines, and want no driver.
    Message(
        "runtime.passthrough_plugin_needs_driver",
        ("kubevirt-gpu-device-plugin", "sandbox-device-plugin", "vfio-manager", "kubevirt-device-plugin"),
        r"\b(?:kubevirt-(?:gpu-)?device-plugin|sandbox-device-plugin|vfio-manager)\b[^\n]*(?:no cuda-capable device"
        r"|nvidia-container-cli|\bNVML\b[^\n]{0,30}(?:fail|error|not)|driver not loaded|libnvidia-ml|libcuda)",
    ),
    Message(
        "runtime.os_blocks",
        "blocked by the operating system",
        r"GPU access blocked by the operating system",
    ),
    Message(
        "runtime.gvisor",
        ("nvproxy", "runsc", "gvisor", "cannot read client sync file"),
        r"cannot create sandbox: (?P<why>cannot read client sync file[^\n]{0,60})"
        r"|nvproxy[^\n]{0,200}(?:unknown (?:control command|ioctl|allocation class|uvm)|unsupported|not supported"
        r"|incompatible)"
        r"|runsc[^\n]{0,200}(?:driver version|nvidia)[^\n]{0,200}not supported"
        r"|\b(?:runsc|nvproxy)\b(?=[^\n]{0,200}\bdrivers?\b)[^\n]{0,200}\b(?:does|did|do|is|are|was) ?(?:not|n't)"
        r"(?: list\w*| know\w*| support\w*| among| in)\b"
        r"|\bdriver\b[^\n]{0,60}\b(?:is|was) ?(?:not|n't) (?:listed|supported|known|among|in)\b[^\n]{0,60}"
        r"\b(?:runsc|nvproxy|gvisor)\b"
        r"|gvisor\.dev/gvisor/runsc/boot\.create\w*Device|gvisor\.dev/gvisor/pkg/sentry/devices/nvproxy",
    ),
    # Kata and its kin: the machine around the container does not come up, or its agent does not answer.
    Message(
        "runtime.vm_fails",
        (
            "if grpc server is working",
            "dead agent",
            "launch qemu",
            "connecting to hybrid vsocket",
            "connecting to vsocket",
            "failed to connect to hypervisor",
            "cold plug failed",
            "qmp command",
            "hotplug ",
        ),
        r"Failed to Check if grpc server is working|error=\W*Dead agent|failed to launch qemu"
        r"|timed out connecting to (?:hybrid )?vsocket|failed to connect to hypervisor"
        r"|device cold plug failed: (?!cold plug: CDI)"
        r"|kata[^\n]{0,200}(?:QMP command failed|hotplug \w+ (?:failed|error))",
    ),
)
