"""Container Device Interface: specifications, names, registries."""

from berth.evidence.message import Message

_NAME = r"[a-z0-9][\w-]*(?:\.[\w-]+)+/(?:gpu|mig|gds|mofed|nvswitch|pgpu|claim)=[\w.@:-]*[\w@]"
_DRIVER_FILE = r"/(?!\S*fabricmanager)\S*(?:nvidia|libcuda|libnv|libGLX_nv|libEGL_nv)[^\s\"'`\\]*"

MESSAGES: tuple[Message, ...] = (
    Message(
        "cdi.unresolvable",
        (
            "unresolvable ",
            "unresolved ",
            "following cdi devices",
            "not resolve cdi",
            "cdi device ",
            "/gpu=",
            "/device=",
        ),
        r"(?:unresolvable|unresolved) (?:CDI )?devices?:? (?:\W*(?P<device>[\w.-]+/[\w.-]+=[\w.@/-]+(?::[\w.@/-]+)*))?"
        r"|Could not resolve (?:the following )?CDI devices:? "
        r"(?:\W*(?P<device2>[\w.-]+/[\w.-]+=[\w.@/-]+(?::[\w.@/-]+)*))?"
        r"|\bCDI device \W{0,3}(?P<device3>[\w.-]+/[\w.-]+=[\w.@:-]*\w)\W{1,3}(?:is |was )?"
        r"(?:not (?:found|registered|known)|does not exist|unknown)\b"
        r"|(?P<device4>[\w.-]+\.\w+/(?:gpu|device)=[\w-]*\w)[^\n\w]{1,3}[^\n]{0,24}?"
        r"\b(?:(?:not|n't|never) (?:be )?|un)(?:resolved|resolvable)\b",
    ),
    # An engine that knows no such names takes one for the path of a device file.
    Message(
        "cdi.name_as_path",
        ("/gpu=", "/mig=", "/gds=", "/mofed=", "/nvswitch=", "/pgpu=", "/claim="),
        r"(?:\b(?:stat|lstat|open) |device information while adding (?:custom )?device \W*"
        r"|info of source device |invalid argument \W*|not a device node:? \W*)"
        r"(?P<device>[a-z0-9][\w-]*(?:\.[\w-]+)+/(?:gpu|mig|gds|mofed|nvswitch|pgpu|claim)=[\w.@:-]*[\w@])"
        r"[^\w\n]{1,4}(?:no such file or directory|not a device node|for \W{0,2}--device\W{0,2} flag"
        r"|invalid device mode|bad (?:mode|format))"
        # Docker's own command line, before it asks the daemon.
        rf"|bad (?:format for path|mode specified): \W?(?P<device3>{_NAME})"
        rf"|(?P<device4>{_NAME})\W{{1,3}}is not an absolute path"
        r"|^(?!.*\bCDI\b).*\bfailed to (?:stat|resolve) device \W*"
        r"(?P<device2>[a-z0-9][\w-]*(?:\.[\w-]+)+/(?:gpu|mig|gds|mofed|nvswitch|pgpu|claim)=[\w@]+)",
    ),
    Message(
        "cdi.conflict",
        ("conflicting device", "conflicting cdi"),
        r"conflicting (?:CDI )?devices? \W*(?P<device>[\w.-]+/[\w.-]+=[\w.@-]+(?::[\w.@-]+)*)(?:.*?specs? "
        r"(?P<specs>[^)\n]*))?",
    ),
    Message(
        "cdi.stale",
        (
            "failed to stat cdi host device",
            "error mounting",
            "cannot stat",
            "failed to fulfil mount request",
            "failed to inject devices",
            "bind source path does not exist",
            "stat'ing file",
            "mount `/",
            "trying to mount",
            "tries to mount",
            "attempt to mount",
            "attempts to mount",
            "fail to mount",
            "fails to mount",
            "cannot mount",
        ),
        r"failed to stat CDI host device \W*(?P<path>/[^\s\"'\\]+)"
        r"|(?:error mounting|error stat'ing file|cannot stat|failed to fulfil mount request: open"
        rf"|bind source path does not exist:?) \W*?(?P<path2>{_DRIVER_FILE})[^\n]*"
        r"(?:no such file|does not exist|not found|not a directory)"
        r"|crun: mount `(?P<path4>(?!/dev/)/\S*(?:nvidia|libcuda)[^\s`]*)` to [^\n]*No such file"
        r"|\b(?:(?:trying|tries|attempts?|fails?) to|cannot) mount\b[^\n]{0,40}?"
        r"(?P<path3>lib(?:nvidia|cuda|EGL_nvidia|GLX_nvidia|GLES\w*_nvidia)[\w.-]*\.so\.\d{3}\.[\d.]*\d)\b[^\n]{0,20}"
        r"(?:no such file|does not exist|not found)",
    ),
    Message(
        "cdi.empty_edits",
        ("empty device edits", "empty container edits", "empty edits"),
        r"invalid (?:device|spec)[^\n]*empty (?:device |container )?edits|empty (?:device|container) edits",
    ),
    Message(
        "cdi.invalid",
        (
            "invalid cdi spec",
            "failed to load cdi spec",
            "failed to parse cdi spec",
            "failed to read cdi spec",
            "invalid cdi version",
            "spec version must be at least",
            "unsupported cdi",
            "invalid cdi device",
            "failed to validate cdi",
            "unmarshal cdi spec",
            "invalid spec, ",
            " in spec",
            "host type mismatch",
        ),
        r"^(?!.*empty (?:device |container )?edits)(?:.*?(?:invalid CDI (?:Spec|version|device)"
        r"|failed to (?:load|parse|read|validate|unmarshal) CDI spec(?:ification)?"
        r"|invalid spec, (?:no devices|multiple device)|invalid vendor/class \S+ in Spec"
        r"|CDI device \([^)\n]{1,120}\), host type mismatch|spec version must be at least v?(?P<version>[\d.]+)"
        r"|unsupported CDI (?:spec )?version)(?:[:\s]+(?P<why>[^\n]{0,200}))?)",
    ),
    Message(
        "cdi.not_generated",
        (
            "generate cdi spec",
            "generating cdi spec",
            "device cdi specs",
            "cdi spec generation failed",
            "failed to get cdi",
            "edits common for entities",
            "discoverer for",
            "nvidia-cdi-refresh",
            "cdi spec for",
            "cdi library",
            "device spec generators",
            "container edits for",
            "cdi specification",
            "failed to get device nodes",
            "transform driver root in cdi",
            "transform cdi spec",
            "required cdi spec version",
            "drm devices for",
            "cap device path",
            "driver store paths found",
            "container device interface for nvidia",
            "toolkit-cdi-generator",
            "(cdi) for nvidia generator",
            "refresh nvidia cdi specification",
            "spec dir",
            "spec file",
        ),
        r"(?:failed to generate|error generating|unable to generate"
        r"|could not generate) CDI spec\w*(?:[^:\n]*: (?P<why>[^\n]{0,240}))?"
        r"|failed to create device CDI specs(?:: (?P<why2>[^\n]{0,240}))?|CDI spec generation failed"
        r"|(?<!level=warning msg=\")failed to (?:create|construct) (?:edits common for entities"
        r"|discoverer for (?!CSV|graphics mounts)[\w ]{2,30}"
        r"|CDI library(?: for [\w ]{2,30})?|device spec generators|container edits for [\w ]{2,30}"
        r"): (?P<why3>[^\n]{0,240})"
        r"|failed to (?:gene?reate|generate|save) CDI spec for management containers(?:: (?P<why4>[^\n]{0,240}))?"
        r"|failed to transform (?:driver root in )?CDI spec\w*(?:: (?P<why5>[^\n]{0,160}))?"
        r"|failed to get minimum required CDI spec version|failed to determine DRM devices for"
        r"|toolkit-cdi-generator\.service: (?:Failed with result|Main process exited)"
        r"|(?:Failed to start|Dependency failed for) [^\n]{0,40}(?:\(CDI\) for Nvidia generator"
        r"|Refresh NVIDIA CDI specification)"
        r"|failed to (?:generate|load|save) (?:the )?Container Device Interface for NVIDIA(?:: (?P<why7>[^\n]{0,160}))?"
        r"|failed to get [CG]I cap device path|no driver store paths found"
        r"|failed to (?:create|write) Spec (?:dir|file): (?P<why6>[^\n]{0,160})"
        r"|nvidia-cdi-refresh\.(?:service|path): (?:Failed with result|Main process exited|Start request repeated"
        r"|Control process exited)|failed[^\n]{0,80}nvidia-cdi-refresh\.(?:service|path)"
        r"|nvidia-cdi-refresh\.(?:service|path)\b[^\n]{0,60}\bfailed\b"
        r"|nvidia-cdi-refresh\.(?:service|path)\b[^\n]*\n(?:[^\n]*\n)?[ \t]*Active: failed",
        lines=3,
    ),
    Message(
        "cdi.said_off",
        (" cdi", "cdi not supported", "cdi is not supported", "enable_cdi", "cdi is ", "cdi was "),
        r"\bcontainerd\b[^\n]{0,60}\b(?:has no|no|lacks?|without|does not (?:know|support|have))\b[^\n]{0,16} CDI\b"
        r"|\bcontainerd\b[^\n]{0,60}(?:older than|before|below|<)\s*v?1\.7\b[^\n]{0,60} CDI\b"
        r"|\bCDI (?:is )?not supported\b[^\n]{0,40}\bcontainerd 1\.[0-6]\b"
        r"|\bCDI (?:is|was) (?:disabled|off|not enabled|switched off)\b[^\n]{0,20}\b(?:in|by|on|for) (?:containerd"
        r"|docker|cri-?o)"
        r"|\benable_cdi\b (?:is |was )?(?:missing|false|not (?:set|in|there)|off|unset|absent)\b",
    ),
    Message(
        "cdi.none_found",
        ("no cdi devices found", "found 0 cdi devices"),
        r"no CDI devices found|found 0 CDI devices",
    ),
    # A sentence about where a specification lies.
    Message(
        "cdi.dir_not_searched",
        ("cdi_spec_dirs", "cdi-spec-dirs", "spec-dirs", "cdi spec dir"),
        r"(?:cdi[_-]spec[_-]dirs|spec-dirs|CDI spec dir\w*)\b(?!\W*[=:]\W*\[)[^\n]{0,200}\b(?:without|lacks?"
        r"|not (?:in|include|contain)\w*|does not|missing)\b"
        r"|\b(?:not in|outside(?: of)?|missing from|absent from)\b[^\n]{0,200}\b(?:cdi[_-]spec[_-]dirs|spec-dirs"
        r"|CDI spec dir)",
    ),
    Message(
        "cdi.without_nodes",
        ("device node", "devicenode", "/dev/nvidia", "nvidia-uvm"),
        r"Could not locate /dev/nvidia-caps/nvidia-cap\d{2,}\b|\bspec\w*\b[^\n.]{0,40}\b(?:without|lacks?|has no"
        r"|have no|missing|does not (?:have|list|contain))\b"
        r" (?:the |any )?\W*(?:device ?nodes?|/dev/nvidia\S*|nvidia-uvm)",
    ),
    Message(
        "cdi.nodes_absent",
        "/dev/nvidia",
        r"(?:cannot access|ls)\s+'?/dev/nvidia[\w*-]*(?:[^\n]{0,200}(?:No such file|missing|not there))",
    ),
    # What people state of their specifications.
    Message(
        "cdi.said_stale",
        ("cdi spec", "cdi file", "/etc/cdi/", "/run/cdi/", "cdi cache"),
        r"(?:CDI (?:spec|file|cache)\w*|/(?:etc|run)/cdi/\S{1,120})[^\n]{0,200}\b(?:stale|outdated|not regenerated|"
        r"never regenerated"
        r"|from before|(?:old|previous|former) (?:driver|version|device|GPU|card)s?)\b"
        r"|\b(?:stale|outdated)\b[^\n]{0,40}\bCDI (?:spec|file|cache)",
    ),
    Message(
        "cdi.said_missing",
        ("/etc/cdi", "/run/cdi", "cdi spec", "cdi file"),
        r"(?:ls |cat |: )?/(?:etc|var/run|run)/cdi\S*\W+(?:is |are )?(?:empty|missing|absent|not there|does not exist"
        r"|No such file)|\bno CDI (?:spec|file)\w*|CDI (?:spec|file)\w*(?: \S+)? (?:is |was )?(?:missing|absent|"
        r"not there"
        r"|not (?:generated|created|written))|cannot access '?/(?:etc|var/run|run)/cdi",
    ),
    Message(
        "cdi.said_twice",
        ("cdi spec", "/etc/cdi", "/run/cdi", "spec files", "specs"),
        r"\b(?:two|both|duplicate|several|multiple)\b[^\n]{0,60}\b(?:CDI )?spec\w*[^\n]{0,80}"
        r"\b(?:same|conflict\w*|define|both)\b",
    ),
    # Numbers of device files, as a specification has them and as a listing of /dev shows them.
    Message(
        "cdi.spec_major",
        ("path: /dev/nvidia", 'path: "/dev/nvidia', '"path": "/dev/nvidia'),
        r"path\W{1,4}(?P<path>/dev/nvidia[\w-]*)\W{1,40}(?:(?:type|hostPath)\W{1,4}[\w/-]+\W{1,40}){0,2}major\W{1,3}"
        r"(?P<major>\d+)",
        lines=4,
    ),
    Message(
        "cdi.live_major",
        "/dev/nvidia",
        r"\bc[rwx-]{9}\S? +\d+ +\S+ +\S+ +(?P<major>\d+), +\d+ [^\n]{0,40}(?P<path>/dev/nvidia[\w-]*)\s*$",
    ),
    # An injection that fails, whatever the reason.
    Message(
        "cdi.injection_failed",
        (
            "device injection failed",
            "setting cdi devices",
            "setting up cdi devices",
            "failed to inject ",
            "requesting a cdi device",
            "invalid device name ",
            "parse container annotations: ",
            "parse cdi annotations: ",
            "unqualified device ",
            "cdi annotation failed",
            "inject devices, nil oci spec",
        ),
        r"requesting (?P<why2>a CDI device with vendor \S+ is not supported[^\n]{0,80})"
        r"|failed to parse (?:container|CDI) annotations: (?P<why3>[^\n]{3,200})"
        r"|(?P<why4>invalid device name \S+ in annotation[^\n]{0,80})"
        r"|(?P<why5>unqualified device \S+ missing (?:vendor|class|device name))"
        r"|CDI annotation failed: (?P<why6>[^\n]{3,160})|(?P<why7>can't inject devices, nil OCI Spec)"
        r"|(?:CDI device injection failed|setting (?:up )?CDI devices"
        r"|failed to inject (?:CDI )?devices): (?P<why>[^\n]{3,240})",
    ),
)
