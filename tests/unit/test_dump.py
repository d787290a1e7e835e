"""The same cluster in every form that people have dumps in, and YAML's traps."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest
import yaml
from dump_objects import NODE, OBJECTS, as_list, pod, read, write

from berth.base.errors import BadInput


@pytest.fixture
def expected(tmp_path):
    return read(write(tmp_path, "reference.json", json.dumps(as_list(OBJECTS))))


def indented(text: str) -> str:
    """Items of a List two columns to the right, as other writers do it."""
    head, _, items = text.partition("items:\n")
    body, _, tail = items.partition("kind: List")
    return head + "items:\n" + "".join("  " + line for line in body.splitlines(True)) + "kind: List" + tail


PLAIN_YAML = yaml.safe_dump(as_list(OBJECTS))
LISTED = [json.dumps(thing) for thing in OBJECTS]
UNTYPED = {kind: [{k: v for k, v in o.items() if k not in ("kind", "apiVersion")} for o in OBJECTS if o["kind"] == kind]
           for kind in ("Node", "Pod")}  # fmt: skip
TYPED = [{"apiVersion": "v1", "kind": f"{kind}List", "items": items} for kind, items in UNTYPED.items()]
FORMS = {
    "compact.json": json.dumps(as_list(OBJECTS), separators=(",", ":")),
    "kubectl.json": json.dumps(as_list(OBJECTS), indent=4) + "\n",
    "two.json": json.dumps(as_list(OBJECTS), indent=2),
    "kind-last.json": json.dumps({"items": OBJECTS, "kind": "List", "apiVersion": "v1"}),
    "array.json": json.dumps(OBJECTS),
    "lines.json": "\n".join(LISTED),
    "one-after-another.json": "\n".join(json.dumps(thing, indent=4) for thing in OBJECTS),
    "two-lists.json": "\n".join(json.dumps(as_list(part), indent=4) for part in (OBJECTS[:1], OBJECTS[1:])),
    "bom.json": b"\xef\xbb\xbf" + json.dumps(as_list(OBJECTS)).encode(),
    "powershell.json": json.dumps(as_list(OBJECTS), indent=4).replace("\n", "\r\n").encode("utf-16"),
    "packed.json.gz": gzip.compress(json.dumps(as_list(OBJECTS)).encode()),
    "kubectl.yaml": PLAIN_YAML,
    "indented.yaml": indented(PLAIN_YAML),
    "documents.yaml": "---\n" + yaml.safe_dump_all(OBJECTS) + "---\n# the end\n...\n",
    "marked.yaml": "%YAML 1.1\n---\n" + PLAIN_YAML,
    "flow.yaml": "---\n" + yaml.safe_dump(as_list(OBJECTS), default_flow_style=True),
    "mixed.yaml": "---\n" + json.dumps(OBJECTS[0]) + "\n---\n" + yaml.safe_dump(as_list(OBJECTS[1:])),
    "windows.yaml": PLAIN_YAML.replace("\n", "\r\n"),
    "bom.yaml": b"\xef\xbb\xbf" + PLAIN_YAML.encode(),
    "commented.yaml": "# a dump\n" + PLAIN_YAML.replace("\n- apiVersion", "\n# next\n- apiVersion")
    .replace("\n  spec:", "\n# x\n\n  spec:"),
    "packed.yaml.gz": gzip.compress(PLAIN_YAML.encode()),
    "typed.yaml": yaml.safe_dump_all(TYPED),
    "typed.json": "\n".join(map(json.dumps, TYPED)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FORMS))
def test_the_same_cluster_in_every_form(tmp_path, expected, name):
    assert read(write(tmp_path, name, FORMS[name])) == expected


@pytest.mark.parametrize("name", ["kubectl.json", "kubectl.yaml", "packed.json.gz"])
def test_standard_input(tmp_path, expected, monkeypatch, name):
    file = write(tmp_path, name, FORMS[name])
    with file.open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        assert read("-") == expected
    content = FORMS[name] if isinstance(FORMS[name], bytes) else FORMS[name].encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))  # a pipe: no file behind it
    assert read("-") == expected


def test_what_the_snapshot_holds(expected):
    assert [n.name for n in expected.nodes] == ["gpu-1"]
    assert len(expected.nodes[0].devices) == 8 and expected.nodes[0].gpu_class == "H100-80GB"
    assert [(a.namespace, a.name, a.node) for a in expected.allocations] == [
        ("train", "a", "gpu-1"),
        ("train", "b", "gpu-1"),
    ]
    assert expected.allocations[0].pod_class is expected.allocations[1].pod_class
    assert expected.allocations[0].started_s == 1795946460.0
    assert [w.key for w in expected.workloads] == ["train/c"]
    assert expected.now_s == 7.0 and expected.notes == ()


def test_a_must_gather_tree(tmp_path, expected):
    for thing in OBJECTS:
        name = thing["metadata"]["name"]
        write(
            tmp_path,
            f"must-gather/cluster-scoped/core/{thing['kind'].lower()}s/{name}.yaml",
            "---\n" + yaml.safe_dump(thing),
        )
    write(tmp_path, "must-gather/namespaces/train/pods.yaml", yaml.safe_dump(as_list(OBJECTS[1:])))
    write(tmp_path, "must-gather/logs/current.log", "2026-11-29 line\n" * 1000)
    write(tmp_path, "must-gather/core.dump", b"\0\1\2" * 100)
    write(tmp_path, "must-gather/.hidden/a.yaml", "apiVersion: [")
    found = read(tmp_path / "must-gather")
    assert (found.nodes, found.allocations, found.workloads) == (
        expected.nodes,
        expected.allocations,
        expected.workloads,
    )
    assert found.notes == (
        f"2 files in {tmp_path / 'must-gather'} hold no Kubernetes objects and were passed over",
        "3 objects are in the dump more than once, the first of each was read: pod train/a, pod train/b, pod train/c",
    )


def test_kinds_that_decide_nothing_are_counted(tmp_path, expected):
    events = [{"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"e{i}"}, "message": "x: y"} for i in range(3)]
    metrics = [{"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": {"name": "a"}}]
    for name, dump in (("d.json", json.dumps), ("d.yaml", yaml.safe_dump)):
        found = read(write(tmp_path, name, dump(as_list([*events, *OBJECTS, *metrics]))))
        assert found.nodes == expected.nodes and found.allocations == expected.allocations
        assert found.notes == ("kinds that decide nothing were passed over: 3 Event, 1 PodMetrics",)


# ---- YAML's traps


def yaml_pod(**lines: str) -> str:
    text = """apiVersion: v1
