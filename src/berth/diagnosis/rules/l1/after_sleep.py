"""L1. The driver does not survive that the machine sleeps: CUDA does not begin after it woke up."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

ASLEEP = Code(
    name="CudaGoneAfterSleep",
    layer=Layer.L1,
    cause_class="driver-bug",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="the driver lost its state when the machine slept",
    meaning="nvidia_uvm and open CUDA contexts do not come back from suspend or hibernation unless the driver saves "
    "the memory itself. nvidia-smi works, every CUDA program fails until the module is loaded anew.",
    known_by="CUDA fails with an unknown error after a suspend or resume, or the driver's suspend function returns an "
    "error.",
    disproved_by="The same error right after a restart of the machine.",
    counter_check="journalctl -b | grep -e 'PM: suspend' -e nv_pmops: no suspend since the last program that worked",
    fix=Fix(
        steps=(
            "end what uses CUDA, then rmmod nvidia_uvm && modprobe nvidia_uvm; where it is held: restart the machine",
            "option NVreg_PreserveVideoMemoryAllocations=1 of nvidia, and systemctl enable nvidia-suspend "
            "nvidia-resume nvidia-hibernate",
            "a machine that computes does not sleep: systemctl mask sleep.target suspend.target hibernate.target",
        ),
        risk="unloading needs that no program uses CUDA",
        rollback="take the option out; systemctl unmask the targets",
    ),
    verify=("a CUDA program runs: vectorAdd passes", "it still runs after the next suspend"),
    sources=("NVIDIA driver README, power management", "Linux, documentation: suspend and resume of devices"),
)


def find(facts: Facts) -> Iterator[Answer]:
    failed = list(facts.said("driver.sleep_failed"))
    told = list(facts.said("driver.sleep_told"))
    fails = list(facts.said("cuda.unknown"))
    if failed:
        yield ASLEEP.finding("The driver could not follow when the machine went to sleep or woke up.", LIKELY, failed)
    elif told and fails:
        yield ASLEEP.finding("CUDA fails since the machine slept.", LIKELY, [*told, *fails])


RULE = Rule((ASLEEP,), find)
