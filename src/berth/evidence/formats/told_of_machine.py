"""What somebody's own words may speak of where they tell of a machine, its cards and their driver: see told.py."""

from __future__ import annotations

_NOT = (
    r"\b(?:not|n[o']t|never|no longer|cannot|can't|isn't|aren't|wasn't|doesn't|don't|didn't|won't|couldn't|unable to|"
    r"fails? to|failed to|failing to|stop(?:s|ped))\b"
)
_CARD = (
    r"\b(?:GPUs?|(?<!network )(?<!sound )(?<!SD )(?<!IB )(?<!memory )cards?|"
    r"accelerators?|Tesla|Quadro|GeForce|TITAN|(?:GTX|RTX)[ -]?(?:PRO )?"
    r"[A-Z]?\d{3,4}\w*|[AHVBP]100|[HB]200|[AH]800|L40S?|GH200|P40|P100|K80|M60|"
    r"[2-5]0[5-9]0(?: ?Ti)?s?|"
    r"[APVTLHBMK]\d{1,3}[0s]?(?: (?:GPUs?|cards?))|GB\d{3}|DGX|HGX)\b"
)
_DRIVER = r"\b(?:drivers?|nvidia-(?:dkms|driver|kernel|open|utils)\S*|akmod\S*|kmod-nvidia\S*)\b"
_MODULE = (
    r"\b(?:kernel[- ]?)?modules?\b|\bnvidia(?:[-_](?:uvm|drm|modeset|peermem))?\.ko\b|\bdkms\b|\bakmods?\b|"
    r"\bnvidia[-_](?:uvm|drm|modeset)\b"
)

# What the whole text may speak of beside the line: a story names the card once.
TEXT_WIDE = ("of a card", "of nvidia")

