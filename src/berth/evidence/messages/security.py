"""What of the kernel refuses: SELinux, AppArmor, lockdown, capabilities; and how it says so."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # `avc:  denied  { module_load } for pid=… comm="modprobe" path="…/nvidia.ko.zst" … tcontext=… tclass=system`
    Message(
        "selinux.module_load",
        ("module_load", "sys_module", "module_request", "tclass=lockdown", "selinux", "setenforce 0"),
        r"avc:\s+denied\s+\{[^}]*\b(?P<right>module_load|sys_module|"
        r"module_request)\b[^}]*\}(?:.*?path=\"(?P<path>[^\"]+)\")?"
        r"(?:.*?scontext=(?P<source>\S+))?(?:.*?tcontext=(?P<target>\S+))?(?:.*?permissive=(?P<permissive>\d))?|"
        r"avc:\s+denied\s+\{ (?P<lockdown>integrity|confidentiality) \}[^\n]*tclass=lockdown|"
        r"avc:? denied module_load|setenforce 0[^\n]{0,80}(?:nvidia|driver|module)|"
        r"(?:nvidia|driver|module)[^\n]{0,80}setenforce 0|SELinux[^\n]*(?:prevent|den(?:y|ies|ied)|"
        r"block)\w*[^\n]*(?:module_load|load\w* (?:a |"
        r"the )?(?:kernel )?module)",
    ),
    Message(
        "selinux.labels_fail",
        "chcon: ",
        r"chcon: (?:can't apply partial context|failed to (?:get|change) (?:security )?context)",
    ),
    Message(
        "selinux.device",
        "avc:",
        r"avc:\s+denied\s+\{(?P<right>[^}]+)\}.{0,400}?(?:path|name|dev)=\"?"
        r"(?P<path>/?(?:dev/)?nvidia(?![^\"\s]*\.sock)[^\"\s]*)"
        r"(?:.*?scontext=(?P<source>\S+))?(?:.*?tcontext=(?P<target>\S+))?(?:.*?tclass=(?P<class>\w+))?"
        r"(?:.*?permissive=(?P<permissive>\d))?",
    ),
    # The kubelet's directories and sockets, for device plugins and for who asks which pod has what.
    Message(
        "selinux.kubelet_socket",
        (
            "device-plugins", "plugins_registry", "pod-resources", "kubelet.sock", "container_var_lib_t",
            "kubelet_var_lib_t", "kubernetes_file_t", ":var_lib_t",
        ),
        r"avc:\s+denied\s+\{(?P<right>[^}]+)\}[^\n]{0,400}?(?:path|name)=\"?(?:"
        r"(?P<path>[^\"\s]*(?:device-plugins|plugins_registry|pod-resources|kubelet\.sock)[^\"\s]*)|"
        r"(?P<path2>[\w.-]+\.sock)\b[^\n]*tcontext=\S*(?:container_var_lib_t|kubelet_var_lib_t|kubernetes_file_t|"
        r":var_lib_t))[^\n]*?(?:permissive=(?P<permissive>\d)|$)",
    ),
    Message(
        "selinux.enforcing",
        ("current mode", "enforcing", "mode from config file"),
        r"Current mode:\s+enforcing|^\s*Enforcing\s*$|SELinux\W+(?:is |status\W+|in )?(?:enabled and )?enforcing|"
        r"getenforce\W+Enforcing|\benforcing=1\b",
    ),
    Message(
        "apparmor.denied",
        'apparmor="denied"',
        r"apparmor=\"DENIED\"(?:(?=.*?operation=\"(?P<operation>[^\"]+)\"))?(?:(?=.*?profile=\"(?P<profile>[^\"]+)\"))?"
        r"(?:(?=.*?\bname=\"(?P<name>[^\"]+)\"))?",
    ),
    # Of nvidia's modules only; EPERM is lockdown, signatures or a missing capability, EACCES a security module.
    Message(
        "modprobe.operation_not_permitted",
        "operation not permitted",
        r"(?:could not insert|insert(?:ing)?|load(?:ing)?|insmod|"
        r"finit_module)\W[^\n]*nvidia\S*[^\n]*Operation not permitted|"
        r"Kernel module load error: Operation not permitted|load nvidia\S* failed: operation not permitted",
    ),
    Message(
        "modprobe.permission_denied",
        "permission denied",
        r"(?:could not insert|insert(?:ing)?|load(?:ing)?|insmod|finit_module)\W(?!container|config)"
        r"[^\n]*nvidia\S*[^\n]*Permission denied|"
        r"Kernel module load error: Permission denied|load nvidia\S* failed: permission denied",
    ),
    Message(
        "modprobe.key_rejected",
        (
            "key was rejected by service", "required key not available", "unsigned module",
            "module with unavailable key",
            "not signed by a key that is trusted", "unsigned kernel module", "key not available",
        ),
        r"Key was rejected by service|Required key not available|(?:Loading of )?(?:unsigned module|"
        r"module with unavailable "
        r"key) is rejected|not signed by a key that is trusted|unsigned (?:kernel )?module loading is restricted|"
        r"(?:refus|reject|block|den(?:y|ies))\w*[^\n]{0,60}unsigned (?:kernel )?modules?|"
        r"unsigned (?:kernel )?modules?[^\n]{0,40}(?:not|refus|reject|block|den(?:y|ies|ied))",
    ),
    Message("secure_boot.off", ("secure boot", "secureboot"), r"secure ?boot (?:is )?(?:off|disabled)"),
    Message(
        "security.device_denied",
        "/dev/nvidia",
        r"(?P<path>/dev/nvidia[\w-]*)\W[^\n]{0,40}Permission denied|"
        r"Permission denied[^\n]{0,40}(?P<path2>/dev/nvidia[\w-]*)",
    ),
    Message(
        "seccomp.module",
        ("seccomp", "sys_module", "modules_disabled"),
        r"seccomp[^\n]{0,60}(?:finit_module|init_module|module)|(?:missing|without|lacks?|no|drop\w*) (?:the )?"
        r"(?:capability )?(?:CAP_)?SYS_MODULE|modules_disabled\W+1",
    ),
    Message(
        "secure_boot.on",
        ("secureboot", "secure boot", "kernel is locked down", "[integrity]", "[confidentiality]"),
        r"SecureBoot enabled|secure ?boot(?: is| mode| state|:)*(?: now)? (?:enabled|active|on)\b|Secure boot enabled|"
        r"Kernel is locked down from (?P<by>.*?)(?:;|$)|(?:with|has|UEFI) (?:UEFI )?Secure Boot (?:also )?(?:enabled|"
        r"on|active)|"
        r"UEFI Secure Boot enabled|lockdown\W+(?:none )?\[(?:integrity|confidentiality)\]",
    ),
)  # fmt: skip
