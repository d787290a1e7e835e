"""The toolkit's hooks and runtime, the container engines and CRI-O: what they say where a container is not made."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # nvidia-cdi-hook: each of its commands changes the container's root before the program begins.
    Message(
        "runtime.cdi_hook_says",
        (
            "failed to create link [",
            "check if link exists",
            "failed to follow path for link",
            "determined container root",
            "failed to load container state",
            "ld.so.conf.d",
            "construct ldconfig runner",
            "mounting host ldconfig",
            "reading host ldconfig",
            "error running pivot_root",
            "for params file",
            "modified params file",
            "modfied params file",
            "failed to load params file",
            "container forward compat directory",
            "unsupported cdi hook",
            "empty container root detected",
            "ldconfig must be run in the non-system root",
            "enabling cuda compat",
        ),
        r"failed to create link \[\S+ \S+\]|failed to check if link exists|failed to follow path for link \S+"
        r"|failed to determined container root: (?P<why>[^\n]{0,160})"
        r"|failed to load container state: (?P<why2>[^\n]{0,160})"
        r"|failed to (?:create|update) ld\.so\.conf\.d(?: update)?: (?P<why3>[^\n]{0,160})"
        r"|failed to construct ldconfig runner: (?P<why4>[^\n]{0,160})"
        r"|error (?:bind )?(?:mounting|reading) host ldconfig: (?P<why5>[^\n]{0,160})"
        r"|(?P<why6>error running pivot_root: [^\n]{0,80})"
        r"|failed to (?:create tmpfs mount for|(?:mount|open|get) (?:modified|modfied)|load) params file"
        r"(?! *contents)[^\n]{0,160}"
        r"|failed to get modified params file contents[^\n]{0,160}"
        r"|failed to get container forward compat directory: (?P<why7>[^\n]{0,160})"
        r"|(?P<why8>Unsupported CDI hook: [\w-]+)|(?P<why9>empty container root detected)"
        r"|ldconfig must be run in the non-system root",
    ),
    # The legacy hook and the wrapper around runc: what they were handed makes no sense to them.
    Message(
        "runtime.hook_refuses",
        (
            "unknown driver capability",
            "unknown nvidia_driver_capabilities value",
            "supported-driver-capabilities'",
            "could not open oci spec",
            "could not decode oci spec",
            "could not decode container state",
            "is empty in oci spec",
            "failed to get requirements",
            "image requirements",
            "loading oci specification",
            "mount cdi device request",
            "cdi modifier for mode",
            "automatic cdi spec",
            "could not exec '",
            "unexpected return from exec",
            "list of csv files",
            "for csv files",
            "csv discoverer",
            "failed to parse csv file",
        ),
        r"(?P<asked>unknown (?:driver capability:?|NVIDIA_DRIVER_CAPABILITIES value:?) [^\n]{0,60})"
        r"|(?P<asked2>Invalid value for config option 'supported-driver-capabilities'[^\n]{0,120})"
        r"|(?P<why>could not (?:open|decode) OCI spec[^\n]{0,120}|could not decode container state[^\n]{0,80}"
        r"|(?:Process|Root|Version) is empty in OCI spec)"
        r"|(?P<why2>failed to get (?:image )?requirements[: ][^\n]{0,120})"
        r"|(?P<why3>error loading OCI specification[^\n]{0,160})"
        r"|(?P<cdi>invalid mount CDI device request[^\n]{0,120}|failed to construct CDI modifier for mode [^\n]{0,120}"
        r"|failed to generate automatic CDI spec[^\n]{0,160})"
        r"|(?P<why4>could not exec '/[^\n]{0,120}|unexpected return from exec '/[^\n]{0,60})"
        r"|(?P<csv>failed to (?:create CSV discoverer|get list of CSV files|create container edits for CSV files"
        r"|create discoverer for CSV files)[^\n]{0,160})"
        r"|nvidia-c[^\n]{0,80}(?P<csv2>failed to parse CSV file[^\n]{0,160})",
    ),
    # CRI-O checks its configuration when it starts; a handler that is not whole is left out, or keeps it from starting.
    Message(
        "runtime.crio_refuses",
        (
            "conmon validation",
            "pinns validation",
            "translate monitor fields",
            "monitor fields translation",
            "conmon executable file not found",
            '"conmon" not found',
            'conmon\\": executable file not found',
            'conmon": executable file not found',
            "is being ignored due to",
            "but no runtime entry table",
            "unable to decode configuration",
            "validating runtime config",
        ),
        r"(?:conmon|pinns) validation: (?P<why>[^\n]{0,200})"
        r"|failed to translate monitor fields for runtime (?P<handler>[\w.-]+): (?P<why2>[^\n]{0,200})"
        r"|monitor fields translation: (?P<why6>[^\n]{0,200})"
        r"|(?P<why7>conmon executable file not found in \$PATH|\"conmon\" not found in \$PATH"
        r"|conmon\\?\": executable file not found)"
        r"|Runtime handler \W*(?P<handler2>[\w.-]+)\W* is being ignored due to: (?P<why3>[^\n]{0,200})"
        r"|default_runtime set to \W*(?P<handler3>[\w.-]+)\W*, but no runtime entry table"
        r"|unable to decode configuration \S*crio\S*: (?P<why4>[^\n]{0,200})"
        r"|validating runtime config: (?!runtime validation: [^\n]{0,60}nvidia)(?P<why5>[^\n]{0,200})",
    ),
    # A limit that whoever starts the container may not set, or that no program copes with.
    Message(
        "runtime.limit_refused",
        (
            "error setting rlimit",
            "setrlimit ",
            "unable to create session key",
            "keyctl",
            "keyring",
            "getrlimit(rlimit_nofile",
        ),
        r"error setting rlimit(?: type (?P<type>\d+)|s for ready process)[^\n]{0,60}"
        r"|crun: setrlimit \W?(?P<limit>RLIMIT_\w+)\W?: Operation not permitted"
        r"|(?P<keys>unable to create session key: disk quota exceeded"
        r"|(?:join|create) (?:keyctl|keyring)[^\n]{0,80}: Disk quota exceeded)"
        # It is read, and a table of that size made.
        r"|getrlimit\(RLIMIT_NOFILE, \{rlim_cur=(?P<files>\d{9,})[^\n]*\n(?:[^\n]*\n)?[^\n]*mmap\(NULL, \d{10,}",
        lines=3,
    ),
    # What an engine or a Compose file asks of the driver is not what a CUDA program needs.
    Message(
        "runtime.compute_unasked",
        ('"capabilities":', "nvidia_driver_capabilities"),
        r"\"Capabilities\":\s*\[\[(?![^\]\n]*\b(?:compute|all)\b)[^\]\n]*\butility\b[^\]\n]*\]\]"
        r"|NVIDIA_DRIVER_CAPABILITIES\W{1,4}utility(?![\w,])\W{0,3}$",
    ),
    # Apptainer runs nvidia-container-cli only where it may.
    Message(
        "runtime.apptainer_nvccli",
        (
            "nvidia-container-cli not allowed",
            "nvidia-container-cli is not owned by root",
            "ldconfig is not owned by root",
            "nvidia-container-cli failed with ",
        ),
        r"(?P<setuid>nvidia-container-cli not allowed in setuid mode)"
        r"|(?P<owner>(?:nvidia-container-cli|ldconfig) is not owned by root user)"
        r"|nvidia-container-cli failed with (?P<why>exit status \d+)",
    ),
    # The DRA driver's first container looks for the driver in the root that it was given.
    Message(
        "runtime.driver_half_found",
        "on host): nvidia-smi: '",
        r"/driver-root \((?P<root>[^)\n]+) on host\): nvidia-smi: '[^'\n]+', libnvidia-ml\.so\.1: not found",
    ),
    # enroot runs the toolkit from a hook of its own.
    Message(
        "runtime.enroot_hook",
        ("98-nvidia.sh exited", "99-nvidia.sh exited"),
        r"9[89]-nvidia\.sh exited with return code (?P<code>[1-9]\d*)",
    ),
)
