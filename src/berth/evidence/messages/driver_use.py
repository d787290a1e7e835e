"""A driver that another one holds off, that cannot be taken away, or whose devices are not there: what the kernel, the
driver manager of the GPU Operator, its upgrade controller, daemons and people write."""

from berth.evidence.message import Message

_PCI = r"(?P<pci>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-9a-f])?)"

_CONFLICT = (
    Message(
        "driver.nouveau",
        "nouveau",
        r"^\s*nouveau\s+\d+\s+\d+|already bound to nouveau|Kernel driver in use: nouveau|"
        r"driver on the denylist: nouveau|Nouveau kernel driver is currently in "
        r"use|nouveau (?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]): |failed to unload nouveau|"
        r"such as:? [\s\S]{0,20}nouveau[\s\S]*?obtained ownership|"
        r"nouveau\b[^\n]{0,50}\b(?:errors?|is (?:still )?loaded|loaded|was loaded|driver (?:is )?(?:active|loaded|"
        r"in use)|conflict|"
        r"owns?|holds?|bound|grabs?|claims?|took|crash\w*)\b|(?:errors?|conflicts?|bound|loads?|"
        r"unload\w*)[^\n]{0,40}\bnouveau\b",
    ),
    Message(
        "driver.nouveau_blacklisted",
        "nouveau",
        r"(?:blacklist nouveau|nouveau\.modeset=0|modprobe\.blacklist=\S*nouveau|rd\.driver\.blacklist=\S*nouveau)",
    ),
    Message(
        "driver.owned",
        (
            "probe routine was not called",
            "already bound to",
            "obtained ownership",
            "request_mem_region failed",
            "configured to include nvidiafb",
            "configured to include rivafb",
            "failed rivafb sanity",
            "failed nvidiafb sanity",
        ),
        rf"(?:GPU {_PCI} is already bound to (?P<owner>[\w-]+))|probe routine was not called for (?P<count>\d+) device|"
        r"obtained ownership of the NVIDIA|NVRM: request_mem_region failed|"
        # The kernel was made with a driver of the frame buffer that has the cards: the installer goes no further.
        r"kernel was configured to include (?:nvidiafb|rivafb)|Failed (?:rivafb|nvidiafb) sanity check",
    ),
    # A driver in the making, in Rust, that newer kernels bring.
    Message(
        "driver.nova",
        ("in use: nova", "novacore ", "nova-core ", "nova_core ", "bound to nova"),
        rf"\b(?:in use: |bound to )Nova(?:[-_]?Core)?\b"
        rf"|\bNova[-_]?Core {_PCI}: (?!.*\bprobe[^\n]*fail)",
    ),
    Message(
        "driver.vfio_held",
        "vfio-pci",
        r"already bound to vfio-pci|[Uu]nable to unbind vfio-pci driver|failed to unbind vfio-pci|"
        r"(?:bound|binds?|binding) (?:all |the |some |this )*(?:GPUs?|nvidia devices?) to vfio-pci|"
        r"(?:GPU|nvidia|10de)[^\n]{0,60}(?:bound|binds?|held|grabbed|claimed) (?:to|by) vfio-pci|vfio-pci\b[^\n]{0,30}"
        r"(?:holds?|owns?|grabbed|claimed|still has)[^\n]{0,20}GPU",
    ),
    Message("driver.vfio_in_use", "in use: vfio-pci", r"Kernel driver in use: vfio-pci"),
    Message(
        "driver.two_installed",
        (
            "instance of the nvidia driver is already running",
            "already pre-installed on the node",
            "driver is pre-installed on host",
            "alternate method of installing the nvidia driver",
            "register_chrdev_region() failed for nvidia",
            "cdev_add() failed for nvidia",
            "cannot create duplicate filename",
            "driver 'nvidia",
            "proc_dir_entry 'driver/nvidia",
        ),
        # What a module meets whose names another one has in the kernel already.
        r"(?P<taken>NVRM: (?:register_chrdev_region|cdev_add)\(\) failed for nvidia|"
        r"cannot create duplicate filename '/(?:bus/pci/drivers|module)/nvidia'|"
        r"Driver 'nvidia' is already registered|proc_dir_entry 'driver/nvidia\S*' already registered)|"
        r"(?P<running>An instance of the NVIDIA driver is already running, aborting)|already pre-installed on the node|"
        r"driver is pre-installed on host|alternate method of installing the NVIDIA driver was detected",
    ),
    Message(
        "driver.container_begins",
        "starting installation of nvidia driver",
        r"Starting installation of NVIDIA driver",
    ),
    # As people say it.
    Message(
        "driver.host_has_one",
        ("driver installed", "drivers installed", "installed driver", "installed nvidia driver", "installed on"),
        r"\bhosts?\b(?: that)? (?:already |also )*(?:have|has)(?: already)? (?:the |a |an )?(?:nvidia )?"
        r"drivers? installed\b|\bdrivers? (?:is|are|was|were) (?:already |also )*(?:pre-?)?installed on "
        r"(?:the |these |my |our )?(?:hosts?|nodes?|machines?)\b|"
        r"\bpre-?installed (?:nvidia )?drivers? on (?:the |these )?(?:hosts?|nodes?|machines?)",
    ),
    Message(
        "driver.not_on_vfio",
        "not bound to 'vfio-pci'",
        rf"device not bound to 'vfio-pci'; device: {_PCI} driver: '(?P<owner>[^']*)'",
    ),
    Message(
        "driver.installed_twice",
        ("driver container", "containerized driver", "containerised driver", "driver.enabled=true"),
        r"(?:host|pre-?installed)[^\n]{0,80}(?:driver container|containeri[sz]ed driver)[^\n]{0,60}(?:another|conflict|"
        r"again|as well|both)|(?:driver container|containeri[sz]ed driver)[^\n]{0,80}conflicts?[^\n]{0,40}"
        r"(?:host|pre-?installed)|driver\.enabled=true[^\n]{0,80}(?:host driver|on the host|pre-?installed)",
    ),
)

