"""What people report of the kubelet's side of devices in their own words: accounts, sockets, admission, policies."""

from berth.evidence.message import Message


def _near(first: str, second: str, gap: int = 80) -> str:
    """Two things said of each other, in either order."""
    return rf"(?:{first}).{{0,{gap}}}?(?:{second})|(?:{second}).{{0,{gap}}}?(?:{first})"


_DEVICE = r"\b(?:GPUs?|devices?|nvidia\.com/\S+)\b"
_PLUGIN = r"device[ -]?plugins?\b"
_NOT = r"\b(?:does not|doesn't|do not|don't|did not|didn't|never|fails? to|cannot|can't|not)\b"
_FREE = r"\b(?:freed?|releas\w+|reclaim\w*|de-?allocat\w+|returned|given back|cleaned(?: up)?)\b"
_SPOILT = (
    r"\b(?:truncated|corrupt\w*|is empty|zero bytes|0 bytes|unreadable|not readable|cannot be (?:read|parsed|"
    r"decoded)|invalid|broken|(?:bad|wrong) checksum|"
    r"checksum (?:mismatch|error))"
)
_MISSES = rf"(?:\bmissing|\b(?:must|has to|should) be\b|{_NOT}|\bmounts?\b|\blooks?\b|\bexpects?\b|\bwrong)"
_OTHER_HOME = (
    r"(?:/var/lib/k0s|/microk8s/\S{0,40}|/rancher/\S{0,40}|/opt/\S{0,40}|/data\d?\S{0,40}|/mnt/\S{0,40}|"
    r"/home/\S{0,40}|/srv/\S{0,40})/kubelet\b"
)

