"""Node selectors, affinity between pods, spread and tolerations: from the wire into the model.

What Kubernetes allows and the model cannot say becomes a phrase in `unsupported`; what Kubernetes forbids
becomes a sentence in `problems`. A term that matches nothing stays one that matches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from berth.kube import wire
from berth.model.workload import (
    LabelSelector,
    NodeTerm,
    PodTerm,
    PreferredTerm,
    Requirement,
    Spread,
    Toleration,
)
from berth.sources.requests import Problems

_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")

# A null selector matches no pod, where an empty one matches all; so does "in none of these".
NOTHING = LabelSelector(expressions=(Requirement("", "In", ()),))

Labels = Mapping[str, str | None]


def pairs(labels: Labels | None) -> tuple[tuple[str, str], ...]:
    """Labels as sorted pairs. A null value is an empty one, as the API server reads it."""
    return tuple(sorted((k, v or "") for k, v in labels.items())) if labels else ()


# ---- nodes


def node_terms(selector: wire.NodeSelector | None, path: str, problems: Problems) -> tuple[NodeTerm, ...]:
    """Terms of which one must match; () only where nothing was asked."""
    if selector is None:
        return ()
    terms = selector.node_selector_terms or ()
    if not terms:
        problems.append(f"{path}.nodeSelectorTerms is empty: it needs one term at least.")
        return (NodeTerm(),)
    return tuple(node_term(t, f"{path}.nodeSelectorTerms[{i}]", problems) for i, t in enumerate(terms))


def node_term(term: wire.NodeSelectorTerm, path: str, problems: Problems) -> NodeTerm:
    expressions = _requirements(term.match_expressions, f"{path}.matchExpressions", _NODE_OPERATORS, problems)
    fields = _requirements(term.match_fields, f"{path}.matchFields", _NODE_OPERATORS, problems)
    for i, field in enumerate(fields):
        if field.key != "metadata.name":
            problems.say(f"{path}.matchFields[{i}].key", field.key, "only metadata.name can be matched.")
    return NodeTerm(expressions, fields)


def preferred_terms(
    preferred: tuple[wire.PreferredNode, ...] | None, path: str, problems: Problems
) -> tuple[PreferredTerm, ...]:
    """Wishes with their weight; an empty preference is worth nothing and is left out."""
    wishes: list[PreferredTerm] = []
    for i, wish in enumerate(preferred or ()):
        if wish.preference is None:
            continue
        term = node_term(wish.preference, f"{path}[{i}].preference", problems)
        if term.expressions or term.fields:
            wishes.append(PreferredTerm(max(1, min(100, wish.weight or 1)), term))
    return tuple(wishes)


def both(one: tuple[NodeTerm, ...], other: tuple[NodeTerm, ...]) -> tuple[NodeTerm, ...]:
    """Terms that hold where a term of each side holds. A term that matches nothing drops out of the product."""
    if not one or not other:
        return one or other
    product = tuple(
        NodeTerm(a.expressions + b.expressions, a.fields + b.fields)
        for a in one
        for b in other
        if (a.expressions or a.fields) and (b.expressions or b.fields)
    )
    return product or (NodeTerm(),)


def _requirements(
    expressions: tuple[wire.Expression, ...] | None, path: str, operators: tuple[str, ...], problems: Problems
) -> tuple[Requirement, ...]:
    return tuple(_requirement(e, f"{path}[{i}]", operators, problems) for i, e in enumerate(expressions or ()))


def _requirement(expression: wire.Expression, path: str, operators: tuple[str, ...], problems: Problems) -> Requirement:
    operator, values = expression.operator or "", expression.values or ()
    if operator not in operators:
        problems.say(f"{path}.operator", operator, f"it is one of {', '.join(operators)}.")
    elif operator in ("In", "NotIn") and not values:
        problems.append(f"{path}.values is empty: {operator} needs one value at least.")
    elif operator in ("Exists", "DoesNotExist") and values:
        problems.append(f"{path}.values is not empty: {operator} takes none.")
    elif operator in ("Gt", "Lt") and not (len(values) == 1 and _is_integer(values[0])):
        problems.append(f"{path}.values is {list(values)}: {operator} needs one whole number.")
    return Requirement(expression.key or "", operator, tuple(values))


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").removeprefix("+").isdecimal() and text.isascii()


def tolerations(written: tuple[wire.Toleration, ...] | None, unsupported: list[str]) -> tuple[Toleration, ...]:
    found: list[Toleration] = []
    for t in written or ():
        operator = t.operator or "Equal"
        if operator not in ("Equal", "Exists"):
            unsupported.append(f"a toleration with the operator {operator}")
            continue
        found.append(Toleration(t.key or "", operator, t.value or "", t.effect or ""))
    return tuple(found)


# ---- other pods


def label_selector(
    selector: wire.LabelSelector | None,
    path: str,
    problems: Problems,
    pod_labels: Labels,
    match_keys: tuple[str, ...] | None = None,
    mismatch_keys: tuple[str, ...] | None = None,
) -> LabelSelector:
    """The selector, with the pod's own values of `match_keys` (and other than those of `mismatch_keys`)."""
    if selector is None:
        return NOTHING
    expressions = _requirements(selector.match_expressions, f"{path}.matchExpressions", _LABEL_OPERATORS, problems)
    for operator, keys in (("In", match_keys), ("NotIn", mismatch_keys)):
        for key in keys or ():
            if key in pod_labels:  # a key that the pod lacks is ignored, as Kubernetes does
                own = Requirement(key, operator, (pod_labels[key] or "",))
                # The API server has merged it already where the pod was created by a recent one.
                expressions += () if own in expressions else (own,)
    return LabelSelector(pairs(selector.match_labels), expressions)


