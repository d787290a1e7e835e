"""Containers as a container runtime and the kubelet tell of them: started or not, with or without a GPU."""

from berth.evidence.message import Message

_ALL_GPUS = (
    r"\b(?:sees?|saw|access(?:es|ed)?|expose[sd]?|visible|mount(?:s|ed)?)\b[^\n]{0,30}"
    r"\b(?:all|every) (?:the )?(?:(?:[23468]|10|16) )?GPUs?\b"
)
_MANY = ("2", "3", "4", "6", "8", "10", "16")
_UNASKED = (
    r"(?:(?:\b(?:without|no|zero|not)\b|n't\b)[^\n]{0,40}\b(?:GPU|nvidia\.com/gpu)\b[^\n]{0,20}\b(?:request|limit"
    r"|allocat)"
    r"|\brequest\w* (?:zero|0|no) GPUs?\b"
    r"|\b(?:don't|do not|didn't|did not|never) (?:request|allocate|ask for) (?:any |a )?GPU)"
)

MESSAGES: tuple[Message, ...] = (
    Message(
        "runtime.down",
        (
            ".sock: connect: connection refused",
            ".sock: connect: no such file",
            ".service: failed",
            ".service: main pro",
            ".service: start request",
            "job for containerd",
            "job for docker",
            "job for crio",
            "job for k3s",
            "job for rke2",
            "failed to start docker app",
            "failed to start containerd",
            "failed to start container runtime",
            "failed to start lightweight",
            "containerd installed but",
            "(code=exited, status=",
            "failed to start daemon: ",
            "failed to get listener for ",
            "containerd exited: ",
        ),
        # cAdvisor tries every runtime that there might be, and says so at each start of a kubelet.
        r"^(?!.*(?:unable to dial|sock-dir|container factory failed)).*"
        r"dial unix (?P<socket>/[\w./-]*(?:containerd|crio|dockershim|cri-dockerd)"
        r"[\w./-]*\.sock): connect: (?P<why>connection refused|no such file or directory)"
        r"|systemd\[1\]: (?P<unit>containerd|crio|docker|k3s|k3s-agent|rke2-(?:server|agent)|k0s\w+"
        r"|snap\.microk8s\.\S*containerd)"
        r"\.service: (?:Failed with result|Main process exited|Start request repeated too quickly)"
        r"|Job for (?P<unit2>containerd|crio|docker|k3s(?:-agent)?|rke2-(?:server|agent))\.service failed"
        r"|Failed to start (?P<unit3>Docker Application Container Engine|containerd container runtime"
        r"|Container Runtime Interface for OCI|Lightweight Kubernetes)"
        r"|ExecStart=/\S*?/(?P<unit4>dockerd|containerd|crio)\b[^\n]*\(code=exited, status=[1-9]"
        r"|failed to start daemon: (?!specified default runtime)(?P<why3>[^\n]{3,160})"
        r"|failed to get listener for (?:main|debug) (?P<why4>[^\n]{3,160})"
        r"|\b(?P<unit5>containerd) exited: (?:exit status|signal|fork/exec)"
        r"|containerd installed but (?P<why2>socket file does not exist|service is not active)",
    ),
    Message(
        "runtime.visible_unasked",
        (
            "all gpu",
            "every gpu",
            "all the gpu",
            "every the gpu",
            *(f"{which} {many} gpu" for which in ("all", "every", "all the", "every the") for many in _MANY),
        ),
        rf"{_ALL_GPUS}[^\n]{{0,60}}\b(?:although|though|even though|but|while|despite|when)\b[^\n]{{0,40}}"
        r"\b(?:request\w*|assign\w*|allocat\w*|limit\w*|asked?)\b[^\n]{0,12}\b(?:one|two|1|2|only|single)\b"
        r"|\b[Aa]ll (?:the |of the )?GPUs\b[^\n]{0,24}\b(?:visible|seen|accessible|exposed)\b[^\n]{0,60}"
        r"\b(?:although|though|but|while|despite|when)\b[^\n]{0,40}\b(?:request\w*|assign\w*|allocat\w*|limit\w*"
        r"|asked?)\b"
        rf"|{_UNASKED}[^\n]{{0,120}}{_ALL_GPUS}|{_ALL_GPUS}[^\n]{{0,120}}{_UNASKED}"
        rf"|\b(?:requests?|requested|limits?|asks? for|asked for)\b[^\n]{{0,40}}\b1\b[^\n]{{0,120}}{_ALL_GPUS}"
        rf"|NVIDIA_VISIBLE_DEVICES\W{{1,4}}(?:none|void)\b[^\n]{{0,120}}{_ALL_GPUS}",
    ),
    # Containers that the NVIDIA runtime has not touched.
    Message(
        "runtime.no_nvml",
        ("load nvml", "libnvidia-ml.so", "error_library_not_found"),
        r"^(?!.*load library failed)(?:.*(?:could not load NVML library|unable to load NVML"
        r"|libnvidia-ml\.so(?:\.1)?: cannot open shared object|(?:NVML|nvml)\W.*ERROR_LIBRARY_NOT_FOUND))",
    ),
    # A container's nvidia-smi or program, which gives no reason.
    Message(
        "runtime.nvml_unsaid",
        "failed to initialize nvml",
        r"^[^\n]{0,80}\bFailed to initialize NVML[\s.!'\"]*$",
    ),
    # DCGM's own words for the same, of exporters that begin with NVML.
    Message(
        "runtime.dcgm_without_nvml",
        "failed to initialize nvml",
        r"Failed to initialize NVML\W*\n[^\n]*(?:starting nv-hostengine|DCGM initialization error|starting embedded)",
        lines=3,
    ),
    # Apptainer cannot put files into a directory that it is to leave writable.
    Message(
        "runtime.nv_not_bound",
        "nv files may not be bound",
        r"nv files may not be bound with --writable",
    ),
    Message(
        "runtime.no_labels",
        ("no labels will be created", "no labels generated"),
        r"no labels (?:will be created|generated)",
    ),
    Message(
        "runtime.no_smi",
        "nvidia-smi",
        r"/\.singularity\.d/actions/\w+: line \d+: exec: nvidia-smi: not found"
        r"|executable file \W*nvidia-smi\W* not found"
        r"|process \W*/bin/\w*sh -c [^\n]{0,120}nvidia-smi[^\n]{0,120} did not complete successfully: exit code: 127"
        r"|command \W*/bin/\w*sh -c [^\n]{0,120}nvidia-smi[^\n]{0,120} returned a non-zero code: 127"
        r"|\bnvidia-smi\W+(?:executable file not found|stat \S{0,40}nvidia-smi: no such file)"
        r"|validating toolkit installation.*nvidia-smi.*not found"
        # A mount that nobody filled.
        r"|\bnvidia-smi\b[^\n]{0,60}\b(?:blank|empty|zero[- ]byte|0[- ]bytes?|zero[- ]length) (?:text )?file\b",
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
        r"hostPath type check failed: (?P<path>(?=/\S*(?:nvidia|/cdi|gpu|rancher|device-plugins|pod-resources"
        r"|containerd|crio|docker\.sock)|/dev/)"
        r"/\S*) is not an? (?P<wanted>[\w ]+)",
    ),
    Message(
        "runtime.store_full",
        "no space left on device",
        r"nvidia-container-cli(?:\.real)?: mount error: file creation failed: [^\n]{0,200}no space left on device"
        r"|(?:pull(?:ing)? image|extract(?:ing)? layer|unpack\w*|snapshot\w*|register layer|write|copy\w*"
        r"|mkdir)\b[^\n]{0,300}"
        r"(?:/var/lib/(?:containerd|docker|containers|rancher)|/snapshots?/|/overlay2?/|io\.containerd\.)[^\n]{0,200}"
        r"no space left on device",
    ),
    # nvidia-smi is in the container and what it loads is not.
    Message(
        "runtime.smi_without_library",
        "find libnvidia-ml.so",
        r"NVIDIA-SMI couldn.?t find libnvidia-ml\.so library",
    ),
    # A container that acts as a node, and was started without the host's GPUs.
    Message(
        "runtime.kind_without_gpu",
        ("umount: /proc/driver/nvidia", "getting gpu info on node", "patching /proc/driver/nvidia on node"),
        r"umount: /proc/driver/nvidia: not (?:mounted|found)|patching /proc/driver/nvidia on node "
        r"\W*(?P<node2>[\w.-]+)\W*: |getting GPU info on node \W*(?P<node>[\w.-]+)\W*: executing command",
    ),
    # What people say of a container that misses its devices.
    Message(
        "runtime.said_not_injected",
        ("/dev/nvidia", "nvidia device", "nvidia-smi"),
        r"\b(?:solution|fix|workaround|needed|had to|have to"
        r"|required)\b[^\n]{0,60}/dev/nvidia-uvm[^\n]{0,60}(?:--device"
        r"|to the container)"
        r"|\bnvidia-smi (?:is|was|gets)\b[^\n]{0,40}\b(?:blank|empty|zero.(?:byte|length)) file\b"
        r"|\b(?:inside|within|in) (?:the |a |my |our |this |that )?(?:[\w-]+ )?(?:pod|container)s?\b[^\n]{0,80}?"
        r"(?:/dev/nvidia(?!-caps)[\w*-]*|nvidia devices?)[^\n]{0,40}\b(?:missing|not (?:there|found|present|injected"
        r"|mounted"
        r"|visible|exist\w*)|do(?:es)? not exist|absent|lack\w*)"
        r"|\b(?:pod|container)s? (?:has|have|had|gets?|sees?|starts?|runs?|is)\b[^\n]{0,40}\b(?:no|without"
        r"|lacks?|misses|missing) (?:any |the )?(?:/dev/nvidia(?!-caps)[\w*-]*|nvidia devices?)"
        r"|\b(?:no|lacks?|without|missing|misses) (?:any |the )?(?:/dev/nvidia(?!-caps)[\w*-]*"
        r"|nvidia devices?)[^\n]{0,40}"
        r"\b(?:inside|within|in) (?:the |a |my |our |this |that )?(?:[\w-]+ )?(?:pod|container)s?\b"
        r"|(?:/dev/nvidia(?!-caps)[\w*-]*|nvidia devices?)[^\n]{0,40}\b(?:missing|not (?:there|found|present|injected"
        r"|mounted"
        r"|visible)|absent)\b[^\n]{0,20}\b(?:inside|within|in|from) (?:the |a |my |our |this |that )?(?:[\w-]+ )?"
        r"(?:pod|container)s?\b",
    ),
    Message(
        "runtime.cni_plugin_missing",
        "failed to find plugin ",
        r"failed to find plugin \W*(?P<plugin>[\w.-]+)\W* in path \W*(?P<path>/[\w./-]+)",
    ),
    # What people say of how they started a container.
    Message(
        "runtime.flag_unset",
        ("--runtime", "--gpus", "default runtime", "buildkit"),
        r"\b(?:without|no|forgot|missing|did not (?:set|pass|use|add)|didn.t (?:set|pass|use|add))\b[^\n]{0,30}"
        r"(?:--runtime[ =]nvidia|--gpus\b)"
        r"|\b(?:docker )?build\b[^\n]{0,20}\buses? (?:the )?default runtime\b"
        r"|\bBuildKit\b[^\n]{0,40}(?:nvidia-smi\b[^\n]{0,30}\bnot found|\b(?:no|without a?) ?GPU\b)"
        r"|\bonly with (?:DOCKER_)?BUILDKIT\b",
    ),
    # A program that an image does not have, as runc and crun name it; that of the driver is put in by the runtime.
    Message(
        "runtime.program_not_in_image",
        ("executable file ", "enroot-switchroot: failed to execute"),
        r"^(?!.*skip plugin)(?:.*?"  # one of containerd's own, which it looks for when it starts
        r"exec:? \W{0,6}(?!(?:runc|crun|conmon|pinns|apparmor_parser|new[ug]idmap"
        r"|fuse-overlayfs|containerd-shim\S*?)\W)"
        r"(?P<program>(?!\S*nvidia)"
        r"[\w./-][^\"\n\\]{0,80}?)\W{1,6}executable file not found in \$PATH"
        r"|.*?executable file \W(?P<program2>(?!\S*nvidia)[\w./-]+)\W not found in \$PATH"
        r"|.*?enroot-switchroot: failed to execute: (?P<program3>\S+): No such file)",
    ),
    # A former attempt still holds the name: it hangs, or was given up while it went on.
    Message(
        "runtime.name_reserved",
        (
            "reserve container name",
            "reserve sandbox name",
            "name is reserved",
            "may be retrying requests",
            "has been reserved",
            "not yet finished",
            "operation timeout: context",
            "error: context deadline",
            "start sandbox container",
            "create sandbox container",
        ),
        r"failed to reserve (?:container|sandbox) name|error reserving (?:ctr|pod) name [^\n]{0,200}name is reserved"
        r"|failed to (?:start|create) sandbox container [^\n]{0,120}(?:operation timeout|context deadline exceeded)"
        r"|\bkubelet\b[^\n]{0,60}\bError: context deadline exceeded"
        r"|Kubelet may be retrying requests that are timing out in CRI-O",
    ),
    # A container that was not made, whatever the reason: for reasons that nothing else knows.
    Message(
        "runtime.not_created",
        (
            "oci runtime create failed",
            "create shim task",
            "create containerd task",
            "container create failed",
            "oci runtime error",
            "pyxis: co",
            "container creation failed: ",
        ),
        r"pyxis: (?P<why2>container start failed with error code: \d+|couldn't start container"
        r"|container exited too soon[^\n]{0,60})|FATAL: +container creation failed: (?P<why3>[^\n]{3,240})"
        r"|(?:OCI runtime create failed|failed to create shim task|container create failed|OCI runtime error"
        r"|failed to create containerd task)(?:: (?:failed to create shim task|OCI runtime create failed"
        r"|runc create failed"
        r"|unable to start container process|error during container init))*: (?P<why>[^\n]{3,240})",
    ),
)
