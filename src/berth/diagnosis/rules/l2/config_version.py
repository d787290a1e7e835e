"""L2. containerd reads another version of its configuration than the one that was written."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import TABLE_OF_VERSION, V1_TABLE, RuntimeConfig

KEYS_IGNORED = Code(
    name="ContainerdKeysIgnored",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="containerd ignores runtime settings written for another version of its configuration",
    meaning="What the file says of the NVIDIA runtime has no effect, and nothing reports it: pods fail for the missing "
    "handler or run without a GPU.",
    known_by="The file states one version and has the CRI plugin's table of another; or containerd warns of unknown "
    "keys under containerd.runtimes.",
    disproved_by="`containerd config dump` shows the handler.",
    counter_check="on NODE: containerd config dump | grep nvidia : the handler is in effect",
    fix=Fix(
        steps=(
            "containerd config dump > containerd-in-effect.toml : see version and what is in effect",
            'use the table of that version: 1 plugins.cri, 2 plugins."io.containerd.grpc.v1.cri", '
            '3 and 4 plugins."io.containerd.cri.v1.runtime"; or `containerd config migrate`',
            "systemctl restart containerd on NODE",
        ),
        risk="a restart of containerd interrupts container starts for seconds",
        rollback="restore the saved file and restart containerd",
    ),
    verify=("on NODE: containerd config dump | grep -A4 runtimes.nvidia : handler with its BinaryName",),
    sources=("containerd, docs/PLUGINS.md and docs/cri/config.md: versions of the configuration",),
)

CONFIG_REFUSED = Code(
    name="ContainerdConfigRefused",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Critical,
    effect=Effect.ContainersDoNotStart,
    title="containerd does not start with its configuration",
    meaning="No container of the node can be started or stopped, and the node becomes NotReady.",
    known_by="containerd reports that it cannot load its TOML, or that its version is newer than it understands or a "
    "drop-in's newer than the root file's.",
    disproved_by="`systemctl status containerd` is active with this file.",
    counter_check="on NODE: containerd --config PATH config dump > /dev/null; echo $? : 0",
    fix=Fix(
        steps=(
            "journalctl -u containerd -n 50 on NODE: it names the file and the line",
            "restore the last file that worked, or write `version` and tables for this containerd",
            "drop-in newer than the root file: remove it, restart; then let the toolkit write again with the file as "
            "its source (RUNTIME_CONFIG_SOURCE=file), or bring the root file up first: containerd config migrate",
            "systemctl restart containerd",
        ),
        risk="containers go on running while containerd is down; nothing new starts",
        rollback="restore the saved file and restart containerd",
    ),
    verify=("systemctl is-active containerd : active", "kubectl get node NODE : Ready"),
    sources=("containerd, cmd/containerd/server/config", "NVIDIA/aicr and azimuth reports of version 4 drop-ins"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for config in facts.of(RuntimeConfig):
        if config.problem and config.engine != "docker":
            cause = f"{config.path or 'The file'} is no TOML: {config.problem}."
            yield CONFIG_REFUSED.finding(cause, ESTABLISHED, [config], node=config.node)
        if config.engine != "containerd" or not config.version:
            continue
        right = TABLE_OF_VERSION.get(config.version, "")
        wrong = [table for table in config.tables if table != right]
        if right and wrong and right not in config.tables:
            sure = ESTABLISHED if wrong[0] == V1_TABLE or config.version >= 3 else LIKELY
            yield KEYS_IGNORED.finding(
                f"The file is of version {config.version} and configures the table of another version, "
                f"plugins.{wrong[0]!r}; version {config.version} reads plugins.{right!r}.",
                sure,
                [config],
                node=config.node,
            )
    yield from _drop_ins(facts)
    for one in facts.said("runtime.table_of_version"):
        number, table = int(one.get("version") or one.get("version2")), one.get("table") or one.get("table2")
        reads = TABLE_OF_VERSION[number]
        if reads not in table:
            cause = f"A file of version {number} reads plugins.{reads!r} and not {table}."
            yield KEYS_IGNORED.finding(cause, LIKELY, [one])
    warned = [one for one in facts.said("runtime.key_ignored") if "runtimes" in one.get("key") or not one.get("key")]
    for node, said in by_node(warned).items():
        key = first(said, "key") or "a key"
        yield KEYS_IGNORED.finding(
            f"containerd does not know {key} in this place.",
            LIKELY if first(said, "key") else POSSIBLE,
            said,
            node=node,
        )
    for node, said in by_node(facts.said("runtime.told_config_version")).items():
        yield CONFIG_REFUSED.finding("A file of another version than containerd reads.", POSSIBLE, said, node=node)
    for node, said in by_node(facts.said("runtime.config_refused")).items():
        version, drop = first(said, "version"), first(said, "drop")
        why = (
            f"it is of version {version}, newer than this containerd reads"
            if version
            else first(said, "why", "why2", "why3")
        )
        if drop:
            why = f"a drop-in is of version {drop} and the root file of {first(said, 'root')}, which has to be as new"
        yield CONFIG_REFUSED.finding(
            f"containerd cannot load its configuration{': ' + why if why else ''}.", ESTABLISHED, said, node=node
        )


def _drop_ins(facts: Facts) -> Iterator[Answer]:
    """A file that the root file imports and that is of a newer version: containerd 2 does not start with the two."""
    configs = [one for one in facts.of(RuntimeConfig) if one.engine == "containerd" and one.version]
    for root in configs:
        if not root.imports or root.is_in_effect or root.is_template:
            continue
        for part in configs:
            is_imported = part.path and any(fnmatch(part.path, one) for one in root.imports)
            if is_imported and part.node == root.node and part.version > root.version:
                yield CONFIG_REFUSED.finding(
                    f"{part.path} is of version {part.version} and {root.path or 'the root file'}, which imports it, "
                    f"of {root.version}: containerd 2 does not start with the two.",
                    LIKELY,
                    [root, part],
                    node=root.node,
                )


RULE = Rule((KEYS_IGNORED, CONFIG_REFUSED), find)
