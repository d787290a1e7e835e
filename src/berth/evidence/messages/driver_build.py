"""The driver's way onto a node: headers, installers, DKMS, and the driver containers of the GPU Operator."""

from berth.evidence.message import Message

_V = r"\d{3}\.\d+(?:\.\d+)?"
_TOOL = (
    r"(?P<package>elfutils-libelf(?:-devel)?|libelf-dev(?:el)?|dkms|gcc(?:-\d+)?|build-essential|kmod|libglvnd-devel"
    r"|glibc-devel|libc6-dev)(?=[\s.,:'\"]|$)"
)
_HEADERS_OF = r"(?:(?:linux|kernel)[- ](?:kernel )?headers|kernel[- ](?:(?:rt|uek|64k|default|azure)-)?devel)\b"
_NO_BUILD = (
    r"(?:(?:fails|failed|failing|unable|refuses) (?:to build|to compile)|(?:does not|won't|doesn't|does n't) "
    r"(?:build|compile)|cannot build|cannot compile|build fail|build error|compilation fail|compilation error|"
    r"(?:build|compilation) (?:is )?broken)"
)

_HEADERS = (
    Message(
        "driver.headers_missing",
        (
            "could not resolve linux kernel version", "linux-headers", "kernel-rt-devel", "kernel-uek-devel",
            "kernel-64k-devel", "kernel rt-devel", "kernel uek-devel", "kernel 64k-devel", "kernel default-devel",
            "kernel azure-devel", "kernel-azure-devel", "kernel-headers", "kernel-devel", "kernel devel",
            "kernel headers", "linux headers", "linux kernel version string", "resolve rhel version", "kernel source",
            "kernel-core", "unable to find a match", "/build: no such file", "/build': no such file",
            "/build’: no such file", "/build/.config", "/build/include",
            "cannot find vmlinux", "could not extract /lib/modules",
            "usr/src/linux-headers", "usr/src/kernels", "headers for this kernel",
            "locate the linux-headers", "kernel-default-devel", "target not found: linux-headers",
        ),
        r"Could not resolve Linux kernel version|Could not locate Linux kernel version string|"
        r"Unable to resolve RHEL version from kernel version|"
        r"(?:Unable to|cannot|can't|could not) locate (?:the )?(?:package )?(?P<package>linux-headers-\S+)|"
        r"Package '(?P<package4>kernel-(?:default-)?devel\S*)' not found|target not found: linux-headers|"
        r"No provider of '(?P<package5>kernel-(?:default-)?devel[^']*)' found|"
        r"(?:No matching packages: |package )(?P<package6>kernel-(?:devel|headers)-\d\S*)(?: not found|$)|"
        r"(?:Couldn't find any package|No match for argument|Unable to find a match|No package)[^\n]*?"
        r"(?P<package2>(?:linux-headers|kernel-headers|kernel(?:-rt|-uek|-64k)?-devel(?:-matched)?|kernel-core)-\S+)|"
        r"Unable to find a match: [^\n]*?\bkernel-\d\S+|"
        rf"{_HEADERS_OF}[^\n]{{0,60}}(?:cannot be found|not found|not available|missing|not installed|"
        rf"could not be found|"
        r"no longer|do not (?:exist|match)|does not (?:exist|match)|unavailable|don't exist)|"
        rf"(?:missing|no|without|find|matching) (?:the )?(?:matching |suitable )?{_HEADERS_OF}|"
        r"(?:cannot|could not|can't|unable to) find (?:the )?kernel source|"
        r"kernel source path[^\n]{0,60}(?:is incorrect|is not|does not)|"
        r"/lib/modules/\S+?/build(?:/\.config|/include/\S+)?['’]?: No such file\b|"
        r"extract-vmlinux: Cannot find vmlinux|"
        r"/usr/src/(?:linux-headers-\S+|kernels/\S+?)['’]?: No such file or directory|"
        r"headers for this kernel do not seem to be installed|Could not extract /lib/modules/\S*vmlinuz|"
        # A tool of Python that ran the package manager: the names of the packages stand in its list.
        r"(?P<package3>linux-headers-[\w.+-]+|kernel-devel-[\w.+-]+)['\"][^\n]*returned non-zero exit status",
    ),
    # What a build needs beside the headers.
    Message(
        "driver.build_package_missing",
        (
            "unable to find a match: ", "no match for argument: ", "unable to locate package ",
            "has no installation candidate", "nothing provides ", "no package ", "please install libelf-dev",
        ),
        rf"(?:Unable to find a match: |No match for argument: )(?:[^\n]*\s)?{_TOOL}"
        rf"|Unable to locate package {_TOOL.replace('package', 'package2')}"
        rf"|Package \W?{_TOOL.replace('package', 'package3')}\W? has no installation candidate"
        r"|please install (?P<package6>libelf-dev)\b"
        rf"|No package {_TOOL.replace('package', 'package4')} available"
        rf"|nothing provides {_TOOL.replace('package', 'package5')}[^\n]* needed by [^\n]*nvidia",
    ),
    Message(
        "driver.repositories_unreachable",
        (
            "failed to update package cache", "package repositories", "dnf metadata cache", "entitlement",
            "failed to download metadata for repo", "there are no enabled repositories", "access the proper networks",
            "no_pubkey", "download.nvidia.com", "could not retrieve mirrorlist", "cannot find a valid baseurl",
            "errors during downloading metadata for repository", "failed to synchronize cache for repo",
        ),
        r"Failed to update package cache|failed to reach RHEL package repositories|"
        r"failed to update the dnf metadata cache|"
        r"RHEL entitlement may be improperly deployed|no entitlement|entitlement[^\n]{0,40}(?:missing|not found|"
        r"expired)|"
        r"Failed to synchronize cache for repo|"
        r"Failed to download metadata for repo|There are no enabled repositories in|access the proper networks|"
        r"(?:[Cc]ould not resolve|unable to resolve host address|Failed to connect to|"
        r"Connection timed out)[^\n]{0,40}download\.nvidia\.com|"
        r"Could not retrieve mirrorlist|Cannot find a valid baseurl for repo|"
        r"Curl error \(\d+\)[^\n]{0,80}download\.nvidia\.com|"
        r"Errors during downloading metadata for repository '(?:cuda|nvidia-driver)|"
        # The keys of NVIDIA's CUDA repositories: the old one was withdrawn in 2022.
        r"NO_PUBKEY (?:A4B469963BF863CC|F60F4B3D7FA2AF80)|developer\.download\.nvidia\.com\S*[^\n]*(?:is not signed|"
        r"Could not resolve|Connection timed out|Temporary failure)",
    ),
    # OpenShift: an image of the release brings the headers, and it is of another kernel than the node.
    Message(
        "driver.toolkit_stale",
        ("driver toolkit", "driver-toolkit", "driver_toolkit_image", "imagetag missing"),
        r"(?:could not|couldn't|cannot|not|unable to) find [^\n]{0,40}(?:driver-toolkit|DRIVER_TOOLKIT_IMAGE)|"
        r"driver-toolkit[^\n]{0,60}(?:not found|missing|does not exist)|broken Driver[- ]Toolkit (?:image )?detected|"
        r"driver[- ]toolkit[^\n]{0,60}(?:mismatch|older kernel|"
        r"another kernel|"
        r"do(?:es)?n't match|not match|wrong kernel)|"
        r"driver container (?:does not|doesn't) use the driver[- ]toolkit|RHCOS '\S*' imagetag missing|"
        r"\b(?:old|older|outdated|stale|wrong|previous) (?:\w+ )?driver[- ]toolkit",
    ),
    Message(
        "driver.custom_kernel",
        ("elrepo", "xanmod", "liquorix", "zabbly", "-pve", "custom kernel", "mainline kernel"),
        r"(?P<kernel>\d[\w.+-]*(?:elrepo|xanmod|liquorix|zabbly|-pve)[\w.-]*|elrepo|xanmod|(?:custom|mainline) kernel)",
    ),
)  # fmt: skip