def pod_terms(
    affinity: wire.PodAffinity | None,
    path: str,
    problems: Problems,
    unsupported: list[str],
    pod_labels: Labels,
) -> tuple[PodTerm, ...]:
    """Required terms. One whose namespaces are chosen by labels cannot be said and is refused."""
    terms: list[PodTerm] = []
    for i, term in enumerate((affinity.required if affinity else None) or ()):
        where = f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{i}]"
        if not term.topology_key:
            problems.append(f"{where}.topologyKey is empty: it names the label that makes a domain.")
            continue
        chosen = term.namespace_selector
        by_labels = chosen is not None and bool(chosen.match_labels or chosen.match_expressions)
        if by_labels:
            unsupported.append("affinity to pods of namespaces that are chosen by labels")
        terms.append(
            PodTerm(
                label_selector(
                    term.label_selector,
                    f"{where}.labelSelector",
                    problems,
                    pod_labels,
                    term.match_label_keys,
                    term.mismatch_label_keys,
                ),
                term.topology_key,
                tuple(sorted(set(term.namespaces or ()))),
                chosen is not None and not by_labels,
            )
        )
    return tuple(terms)


def spreads(
    constraints: tuple[wire.TopologySpreadConstraint, ...] | None,
    path: str,
    problems: Problems,
    unsupported: list[str],
    pod_labels: Labels,
) -> tuple[Spread, ...]:
    """Constraints that forbid (DoNotSchedule, the default); those that only prefer do not decide."""
    found: list[Spread] = []
    for i, c in enumerate(constraints or ()):
        where = f"{path}[{i}]"
        if (c.when_unsatisfiable or "DoNotSchedule") != "DoNotSchedule":
            continue
        if not c.topology_key:
            problems.append(f"{where}.topologyKey is empty: it names the label that makes a domain.")
            continue
        if c.max_skew is not None and c.max_skew < 1:
            problems.say(f"{where}.maxSkew", c.max_skew, "it is 1 at least.")
        if (c.node_affinity_policy or "Honor") != "Honor" or (c.node_taints_policy or "Ignore") != "Ignore":
            unsupported.append("a spread constraint with a node inclusion policy of its own")
        found.append(
            Spread(
                label_selector(c.label_selector, f"{where}.labelSelector", problems, pod_labels, c.match_label_keys),
                c.topology_key,
                max(1, c.max_skew or 1),
                max(1, c.min_domains or 1),
            )
        )
    return tuple(found)
