"""L1. The driver itself is at fault: it crashes in the kernel, or a release does what the one before did not."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
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
    counter_check="on NODE: journalctl -k -b -1 | grep -A25 -E 'Oops|BUG:|general protection': [nvidia…] in the trace",
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
    known_by="Somebody reports that it fails from a release on, or that going back helped.",
    disproved_by="It fails with the release that is said to work, too.",
    counter_check="the release that worked, on one node, the same test",
    fix=_FIX,
    verify=("nvidia-smi -L: every GPU", "the test that failed passes"),
    sources=("driver release notes, known issues", "open-gpu-kernel-modules, issues"),
)


_BAD = ("bad", "bad2", "bad3", "bad4", "bad5", "bad6", "bad7", "bad8")


def find(facts: Facts) -> Iterator[Answer]:
    crashed = list(facts.said("driver.oops"))
    if crashed and not any(facts.said("driver.nouveau")):
        where = next((said.get("where") or said.get("where2") or said.get("where3") for said in crashed), "")
        warned = next((said.get("where4") for said in crashed if said.get("where4")), "")
        module = next(
            (
                said.get(name)
                for said in crashed
                for name in ("module", "module2", "module3", "module6")
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
    told = [*facts.said("driver.regression_told"), *facts.said("driver.kind_told")]
    if told:
        bad = next((said.get(name) for said in told for name in _BAD if said.get(name)), "")
        good = next(
            (
                said.get(name)
                for said in told
                for name in ("good", "good2", "good3", "good4", "good5")
                if said.get(name)
            ),
            "",
        )
        yield REGRESSION.finding(
            f"It fails with {bad or 'this release'}" + (f" and works with {good}." if good else "."),
            ESTABLISHED if any(said.get("bad6") for said in told) else LIKELY if good and bad else POSSIBLE,
            [*told, *facts.said("kernel.driver_version")],
        )


RULE = Rule((CRASH, REGRESSION), find)