_IN_USE = (
    Message(
        "driver.in_use",
        (
            " in use", "(oe-)", "(poe-)", "unload", "rmmod", "cleanup driver modules",
            "uninstall nvidia driver components", "cleanup nvidia driver", "appears to already be loaded",
            "with non-zero usage count", "unmount /run/nvidia/driver", "nvidia/driver: target is busy",
            "nvidia driver rootfs", "unmount stale rootfs", "unmount rootfs", "could not stop nvidia grid",
            "could not stop nvlink subnet", "could not stop nvidia fabric", "could not remove ",
        ),
        # Daemons that keep the device open and do not end: the container takes no module away then.
        r"Could not stop (?:NVIDIA (?:Grid|fabric ?manager)|NVLink Subnet Manager) daemon|"
        r"[Kk]ernel (?:driver|modules?) (?:is|are) (?:still |already )?in use|"
        # In a trace of the kernel, a module with a minus is on its way out and does not get there.
        r"Modules linked in:[^\n]*\bnvidia\w*\((?:OE|POE)-\)|"
        r"Could not unload NVIDIA driver kernel modules|failed to unload driver|Module nvidia\S* is in use|"
        r"Unable to cleanup driver modules|[Ff]ailed to (?:uninstall nvidia driver components|cleanup NVIDIA driver)|"
        r"NVIDIA kernel module '?nvidia\S*'? appears to already be loaded|"
        r"(?:could not|cannot|can't|unable to|fails? to|failed to) (?:unload|rmmod)[^\n]{0,30}\bnvidia|"
        r"could not remove (?:module )?'?nvidia\w*'?: (?:Resource temporarily unavailable|Device or resource busy)|"
        r"error unloading module \\?\"nvidia\w*\\?\": |"
        rf"Attempting to remove device {_PCI} with non-zero usage count|"
        r"nvidia\S* (?:kernel )?modules? (?:is|are|is still|are still) in use|"
        r"[Ff]ailed to unload kernel module (?:nvidia\w*|gdrdrv)|"
        # The root of the old driver container, which a component that was started from it still holds.
        r"failed to (?:recursively )?unmount (?:/run/nvidia/driver|(?:stale )?(?:NVIDIA driver )?rootfs)|"
        r"umount: \S*nvidia/driver: target is busy",
    ),
    # Its init container fails again and again: all that it does there is to take the old driver away.
    Message(
        "driver.manager_fails",
        ("k8s-driver-manager", "nvidia-driver-daemonset", "nvidia-vgpu-manager-daemonset"),
        r"(?:restarting failed container|CrashLoopBackOff[^\n]{0,80}|container=)\W?k8s-driver-manager\b|"
        r"k8s-driver-manager\b[^\n]{0,30}\b(?:stuck|hangs?|fails? (?:to|with))\b|"
        r"^\s*(?:init container )?k8s-driver-manager:(?:(?!\n\s*(?:Containers|nvidia-\S+):)[\s\S])*?"
        r"Reason:\s+(?:CrashLoopBackOff|Error)\b|"
        r"nvidia-(?:driver|vgpu-manager)-daemonset[\w.-]*[^\n]*?\bInit:(?:CrashLoopBackOff|Error\b(?!:))",
        lines=24,
    ),
    # The driver manager counts who uses the modules before it sends them away; that it had to try is no fault yet.
    Message(
        "driver.already_loaded",
        ("already loaded with refcount", "is loaded with refcount"),
        r"(?:driver|module)\w* is (?:already )?loaded with refcount (?P<count>[1-9]\d*)",
    ),
    Message(
        "driver.uninstalled",
        ("successfully uninstalled nvidia", "successfully unloaded nvidia", "unmounting nvidia driver rootfs"),
        r"Successfully (?:uninstalled|unloaded) nvidia|Unmounting NVIDIA driver rootfs",
    ),
    Message(
        "driver.eviction_off",
        (
            "disabled by the upgrade policy", "superseded by the gpu operator",
            "cleanup could not automatically proceed",
            "eviction and auto-drain are disabled", "auto eviction", "auto drain",
        ),
        r"(?:Auto[ -]?(?:eviction|drain)|GPU pod eviction)[^\n]*(?:node (?P<node>[\w.-]+) )?is disabled by the "
        r"upgrade policy|"
        r"superseded by the GPU Operator's upgrade policy|"
        r"Cleanup could not automatically proceed on node (?P<node2>[\w.-]+)|eviction and auto-drain are disabled",
    ),
    Message(
        "driver.drain_failed",
        (
            "failed to drain node of gpu pods", "until all gpu pods are drained", "still hold gpu resource claims",
            "failed to evict gpu operator components", "to shutdown:", "drain-failed", "failed to drain node",
            "failed to delete gpu pods", "gpu pods to be evicted", "evict dra kubelet-plugin",
            "gpu client pods to terminate", "cannot delete all required pods", "on the node for the driver upgrade",
            "gpudriverupgrade",
        ),
        r"Failed to drain node of GPU pods|until all GPU pods are drained|"
        r"pod\(s\) still hold GPU resource claims: (?P<pods>.*)|"
        r"[Ff]ailed to evict GPU operator components|Failed to wait for (?P<component>[\w-]+) to shutdown:|"
        r"Cannot delete all required pods|Failed to delete workload pods on the node for the driver upgrade|"
        r"\bGPUDriverUpgrade\b[^\n]*\bFailed to (?:drain|cordon) (?:the )?node|"
        r"failed to drain node|failed to delete GPU pods|failed to evict DRA kubelet-plugin|"
        r"Failed to wait for GPU client pods to terminate|GPU pods to be evicted[^\n]{0,40}(?:timed out|timeout|fail)",
    ),
    Message(
        "driver.upgrade_state",
        "driver-upgrade-state",
        r"gpu-driver-upgrade-state['\"]?\s*[:=]\s*['\"]?(?P<state>[a-z-]+)",
    ),
    # As the upgrade controller says it, and people after it.
    Message(
        "driver.upgrade_failed",
        (
            "reschedule gpu operator components", "cordon node: ",
            "driver upgrade ", "upgrade-failed", "upgrade-required", "cordon-required", "wait-for-jobs-required",
            "pod-deletion-required", "drain-required", "pod-restart-required", "validation-required",
            "maintenance-required", "gpudriverupgrade", "updated the node state",
        ),
        r"failed to reschedule GPU operator components|"
        r"level=(?:fatal|error) msg=\"?failed to (?:un)?cordon node: |"
        r"Timeout exceeded for (?:validation|job completions), updated the node state[^\n]*upgrade-failed|"
        r"\bGPUDriverUpgrade\b[^\n]*\b(?:Failed to (?:restart driver pod|uncordon)|validation failed)|"
        r"driver upgrade (?:has |was |is )?(?:failed|stuck|hangs?|not (?:progress|finish|complet)\w*)|"
        r"(?:stuck|remains?|stays?) (?:in|at) [`'\"]?(?:upgrade-(?:required|failed)|"
        r"(?:cordon|wait-for-jobs|pod-deletion|drain|pod-restart|validation|uncordon|node-maintenance|"
        r"post-maintenance)-required)",
    ),
    Message(
        "driver.paused",
        "paused-for-driver-upgrade",
        r"nvidia\.com/gpu\.deploy\.(?P<operand>[\w-]+)['\"]?\s*[:=]\s*['\"]?(?:\w+_)?paused-for-driver-upgrade|"
        r"paused-for-driver-upgrade",
    ),
    Message(
        "driver.persistenced_held",
        ("could not stop nvidia", "persistence daemon", "nvidia-persistenced", "/dev/nvidia0", "nvidia-persiste"),
        r"Could not stop NVIDIA persistence daemon|nvidia-persistenced[^\n]*(?:holds?|keeps?)[^\n]*(?:GPU|driver|open)|"
        # fuser, as it names who has a device open.
        r"/dev/nvidia\d+:?\s[^\n]*\n?[^\n]*\s\d+ F?\.{3,4}m? +nvidia-persiste",
        lines=2,
    ),
)  # fmt: skip

