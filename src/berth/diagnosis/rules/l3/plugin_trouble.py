"""L3. Trouble with the device plugin that somebody tells of, in words that no other rule knows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from berth.diagnosis.finding import Answer, Code, Fix
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import WEAK, CauseClass, Effect, Layer, Severity
from berth.evidence.facts import Facts

TROUBLE = Code(
    name="PluginTroubleTold",
    layer=Layer.L3,
    cause_class="plugin-health",
    severity=Severity.Warning,
    effect=Effect.PluginDown,
    title="somebody tells of trouble with the device plugin",
    meaning="The words name the plugin or the kubelet's account of devices, and no message of either. Which fault it "
    "is, the two logs have to say.",
    known_by="A line of prose that names the device plugin beside a word of failure.",
    disproved_by="Evidence of the plugin or of the kubelet shows another fault.",
    counter_check="kubectl logs of the plugin (--previous too); on NODE: journalctl -u kubelet | grep -i "
    "'device plugin': nothing but registrations",
    fix=Fix(
        steps=(
            "look at the plugin's log and at the kubelet's, at the time of the trouble",
            "compare what nvidia-smi -L lists with kubectl get node NODE -o jsonpath={.status.allocatable}",
            "a plugin that is started anew registers anew: it cures what the kubelet has forgotten, not what is wrong "
            "in configuration or mounts",
        ),
        risk="none by looking",
        rollback="nothing to undo",
    ),
    verify=("kubectl get node NODE: as many allocatable devices as the node has",),
    sources=("k8s-device-plugin README", "kubernetes pkg/kubelet/cm/devicemanager"),
)

# What the words are mostly about, the first that fits.
_ABOUT: tuple[tuple[CauseClass, str], ...] = (
    (
        "permission",
        r"permission|forbidden|SELinux|AppArmor|CAP_\w+|\bdenied\b|\bRBAC\b|privileged|seccomp|\bSCC\b|"
        r"pod.?security|\brestricted\b(?! policy)",
    ),
    ("host-limits", r"inotify|too many open|\bOOM|memory limit|ulimit"),
    ("cgroup", r"cgroup"),
    ("mig-state", r"\bMIG\b|\bmig[-.]|(?:GPU|compute) instances?\b"),
    ("version-mismatch", r"Unimplemented|v1alpha|v1beta|feature[ -]?gate|exec format|\barm64\b|incompatib"),
    (
        "plugin-config",
        r"time-?slic|failOnInit|\bMPS\b|replicas|RequestsGreaterThanOne|config|strategy|gpu\.shared|\brenam|\blabel|"
        r"\b(?:two|second|both) \S*plugin|manually|memory ?scaling|annotation",
    ),
    (
        "path-mount",
        r"hostPath|director(?:y|ies)|\bmount|root[- ]dir|data dir|no such file|\bvolumes?\b|"
        r"\bsocket\b.{0,40}(?:missing|not)",
    ),
    ("plugin-health", r"unhealthy|\bXid\b|ListAndWatch|nil pointer|\bpanic"),
    (
        "kubelet-state",
        r"(?:cpu|memory|topology) ?manager|kubelet|checkpoint|device ?manager|admission|static pod|reboot|"
        r"Pod ?Resources|account|\bnode lock|mutex\.lock|re-?regist|registration|allocated|out.of.sync",
    ),
    (
        "plugin-config",
        r"(?:\bnot|n't|\bnever) (?:be |being |get )?"
        r"(?:shown?|listed|added|registered|visible|allocatable|advertised|exposed)\b|"
        r"\b(?:registers|offers|shows) nothing\b",
    ),
)

# Where its pods are to run is a matter of labels.
_OF_PLACING = (
    r"\bdesired\b|nvidia\.com/gpu\.present|nodeSelector|node selector|\bno pods?\b.{0,30}\bplugin|not scheduled"
)


def trouble(facts: Facts, answered: Collection[tuple[str, int]]) -> Iterator[Answer]:
    """Of lines that nothing else answers: `answered` are those that something does, by source and number."""
    known = {one.origin for one in facts.said("plugin.", "kubelet.", "sharing.", "gfd.", "harmless.")}
    told = [
        one
        for one in facts.said("reported.plugin_trouble")
        if one.origin not in known and (one.origin.source, one.origin.line) not in answered
    ]
    for said in by_node(told).values():
        words = " ".join(one.origin.text for one in said)
        if re.search(_OF_PLACING, words, re.IGNORECASE):
            yield TROUBLE.finding(
                "The plugin's DaemonSet wants no pod where it should.",
                WEAK,
                said,
                layer=Layer.L4,
                cause_class="node-labels",
            )
            continue
        about = next((name for name, sign in _ABOUT if re.search(sign, words, re.IGNORECASE)), None)
        yield TROUBLE.finding("Words of trouble, beside the name of the device plugin.", WEAK, said, cause_class=about)
