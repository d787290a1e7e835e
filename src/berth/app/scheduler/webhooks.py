"""Other schedulers' webhooks that look at pods: whose they are, and what they do to pods that are Berth's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct


class Family(Struct, frozen=True):
    """A project whose webhooks matter. `signs` are parts of their names; `does` what becomes of a pod."""

    name: str
    signs: tuple[str, ...]
    does: str
    is_in_the_way: bool
    remedy: str = ""


FAMILIES = (
    Family(
        "Kueue", ("kueue",),
        "gates pods that carry its queue label; Berth waits until Kueue opens the gate", False,
    ),
    Family(
        "Volcano", ("volcano",),
        "is asked about every new pod", True,
        "Leave the namespaces that Berth serves out of its namespaceSelector, or remove it with Volcano's scheduler.",
    ),
    Family(
        "YuniKorn", ("yunikorn",),
        "writes its own name into spec.schedulerName, so that Berth never sees such a pod", True,
        "Leave the namespaces that Berth serves out of YuniKorn's admission controller.",
    ),
    Family(
        "KAI", ("kai-scheduler", "kai-admission", "run.ai", "runai"),
        "changes and checks pods by KAI's rules", True,
        "Leave the namespaces that Berth serves out of it, or remove it with KAI's scheduler.",
    ),
    Family(
        "Koordinator", ("koordinator", "koord-"),
        "may change the scheduler and the requests of pods by its profiles", True,
        "Leave the namespaces that Berth serves out of its profiles.",
    ),
)  # fmt: skip


class Webhook(Struct, frozen=True):
    """One webhook that is asked about pods."""

    configuration: str
    name: str
    is_mutating: bool
    operations: tuple[str, ...]
    must_answer: bool  # failurePolicy Fail: where it does not answer, no pod is made
    narrowed: bool  # by a namespaceSelector or objectSelector
    family: Family | None = None

    @property
    def sentence(self) -> str:
        assert self.family is not None
        only = " that its selectors let through" if self.narrowed else ""
        how = f"{self.family.name}'s webhook {self.name} ({', '.join(self.operations).lower()} of pods{only})"
        down = "; while it does not answer, such pods cannot be made" if self.must_answer else ""
        return f"{how} {self.family.does}{down}"


def webhooks_of(configurations: Iterable[Mapping[str, Any]], is_mutating: bool) -> Iterator[Webhook]:
    """Those that are asked about pods, of Validating- or MutatingWebhookConfigurations."""
    for configuration in configurations:
        called = str((configuration.get("metadata") or {}).get("name") or "")
        for hook in configuration.get("webhooks") or ():
            operations = sorted({o for rule in hook.get("rules") or () if _is_of_pods(rule) for o in _operations(rule)})
            if not operations:
                continue
            service = (hook.get("clientConfig") or {}).get("service") or {}
            signs = (called, hook.get("name"), service.get("name"), service.get("namespace"),
                     (hook.get("clientConfig") or {}).get("url"))  # fmt: skip
            text = " ".join(str(sign) for sign in signs if sign).lower()
            yield Webhook(
                called,
                str(hook.get("name") or ""),
                is_mutating,
                tuple(operations),
                hook.get("failurePolicy", "Fail") == "Fail",
                bool(hook.get("namespaceSelector") or hook.get("objectSelector")),
                next((family for family in FAMILIES if any(sign in text for sign in family.signs)), None),
            )


def _is_of_pods(rule: Mapping[str, Any]) -> bool:
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    return any(g in ("", "*") for g in groups) and any(r in ("pods", "*", "*/*", "pods/binding") for r in resources)


def _operations(rule: Mapping[str, Any]) -> list[str]:
    given = [str(o) for o in rule.get("operations") or ()]
    return ["CREATE", "UPDATE", "DELETE"] if "*" in given else given