_NODES = (
    Message(
        "driver.device_nodes_missing",
        ("/dev/nvidia", "device nodes", "device files", "nvidia-modprobe", "nvidiactl", "nvidia-smi"),
        # What makes them has to be called by hand first.
        r"\b(?:works?|starts?|succeeds?|runs?)\b[^\n]{0,20} (?:once|after)\b[^\n]{0,12} "
        r"(?:nvidia-smi|nvidia-modprobe)\b (?:was|is|has been) (?:run|called|started|executed)\b"
        r"|\b(?:until|unless)\b [^\n]{0,12}\b(?:nvidia-smi|nvidia-modprobe)\b (?:was|is|has been) "
        r"(?:run|called|started|executed)\b"
        r"|\bonly (?:start|work|run)(?:s|ed)? (?:after|once|when|if) (?:(?:i|we|you|one) )?(?:have |has )?"
        r"(?:run|runs|ran|call|calls|called) (?:nvidia-smi|nvidia-modprobe)\b"
        r"|\b(?:must|have to|had to|need to)\b (?:first )?(?:run|call) (?:nvidia-smi(?! -{1,2}\w)|nvidia-modprobe)\b"
        r"[^\n]{0,40}\b(?:first|reboot|boot|before)\b"
        r"|before (?:the )?/dev/nvidia\S* (?:exist|were|was|is|are)"
        r"|(?<!/driver)(?<!locate )(?<!pattern )(?<!-modeset: )/dev/nvidia(?P<node>\*|ctl|\d+|"
        r"-modeset)\S*\W[^\n]{0,40}(?:no such file|not found|missing|"
        r"do(?:es)? not exist|don't exist|"
        r"absent|not (?:yet )?(?:created|there|present))|cannot access '?/dev/nvidia(?P<node2>\*|ctl|\d+)|"
        r"nvidia-modprobe[^\n]{0,40}(?:not (?:found|installed)|missing|fail)|"
        r"(?:NVIDIA |GPU |/dev/nvidia\S* )device (?:nodes|files)[^\n]{0,30}(?:missing|not (?:found|created|there|"
        r"present)|do(?:es)? "
        r"not exist|absent)|(?:missing|no) (?:NVIDIA |GPU |/dev/nvidia\S* )?device nodes",
    ),
    Message(
        "driver.uvm_missing",
        ("nvidia-uvm", "nvidia_uvm", "uvm kernel module", "_uvm'", "unified memory module failed"),
        r"NVIDIA Unified Memory module failed to load|"
        r"(?:modprobe|reload\w*|rmmod) nvidia[-_]uvm[^\n]{0,60}(?:fix|help|solve|work)|"
        r"/dev/nvidia-uvm\S*\W[^\n]{0,40}(?:no such file|not found|missing|does not exist|absent|not (?:created|"
        r"there|present))|"
        r"nvidia[-_]uvm(?:-tools)?\b[^\n]{0,40}(?:not (?:being |be |getting )?(?:auto\w* )?loaded|"
        r"missing|absent|isn't loaded|is not (?:loaded|"
        r"present|there)|"
        r"does not exist|never created|not created)|(?:no|without|missing|lacks?) (?:the )?(?:/dev/)?nvidia[-_]uvm\b|"
        r"could not (?:find module by name=|insert )'nvidia[-_]\w*_uvm'|"
        r"Could not load UVM kernel module|Failed to find module 'nvidia[-_]uvm'|"
        r"Module \W?nvidia[-_]uvm\W? not found|cannot access '?/dev/nvidia-uvm",
    ),
    Message(
        "driver.dev_char_failed",
        ("symlinks under /dev/char", "error creating symlink creator", "failed to create nvidia device nodes"),
        r"Failed to create symlinks under /dev/char|error creating symlink creator|"
        r"failed to create NVIDIA device nodes",
    ),
    # It runs as a user of its own, which may not do everything: on Grace it brings the GPU's memory online.
    Message(
        "driver.persistenced_denied",
        ("nvidia-persistenced[", "nvidia-persistenced: "),
        r"(?<![\w/])nvidia-persistenced(?:\[\d+\])?: [^\n]*(?:Permission denied|Operation not permitted)",
    ),
    Message(
        "driver.persistenced_failed",
        (
            "nvidia-persistenced", "nvidia persistence daemon", "failed to query nvidia devices",
            "failed to open libnvidia-cfg", "unable to find any nvidia devices",
        ),
        r"nvidia-persistenced failed to initialize|Failed to query NVIDIA devices|nvidia-persistenced(?:\.service)?: "
        r"(?:Main process exited|Failed with result|Control process exited)|"
        r"Failed to start (?:\S+ - )?NVIDIA Persistence Daemon|Job for nvidia-persistenced(?:\.service)? failed|"
        r"Failed to open libnvidia-cfg\.so|Unable to find any NVIDIA devices|"
        r"nvidia-persistenced(?:\[\d+\])?: (?:device \S+ - failed to|NUMA: Failed|Failed to (?:lock|open|create|"
        r"register|load))\b|"
        r"ext-nvidia-persistenced\b[^\n]*(?:failed: exit code|going to restart)",
    ),
    Message(
        "driver.pod_fails",
        (
            "nvidia-driver-daemonset", "nvidia-driver-ctr", "nvidia-driver-installer", "verify gpu driver installation",
            "driver-ctr-ready", "bin/nvidia: cannot overwrite", "downloading gpu installer",
            "downloading nvidia driver", "driver daemonset pod",
        ),
        r"restarting failed container[ =]nvidia-driver-ctr\b|"
        r"Startup probe failed[^\n]*driver-ctr-ready[^\n]*timed out|failed to verify GPU driver installation|"
        r"/bin/nvidia: cannot overwrite directory|"
        r"Downloading (?:GPU installer|NVIDIA driver)[^\n]*\n[^\n]*returned error: 40[34]|"
        r"driver daemonset pods?\b[^\n]{0,40}CrashLoopBackOff|"
        r"^\s*nvidia-driver-ctr:(?:(?!\n\s*nvidia-\S+:)[\s\S])*?State:\s+Waiting\s+"
        r"Reason:\s+(?P<state2>CrashLoopBackOff|RunContainerError|ErrImagePull|ImagePullBackOff)|"
        r"nvidia-driver-(?:daemonset|ctr|"
        r"installer)[\w.-]*[^\n]*?(?P<state>(?:Init:)?CrashLoopBackOff|(?-i:\b(?:Init:)?Error\b(?!:))|"
        r"ImagePullBackOff|"
        r"ErrImagePull|OOMKilled)",
        lines=24,
    ),
)  # fmt: skip

_LICENSE = (
    Message(
        "driver.license_failed",
        (
            "acquire license",
            "acquire a license",
            "unlicensed",
            "not licensed",
            "without licen",
            "without a licen",
            "gridd",
            "grid-license-check",
            "grid license check",
        ),
        r"nvidia-gridd\S*: [^\n]*(?:Failed|Unable|Invalid|Error|expired|not found)[^\n]*|"
        r"Failed to acquire (?:a )?license from|vGPU[^\n]{0,60}(?:\bunlicensed|not licensed|"
        r"without (?:a )?licen[cs]e)|unlicensed[^\n]{0,30}vGPU|License Status\s*:\s*Unlicensed\b|"
        # Bottlerocket keeps the plugin back until the guest has its licence.
        r"grid-license-check\.service: (?:Main process exited|Failed with result)|Failed to start GRID License Check",
    ),
    Message("driver.license_acquired", "license acquired successfully", r"License acquired successfully"),
)

MESSAGES: tuple[Message, ...] = (*_CONFLICT, *_IN_USE, *_NODES, *_LICENSE)
