"""L2. The runtime was configured where nobody reads it, or where it is written anew at each start."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatch

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.not_default import SIGNS
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen
from berth.evidence.formats.container_facts import RuntimeConfig

# Distributions with a containerd of their own: the file that is rendered, and what is kept.
OWN_FILES = {
    "k3s": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl (config-v3.toml.tmpl for containerd 2)",
    "rke2": "/var/lib/rancher/rke2/agent/etc/containerd/config.toml.tmpl (config-v3.toml.tmpl for containerd 2)",
    "k0s": "/etc/k0s/containerd.d/*.toml",
    "microk8s": "/var/snap/microk8s/current/args/containerd-template.toml",
}
_SAID = tuple(f"distribution{number}" for number in ("", 2, 3, 4, 5, 6))

OVERWRITTEN = Code(
    name="RuntimeConfigOverwritten",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the runtime's configuration is written anew at each start",
    meaning="The NVIDIA runtime was added to a file that the distribution renders from a template: it is gone after "
    "the next restart.",
    known_by="The file lies where K3s, RKE2, k0s or MicroK8s render it, or somebody saw it revert.",
    disproved_by="The handler is still in the file after a restart of the distribution's service.",
    counter_check="restart k3s or rke2 on NODE, then grep nvidia in the rendered config.toml : still there",
    fix=Fix(
        steps=(
            "K3s, RKE2: install nvidia-container-toolkit on the host before the service starts (it is found and "
            "configured by itself), or write config.toml.tmpl (config-v3.toml.tmpl) that begins with {{ template "
            '"base" . }}',
            "MicroK8s: edit args/containerd-template.toml; k0s: a drop-in in /etc/k0s/containerd.d",
            "default runtime in K3s and RKE2: `default-runtime: nvidia` in their own config.yaml",
            "restart the distribution's service on NODE",
        ),
        risk="a template that does not parse keeps the node down: try it on one node",
        rollback="remove the template and restart the service",
    ),
    verify=("after a restart: grep nvidia in the rendered file : there", "a pod with runtimeClassName nvidia starts"),
    sources=(
        "K3s documentation, Advanced: configuring containerd",
        "RKE2 documentation, Advanced",
        "MicroK8s, GPU add-on",
    ),
)

WRONG_FILE = Code(
    name="RuntimeConfigInWrongFile",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="the NVIDIA runtime is configured in a file that this distribution does not read",
    meaning="Another containerd than the one that serves the kubelet was configured: pods do not find the handler.",
    known_by="The node is one of K3s, RKE2, k0s or MicroK8s, and the configuration lies under /etc/containerd or "
    "/etc/docker.",
    disproved_by="The process of the distribution's containerd was started with --config of that file.",
    counter_check="on NODE: ps -ef | grep [c]ontainerd : --config names the file that was changed",
    fix=OVERWRITTEN.fix,
    verify=OVERWRITTEN.verify,
    sources=OVERWRITTEN.sources,
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.config_lost")).items():
        yield OVERWRITTEN.finding(
            "What configures the NVIDIA runtime is gone after a restart.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("runtime.config_regenerated")).items():
        yield OVERWRITTEN.finding(
            f"{first(said, 'path', 'path2', 'path3') or 'The file'} is made from a template: what was added by hand "
            "is lost at a restart.",
            LIKELY,
            said,
            node=node,
        )
    for node, said in by_node(facts.said("runtime.own_containerd")).items():
        name = first(said, "distribution", "distribution2").lower()
        yield WRONG_FILE.finding(
            f"{name} has a containerd of its own; it reads {OWN_FILES[name]}.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("runtime.not_imported")).items():
        yield WRONG_FILE.finding(
            f"containerd's main file does not import {first(said, 'path', 'path2')}.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("toolkit.dropin_unread")).items():
        yield WRONG_FILE.finding(
            f"{first(said, 'path') or 'A drop-in with the NVIDIA runtime'} was written, and the engine's main file has "
            "to import its directory (containerd's own is conf.d).",
            POSSIBLE,
            said,
            node=node,
        )
    for node, said in by_node(facts.said("runtime.template_broken")).items():
        yield OVERWRITTEN.finding(
            "The template from which the configuration is made has an error.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("runtime.told_template")).items():
        yield OVERWRITTEN.finding(
            "A template that does not begin with the distribution's own replaces all of it.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("runtime.told_wrong_file")).items():
        name = first(said, "distribution", "distribution2", "distribution3").lower()
        reads = f"{name} reads {OWN_FILES[name]}" if name else f"the kubelet uses {first(said, 'engine')}"
        yield WRONG_FILE.finding(f"Another file was configured: {reads}.", POSSIBLE, said, node=node)
    yield from _elsewhere(facts)
    yield from _not_imported(facts)
    yield from _for_docker(facts)


def _elsewhere(facts: Facts) -> Iterator[Answer]:
    for node, (distribution, signs) in _embedded(facts).items():
        said = [
            one for one in facts.said("toolkit.wrote") if first([one], "path", "path2").startswith("/etc/containerd/")
        ]
        configs = [
            config
            for config in facts.of(RuntimeConfig)
            if config.path.startswith(("/etc/containerd/", "/etc/docker/")) and config.nvidia_handlers
        ]
        ill = [one for one in facts.said(*SIGNS, "runtime.no_handler") if not node or one.node in ("", node)]
        # A file that nobody reads is a fault only where somebody misses what it says.
        placed: list[Fact] = [one for one in (*said, *(configs if ill else ())) if not node or one.node in ("", node)]
        if placed:
            path = first(said, "path", "path2") or configs[0].path
            yield WRONG_FILE.finding(
                f"{distribution} has a containerd of its own and does not read {path}; it reads "
                f"{OWN_FILES[distribution]}.",
                LIKELY if configs or first(said, "path") else POSSIBLE,
                [*placed, *ill, *signs],
                node=node,
            )
            continue
        if any(one.message in ("runtime.no_nvml", "runtime.plugin_crashes", "plugin.not_nvml_platform") for one in ill):
            yield WRONG_FILE.finding(
                f"{distribution} has a containerd of its own; where the NVIDIA runtime was set up for the system's "
                f"containerd or Docker only, its pods do not get it.",
                POSSIBLE,
                [*ill, *signs],
                node=node,
            )


def _not_imported(facts: Facts) -> Iterator[Answer]:
    """A drop-in with the handler, beside a main file that does not import its directory."""
    signs = list(facts.said(*SIGNS, "runtime.no_handler"))
    configs = [one for one in facts.of(RuntimeConfig) if one.engine == "containerd" and not one.is_template]
    in_effect = any(one.is_in_effect and one.nvidia_handlers for one in configs)
    for main in configs if signs and not in_effect else ():
        if main.path != "/etc/containerd/config.toml" or main.nvidia_handlers:
            continue
        for part in configs:
            apart = part.node == main.node and part.path.startswith(
                ("/etc/containerd/conf.d/", "/etc/containerd/config.d/")
            )
            if apart and part.nvidia_handlers and not any(fnmatch(part.path, one) for one in main.imports):
                yield WRONG_FILE.finding(
                    f"{main.path} does not import {part.path}, where handler {part.nvidia_handlers[0].name!r} is.",
                    LIKELY,
                    [main, part, *signs],
                    node=main.node,
                )


def _for_docker(facts: Facts) -> Iterator[Answer]:
    """Docker has the NVIDIA runtime, and the kubelet talks to containerd or CRI-O."""
    signs = list(facts.said(*SIGNS))
    for node, said in by_node(facts.said("runtime.docker_only")).items():
        yield WRONG_FILE.finding(
            f"Docker knows the NVIDIA runtime; the kubelet uses {first(said, 'engine')}.", POSSIBLE, said, node=node
        )
    for config in facts.of(RuntimeConfig):
        others = [one for one in facts.of(NodeSeen) if one.runtime.startswith(("containerd://", "cri-o://"))]
        if config.engine == "docker" and config.nvidia_handlers and signs and others:
            yield WRONG_FILE.finding(
                f"Docker knows the NVIDIA runtime; the kubelet uses {others[0].runtime}, which has another "
                "configuration.",
                LIKELY,
                [config, others[0], *signs],
                node=config.node or others[0].name,
            )


def _embedded(facts: Facts) -> dict[str, tuple[str, list[Fact]]]:
    """Node → distribution and what says so."""
    found: dict[str, tuple[str, list[Fact]]] = {}
    for one in facts.of(NodeSeen):
        for name in OWN_FILES:
            if f"+{name}" in one.kubelet or f"-{name}" in one.runtime:
                found.setdefault(one.name, (name, []))[1].append(one)
    for said in facts.said("runtime.embedded"):
        if (name := first([said], *_SAID)) in OWN_FILES:
            found.setdefault(said.node, (name, []))[1].append(said)
    return found


RULE = Rule((OVERWRITTEN, WRONG_FILE), find)
