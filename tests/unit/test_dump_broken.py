"""Broken and doubtful dumps: each is refused with file, object and field, or told in a note. Nothing is lost."""

from __future__ import annotations

import gzip
import json

import pytest
import yaml
from dump_objects import NODE, OBJECTS, as_list, pod, read, write

from berth.base.errors import BadInput

COMPACT = json.dumps(as_list(OBJECTS), separators=(",", ":"))
PRINTED = json.dumps(as_list(OBJECTS), indent=4) + "\n"
LAUGHS = "apiVersion: batch/v1\nkind: Job\nspec:\n  a0: &a0 [x]\n" + "".join(
    f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)
PLAIN_YAML = yaml.safe_dump(as_list(OBJECTS))


# ---- what is broken


def refusal(file) -> BadInput:
    with pytest.raises(BadInput) as refused:
        read(file)
    assert refused.value.exit_code == 3
    assert refused.value.problem and refused.value.remedy
    return refused.value


@pytest.mark.parametrize(
    "name, content, where, problem",
    [
        ("d.json", PRINTED[:-300], "", "the JSON ends in the middle of an object."),
        ("d.json", COMPACT[:-300], "", "the JSON ends in the middle of an object."),
        ("d.json", PRINTED.replace('"cpu": "4"', '"cpu": 4,"'), "", "not JSON: "),
        ("d.json", '{"a": 1} trailing', "", "not JSON: "),
        ("d.json", "[" * 100_000, "", "JSON nested too deeply."),
        ("d.json", '{"kind": "List", "items": {}}', ": items", "expected a list, got a mapping."),
        ("d.json", '{"kind": "List", "items": [1]}', ": items[0]", "expected a mapping, got 1."),
        ("d.json", '{"metadata": {"name": "x"}}', ": x", "it has no apiVersion and kind"),
        ("d.json", '"text"', "", "not YAML or JSON that holds Kubernetes objects."),
        ("d.yaml", PLAIN_YAML[: PLAIN_YAML.index("kind: List")], ": line ", "ends without the kind of the list"),
        ("d.yaml", "apiVersion: v1\nkind: Node\n\tmetadata: {}\n", ": object at line 1", "not YAML: "),
        ("d.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a\n", ": object at line 1", "not YAML: "),
        ("d.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  name: b\n", ": object at line 1", "twice"),
        ("d.yaml", "apiVersion: v1\nkind: List\nitems:\n- text\n", ": line 4", "object, found text"),
        ("d.yaml", "apiVersion: v1\nkind: List\nitems:\n-\n", ": line 4", "object, found nothing"),
        ("d.yaml", "kind: Pod\nmetadata: &a {name: [*a]}\napiVersion: v1\n", "", "contains itself"),
        ("d.yaml", LAUGHS, ": object at line 1", "its aliases stand for more than"),
        ("d.txt", "NAME   STATUS   ROLES\ngpu-1  Ready    worker\n", "", "a table for people"),
        ("d.txt", "Error from server (Forbidden): nodes is forbidden\n", "", "an error message of kubectl"),
        ("d.bin", b"\x00\x01\x02\xff" * 100, "", "binary data, not YAML or JSON."),
        ("d.bin", b"\xff\xfe\x00", "", "broken UTF-16"),
        ("d.zip", b"PK\x03\x04rest", "", "it is a zip archive."),
        ("d.gz", gzip.compress(COMPACT.encode())[:-40], "", "the gzip data is damaged or cut off"),
        ("d.yaml", "", "", "the file is empty."),
        ("d.yaml", "\n# nothing\n", "", "the file is empty."),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(tmp_path, name, content, where, problem):
    file = write(tmp_path, name, content)
    refused = refusal(file)
    assert refused.where.startswith(f"{file}{where}")
    assert problem in refused.problem


def test_a_file_that_is_not_there(tmp_path):
    assert "No such file" in refusal(tmp_path / "none.yaml").problem


def test_a_folder_without_objects(tmp_path):
    write(tmp_path, "a.log", "nothing")
    assert "no file with Kubernetes objects" in refusal(tmp_path).problem


def test_one_bad_pod_among_many_is_named(tmp_path):
    things = [NODE, *(pod(f"p{i}") for i in range(50))]
    things[30]["spec"]["priority"] = "high"
    for name, dump in (("d.json", json.dumps), ("d.yaml", yaml.safe_dump)):
        file = write(tmp_path, name, dump(as_list(things)))
        assert refusal(file).where == f"{file}: pod train/p29: spec.priority"


@pytest.mark.parametrize("missing", ["name", "containers", "spec"])
def test_pods_that_no_api_server_would_hold(tmp_path, missing):
    thing = pod("a")
    if missing == "name":
        del thing["metadata"]["name"]
    elif missing == "containers":
        thing["spec"]["containers"] = []
    else:
        del thing["spec"]
    for name, dump in (("d.json", json.dumps), ("d.yaml", yaml.safe_dump)):
        assert "missing" in refusal(write(tmp_path, name, dump(as_list([NODE, thing])))).problem


# ---- what is doubtful


def notes(tmp_path, *things) -> tuple[str, ...]:
    found = [
        read(write(tmp_path, n, d(as_list(list(things)))))
        for n, d in (("d.json", json.dumps), ("d.yaml", yaml.safe_dump))
    ]
    assert found[0].notes == found[1].notes
    return found[0].notes


def test_a_dump_without_pods_or_nodes(tmp_path):
    assert notes(tmp_path, NODE) == ("the dump holds no pods: every node looks empty",)
    assert notes(tmp_path, pod("c", None)) == ("the dump holds no nodes: nothing can be placed",)


def test_an_empty_list(tmp_path):
    for name, text in (("d.json", json.dumps(as_list([]))), ("d.yaml", yaml.safe_dump(as_list([])))):
        told = read(write(tmp_path, name, text)).notes
        assert told[0].endswith(f"{name} holds no objects") and len(told) == 3


FORBIDDEN = {
    "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403,
    "message": 'pods is forbidden: User "a" cannot list resource "pods"', "details": {"kind": "pods"},
}  # fmt: skip


def test_a_forbidden_answer_for_what_decides_is_no_answer(tmp_path):
    write(tmp_path, "d/nodes.json", json.dumps(NODE))
    write(tmp_path, "d/pods.json", json.dumps(FORBIDDEN))
    with pytest.raises(BadInput) as refused:
        read(tmp_path / "d")
    assert refused.value.exit_code == 3
    assert FORBIDDEN["message"] in refused.value.problem and "may list" in refused.value.remedy


def test_a_forbidden_answer_beside_what_was_seen_is_told(tmp_path):
    write(tmp_path, "d/nodes.json", json.dumps(NODE))
    write(tmp_path, "d/pods.json", json.dumps(pod("a", "gpu-1")))
    write(tmp_path, "d/again.json", json.dumps(FORBIDDEN))
    write(tmp_path, "d/groups.json", json.dumps({**FORBIDDEN, "details": {"kind": "podgroups"}}))
    told = read(tmp_path / "d").notes
    assert sum("the API server answered Forbidden" in note for note in told) == 2


def test_bound_pods_without_their_nodes_are_no_picture(tmp_path):
    with pytest.raises(BadInput) as refused:
        notes(tmp_path, pod("a", "gpu-1"))
    assert refused.value.exit_code == 3
    assert "it holds no nodes, while 1 pod is bound to a node (train/a to gpu-1)" in refused.value.problem


def test_an_object_without_a_name_is_told_by_its_place(tmp_path):
    with pytest.raises(BadInput) as refused:
        notes(tmp_path, NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {}})
    assert "object 2, a Node: metadata.name" in refused.value.where


def test_a_pod_on_a_node_that_is_not_there(tmp_path):
    assert notes(tmp_path, NODE, pod("a", "gone")) == (
        "1 pod is on a node that the dump does not hold: train/a on gone",
    )


def test_a_node_that_says_nothing_of_its_capacity(tmp_path):
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}
    assert notes(tmp_path, bare, pod("a", "bare")) == (
        "node bare: status.allocatable is missing: nothing can be placed there.",
    )