# Each is a thing or a state of the machine; what they mean together is for rules to say.
TOPICS_OF_MACHINE: dict[str, tuple[str, ...]] = {
    "card": (_CARD,),
    "nvidia": (r"\bnvidia\b|\bnvidia[-_]\w+|\bNVRM\b",),
    "of a card": (_CARD, r"\bcuda\w*|\bNCCL\b|\bXid\b|\bnvidia-smi\b"),
    "of nvidia": (r"\bnvidia\b|\bnvidia[-_]\w+|\bNVRM\b",),
    "a driver": (_DRIVER,),
    "module": (_MODULE,),
    "user space": (
        r"\blibrar(?:y|ies)\b|\buser[- ]?(?:space|land)\b|\bNVML\b|\bpackages?\b|\blibnvidia\S*|\bgraphics (?:stack|"
        r"toolkit)\b|\brest of the\b|\bthe tools\b",
    ),
    "smi": (r"\bnvidia-smi\b",),
    "lspci": (r"\blspci\b",),
    "kernel changed": (
        r"\b(?:new|newer|newest|updated|upgraded|other|different|latest|another|custom|current) (?:linux )?kernels?\b",
        r"\bkernels? (?:was |were |is |got |has been )?(?:automatically |silently )?(?:updat|upgrad|chang|bump)\w*",
        r"\b(?:updat|upgrad|chang|switch|boot)(?:e|ed|es|ing|ting|s)?\b(?: \S+){0,4} kernels?\b",
        r"\b(?:linux |on |with |for |to )?kernel \d\.\d+|\b(?:to|on|with|under) Linux \d\.\d+"
        r"|\b(?:after|since) (?:the |an? |my |last |latest )?(?:recent )?updat(?:e|es|ing)\b",
        r"\b(?:OS|operating system|system|distro|distribution|apt|dnf|yum|unattended|automatic|security)[- ](?:updat|"
        r"upgrad)\w*|\bapt(?:-get)? (?:full-|dist-)?upgrade\b",
    ),
    "driver changed": (
        r"\b(?:upgrad|updat)(?:e|es|ed|ing) (?:of )?(?:the |its |our |my )?(?:nvidia |GPU |host |kernel )*drivers?\b",
        r"\bdrivers?(?: packages?)?(?: nvidia\S*)? (?:(?:was|were|is|are|got|gets|has been|being) )?"
        r"(?:\w+ ){0,3}(?:upgrad|updat)\w+",
    ),
    "riser": (r"\brisers?\b|\boculink\b",),
    "does not do": (
        r"\b(?:fails?|failed|failing|failure|broken?|breaks?|dead|lost|gone|missing|disappear\w*|unusable)\b",
        r"\b(?:errors?|faults?)\b|\bblack ?screens?\b",
        r"\bprevent(?:s|ed|ing)?\b[^.;]{0,40}\b(?:to|from) (?:start|load|work|run)\w*",
        r"\bwithout (?:the |any )?(?:\S+ ){0,2}working\b|\bdriver (?:problems?|issues?|trouble)\b",
        r"\b(?:issues?|problems?|trouble) (?:getting|starting|loading|running|to get|to start)\b",
        rf"{_NOT} (?:be |been |get |to )?(?:work\w*|load\w*|start\w*|detect\w*|recogni\w+|find|found|see\w*|respond\w*|"
        r"communicat\w+|com(?:e|ing) up|run\w*|boot\w*|install\w*|initiali\w+|show\w*|function\w*|"
        r"exist\w*|usable)\b",
    ),
    "no build": (
        r"\b(?:build|compil\w+|dkms)\b[^.;]{0,30}\b(?:fails?|failed|failing|failure|fails?|broken|breaks?|errors?)\b",
        r"\b(?:fails?|failed|failing|failure|broken|unable|refuses|breaks)\b[^.;]{0,30}\b(?:build\w*|compil\w+)\b",
        r"\berrors?\b[^.;]{0,20}\b(?:when|while|during|on) (?:\w+ )?(?:build|compil)\w*",
        r"(?:\bnot|n't|\bno longer|\bcannot|\bnever) (?:be )?(?:build|built|compil\w+|rebuil\w+)\b",
    ),
    "signing": (
        r"\bsecure ?boot\b|\bMOKs?\b|\bmokutil\b|\bsig_enforce\b|\bsign(?:ed|ing|atures?)\b|\bunsigned\b|"
        r"\block ?down\b|\bmodule keys?\b|\benrol\w*",
    ),
    "refused": (
        r"\breject\w*|\brefus\w*|\bblock(?:s|ed|ing)?\b|\bden(?:y|ies|ied)\b|\bprevent\w*",
        r"\b(?:not|isn't|aren't|never) (?:be |been )?(?:trusted|enrolled|signed|accepted|allowed|permitted|loaded)\b",
        r"\b(?:not|n't|cannot|can't|won't|fails? to|unable to) load\b",
    ),
    "apart": (
        r"\bmis-?match\w*",
        r"\b(?:different|differing|inconsistent|incompatible|conflicting|wrong|old|older|previous) (?:driver |module |"
        r"kernel )?versions?\b",
        r"\b(?:driver|module)s?\b[^.;]{0,20}\blib(?:rary|raries|s)?\b[^.;]{0,20}\b(?:do|does|did)(?: not|n't) "
        r"(?:match|fit|agree)\b",
        r"\bversions? (?:differ|disagree|conflict|do(?:es)? ?n[o']t (?:match|fit|agree))\w*|\bout of sync\b",
    ),
    "open kind": (
        r"\bopen(?:[- ]source)? (?:GPU )?(?:kernel )?(?:modules?|drivers?|variant|flavou?r)\b|\bnvidia-open\b|"
        r"\bdriver-\d{3}(?:-server)?-open\b|\bkernel-open\b",
    ),
    "young card": (r"\bBlackwell\b|\bRTX[ -]?(?:PRO )?50\d0\w*|\b50\d0 (?:series|Ti)|\bB[123]00\b|\bGB[123]\d\d\b",),
    "release": (
        r"\b[3-6]\d{2}\.\d{2,3}(?:\.\d+)?\b|\bdrivers? (?:version )?[3-6]\d{2}\b|"
        r"\b[3-6]\d{2} drivers?\b|\b[3-6]\d{2}(?:xx| branch)\b",
    ),
    "went back": (
        r"\bdropp?(?:ed|ing|s)? back to\b",
        r"\bdowngrad\w+|\broll(?:ed|ing|s)? ?back\b|\brevert(?:ed|ing|s)?\b|\bregress\w*|\b(?:go|going|went) back to\b",
        r"\b(?:runs?|ran|works?|worked) (?:\w+ )?(?:clean|fine|well|perfectly|correctly|ok) (?:on|with|in|under)\b",
        r"\b(?:other|another|newer|older|previous) drivers?(?: versions?| releases?)? "
        r"(?:(?:is|are) (?:fine|ok|well)|works?|runs?)\b",
    ),
    "hangs": (
        r"\bhangs?\b|\bhanging\b|\bhung\b|\bfreez\w+|\bfroze\w*|\block(?:s|ed)?[- ]?ups?\b|\bcrash\w*|\bpanics?\b",
    ),
    "sleep": (
        r"\bsuspend\w*|\bresum(?:e|es|ed|ing)\b|\bhibernat\w*|\bstandby\b|\bwak(?:e|es|ing)[- ]?up\b|\bwoke up\b",
    ),
    "cuda": (r"\bCUDA\w*|\bcuInit\b|\bnvidia[-_]uvm\b",),
    "unload": (r"\bunload\w*|\brmmod\b|\bmodprobe -r\b|\b(?:remov\w+|replac\w+) (?:the )?(?:\w+ )?modules?\b",),
    "dkms": (r"\bdkms\b|\bakmods?\b",),
    "not loaded": (
        rf"{_NOT} (?:being |be |been |get |getting |able to )?(?:\S+ ){{0,4}}?(?:to )?load(?:ed|ing|s)?\b",
        r"\bload\w* (?:fails?|failed|failures?|errors?)\b|\bnot (?:there|created|made)\b",
    ),
    "device files": (r"/dev/nvidia\S*|\bdevice (?:files|nodes)\b",),
    "driver pods": (
        r"\bnvidia-driver-(?:daemonsets?|ctr|installer)\b|"
        r"\bdriver[- ](?:daemon ?sets?|pods?|containers?|installers?)\b",
    ),
    "repositories": (
        r"\brepo(?:sitor\w+|s)?\b|\brpms?\b|-rpms\b|\bentitle\w+|\bsubscription\w*|\bmirror(?:s|ed)?\b|\bair-?gap\w*|"
        r"\bdisconnected\b|\bproxy\b|\bpackages\b",
    ),
    "wants a driver": (
        r"\b(?:requires?|needs?|wants?|expects?) (?:at least )?(?:a |the )?(?:\w+ )?drivers? (?:version )?(?:>=? ?)?v?"
        r"\d{3}\b",
        r"\b(?:newer|higher|later) driver\b[^.;]{0,40}\b(?:required|needed)\b",
    ),
    "passthrough": (
        r"\bpass(?:ed|ing)?[- ]?through\w*|\bVFIO\b|\bvfio-pci\b|\bPVE\b|\bProxmox\b",
        r"\bpass(?:ed|ing)? (?:\S+ ){1,4}(?:in)?to (?:a |the |my )?(?:VMs?|guests?|virtual machines?)\b",
    ),
    "vm": (r"\bVMs?\b|\bvirtual machines?\b|\bguests?\b|\bPVE\b|\blibvirt\b|\bQEMU\b",),
    "no reset": (
        rf"{_NOT} (?:\w+ )?reset\b|\breset (?:bug|issue|problem)s?\b|\b(?:broken|broke) (?:\w+ )?reset\b|"
        r"\breset (?:functionality |\w+ )?(?:is |was )?broken\b|\bD3cold\b|\bstill (?:it |is )*(?:bound|binded)\b",
    ),
    "not back": (
        rf"{_NOT} (?:be |been |being )?(?:listed|visible|returned|released|reattached?|given back|re-?attach\w*)\b",
    ),
    "short of cards": (
        r"\bmissing (?:a |one |some )?(?:GPUs?|cards?)\b|\bshort (?:of )?(?:a|one) (?:GPU|card)\b",
    ),
    "not for the card": (
        r"\bdrivers?\b[^.;]{0,20}\b(?:is|are|was|were) (?:not|no longer) (?:yet )?(?:compatible|supported)\b",
        r"\bdrivers?\b[^.;]{0,30}\b(?:drop(?:s|ped)? support|does(?: not|n't) (?:yet )?support|no longer supports?)\b",
    ),
    "already there": (
        r"\balready (?:\w+ )?(?:contains?|has|have|comes? with|includes?|ships?|installed|there|present)\b|"
        r"\bpre-?installed\b",
    ),
    "gsp": (r"\bGSP\b",),
    "dies": (
        r"\bdie[sd]?\b|\bdead\b|\btime(?:s|d)?[- ]?outs?\b|\bstops? (?:respond|answer)\w+|\bunresponsive\b|"
        r"\bnot respond\w*",
    ),
    "fabric state": (
        r"\bfabric (?:status|state|health)\b|\bfabric/NVSwitch\b|\bNVSwitch[- ](?:level|fabric|problem|fault)\w*",
    ),
    "fabric manager": (r"(?<![/\w-])(?:nv(?:idia)?-)?fabric[- ]?managers?\b(?!\.service)",),
    "vgpu": (r"\bvGPUs?\b|\bnvidia-gridd\b|\bGRID (?:driver|licen\w+)",),
    "no license": (
        r"\bunlicensed\b|\blicen[sc]\w+[- ](?:problems?|issues?|errors?|failures?|expired|fail\w*)\b",
        r"\b(?:no|without|missing|expired|invalid) (?:a |the |valid )?(?:\w+ )?licen[sc]es?\b",
        r"\b(?:fail\w* to|could ?n[o']t|cannot|can't|unable to|not) (?:get|acquire|obtain|check ?out|find)\w* "
        r"(?:a |the )?(?:\w+ )?licen[sc]es?\b",
    ),
    "peer": (r"\bP2P\b|\bpeer[- ]to[- ]peer\b|\bpeer access\b|\bNCCL\b",),
    "iommu": (r"\bIOMMU\b|\bAMD-Vi\b|\bVT-d\b|\bPCIe? ACS\b|\bACS\b",),
    # Hardware.
    "throttled": (
        r"(?<!CPU )(?<!client-side )(?<!request )(?<!API )\bthrottl(?:es|ed|ing)\b|\bdown-?clock\w*",
        r"\bpower[- ]cap\w*|\bcapp(?:ed|ing) (?:at|to) \d+ ?(?:W|watts?|MHz)\b|\bfrequency (?:reduction|drops?)",
    ),
    # Of how it is watched, not of the GPU.
    "watching": (r"\b(?:warn(?:ing|ings)?|alerts?|metrics?|exclud\w+|ignor\w+|threshold|dashboards?)\b",),
    "drops off": (
        r"(?<!access to )(?<!access to the )(?<!connection to the )"
        r"\b(?:GPUs?|cards?|one(?: of (?:them|the \w+))?) (?:is|are|was|gets?|went|goes|keeps getting) (?:\w+ )?lost\b|"
        r"\b(?:falls?|fell|fallen|drops?|dropped|dropping|falling) (?:off|out of|from) (?:the |its )?(?:PCIe? )?bus\b",
        r"\blos(?:es|t|ing) (?:a|one|the) (?:GPU|card)\b",
        r"\b(?:one|a|two|some)(?: of (?:the|my|our|them))?(?: \w+)? (?:GPUs?|cards?) (?:dropp?(?:ed|s)|"
        r"disappear\w*|vanish\w*|goes missing|went missing|goes away|went away|dies|died)\b",
    ),
    "power": (
        r"\bPSUs?\b|\bpower[- ]?suppl\w+|\bpower (?:cables?|connectors?|delivery|plugs?|rails?|strips?|cords?)\b|"
        r"\b12V[-\w]*|\bwattage\b|\bpower (?:draw|fluctuations?|limiter|spikes?|budget|rails?)\b|\btransient\b|"
        r"\b(?:8|6|16)-pins?\b|\bunder-?powered\b",
    ),
    "ill": (
        r"\b(?:bad|faulty|defective|dying|dead|fried|failing|burnt?|damaged|flaky|unresponsive)\b"
        r"(?! (?:systemd )?(?:services?|units?|pods?|jobs?|tests?|builds?|containers?|probes?|requests?|workers?|tasks?"
        r"|deployments?|daemon\w*|images?|config\w*|values?|options?|arguments?|gateway|addresse?s?|performance|idea|magic)\b)",
        r"(?<!qualifies for )(?<!qualify for )\bRMA\w*|\bre-?seat\w*",
        r"\bhardware (?:issues?|faults?|failures?|problems?|errors?|defects?)\b",
        r"\bGPUs? (?:was|were|had|has been|have been|got|needs? to be|be|to be) (?:\w+ )?(?:replaced|swapped)\b",
        r"\breplac(?:e|ed|ing|ement of) (?:the |that |this |a |one )?(?:\w+ )?(?:GPUs?|cards?)\b",
        r"\bnot working (?:as it should|properly|correctly|right)\b|\bmisbehav\w+",
    ),
    # Who says what it was, once it was found.
    "hardware blamed": (
        r"\b(?:it|this|that|issue|problem|cause|culprit)\b[^.;]{0,12} (?:is|was|were|turned out to be|to be|being)"
        r"\b(?:(?!\bnot\b|n't\b)[^.;]){0,20}\bhardware\b",
        r"\bhardware (?:PSU |power )?(?:issue|problem|fault|failure|defect)s? (?:was|were|is)\b"
        r"|\b(?:likely|probably|apparently|maybe|must be|seems|looks like|suspect\w*) (?:to be )?(?:an? |the )?"
        r"(?:faulty|bad|defective|broken|dying|dead) (?:GPU|card|device|hardware|PSU|riser|slot)\b"
        r"|\bconfirmed\b(?:(?!\bnot\b|n't\b)[^.;]){0,20}\bhardware\b",
        r"\b(?:was|is|had|turned out to be|has) (?:just )?(?:an? |the )?(?:bad|faulty|defective|broken|dead|damaged) "
        r"(?:\w+ )?(?:GPU|card|PSU|power supply|riser|slot|cable|DIMM|motherboard|memory)\b"
        r"(?! (?:reset|driver|support|pass|access|plug|node|pod|discover|metric))",
        r"\b(?:returned|sent back|sent in|RMA'?e?d|exchanged|swapped) (?:my|the|that|this|our) (?:GPU|card)\b",
        r"\b(?:caused by|due to|because of|traced to) (?:an? |the |its |our )?(?:\w+ )?(?:PSU|power suppl\w+|riser\w*|"
        r"power cable|slot|cooling|thermal paste)\b",
    ),
    "one machine": (
        r"\bexclud\w+\b[^.;]{0,40}\b(?:runs?|works?|fine|pass\w*)\b",
        r"\bonly (?:fails?|happens?|occurs?|crash\w*|seen) (?:\w+ )?on (?:this|that|one|the same|a single|node|host)\b",
        r"\b(?:all )?other (?:nodes?|machines?|hosts?|servers?)\b[^.;]{0,30}\b(?:fine|works?|runs?|ok|not affected)\b",
    ),
    "goes off": (
        r"\bshut(?:s|ting)?[- ]?downs?\b|\bpower(?:s|ed)? off\b|\bturns? (?:itself )?off\b",
        r"\b(?:auto\w*|sudden\w*|random\w*|immediate\w*|unexpected\w*|instant\w*|hard|always)[- ](?:shut-?down|restart|"
        r"reboot|reset|crash)\w*",
        r"\b(?:machine|PC|computer|desktop|system|server|node|host|workstation)\b[^.;]{0,30}\b(?:restarts?|reboots?|"
        r"crash\w*|freez\w+|powers? down)\b",
    ),
    "under load": (
        r"\bunder (?:\w+ )?load\b|\b(?:train|inferenc)\w*\b|\bfull (?:load|potential|power)\b|\bafter a few (?:epochs|"
        r"minutes|hours|steps)\b|\bany (?:meaningful )?(?:load|task\w*)\b|\bheavy (?:load|use|workload)\b",
    ),
    "slot": (
        r"\brisers?\b|\bPCI[- ]?e?(?:xpress)?[- ](?:express )?(?:slots?|ports?|lanes?|bus)\b|\bslots?\b|\boculink\b",
    ),
    "cured": (
        r"\b(?:caused|which caused|the culprit|turned out|resolved by|fixed by|solved by)\b",
        r"\b(?:after|once) (?:i |we )?(?:switch|mov|swapp|reseat|replac|plugg)\w+\b|"
        r"\b(?:bridged|rewired|dedicated?)\b[^.;]{0,60}\b(?:runs?|works?) (?:fine|well|now)\b|"
        r"\bit(?:'s| is|s) working (?:fine|now|well)\b",
    ),
    "kernel dies": (
        r"\bkernel (?:panics?|oops\w*|crash\w*|bug)\b|\bnull pointer\b|\bgeneral protection\b|\boops(?:es|ed)?\b|"
        r"\bblue ?screens?\b",
    ),
    "nouveau": (r"\bnouveau\b",),
    "kept out": (
        r"\bblack-?list\w*|\bblock-?list\w*|\bdeny-?list\w*|\bdisabl\w+|\binitramfs\b|\binitrd\b|\bconflict\w*",
    ),
    "headers": (r"\bkernel[- ](?:devel|headers?)\b|\blinux[- ]headers?\b|\bheaders (?:for|of) the\b",),
    "wanted": (
        r"\bneeds?\b|\brequir\w+|\bmissing\b|\bmust\b|\bhave to\b|\bmanually\b",
        r"\bnot (?:found|there|installed|available)\b|\b(?:un|in)able\b|\bfix\w*",
        r"\b(?:when|after|once) (?:i |we )?(?:add|install)(?:ed|ing)\b|\bstart(?:s|ed) (?:to work|working)\b",
    ),
    "window": (
        r"\bBAR ?[0-5]?s?\b|\bMMIO\w*|\babove[- ]?4 ?G\w*|\bre-?siz(?:e|able|eable) BAR\b|\bReBAR\b|\bprefetchable\b|"
        r"\b(?:address|bridge|memory) windows?\b",
    ),
    "no room": (
        r"\bno space\b",
        r"\b(?:not|never|n't|cannot|unable to)\b(?: \w+){0,3} (?:assign\w*|allocat\w*|map\w*|fit\w*|enough)",
        r"\bonly (?:(?:use|has|have|shows?|uses|an?) )*\d+ ?M(?:i?B)?\b|\blimited to \d+ ?M(?:i?B)?\b",
        r"\bpci=(?:realloc|nocrs|assign-busses)\b",
        r"\bunassigned\b|\btoo (?:small|large|big)\b|\bno (?:\w+ ){0,3}windows?\b|\bdisabled\b|\binsufficient\b",
        r"\b(?:needs?|needed|must|required?|have) (?:to )?be (?:enabled|turned on|switched on|on)\b|\bturned off\b",
        r"\brequires? (?:a )?\d+ ?[GM]i?B\b|\b(?:turn\w*|switch\w*|enabl\w*) (?:\w+ )?(?:on )?above[- ]?4",
    ),
    "rising": (
        r"\bclimb\w*|\bris(?:es|ing)\b|\bincreas(?:es|ed|ing)\b|\bgrow(?:s|n|ing)?\b|\baccumulat\w+|\bkeeps? coming\b",
        r"\b(?:thousands|hundreds|millions) of\b",
    ),
    "nvlink": (r"\bNVLinks?\b|\bNV ?Switch\w*",),
    "link down": (
        r"\binactive\b|\bdown\b|\bdrop(?:s|ped|ping)?\b|\bdegraded\b|\bfail(?:s|ed|ing|ure|ures)?\b|\breplays?\b|"
        r"\brecovery (?:errors?|events?)\b|\bfatal\b|\bflap\w*|\b(?:broken|faulty|bad|dead)\b|\berrors?\b",
    ),
    "hot": (
        r"\bover-?heat\w*|\btoo hot\b|\bthermal(?:ly)? (?:throttl\w+|slow\w+|shut\w+|limit\w*)|\bthrottl\w+[^.;]{0,30}"
        r"\b(?:temperature|heat|thermal\w*)\b|\b(?:temperature|heat|cooling|fans?)\b[^.;]{0,40}\b(?:throttl\w+|fail\w*|"
        r"too high|stopped|dead|broken)",
    ),
    "memory ill": (
        r"\bECC (?:[\w-]+ ){0,3}errors?\b|\buncorrectable\b|\bdouble[- ]bit\b|\b(?:bad|faulty) (?:VRAM|HBM|"
        r"video memory|GPU memory)\b|\brow[- ]remap\w*|\bpage retire\w*|\bretired pages?\b",
    ),
}
