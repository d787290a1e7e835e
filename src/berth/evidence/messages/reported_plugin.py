"""What people report of device plugin and kubelet in their own words: the fact, in any order of its words."""

from berth.evidence.message import Message

_PLUGIN = r"device[ -]?plugins?\b"
_GONE = ("deleted", "gone", "removed", "finished", "completed", "evicted", "nonexistent", "non-existent")
_CRASHES = (
    r"\b(?:crash\w*|fail\w*|error\w*|exits?|zero|0|"
    r"(?:not|n't|never)(?: get| come| be)?(?: to| up)? (?:run|running|start\w*|Running|ready))\b"
)
_NO_PARTS = (
    r"(?:\bwithout (?:any )?(?:instance|GPU instance|MIG device|MIG instance|MIG slice|slice|partition)s?|"
    r"\b(?:no|not have any|n't have any) (?:actual )?(?:MIG device|MIG instance|MIG slice|MIG resource|instance"
    r"|GPU instance|slice|partition)s?|\bat least one (?:MIG )?(?:device|instance|slice|partition))\b"
)
_UNEQUAL = (
    r"\b(?:different|mixed|several|heterogeneous|non-uniform|not (?:the )?(?:same|uniform|identical))\b"
    r".{0,20}?\b(?:profiles?|geometr\w+|instances?|layouts?|slices?)\b"
)
_SINGLE = r"\b(?:strategy(?: |=|: ?| is )\W?single|single (?:MIG )?strategy)\b"
_ANEW = (
    r"(?:(?:it is |a |the )?(?:device )?(?:plugin )?(?:is )?restart|"
    r"(?:restarting|a restart of) (?:the )?(?:device )?plugin)"
)
_SHARED = r"(?!.*\b(?:time[- ]?slic|MPS\b|replicas|shared|sharing))"