kind: List
items:
- kind: Pod
  apiVersion: v1
  metadata: {name: a, namespace: train@META@}
  spec:
    containers:
    - name: main
      resources:
        limits: {cpu: @CPU@, nvidia.com/gpu: @GPU@}
    priority: @PRIORITY@
"""
    values = {"META": "", "CPU": "1", "GPU": "1", "PRIORITY": "0", **lines}
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


@pytest.mark.parametrize(
    "cpu, milli",
    [
        ("0.5", 500),
        (".5", 500),
        ("2", 2000),
        ("1e1", 10_000),
        ('"0.5"', 500),
        ("1500m", 1500),
        ("0x10", 16_000),
        ("null", 0),
    ],
)
def test_quantities_without_quotes(tmp_path, cpu, milli):
    found = read(write(tmp_path, "d.yaml", yaml_pod(CPU=cpu)))
    assert dict(found.workloads[0].pod_sets[0].pod_class.requests).get("cpu", 0) == milli


@pytest.mark.parametrize("gpu", ["0.5", "1e-1", "-1", ".inf", "two", "1_0x"])
def test_amounts_that_are_none_are_told_with_the_pod(tmp_path, gpu):
    found = read(write(tmp_path, "d.yaml", yaml_pod(GPU=gpu)))
    problems = found.workloads[0].pod_sets[0].pod_class.problems
    assert len(problems) == 1 and 'spec.containers[0].resources.limits["nvidia.com/gpu"]' in problems[0]


@pytest.mark.parametrize(
    "lines, field, told",
    [
        ({"META": ", labels: {a: yes}"}, "metadata.labels.a", "expected text, got true."),
        ({"META": ", labels: {a: 0755}"}, "metadata.labels.a", "expected text, got 493."),
        ({"META": ", labels: [a]"}, "metadata.labels", "expected a mapping, got a list"),
        ({"PRIORITY": "high"}, "spec.priority", 'expected a whole number, got "high".'),
        ({"PRIORITY": '"1"'}, "spec.priority", 'expected a whole number, got "1".'),
        ({"CPU": "[1]"}, "spec.containers[0].resources.limits.cpu", "expected a number or text, got a list."),
        ({"CPU": "true"}, "spec.containers[0].resources.limits.cpu", "got true."),
        ({"GPU": "true"}, 'spec.containers[0].resources.limits["nvidia.com/gpu"]', "got true."),
    ],
)
def test_wrong_types_name_file_object_and_field(tmp_path, lines, field, told):
    file = write(tmp_path, "d.yaml", yaml_pod(**lines))
    with pytest.raises(BadInput) as refused:
        read(file)
    assert refused.value.where == f"{file}: pod train/a: {field}"
    assert told in refused.value.problem and refused.value.exit_code == 3


def test_octal_and_words_where_they_are_meant(tmp_path):
    found = read(write(tmp_path, "d.yaml", yaml_pod(PRIORITY="010", META=", labels: {a: ~, b: 'yes'}")))
    assert found.workloads[0].priority == 8
    assert found.workloads[0].pod_sets[0].labels == (("a", ""), ("b", "yes"))


def test_cordon_in_yaml_words(tmp_path):
    node = (
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: n\nspec:\n  unschedulable: yes\nstatus:\n  capacity: {cpu: 1}\n"
    )
    found = read(write(tmp_path, "d.yaml", node))
    assert found.nodes[0].cordoned and found.nodes[0].allocatable == (("cpu", 1000),)


def test_anchors_within_an_item_and_across_items(tmp_path, expected):
    text = yaml.dump(as_list([NODE, pod("a"), pod("b"), pod("c", None)]), Dumper=yaml.SafeDumper)
    anchored = text.replace("        cpu: '4'", "        cpu: &four '4'", 1).replace(
        "        cpu: '4'", "        cpu: *four"
    )
    assert "*four" in anchored
    assert read(write(tmp_path, "d.yaml", anchored)) == expected


def test_merge_keys(tmp_path):
    text = yaml_pod().replace("limits: {", "limits: {<<: {memory: 1Gi, cpu: 9}, ")
    requests = read(write(tmp_path, "d.yaml", text)).workloads[0].pod_sets[0].pod_class.requests
    assert requests == (("cpu", 1000), ("memory", 2**30), ("nvidia.com/gpu", 1))


def test_maps_that_are_null(tmp_path):
    thing = pod("a", None)
    thing["metadata"].update(labels=None, annotations=None, ownerReferences=None)
    thing["spec"].update(tolerations=None, affinity=None, nodeSelector=None, initContainers=None, volumes=None)
    thing["spec"]["containers"][0]["resources"] = {"limits": None, "requests": None}
    thing["status"] = None
    for name, dump in (("d.json", json.dumps), ("d.yaml", yaml.safe_dump)):
        assert len(read(write(tmp_path, name, dump(as_list([NODE, thing])))).workloads) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("evidence/gpu.jsonl", '{"kind": "dmesg", "text": "NVRM: Xid 79 {\\"apiVersion\\": 1}", "node": "n"}\n' * 2),
        ("chart/Chart.yaml", "apiVersion: v2\nname: berth\nversion: 1\n"),
        ("README.md", "# Read\n\n```yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n```\n"),
        ("values.yaml", "kind: dump\ntext: none\n"),
    ],
)
def test_files_beside_objects_are_passed_over(tmp_path, expected, name, text):
    write(tmp_path, "d/objects.json", json.dumps(as_list(OBJECTS)))
    write(tmp_path, f"d/{name}", text)
    found = read(tmp_path / "d")
    assert (found.nodes, found.allocations) == (expected.nodes, expected.allocations)
    assert found.notes == (f"1 file in {tmp_path / 'd'} holds no Kubernetes objects and was passed over",)


@pytest.mark.parametrize("text", ["kind: Pod\nmetadata: {name: p}\n", '{"metadata": {"name": "p"}, "kind": "Pod"}'])
def test_an_object_beside_others_that_lacks_a_part_is_not_passed_over(tmp_path, text):
    write(tmp_path, "d/objects.json", json.dumps(as_list(OBJECTS)))
    write(tmp_path, "d/broken.yaml", text)
    with pytest.raises(BadInput, match="no apiVersion and kind"):
        read(tmp_path / "d")
