"""All layers. An error that no rule knows: its writer gives the layer, the sort of error the class, and no more is said
than that."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import GUESSED, CauseClass, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.errors_said import ErrorSaid, Sort

UNKNOWN = Code(
    name="ErrorNotKnown",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Warning,
    effect=Effect.ProgramFails,
    title="an error that no rule knows",
    meaning="Something failed, and these words are in no rule. Layer and class are guessed: the layer is that of the "
    "component that writes the line, the class that of errors of its sort (a right, a file, a library, a limit, an "
    "argument, no answer).",
    known_by="A short text with an error, and nothing else in it that is known.",
    disproved_by="The component works on after the line.",
    counter_check="the lines around it: the component works on; or a component below names an error at the same time",
    fix=Fix(
        steps=(
            "look for the first error of this component since its start, not for the last",
            "give the doctor more: the whole log, kubectl describe of the pod and its node, dmesg of the node",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the component starts or goes on, and the line does not come",),
    sources=("errno(3)", "ld.so(8)", "Kubernetes, apimachinery/pkg/api/errors"),
)

_CLASSES: dict[Sort, tuple[CauseClass, CauseClass, CauseClass, CauseClass, CauseClass, CauseClass, CauseClass]] = {
    # L0           L1              L2                L3               L4               L5                   L6
    "permission":
        ("permission", "permission", "permission", "permission", "permission", "permission", "permission"),
    "library":
        ("version-mismatch", "version-mismatch", "runtime-install", "version-mismatch", "version-mismatch",
         "version-mismatch", "image"),
    "limit":
        ("host-limits", "host-limits", "host-limits", "host-limits", "host-limits", "host-limits", "host-limits"),
    "refused":
        ("hw-firmware", "driver-build", "runtime-config", "plugin-config", "plugin-config", "scheduling-policy", "app"),
    "absent":
        ("hw-fault", "driver-build", "runtime-install", "path-mount", "path-mount", "scheduling-policy", "image"),
    "no-answer":
        ("hw-fault", "driver-bug", "runtime-config", "kubelet-state", "node-labels", "scheduling-policy", "network"),
    "other":
        ("hw-fault", "driver-bug", "runtime-config", "plugin-config", "node-labels", "scheduling-policy", "app"),
}  # fmt: skip
# Whose work is one thing.
_OF_KIND: dict[str, CauseClass] = {
    "mig-log": "mig-state", "fabricmanager-log": "fabric", "dcgm-log": "monitoring", "dcgm": "monitoring",
    "nccl-log": "network", "kubelet-log": "kubelet-state", "cdi": "cdi",
}  # fmt: skip
_SORT_WORDS: dict[Sort, str] = {
    "build": "something could not be built", "permission": "a right is missing",
    "library": "a library is missing or another", "limit": "a limit is reached",
    "refused": "what it was given is refused", "absent": "something is not there",
    "no-answer": "somebody gave no answer", "other": "something failed",
}  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    if facts.looked_at("objects"):  # a cluster was looked through, and nobody chose these lines
        return
    for one in facts.of(ErrorSaid):
        layer, cause_class = _named(one)
        yield UNKNOWN.finding(
            f"A component of {layer.name} ({layer.words}) says that {_SORT_WORDS[one.sort]}; no rule knows more of it.",
            GUESSED,
            [one],
            layer=layer,
            cause_class=cause_class,
        )
        return


def _named(one: ErrorSaid) -> tuple[Layer, CauseClass]:
    if one.sort == "build":
        return Layer.L1, "driver-build"
    if one.sort in ("permission", "library", "limit") or one.origin.kind not in _OF_KIND:
        return Layer(one.layer), _CLASSES[one.sort][one.layer]
    return Layer(one.layer), _OF_KIND[one.origin.kind]


RULE = Rule((UNKNOWN,), find)
