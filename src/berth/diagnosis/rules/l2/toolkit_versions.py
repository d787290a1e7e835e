"""L2. A container toolkit, or containerd itself, older than the version of containerd's configuration."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.config_version import CONFIG_REFUSED
from berth.diagnosis.versions import runtimes, toolkit
from berth.diagnosis.versions.number import number, tag
from berth.diagnosis.versions.seen import images, origins, seen
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import RuntimeConfig

TOO_OLD = Code(
    name="ToolkitOlderThanContainerd",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Warning,
    effect=Effect.RuntimeAbsent,
    title="the container toolkit does not know this version of containerd's configuration",
    meaning="containerd 2 writes version 3 and newer. A toolkit that knows 1 and 2 ends at its start with an "
    "unsupported config version, and the operator's other pods wait for it.",
    known_by="The tag of the container-toolkit image, and `version` of the node's containerd configuration.",
    disproved_by="The toolkit's pod is Running, and `containerd config dump` has the nvidia handler.",
    counter_check="kubectl get pods -n NAMESPACE -o wide | grep toolkit: Running on NODE; on NODE: containerd config "
    "dump | grep nvidia: the handler",
    fix=Fix(
        steps=(
            "container-toolkit v1.17.4 or newer: GPU Operator 25.3 or newer, and take an own toolkit.version out of "
            "the values",
            "until then: a file of version 2, which containerd 2 reads as well",
        ),
        risk="the toolkit restarts containerd when it writes: container starts pause for seconds",
        rollback="the former version in the values",
    ),
    verify=("kubectl get pods -n NAMESPACE -l app=nvidia-container-toolkit-daemonset: Running",),
    sources=("nvidia-container-toolkit, CHANGELOG 1.17.4", "containerd, RELEASES.md, daemon configuration"),
)


def find(facts: Facts) -> Iterator[Answer]:
    configs = [
        one for one in facts.of(RuntimeConfig) if one.engine == "containerd" and one.version and not one.is_template
    ]
    yield from _newer_than_containerd(facts, configs)
    # What the toolkit has written itself, it knows.
    configs = [one for one in configs if "nvidia" not in one.path]
    told = set[str]()
    for image in images(facts, lambda name: "container-toolkit:" in name) if configs else ():
        version = tag(image.image)
        if image.does_run or len(number(version)) != 3 or not version.startswith("v"):
            continue
        for config in configs:
            same = version not in told and not (image.node and config.node and image.node != config.node)
            if same and not toolkit.reads(version, config.version, is_in_effect=config.is_in_effect):
                told.add(version)
                yield TOO_OLD.finding(
                    f"The toolkit is {version.partition('-')[0]} and containerd's configuration of version "
                    f"{config.version}, which it reads from v{toolkit.OLDEST_FOR_CONFIG_3} on.",
                    LIKELY,
                    origins(image, config),
                    node=image.node or config.node,
                    pod=image.pod,
                )
                break


def _newer_than_containerd(facts: Facts, configs: list[RuntimeConfig]) -> Iterator[Answer]:
    """A machine may have a second containerd whose file this is: Docker's beside that of a distribution."""
    if any(facts.said("runtime.config_refused")):
        return
    for config in configs:
        there = seen(facts).kubelets
        node = there.get(config.node) or (next(iter(there.values())) if len(there) == 1 and not config.node else None)
        runtime = node.runtime.partition("://") if node else ("", "", "")
        if node and runtime[0] == "containerd" and not runtimes.reads(runtime[2], config.version):
            yield CONFIG_REFUSED.finding(
                f"{config.path or 'The file'} is of version {config.version}, and the node's containerd is "
                f"{runtime[2]}, which does not read it.",
                POSSIBLE,
                origins(config, node),
                node=node.name,
                severity=Severity.Warning,
            )


RULE = Rule((TOO_OLD,), find)
