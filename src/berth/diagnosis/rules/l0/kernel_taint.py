"""L1. What the kernel says of every driver from outside its tree, while it loads it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, listed, values
from berth.diagnosis.words import ESTABLISHED, Effect, Layer, Severity
from berth.evidence.facts import Facts

TAINTED = Code(
    name="ModuleTaintsKernel",
    layer=Layer.L1,
    cause_class="diagnosis-rule",
    severity=Severity.Info,
    effect=Effect.DeviceUnfit,
    title="the kernel notes that the driver's module is not signed, and loads it",
    meaning="A module that was built on the machine has no signature of the distribution. Without Secure Boot the "
    "kernel marks itself tainted and goes on; nothing fails for it.",
    known_by="module verification failed, tainting kernel, and no line that the module was rejected.",
    disproved_by="Key was rejected by service, or Loading of unsigned module is rejected.",
    counter_check="lsmod | grep ^nvidia: loaded; cat /proc/driver/nvidia/version: the version of the driver",
    fix=Fix(("nothing to mend; sign the module where Secure Boot is to be switched on",), "none", "nothing to undo"),
    verify=("nvidia-smi: lists the devices",),
    sources=("Linux, kernel/module/signing.c: module signature enforcement",),
    is_trap=True,
)
_REFUSED = ("modprobe.key_rejected", "modprobe.operation_not_permitted", "secure_boot.on")


def find(facts: Facts) -> Iterator[Answer]:
    if any(facts.said(*_REFUSED)):
        return
    for node, pod, found in by_place(facts.said("kernel.module_unsigned")):
        yield TAINTED.finding(
            f"The kernel loaded {listed(values(found, 'module'))} without a signature that it knows.",
            ESTABLISHED,
            found,
            node=node,
            pod=pod,
        )


RULE = Rule((TAINTED,), find)