@pytest.mark.parametrize(
    "amount, told",
    [
        ("-8", "never negative"),
        ("eight", "not a quantity"),
        ("7.5", "whole numbers"),
        ("99999999", "no node has so many"),
    ],
)
def test_amounts_of_a_node_that_cannot_be(tmp_path, amount, told):
    node = json.loads(json.dumps(NODE))
    node["status"]["allocatable"]["nvidia.com/gpu"] = amount
    found = notes(tmp_path, node, pod("a"))
    assert any(note.startswith("node gpu-1: ") and told in note for note in found)


def test_names_that_are_there_twice(tmp_path):
    other = pod("a")
    other["metadata"]["uid"] = "another"
    assert notes(tmp_path, NODE, pod("a"), other) == (
        "different objects have the same name, the first of each was read: pod train/a",
    )


def test_ended_and_ending_pods(tmp_path):
    done = pod("done", status={"phase": "Succeeded"})
    ending = pod("ending")
    ending["metadata"]["deletionTimestamp"] = "2026-11-29T11:00:00Z"
    never = pod("never", None)
    never["metadata"]["deletionTimestamp"] = "2026-11-29T11:00:00Z"
    found = read(write(tmp_path, "d.json", json.dumps(as_list([NODE, done, ending, never]))))
    assert [a.name for a in found.allocations] == ["ending"] and found.workloads == ()
