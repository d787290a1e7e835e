"""L2. A hook of the toolkit fails when a container is created."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, CauseClass, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

TOO_OLD = Code(
    name="ToolkitOlderThanItsCaller",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a program of the toolkit is older than the CDI specification or plugin that calls it",
    meaning="A specification written by a newer plugin, DRA driver or nvidia-ctk names a hook that the program on the "
    "host does not know: GPU containers do not start.",
    known_by="The hook's program answers that it has no such command.",
    disproved_by="nvidia-cdi-hook --help on the node lists the command.",
    counter_check="on NODE: nvidia-cdi-hook --help : lists the command; grep path: /var/run/cdi/*.yaml : names that "
    "very program",
    fix=Fix(
        steps=(
            "bring nvidia-container-toolkit on the host up to the version that the plugin or DRA driver was built with",
            "or let the specification name the program that its writer brings (nvidiaCDIHookPath, "
            "NVIDIA_CDI_HOOK_PATH)",
            "write the specification again: delete the plugin's pod, or nvidia-ctk cdi generate",
        ),
        risk="none for what runs",
        rollback="the former package",
    ),
    verify=("a GPU pod starts",),
    sources=(
        "NVIDIA/nvidia-container-toolkit, cmd/nvidia-cdi-hook",
        "kubernetes-sigs/dra-driver-nvidia-gpu, prerequisites",
    ),
)

FAILS = Code(
    name="ToolkitHookFails",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a hook of the NVIDIA toolkit fails when a container is created",
    meaning="The container is not started. Some runtimes (crun) report only the exit code and keep the reason to "
    "themselves.",
    known_by="The runtime names the hook and its exit code.",
    disproved_by="The same container starts after the reason in the hook's log is mended.",
    counter_check="on NODE: set debug = \"/var/log/nvidia-container-toolkit.log\" in config.toml, try again : no "
    "error in it",
    fix=Fix(
        steps=(
            "get the reason: debug under [nvidia-container-cli] and [nvidia-container-runtime] of config.toml, or the "
            "same container with runc",
            "hook of CDI: nvidia-ctk cdi generate again after an update of the toolkit or driver",
            "pivot_root, invalid argument: the system runs from memory; no-pivot = true, or a root on a disk",
            "legacy hook under CRI-O: cdi.enabled=true in the ClusterPolicy, where CRI-O injects the devices itself",
        ),
        risk="none for what runs",
        rollback="take the debug lines out",
    ),
    verify=("a GPU pod starts",),
    sources=("containers/crun, hooks", "NVIDIA/nvidia-container-toolkit, hooks"),
)

# The hook's own reason, where it is printed, is told by the rule of that reason.
_REASONS = (
    "runtime.cli_",
    "runtime.hook_direct",
    "cgroup.filter_rejected",
    "cgroup.allow_denied",
    "runtime.hook_too_old",
)

_UNNAMED = ("runtime.cli_other", "runtime.nvidia_runtime_error", "runtime.not_created")
# Whoever of these says something in the same text has the reason.
_NAMED = (
    "runtime.", "cgroup.", "cdi.", "toolkit.", "nvml.", "driver.", "selinux.", "security.", "apparmor.", "cuda.",
    "kernel.",
)  # fmt: skip


_PROCESS = re.compile(r"/proc/\d+\S*: no such file or directory", re.IGNORECASE)

# What the words of the C library, or of another part, tell of a step that failed.
_BY_WORDS: tuple[tuple[str, CauseClass], ...] = (
    ("CDI", "cdi"),
    ("cgroup", "cgroup"),
    ("annot allocate memory", "host-limits"),
    ("oo many open files", "host-limits"),
    ("ead-only file system", "path-mount"),
    ("ermission denied", "permission"),
    ("peration not permitted", "permission"),
)


def _class_of(words: str) -> CauseClass | None:
    return next((cause_class for sign, cause_class in _BY_WORDS if sign in words), None)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.hook_too_old")).items():
        command = first(said, "command", "command2", "command3") or "an option"
        yield TOO_OLD.finding(f"The program does not know {command!r}.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.told_hook_unknown")).items():
        yield TOO_OLD.finding("A hook is said to be unknown to the program.", POSSIBLE, said, node=node)
    yield from _of_hooks(facts)
    yield from _unnamed(facts)
    if _is_explained(facts):
        return
    yield from _of_lxc(facts)
    hides = list(facts.said("host.proc_hides"))
    for node, said in by_node(facts.said("runtime.hook_fails")).items():
        hook, why = first(said, "hook"), first(said, "why")
        text = " ".join(one.origin.text for one in said)
        if hides and _PROCESS.search(text):
            yield from _hidden([*said, *hides], node)
            continue
        by_cdi = "cdi" in hook or any("createContainer" in one.origin.text for one in said)
        yield FAILS.finding(
            f"{hook or 'A hook'} ends with code {first(said, 'code', 'code2')}{': ' + why if why else ''}.",
            POSSIBLE,
            said,
            node=node,
            # Of the toolkit's own making: its hook changes its root, which a root in memory does not allow.
            cause_class="runtime-install" if "pivot_root" in why else "cdi" if by_cdi else _class_of(text),
        )


def _hidden(said: list[Said], node: str) -> Iterator[Answer]:
    cause = "The hook does not find the container's process: /proc is mounted with hidepid."
    yield FAILS.finding(cause, LIKELY, said, node=node, cause_class="path-mount")


_HOOK_REASONS = ("why", *(f"why{number}" for number in range(2, 10)))


def _of_hooks(facts: Facts) -> Iterator[Answer]:
    """What the toolkit's hooks say themselves."""
    blocked = any(facts.said("runtime.cli_target_blocked", "toolkit.read_only"))
    for node, said in by_node(facts.said("runtime.cdi_hook_says")).items():
        pivots = any("pivot_root" in one.origin.text for one in said)
        why = first(said, *_HOOK_REASONS).strip() or said[0].origin.text[:160]
        yield FAILS.finding(
            f"A hook of CDI: {why}.",
            POSSIBLE if blocked else LIKELY,
            said,
            node=node,
            # Of the toolkit's own making: its hook changes its root, which a root in memory does not allow.
            cause_class="runtime-install" if pivots else "cdi",
        )
    for node, said in by_node(facts.said("runtime.hook_refuses")).items():
        what = first(said, "asked", "asked2", "why", "why2", "why3", "why4", "cdi", "csv", "csv2").strip()
        yield FAILS.finding(
            f"The toolkit: {what}.",
            POSSIBLE,
            said,
            node=node,
            cause_class="cdi" if first(said, "cdi") else None,
        )
    for node, said in by_node(facts.said("runtime.enroot_hook")).items():
        cause = f"enroot's hook that hands the driver over ended with code {first(said, 'code')}."
        yield FAILS.finding(cause, POSSIBLE, said, node=node)