MESSAGES: tuple[Message, ...] = (
    # Accounts.
    Message(
        "reported.not_freed",
        ("free", "releas", "reclaim", "deallocat", "de-allocat", "returned", "given back", "clean", "thinks",
         "believes", "considers", "counts", "leak", "terminating"),
        rf"\bkubelet\b.{{0,20}}?\b(?:keeps|holds)\b.{{0,20}}?{_DEVICE}.{{0,40}}?\bTerminating\b|"
        rf"(?:\bkubelet\b|\bdevice ?manager\b).{{0,60}}?{_NOT}.{{0,12}}?{_FREE}.{{0,40}}?{_DEVICE}|"
        rf"{_DEVICE}.{{0,60}}?{_NOT}.{{0,12}}?{_FREE}.{{0,60}}?(?:\bkubelet\b|\bdevice ?manager\b)|"
        r"\b(?:kubelet|device ?manager)\b.{0,20}?\b(?:still |wrongly )?(?:thinks|believes|considers|counts)\b"
        rf".{{0,40}}?{_DEVICE}.{{0,30}}?\b(?:in use|allocated|taken|used|occupied|busy|assigned)\b|"
        r"\b(?:kubelet|device ?manager)\b.{0,40}?\b(?:leaks?|leaked|leaking)\b.{0,30}?" + _DEVICE,
    ),
    Message(
        "reported.account_differs",
        ("checkpoint", "pod resources", "podresources", "device manager", "devicemanager"),
        r"\b(?:device|kubelet)(?: ?manager)?(?:_internal)?[ _'s]{0,3}checkpoint\b.{0,40}?"
        r"\b(?:out of|not in|un)[ -]?sync\w*|"
        r"\b(?:device|kubelet)(?: ?manager)?(?:_internal)?[ _'s]{0,3}checkpoint\b.{0,20}?\b(?:stale|outdated)\b|"
        r"\bstale (?:device |kubelet )(?:manager )?checkpoint|"
        r"\b(?:Pod ?Resources|device ?manager)\b.{0,60}?\b(?:returns?|lists?|shows?|reports?)\b"
        r".{0,20}?\b(?:no|empty|zero|without) .{0,12}?\bdevices?\b.{0,40}?\brunning\b",
    ),
    Message(
        "reported.checkpoint_spoilt",
        ("checkpoint", "cpu_manager_state", "memory_manager_state"),
        rf"(?:\b(?:kubelet|device(?: ?manager)?)(?:_internal)?[ _'s]{{0,3}}checkpoint|(?:cpu|memory)_manager_state)\b"
        rf".{{0,60}}?{_SPOILT}|"
        rf"{_SPOILT}.{{0,40}}?(?:\b(?:kubelet|device(?: ?manager)?)(?:_internal)?[ _'s]{{0,3}}checkpoint|"
        r"(?:cpu|memory)_manager_state)\b|"
        rf"\bkubelet\b.{{0,80}}?\bcheckpoint\b.{{0,20}}?{_SPOILT}|"
        rf"\bcheckpoint\b.{{0,60}}?{_SPOILT}.{{0,60}}?\bkubelet\b.{{0,30}}?"
        r"\b(?:start|fail\w*|crash\w*|exit\w*|refus\w*)\b",
    ),
    Message(
        "reported.policy_state_differs",
        ("memory manager", "memorymanager", "memory-manager", "cpu manager", "cpumanager", "cpu-manager"),
        r"\b(?:memory|cpu)[ -]?manager\b.{0,60}?\b(?:machine )?state\b.{0,40}?"
        r"\b(?:differs?|different|mismatch\w*|not match|changed)\b",
    ),
    Message(
        "reported.reserved_missing",
        ("cpu manager", "cpumanager", "cpu-manager", "memory manager", "memorymanager", "memory-manager",
         "cpumanagerpolicy", "memorymanagerpolicy"),
        r"\b(?:cpu|memory)[ -]?manager\b.{0,60}?\breserved\b.{0,40}?\b(?:not match|not equal|mismatch\w*|differs?)\b|"
        r"\b(?:cpu|memory)[ -]?manager ?(?:policy)?\b.{0,60}?\b(?:requires?|needs?|without|no|missing)\b"
        r".{0,30}?\breserved?\b.{0,100}?\b(?:exits?|fail\w*|crash\w*|not start|refus\w*)\b|"
        r"\b(?:exits?|fail\w*|crash\w*|not start|refus\w*)\b.{0,80}?\b(?:cpu|memory)[ -]?manager ?(?:policy)?\b"
        r".{0,60}?\b(?:requires?|needs?|without|no|missing)\b.{0,30}?\breserved?\b",
    ),
    Message(
        "reported.stays_without_plugin",
        ("uninstall", "removed", "deleted", "gone", "remove the", "delete the"),
        r"\bplugin\b.{0,30}?\b(?:uninstall\w*|removed|deleted|gone)\b.{0,60}?\bresources?\b.{0,30}?"
        r"\b(?:stays?|remains?|still|not removed|never removed)\b|"
        r"\b(?:stale|old|still|stays|remains|left ?over|continues)\b.{0,60}?\b(?:capacity|allocatable|nvidia\.com/gpu)"
        r"\b.{0,60}?\bplugin\b.{0,30}?\b(?:uninstall\w*|removed|deleted|gone)\b|"
        r"\b(?:capacity|allocatable|nvidia\.com/gpu)\b.{0,60}?\b(?:stale|still|stays|remains|left ?over)\b"
        r".{0,60}?\bplugin\b.{0,40}?\b(?:uninstall\w*|removed|deleted|gone)\b|"
        r"\bplugin\b.{0,40}?\b(?:uninstall\w*|removed|deleted|gone)\b.{0,80}?"
        r"\b(?:capacity|allocatable)\b.{0,30}?\b(?:stale|still|stays|remains|left|unchanged)\b",
    ),
    # Admission.
    Message(
        "reported.admitted_before_plugin",
        ("outofnvidia", "outofamd", "unexpectedadmissionerror", "rejected", "admitted", "admits"),
        r"\b(?:OutOf(?:nvidia|amd)\S*|UnexpectedAdmissionError)\b.{0,160}?"
        rf"{_PLUGIN}.{{0,30}}?\b(?:not|n't)\b.{{0,12}}?\b(?:registered|ready|running|started|up|there)\b|"
        r"\b(?:OutOf(?:nvidia|amd)\S*|UnexpectedAdmissionError|rejected|admitted|admits)\b.{0,120}?"
        rf"\bbefore (?:the )?(?:\w+ )?{_PLUGIN}|"
        rf"{_PLUGIN}.{{0,30}}?\b(?:not|n't)\b.{{0,12}}?\b(?:registered|ready|running|started|up|there)\b"
        r".{0,120}?\b(?:OutOf(?:nvidia|amd)\S*|UnexpectedAdmissionError|pods? (?:is|are|was|were) rejected)|"
        r"\bplugin\b.{0,30}?\b(?:starts?|registers?|comes up|came up|started|registered)\b.{0,12}?\b(?:after|later)\b"
        r".{0,80}?\b(?:rejected|UnexpectedAdmissionError)|"
        r"\b(?:rejected|UnexpectedAdmissionError|OutOf(?:nvidia|amd)\S*).{0,80}?"
        r"\bplugin\b.{0,30}?\b(?:starts?|registers?|comes up|came up|started|registered)\b.{0,24}?\b(?:after|later)\b",
    ),
    Message(
        "reported.shares_asked",
        ("requestsgreaterthanone", "gpu.shared", "time-slic", "timeslic", "shared gpu", "shared device", "mps gpu",
         "mps share"),
        r"\b(?:rejected|refused|denied)\b.{0,60}?RequestsGreaterThanOne\b|"
        r"RequestsGreaterThanOne\b.{0,60}?\b(?:error|rejected|refused|fail(?:s|ed)|denied|UnexpectedAdmissionError)\b|"
        r"\b(?:ask\w*|request\w*|limits?)\b.{0,20}?\b(?:[2-9]|two|three|four|several|more than (?:1|one)|multiple)\b"
        r".{0,30}?(?:nvidia\.com/gpu\.shared\b|\btime-?slic\w+|\bshared (?:GPUs?|devices?)|\bMPS (?:GPUs?|shares?))"
        r".{0,60}?\b(?:UnexpectedAdmissionError|rejected|refused|not allowed|fails|denied)|"
        r"\b(?:UnexpectedAdmissionError|rejected|refused|not allowed|fails|denied)\b.{0,60}?"
        r"\b(?:ask\w*|request\w*|limits?)\b.{0,20}?"
        r"\b(?:[2-9]|two|three|four|several|more than (?:1|one)|multiple)\b"
        r".{0,30}?(?:nvidia\.com/gpu\.shared\b|\btime-?slic\w+|\bshared (?:GPUs?|devices?)|\bMPS (?:GPUs?|shares?))",
    ),
    Message(
        "reported.wrong_pod",
        ("wrong pod", "another pod", "other pod's", "different pod", "each other's"),
        r"\b(?:HAMi\b|v-?gpu|volcano|gpushare).{0,120}?\beach other's\b|"
        r"\b(?:HAMi|v-?gpu|volcano|gpushare|plugin|kubelet)\b.{0,80}?\b(?:allocat\w+|assign\w*|serv\w+|gives?|gave|"
        r"match\w*|annotat\w+)\b.{0,60}?\b(?:wrong pod|another pod|other pod's|different pod(?! to the same))",
    ),
    Message(
        "reported.init_container_other_device",
        "init container",
        r"\binit container\b.{0,60}?\b(?:GPUs?|devices?)\b.{0,60}?\b(?:different|another|other|twice|not reused?|"
        r"fails?)\b.{0,60}?\b(?:main|app|container|admi\w+|allocat\w+)|"
        r"\binit container\b.{0,80}?\bmain container\b.{0,20}?\bdifferent (?:GPUs?|devices?)",
    ),
    # Sockets and directories.
    Message(
        "reported.other_directory",
        ("/kubelet", "kubelet in a container", "kubelet runs in a container", "containerized kubelet",
         "containerised kubelet"),
        rf"(?:\bplugin\b|hostPath|\bmanifest\b).{{0,120}}?{_MISSES}.{{0,160}}?{_OTHER_HOME}|"
        rf"{_OTHER_HOME}.{{0,60}}?\b(?:plugin|hostPath|manifest)\b.{{0,80}}?{_MISSES}|"
        rf"\b(?:kubelet (?:runs )?in a container|containeri[sz]ed kubelet)\b.{{0,120}}?(?:device-plugins|{_PLUGIN})"
        rf".{{0,80}}?(?:\bmissing|{_NOT}|\binvisible|\babsent)",
    ),
    Message(
        "reported.selinux_socket",
        ("selinux", "denied"),
        _near(
            r"\bSELinux\b.{0,60}?\b(?:den\w+|block\w*|prevent\w*|forbid\w*|refus\w*)|"
            r"\bavc\b.{0,20}?\bdenied|\bAppArmor\b.{0,40}?\bdenied",
            rf"\bkubelet\.sock\b|device-plugins\b|{_PLUGIN}",
            100,
        ),
    ),
    Message(
        "reported.api_versions",
        "v1alpha",
        rf"(?:{_PLUGIN}|\bkubelet\b).{{0,60}}?\bv1alpha\d?\b.{{0,80}}?\bv1beta1\b|"
        r"\bv1alpha\d?\b.{0,60}?\b(?:refused|rejected)\b.{0,30}?\bkubelet\b|"
        rf"\bv1alpha\d?\b.{{0,80}}?\bv1beta1\b(?=.*?(?:{_PLUGIN}|\bkubelet\b))|"
        rf"(?:{_PLUGIN}|\bkubelet\b).{{0,60}}?\bv1alpha\d?\b.{{0,60}}?"
        r"\b(?:not|un)[ -]?(?:longer )?(?:support\w*|served?)",
    ),
    Message(
        "reported.gate_missing",
        ("deviceplugins=", "deviceplugins feature", "gate deviceplugins", "gates deviceplugins", "gate=deviceplugins",
         "gates=deviceplugins"),
        r"\b(?:without|no|missing|not set|needs?|disabled?)\b.{0,40}?"
        r"(?:feature[ -]gates?[ =]DevicePlugins|DevicePlugins=|DevicePlugins feature)|"
        r"(?:DevicePlugins=(?:true|false)|DevicePlugins feature[ -]gate)\b.{0,60}?"
        r"\b(?:missing|not set|not enabled|disabled|off|needed)",
    ),
    Message(
        "reported.registry_dial",
        ("plugins_registry", "plugin registry", "plugins registry", "registration socket", ".sock"),
        r"\bkubelet\b.{0,20}?\b(?:cannot|can't|fails? to|unable to) (?:dial|connect to|reach|open)\b.{0,90}?\.sock\b|"
        + _near(
            r"\bplugins_registry\b|\bplugins? registry\b|\bregistration socket\b",
            r"\bdial\b.{0,20}?\b(?:time ?out|fail\w*|error)|\b(?:cannot|can't|not) (?:reach\w*|dial\w*|connect\w*)|"
            r"\bdeadline exceeded",
        ),
    ),
    Message(
        "reported.watch_limit",
        ("max_user_instances", "max_user_watches", "inotify watch", "inotify instance"),
        rf"\b(?:too many|no more|out of) inotify (?:watch\w*|instances?)\b.{{0,60}}?(?:{_PLUGIN}|\bkubelet\b)|"
        rf"(?:{_PLUGIN}|\bkubelet\b).{{0,60}}?\b(?:too many|no more|out of) inotify (?:watch\w*|instances?)\b|"
        + _near(
            r"\bmax_user_(?:instances|watches)\b.{0,40}?"
            r"\b(?:exhaust\w*|too (?:low|small)|reached|exceeded|used up|hit|128)\b",
            rf"{_PLUGIN}|\bkubelet\b|\bplugin\b",
        ),
    ),
    # Control groups.
    Message(
        "reported.drivers_differ_plugin_ends",
        ("cgroupfs", "cgroup driver"),
        rf"{_PLUGIN}.{{0,40}}?\b(?:killed|terminated|dies|restart\w*|SIGTERM\w*)\b.{{0,80}}?\bcgroup driver\b|"
        rf"(?:\bsystemd\b.{{0,80}}?\bcgroupfs\b|\bcgroupfs\b.{{0,80}}?\bsystemd\b).{{0,80}}?{_PLUGIN}.{{0,40}}?"
        r"\b(?:killed|terminated|ends?|dies|restart\w*|SIGTERM|crash\w*)|"
        rf"{_PLUGIN}.{{0,40}}?\b(?:killed|terminated|ends?|dies|restart\w*|SIGTERM|crash\w*)\b.{{0,100}}?"
        r"(?:\bsystemd\b.{0,80}?\bcgroupfs\b|\bcgroupfs\b.{0,80}?\bsystemd\b)",
    ),
    Message(
        "reported.stream_ends_again",
        ("listandwatch end", "listandwatch stop", "listandwatch brea", "listandwatch brok", "listandwatch clos",
         "listandwatch fail", "listandwatch return", "listandwatch stream", "listandwatch eof", "listandwatch: eof"),
        r"\bListAndWatch(?: (?:end|stop|brea|brok|clos|fail|return|stream)\w*.{0,30}?|:? )EOF\b"
        r".{0,60}?\b(?:every|each|again|repeated\w*|restart\w*|loop)",
    ),
    # The same once more, in yet fewer words.
    Message(
        "reported.account_of_pods_gone",
        ("no longer exist", "not exist", "long gone", "already gone", "were deleted", "was deleted", "been deleted",
         "pod that is ", "pod that was ", "pods that are ", "pods that were "),
        r"(?:checkpoint\w*|\bpod ?resources|\bdevice ?manager)\b.{0,100}?"
        r"\b(?:no longer exists?|(?:do|does|did) not exist|long gone|already gone|(?:were|was|been) deleted|"
        r"pod that (?:is|was) (?:terminated|gone|deleted|finished|completed|removed|evicted)|"
        r"pods that (?:are|were) (?:terminated|gone|deleted|finished|completed|removed|evicted))\b",
    ),
    Message(
        "reported.unregistered_after_restart",
        ("restart", "upgrad"),
        r"\b(?:nvidia\.com/gpu|GPUs?|GPU count|allocatable|capacity)\b.{0,30}?\b(?:0|zero|gone)\b.{0,30}?"
        r"\b(?:after|when|whenever|every time|each time|once|since)\b.{0,24}?\bkubelet\b.{0,12}?\brestart|"
        r"\b(?:restart\w* (?:of )?(?:the )?kubelet|kubelet (?:was |is |has been |service )?(?:restart\w*|upgrad\w*))\b"
        r".{0,80}?\bplugin\b.{0,40}?\b(?:un-?registered|not registered|lost|needs? (?:a |to be )?restart\w*|"
        r"(?:must|has to) be restarted|never registers?|stale|gone)\b|"
        r"\b(?:restart\w* (?:of )?(?:the )?kubelet|kubelet (?:was |is |has been |service )?(?:restart\w*|upgrad\w*))\b"
        r".{0,80}?\b(?:0|zero|no) (?:GPUs?|allocatable|nvidia\.com/gpu)\b|"
        r"\b(?:restart\w* (?:of )?(?:the )?kubelet|kubelet (?:was |is |has been |service )?(?:restart\w*|upgrad\w*))\b"
        r".{0,80}?\b(?:nvidia\.com/gpu|GPUs?|allocatable|capacity)\W{1,3}(?:is |at |goes to |drops to )?"
        r"(?:0|zero|gone)\b",
    ),
    # The plugin is there again, and the kubelet does not take it up.
    Message(
        "reported.not_back_with_plugin",
        ("restart", "redeploy", "reinstall"),
        r"^(?!.*\b(?:unless|until|without|only|not) (?:\w+ ){0,2}re(?:start|deploy|install)).*"
        r"\b(?:re(?:start|deploy|install)(?:s|ed|ing)? (?:the |my |our )?(?:device[ -]?)?plugin|"
        r"plugin(?: is| was| pod)* re(?:start|deploy|install)ed)\b.{0,60}?"
        r"\b(?:resources?|devices?|GPUs?|capacity|allocatable|node)\b.{0,40}?"
        r"(?:(?:\bnot|n't|\bnever) (?:recover\w*|come back|return\w*|be(?:come)? (?:available|healthy))|"
        r"\b(?:remain|stay|keep)\w*\b.{0,30}?\b(?:0|zero|unhealthy)\b|\bstill\b.{0,20}?\b(?:0|zero|unhealthy)\b)|"
        r"\b(?:after|since|once)\b.{0,24}?\b(?:re(?:start|deploy|install)\w*\b.{0,24}?\bplugin|"
        r"plugin\b.{0,16}?\bre(?:start|deploy|install)\w*).{0,40}?\bcapacity\b\D{0,30}?[1-9]\d*\b.{0,24}?"
        r"\ballocatable\b\D{0,30}?\b0\b",
    ),
    Message(
        "reported.runs_without_resource",
        "running",
        r"\bplugin\b(?: pods?| daemonset)?.{0,24}?\b(?:is |are )?(?:up and )?running\b.{0,100}?"
        r"\b(?:no|zero|0|without|not|lacks?|missing)\b.{0,30}?"
        r"\b(?:nvidia\.com/gpu|amd\.com/gpu|GPU resources?|GPUs? resources?|allocatable|capacity)\b",
    ),
    Message(
        "reported.directory_absent",
        ("/device-plugins", "/plugins_registry"),
        r"/(?:device-plugins|plugins_registry)(?![/\w])\S*.{0,40}?"
        r"\b(?:(?:does|do|did) not exist|doesn't exist|is missing|missing on|absent|not found|no such)\b|"
        r"\b(?:hostPath|directory|mount)\b.{0,60}?\b(?:missing|absent|not found)\b.{0,40}?"
        r"/(?:device-plugins|plugins_registry)(?![/\w])",
    ),
    Message(
        "reported.socket_absent",
        "kubelet.sock",
        r"(?<!pod-resources/)\bkubelet\.sock\b.{0,20}?"
        r"\b(?:not found|missing|absent|does not exist|doesn't exist|invisible|not (?:visible|there|mounted|present))"
        r".{0,60}?\bplugin\b|"
        r"\bplugin\b.{0,60}?\b(?:cannot|can't|does not|doesn't|not|never) (?:find|see|reach|found)\b.{0,40}?"
        r"(?<!pod-resources/)\bkubelet\.sock\b",
    ),
    Message(
        "reported.registration_rejected",
        ("registration", "to register"),
        r"\bkubelet\b.{0,30}?\b(?:reject\w*|refus\w*|den(?:y|ies|ied))\b.{0,30}?\bregistration\b|"
        r"\bregistration\b.{0,40}?\b(?:reject\w*|refused|denied)\b.{0,30}?\bkubelet\b|"
        r"\bplugin\b.{0,30}?\b(?:fails?|failed|unable|cannot|can't)\b.{0,12}?\bto register\b.{0,40}?\bkubelet\b",
    ),
    Message(
        "reported.state_file_blocks",
        ("cpu_manager_state", "memory_manager_state"),
        r"(?:cpu|memory)_manager_state\b.{0,80}?\b(?:blocks?|prevents?|stops?|conflicts?|"
        r"not refreshed|not updated|stale|out of date|outdated|"
        r"(?:other|another|different|old) policy|left (?:over )?(?:from|by))\b|"
        r"\b(?:refuses?|fails?|failed|not|cannot|can't|unable)\b.{0,12}?\bstart\b.{0,60}?(?:cpu|"
        r"memory)_manager_state\b",
    ),
    Message(
        "reported.allocates_again",
        ("allocate again", "allocates again", "allocated again", "allocate twice", "allocated twice",
         "allocate a second", "allocates twice", "re-allocates", "reallocates"),
        r"\b(?:sidecar|init(?:[ -]container)?|restart\w*|container)\b.{0,80}?"
        r"\b(?:allocate (?:again|twice|a second)|allocate[sd] (?:again|twice)|re-?allocates)\b",
    ),
    Message(
        "reported.never_registers_again",
        ("re-regist", "reregist", "register again", "registers again"),
        r"\bplugin\b.{0,80}?\b(?:never|(?:does|did|do) not|doesn't|didn't|fails? to|failed to|without)\b.{0,20}?"
        r"\b(?:re-?regist\w+|registers? again)\b",
    ),
    Message(
        "reported.fewer_registered",
        ("fewer ", "less gpu", "less of the gpu", "less device", "less of the device", "not all "),
        r"\b(?:fewer|less|not all) (?:of the )?(?:GPUs?|devices)\b.{0,40}?"
        r"\b(?:registered|advertised|offered|allocatable|reported|shown)\b.{0,60}?\b(?:kubelet|plugin|node)\b|"
        r"\b(?:kubelet|plugin|node)\b.{0,60}?\b(?:registers?|advertises?|offers?|reports?|shows?)\b.{0,16}?"
        r"\b(?:fewer|less|not all) (?:of the )?(?:GPUs?|devices)\b",
    ),
)  # fmt: skip
