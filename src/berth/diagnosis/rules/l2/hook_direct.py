"""L2. Docker's --gpus calls the legacy hook while the toolkit is in CDI or CSV mode."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node
from berth.diagnosis.words import ESTABLISHED, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import ToolkitConfig

HOOK_DIRECT = Code(
    name="HookCalledInCdiMode",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the legacy hook is called although the toolkit is not in legacy mode",
    meaning="Containers that ask for GPUs in the old way (docker --gpus, a hook of CRI-O) do not start.",
    known_by="The hook says that it may not be invoked directly.",
    disproved_by="mode is auto or legacy in the toolkit's config.toml that is in effect.",
    counter_check="on NODE: grep mode /etc/nvidia-container-runtime/config.toml : auto or legacy",
    fix=Fix(
        steps=(
            "start with the runtime in the place of the hook: --runtime=nvidia, or runtimeClassName nvidia",
            'or set mode = "auto" under [nvidia-container-runtime] (nvidia-ctk config --in-place --set '
            "nvidia-container-runtime.mode=auto)",
            "CRI-O: remove oci-nvidia-hook.json from hooks.d",
        ),
        risk="a change of mode concerns every container that is started afterwards",
        rollback="set the mode back",
    ),
    verify=("the container starts and nvidia-smi -L in it lists the GPUs",),
    sources=("NVIDIA/nvidia-container-toolkit, cmd/nvidia-container-runtime-hook",),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.hook_direct")).items():
        modes = [one for one in facts.of(ToolkitConfig) if one.mode in ("cdi", "csv", "jit-cdi") and one.node == node]
        mode = modes[0].mode if modes else "cdi or csv"
        yield HOOK_DIRECT.finding(
            f"The hook was called directly; the toolkit's mode is {mode}.", ESTABLISHED, [*said, *modes], node=node
        )


RULE = Rule((HOOK_DIRECT,), find)
