"""What stops an installer, DKMS or a node's own unit before or after the build: sources, targets, downloads, names."""

from berth.evidence.message import Message

_V = r"\d{3}\.\d+(?:\.\d+)?"
# What NVIDIA's modules call of the kernel and what was removed, renamed or given other arguments since 4.20.
_KERNEL_CALL = (
    r"(?:acpi_bus_get_device|add_memory_driver_managed|backlight_device_register|crypto_akcipher_\w+|"
    r"del_timer(?:_sync)?|do_gettimeofday|dma_(?:buf|fence|is_direct|resv)_?\w*|drm_\w+|drmm?_\w+|follow_pfn|"
    r"from_timer|get_dma_ops|get_user_pages\w*|getrawmonotonic\w*|hmm_\w+|hrtimer_init|in_irq|init_timer|"
    r"ioremap_(?:nocache|cache)|iommu_\w+|kernel_(?:fpu_\w+|read|setsockopt)|make_device_exclusive\w*|"
    r"migrate_vma_\w+|on_each_cpu|page_(?:kasan_tag_reset|to_pfn_t)|pci_(?:enable_ats|resize_resource|rebar_\w+)|"
    r"PDE_DATA|pde_data|pfn_to_pfn_t|phys_to_(?:dma|pfn_t)|pin_user_pages\w*|random_get_\w+|set_memory_\w+|"
    r"smp_read_barrier_depends|timer_delete_sync|unsafe_follow_pfn|unpin_user_page\w*|"
    r"vga_set_legacy_decoding|vga_tryget|vmalloc_\w+|vmf_insert_\w+|vm_insert_pfn\w*|vzalloc\w*|__vma_start_write|"
    r"is_zone_device_page|dma_map_resource|ktime_get_\w+|timespec_to_ns|jiffies_to_timespec|get_seconds)"
)
_KERNEL_TYPE = (
    r"(?:drm_\w+|vm_area_struct|vm_operations_struct|mm_struct|mmu_notifier\w*|task_struct|dma_buf\w*|dma_resv|"
    r"file_operations|proc_ops|proc_dir_entry|pci_driver|hmm_\w+|migrate_vma|dev_pagemap|timespec\w*|ctl_table|"
    r"acpi_device\w*|shrinker|page|folio)"
)
_PACKAGE = (
    r"(?:nvidia-(?:driver|dkms|utils|kernel|headless|open|compute|settings|modprobe|persistenced|fabric|imex|smi)\S*"
    r"|kmod-nvidia\S*|akmod-nvidia\S*|xorg-x11-drv-nvidia\S*|cuda-drivers\S*|libnvidia-(?!container)\S+|nvlsm\S*)"
)
_NAME = r"(?P<module>nvidia\w*(?:-\w+)?)"