MESSAGES: tuple[Message, ...] = (
    # What does not come back after the kubelet.
    Message(
        "reported.socket_removed",
        ("nvidia-gpu.sock", "nvidia.sock", "plugin socket", "plugin's socket"),
        r"(?:nvidia(?:-gpu)?\.sock|plugin(?:'s)? socket)\b.{0,80}?"
        r"\b(?:deleted|removed|gone|missing|disappear\w*|wiped)\b",
    ),
    Message(
        "reported.never_listed",
        ("listandwatch is never", "listandwatch was never", "listandwatch never", "listandwatch is not called",
         "calls listandwatch", "call listandwatch", "invokes listandwatch", "invoke listandwatch"),
        r"ListAndWatch (?:(?:is|was) )?never|ListAndWatch is not called|"
        r"\b(?:never|not|doesn't|didn't) (?:calls?|invokes?) ListAndWatch",
    ),
    Message(
        "reported.ended_again_and_again",
        ("sigterm", "signal terminated", "signal \"terminated", "signal \\\"terminated", "signal 'terminated"),
        rf"^(?=.*{_PLUGIN})(?=.*\brestart\w*\b.{{0,30}}?\b(?:every|each|again|repeated\w*|loop\w*|constant\w*|"
        rf"continu\w*|"
        r"min\w*|seconds?)\b)"
        r".*(?:SIGTERM|signal \W{0,2}terminated)",
    ),
    # What is given away twice, or held by nobody.
    Message(
        "reported.account_of_gone_pods",
        tuple(f"{gone} {what}" for gone in _GONE for what in ("pod", "job", "container")),
        r"^(?=.*\b(?:checkpoint|pod ?resources|device ?manager)\b)"
        r"(?=.*\b(?:still|stale|old|left ?over|leaked?|entries|shows|owned|lists)\b)"
        rf".*\b(?:{'|'.join(_GONE)}) (?:pod|job|container)s?\b",
    ),
    Message(
        "reported.one_device_seen_twice",
        ("same gpu", "same nvidia_visible_devices", "same device", "same uuid"),
        rf"^{_SHARED}.*?\b(?:two|both|2|several|multiple|different) (?:\w+ )?(?:pods|containers|jobs)\b.{{0,40}}?"
        r"\b(?:got|get|gets|have|had|see|use|were given|received|are given|end up with|land on|run on|"
        r"(?:were |are |being )?(?:allocated|assigned|handed))\b.{0,30}?"
        r"\bsame (?:GPU|NVIDIA_VISIBLE_DEVICES|device|UUID)\b|"
        rf"^{_SHARED}.*?\bsame (?:GPU|device|UUID)(?: UUID)?\b.{{0,40}}?\b(?:two|several|both|multiple|2) "
        r"(?:\w+ )?(?:pods|containers)\b",
    ),
    # What the plugin offers.
    Message(
        "reported.smi_has_more",
        ("nvidia-smi lists", "nvidia-smi shows", "nvidia-smi sees", "nvidia-smi reports"),
        r"nvidia-smi (?:lists|shows|sees|reports) (?:all )?(?P<all>\d{1,2}) (?:\w+ )?"
        r"(?:GPUs?|cards?|devices?)\b.{0,50}?\b(?:capacity|allocatable|plugin|kubelet|node|"
        r"kubectl)\b\D{0,50}?\b(?P<left>\d{1,2})\b",
    ),
    Message(
        "reported.vanished_still_offered",
        ("device plugin", "device-plugin", "deviceplugin"),
        rf"{_PLUGIN}.{{0,60}}?\b(?:still|keeps|continues)\b.{{0,30}}?\b(?:advertis\w+|report\w*|offer\w*)\b"
        r".{0,60}?\b(?:disappear\w*|vanish\w*|missing|removed|not (?:respond\w*|there)|hangs?)\b",
    ),
    Message(
        "reported.out_of_memory",
        ("device-plugin", "device plugin", "plugin memory leak", "plugin pod memory leak"),
        r"^(?!.*?\bnfd-\w+ (?:\w+ )?OOM).*?"
        r"device[ -]plugin(?!-valid)\S*.{0,80}?\b(?:OOM ?-?[Kk]ill\w*|out of memory)\b|"
        r"^(?!.*?\bnfd-\w+ (?:\w+ )?OOM).*?\bOOM ?-?[Kk]ill\w*.{0,60}?\bdevice[ -]plugin\b(?!-valid)|"
        r"device[ -]plugin(?!-valid)\S*.{0,60}?\b(?P<leak>(?:memory|goroutines?) ?(?:usage )?"
        r"(?:grows?|leaks?|leak\w*|increas\w+|keeps growing)|memory leak|goroutine leak)\b|"
        r"\bplugin (?:pod )?(?P<leak3>memory leak)|"
        r"(?P<leak2>(?:memory|goroutine) leak)\b.{0,60}?\bdevice[ -]plugin\b",
    ),
    Message(
        "reported.plugins_on_one_node",
        ("device plugin", "device-plugin", "deviceplugin"),
        rf"\b(?:clash\w*|conflict\w*)\b.{{0,40}}?{_PLUGIN}.{{0,40}}?\band\b.{{0,40}}?{_PLUGIN}|"
        rf"{_PLUGIN}.{{0,80}}?\b(?:and|beside|next to|plus|as well as|alongside)\b.{{0,60}}?{_PLUGIN}"
        r".{0,60}?\b(?:same node|both|at once|together|each other|conflict\w*|same resource|fight\w*|compet\w+|"
        r"clash\w*|overwrit\w+)\b|"
        # A unit of systemd that the node's image brings.
        rf"{_PLUGIN}.{{0,120}}?\b(?:and|beside|next to|plus|as well as|alongside)\b.{{0,40}}?device-plugin\.service\b",
    ),
    # How it is configured.
    Message(
        "reported.strategy_none_with_mig",
        ("migstrategy", "mig-strategy", "mig_strategy", "mig strategy", "mig.strategy"),
        r"mig[-_. ]?strategy\W{0,4}(?:is |was |set to )?\W?none\b.{0,80}?\bMIG\b.{0,20}?"
        r"\b(?:mode|enabled|on|devices|active)\b|"
        r"\bMIG (?:mode )?(?:is )?(?:enabled|on|active)\b.{0,80}?mig[-_. ]?strategy\W{0,4}"
        r"(?:is |was |set to )?\W?none\b",
    ),
    Message(
        "reported.named_by_index",
        ("deviceidstrategy", "device-id-strategy", "device_id_strategy", "device id strategy"),
        r"device(?:id|-id-|_id_| id )strategy\W{0,4}(?:is |was |set to )?\W?index\b.{0,100}?"
        r"\b(?:another|other|wrong|different|changed?|order|swapp\w*|mixed up)\b",
    ),
    Message(
        "reported.other_root",
        ("root-dir", "rootdir", "root dir"),
        r"--?root-dir\W{1,3}(?!/var/lib/kubelet\b)/\S+.{0,80}?\bno (?:GPU |device )?resources?\b|"
        r"--?root-dir\W{1,3}(?!/var/lib/kubelet\b)/\S+.{0,120}?\b(?:device[ -]plugin|plugins?|resource|socket)\b"
        r".{0,80}?\b(?:never|not|missing|absent|mounts?|looks?)\b",
    ),
    Message(
        "reported.state_file",
        ("cpu_manager_state", "memory_manager_state"),
        r"(?:cpu|memory)_manager_state\b.{0,80}?\b(?:must|has to|had to|needs? to|should)\b.{0,12}?"
        r"\b(?:removed|deleted)\b|\b(?:remov\w+|delet\w+|rm)\b.{0,60}?(?:cpu|memory)_manager_state\b",
    ),
    # Health.
    Message(
        "reported.replica_lost",
        ("allocatable", "capacity"),
        r"(?:\b(?:Xid|unhealthy)\b.{0,80}?)?\ballocatable\b.{0,40}?\bfrom (?P<of>\d{1,3}) to (?P<left>\d{1,3})\b"
        r"(?=.{0,100}?\b(?:replicas?|shared|time-?slic\w*)\b)|"
        r"\b(?:replicas?|shared|time-?slic\w*)\b.{0,80}?\b(?:allocatable|capacity)\b.{0,40}?"
        r"\bfrom (?P<of2>\d{1,3}) to (?P<left2>\d{1,3})\b",
    ),
    Message(
        "reported.no_recovery",
        ("not recover", "n't recover", "never recover", "not come back", "never comes back", "n't come back",
         "keeps unhealthy", "stays unhealthy", "remains unhealthy", "still unhealthy", "stuck unhealthy"),
        rf"{_PLUGIN}.{{0,60}}?(?:\bnot recover\w*|n't recover\w*|\bnever recover\w*|\bnot come back|n't come back|"
        r"\bnever comes back)|"
        r"\b(?:GPU|device)s?\b.{0,60}?(?:\bnot recover\w*|n't recover\w*|\bnever recover\w*|\bnot come back|"
        r"n't come back|\bnever comes back|\b(?:keeps|stays|remains|still|stuck) unhealthy).{0,120}?"
        rf"\b(?:{_PLUGIN}|plugin\b|DaemonSet)",
    ),
    Message(
        "reported.all_unhealthy",
        ("unhealthy", "health check"),
        r"\ball (?:of )?(?:the )?(?:node's )?(?:GPUs|devices|cards)\b.{0,60}?\bunhealthy\b.{0,60}?"
        r"\b(?:at once|at the same time|simultaneously|together|NVML|events?|exporter|socket)|"
        r"\b(?:NVML|event (?:loop|set)|health (?:service|exporter))\b.{0,60}?\ball (?:of )?(?:the )?"
        r"(?:GPUs|devices|cards)\b.{0,60}?\bunhealthy|"
        r"\b(?:does not|doesn't|do not|don't|cannot) support (?:NVML )?(?:health ?(?:check\w*|monitor\w*|events?))"
        r"(?=.{0,120}?\b(?:unhealthy|plugin)\b).{0,120}?\bunhealthy|"
        r"\bunhealthy\b.{0,80}?\b(?:does not|doesn't|do not|don't|not) support\w* (?:NVML )?health check",
    ),
    Message(
        "reported.user_fault_is_illness",
        ("xid ", "mistakenly", "wrongly", "falsely", "incorrectly", "dp_disable_healthchecks"),
        r"\b(?:mistakenly|wrongly|falsely|incorrectly|needlessly)\b.{0,30}?\bunhealthy\b|"
        r"\b(?:not|never|n't)\b.{0,12}?\brecover\w*\b.{0,60}?\bXid \d+\b.{0,24}?"
        r"\b(?:resolved|gone|cleared|over|past|transient)\b|"
        r"\bDP_DISABLE_HEALTHCHECKS\b.{0,24}?\b(?:helps?|helped|solve[sd]?|fix(?:es|ed)|workaround|works)\b|"
        r"\b(?:after|until|with|by) setting DP_DISABLE_HEALTHCHECKS\b|"
        r"\bXid \d+\b.{0,100}?\bplugin\b.{0,30}?\b(?:treats?|counts?|takes|considers?)\b"
        r".{0,20}?\b(?:critical|unhealthy|fatal|illness|hardware)|"
        r"\bplugin\b.{0,40}?\b(?:marks?|sets?|withdr\w+)\b.{0,40}?\bunhealthy\b.{0,60}?\b(?:application|user)"
        r"\w*\b.{0,30}?\bXid \d",
    ),
    Message(
        "reported.health_unwatched",
        ("dp_disable_healthchecks", "health check", "healthcheck"),
        r"\bDP_DISABLE_HEALTHCHECKS\W{1,3}(?:all|xids)\b(?=.*\b(?:XID|lost|dead|fail\w*|schedulable)\b)|"
        r"\bplugin\b.{0,40}?\bignor\w+\b.{0,40}?\bXid\b.{0,80}?\bhealth ?check",
    ),
    Message(
        "reported.hung_still_offered",
        ("still shows", "still has", "still lists", "still reports", "still advertises", "still says", "keeps showing",
         "keeps reporting"),
        r"\bplugin\b.{0,40}?\b(?:hangs?|hung|stuck|D state|D-state|uninterruptible|blocked)\b.{0,100}?"
        r"\b(?:still (?:shows|has|lists|reports|advertises|says)|keeps (?:showing|reporting))\b.{0,20}?"
        r"(?:\d+ (?:GPUs?|devices?)|nvidia\.com/gpu|\ball\b)",
    ),
    Message(
        "reported.call_times_out",
        ("allocate call", "allocate request", "allocate rpc", "in allocate", "to allocate", "on allocate",
         "during allocate", "the allocate"),
        r"\bAllocate (?:call|request|rpc).{0,40}?\bplugin\b.{0,30}?"
        r"\b(?:times? out|timed out|hangs?|never (?:returns|answers)|"
        r"not (?:answer\w*|respond\w*)|deadline)|"
        r"\bplugin\b.{0,40}?\b(?:hangs?|blocks?|stuck|not (?:answer|respond)\w*|times? out)\b.{0,30}?"
        r"\b(?:in|to|on|during) (?:the )?Allocate\b",
    ),
    # How it is configured.
    Message(
        "reported.profiles_differ",
        ("strategy", "single strategy", "single mig strategy"),
        rf"{_SINGLE}.{{0,120}}?(?:\b(?P<one>\d+g\.\d+gb)\b.{{0,60}}?(?!(?P=one))\b\d+g\.\d+gb|{_UNEQUAL})|"
        rf"\bin MIG mode\b.{{0,30}}?\b(?:is not|isn't|not in MIG|are not|without)\b.{{0,80}}?{_SINGLE}|"
        rf"(?:\b(?P<other>\d+g\.\d+gb)\b.{{0,60}}?(?!(?P=other))\b\d+g\.\d+gb\b|{_UNEQUAL}).{{0,120}}?{_SINGLE}",
    ),
    Message(
        "reported.partitions_stale",
        ("until ", "after ", "still ", "keeps "),
        r"\b(?:MIG|partition\w*|reconfigur\w+|geometry)\b.{0,120}?\b(?:old|stale|former|previous|missing|only|appear)\b"
        rf".{{0,80}}?\b(?:until |after ){_ANEW}|"
        r"\b(?:MIG|partitions?|slices)\b.{0,60}?\b(?:invisible|not (?:visible|seen|shown)|absent|unseen)\b.{0,40}?"
        r"\b(?:until |after ).{0,24}?\bplugin\b|"
        r"\bplugin\b.{0,20}?\b(?:still |keeps )"
        r"(?:hands? out|handing out|offers?|offering|advertis\w+|uses?|using|lists?)\b.{0,12}?"
        r"\b(?:old|former|stale|previous) MIG\b",
    ),
    Message(
        "reported.mig_without_instances",
        ("without instance", "without any instance", "without any gpu instance", "without gpu instance",
         "without mig device", "without mig instance", "without any mig device", "without any mig instance",
         "have any mig", "no mig resource", "have any instance", "have any gpu instance", "have any partition",
         "no mig device", "no mig instance", "no instance", "no gpu instance", "without partition",
         "without any partition", "no partition", "at least one", "mig slice", "no slice", "without slice",
         "actual mig"),
        rf"\bMIG\b.{{0,60}}?{_NO_PARTS}.{{0,80}}?{_PLUGIN}.{{0,40}}?{_CRASHES}|"
        rf"{_NO_PARTS}.{{0,60}}?\bMIG\b.{{0,80}}?{_PLUGIN}.{{0,40}}?{_CRASHES}|"
        rf"{_PLUGIN}.{{0,40}}?{_CRASHES}.{{0,80}}?\bMIG\b.{{0,60}}?{_NO_PARTS}",
    ),
    Message(
        "reported.mps_refused",
        ("replicas", "mps-root", "not supported", "unsupported", "refused", "cannot be used", "cannot be combined",
         "not work", "not allowed"),
        r"\bMPS\b.{0,60}?\breplicas\b.{0,40}?(?:\b(?:more|greater|larger|higher) than|\babove|\bover|\bexceed\w*|>)"
        r" ?(?:48|16)\b|"
        r"--mps-root\b.{0,30}?\b(?:not set|missing|unset|not given|absent|empty|required)|"
        r"\b(?:no|without|missing) --mps-root\b|"
        r"\bMPS\b.{0,40}?\b(?:not supported|unsupported|refused|cannot be (?:used|combined)|not (?:work|allowed))\b"
        r".{0,30}?\b(?:with|for|on|and)\b.{0,16}?\bMIG\b|"
        r"\bMIG\b.{0,40}?\bMPS\b.{0,40}?\b(?:not supported|unsupported|refused|cannot be (?:used|combined))\b",
    ),
    Message(
        "reported.mps_daemon_fails",
        ("mps control", "mps daemon", "mps server", "control daemon"),
        r"\bMPS (?:control|daemon|server)\b.{0,80}?\b(?:fails?|cannot|can't|unable|crash\w*)\b"
        r".{0,80}?\b(?:EXCLUSIVE_PROCESS|exclusive[ _]process|compute mode|SELinux|permission\w*|/dev/shm)\b|"
        r"\bMPS\b.{0,60}?\bexclusive[ _]process\b.{0,60}?\b(?:cannot|can't|fails?|failed|denied|not)\b.{0,80}?"
        r"\bcontrol daemon\b|"
        r"\bMPS\b.{0,80}?/dev/shm\b.{0,40}?\bMPS daemon\b.{0,30}?\btoo small|"
        r"/dev/shm\b.{0,20}?\bof the MPS (?:control )?daemon\b.{0,30}?\btoo small",
    ),
    Message(
        "reported.config_makes_it_crash",
        ("replicas", "rejects", "refuses", "to load", "to parse", "to read", "cannot load", "cannot parse",
         "cannot read", "not match"),
        r"\b(?:ConfigMap|config|time-?slicing|sharing)\b.{0,40}?\breplicas\W{0,3}[01]\b.{0,60}?"
        r"\b(?:crash\w*|refus\w*|reject\w*|fails?|error|invalid)|"
        r"\breplicas\W{0,3}[01]\b.{0,40}?\b(?:ConfigMap|config|time-?slicing|sharing|device[ -]plugin)\b.{0,60}?"
        r"\b(?:crash\w*|refus\w*|reject\w*|fails?|error|invalid)|"
        r"\bplugin\b.{0,20}?\b(?:rejects?|refuses?|cannot (?:load|parse|read)|fails? to (?:load|parse|read))\b"
        r".{0,20}?\bconfig\w*|"
        r"\b(?:resource name|config)\b.{0,80}?\bnot match\b.{0,20}?\b(?:any )?(?:regex\w*|pattern)\b",
    ),
    Message(
        "reported.selects_nothing",
        ("selector",),
        r"\bselectors?\b.{0,20}?\b(?:match(?:es|ed)? (?:no|none|nothing|zero|0)|"
        r"(?:do|does|did) ?(?:not|n't) match (?:any|a))\b",
    ),
    Message(
        "reported.rights_missing",
        ("forbidden", "not allowed", "no permission", "lacks", "rbac", "service account", "serviceaccount"),
        rf"{_PLUGIN}.{{0,120}}?\bservice ?account\b.{{0,24}}?"
        r"\b(?:commented out|missing|wrong|not set|removed|changed|absent)\b|"
        rf"{_PLUGIN}.{{0,120}}?\b(?:commented out|removed|changed|without) (?:the |a |its )?service ?account\b|"
        rf"(?:{_PLUGIN}|\bgpu-feature-discovery\b|\bconfig-manager\b).{{0,30}}?"
        r"\b(?:service ?account|RBAC|cluster ?role)\b.{0,80}?\b(?:forbidden|not allowed|no permission|lacks)",
    ),
    # The same once more, in yet fewer words.
    Message(
        "reported.never_looked_at_again",
        ("re-evaluat", "reevaluat", "re-check", "recheck", "re-examin", "permanently unhealthy", "unhealthy for ever",
         "unhealthy forever", "unhealthy until", "unhealthy till"),
        r"\bplugin\b.{0,60}?\b(?:never|not|n't)\b.{0,12}?\b(?:re-?evaluat|re-?check|re-?examin)\w*|"
        r"\b(?:GPUs?|devices?)\b.{0,60}?\b(?:permanently unhealthy|unhealthy (?:for ?ever|until|till))\b",
    ),
    Message(
        "reported.gone_still_offered",
        ("still", "keeps", "continues", "stays at", "remains at"),
        r"\b(?:fell off|fallen off|lost|dead|gone|failed|missing|hot-?unplugged|removed|unplugged)\b.{0,80}?"
        r"\b(?:node|kubelet|plugin|kubectl|allocatable|capacity)\b.{0,24}?"
        r"\b(?:still (?:advertis\w+|offer\w*|report\w*|show\w*|list\w*|ha[sd]|count\w*|says?)|"
        r"keeps (?:advertising|offering|reporting|showing|listing|counting)|"
        r"continues to (?:advertise|offer|report|show)|"
        r"(?:stays|remains) at)\b.{0,20}?"
        r"\b(?:\d+|two|four|six|eight|sixteen|all|it|nvidia\.com/gpu|the (?:GPU|device))\b",
    ),
    Message(
        "reported.pair_serves_one",
        ("plugins", "daemonsets", "two drivers"),
        r"\b(?:two|both|2|several|multiple|three)\b(?: \S+){0,3} (?:plugins|daemonsets)\b.{0,60}?"
        r"\b(?:regist\w+|advertis\w+|serv\w+|offer\w*|export\w*)\b.{0,30}?"
        r"(?:\b(?:nvidia|amd|intel)\.com/|gpu\.intel\.com/|\bsame (?:resource|node|host|socket|name))",
    ),
    Message(
        "reported.empty_mig",
        ("without instance", "without any instance", "without any gpu instance", "without gpu instance",
         "without mig device", "without mig instance", "without any mig", "have any mig", "have any instance",
         "have any gpu instance",
         "have any partition",
         "no mig resource", "no mig device", "no mig instance",
         "no instance", "no gpu instance", "without partition", "without any partition", "no partition",
         "at least one", "mig slice", "no slice", "without slice", "without any slice", "actual "),
        rf"\bMIG\b.{{0,60}}?{_NO_PARTS}.{{0,80}}?\b(?:plugin|kubelet|allocatable|node)\b.{{0,40}}?{_CRASHES}",
    ),
    Message(
        "reported.mps_daemon_missing",
        ("mps daemon", "mps control", "mps-control-daemon", "mps from", "mps never", "never start", "never comes up",
         "never come up", "from starting", "from coming up", "from ever"),
        r"\bmps-control-daemon\b.{0,20}?\b(?:absent|missing|not (?:there|deployed|running|found))\b|"
        r"\bMPS\b(?!.*\bclaim).{0,16}?\b(?:never (?:starts?|started|comes? up)|"
        r"from (?:ever )?(?:starting|coming up))\b|"
        r"\bMPS\b(?!.*\bclaim) (?:control )?daemon\b.{0,12}?\b(?:not|n't|isn't|never)\b.{0,12}?"
        r"\b(?:running|ready|up|started|found|available|healthy|there|deployed|scheduled)\b",
    ),
    Message(
        "reported.replicas_too_few",
        "replicas",
        r"\breplicas ?[=:]? ?[01]\b.{0,60}?\b(?:time-?slicing|sharing|MPS)\b.{0,60}?"
        r"\b(?:exits?|crash\w*|fail\w*|refus\w*|reject\w*|invalid)\b",
    ),
    Message(
        "reported.config_key_unknown",
        "device-plugin.config",
        r"device-plugin\.config\b.{0,80}?"
        r"\b(?:(?:does|do|did) not exist|doesn't exist|unknown|missing|not found|no such|not in (?:the )?ConfigMap)\b|"
        r"\b(?:unknown|missing|no such|not found)\b.{0,60}?device-plugin\.config\b",
    ),
    Message(
        "reported.account_may_not",
        ("gpu-feature-discovery", "device-plugin", "device plugin", "config-manager"),
        r"\bRBAC\b.{0,60}?\b(?:gpu-feature-discovery|device[ -]plugin|config-manager)\b.{0,40}?"
        r"\b(?:cannot|can't|may not|not allowed to|unable to) (?:get|list|watch|create|update|patch|delete|read|"
        r"write)\b|"
        r"\b(?:gpu-feature-discovery|device[ -]plugin|config-manager)\b.{0,30}?"
        r"\b(?:cannot|can't|may not|not allowed to|unable to) (?:get|list|watch|create|update|patch|delete|read|"
        r"write)\b.{0,60}?"
        r"\b(?:RBAC|forbidden|role|permission\w*|rights?)\b",
    ),
    Message(
        "reported.image_architecture",
        ("plugin image", "plugin's image", "plugin container image"),
        r"\bplugin(?:'s| container)? image\b.{0,60}?\b(?:no|without|lacks?|missing|not)\b.{0,16}?"
        r"\b(?:arm64|aarch64|amd64|x86_64|ppc64le|multi-?arch)\b",
    ),
    Message(
        "reported.replicas_split",
        ("other replicas", "other shares", "remaining replicas", "remaining shares", "only one replica",
         "only one logical"),
        r"\b(?:Xid|unhealthy)\b.{0,120}?\b(?:other|remaining) (?:replicas|shares)\b.{0,60}?"
        r"\b(?:healthy|schedulable|remain\w*|stay\w*|still|offered)\b|"
        r"\bonly one (?:replica|logical (?:GPU|device))\b.{0,40}?\bunhealthy\b",
    ),
    Message(
        "reported.preferred_fails",
        "getpreferredallocation",
        r"\bGetPreferredAllocation\b.{0,30}?\b(?:returns? (?:an )?error|fails|failed|error)\b(?!:)",
    ),
    Message(
        "reported.mps_unreached",
        ("mps_pipe_directory", "mps client", "clients cannot", "clients can't", "client cannot", "client can't"),
        r"\bCUDA_MPS_PIPE_DIRECTORY\b.{0,40}?\b(?:not|missing|unset|wrong|different|differs)\b|"
        r"\bMPS\b.{0,80}?\bclients? (?:cannot|can't) connect\b|\bMPS clients?\b.{0,20}?\b(?:cannot|can't|fail\w*)\b",
    ),
    Message(
        "reported.both_serve",
        ("both", "two ", "as well", "several times", "multiple times", "more than once", "second time", "twice", " too",
         "also"),
        r"\binstall\w*\b.{0,40}?\bplugin\b.{0,24}?\b(?:several|multiple|many) times\b|"
        r"\binstall\w*\b.{0,40}?\bplugin\b.{0,24}?\b(?:twice|more than once|a second time)\b|"
        r"\b(?:own|built-?in|bundled|managed|default|preinstalled)\b.{0,16}?\bdevice[ -]?plugin\b.{0,80}?"
        r"\b(?:DaemonSet|plugin|operator)\b.{0,24}?(?: too|\b(?:as well|also|both))\b|"
        r"\b(?:both|two )\b.{0,40}?\bplugin\b.{0,24}?\b(?:and|plus)\b.{0,50}?\bplugin\b.{0,30}?"
        r"\b(?:advertis\w+|regist\w+|serv\w+|offer\w*)\b",
    ),
    Message(
        "reported.offers_more_than_there",
        ("although nvidia-smi", "while nvidia-smi", "but nvidia-smi", "though nvidia-smi"),
        r"\b(?:advertis\w+|allocatable|offer\w*|capacity)\b.{0,40}?\b(?:al)?(?:though|while|but) nvidia-smi (?:only )?"
        r"(?:shows|lists|sees|has|finds) (?:only )?(?:one|two|\d+|fewer|none|no)\b",
    ),
)  # fmt: skip