def _of_lxc(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.lxc_hook")).items():
        yield FAILS.finding(
            "The hook of LXC that hands the driver over ended with an error.", POSSIBLE, said, node=node
        )


def _unnamed(facts: Facts) -> Iterator[Answer]:
    """What the toolkit reports and no other rule has a name for: its own words are the answer."""
    named = {one.origin.source for one in facts.said(*_NAMED) if one.message not in _UNNAMED}
    for node, said in by_node(facts.said(*_UNNAMED)).items():
        open_ones = [one for one in said if one.origin.source not in named]
        if not open_ones:
            continue
        why = first(open_ones, "why", "why2", "why3").strip()
        kind = first(open_ones, "kind")
        hides = list(facts.said("host.proc_hides"))
        if hides and _PROCESS.search(why):
            yield from _hidden([*open_ones, *hides], node)
            continue
        yield FAILS.finding(
            f"{kind + ' error: ' if kind else ''}{why}",
            POSSIBLE if kind or "NVIDIA" in open_ones[0].origin.text else WEAK,
            open_ones,
            node=node,
            cause_class=_class_of(why),
        )


def _is_explained(facts: Facts) -> bool:
    told: list[Said] = [
        one
        for one in facts.said("runtime.")
        if one.message.startswith(("runtime.cli_", "runtime.hook_direct")) and one.message not in _UNNAMED
    ]
    return bool(told) or any(True for _ in facts.said(*(name for name in _REASONS if not name.endswith("_"))))


RULE = Rule((TOO_OLD, FAILS), find)
