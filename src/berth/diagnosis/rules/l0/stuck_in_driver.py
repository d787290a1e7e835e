"""L0. Processes hang inside the driver and cannot be killed: a device or its firmware below does not answer."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l0 import kernel_log
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.diagnosis.xid.seen import Family
from berth.diagnosis.xid.story import story_of
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

STUCK = Code(
    name="StuckInDriver",
    layer=Layer.L0,
    cause_class="hw-fault",
    severity=Severity.Critical,
    effect=Effect.DeviceGone,
    title="processes hang in the GPU driver",
    meaning="They wait inside the kernel (state D) for a GPU that does not answer, and no signal ends them. Whatever "
    "asks the driver next hangs as well: nvidia-smi, the device plugin, the start of containers.",
    known_by="The kernel reports a task blocked, or a CPU locked up, in a module of NVIDIA; or nvidia-smi and the "
    "container tools are seen in state D.",
    disproved_by="They end by themselves after some seconds, or wait for a file system instead (NFS, disks).",
    counter_check="cat /proc/PID/stack of a hanging process: frames of a file system (nfs, ext4), none of nvidia; "
    "dmesg | grep Xid: nothing",
    fix=Fix(
        steps=(
            "kubectl cordon NODE; keep dmesg and /proc/*/stack (nvidia-bug-report.sh --safe-mode, it may hang, too)",
            "dmesg -T | grep -e Xid -e NVRM -e AER: which GPU it began with",
            "restart the machine (a power cycle where it hangs while going down): neither kill nor reset helps",
            "again: newer driver; again on the same GPU: replace it",
        ),
        risk="ends everything on the node; drain what can still be drained",
        rollback="kubectl uncordon NODE",
    ),
    verify=("timeout 20 nvidia-smi: answers", "ps axo stat,comm | grep ^D: nothing of NVIDIA"),
    sources=("Linux, kernel/hung_task.c and watchdog.c", "reports of hanging nvidia-smi"),
)

_OURS = ("nvidia", "nvc:", "dcgm", "nv-hostengine", "cuda", "irq/")
_EXPLAIN = (Family.Lost, Family.Firmware, Family.Engine, Family.Memory, Family.NvLink)


def find(facts: Facts) -> Iterator[Answer]:
    """One finding, where nothing deeper says why they hang."""
    kernel = [said for said in facts.said("kernel.hung_in_driver", "kernel.lockup_in_driver") if _is_ours(said)]
    seen = list(facts.said("host.stuck_in_driver", "host.stuck_process"))
    hangs = list(facts.said("host.smi_hangs"))
    if not (kernel or seen or hangs) or story_of(facts).roots(*_EXPLAIN):
        return
    if any(True for _ in facts.said("kernel.gsp_silent", "kernel.off_bus", "nvidia_smi.gpu_lost")):
        return
    if any(one.message == "kernel.lockup_in_driver" for one in kernel) and any(facts.said("driver.oops")):
        return  # a processor that spins in a function of the driver: that is its own defect, told there
    if not (kernel or seen) and any(True for _ in facts.said("driver.regression_told")):
        return  # people say that it goes with a version of the driver
    who = dict.fromkeys(
        name for one in (*kernel, *seen) for key in ("process", "process2", "process3") if (name := one.get(key))
    )
    # What hangs is the start of containers: that is where it has to be looked at first.
    is_start = not kernel and any("container" in one.origin.text.lower() for one in seen)
    # A task that waits does so for a device; a processor that spins in the driver does so by itself.
    spins = bool(kernel) and not seen and all(one.message == "kernel.lockup_in_driver" for one in kernel)
    yield STUCK.finding(
        f"{', '.join(who) or 'nvidia-smi'} hang{'' if len(who) > 1 else 's'} inside the driver"
        + ("." if kernel else "; the kernel log has to say which GPU."),
        LIKELY if kernel or seen else POSSIBLE,
        [*kernel, *seen, *hangs],
        layer=Layer.L2 if is_start else Layer.L1 if spins else None,
        cause_class="driver-bug" if spins else None,
        effect=Effect.ContainersDoNotStart if is_start else None,
    )
    yield from kernel_log.wanted(facts, STUCK)


def _is_ours(said: Said) -> bool:
    return bool(said.get("module")) or any(said.get("process").lower().startswith(name) for name in _OURS)


RULE = Rule((STUCK,), find)
