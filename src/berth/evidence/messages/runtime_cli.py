"""nvidia-container-cli and the toolkit's hooks: what they print when a container is started."""

from berth.evidence.message import Message

_CLI = r"nvidia-container-cli(?:\.real)?:?"
_NAME = r"/(?:GeForce|Tesla|Quadro|TITAN|NVIDIA|GRID|RTX|GTX|Graphics|Unknown)"

MESSAGES: tuple[Message, ...] = (
    # The NVIDIA runtime's own errors.
    Message(
        "runtime.hook_direct",
        ("runtime hook directly", "legacy hook directly"),
        r"invoking the NVIDIA Container Runtime Hook directly",
    ),
    # A program that a specification or a hook names does not know what it is asked for: it is older than who asks.
    Message(
        "runtime.hook_too_old",
        (
            "no help topic for",
            "unknown command",
            "flag provided but not defined",
            "unknown flag",
            "unrecognized option",
            "invalid option",
        ),
        r"(?:unrecognized|invalid) option\W[^\n]{0,30}\b(?:to|for|by) nvidia-(?:container-cli|ctk|cdi-hook)\b"
        r"|nvidia-(?:container-cli|ctk|cdi-hook)\S*?:? (?:unrecognized|invalid) option \W*(?P<command3>[\w-]+)"
        r"|hook[^\n]*No help topic for \W*(?P<command>[\w-]+)"
        r"|nvidia-(?:cdi-hook|ctk|container-\w+)[^\n]*(?:unknown (?:command|flag)|flag provided but not defined):? "
        r"\W*(?P<command2>[\w-]+)",
    ),
    Message(
        "runtime.hook_fails",
        ("error executing hook", "createcontainer hook", "createruntime hook", "prestart hook", "error running hook"),
        r"error executing hook \W*(?P<hook>/[\w./-]*nvidia-[\w.-]+)\W+\(exit code: (?P<code>\d+)\)"
        r"|(?:error running )?(?:create(?:Container|Runtime)|prestart) hook #\d+:? exit status (?P<code2>\d+), "
        r"(?:stdout: [^\n]*?, )?stderr:\s*"
        r"(?!No help topic)(?P<why>[^\n]{0,200})",
    ),
    Message(
        "runtime.envvar_refused",
        ("privileges to read device list", "ignoring devices specified in", "ignoring devices requested by"),
        r"insufficient privileges to read device list from \w+|Ignoring devices (?:specified in|requested by) \w+",
    ),
    Message(
        "runtime.capability_refused",
        "unsupported capabilities found in",
        r"unsupported capabilities found in \W*(?P<asked>[\w,]+)\W*(?:\(allowed \W*(?P<allowed>[\w,]+))?",
    ),
    Message(
        "runtime.cli_library",
        ("load library failed", "find any nv ", "error: cannot open shared object", "locate driver libraries"),
        rf"{_CLI}\s*initialization error: ?load library failed: ?(?P<library>lib[\w.+-]+)"
        # The same in the toolkit's debug log.
        r"|could not start driver service: ?load library failed: ?(?P<library3>lib[\w.+-]+)"
        rf"|{_CLI} initialization error: cannot open shared object file"
        # The DRA driver and the device plugin, which look for it by name in the root that they were given.
        r"|failed to locate driver libraries(?:: error locating \W*(?P<library2>lib[\w.+-]+))?"
        r"|Could not find any nv (?:files|libraries) on this host",  # Apptainer and Singularity with --nv
    ),
    Message(
        "runtime.cli_root",
        ("change root failed", "failed to change root directory"),
        r"initialization error: change root failed(?:: (?P<why>[\w ]+))?"
        r"|nvc\.c:\d+\] failed to change root directory: (?P<why2>[\w ]+)",
    ),
    Message(
        "runtime.cli_nvml",
        "nvml error",
        rf"{_CLI} \w+ error: nvml error: (?P<error>[a-z][a-z/ ]*[a-z])",
    ),
    Message(
        "runtime.cli_timeout",
        ("driver error: timed out", "rpc error: timed out"),
        rf"{_CLI} \w+ error: (?:driver (?:rpc )?error|nvcgo rpc error|rpc error): (?P<why>timed out)",
    ),
    Message(
        "runtime.cli_driver_gives_up",
        "failed to process request",
        rf"{_CLI} \w+ error: (?:driver (?:rpc )?error|nvcgo rpc error|rpc error): failed to process request",
    ),
    Message(
        "runtime.cli_cuda",
        "cuda error:",
        rf"{_CLI} \w+ error: cuda error: (?P<error>[a-z][\w -]*)",
    ),
    Message(
        "runtime.cli_denied",
        (
            "nvidia-container-cli",
            "log file",
            "_devices in non",
            "error mounting",
            "exec hook",
            "capability change failed",
            "privilege change failed",
            "/run/cdi/",
            "/etc/cdi/",
            "enroot-",
            "pyxis:",
            "apparmor=",
            "apparmor profile",
            "/attr/exec: ",
            "apparmor enabled on system but",
            "starting container process caused",
            "no read access to ",
            "avc:  denied",
            "avc: denied",
            "nvidia-persistenced/socket",
            "could not start /",
            "failed to start the child",
            "unable to signal init",
            "mknod ",
            "error creating device nodes",
            "create user namespace",
            "rootless container",
            "no subuid ranges found",
            "no subgid ranges found",
            "additional groups in a rootless",
            "could not mount /",
            "apparmor failed to apply profile",
            "apparmor_parser version",
            "docker.sock: connect: permission",
            "crun: c",
            "crun: unshare",
            "crun: mount `",
            "newuidmap",
            "newgidmap",
        ),
        # Its user cannot become who it wants to be: user namespaces of another range, rootless, a security module.
        r"(?P<what5>(?:privilege|capability) change failed): (?:operation not permitted|permission denied"
        r"|invalid argument)"
        r"|open (?P<what6>(?:/var/run|/run|/etc)/cdi/\S+?)\W*: permission denied"
        r"|(?P<what7>enroot-\w+: failed to [\w -]{3,40})[^\n]{0,160}(?:Operation not permitted|Permission denied)"
        r"|pyxis: couldn't mkdir (?P<what15>/[^\s:]+)"
        r"|pyxis:\s+mkdir: cannot create directory \W{0,3}(?P<what16>/[^\s'’]+)\W{1,4}Permission denied"
        r"|starting container process caused:? \W*(?P<what9>permission denied)\W"
        r"|you have (?P<what10>no read access to (?:runc|crun) binary)"
        r"|(?:avc:  denied  |avc: denied )\{[^}\n]*\}[^\n]{0,80}comm=\W?(?P<what11>nvidia-(?:docker|container-[\w-]+"
        r"|ctk"
        r"|cdi-hook))\b"
        r"|write (?P<what14>/proc/(?:self|thread-self|\d+)/(?:task/\d+/)?attr/exec): (?:invalid argument"
        r"|permission denied)"
        r"|unable to apply (?P<what12>apparmor profile: [^\n]{0,120})"
        r"|AppArmor enabled on system but the (?P<what13>\S+ profile could not be loaded)"
        r"|apparmor=\W?DENIED\W[^\n]{0,200}\bname=\W?(?P<what8>/[^\s\"]*nvidia[^\s\"]*)"
        r"|(?P<what17>nvidia-persistenced/socket)\W{1,3}(?:operation not permitted|permission denied)"
        r"|could not start /\S*?(?P<what18>ldconfig\S*?: [^\n]{3,80}?): (?:operation not permitted|permission denied)"
        r"|(?P<what19>failed to start the child: fork/exec /proc/self/exe): (?:operation not permitted"
        r"|permission denied)"
        r"|(?P<what20>unable to signal init): (?:permission denied|operation not permitted)"
        r"|mknod (?P<what21>\W?/dev/\S+?)\W{1,3}operation not permitted"
        r"|error creating device nodes: mount (?P<what22>/dev/\S+?):?(?: to rootfs\S*)?: (?:operation not permitted"
        r"|permission denied)"
        r"|(?P<what23>failed to create user namespace): [^\n]{0,60}(?:disabled|not permitted|denied|no space left)"
        r"|(?P<what24>rootless containers? requires? (?:user namespaces|at least one [UG]ID mapping))"
        r"|(?P<what25>no sub[ug]id ranges found)|(?P<what26>cannot set any additional groups in a rootless container)"
        r"|could not mount (?P<what27>/\S*nvidia\S*): (?:operation not permitted|permission denied)"
        r"|(?P<what28>apparmor failed to apply profile: [^\n]{0,100})"
        r"|get (?P<what29>apparmor_parser version: [^\n]{0,100})"
        r"|dial unix (?P<what30>/\S*docker\.sock): connect: permission denied"
        r"|crun: (?P<what31>clone|unshare|cannot setres[ug]id|mount `\w+` to `[\w/.-]+`): (?:operation not permitted"
        r"|permission denied)"
        r"|exec: (?P<what32>\W?(?:newuidmap|newgidmap))\W{1,3}executable file not found"
        r"|apparmor=\W?DENIED\W[^\n]{0,40}operation=\W?(?P<what33>signal)\W[^\n]{0,240}"
        r"(?:peer|comm)=\W?(?:runc|crun|containerd)\b"
        rf"|{_CLI} (?:detection|initialization|mount|container|ldcache|permission) error: "
        r"(?![^\n]*(?:cgroup|bpf|devices\.allow))(?P<what>[^\n\\]*?): (?:permission denied|operation not permitted)"
        r"|error opening (?:debug )?log file[^\n]{0,20}(?P<what2>/\S*nvidia-container\S*?):? [^\n]*"
        r"(?:permission denied|read-only file system)"
        r"|cannot set (?P<what3>MIG_(?:CONFIG|MONITOR)_DEVICES) in non.privileged container"
        r"|error mounting \W*(?P<what4>/dev/nvidia[\w/-]*)[^\n]{0,240}(?:permission denied|operation not permitted)",
    ),
    Message(
        "runtime.cli_requirement",
        ("requirement error", "unsatisfied condition", "unsupported cuda version"),
        r"unsatisfied condition: (?P<condition>\w+\s*(?:[<>=!]+|!=)\s*[\w.]+)"
        r"|requirement error: (?P<why>invalid expression)"
        r"|unsupported CUDA version: (?P<why2>(?:driver )?[\d.]+ < (?:image )?[\d.]+)",
    ),
    Message(
        "runtime.cli_ldcache",
        ("ldcache error", "error updating ldcache", "error creating soname symlinks", "could not start /"),
        r"(?:ldcache error|Error (?:updating ldcache|creating soname symlinks)): "
        r"(?!error running pivot_root)(?P<why>[^\n\\]{0,160})"
        r"|could not start /\S*?ldconfig\S*?: (?!process execution failed: exec format)(?P<why2>[^\n\\]{3,120})",
    ),
    Message(
        "runtime.cli_device",
        ("device error:", "unknown device", "detect requested gpu device"),
        rf"{_CLI} device error: (?:(?:false|true), )?(?P<device>[^\s:]+(?::\d+)?):? (?:unknown|invalid) device"
        rf"|{_CLI} device error: unknown device id: (?P<device2>(?!no-gpu-has)[^\s,]+)"
        # LXD and Incus, which look for it among the cards of the host.
        r"|start device \W*(?P<device3>[\w.-]+)\W*: Failed to detect requested GPU device",
    ),
    Message(
        "runtime.cli_exists",
        ("file creation failed", "unexpected link target"),
        r"file creation failed: (?P<path>\S+?): file exists"
        r"|(?P<link>unexpected link target)(?:: (?P<path2>[\w./+-]+))?",
    ),
    # The place in the container is taken or cannot be written: a volume lies over it, or the image is odd there.
    Message(
        "runtime.cli_target_blocked",
        (
            "file creation failed",
            "mount error: ",
            "mkdirat ",
            "create mountpoint",
            ": openat2",
            "because it is inside /proc",
            "error mounting ",
            "fulfil mount request: open ",
        ),
        r"mkdirat (?P<path4>\S*nvidia\S*?): (?P<why4>read-only file system|not a directory|permission denied)"
        r"|(?P<path5>/proc/driver/nvidia[^\s\"\\]*)\W{1,3} cannot be mounted (?P<why5>because it is inside /proc)"
        r"|failed to fulfil mount request: open (?P<path6>/\S*nvidia\S*?): (?P<why6>no such device or address)"
        r"|error mounting \W*(?P<path7>/[^\s\"\\]*nvidia[^\s\"\\]*)\W[^\n]*: (?P<why7>no such device or address)"
        r"|error mounting \W*(?P<path2>/[^\s\"'\\]*(?:nvidia|libcuda)[^\s\"'\\]*)[^\n]*create mountpoint[^\n]*: "
        r"(?P<why2>no such device or address|read-only file system|not a directory|is a directory|input/output error)"
        r"|creating \W?(?P<path3>/[^\s\"'`\\]*(?:nvidia"
        r"|libcuda)[^\s\"'`\\]*)\W?: openat2[^\n]*: (?P<why3>read-only file system"
        r"|not a directory|is a directory|too many levels of symbolic links|no such file or directory"
        r"|permission denied)"
        rf"|{_CLI} mount error: (?:file creation failed|mount operation failed|mkdir failed|open failed): "
        r"(?P<path>/\S+?): (?P<why>no such device or address|read-only file system|not a directory|is a directory"
        r"|input/output error|too many levels of symbolic links|device or resource busy|stale (?:NFS )?file handle)",
    ),
    Message(
        "runtime.cli_source_missing",
        (
            "mount error",
            "generate spec: lstat",
            "generate spec: failed to stat",
            "creating device nodes",
            "device information while adding",
            "statfs ",
            "lstat ",
            "mount /dev/nvidia",
            "mount `/dev/nvidia",
        ),
        rf"{_CLI} mount error: (?:stat failed|mount operation failed|open failed|path error|failed to mount"
        rf"|file creation failed): (?!/sys/fs/cgroup|{_NAME}: )(?P<path>/\S+?): (?:no such file or directory"
        r"|no such device(?! or address))"
        r"|generate spec: (?:lstat|failed to stat) \W*(?P<path2>/dev/nvidia(?!-uvm)[\w/-]*)\W+no such file"
        r"|device information while adding (?:custom )?device \W*(?P<path4>/dev/nvidia(?!-uvm)[\w/-]*)\W+no such file"
        r"|(?:statfs|lstat) \W?(?P<path5>/dev/nvidia(?!-uvm)[\w/-]*)\W{1,3}no such file"
        r"|mount (?P<path6>/dev/nvidia[\w/-]*)(?:->|=>| to )\S+ error: no such file"
        rf"|{_CLI} mount error: invalid device node: (?P<path7>/\S+)"
        r"|mount `(?P<path8>/dev/nvidia[\w/-]*)` to \S+ No such (?:device|file)"
        r"|error creating device nodes: mount (?P<path3>/dev/nvidia[\w-]*)[^\n]*no such file",
    ),
    # A word of the GPU's name is taken for a path: the library is older than what it reads.
    Message(
        "runtime.cli_misreads",
        ("mount error: stat failed: /", "mount error: open failed: /", "mount error: path error: /"),
        rf"{_CLI} mount error: (?:stat failed|open failed|path error): (?P<path>{_NAME}): no such file or directory",
    ),
    # Its own reading of an environment that images from before IMEX do not have.
    Message(
        "runtime.imex_misread",
        ("parsing imex info", "imex channel value"),
        r"error parsing IMEX info(?:: (?P<why>[^\n]{0,80}))?|unsupported IMEX channel value",
    ),
    # What asks for devices in words that the engine cannot put together.
    Message(
        "runtime.request_malformed",
        (
            "count and deviceids",
            "gpus option",
            "invalid argument",
            "incompatible with vms",
            "in cdi device request",
            "capabilities is required",
        ),
        r"cannot set both Count and DeviceIDs on device request"
        r"|NVIDIA configuration is incompatible with VMs|unexpected (?:count|options) in CDI device request"
        r"|devices\.\d+ capabilities is required"
        r"|invalid argument [^\n]{0,80} for \W*--gpus\W* (?:flag)?",
    ),
    # LXC and LXD run the toolkit as a hook of a container's mounts.
    Message("runtime.lxc_hook", "failed to run mount hooks", r"Failed to run mount hooks"),
    # Whatever else they say: the kind of error and its reason, for those that nothing above knows.
    Message(
        "runtime.cli_other",
        ("nvidia-container-cli: ", "nvidia-container-cli.real: "),
        r"nvidia-container-cli(?:\.real)?: (?P<kind>[a-z][\w-]*(?: \w+)?) error: "
        r"(?P<why>(?!unknown device id: no-gpu-has-)[^\n\\]{3,200})",
    ),
    Message(
        "runtime.nvidia_runtime_error",
        (
            "create nvidia container runtime: ",
            "construct oci spec modifier: ",
            "modification to oci specification: ",
            "error modifying oci spec: ",
            "oci runtime state failed: ",
        ),
        r"(?:OCI runtime state failed|failed to create NVIDIA Container Runtime|failed to construct OCI spec modifier"
        r"|could not apply required modification to OCI specification|error modifying OCI spec): (?P<why>[^\n]{3,240})",
    ),
)
