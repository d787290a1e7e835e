"""A key of Berth's prefix that Berth does not read is told, with the one that is close to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from berth.base.errors import BadInput
from berth.dialects.known_keys import KNOWN, refuse_unknown
from berth.dialects.membership import PodFacts, index, membership_of
from berth.dialects.objects import OwnerRef
from berth.sources.manifests import shapes_in

DOCS = Path(__file__).parents[2] / "docs"


def test_the_keys_are_those_of_the_page() -> None:
    page = (DOCS / "api.md").read_text().partition("## Keys on pods")[2].partition("## Kinds")[0]
    assert set(re.findall(r"`berth\.dev/([a-z-]+)[`=]", page)) == KNOWN - {"config-hash"}


def test_a_cluster_tells_it_and_goes_on() -> None:
    ref = OwnerRef("batch/v1", "Job", "train", "u", True)
    meta = {"name": "train", "namespace": "ml", "uid": "u", "labels": {"berth.dev/gpu-class": "H300"}}
    template = {"spec": {"containers": [{"name": "c"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}
    facts = PodFacts("p", "ml", {}, {"berth.dev/topology-requird": "rack", "berth.dev/rdma": "required"}, (ref,))
    told = membership_of(facts, index([job])).contradictions
    assert told == (
        "Annotation berth.dev/topology-requird of the pod is no key of Berth; close to it: topology-required. It was "
        "passed over.",
        "Label berth.dev/gpu-class of Job train is no key of Berth. It was passed over.",
    )


@pytest.mark.parametrize(
    ("metadata", "template", "path"),
    [
        ({"labels": {"berth.dev/queu": "a"}}, {}, "metadata.labels"),
        ({}, {"annotations": {"berth.dev/queu": "a"}}, "spec.template.metadata.annotations"),
    ],
)
def test_check_refuses_it(metadata: dict[str, object], template: dict[str, object], path: str) -> None:
    spec = {"template": {"metadata": template, "spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", **metadata}, "spec": spec}
    with pytest.raises(BadInput) as found:
        refuse_unknown(job, "job.yaml")
    assert found.value.sentence.startswith(f"job.yaml: {path}: berth.dev/queu is no key of Berth; close to it: queue.")


def test_a_file_with_such_a_key_is_refused_before_anything_is_said_of_it() -> None:
    meta = b"metadata: {name: p, labels: {berth.dev/gangs: a}}"
    pod = b"{apiVersion: v1, kind: Pod, " + meta + b", spec: {containers: [{name: c}]}}"
    with pytest.raises(BadInput, match="close to it: gang"):
        shapes_in(pod, "pod.yaml")


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ml, KEYS}\nspec: {containers: [{name: c}]}\n"
GROUP = "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g, namespace: ml}\nspec: "
COUNT, MIN = "kueue.x-k8s.io/pod-group-total-count", "berth.dev/min-count"


@pytest.mark.parametrize(
    ("keys", "place", "problem"),
    [
        (f"labels: {{kueue.x-k8s.io/pod-group-name: g}}, annotations: {{{COUNT}: two}}",
         f'metadata.annotations["{COUNT}"]', '"two": a whole number is needed.'),
        (f"labels: {{kueue.x-k8s.io/pod-group-name: g}}, annotations: {{{COUNT}: '0'}}",
         f'metadata.annotations["{COUNT}"]', '"0": it must be 1 or more.'),
        (f"annotations: {{{MIN}: '0'}}", f'metadata.annotations["{MIN}"]', '"0": it must be 1 or more.'),
        (f"labels: {{{MIN}: few}}", f'metadata.labels["{MIN}"]', '"few": a whole number is needed.'),
        (f"annotations: {{berth.dev/gang: g, {MIN}: '-1'}}", f'metadata.annotations["{MIN}"]', '"-1": it must be 1 or'),
    ],
)  # fmt: skip
def test_a_count_that_is_none_stops_who_wrote_it(keys: str, place: str, problem: str) -> None:
    with pytest.raises(BadInput) as found:
        shapes_in(POD.replace("KEYS", keys).encode(), "pod.yaml")
    assert (found.value.where, found.value.exit_code) == (f"pod.yaml: {place}", 2)
    assert found.value.problem.startswith(problem)


def test_of_a_group_beside_it_too_and_in_a_cluster_nobody_is_stopped() -> None:
    text = POD.replace("KEYS", "labels: {scheduling.x-k8s.io/pod-group: g}") + GROUP + "{minMember: two}"
    with pytest.raises(BadInput) as found:
        shapes_in(text.encode(), "pod.yaml")
    assert found.value.where == "pod.yaml: PodGroup ml/g: spec.minMember"
    facts = PodFacts("a", "ml", {"kueue.x-k8s.io/pod-group-name": "g"}, {COUNT: "two"})
    (told,) = membership_of(facts, index([])).contradictions
    assert told.startswith(f'annotations["{COUNT}"]: "two": a whole number') and told.endswith("It was passed over.")
