"""Container runtimes: containerd, CRI-O, Docker, runc, nvidia-container-cli, and what the kubelet repeats of them."""

from berth.evidence.message import Message

_CLI = r"nvidia-container-cli(?:\.real)?:?"
_BINARY = (
    r"(?P<binary>(?:/[\w./-]{1,200}/)?nvidia-"
    r"(?:container-(?:runtime(?:[.-][a-z][\w-]*)*|toolkit|cli(?:\.real)?)|ctk|cdi-hook))"
)
_NAME = r"/(?:GeForce|Tesla|Quadro|TITAN|NVIDIA|GRID|RTX|GTX|Graphics|Unknown)"
_DRIVER_FILE = r"[\W]{0,3}(?P<path>[\w./+-]*/(?:nvidia-[\w.-]+|libnvidia-[\w.+-]+|libcuda\.[\w.]+)(?:;\w+)?)\W{0,2}"
_ALL_GPUS = r"\b(?:sees?|saw|access(?:es|ed)?|expose[sd]?|visible)\b[^\n]{0,30}\b(?:all|every) (?:the )?GPUs?\b"
_UNASKED = (
    r"(?:\b(?:without|no|zero|not)\b|n't\b)[^\n]{0,40}\b(?:GPU|nvidia\.com/gpu)\b[^\n]{0,20}\b(?:request|limit|allocat)"
)

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
        ),
        r"no runtime for \W*(?P<handler>[\w.-]+)\W* is configured"
        r"|(?:failed|unable) to find runtime handler \W*(?P<handler2>[\w.-]+)"
        r"|RuntimeHandler \W*(?P<handler3>[\w.-]+)\W* not supported"
        r"|runtime handler \W*(?P<handler4>[\w.-]+)\W* (?:is )?not (?:found|supported|configured|registered)"
        r"|unknown (?:or invalid )?runtime (?:name|specified|type):? \W*(?P<handler5>[\w.-]+)"
        r"|invalid runtime name:? \W*(?P<handler6>[\w.-]+)",
    ),
    Message(
        "runtime.class_missing",
        "runtimeclass",
        r"RuntimeClass(?:es\.node\.k8s\.io)? \W*(?P<name>[\w.-]+)\W* not found",
    ),
    Message("runtime.type_missing", "runtime.name must be set", r"Runtime\.Name must be set"),
    Message(
        "runtime.config_refused",
        (
            "failed to load toml",
            "expected containerd config version",
            "invalid disabled plugin uri",
            "higher than root config version",
            "load required plugin ",
        ),
        r"failed to load TOML(?: from (?P<path>[^\s:]+))?(?:: (?P<why>[^\n]{0,160}))?"
        r"|expected containerd config version equal to or less than \W*(?P<most>\d)\W*, got \W*(?P<version>\d)"
        r"|drop-in config (?:\S+ )?version (?P<drop>\d+) (?:is )?higher than root config version (?P<root>\d+)"
        r"|load required plugin (?P<why2>io\.containerd\.[^\n]{0,160})"
        r"|invalid disabled plugin URI",
    ),
    Message(
        "runtime.key_ignored",
        "unknown key in toml",
        r"Ignoring unknown key in TOML(?:.*\bkey=\W*(?P<key>[\w. -]+?)\W*(?:\w+=|$))?",
    ),
    Message(
        "runtime.cri_off",
        ("unknown service runtime.v1", "api is not implemented", "cri plugin"),
        r"unknown service runtime\.v1(?:alpha2)?\.(?:Runtime|Image)Service|CRI v1 \w+ API is not implemented"
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
        r"runtime \W*(?P<type>io\.containerd\.[\w.-]+)\W* binary not installed[^\n]{0,20}containerd-shim-[\w-]+",
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
        ("config.toml", "config-v3.toml", "containerd.toml", "containerd-template"),
        r"^(?=.*\b(?:re-?generate[sd]|over-?wr(?:itten|ites?|ote)|re-?rendered|renders|revert(?:ed|s)|stomped|"
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
        "runtime.config_lost",
        ("removed", "is gone", "are gone", "disappear", "is lost", "reverted"),
        r"\b(?:reboot|restart)\w*\b[^\n]{0,120}\bnvidia\b[^\n]{0,120}\b(?:removed|gone|lost|disappears?|disappeared|"
        r"reverted)\b"
        r"|\bnvidia\b[^\n]{0,120}\b(?:removed|gone|lost|disappears?|disappeared|reverted)\b[^\n]{0,120}\b(?:after|"
        r"when|on|"
        r"at)\b[^\n]{0,120}"
        r"\b(?:reboot|restart)",
    ),
    # Programs that are not there.
    Message(
        "runtime.binary_missing",
        (
            "nvidia-container-runtime",
            "nvidia-container-toolkit",
            "nvidia-container-cli",
            "nvidia-ctk",
            "nvidia-cdi-hook",
            "nvidia-container-",
        ),
        rf"(?:\bexec|stat|find|path)\b[^\n]{{0,200}}?{_BINARY}\W*"
        r"(?:executable file not found|no such file or directory)"
        rf"|fork/exec {_BINARY.replace('binary', 'binary2')}: (?:permission denied|exec format error)"
        rf"|{_BINARY.replace('binary', 'binary3')} did not terminate suc+essfully"
        r"(?:: exit status (?:1|2|126|127)\b|(?!: exit))"
        rf"|executable file \W*{_BINARY.replace('binary', 'binary4')}\W* not found"  # crun's order of words
        r"|couldn't find binary nvidia-container-cli|nvidia-(?:container-\w+|ctk): (?:command )?not found"
        # enroot and LXC, which call the tool from scripts.
        r"|(?:Command not found|Missing tool):? nvidia-container-cli",
    ),
    Message(
        "runtime.library_missing",
        (
            "libnvidia-container",
            "nvc_",
            "symbol lookup error",
            "nvidia-container-toolkit",
            "error while loading shared libraries",
            "relocation error: ",
            "not found (required by ",
        ),
        r"libnvidia-container(?:-go)?\.so\.\d+: (?:cannot open|version)|nvidia-container-cli\S* symbol lookup error"
        # What the loader says of the toolkit's own programs: a library of the host, or one of another release.
        rf"|{_BINARY}: (?:error while loading shared libraries: (?P<library>[\w.+-]+)"
        r"|(?:symbol lookup error|relocation error: )"
        r"|/[^\s:]+: version \W{0,2}(?P<library2>[\w.]+)\W{0,2} not found \(required by )"
        r"|(?P<absent>nvidia-container-toolkit)\W{0,2}(?: package)? (?:is |was )?(?:not installed|missing)\b"
        r"|undefined symbol: nvc_|symbol lookup error: \S*libnvidia-container",
    ),
    Message(
        "runtime.no_device_driver",
        "could not select device driver",
        r"could not select device driver \W*?(?P<driver>\w*)\W* with capabilities",
    ),
    Message(
        "runtime.low_level_missing",
        ("no runtime binary found", "low-level runtime", "error constructing runtime", "error locating runtime"),
        r"no runtime binary found from candidate list|error (?:constructing|locating) (?:low-level )?runtime",
    ),
    # It does not know the version of what an engine or a specification asks it for.
    Message(
        "runtime.low_level_too_old",
        ("unknown version specified", "unsupported spec version", "unsupported oci version"),
        r"(?P<program>crun|runc|youki|kata\S*)\b[^\n]{0,60}(?:unknown version specified"
        r"|unsupported (?:spec|OCI) version)",
    ),
    # The NVIDIA runtime's own errors.
    Message(
        "runtime.hook_direct",
        ("runtime hook directly", "legacy hook directly"),
        r"invoking the NVIDIA Container Runtime Hook directly",
    ),
    # A program that a specification or a hook names does not know what it is asked for: it is older than who asks.
    Message(
        "runtime.hook_too_old",
        ("no help topic for", "unknown command", "flag provided but not defined", "unknown flag"),
        r"hook[^\n]*No help topic for \W*(?P<command>[\w-]+)"
        r"|nvidia-(?:cdi-hook|ctk|container-\w+)[^\n]*(?:unknown (?:command|flag)|flag provided but not defined):? "
        r"\W*(?P<command2>[\w-]+)",
    ),
    Message(
        "runtime.hook_fails",
        ("error executing hook", "createcontainer hook", "error running hook"),
        r"error executing hook \W*(?P<hook>/[\w./-]*nvidia-[\w.-]+)\W+\(exit code: (?P<code>\d+)\)"
        r"|error running createContainer hook #\d+:? exit status (?P<code2>\d+), stdout: [^\n]*?, stderr: "
        r"(?!No help topic)(?P<why>[^\n]{0,200})",
    ),
    Message(
        "runtime.down",
        (
            ".sock: connect: connection refused",
            ".sock: connect: no such file",
            ".service: failed",
            ".service: main pro",
            ".service: start request",
        ),
        # cAdvisor tries every runtime that there might be, and says so at each start of a kubelet.
        r"^(?!.*(?:unable to dial|sock-dir|container factory failed)).*"
        r"dial unix (?P<socket>/[\w./-]*(?:containerd|crio|dockershim|cri-dockerd)"
        r"[\w./-]*\.sock): connect: (?P<why>connection refused|no such file or directory)"
        r"|systemd\[1\]: (?P<unit>containerd|crio|docker|k3s|k3s-agent|rke2-(?:server|agent)|k0s\w+"
        r"|snap\.microk8s\.\S*containerd)"
        r"\.service: (?:Failed with result|Main process exited|Start request repeated too quickly)",
    ),
    Message(
        "runtime.visible_unasked",
        ("all gpu", "every gpu", "all the gpu", "every the gpu"),
        rf"{_UNASKED}[^\n]{{0,120}}{_ALL_GPUS}|{_ALL_GPUS}[^\n]{{0,120}}{_UNASKED}",
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
        "runtime.ldcache_unusable",
        ("ldcache", "ld cache", "error: init ", "ldconfig -p", "ld.so.cache", "sandboxutils"),
        r"error loading ldcache|(?:failed|unable) to (?:open|load|create|read) (?:the )?ld ?cache"
        r"|open \S{0,80}/ld\.so\.cache: no such file|ERROR: init \d+ result=11\b"
        r"|sandboxutils\S*[^\n]{0,80}(?:segfault|SIGSEGV|crash\w*|exit(?: code)? 139)"
        r"|ldconfig -p[^\n]{0,80}nvidia\S*\W+(?:empty|nothing|no output)",
    ),
    Message(
        "runtime.cli_library",
        ("load library failed", "find any nv "),
        rf"{_CLI}\s+initialization error: load library failed: (?P<library>lib[\w.+-]+)"
        r"|Could not find any nv (?:files|libraries) on this host",  # Apptainer and Singularity with --nv
    ),
    Message(
        "runtime.cli_root",
        "change root failed",
        r"initialization error: change root failed(?:: (?P<why>[\w ]+))?",
    ),
    Message(
        "runtime.cli_nvml",
        "nvml error",
        rf"{_CLI} \w+ error: nvml error: (?P<error>[a-z][a-z/ ]*[a-z])",
    ),
    Message(
        "runtime.cli_timeout",
        ("rpc error: failed to process", "driver error:", "rpc error: timed out"),
        rf"{_CLI} \w+ error: (?:driver (?:rpc )?error|nvcgo rpc error|rpc error): (?P<why>timed out"
        rf"|failed to process request)",
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
        ),
        # Its user cannot become who it wants to be: user namespaces of another range, rootless, a security module.
        r"(?P<what5>(?:privilege|capability) change failed): (?:operation not permitted|permission denied"
        r"|invalid argument)"
        r"|open (?P<what6>(?:/var/run|/run|/etc)/cdi/\S+?)\W*: permission denied"
        rf"|{_CLI} (?:detection|initialization|mount|container|ldcache|permission) error: "
        r"(?![^\n]*(?:cgroup|bpf|devices\.allow))(?P<what>[^\n\\]*?): (?:permission denied|operation not permitted)"
        r"|error opening (?:debug )?log file[^\n]{0,20}(?P<what2>/\S*nvidia-container\S*?):? [^\n]*"
        r"(?:permission denied|read-only file system)"
        r"|cannot set (?P<what3>MIG_(?:CONFIG|MONITOR)_DEVICES) in non.privileged container"
        r"|error mounting \W*(?P<what4>/dev/nvidia[\w/-]*)[^\n]{0,240}(?:permission denied|operation not permitted)",
    ),
    # A program that is there and whose loader is not: one for glibc in an image with another C library.
    Message(
        "runtime.no_loader",
        "nvidia-smi",
        r"\bexec:? \W{0,2}/usr/bin/nvidia-smi\W{1,4}no such file or directory"
        r"|Error relocating \S*nvidia-smi: |nvidia-smi: not found[^\n]{0,80}\b(?:alpine|musl)\b",
    ),
    Message(
        "runtime.cli_requirement",
        ("requirement error", "unsatisfied condition"),
        r"unsatisfied condition: (?P<condition>\w+\s*(?:[<>=!]+|!=)\s*[\w.]+)"
        r"|requirement error: (?P<why>invalid expression)",
    ),
    Message("runtime.cli_ldcache", "ldcache error", r"ldcache error: (?P<why>[^\n\\]{0,160})"),
    Message(
        "runtime.cli_device",
        ("device error:", "unknown device"),
        rf"{_CLI} device error: (?:(?:false|true), )?(?P<device>[^\s:]+):? (?:unknown|invalid) device",
    ),
    Message(
        "runtime.cli_exists",
        ("file creation failed", "unexpected link target"),
        r"file creation failed: (?P<path>\S+?): file exists|unexpected link target: (?P<path2>[\w./+-]+)",
    ),
    # The place in the container is taken or cannot be written: a volume lies over it, or the image is odd there.
    Message(
        "runtime.cli_target_blocked",
        ("file creation failed", "mount error: ", "create mountpoint"),
        r"error mounting \W*(?P<path2>/[^\s\"'\\]*(?:nvidia|libcuda)[^\s\"'\\]*)[^\n]*create mountpoint[^\n]*: "
        r"(?P<why2>no such device or address|read-only file system|not a directory|is a directory|input/output error)"
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
        ),
        rf"{_CLI} mount error: (?:stat failed|mount operation failed|open failed|path error|failed to mount"
        rf"|file creation failed): (?!/sys/fs/cgroup|{_NAME}: )(?P<path>/\S+?): (?:no such file or directory"
        r"|no such device(?! or address))"
        r"|generate spec: (?:lstat|failed to stat) \W*(?P<path2>/dev/nvidia(?!-uvm)[\w/-]*)\W+no such file"
        r"|device information while adding (?:custom )?device \W*(?P<path4>/dev/nvidia[\w/-]*)\W+no such file"
        r"|error creating device nodes: mount (?P<path3>/dev/nvidia[\w-]*)[^\n]*no such file",
    ),
    # A word of the GPU's name is taken for a path: the library is older than what it reads.
    Message(
        "runtime.cli_misreads",
        ("mount error: stat failed: /", "mount error: open failed: /", "mount error: path error: /"),
        rf"{_CLI} mount error: (?:stat failed|open failed|path error): (?P<path>{_NAME}): no such file or directory",
    ),
    # A package cannot put its file where something is mounted: a box that was given the host's programs.
    Message(
        "runtime.file_is_mount",
        (
            "unable to make backup link of ",
            "unable to install new version of ",
            "unable to move aside ",
            "unable to securely remove ",
            "cannot remove ",
            "cannot move ",
            "unpacking of archive failed on file ",
        ),
        rf"unable to (?:make backup link of|install new version of|move aside|securely remove) {_DRIVER_FILE}[^\n]*: "
        r"(?:Invalid cross-device link|Device or resource busy)"
        rf"|cannot (?:remove|move) {_DRIVER_FILE.replace('path', 'path2')}(?: to [^\n:]+)?: Device or resource busy"
        rf"|unpacking of archive failed on file {_DRIVER_FILE.replace('path', 'path3')}[^\n]*: cpio: (?:rename|unlink)"
        r"[^\n]*(?:Device or resource busy|Invalid cross-device link)",
    ),
    # Containers that the NVIDIA runtime has not touched.
    Message(
        "runtime.no_nvml",
        ("load nvml", "libnvidia-ml.so", "error_library_not_found"),
        r"^(?!.*load library failed)(?:.*(?:could not load NVML library|unable to load NVML"
        r"|libnvidia-ml\.so(?:\.1)?: cannot open shared object|(?:NVML|nvml)\W.*ERROR_LIBRARY_NOT_FOUND))",
    ),
    # DCGM's own words for the same, of exporters that begin with NVML.
    Message(
        "runtime.dcgm_without_nvml",
        "failed to initialize nvml",
        r"Failed to initialize NVML\W*\n[^\n]*(?:starting nv-hostengine|DCGM initialization error|starting embedded)",
        lines=3,
    ),
    # Jetson: what the runtime mounts from the host. An image has empty files in its place.
    Message(
        "runtime.no_tegra_libraries",
        ("libnvrm", "libnvdla_compiler", "libnvos.so", "file too short"),
        r"\blib(?:nvrm\w*|nvdla_compiler|nvos)\.so\S*: cannot open shared object"
        r"|/aarch64-linux-gnu/\S+\.so\S*: file too short",
    ),
    Message(
        "runtime.no_labels",
        ("no labels will be created", "no labels generated"),
        r"no labels (?:will be created|generated)",
    ),
    Message(
        "runtime.no_smi",
        "nvidia-smi",
        r"executable file \W*nvidia-smi\W* not found"
        r"|\bnvidia-smi\W+(?:executable file not found|stat \S{0,40}nvidia-smi: no such file)"
        r"|validating toolkit installation.*nvidia-smi.*not found",
    ),
    Message(
        "runtime.plugin_crashes",
        "nvidia-device-plugin",
        r"nvidia-device-plugin[^\n]*(?:CrashLoopBackOff|Back-off restarting failed container)"
        r"|(?:CrashLoopBackOff|Back-off restarting failed container)[^\n]*nvidia-device-plugin",
    ),
    Message("runtime.crashes", "crashloopbackoff", r"CrashLoopBackOff"),
    Message(
        "runtime.left_created",
        ("container state", "init:", "stuck in "),
        r"container state:? Created|Init:\d+/\d+\b.*\bCreated\b|stuck in (?:the )?(?:state )?.?Created\b",
    ),
    # Mounts and paths.
    Message(
        "runtime.mount_not_shared",
        ("is not a shared mount", "shared or slave mount"),
        r"(?:path \W*(?P<path>/[^\s\"'\\]*)\W* is mounted on \W*(?P<mount>/[^\s\"'\\]*)\W* but )?it is not a sha"
        r"red(?: or slave)? mount"
        r"|is not a shared(?: or slave)? mount",
    ),
    Message(
        "runtime.host_path_wrong",
        "hostpath type check failed",
        r"hostPath type check failed: (?P<path>(?=/\S*(?:nvidia|/cdi|gpu|rancher|device-plugins|pod-resources)|/dev/)"
        r"/\S*) is not an? (?P<wanted>[\w ]+)",
    ),
    Message(
        "runtime.store_full",
        "no space left on device",
        r"(?:pull(?:ing)? image|extract(?:ing)? layer|unpack\w*|snapshot\w*|register layer|write|copy\w*"
        r"|mkdir)\b[^\n]{0,300}"
        r"(?:/var/lib/(?:containerd|docker|containers|rancher)|/snapshots?/|/overlay2?/|io\.containerd\.)[^\n]{0,200}"
        r"no space left on device",
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
        ),
        r"nvidia-(?:container|ctk|cdi)\S*[^\n]{0,120}toml: line |error getting hook config"
        r"|invalid runtime mode:? \W*(?P<mode>[\w-]+)"
        r"|(?:nvidia|NVIDIA)[^\n]{0,200}error loading config|couldn't open default configuration file"
        r"|unable to configure the Docker daemon with file (?P<docker>/[^\s:]+): (?P<why>[^\n]{0,200})",
    ),
    Message(
        "runtime.nri_absent",
        ("nri.sock", "nri is disabled", "nri disabled", "nri is not enabled", "nri not enabled", "nri plugin"),
        r"nri\.sock\b[^\n]{0,80}(?:no such file|connection refused)|\bNRI (?:is )?(?:disabled|not enabled)"
        r"|(?:failed|unable) to (?:connect|register|start|run)[^\n]{0,60}\bNRI plugin"
        r"|\bNRI plugin\b[^\n]{0,60}(?:failed|exited)",
    ),
    Message(
        "runtime.hooks_not_searched",
        ("hooks_dir", "hooks.d", "oci hooks"),
        r"(?:hooks_dir|crio?\b|cri-o)[^\n]{0,120}\b(?:lacks?|without|missing|not configured to look"
        r"|does not (?:look|search|include|contain|list|have)|is not looking)\b[^\n]{0,80}"
        r"(?:hooks\.d|hooks_dir|OCI hooks)",
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
    Message(
        "runtime.os_blocks",
        "blocked by the operating system",
        r"GPU access blocked by the operating system",
    ),
    Message(
        "runtime.gvisor",
        ("nvproxy", "runsc"),
        r"nvproxy[^\n]{0,200}(?:unknown (?:control command|ioctl|allocation class|uvm)|unsupported|not supported"
        r"|incompatible)"
        r"|runsc[^\n]{0,200}(?:driver version|nvidia)[^\n]{0,200}not supported",
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
