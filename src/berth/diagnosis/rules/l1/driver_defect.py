"""L1. The driver itself is at fault: it crashes in the kernel, or a release does what the one before did not."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

_FIX = Fix(
    steps=(
        "keep the kernel's log and nvidia-bug-report.sh; look the function up in the release notes and issues",
        "go to the newest release of the branch, or back to the one that worked",
        "try the other kind of module where the GPU allows both (open, proprietary)",
    ),
    risk="another driver needs the GPU pods of the node to leave",
    rollback="the former driver version",
)
CRASH = Code(
    name="DriverCrashed",
    layer=Layer.L1,
    cause_class="driver-bug",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the driver crashed in the kernel",
    meaning="The node may hang or restart; processes on the GPU cannot be ended, and only a reboot brings it back.",
    known_by="The kernel reports an oops, a protection fault or corruption with a function of an nvidia module.",
    disproved_by="The trace has no function of an nvidia module, only its name among the modules that are linked in.",
    counter_check="on NODE: journalctl -k -b -1 | grep -A25 -E 'Oops|BUG:|general protection': no function of the "
    "trace with [nvidia…] behind it",
    fix=_FIX,
    verify=("no new oops within the time in which it used to come", "dcgmi diag -r 2: pass"),
    sources=("open-gpu-kernel-modules, issues with the label bug", "kernel, Documentation/admin-guide/bug-hunting"),
)
REGRESSION = Code(
    name="DriverRegression",
    layer=Layer.L1,
    cause_class="driver-bug",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="a driver release does not do what another one did",
    meaning="The same machine works with another release: the driver is at fault, not the machine.",
    known_by="Somebody reports that it fails from a release on, that going back helped, or that a card that does not "
    "start does so with another release.",
    disproved_by="It fails with the release that is said to work, too.",
    counter_check="the release that worked, on one node, the same test: it fails there, too",
    fix=_FIX,
    verify=("nvidia-smi -L: every GPU", "the test that failed passes"),
    sources=("driver release notes, known issues", "open-gpu-kernel-modules, issues"),
)
BAR_FATAL = Code(
    name="BarResizeFatal",
    layer=Layer.L1,
    cause_class="driver-bug",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the driver gives a GPU up when its memory window cannot be resized",
    meaning="With resizable BARs switched on the driver asks the kernel for a larger window while it probes; where "
    "that fails and the old one is not restored, the GPU is left out.",
    known_by="The module says in the kernel's log that resizing the PCIe BARs was a fatal error.",
    disproved_by="The GPU is given up with NVreg_EnableResizableBar=0, too.",
    counter_check="on NODE: grep EnableResizableBar /proc/driver/nvidia/params: 0, and the GPU is given up all the "
    "same; dmesg | grep -i -e 'resize' -e 'BAR ': nothing",
    fix=Fix(
        steps=(
            "load nvidia with NVreg_EnableResizableBar=0 (/etc/modprobe.d), rebuild the initramfs, reboot",
            "firmware: Above 4G Decoding and Resizable BAR on; a bridge's window must be large enough (pci=realloc)",
            "a newer driver release, in which a failure is no end",
        ),
        risk="a reboot ends everything on the node",
        rollback="remove the option",
    ),
    verify=("nvidia-smi -L: every GPU",),
    sources=("open-gpu-kernel-modules, kernel-open/nvidia/nv-pci.c: nv_resize_pcie_bars",),
)


_BAD = ("bad", "bad2", "bad3", "bad4", "bad5", "bad6", "bad7", "bad8", "bad9")


def find(facts: Facts) -> Iterator[Answer]:
    crashed = list(facts.said("driver.oops"))
    if crashed and not any(facts.said("driver.nouveau")):
        where = next((said.get("where") or said.get("where2") or said.get("where3") for said in crashed), "")
        where = where or next((said.get("where5") for said in crashed if said.get("where5")), "")
        warned = next((said.get("where4") for said in crashed if said.get("where4")), "")
        module = next(
            (
                said.get(name)
                for said in crashed
                for name in ("module", "module2", "module3", "module6", "module7")
                if said.get(name)
            ),
            "nvidia",
        )
        yield CRASH.finding(
            f"The kernel warns of {warned} of {module}: what it guards is in disorder from then on."
            if warned and not where
            else f"The kernel crashed in {where or 'a function'} of {module}.",
            POSSIBLE if warned and not where else LIKELY,
            crashed,
        )
    elif spins := list(facts.said("driver.thread_spins")):
        yield CRASH.finding(
            f"{spins[0].get('thread')}, a thread of the driver in the kernel, never rests.", POSSIBLE, spins
        )
    told = [*facts.said("driver.regression_told"), *facts.said("driver.kind_told")]
    works = list(facts.said("driver.release_works"))
    if lacking := list(facts.said("driver.engine_missing")):
        yield REGRESSION.finding(
            f"This release does not know that the chip has no {lacking[0].get('engine')}, and does not start it.",
            LIKELY,
            [*lacking, *facts.said("kernel.adapter_init", "kernel.gsp_boot")],
        )
    starts_not = list(facts.said("kernel.adapter_init", "kernel.wpr2", "kernel.gsp_boot"))
    if starts_not and works and not told:
        yield REGRESSION.finding(
            f"The card does not start with this version, and it works with {value(works[0], 'good')}.",
            LIKELY,
            [*starts_not, *works, *facts.said("kernel.driver_version")],
        )
    if told:
        bad = next((said.get(name) for said in told for name in _BAD if said.get(name)), "")
        good = next(
            (
                said.get(name)
                for said in told
                for name in ("good", "good2", "good3", "good4", "good5", "good6")
                if said.get(name)
            ),
            "",
        )
        good = good or next((version for said in works if (version := value(said, "good"))), "")
        bad = "" if bad == good else bad
        yield REGRESSION.finding(
            f"It fails with {bad or 'this version'}" + (f" and works with {good}." if good else "."),
            ESTABLISHED if any(said.get("bad6") for said in told) else LIKELY if good and bad else POSSIBLE,
            [*told, *works, *facts.said("kernel.driver_version")],
        )
    if resized := list(facts.said("driver.bar_resize_fatal")):
        yield BAR_FATAL.finding("The driver's attempt to resize the window of a GPU failed.", LIKELY, resized)


RULE = Rule((CRASH, REGRESSION, BAR_FATAL), find)
