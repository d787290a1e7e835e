"""Files of manifests: documents, lists, groups beside pods, what is passed over, what is refused."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import textwrap
from pathlib import Path

import pytest

from berth.base.errors import BadInput
from berth.model.workload import PodClass, TopologyWish
from berth.sources.manifests import read_jobs, shapes_in, workloads_of

GPU = "{containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}"


def shapes(text: str):
    return shapes_in(textwrap.dedent(text).encode(), "a.yaml")


def refused(text: str | bytes) -> str:
    content = text if isinstance(text, bytes) else textwrap.dedent(text).encode()
    with pytest.raises(BadInput) as caught:
        shapes_in(content, "a.yaml")
    assert caught.value.exit_code == 2
    return caught.value.sentence


def pod(name: str, more: str = "", gpu: int = 1) -> str:
    spec = f"{{containers: [{{name: c, resources: {{limits: {{nvidia.com/gpu: {gpu}}}}}}}]}}"
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: ml, {more}}}, spec: {spec}}}"


def test_a_file_with_everything_beside_the_job() -> None:
    (shape,) = shapes(f"""
    # a comment first
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: c}}
    data: {{text: "---"}}
    ---
    apiVersion: batch/v1
    kind: Job
    metadata: {{name: j}}
    spec: {{parallelism: 2, template: {{spec: {GPU}}}}}
    --- # nothing here
    ---
    apiVersion: v1
    kind: Service
    metadata: {{name: s}}
    """)
    assert (shape.key, shape.copies, shape.where) == ("default/j", 2, "a.yaml")
    assert shape.notes == ("Passed over, as no pods are asked for by a kind that Berth reads: ConfigMap c, Service s.",)


def test_lists_and_json() -> None:
    text = f"{{apiVersion: v1, kind: List, items: [{pod('a')}, {{kind: PodList, items: [{pod('b')}]}}]}}"
    assert [s.name for s in shapes(text)] == ["a", "b"]
    one = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}})
    assert [s.name for s in shapes(one)] == ["a"]
    assert [s.name for s in shapes(one + "\n" + one.replace('"a"', '"b"'))] == ["a", "b"]
    assert [s.name for s in shapes(f"[{one}]")] == ["a"]


def test_crlf_byte_order_mark_and_a_block_that_holds_a_marker() -> None:
    text = f"{pod('a')}\r\n---\r\n{pod('b')}\r\n"
    assert [s.name for s in shapes_in(b"\xef\xbb\xbf" + text.encode(), "a.yaml")] == ["a", "b"]
    script = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  run: |\n    ---\n    echo\n---\n"
    assert [s.name for s in shapes_in((script + pod("a")).encode(), "a.yaml")] == ["a"]


def test_pods_beside_their_group_are_one_workload() -> None:
    group = "{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: g, namespace: ml}, spec: %s}"
    spec = "{minMember: 2, queue: team, topologyConstraint: {requiredTopologyLevel: rack}}"
    own = "annotations: {pod-group-name: g}"
    (shape,) = shapes("\n---\n".join([group % spec, pod("a", own), pod("b", own), pod("c", own)]))
    assert (shape.kind, shape.key, shape.copies) == ("PodGroup", "ml/g", 1)
    assert [(s.name, s.count, s.min_count) for s in shape.sets] == [("pods", 3, 2)]
    assert (shape.queue, shape.topology) == ("team", (TopologyWish("rack"),))
    assert shape.notes == ()


def test_unlike_pods_of_one_group_are_sets_of_their_own() -> None:
    own = "labels: {berth.dev/gang: g}"
    (shape,) = shapes("\n---\n".join([pod("a", own), pod("b", own, gpu=8), pod("c", own)]))
    assert [(s.name, s.count, s.min_count) for s in shape.sets] == [("pods", 2, 2), ("pods-2", 1, 1)]


def test_a_group_that_asks_for_more_than_the_file_holds() -> None:
    group = (
        "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g, namespace: ml},"
        " spec: {minMember: 4}}"
    )
    own = "labels: {scheduling.x-k8s.io/pod-group: g}"
    (shape,) = shapes(f"{group}\n---\n{pod('a', own)}\n---\n{pod('b', own)}")
    assert (shape.minimum, shape.pod_count) == (4, 4)
    assert "asks for 4 pods and the manifests hold 2" in shape.notes[0]
    (alone,) = shapes(pod("a", own))
    assert "PodGroup ml/g (scheduling.x-k8s.io) is not among the manifests" in alone.notes[0]


def test_a_job_with_a_group_beside_it() -> None:
    (shape,) = shapes(f"""
    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: PodGroup
    metadata: {{name: g}}
    spec: {{minMember: 3}}
    ---
    apiVersion: batch/v1
    kind: Job
    metadata: {{name: j}}
    spec:
      parallelism: 4
      template: {{metadata: {{labels: {{scheduling.x-k8s.io/pod-group: g}}}}, spec: {GPU}}}
    """)
    assert (shape.kind, shape.key) == ("PodGroup", "default/g")
    assert [(s.name, s.count, s.min_count) for s in shape.sets] == [("j", 4, 3)]


def test_upstream_groups_from_a_template() -> None:
    (shape,) = shapes("""
    apiVersion: scheduling.k8s.io/v1beta1
    kind: PodGroup
    metadata: {name: g}
    spec: {schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: example.com/rack}]}}
    ---
    apiVersion: v1
    kind: Pod
    metadata: {name: a}
    spec: {schedulingGroup: {podGroupName: g}, containers: [{name: c}]}
    ---
    apiVersion: v1
    kind: Pod
    metadata: {name: b}
    spec: {schedulingGroup: {podGroupName: g}, containers: [{name: c}]}
    """)
    assert (shape.minimum, shape.topology) == (2, (TopologyWish("example.com/rack"),))


def test_errors_name_the_object_where_the_file_has_several() -> None:
    bad = "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: two}}"
    assert refused(bad).startswith('a.yaml: spec.parallelism: "two"')
    assert refused(f"{bad}\n---\n{pod('a')}").startswith('a.yaml: Job j: spec.parallelism: "two"')


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a.yaml: it holds no workload (nothing). Berth reads"),
        ("# only a comment", "it holds no workload (nothing)"),
        ("{apiVersion: v1, kind: Service, metadata: {name: s}}", "it holds no workload (Service)."),
        ("{apiVersion: kubeflow.org/v1, kind: PytorchJob, metadata: {name: s}}", "Did you mean PyTorchJob?"),
        ("{apiVersion: batch/v1, kind: job, metadata: {name: s}}", "Did you mean Job?"),
        ("{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: s}}", "that Berth reads is of apps."),
        ("{metadata: {name: s}}", "a.yaml: kind: it is missing."),
        ("just text", "'just text' is not a Kubernetes object."),
        ("a: [1, 2", "a.yaml: line 2: not YAML"),
        ("kind: Pod\n---\na: b: c\n", "a.yaml: line 3: not YAML"),
        ('{"kind": "Pod", }}', "it is not JSON"),
        (b"kind: \xff\xfe", "byte 6 is not UTF-8."),
    ],
)
def test_files_that_cannot_be_used(text: str | bytes, sentence: str) -> None:
    assert sentence in refused(text)


def test_reading_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(pod("a"))
    assert read_jobs([str(file)])[0].where == str(file)

    class Stdin:
        buffer = io.BytesIO(pod("b").encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert read_jobs(["-"])[0].where == "standard input"
    for path, problem in ((str(tmp_path), "it is a folder"), (str(tmp_path / "no"), "No such file")):
        with pytest.raises(BadInput, match=problem):
            read_jobs([path])


def test_workloads() -> None:
    text = f"""
    apiVersion: apps/v1
    kind: Deployment
    metadata: {{name: d, namespace: ml, labels: {{berth.dev/queue: web}}}}
    spec:
      replicas: 2
      template: {{metadata: {{labels: {{app: x}}}}, spec: {{priorityClassName: high, {GPU[1:-1]}}}}}
    """
    first, second = workloads_of(shapes(text), priorities={"high": 7, "": 1})
    assert (first.key, second.key) == ("ml/d-0", "ml/d-1")
    assert (first.queue, first.priority, first.kind) == ("web", 7, "Deployment")
    assert first.pod_sets[0].pod_class.requests == (("nvidia.com/gpu", 1),)
    assert first.pod_sets[0].labels == (("app", "x"),)
    assert first.pod_sets is second.pod_sets


def test_pod_classes_by_another_reader_and_empty_workloads() -> None:
    seen = []

    def convert(template, where, path):
        seen.append((where, path))
        return PodClass()

    text = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: %s, template: {}}}"
    assert len(workloads_of(shapes(text % 2), convert)) == 2
    assert seen == [("a.yaml", "spec.template")]
    assert workloads_of(shapes(text % 0), convert) == []
    with pytest.raises(BadInput, match="2,000,000 independent pods"):
        workloads_of(shapes(text % 2_000_000), convert)


def test_keys_of_the_owner_decide_on_the_pod_class() -> None:
    (workload,) = workloads_of(
        shapes(f"""
        apiVersion: kubeflow.org/v1
        kind: PyTorchJob
        metadata: {{name: t, annotations: {{berth.dev/gpu-memory: 80Gi}}}}
        spec: {{pytorchReplicaSpecs: {{Worker: {{replicas: 2, template: {{spec: {GPU}}}}}}}}}
        """)
    )
    assert workload.pod_sets[0].pod_class.least.memory_bytes == 80 * 2**30
    assert workload.is_gang


def test_a_captured_gang_that_was_none() -> None:
    root = os.environ.get("BERTH_DATA")
    if not root:
        pytest.skip("BERTH_DATA names no folder with captured samples")
    report = (Path(root) / "samples" / "gang" / "kai_gang.md").read_text()
    (manifest,) = (b for b in re.findall(r"```yaml\n(.*?)```", report, re.DOTALL) if "kind: PodGroup" in b)
    read = shapes_in(manifest.encode(), "kai_gang.md")
    # The labels of this test are not what KAI joins pods by; the report shows one PodGroup for each pod.
    assert [s.name for s in read] == ["gang-worker-0", "gang-worker-1"]
    assert all("annotation pod-group-name" in s.contradictions[0] for s in read)


def test_two_objects_of_one_name_are_refused() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: NS}\nspec: {containers: [{name: c}]}\n---\n"
    one, other = pod.replace("NAME", "a").replace("NS", "x"), pod.replace("NAME", "a").replace("NS", "y")
    assert len(shapes_in((one + other).encode(), "f.yaml")) == 2
    with pytest.raises(BadInput) as refused:
        shapes_in((one + other + one).encode(), "f.yaml")
    assert refused.value.where == "f.yaml: Pod a: metadata.name"
    assert refused.value.exit_code == 2
    generated = one.replace("name: a,", "generateName: a-,")
    assert len(shapes_in((generated + generated).encode(), "f.yaml")) == 2


def test_several_files_are_read_as_one(tmp_path: Path) -> None:
    a, b, group, note = (tmp_path / name for name in ("a.yaml", "b.yaml", "group.yaml", "note.yaml"))
    a.write_text(pod("a", "labels: {scheduling.x-k8s.io/pod-group: g}"))
    b.write_text(pod("b", "labels: {scheduling.x-k8s.io/pod-group: g}") + "\n---\n" + pod("c"))
    group.write_text(
        "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g, namespace: ml}, "
        "spec: {minMember: 2}}"
    )
    note.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: n}}")
    gang, alone = read_jobs([str(file) for file in (a, b, group, note)])
    assert (gang.name, gang.sets[0].count, gang.sets[0].min_count, gang.where) == ("g", 2, 2, str(a))
    assert (alone.name, alone.where) == ("c", f"{b}: Pod c")
    assert "ConfigMap n" in gang.notes[-1]
    for files, sentence in (
        ((a, a), f"{a}: it was given twice."),
        ((a, tmp_path / "no"), f"{tmp_path / 'no'}: it cannot be read"),
        ((group, note), f"{group}, {note}: it holds no workload (ConfigMap, PodGroup)."),
    ):
        with pytest.raises(BadInput) as caught:
            read_jobs([str(file) for file in files])
        assert caught.value.sentence.startswith(sentence)
    note.write_text(pod("a"))
    with pytest.raises(BadInput, match=f"note.yaml: Pod a: metadata.name: .* same namespace in {a}"):
        read_jobs([str(a), str(note)])
    note.write_text("# nothing")
    with pytest.raises(BadInput, match=r"note\.yaml: it holds no workload"):
        read_jobs([str(a), str(note)])


def test_what_is_packed_is_told_by_its_name() -> None:
    import bz2
    import gzip
    import lzma
    import tarfile
    import zipfile

    text, boxed, taken = pod("a").encode(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(boxed, "w") as archive:
        archive.writestr("a.yaml", text)
    with tarfile.open(fileobj=taken, mode="w") as tar:
        member = tarfile.TarInfo("a.yaml")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    for content, what in (
        (boxed.getvalue(), "a zip archive"),
        (taken.getvalue(), "a tar archive"),
        (gzip.compress(text), "compressed with gzip"),
        (lzma.compress(text), "compressed with xz"),
        (bz2.compress(text), "compressed with bzip2"),
    ):
        assert refused(content) == f"a.yaml: it is {what}. Unpack it and name the manifest."
