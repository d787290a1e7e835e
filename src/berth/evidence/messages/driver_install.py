"""What stops an installer, DKMS or a node's own unit before or after the build: sources, targets, downloads, names."""

from berth.evidence.message import Message

_V = r"\d{3}\.\d+(?:\.\d+)?"
_NAME = r"(?P<module>nvidia\w*(?:-\w+)?)"

MESSAGES: tuple[Message, ...] = (
    # Headers that are there and were never configured.
    Message(
        "driver.source_unconfigured",
        (
            "the kernel header file ", "kernel configuration is invalid", "kernel source files in ",
        ),
        r"The kernel header file '[^']*' does not exist|Kernel configuration is invalid|"
        r"kernel source files in '[^']*' have not been configured",
    ),
    Message(
        "driver.no_supported_gpu",
        "you do not appear to have an nvidia gpu supported",
        rf"You do not appear to have an NVIDIA GPU supported by the (?P<version>{_V})",
    ),
    Message(
        "driver.display_runs",
        ("running an x server", "please exit x before"),
        r"appear to be running an X server|[Pp]lease exit X before installing",
    ),
    # Systems whose /usr is not written to: the driver comes with the image or in a container there.
    Message(
        "driver.target_read_only",
        "read-only file system",
        # Not what a container is made of: the toolkit and the container runtime speak of that.
        r"^(?!.*(?:toolkit|nvidia-(?:container|ctk|cdi)|\bOCI\b|\b(?:runc|crun)\b|mkdirat |mountpoint|\bcdi/|"
        r"generate spec: ))"
        r".*?(?:nvidia|libcuda|NVIDIA-Linux|/usr/src)[^\n]*Read-only file system",
    ),
    Message(
        "driver.dkms_refused",
        (
            "build_exclusive", "find module source directory", "find dkms on the system", "dkms: command not found",
            "dkms tree is not", "source directory. directory: /usr/src/nvidia",
        ),
        r"module nvidia\S* includes a BUILD_EXCLUSIVE directive|Failed to find dkms on the system|"
        r"dkms: command not found|Could not find module source directory[^\n]*\n?[^\n]*/usr/src/nvidia-(?P<what>\S+)",
        lines=2,
    ),
    # Those who load modules by name: libkmod, systemd, Talos.
    Message(
        "modprobe.not_found_by_name",
        ("find module by name='nvidia", "failed to find module 'nvidia", "error loading module", "load nvidia"),
        rf"(?:could not find module by name=|Failed to find module )'{_NAME}'|"
        r"error loading module: \\?\"(?P<module2>nvidia\w*)\\?\": (?:load \S+ failed: )?module not found|"
        r"load (?P<module3>nvidia\w*) failed: module not found",
    ),
    # Types that the kernel knows (BTF) are not those that the module was built with.
    Message(
        "modprobe.btf_invalid",
        "failed to validate module [nvidia",
        rf"failed to validate module \[{_NAME}\] BTF",
    ),
    # An image of the operator that has sources only, or another entry point than it is started with.
    Message(
        "driver.entry_missing",
        ("nvidia-gds-driver", "nvidia-gdrcopy-driver", "ocp_dtk_entrypoint"),
        r"(?P<what>nvidia-gds-driver|nvidia-gdrcopy-driver|ocp_dtk_entrypoint)\W{1,3}"
        r"(?:command not found|not found|no such file or directory|executable file not found)",
    ),
    Message(
        "driver.duplicate_symbol",
        "exports duplicate symbol",
        r"(?P<module>nvidia\w*): exports duplicate symbol (?P<symbol>\w+) \(owned by (?P<owner>\w+)\)",
    ),
    Message(
        "driver.release_missing",
        ("failed to download nvidia-linux", "nvidia-linux-", "download.nvidia.com/"),
        r"failed to download NVIDIA-Linux-\S+|"
        rf"(?:NVIDIA-Linux-\S+?-|download\.nvidia\.com/\S*?)(?P<version>{_V})\S*[^\n]*\b(?:404|403)\b|"
        rf"\b(?:404|403)\b[^\n]*(?:NVIDIA-Linux-\S+?-|download\.nvidia\.com/\S*?)(?P<version2>{_V})",
    ),
    # Units and codes of clouds that bring the driver with their images.
    Message(
        "driver.node_unit_failed",
        ("nvidia-kmod-load", "err_gpu_drivers", "err_missing_cuda", "err_gpu_driver"),
        r"nvidia-kmod-load\.service: (?:Main process exited|Failed with result)|Failed to start nvidia-kmod-load|"
        r"ERR_(?:GPU_DRIVERS?_\w+|MISSING_CUDA\w*)",
    ),
    # The driver container says what it was about to do; the package manager why that fails.
    Message(
        "driver.packages_unreachable",
        "updating the package cache",
        r"Updating the package cache\.\.\.(?:(?!Proceeding with|Compiling)[\s\S])*?"
        r"(?P<why>Temporary failure (?:in name )?resol\w+|Failed to fetch|Unable to fetch|Could not resolve|"
        r"Cannot download|Connection timed out|not signed|certificate verification failed)",
        lines=20,
    ),
)  # fmt: skip