MESSAGES: tuple[Message, ...] = (
    # Headers that are there and were never configured.
    Message(
        "driver.source_unconfigured",
        (
            "the kernel header file ", "kernel configuration is invalid", "kernel source files in ",
            "kernel source path '", "kernel output path '", "version of the kernel sources located in",
            "unable to determine the target kernel version", "module.symvers file is missing",
            "kernel/makefile: no such file",
        ),
        r"kernel (?:source|output) path '[^']*' (?:is invalid|does not exist)|"
        r"Unable to determine the (?:version of the kernel sources located in|target kernel version)|"
        r"Module\.symvers file is missing|/NVIDIA-Linux\S*/kernel/Makefile: No such file|"
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
            "dkms tree is not", "source directory. directory: /usr/src/nvidia", "module source located within it",
            "missing the module source directory", "module nvidia/", "modules nvidia/",
            "aborting build of module nvidia", "application of patch ",
        ),
        r"module nvidia\S* includes a BUILD_EXCLUSIVE directive|Failed to find dkms on the system|"
        r"dkms: command not found|Application of patch \S+ failed\.\s[^\n]*/dkms/nvidia|"
        r"/dkms/nvidia\S* does not appear to have module source located within it|"
        r"nvidia\S*: Missing the module source directory|[Mm]odules? nvidia/\S+ is broken|"
        r"Aborting build of module nvidia/\S+ [^\n]*missing BUILD_DEPENDS|"
        r"Could not find module source directory[^\n]*\n?[^\n]*/usr/src/nvidia-(?P<what>\S+)",
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
        (
            "nvidia-kmod-load", "err_gpu_drivers", "err_missing_cuda", "err_gpu_driver", "configure-nvidia.service",
            "configure nvidia instance types", "missing module set", "nvidia-vgpu-mgr.service",
            "kernel_module_type variable", "failed to execute `/sbin/modprobe", "cannot open nvidia-linux-",
        ),
        r"(?:configure-nvidia|nvidia-vgpu-mgr)\.service: (?:Main process exited|Failed with result)|"
        r"Failed to start Configure NVIDIA instance types|driverdog\S* [^\n]*Missing module set|"
        r"invalid value for the KERNEL_MODULE_TYPE variable|cannot open NVIDIA-Linux-\S+\.run|"
        r"NVIDIA: failed to execute `/sbin/modprobe|"
        r"nvidia-kmod-load\.service: (?:Main process exited|Failed with result)|Failed to start nvidia-kmod-load|"
        r"ERR_(?:GPU_DRIVERS?_\w+|MISSING_CUDA\w*)",
    ),
    # Functions and structures that the kernel changed under the driver: the compiler names them, and often no file.
    Message(
        "driver.kernel_interface_changed",
        ("implicit declaration of function", "has no member named", "read-only member ", " arguments to function ",
         "argument 1 of ", "argument 2 of ", "incompatible pointer type"),
        rf"error: implicit declaration of function [‘'`](?P<what>{_KERNEL_CALL})[’']"
        rf"|error: [‘'`](?:const )?struct (?P<what2>{_KERNEL_TYPE})[’'] has no member named"
        r"|error: assignment of read-only member [‘'`](?P<what3>vm_flags)[’']"
        rf"|error: too (?:few|many) arguments to function [‘'`](?P<what4>{_KERNEL_CALL})\b"
        r"|/(?:usr/src/(?:kernels|linux-headers-)\S*|lib/modules/\S+/build)/include/\S+:\d+:\d+: error: [^\n]*"
        r"incompatible pointer type",
    ),
    # Installers that may not write to, or do not find, the directory of the firmware.
    Message(
        "driver.firmware_target_missing",
        "failure creating directory '",
        r"Failure creating directory '(?P<path>/(?:usr/)?lib/firmware\S*)'",
    ),
    # Container-Optimized OS: what its installer, as a script and as a program, says beside the steps.
    Message(
        "driver.cos_installer_failed",
        (
            "could not download kernel sources", "could not download toolchain", "cos_gpu_installer_lock",
            "failed to download driver signature", "failed to set compilation environment variables",
            "failed to install toolchain", "failed to get default", "failed to get latest",
            "failed to download gpu_", "failed to configure gpu driver install",
            "failed to setup gpu driver install", "failed to load gpu drivers", "failed to install userspace libraries",
            "gpu installation is not supported on", "is not available for the cos version",
            "have gpu device configured", "failed to extract precompiled artifacts",
            "failed to unpack precompiled artifacts",
        ),
        r"Could not download (?:kernel sources|toolchain \w+|toolchain_env file) from [^\n]*giving up|"
        r"cos_gpu_installer_lock is locked|failed to (?:download driver signature|set compilation environment "
        r"variables|install toolchain|(?:configure|setup) GPU driver install\w+ dir\w+|load GPU drivers|"
        r"install userspace libraries|(?:extract|unpack) precompiled artifacts)\b|"
        r"failed to (?:get default (?:GPU )?driver version|get latest (?:GPU )?driver version|"
        r"download gpu_(?:default|latest)_version)\b"
        r"(?:[^\n]*?(?P<denied>\b40[13]\b))?|GPU installation is not supported on (?:dev|beta)|"
        r"GPU driver is not available for the COS version|Please have GPU device configured",
    ),
    # Packages that are gone from a mirror, as an index that an image brought names them.
    Message(
        "driver.package_gone",
        ("404  not found [ip: ", "temporary failure resolving '", "could not resolve '"),
        r"^\s*404  Not Found \[IP: |Temporary failure resolving '[\w.-]+'|"
        r"Could not resolve '[\w.-]*(?:ubuntu|debian|redhat|suse)[\w.-]*'",
    ),
    # Packages of the driver that no repository has, under that name or at all.
    Message(
        "driver.packages_absent",
        (
            "unable to locate package ", "has no installation candidate", "unable to find a match: ",
            "no match for argument: ", "no package ", "no matching modules to enable: nvidia", "as broken, refusing",
            "' was not found",
        ),
        rf"(?:Unable to locate package |Unable to find a match: (?:[^\n]*\s)?|No match for argument: |No package )"
        rf"(?P<package>{_PACKAGE})|Package '?(?P<package2>{_PACKAGE})'? has no installation candidate|"
        r"No matching Modules to enable: (?P<package3>nvidia-driver:\S+)|"
        r"Package \W(?P<package4>nvidia-x11-\S+?)\W? [^\n]*marked as broken, refusing|"
        rf"Version '[^']*' for '(?P<package5>{_PACKAGE})' was not found",
    ),
    # A step of the driver container, and that it does not get past it.
    Message(
        "driver.headers_step_fails",
        "installing linux kernel headers...",
        r"Installing Linux kernel headers\.\.\.\s*\n(?:(?!Installing |Proceeding )[^\n]*\n){0,6}?"
        r"(?:E|Error|ERROR): [^\n]*",
        lines=8,
    ),
    # A key that the installer or a build was given.
    Message(
        "driver.signing_failed",
        ("failed to attach signature", "failed to sign ", "module signing failed"),
        r"Failed to attach signature|Failed to sign (?:the linked )?kernel module|Module signing failed\b",
    ),
    # The driver's own modules of two releases.
    Message(
        "driver.modules_differ",
        "version mismatch: nvidia",
        r"Version mismatch: (?P<one>nvidia\S*\.ko ?\(\S+\)),? (?P<other>nvidia\S*\.ko ?\(\S+\))",
    ),
    # Nix and its like put modules and kernel together and compare.
    Message(
        "driver.kernels_differ",
        "inconsistent kernel versions",
        r"inconsistent kernel versions: (?P<one>\S+)\s+(?P<other>\S+)",
        lines=2,
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
