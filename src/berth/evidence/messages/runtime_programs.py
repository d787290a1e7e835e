"""Programs and libraries of the NVIDIA runtime that are missing, broken or of another release."""

from berth.evidence.message import Message

_BINARY = (
    r"(?P<binary>(?:/[\w./-]{1,200}/)?nvidia-"
    r"(?:container-(?:runtime(?:[.-][a-z][\w-]*)*|toolkit|cli(?:\.real)?)|ctk|cdi-hook))"
)
_DRIVER_FILE = r"[\W]{0,3}(?P<path>[\w./+-]*/(?:nvidia-[\w.-]+|libnvidia-[\w.+-]+|libcuda\.[\w.]+)(?:;\w+)?)\W{0,2}"

_CRASH = r"(?:segmentation fault|aborted|illegal instruction|bus error)"
_PACKAGE = r"(?:nvidia-container-(?:toolkit|runtime)(?:-base|-hook)?|libnvidia-container(?:1|-tools)?|nvidia-docker2?)"

MESSAGES: tuple[Message, ...] = (
    # The processes of others are not shown in /proc then: a hook looks for that of the container.
    Message(
        "host.proc_hides",
        "hidepid=",
        r"\bproc\b[^\n]*\bhidepid=(?:[124]|noaccess|invisible|ptraceable)\b",
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
            "nvidia-docker: ",
            "nvidia-docker2: ",
            "runtime validation: ",
            "nvidia lxc hook",
        ),
        rf"(?:\bexec|stat|find|path)\b[^\n]{{0,200}}?{_BINARY}\W*"
        r"(?:executable file not found|no such file or directory)"
        rf"|fork/exec {_BINARY.replace('binary', 'binary2')}: (?:permission denied|exec format error|text file busy)"
        rf"|\bexec: {_BINARY.replace('binary', 'binary6')}: (?:not found|cannot execute)"
        rf"|{_BINARY.replace('binary', 'binary3')} did not terminate suc+essfully"
        r"(?:: exit status (?:1|2|126|127)\b(?!: unable to )|(?!: exit))"
        rf"|executable file \W*{_BINARY.replace('binary', 'binary4')}\W* not found"  # crun's order of words
        r"|runtime validation: \W{0,3}(?P<binary5>(?:[\w./-]*/)?nvidia[\w.-]*)\W{0,3} not found in \$PATH"
        r"|couldn't find binary nvidia-container-cli|nvidia-(?:container-\w+|ctk|docker2?): (?:command )?not found"
        # enroot and LXC, which call the tool from scripts.
        r"|(?:Command not found|Missing tool):? nvidia-container-cli|NVIDIA LXC hook (?:couldn't|could not) be found",
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
        ("could not select device driver", "gpu vendor from cdi", "known gpu vendor found", "amd cdi spec not found"),
        r"could not select device driver(?: (?:\W*?(?P<driver>\w*)\W* )?with capabilities|\W*$)"
        # Docker 29 asks the specifications first.
        r"|failed to discover GPU vendor from CDI|no known GPU vendor found|AMD CDI spec not found",
    ),
    Message(
        "runtime.toolkit_there",
        ("nvidia-container-toolkit", "nvidia-docker2", "nvidia container toolkit", "nvidia-container-runtime"),
        r"\b(?:already|have|had|did|is|are|successfully|correctly|I|we"
        r"|docs)\b[^\n]{0,12}(?<!not )(?<!t )(?<!never )\binstall(?:ed)?\b"
        r"(?! (?:failed|error))"
        r"[^\n]{0,40}\b(?:nvidia[- ]container[- ](?:toolkit|runtime)|nvidia-docker2)\b"
        r"|\b(?:nvidia[- ]container[- ](?:toolkit|runtime)|nvidia-docker2)\b\W{0,3}[^\n]{0,30}\b(?:is already|(?:was"
        r"|is|has "
        r"been|have been) (?:already |correctly |successfully )?installed\b)"
        r"|^ii +(?:nvidia-container-toolkit|nvidia-docker2)\b|^(?:nvidia-container-toolkit|nvidia-docker2)-\d[\w.-]*"
        r"\.(?:x86_64|aarch64|noarch)\b",
    ),
    Message(
        "runtime.low_level_missing",
        (
            "no runtime binary found",
            "low-level runtime",
            "error constructing runtime",
            "error locating runtime",
            "executable file not found in $path",
        ),
        r"no runtime binary found from candidate list|error (?:constructing|locating) (?:low-level )?runtime"
        r"|exec:? \W{0,6}(?:runc|crun)\W{1,6}executable file not found in \$PATH",
    ),
    # It does not know the version of what an engine or a specification asks it for.
    Message(
        "runtime.low_level_too_old",
        (
            "unknown version specified",
            "unsupported spec version",
            "unsupported oci version",
            "error adding seccomp ",
            "this version of runc doesn't work",
        ),
        r"(?P<program>crun|runc|youki|kata\S*)\b[^\n]{0,60}(?:unknown version specified"
        r"|unsupported (?:spec|OCI) version)"
        # A profile of a newer engine, for an older runc with libseccomp.
        r"|this version of (?P<program2>runc) doesn't work on cgroups v2"
        r"|error adding seccomp (?:filter )?rule for syscall (?P<syscall>\w+): requested action matches default",
    ),
    Message(
        "runtime.ldcache_unusable",
        ("ldcache", "ld cache", "error: init ", "ldconfig -p", "ld.so.cache", "sandboxutils"),
        r"error loading ldcache|(?:failed|unable) to (?:open|load|create|read) (?:the )?ld ?cache"
        r"|open(?: failed:)? \S{0,80}/ld\.so\.cache: no such file|ERROR: init \d+ result=11\b"
        r"|(?:invalid|unsupported file format:?) (?:\S{0,40}/)?ld\.so\.cache"
        r"|sandboxutils\S*[^\n]{0,80}(?:segfault|SIGSEGV|crash\w*|exit(?: code)? 139)"
        r"|ldconfig -p[^\n]{0,80}nvidia\S*\W+(?:empty|nothing|no output)",
    ),
    # The loader's cache names files of a driver that is gone.
    Message(
        "runtime.ldcache_stale",
        ("error: open failed: ", "error: path error: ", "error: stat failed: "),
        r"(?:detection|initialization) error: (?:open failed|path error|stat failed): "
        r"\W*(?P<path>/[^\s:]*/lib(?:nvidia|cuda|vdpau|GL|EGL)[^\s:]*"
        r"\.so\.\d{3}\.[\d.]+): no such file",
    ),
    # A program that is there and whose loader is not: one for glibc in an image with another C library.
    Message(
        "runtime.no_loader",
        "nvidia-smi",
        r"\bexec:? \W{0,2}/usr/bin/nvidia-smi\W{1,4}no such file or directory"
        r"|Error relocating \S*nvidia-smi: |nvidia-smi: not found[^\n]{0,80}\b(?:alpine|musl)\b",
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
    # Package managers, where a package of the toolkit does not come or does not fit.
    Message(
        "runtime.package_unavailable",
        (
            "nvidia.github.io/",
            "locate package",
            "no package nvidia-",
            "no package libnvidia-",
            "package nvidia-container-",
            "package libnvidia-container",
            "package nvidia-docker",
            "no installation candidate",
            "is not available, but",
            "match for argument",
            "find a match",
            "no provider of",
            "target not found",
            " : depends: ",
            " requires libnvidia-container",
            " requires nvidia-container",
            " requires nvidia-docker",
            "nothing provides ",
            "is not known on line ",
            "error processing package ",
            "error processing archive ",
            "from install of nvidia-",
            "from install of libnvidia-",
            "which is also in package",
        ),
        rf"Unable to locate package {_PACKAGE}\b|No package {_PACKAGE} available"
        rf"|Package \W?{_PACKAGE}(?::\w+)?\W? (?:has no installation candidate|is not available, but)"
        rf"|(?:No match for argument|Unable to find a match|No provider of|target not found):? \W?{_PACKAGE}\b"
        rf"|{_PACKAGE}(?::\w+)? : Depends: |package {_PACKAGE}-\S+ from \S+ requires "
        rf"| requires {_PACKAGE}\b[^\n]{{0,60}}(?:none of the providers|cannot install|nothing provides)"
        rf"|package {_PACKAGE}-\S+ does not verify|nothing provides {_PACKAGE}\b[^\n]{{0,60}} needed by "
        r"|(?:repository|Failed to fetch|GPG error|Err:\d+|Cannot (?:download|retrieve)|Failed to (?:download|retrieve)"
        r"|Signed-By regarding source)[^\n]{0,60}https?://nvidia\.github\.io/\S*"
        r"|Unsupported distribution!\s*\W{0,3}Check https?://nvidia\.github\.io/"
        r"|Type \W?<!doctype\W? is not known on line \d+ in source list \S*nvidia"
        rf"|error processing (?:package|archive) \S*{_PACKAGE}"
        rf"|file \S*nvidia-c\S* from install of {_PACKAGE}\S* conflicts"
        r"|trying to overwrite \W?\S*nvidia-c\S*, which is also in package",
        lines=2,
    ),
    # A program of the toolkit that ends by a signal, as the kernel, a shell, a runtime or its own stack tells it.
    Message(
        "runtime.program_crashed",
        (
            "nvidia-containe[",
            "nvidia-container-",
            "nvidia-ctk[",
            "nvidia-cdi-hook[",
            "in libnvidia-container",
            "98-nvidia.sh exited",
            "error running hook",
            "error running prestart hook",
            "error running createcontainer hook",
            " nvidia-ctk",
            " nvidia-cdi-hook",
            "signal: illegal instruction",
            "signal: segmentation fault",
            "signal: aborted",
            "signal: bus error",
        ),
        r"\b(?P<program>nvidia-containe|nvidia-ctk|nvidia-cdi-hook)\[\d+\]:? "
        r"(?:segfault at|general protection|trap |unhandled signal)"
        r"|segfault at [^\n]{0,120} in (?P<library>libnvidia-container(?:-go)?\.so[\w.]*)"
        r"|error running (?:prestart |createContainer )?hook[^\n]{0,300}(?:SIGSEGV|SIGABRT|signal arrived during cgo"
        r"|exit status 2, stdout: [^\n]{0,40}stderr: (?:panic|fatal error): )"
        r"|98-nvidia\.sh exited with return code 1(?:39|34)"
        rf"|error running (?:prestart |createContainer )?hook[^\n]{{0,12}}: signal: {_CRASH}"
        rf"|nvidia-container-[\w.-]+ did not terminate suc+essfully: signal: {_CRASH}"
        rf"|(?P<program3>nvidia-(?:ctk|cdi-hook|container-[\w-]+))\b[^\n]{{0,300}}?: signal: {_CRASH}"
        r"|[$#](?: sudo)?(?P<program2> nvidia-ctk| nvidia-cdi-hook| nvidia-container-\w+)\b[^\n]{0,80}\n?[^\n]{0,20}"
        r"Segmentation fault",
        lines=2,
    ),
    # BuildKit hands devices only to builds that ask for them and are allowed to.
    Message(
        "runtime.build_denied",
        ("entitlement device", "by the build but not allowed"),
        r"(?:granting )?entitlement device\b[^\n]{0,20}\bnot allowed"
        r"|devices? (?P<device>[^\n]{1,120}?) (?:is|are) requested by the build but not allowed",
    ),
    # Engines from before --gpus, and compose files that ask an older compose for devices.
    Message(
        "runtime.docker_too_old",
        (
            "unknown flag: --gpus",
            "unknown flag: --runtime",
            "flag provided but not defined: --gpus",
            "additional propert",
            "option for services",
        ),
        r"unknown flag: --(?P<flag>gpus|runtime)\b|flag provided but not defined: --(?P<flag2>gpus)\b"
        r"|additional propert[^\n]{0,40}\b(?P<key>devices|runtime)\W{1,2}(?:was unexpected|(?:is )?not allowed)"
        r"|Unsupported config option for services\.[\w.-]+: \W{0,3}(?P<key2>runtime|gpus|device_requests)",
    ),
    # nvidia-docker 1, which made a volume of the driver's files.
    Message(
        "runtime.driver_volume",
        ("nvidia_driver_", "volume plugin nvidia-docker", "nvidia-docker-plugin", "nvidia-docker: plugin"),
        r"(?P<why4>no such volume: nvidia_driver_[\d.]+)"
        r"|nvidia_driver_[\d.]+\b[^\n]{0,60}VolumeDriver\.\w+: (?P<why>[^\n]{0,120})"
        r"|volume plugin nvidia-docker: (?P<why2>[^\n]{0,80}not found)"
        r"|nvidia-docker-plugin[^\n]{0,40}Error: (?P<why3>[^\n]{0,120})",
    ),
    # The driver's programs and libraries come from the host and want a newer C library than the image has.
    Message(
        "runtime.newer_glibc",
        "not found (required by ",
        r"/(?:\S*/)?lib(?:c|m|stdc\+\+)\.so\.6: version \W{0,2}(?P<version>\w+_[\d.]+)\W{0,2} not found \(required by "
        r"(?P<file>\S*(?:/\.singularity\.d/libs/\S+|/nvidia-(?:smi|persistenced|modprobe|debugdump)"
        r"|/libnvidia-(?!container)[\w.-]+|/libcuda[\w.-]*|/libGLX_nvidia\S*|/libEGL_nvidia\S*))\)",
    ),
    # The loader goes on without it; what the library was to do is not done.
    Message(
        "runtime.preload_missing",
        ("cannot be preloaded",),
        r"ld\.so: object '(?P<path>[^'\n]{1,120}(?:vgpu|hami|cuda|nvidia|gpu)[^'\n]{0,60})' from "
        r"(?:/etc/ld\.so\.preload|LD_PRELOAD) cannot be preloaded",
    ),
)
