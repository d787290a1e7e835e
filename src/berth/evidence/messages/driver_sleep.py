"""Sleep and waking of the machine, as kernel, driver, systemd and people tell of it."""

from berth.evidence.message import Message

_SLEEP = r"(?:suspend\w*|resum\w+|hibernat\w*|sleep(?:ing)?|standby|s2idle|wak(?:e|ing)[- ]?up|waking)"
_OF_MACHINE = r"(?:machine|laptop|notebook|computer|desktop|PC|system|host|workstation)"

MESSAGES: tuple[Message, ...] = (
    # What the kernel and the module say where the driver does not survive it.
    Message(
        "driver.sleep_failed",
        (
            "nv_pmops_", "preservevideomemoryallocations", "procfs suspend interface", "nvidia-suspend.service",
            "nvidia-resume.service", "nvidia-hibernate.service", "failed to start nvidia-",
            "system power management attempted", "system suspend failed with", "/proc/driver/nvidia/suspend",
        ),
        r"\bnv_pmops_(?:suspend|resume|freeze|thaw|poweroff|restore)\S* (?:\[nvidia\] )?returns -?\d+"
        r"|System Power Management attempted without driver procfs suspend interface"
        r"|PreserveVideoMemoryAllocations module parameter is set\. System Power Management"
        r"|nvidia-(?:suspend|resume|hibernate)\.service: (?:Failed|Main process exited, code=(?:exited|killed), "
        r"status=[1-9])"
        r"|Failed to start nvidia-(?:suspend|resume|hibernate)|write error[^\n]{0,40}/proc/driver/nvidia/suspend"
        r"|/proc/driver/nvidia/suspend[^\n]{0,40}(?:Input/output|write) error|NVRM[^\n]*System suspend failed with",
    ),
    Message(
        "driver.sleep_told",
        (
            "suspend", "resuming", "resume ", "resumed", "hibernat", "from sleep", "after sleep", "to sleep",
            "out of sleep", "on sleep", "woke up", "sleeping", "waking", "since sleep", "upon sleep", "following sleep",
            "whenever sleep", "time sleep", "standby", "s2idle", "wake up", "wakeup",
        ),
        # Jobs and workloads are suspended and resumed, too.
        rf"^(?!.*\b(?:jobs?|workloads?|pods?|queues?|training|scheduling|autoscal\w*|CronJob|Kueue)\b).*?"
        rf"(?:\b(?:after|since|on|upon|following|whenever|each time|every time)\b[^\n]{{0,30}}\b{_SLEEP}\b"
        rf"|\b{_OF_MACHINE}\b[^\n]{{0,40}}\b(?:suspends|suspended|resumes|resumed|hibernated|went to sleep|woke up|"
        r"(?:comes|came) (?:back )?(?:out of|from) (?:sleep|standby|suspend))\b)"
        r"|\bPM: (?:suspend (?:entry|exit)|hibernation: )|\bsystemd-(?:suspend|hibernate)\.service\b",
    ),
)  # fmt: skip
