"""What people state of runtimes, toolkits and their configuration where they quote nobody."""

from berth.evidence.message import Message

_NOTHING = r"\W{1,4}(?:is |was |are |prints |shows )?(?:empty|nothing|no output|no match(?:es)?|none|not there)\b"
_DISTRIBUTION = r"(?:k3s|rke2|k0s|microk8s)"

MESSAGES: tuple[Message, ...] = (
    Message(
        "runtime.told_no_handler",
        (
            "nvidia runtime",
            "nvidia handler",
            "grep nvidia",
            "grep -i nvidia",
            "runc only",
            "only runc",
            "nvidia section",
            "nvidia entry",
            "runtime nvidia",
            "the nvidia runtime",
            "default_runtime_name",
        ),
        r"\b(?:can'?t|cannot|could not|couldn't|unable to|did not|didn't|does not|doesn't|never) \W?"
        r"(?:find|know|see|recogni[sz]e|detect|list|pick up|load|use|have|offer)\W? (?:of |about )?(?:the |an? "
        r"|any )?(?:nvidia runtime"
        r"|runtime nvidia)\b"
        r"|\b(?:has|have|had|contains?|lists?|shows?|with|there is) (?:no|neither) (?:\w+ )?nvidia "
        r"(?:runtime|handler|section|entry)"
        r"|\b(?:lacks?|misses|without|no longer has|does not (?:have|list|contain|know)) (?:an? |the )?"
        r"nvidia (?:runtime|handler|section|entry)"
        r"|\bnvidia (?:runtime|handler|section|entry)\b[^\n]{0,30}\b(?:missing|absent|not (?:there|configured|found"
        r"|listed"
        r"|present|in)|gone)\b"
        rf"|\bgrep (?:-i )?nvidia \S*(?:containerd|config\S*\.toml|crio)\S*{_NOTHING}"
        rf"|(?:config dump|crictl info|docker info|crio config)\b[^\n]{{0,20}}grep (?:-i )?nvidia{_NOTHING}"
        r"|\bruntimes?\b[^\n]{0,20}\b(?:only runc|runc only)\b"
        r"|default_runtime_name\W{1,6}runc\W[^\n]{0,30}\b(?:expected|instead of|should be|must be|rather than)\b"
        r"[^\n]{0,12}\bnvidia\b",
    ),
    Message(
        "runtime.told_no_class",
        ("get runtimeclass", "runtimeclass nvidia", "nvidia runtimeclass", "no runtimeclass"),
        r"kubectl get runtimeclass(?:es)?\b[^\n]{0,20}(?:No resources found|\W(?:is )?empty|nothing)"
        r"|no RuntimeClass(?:es)?\b[^\n]{0,20}\bnvidia\b|\bRuntimeClass nvidia (?:is )?(?:missing|absent|not there"
        r"|does not exist|was not created)"
        r"|\bnvidia RuntimeClass (?:is )?(?:missing|absent|not there|does not exist|was not created)",
    ),
    Message(
        "runtime.told_not_restarted",
        (
            "not restarted",
            "never restarted",
            "not been restarted",
            "never been restarted",
            "without restarting",
            "without a restart",
        ),
        r"\b(?:containerd|docker|cri-?o|runtime|daemon)\b[^\n]{0,20}\b(?:was|is|has|had|were)? ?(?:not"
        r"|never)(?: been)? "
        r"restarted"
        r"|\bwithout (?:restarting|a restart of) (?:the )?(?:containerd|docker|cri-?o|runtime|daemon)",
    ),
    # Whose configuration it is that was written: root's daemon, a user's, or that of another package.
    Message(
        "runtime.told_other_daemon",
        ("sudo", "as root", "rootless", ".config/docker", "docker context", "snap docker", "docker snap"),
        r"\b(?:with sudo|as root|under sudo|via sudo|using sudo)\b[^\n]{0,30}\b(?:works?|fine|runs?|succeeds?|ok)\b"
        r"|\b(?:works?|fine|runs?|succeeds?)\b[^\n]{0,20}\b(?:with sudo|as root)\b"
        r"|\brootless (?:mode|docker|daemon)\b|/\.config/docker/daemon\.json|\b(?:snap docker|docker snap)\b",
    ),
    Message(
        "runtime.told_template",
        ("config.toml.tmpl", "config-v3.toml.tmpl"),
        r"config(?:-v3)?\.toml\.tmpl\b[^\n]{0,40}\b(?:without|lacks?|misses|missing|does not (?:have|begin|include"
        r"|use))\b"
        r"[^\n]{0,24}\bbase\b"
        r"|(?:copied|copy of) (?:the )?\S*config\.toml\b[^\n]{0,40}config(?:-v3)?\.toml\.tmpl",
    ),
    Message(
        "runtime.told_program_gone",
        ("/usr/local/nvidia/toolkit", "/usr/bin/nvidia-c", "/opt/nvidia", "nvidia-container-runtime"),
        r"(?:/usr/local/nvidia/toolkit|/usr/bin/nvidia-c|/opt/nvidia|\bnvidia-container-runtime)[\w./-]{0,60}"
        r"(?:,? which)?\W{1,3}(?:is |was |were |has been )?(?:empty|removed|gone|deleted|missing|not there|no such file"
        r"|does not exist)",
    ),
    Message(
        "runtime.told_wrong_file",
        ("containerd_config", "containerd_socket", "/etc/containerd/config.toml", "etc/docker/daemon.json"),
        rf"CONTAINERD_(?:CONFIG|SOCKET)\b[^\n]{{0,40}}/(?:etc|run)/containerd/\S+[^\n]{{0,80}}"
        rf"\b(?P<distribution>{_DISTRIBUTION})\b"
        rf"|\b(?P<distribution2>{_DISTRIBUTION})\b[^\n]{{0,80}}CONTAINERD_(?:CONFIG|SOCKET)\b[^\n]{{0,40}}"
        rf"/(?:etc|run)/containerd/"
        rf"|\b(?P<distribution3>{_DISTRIBUTION})\b[^\n]{{0,80}}\b(?:configured|edited|changed|written|set up"
        rf"|runtime is)\b"
        r"[^\n]{0,40}/etc/containerd/config\.toml"
        r"|\b(?:kubelet|kubernetes|cluster)\b[^\n]{0,30}\b(?P<engine>containerd"
        r"|cri-?o)\b[^\n]{0,120}\bonly\b[^\n]{0,40}"
        r"/etc/docker/daemon\.json",
    ),
    Message(
        "runtime.told_private",
        ("propagation", "findmnt", "mountflags=", "mounted private", "is private", "/run private"),
        r"findmnt\b[^\n]{0,60}\bprivate\b|\bpropagation\W{1,4}(?:is )?(?:private|slave)\b|MountFlags=(?:slave|private)"
        r"|/run(?:/nvidia)?\W{0,2} (?:is )?(?:mounted )?private\b",
    ),
    Message(
        "runtime.told_envvar_refused",
        "accept-nvidia-visible-devices-envvar-when-unprivileged",
        r"accept-nvidia-visible-devices-envvar-when-unprivileged\W{1,4}(?:is )?false\b[^\n]{1,80}\b(?:envvar|plugin"
        r"|strategy)"
        r"|accept-nvidia-visible-devices-envvar-when-unprivileged\W{1,4}false\b(?:[^\n]*\n){1,3}?[^\n]{0,80}"
        r"(?P<both>DEVICE_LIST_STRATEGY|device-?list-?strategy)\W{1,12}(?:value\W{1,4})?envvar\b",
        lines=4,
    ),
    Message(
        "runtime.told_hook_not_run",
        (
            "nvidia-hook.json",
            "hook is not",
            "hook was not",
            "hook isn't",
            "hook never",
            "hook is never",
            "hooks_dir",
            "hooks.d",
            "any hook",
        ),
        r"hook \S*nvidia-hook\.json did not match"
        r"|\bhook (?:is not|was not|isn't|never|is never) (?:being )?(?:loaded|executed|called|run|triggered|invoked)\b"
        r"|\b(?:will|does|do|did|would) not run any hooks?\b|\bno \W?hooks_dir\b"
        r"|/hooks\.d\b[^\n]{0,60}\b(?:not in|missing (?:in|from)|is not (?:in|among|part of)) [^\n]{0,20}hooks_dir"
        r"|hooks_dir\b[^\n]{0,60}\b(?:lacks?|does not (?:have|list|include|contain|name))\b",
    ),
    Message(
        "runtime.told_needs_default",
        ("default runtime", "runtimeclass", "runtime class", " runc", " `runc", " 'runc", ' "runc'),
        r"\b(?:unless|until|only (?:if|when|after|with))\b[^\n]{0,60}\bnvidia\b[^\n]{0,30}\bdefault runtime\b"
        r"|\bnvidia (?:is|was) (?:no longer|not)(?: set as)? (?:the )?default runtime\b"
        r"|\btoolkit\b[^\n]{0,30}\b(?:fails?|failed|unable|did not|does not)\b (?:to )?set (?:the )?default runtime\b"
        r"|\b(?:GPUs?|works?|pods?)\b[^\n]{0,30}\bonly\b[^\n]{0,40}\b(?:with|when|if|after)\b[^\n]{0,30}"
        r"\bruntimeClass(?:Name)?\b\W{0,4}nvidia\b"
        r"|\bonly (?:works?|with|when|if)\b[^\n]{0,30}\bruntimeClass(?:Name)?\b\W{0,4}nvidia\b"
        r"|\bpods? (?:started )?without (?:a |the )?runtime ?class(?:Name)?\b[^\n]{0,20}\b(?:no|not|never|cannot)\b"
        r"[^\n]{0,12}\bGPUs?\b"
        r"|\b(?:with|set to|uses?|using|under|is)(?: runc| `runc| 'runc| \"runc)\b[^\n]{0,80}"
        r"\b(?:daemon ?set|plugin)\b[^\n]{0,60}"
        r"\b(?:sees?|finds?|detects?|reports?|has|shows?) (?:0|no|zero|none of the)\b[^\n]{0,12}"
        r"\b(?:GPUs?|(?:graphics )?cards?|devices?)\b"
        r"|\b(?:daemon ?set|plugin)\b[^\n]{0,60}\b(?:sees?|finds?|detects?|reports?|shows?)\b "
        r"(?:0|no|zero)\b[^\n]{0,12}"
        r"\b(?:GPUs?|(?:graphics )?cards?|devices?)\b[^\n]{0,80}"
        r"\b(?:with|set to|uses?|using|under|is)(?: runc| `runc| 'runc| \"runc)\b",
    ),
    Message(
        "runtime.told_left_terminating",
        "terminating",
        r"\bTerminating\b[^\n]{0,80}\b(?:toolkit|containerd)\b[^\n]{0,60}\brestart"
        r"|\b(?:toolkit|containerd)\b[^\n]{0,60}\brestart\w*\b[^\n]{0,80}\bTerminating\b",
    ),
    Message(
        "cdi.told_present",
        ("cdi spec", "cdi yaml", "cdi file"),
        r"\bCDI (?:spec\w*|YAML files?|files?)\b[^\n]{0,40}\b(?:exists?|generated|present|written|there)\b",
    ),
    Message(
        "runtime.told_no_variable",
        "nvidia_visible_devices",
        r"NVIDIA_VISIBLE_DEVICES\b\W{0,3}(?:is |was )?(?:not set|unset|missing|absent|not there)\b",
    ),
    Message(
        "runtime.told_hook_unknown",
        ("hook command", "hook is unknown", "unknown hook", "hook unknown"),
        r"\bhook command (?:is )?(?:unknown|not known)|\bhook (?:is )?unknown\b|\bunknown hook\b",
    ),
    Message(
        "cdi.told_other_driver",
        ("/cdi/", "cdi spec", "nvidia.yaml", "nvidia.json"),
        r"(?:/cdi/\S+|\bnvidia\.(?:yaml|json)|CDI spec\w*)\b[^\n]{0,60}\.so\.(?P<old>\d{3}\.\d+(?:\.\d+)?)\b[^\n]{0,80}"
        r"\bdriver\b[^\n]{0,24}?\b(?P<new>\d{3}\.\d+(?:\.\d+)?)\b"
        r"|(?:/cdi/\S+|\bnvidia\.(?:yaml|json)|CDI spec\w*)\b[^\n]{0,40}\b(?:of|for|from|with) (?:driver )?"
        r"(?P<old2>\d{3}\.\d+(?:\.\d+)?)\b[^\n]{0,80}?\b(?P<new2>\d{3}\.\d+(?:\.\d+)?)\b",
    ),
    Message(
        "cdi.told_file_missing",
        "nvidia.com-gpu",
        r"\b(?:management\.|k8s\.[\w.-]+\.)?nvidia\.com-gpu[\w.-]*\.(?:yaml|json)\W{1,3}(?:is |was )?(?:missing"
        r"|absent|not there"
        r"|does not exist|not (?:written|generated|created))",
    ),
    Message(
        "cdi.told_old_containerd",
        ("containerd 1.", "containerd v1."),
        r"\b(?:cdi\.enabled|cdi-cri|cdi-annotations|enable_cdi"
        r"|CDI)\b[^\n]{0,80}\bcontainerd v?1\.[0-6](?:\.\d+)?\b(?!\d)"
        r"|\bcontainerd v?1\.[0-6](?:\.\d+)?\b(?!\d)[^\n]{0,80}\b(?:cdi\.enabled|cdi-cri|cdi-annotations|enable_cdi"
        r"|CDI)\b",
    ),
    Message(
        "cgroup.told_not_systemd",
        "systemdcgroup",
        r"\b(?:lost|removed?|dropped|drops|deleted|no longer (?:has|contains|sets))\b[^\n]{0,24}SystemdCgroup"
        r"|SystemdCgroup\b[^\n]{0,24}\b(?:lost|removed|dropped|gone|disappear\w*|overwritten)"
        r"|\b(?:has|with|sets?|shows?|still|says?)\b[^\n]{0,30}SystemdCgroup\W{0,3}=?\W{0,3}false\b"
        r"|SystemdCgroup is false\b"
        r"|\b(?:add\w*|sett?\w*|enabl\w+|need\w*|with)\b[^\n]{0,30}SystemdCgroup\W{0,6}true\b[^\n]{0,80}"
        r"\b(?:work\w*|fix\w*|solv\w+|help\w*|stable|fine)\b",
    ),
    Message(
        "cgroup.told_no_links",
        "/dev/char",
        rf"/dev/char\b[^\n]{{0,24}}nvidia{_NOTHING}|/dev/char\b[^\n]{{0,20}}\b(?:has|have|contains?) no (?:nvidia"
        rf"|links|symlinks)",
    ),
    Message(
        "cgroup.told_no_cgroups",
        "no-cgroups",
        r"no-cgroups\W{1,4}true\b[^\n]{1,120}\b(?:as root|rootful|not rootless|by root)\b",
    ),
    # A configuration of another version than the one that reads it.
    Message(
        "runtime.told_config_version",
        ("incompatible config", "incompatible containerd config", "config version", "version of the config"),
        r"\bincompatible (?:containerd )?config\w*[^\n]{0,120}\b(?:containerd|crash\w*|fail\w*)\b"
        r"|\bcontainerd\b[^\n]{0,160}\b(?:incompatible config|(?:wrong|other|older|newer|unsupported"
        r"|different) config version)",
    ),
    # Docker Swarm counts GPUs as generic resources, and hands them on in a variable of its own.
    Message(
        "runtime.swarm_unmet",
        (
            "generic-resource",
            "generic_resource",
            "generic gpu resource",
            "generic-gpu",
            "generic_gpu",
            "generic resource",
            "swarm-resource",
            "docker_resource_",
        ),
        r"\b(?:node-)?generic[-_ ](?:GPU )?resources?\b[^\n]{0,160}?\b(?:not work\w*|n't work|ignor\w+|no effect"
        r"|all (?:the )?GPUs|still|wrong|not (?:set|passed|respected|honou?red|applied))\b"
        r"|\b(?:ignor\w+|not work\w*|n't work|no effect)\b[^\n]{0,100}?\bgeneric[-_ ](?:GPU )?resources?\b"
        r"|\b(?:swarm-resource|DOCKER_RESOURCE_\w+)\b[^\n]{0,100}?\b(?:ignor\w+|not work\w*|no effect|not set|unset"
        r"|wrong|missing)\b",
    ),
    Message(
        "runtime.told_selinux",
        ("device_t", "container_use_devices"),
        r"/dev/nvidia\S*[^\n]{0,60}\b(?:object_r:)?device_t\b|\b(?:without|needs?|requires?) container_use_devices",
    ),
)