_BUILD = (
    Message(
        "driver.build_failed",
        (
            "does not support real-time", "preempt_rt kernel", "a xen kernel", "akmods", "to make target",
            "performing the step", "kernel module was not created",
            "not found in package 'kernel/precompiled", "bad return status for module build",
            "error! build of gdrdrv",
            "error! build of nvidia", "modpost: ", "*** [", ": error: ", "fatal error: ", "failed to run `dkms",
            "failed to run `/", "/cuda-installer.log", "driver component failed",
            # Compilers speak the language of whoever runs them.
            ": 错误", ": 致命错误", "fehler: ", ": erreur", ": ошибка: ", ": エラー: ", ": 오류: ", ": erro",
            "saving rejects to file", "no nvidia driver generated", "nvidia driver source, exiting", "link nvidia",
            "compilation broken", "compilation is broken", "build broken", "build is broken",
            "'kernel/dkms.conf'", "could not locate dkms.conf",
            "nv-linux.o", "to build", "to compile", "not build", "not compile", "n't build",
            "n't compile", "cannot build", "cannot compile", "build fail", "build error",
            "compilation fail", "compilation error", "unable to link kernel module",
            "failed to unpack the precompiled interface", "failed to generate nvidia", "failed for nvidia",
        ),
        r"Unable to link kernel module|Failed to unpack the precompiled interface|Failed to generate nvidia\S*\.ko|"
        r"dkms autoinstall on \S+ failed for nvidia|"
        r"error occurred while performing the step: ?\W*(?P<step>Building kernel modules|Checking to see[^\"]*)|"
        r"does not support real-time kernels|is a (?:PREEMPT_RT|Xen) kernel|No rule to make target ['‘`]modules|"
        r"akmods/nvidia\S*\.failed\.log|akmods\S*[^\n]{0,40}nvidia\S*[^\n]{0,20} failed|cannot find \S*nv-linux\.o|"
        r"Unable to open 'kernel/dkms\.conf'|Could not locate dkms\.conf file|kernel module was not created|"
        # The package that the driver container made of an earlier build lacks a module, and it builds anew.
        r"Required file '(?P<lacks>\S+)' not found in package 'kernel/precompiled|"
        r"Bad return status for module build on kernel: (?P<kernel>\S+)|"
        r"Error! Build of (?:nvidia|gdrdrv)\S* failed|modpost: [^\n]*(?:nvidia|gdrdrv|nvfs)\S*|"
        r"(?:nvidia(?:-[\w-]+)?/\S+|(?:common/inc|kernel-open)/\S+|(?<![\w.-])nv-[\w-]+)\.[ch]:\d+:\d+: "
        r"(?:(?:fatal )?error: |(?:致命)?错误[：:] ?|(?:schwerwiegender )?Fehler: |"
        r"erreur(?: fatale)? ?: |ошибка: |エラー: |오류: |erro(?: fatal)?: )(?P<what>.*)|"
        r"(?:gdrdrv|nvidia-fs|nvfs)[\w.-]*/\S+\.[ch]:\d+:\d+: (?:fatal )?error: |"
        r"saving rejects to file \S*nvidia\S*|FATAL: no NVIDIA driver generated|failed to link nvidia\S*\.ko|"
        r"Failed to find NVIDIA driver source, exiting|"
        r"make\S*: \*\*\* \[[^\]]*nvidia[^\]]*\] Error|Failed to run `(?:/\S*/)?dkms (?:build|install)|"
        # The runfile of CUDA, whose own log has no more than this of the driver's installer.
        r"Installation failed\. See log at /var/log/cuda-installer\.log|Install of driver component failed|"
        rf"(?:nvidia|kernel module|kernel-open|dkms|GPU driver|\bdriver(?= \w+n[o']t)|"
        rf"\bdriver(?= fail))[^\n]{{0,60}}\b{_NO_BUILD}|"
        rf"{_NO_BUILD}[^\n]{{0,60}}(?:nvidia|kernel module)",
    ),
    # make's last words do not name what it builds: the directory that it leaves does.
    Message(
        "driver.make_failed",
        ("*** [", "make.log for nvidia", "cc [m] ", "no rule to make target"),
        r"\*\*\* \[[^\n]*\] Error \d+\n(?:[^\n]*\n){0,4}?[^\n]*/(?:dkms/nvidia|NVIDIA-Linux|usr/src/nvidia)\S*|"
        r"No rule to make target [^\n]*, needed by '[^'\n]*nvidia[^'\n]*\.k?o'|"
        r"make\.log for nvidia\S* for kernel (?P<kernel>\S+)[\s\S]*?(?:\] Error|: error:)|"
        # A header of the kernel itself may be where the compiler stops: the object that it made is the driver's.
        r"\bCC \[M\] \s*\S*\b(?:nvidia|kernel-open)\S*\.o\b[^\n]*\n(?:[^\n]*\n){0,16}?[^\n]*?:\d+:\d+: "
        r"(?:fatal )?error: (?P<what>[^\n]*)",
        lines=40,
    ),
    # The driver image's script falls over what it found on the node.
    Message(
        "driver.script_failed",
        ("nvidia-driver: line", "nvidia-installer: line", "install.sh: line"),
        r"nvidia-(?:driver|installer): line \d+: (?P<what>[^\n]*)",
    ),
    # `dkms status`: added or built for a kernel is not installed for it.
    Message(
        "driver.dkms_state",
        (": added", ": built", ": installed"),
        r"^\s*nvidia(?:-current|-open|-srv|-legacy)?[\w-]*[/,] ?\d{3}\.[\d.]+(?:, (?P<kernel>[\w.+-]+), \w+)?: "
        r"(?P<state>added|built|installed)\b",
    ),
    Message(
        "driver.compiler_differs",
        "the compiler differs from the one used to build the kernel",
        r"the compiler differs from the one used to build the kernel"
        r"(?:[\s\S]*?kernel was built by:[^\n]*?\s(?P<kernel>\d+(?:\.\d+)+)\s*\n[^\n]*You are using:[^\n]*?\s"
        r"(?P<compiler>\d+(?:\.\d+)+)(?=\s*(?:\n|$)))?",
        lines=3,
    ),
    # What the kernel says that it was built by, and the compiler at hand, one after the other.
    Message(
        "driver.compilers_shown",
        "gcc version ",
        r"gcc version (?P<kernel>\d+)\.\d+[^\n]*\n[^\n]*\bgcc --version\W[^\n]*?\b(?P<compiler>\d+)\.\d+\.\d+",
        lines=2,
    ),
    Message(
        "driver.compiler_unfit",
        (
            "find the development tool",
            "unrecognized command", "unrecognised command", "compiler version", "does not exactly match the c",
            "failed cc version check", "failed cc sanity check", "gcc-", "ftrivial-auto-var-init", "requires gcc",
            "wrong gcc", "gcc version", "compiler used to compile the kernel", "cc version check failed",
            "does not appear to be able to create executables", "conftest.sh: line ",
            "code model kernel does not support pic mode",
        ),
        r"(?:gcc|cc1?|clang)\S*: error: unrecogni[sz]ed command[- ]line option\W*(?P<option>-[\w=-]*)?|"
        r"Unable to find the development tool [`'\"](?:cc|gcc|make|ld)\b|Compiler version check|"
        r"does not exactly match the (?:current )?compiler|gcc-version-check failed|failed CC (?:version|sanity) check|"
        r"CC version check failed|Could not compile gcc-version-check|C compiler '[^']*' does not appear to be able to "
        r"create executables|conftest\.sh: line \d+: \S*(?:g?cc|clang)\S*: command not found|"
        r"code model kernel does not support PIC mode|"
        r"unrecogni[sz]ed command[- ]line option\W*(?P<option2>-ftrivial-auto-var-init\S*)|"
        r"(?:gcc|x86_64-linux-gnu-gcc)-(?P<wanted>\d+)\W*:? (?:not found|No such file or directory|command not found)|"
        r"compiler used to compile the kernel[^\n]*(?:differ|not)|"
        r"(?:gcc|compiler) version[^\n]{0,40}(?:mismatch|differ|not match|does ?n.t match|too old|incompatible)",
    ),
    # Systems that bring the driver by a unit of their own: Bottlerocket, Flatcar, Container-Optimized OS.
    Message(
        "driver.node_installer_failed",
        (
            "kernel-modules.service: ", "load tesla kernel modules", "load open gpu kernel modules",
            "nvidia.service: ",
            "unit nvidia.service", "start nvidia.service", "install gpu driver", "find gpu driver",
            "download gpu driver", "run gpu driver", "/usr/bin/nvidia-smi' failed", "generate cdi specifications",
            "ghostdog", "load gpu driver", "verify gpu driver", "load kernel module, err", "to link drivers",
            "cached driver installation", "unified memory device file", "driver installer download",
            "to sign kernel module", "find precompiled artifacts", "failed container",
        ),
        r"(?:load|link)-(?:tesla|open-gpu)-kernel-modules\.service: (?:Failed with result|Main process exited)|"
        r"Failed to start (?:Load (?:Tesla|open GPU) kernel modules|nvidia\.service)|"
        r"(?<![\w-])nvidia\.service: (?:Failed with result|Main process exited|Control process exited)|"
        r"'/usr/bin/nvidia-smi' failed|Dependency failed for Generate CDI specifications|"
        # Bottlerocket's chooser says of each driver but one that it is not preferred: that is no fault.
        r"ghostdog\S* Error: (?:Failed to (?:parse the GPU|list PCI)|[^\n]*is not a supported driver)|"
        r"Unit nvidia\.service (?:could not be found|not found)|"
        # Container-Optimized OS: what its installer says of each step.
        r"failed to (?:install|find|download|run|load|verify) GPU driver|Failed to load kernel module, err|"
        r"[Rr]estarting failed container[ =]nvidia-driver-installer\b|"
        r"failed to (?:link drivers|configure cached driver installation|create unified memory device file|"
        r"get driver installer download URL|find precompiled artifacts|sign kernel module nvidia)",
    ),
    # The package manager cannot put the driver's packages together.
    Message(
        "driver.packages_conflict",
        (
            "depends: ", "conflicts: ", "breaks: ", "modular filtering", "nothing provides ", "conflicts with ",
            "conflicting requests", "files from pkg", "trying to overwrite ", "conflicts between attempted installs",
            "none of the providers can be installed", "filtered out by exclude filtering",
            "no package matching '",
            "held broken packages", "dependency problems prevent configuration of",
            "switching of module 'nvidia-driver",
            "running %p", "scriptlet failed", "dpkg: error processing package ",
        ),
        r"(?:libnvidia|nvidia|cuda-drivers|linux-(?:modules|objects)-nvidia|xserver-xorg-video-nvidia)[\w.:+-]* ?:? "
        r"(?:Pre-?)?(?:Depends|Conflicts|Breaks): \S|"
        r"Depends: (?:libnvidia|nvidia-(?!container)|cuda-drivers)\S* [^\n]{0,40}but it is not "
        r"(?:going to be installed|installable)|"
        r"dependency problems prevent configuration of (?:nvidia-(?!container)|libnvidia-(?!container)|cuda-drivers)|"
        r"switching of module 'nvidia-driver'|"
        r"nothing provides '?ksym\([^\n]* needed by \S*nvidia|"
        r"No package matching '(?:cuda-drivers|nvidia-driver|libnvidia|nvidia-dkms|kmod-nvidia)\S*' "
        r"(?:is available|found)|"
        r"filtered out by modular filtering for argument: (?:nvidia|cuda|kmod-nvidia)|"
        r"nothing provides (?:kmod-|lib|akmod-|dkms-)?nvidia[^\n]* needed by|"
        r"package (?:nvidia|kmod-nvidia|akmod-nvidia|dkms-nvidia|cuda-drivers)\S* [^\n]{0,80}conflicts with |"
        r"\b(?:kmod-|lib|akmod-)?nvidia-\S+ conflicts with \S*nvidia|"
        r"trying to overwrite (?!\S*nvidia-c(?:ontainer|tk|di))[^\n]{0,120}nvidia[^\n]{0,120}also in package|"
        r"file \S*nvidia\S* [^\n]{0,60}conflicts between attempted installs|"
        r"package (?:nvidia|kmod-nvidia|akmod-nvidia|dkms-nvidia|cuda-drivers|libnvidia)\S* [^\n]*requires [^\n]*"
        r"none of the providers can be installed|"
        r"package (?:nvidia|kmod-nvidia|libnvidia|cuda-drivers)\S* [^\n]{0,80}filtered out by exclude filtering|"
        r"(?:nvidia|cuda-drivers)\S*[^\n]*you have held broken packages|"
        r"Running %p\w+ for (?:nvidia|kmod-nvidia|akmod-nvidia|dkms-nvidia|cuda-drivers)[^\n]*(?:code [1-9]|fail)|"
        r"%p\w+\((?:nvidia|kmod-nvidia|akmod-nvidia|dkms-nvidia|cuda-drivers)\S*\) scriptlet failed|"
        r"dpkg: error processing package (?:nvidia-(?!container)|libnvidia-(?!container)|cuda-drivers)",
    ),
    Message(
        "driver.built",
        (
            "kernel module compilation complete", "done, now waiting for signal", "dkms: install completed",
            "install complete",
        ),
        r"Kernel module compilation complete|Done, now waiting for signal|DKMS: install completed|install complete",
    ),
    Message(
        "driver.precompiled_missing",
        (
            "linux-objects-nvidia-", "linux-modules-nvidia-", "linux-signatures-nvidia-", "precompiled",
            "pre-compiled", "no kernel module package",
            "manifest for nvcr.io/nvidia/driver", "nvidia/driver:", "image that doe",
        ),
        r"Unable to locate package (?P<package>linux-(?:objects|modules|signatures)-nvidia-\S+)|"
        r"no kernel module package kmod-nvidia\S* for kernel|"
        r"(?:Could not find|unable to find|\bno\b|not find)[^\n]{0,40}pre-?compiled[^\n]{0,40}(?:driver|package|module|"
        r"interface|"
        r"image)|pre-?compiled[^\n]{0,60}(?:not (?:found|available|supported(?! along)|exist)|unavailable|missing|"
        r"does ?n.t exist)|"
        r"(?:manifest (?:for )?|pull(?:ing)? (?:image )?\"?)[^\s\"]{0,80}nvidia/driver:\S+[^\n]*(?:not ?found|"
        r"manifest unknown|"
        r"unknown manifest)|nvidia/driver:(?P<tag>[\w.-]+)\W*:? (?:not found|manifest unknown)|"
        r"driver[^\n]{0,60}(?:tries to pull|pulls?|pulling) an image that doe(?:s not|sn't) exist|"
        r"nvidia/driver:(?P<tag2>[\w.-]+)\W{0,3}(?:image )?(?:doe(?:s not|sn't) exist|is missing|"
        r"is not (?:there|available|published))|"
        r"\((?P<tag3>\d{3}[\w.-]*-(?:ubuntu|rhel|rhcos|sles|debian|fedora|amzn)[\w.]*)\W{0,3}"
        r"doe(?:s not exist[^\n]*?precompiled|sn't exist[^\n]*?precompiled)",
    ),
    Message(
        "driver.installer_failed",
        (
            "unable to load the kernel module 'nvidia.ko'", "unable to load the 'nvidia", "installation has failed",
            "unable to load the kernel module", "failed to install the kernel module", "driver installation failed",
            "kernel module installation", "sanity check failed", "pre-install script failed", "has size 0; expected",
            "error in md5 checksums", "this .run file is intended for the ",
        ),
        r"Unable to load the (?:kernel module )?'nvidia\S*'|ERROR: Installation has failed|"
        r"Unable to load the kernel module|Failed to install the kernel modules?|NVIDIA driver installation failed|"
        # Its archive: broken on the way, or of another processor.
        r"Post-install sanity check failed|distribution-provided pre-install script failed|"
        r"File '[^']*nvidia[^']*' has size 0; expected|Error in MD5 checksums|"
        r"this \.run file is intended for the Linux-\S+ platform",
    ),
)  # fmt: skip

MESSAGES: tuple[Message, ...] = (*_HEADERS, *_BUILD)
