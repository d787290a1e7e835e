"""L2. CRI-O does not look where the toolkit puts its hook."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.not_default import SIGNS
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import RuntimeConfig

HOOKS_DIRECTORY = "/run/containers/oci/hooks.d"

HOOK_NOT_SEARCHED = Code(
    name="CrioHookNotSearched",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="CRI-O does not read the directory of the NVIDIA hook",
    meaning="The toolkit has installed its hook and CRI-O never runs it: GPU pods start without driver and devices.",
    known_by=f"hooks_dir of CRI-O lacks {HOOKS_DIRECTORY} and pods miss the driver's files.",
    disproved_by="CRI-O has an nvidia runtime handler, or CDI injects the devices.",
    counter_check=f"on NODE: crio config | grep -A3 hooks_dir ; ls {HOOKS_DIRECTORY} : in the list, "
    "oci-nvidia-hook.json",
    fix=Fix(
        steps=(
            f'a drop-in in /etc/crio/crio.conf.d: [crio.runtime] hooks_dir = ["{HOOKS_DIRECTORY}", '
            '"/usr/share/containers/oci/hooks.d"]',
            "or cdi.enabled=true in the ClusterPolicy, which needs no hook",
            "systemctl restart crio on NODE; delete the validator's pod",
        ),
        risk="container starts pause for seconds",
        rollback="remove the drop-in",
    ),
    verify=("nvidia-smi in a GPU pod answers",),
    sources=("GPU Operator documentation, CRI-O", "cri-o, docs/crio.conf.5.md: hooks_dir"),
)


CONFIG_REFUSED = Code(
    name="CrioConfigRefused",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Critical,
    effect=Effect.RuntimeAbsent,
    title="CRI-O does not accept the configuration of a runtime",
    meaning="A handler that is not whole is left out, or CRI-O does not start at all: no pod of the node starts then. "
    "A drop-in that is written by the toolkit gives no path of conmon, which newer packages keep outside of PATH.",
    known_by="CRI-O names what it misses when it validates its configuration.",
    disproved_by="`crio config` prints the configuration without an error, and crio is active.",
    counter_check="on NODE: crio config > /dev/null ; ls /etc/crio/crio.conf.d ; find / -name conmon -type f : no "
    "error, a path",
    fix=Fix(
        steps=(
            'monitor_path = "/usr/libexec/crio/conmon" (the path that the other handlers have) under '
            "[crio.runtime.runtimes.nvidia], or conmon in PATH",
            "runtime_path has to exist: the toolkit first, then the drop-in; otherwise take the drop-in out",
            "CRI-O injects by CDI without any handler: cdi.enabled=true, and no drop-in",
            "systemctl restart crio on NODE",
        ),
        risk="container starts pause for seconds",
        rollback="the former drop-in",
    ),
    verify=("systemctl is-active crio : active", "crictl info | grep nvidia : the handler"),
    sources=("cri-o, pkg/config/config.go: validation of runtimes", "cri-o, docs/crio.conf.5.md: monitor_path"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.crio_refuses")).items():
        handler = first(said, "handler", "handler2", "handler3")
        why = first(said, "why", *(f"why{number}" for number in range(2, 8))).strip()
        yield CONFIG_REFUSED.finding(
            f"{'Handler ' + handler if handler else 'Its configuration'}: {why or 'it is named and not configured'}.",
            LIKELY,
            said,
            node=node,
        )
    signs = list(facts.said(*SIGNS))
    for node, said in by_node(facts.said("runtime.hooks_not_searched")).items():
        yield HOOK_NOT_SEARCHED.finding(
            "CRI-O is said not to look where the toolkit puts its hook.", POSSIBLE, [*said, *signs], node=node
        )
    for config in facts.of(RuntimeConfig):
        searched = config.hooks_dirs
        if config.engine != "cri-o" or not searched or not signs or config.nvidia_handlers:
            continue
        if not any(one.rstrip("/").endswith(HOOKS_DIRECTORY) for one in searched):
            yield HOOK_NOT_SEARCHED.finding(
                f"hooks_dir is {', '.join(searched)}; the toolkit writes to {HOOKS_DIRECTORY}.",
                LIKELY,
                [config, *signs],
                node=config.node,
            )


RULE = Rule((HOOK_NOT_SEARCHED, CONFIG_REFUSED), find)
