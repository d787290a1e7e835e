"""Devices handed to virtual machines: VFIO, QEMU, libvirt, KubeVirt, Kata."""

from berth.evidence.message import Message

_PCI = r"(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"

MESSAGES: tuple[Message, ...] = (
    Message(
        "vfio.group_not_viable",
        ("is not viable", "bound to their vfio bus driver"),
        rf"(?:vfio[:\s]+{_PCI}:?\s*)?(?:vfio )?group (?P<group>\w+) is not viable|group is not viable"
        r"|all devices within the iommu.?group are bound to their vfio bus driver",
    ),
    Message(
        "vfio.no_iommu",
        ("support passthrough", "iommu"),
        r"Could not get IOMMU Group for device|"
        rf"vfio\S*\s*(?:{_PCI})?.*no iommu.?group (?:found|assigned)"
        r"|host (?:does not|doesn't) support (?:passthrough|IOMMU)"
        r"|(?:vfio|passthrough|libvirt|qemu|virtual machine)\b.{0,120}\bIOMMU (?:is )?(?:not enabled|disabled"
        r"|not present|off)"
        r"|IOMMU (?:is )?(?:not enabled|disabled|not present|off)\b.{0,120}\b(?:vfio|passthrough|libvirt|qemu)"
        r"|cannot prepare PCI pass-?through, IOMMU not present"
        r"|please (?:ensure|check).*iommu is enabled|IOMMU is not enabled in the kernel",
    ),
    Message(
        "vfio.unusable",
        (
            "error getting device from group",
            "mdev",
            "mediated device",
            "/sys/bus/pci/",
            "is in use by driver",
            "to vfio",
            "to 'vfio",
            "vfio ",
            "vfio_dma_map",
            "vfio_map_dma",
            "/dev/vfio/",
            "failed to open /dev/vfio",
            "failed to set iommu",
            "failed to setup container for group",
            "unable to power on device",
            "vfio: failed",
            "failed to get region",
            "pci device is in use",
            "used in multiple address spaces",
            "configure mediated devices",
            "create mdev",
            "unknown pci header type",
            "could not access /sys/bus/pci/devices/",
            "hardware reports invalid configuration",
            "vfio error: ",
            "no available reset mechanism",
            "vfio_region_",
            "is not a passthrough device",
            "table & pba overlap",
            "device initialization failed: vfio",
            "vfio_bar_restore: reset recovery",
            "module vfio-pci not found",
            "allow_unsafe_interrupts",
            "vendor has changed on the system",
            "sriov_numvfs",
            "unbindlock for",
            "not bound to vfio",
            "to vfio-pci",
            "driver_override",
            "load module \"vfio",
            "load module \\\"vfio",
            "loading vfio_pci module",
        ),
        r"VFIO_(?:DMA_MAP|MAP_DMA)\S*.*(?:failed|Cannot allocate|Operation not permitted|= -\d+)|(?:could not|cannot"
        r"|failed to) open \W*/dev/vfio/(?P<group>\w+)"
        r"|\bl?stat /dev/vfio/(?P<group2>\d+): no such file"
        r"|failed to (?:set iommu for container|setup container for group)|Unable to power on device, stuck in D3"
        r"|(?:not|failed to be|failed to bind device) (?:bound )?to '?vfio(?:-pci)?\b|vfio \S+: failed to (?:get|open"
        r"|setup|add)"
        r"|PCI device \S+ is in use by driver (?P<driver>\w+)"
        r"|/sys/bus/pci/devices/\S+.*(?:Permission denied|Read-only file system)|unable to (?:open"
        r"|write) .*/sys/bus/pci/"
        r"|failed to (?:create mdev|configure mediated devices)|[Uu]nknown PCI header type"
        r"|could not access /sys/bus/pci/devices/\S+/config"
        r"|group \S+ used in multiple address spaces|vfio error: \S+: failed to"
        r"|vfio_region_(?:read|write)\(.{0,80}failed"
        r"|vfio \S+: hardware reports invalid configuration|no available reset mechanism|is not a passthrough device"
        r"|table & pba overlap|[Cc]annot bind \S+ to vfio\b|Device initialization failed: vfio"
        r"|vfio_bar_restore: reset recovery|Module vfio-pci not found in directory"
        r"|No interrupt remapping support\W.{0,60}allow_unsafe_interrupts|Vendor has changed on the system"
        r"|/sriov_numvfs\b.{0,40}(?:busy|denied|Read-only|Invalid argument)"
        r"|Cannot obtain unbindLock for"
        r"|(?:unable|failed) to (?:un)?bind (?:device|GPU)s?\b.{0,40}\bto vfio-pci|unable to bind to vfio-pci"
        r"|driver_override\b.{0,60}(?:denied|Read-only|busy|No such device)"
        r"|failed to load module \\?\"vfio\w*|error loading vfio_pci module"
        r"|/sys/bus/mdev\S*.{0,40}no such file|error getting device from group|(?:mdev"
        r"|mediated device)\w*\W.{0,60}(?:not found|failed to create|no such)",
    ),
    # Which devices vfio-pci is to take at boot.
    Message(
        "vfio.wanted",
        ("vfio-pci ids=", "vfio-pci.ids="),
        r"vfio-pci(?: |\.)ids=[^\s]*10de:[0-9a-f]{4}",
    ),
    # IOMMUFD hands devices over one by one, as /dev/vfio/devices/vfioN, beside /dev/iommu.
    Message(
        "vfio.file_missing",
        ("/dev/vfio/devices/vfio", "vfio-dev/vfio", "/dev/iommu", "iommufd device for device", "iommufd support"),
        r"could not determine iommufd (?:device for device|support)|(?P<path>/dev/vfio/devices/vfio\d+"
        r"|/dev/iommu)\b[^\n]{0,40}"
        r"(?:no such (?:file|device)|not found|does not exist|missing)|failed to find vfio-dev/vfio"
        r"|failed to load \W*(?P<path2>/sys/\S*/vfio-dev/vfio\d+\w*)",
    ),
    Message(
        "vfio.not_permitted",
        ("not permitted in ", "in permittedhostdevices", "feature gate is not enabled in kubevirt",
         "do not match the number of devices"),
        r"DeviceName \S+ (?:not found|is missing) in permittedHostDevices"
        r"|(?:(?:Host ?Device|GPU)s?\W+(?P<resource>[\w.-]+/[\w.-]+)\W+)?(?:is )?not permitted in "
        r"(?:permittedHostDevices|kubevirt-[\w-]*config)"
        r"|(?:GPU|Host ?Devices?) feature gate is not enabled in kubevirt"
        r"|number of (?:GPU/?s|host-?devices?/?s?)\b.{0,40}\bdo not match the number of devices",
    ),
    # Resources that are named for the card itself are those of plugins for virtual machines.
    Message(
        "vfio.asked_as_resource",
        "limits:",
        r"limits:\s*\n\s*[\"']?(?P<resource>nvidia\.com/[A-Z]{2}\d{2,3}[A-Z]*_\w+)[\"']?: *[\"']?\d",
        lines=2,
    ),
    # A guest's memory is pinned whole: the limit of QEMU's process has to be above it.
    Message(
        "vfio.memory_not_locked",
        ("rlimit_memlock (", "limit locked memory", "locked memory limit"),
        r"vfio_\w+: RLIMIT_MEMLOCK \((?P<limit>\d+)\) exceeded"
        r"|(?P<refused>cannot limit locked memory\s+of process (?:\d+ )?to \d+:? ?(?:Operation not permitted)?)"
        r"|cannot (?:get|set) locked memory limit",
        lines=2,
    ),
    Message(
        "vfio.lists_permitted",
        "permittedhostdevices",
        r"permittedHostDevices:",
    ),
    Message(
        "vfio.no_kvm",
        (
            "devices.kubevirt.io/kvm",
            "/dev/kvm",
        ),
        r"Insufficient devices\.kubevirt\.io/kvm|/dev/kvm\W.*(?:No such file|not present|missing|Permission denied)",
    ),
    # A device that another driver or the boot console still holds, or that cannot be bound.
    Message(
        "vfio.held",
        ("can't reserve", "drivers/vfio-pci/", "iommugroup has changed"),
        r"IommuGroup has changed on the system|"
        rf"vfio-pci {_PCI}: BAR \d: can't reserve|/sys/bus/pci/drivers/vfio-pci/(?:bind|new_id|unbind)\b.{{0,60}}"
        r"(?:No such device|Device or resource busy|error)"
        r"|error writing .{0,60}/sys/bus/pci/drivers/vfio-pci/",
    ),
    # The DRA driver changes a GPU's driver when a claim asks for it.
    Message(
        "vfio.not_switched",
        (
            "waiting for gpu to be free",
            "has open fds by process",
            "existing driver switch for gpu",
            "vfs, cannot unbind",
            "driver directory for vfio module",
            "binding gpu ",
            "driver, expected ",
            "changing driver for gpu",
            "disabling persistence mode for gpu",
            "verifying disabled vfs",
        ),
        r"(?P<busy>timed out waiting for gpu to be free|has open fds by process(?:\(es\)|es)?"
        r"|existing driver switch for "
        r"GPU \S+ is in ?flight)|gpu has (?P<functions>\d+) VFs, cannot unbind"
        r"|(?P<module>failed to find driver directory for vfio module)|error (?:un)?binding GPU \S+ (?:to"
        r"|from) \S+ driver"
        r"|error (?:changing driver|disabling persistence mode) for GPU \S+|error verifying disabled VFs"
        r"|GPU \S+ is bound to \W?(?P<driver>\w[\w-]*)\W? driver, expected ",
    ),
    Message(
        "kata.no_port",
        ("failed to hotplug vfio device", "port is not set for device", "qmp command failed", "cold_plug_vfio",
         "hot_plug_vfio"),
        r"failed to hotplug VFIO device|_plug_vfio\S* (?:or \S+ )?port is not set for device"
        r"|(?:hot|cold)_plug_vfio\b.{0,60}\b(?:cannot|not supported|invalid|fail\w*)"
        r"|(?:cannot|invalid|not supported|bad)\b.{0,40}\b(?:hot|cold)_plug_vfio"
        r"|QMP command failed: (?:Bus 'rp\d+'|Device 'vfio-\w+') not found",
    ),
    Message(
        "vgpu.not_made",
        (
            "vmiop_log",
            "vmiop_env_log",
            "no parent devices found for gpu",
            "unable to read mdev devices directory",
            "nvidia-vgpu-vfio] ",
            "error creating vgpu device",
            "failed to create vgpu",
            "no vgpu devices found",
            "waiting for vgpu devices",
            "waiting for vgpu manager",
            "failed to apply vgpu config",
            "vgpu.config.state",
            "not supported on gpu (index=",
            "vgpu devices on the gpu",
            "vgpu device on parent device",
            "selected vgpu config",
            "operands: timed out",
            "error clearing vgpuconfig",
            "vgpu configuration error",
            "error getting all parent devices",
            "error getting all vgpu devices",
            "unable to apply config",
            "unable to restore gpu operands",
            "unable to shutdown gpu operands",
            "libnvidia-vgx.so",
            "no supported devices in vgpu mode",
            "mdev_supported_types/",
            "current_vgpu_type",
            "no virtual functions",
            "amount of graphics resource available",
        ),
        r"(?P<why3>vGPU type \S+ is not supported on GPU \(index=\d+[^\n)]*\)?"
        r"|failed to create \d+ \S+ vGPU devices on the GPU"
        r"|unable to create \S+ vGPU device on parent device[^\n]*|[Uu]nable to validate the selected vGPU config\w*"
        r"|[Uu]nable to (?:shutdown|restore) GPU operands[^\n]*|error clearing VGPUConfig[^\n]*"
        r"|Retryable vGPU configuration error[^\n]*|error getting all (?:parent devices|vGPU devices)[^\n]*)"
        r"|vmiop_(?:env_)?log: (?:\(0x\w+\): )?"
        r"(?P<why>[^\n]*(?:fail\w*|not supported|supported only|unsupported|invalid|mismatch|NVOS status 0x(?!0\b))"
        r"[^\n]*)"
        r"|(?P<why2>no parent devices found for GPU at index[^\n\"]*)|unable to read MDEV devices directory"
        r"|No supported devices in vGPU mode|no virtual functions (?:appear|are|were)"
        r"|(?:mdev_supported_types/\S+/create|current_vgpu_type)\b.{0,60}(?:error|No space left|Invalid argument)"
        r"|write error: .{0,60}(?:mdev_supported_types/\S+/create|current_vgpu_type)"
        r"|mdev_supported_types/\S+/available_instances:? ?0\b"
        r"|[Cc]ould not initialize plugin \S*libnvidia-vgx\.so"
        r"|amount of graphics resource available in the parent resource pool"
        r"|nvidia-vgpu-vfio\] [0-9a-f-]{36}: start failed|(?:error creating|failed to create) vGPU devices?\b"
        r"|No vGPU devices found|waiting for vGPU (?:devices|manager)|[Ff]ailed to apply vGPU config"
        r"|vgpu\.config\.state['\"]?[=: ]+['\"]?failed",
    ),
    # Partitions of the NVLink fabric, one a virtual machine: nv_fm_types.h.
    Message(
        "fabric.partition_fails",
        ("fabricpartition", "fabric: fm", "fabric partition", "fm_st_", "activate partition"),
        r"fabric: (?P<what>fm\w+): (?P<why>[^\n(]+?) \(code (?P<code>-\d+)\)"
        r"|(?P<what2>fm(?:Activate|Deactivate)FabricPartition\w*)\b[^\n]{0,60}?(?P<why2>FM_ST_\w+|fail\w*[^\n]*)"
        r"|failed to (?:de)?activate (?:fabric )?partition(?P<why3>[^\n]*)"
        r"|[Ff]abric partition (?:de)?activation failed: ?(?P<why4>[^\n]*)",
    ),
    Message(
        "kubevirt.no_address",
        ("not set for resource",),
        r"\b(?P<variable>(?:MDEV_)?PCI_RESOURCE_[\w.-]+) not set for resource (?P<resource>[\w.-]+/[\w.-]+)",
    ),
)
