"""L1. The module exists and the kernel does not take it: no trusted signature, or a security module says no."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

UNSIGNED = Code(
    name="DriverModuleUnsigned",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the kernel refuses the driver's module: no signature that it trusts",
    meaning="Secure Boot or lockdown lets only signed modules in. A driver that was built on the node is not signed "
    "by a key that this kernel knows, so there is no driver.",
    known_by="The kernel says that the key was rejected or the module unsigned, or modprobe is not permitted.",
    disproved_by="Secure Boot and lockdown are off: then a capability or seccomp forbids the loading.",
    counter_check="on NODE: mokutil --sb-state: disabled; cat /sys/kernel/security/lockdown: [none]",
    fix=Fix(
        steps=(
            "use precompiled drivers signed by the distribution (driver.usePrecompiled=true)",
            "or sign the modules and enrol the key: mokutil --import key.der, reboot, confirm at the console",
            "or turn Secure Boot off in the firmware or the machine template",
        ),
        risk="without Secure Boot any kernel module can be loaded",
        rollback="turn Secure Boot on again",
    ),
    verify=("on NODE: modprobe nvidia; lsmod | grep ^nvidia: loaded", "dmesg: no 'Loading of unsigned module'"),
    sources=("kernel, kernel/module/signing.c and security/lockdown", "nvidia-installer, kernel.c", "modprobe(8)"),
)
SELINUX = Code(
    name="SelinuxDeniesDriver",
    layer=Layer.L1,
    cause_class="permission",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="SELinux does not let the driver's module in",
    meaning="The label of the file, or of the process that loads it, has no right to load kernel modules. The build "
    "was fine; there is no driver nevertheless.",
    known_by="modprobe says Permission denied, and the audit log has an AVC with module_load, or SELinux is enforcing.",
    disproved_by="`ausearch -m avc -ts recent` shows nothing at the time of the attempt.",
    counter_check="on NODE: getenforce: Permissive; ausearch -m avc -ts recent | grep -E 'module_load|nvidia': nothing",
    fix=Fix(
        steps=(
            "bring container-selinux and selinux-policy of the node up to date",
            "label the modules: chcon -t modules_object_t on the files named in the AVC, or a policy module from "
            "ausearch -m avc -ts recent | audit2allow -M nvidia-load; semodule -i nvidia-load.pp",
            "to be sure that it is that: setenforce 0, once, on one node, then delete the driver pod",
        ),
        risk="a policy module widens what containers may do; setenforce 0 turns protection off",
        rollback="semodule -r nvidia-load; setenforce 1",
    ),
    verify=("on NODE: ausearch -m avc -ts recent: nothing of nvidia", "lsmod | grep ^nvidia: loaded"),
    sources=("SELinux policy, class system, permission module_load", "gpu-driver-container, chcon of the driver root"),
)

_MODULE = re.compile(r"nvidia|\bdriver\b|\bmodules?\b", re.IGNORECASE)


def find(facts: Facts) -> Iterator[Answer]:
    rejected = list(facts.said("modprobe.key_rejected", "modprobe.pinned"))
    not_permitted = list(facts.said("modprobe.operation_not_permitted"))
    locked = list(facts.said("secure_boot.on"))
    told = list(facts.said("driver.unsigned_told"))
    rights = [*facts.said("seccomp.module"), *facts.said("secure_boot.off")]
    if not_permitted and rights and not rejected and not locked:
        yield UNSIGNED.finding(
            "Loading the module is not permitted though Secure Boot is off: the process has not the right to.",
            LIKELY,
            [*not_permitted, *rights],
            cause_class="permission",
        )
    elif rejected:
        yield UNSIGNED.finding(
            "The kernel accepts only modules with a trusted signature, and the driver's have none.",
            ESTABLISHED,
            [*rejected, *not_permitted, *locked],
        )
    elif not_permitted:
        yield UNSIGNED.finding(
            "Loading the module is not permitted; "
            + ("Secure Boot or lockdown is on." if locked else "mostly Secure Boot or lockdown is the reason."),
            ESTABLISHED if locked else LIKELY,
            [*not_permitted, *locked],
        )
        if not locked:
            yield Unconfirmed(
                "whether Secure Boot or lockdown is on",
                "on NODE: mokutil --sb-state; cat /sys/kernel/security/lockdown",
                UNSIGNED.name,
                Layer.L1,
                not_permitted[0].node,
            )
    elif unsigned := list(facts.said("driver.signing_failed")):
        yield UNSIGNED.finding("The module could not be signed with the key that was given.", LIKELY, unsigned)
    elif told:
        yield UNSIGNED.finding("Secure Boot or lockdown is said to keep the module out.", LIKELY, told)
    yield from _selinux(facts)


def _selinux(facts: Facts) -> Iterator[Answer]:
    denied = [said for said in facts.said("selinux.module_load") if said.get("permissive") != "1"]
    refused = list(facts.said("modprobe.permission_denied"))
    enforcing = list(facts.said("selinux.enforcing"))
    labels = list(facts.said("selinux.labels_fail"))
    told = list(facts.said("driver.selinux_told"))
    # Somebody names it where the module does not get in, or names the module with it.
    stopped = list(facts.said("driver.installer_failed"))
    told = told if stopped or any(_MODULE.search(said.origin.text) for said in told) else []
    if denied:
        path = next((said.get("path") for said in denied if said.get("path")), "")
        target = next((said.get("target") for said in denied if said.get("target")), "")
        yield SELINUX.finding(
            f"SELinux denies loading {path or 'the module'}{f', which has the label {target}' if target else ''}.",
            ESTABLISHED,
            [*denied, *refused, *enforcing],
        )
    elif refused:
        yield SELINUX.finding(
            "modprobe is denied the loading of the module"
            + (" and SELinux is enforcing." if enforcing else "; mostly that is SELinux."),
            LIKELY,
            [*refused, *enforcing],
        )
    elif told:
        yield SELINUX.finding("SELinux is said to keep the module out.", LIKELY, [*told, *stopped, *enforcing])
    elif labels:
        yield SELINUX.finding("Labels that SELinux needs could not be set, and the set-up stops.", POSSIBLE, labels)


RULE = Rule((UNSIGNED, SELINUX), find)
