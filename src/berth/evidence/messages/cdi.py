"""Container Device Interface: specifications, names, registries."""

from berth.evidence.message import Message

_DRIVER_FILE = r"/(?!\S*fabricmanager)\S*(?:nvidia|libcuda|libnv|libGLX_nv|libEGL_nv)[^\s\"'`\\]*"

MESSAGES: tuple[Message, ...] = (
    Message(
        "cdi.unresolvable",
        ("unresolvable ", "unresolved ", "following cdi devices", "not resolve cdi"),
        r"(?:unresolvable|unresolved) (?:CDI )?devices?:? (?:\W*(?P<device>[\w.-]+/[\w.-]+=[\w.@/-]+(?::[\w.@/-]+)*))?"
        r"|Could not resolve (?:the following )?CDI devices:? "
        r"(?:\W*(?P<device2>[\w.-]+/[\w.-]+=[\w.@/-]+(?::[\w.@/-]+)*))?",
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
        ),
        r"failed to stat CDI host device \W*(?P<path>/[^\s\"'\\]+)"
        r"|(?:error mounting|error stat'ing file|cannot stat|failed to fulfil mount request: open"
        rf"|bind source path does not exist:?) \W*?(?P<path2>{_DRIVER_FILE})[^\n]*"
        r"(?:no such file|does not exist|not found|not a directory)",
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
        ),
        r"^(?!.*empty (?:device |container )?edits)(?:.*?(?:invalid CDI (?:Spec|version|device)"
        r"|failed to (?:load|parse|read|validate) CDI spec|spec version must be at least v?(?P<version>[\d.]+)"
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
        ),
        r"(?:failed to generate|error generating|unable to generate"
        r"|could not generate) CDI spec\w*(?:[^:\n]*: (?P<why>[^\n]{0,240}))?"
        r"|failed to create device CDI specs(?:: (?P<why2>[^\n]{0,240}))?|CDI spec generation failed"
        r"|failed to create (?:edits common for entities|discoverer for (?:common|driver) \w+): (?P<why3>[^\n]{0,240})",
    ),
    Message(
        "cdi.said_off",
        (" cdi", "cdi not supported", "cdi is not supported", "enable_cdi"),
        r"\bcontainerd\b[^\n]{0,60}\b(?:has no|no|lacks?|without|does not (?:know|support|have))\b[^\n]{0,16} CDI\b"
        r"|\bcontainerd\b[^\n]{0,60}(?:older than|before|below|<)\s*v?1\.7\b[^\n]{0,60} CDI\b"
        r"|\bCDI (?:is )?not supported\b[^\n]{0,40}\bcontainerd 1\.[0-6]\b"
        r"|\benable_cdi\b (?:is |was )?(?:missing|false|not set|off|unset|absent)\b",
    ),
    Message("cdi.none_found", "no cdi devices found", r"no CDI devices found"),
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
        r"\bspec\w*\b[^\n.]{0,40}\b(?:without|lacks?|has no|have no|missing|does not (?:have|list|contain))\b"
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
)
