"""Whatever the file holds, a dump ends in a Snapshot or in BadInput; and cutting YAML at its keys loses nothing."""

from __future__ import annotations

import contextlib
import json
import random
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from berth.base import yaml_tree
from berth.base.errors import UNREADABLE, BadInput
from berth.kube import wire
from berth.model.snapshot import Snapshot
from berth.sources import dump_yaml
from berth.sources.assemble import read_snapshot

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from make_dump import nodes, pods

OBJECTS = [*nodes(1), *pods(4, 1, seed=3)]
FRAGMENTS = [
    b"\n---\n", b"\n...\n",
    b"- ", b"\t", b"\r\n", b"\0", b"\xff", b"{", b"}", b"[", b"]", b'"', b"'", b"|\n", b": ", b"&a ", b"*a",
    b"null", b"!!python/object:os.system ", b"<<: ", b"-1", b"1e999",
    b"items:\n", b"\nkind: List\n", b"\n", b"  ", b"#", b"\\u0000",
    b"9" * 400, b"\xef\xbb\xbf",
]  # fmt: skip


def texts() -> dict[str, bytes]:
    listed = {"apiVersion": "v1", "items": OBJECTS, "kind": "List", "metadata": {"resourceVersion": ""}}
    return {
        "printed.json": json.dumps(listed, indent=4).encode() + b"\n",
        "compact.json": json.dumps(listed).encode(),
        "lines.json": b"\n".join(json.dumps(o).encode() for o in OBJECTS),
        "list.yaml": yaml.safe_dump(listed).encode(),
        "documents.yaml": yaml.safe_dump_all(OBJECTS).encode(),
    }


TEXTS = texts()


class Quoting(yaml.SafeDumper):
    """Quotes whatever a reader of YAML 1.1 or 1.2 could take for something else than text, as kubectl does."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if isinstance(yaml_tree.scalar(text), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Quoting.add_representer(str, _quoted)


def ends_well(content: bytes, name: str) -> Snapshot | BadInput:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(content)
        try:
            found = read_snapshot(str(file), now_s=0.0)
        except BadInput as refused:
            assert refused.exit_code == UNREADABLE and str(file) in refused.where
            return refused
    assert isinstance(found, Snapshot)
    return found


@st.composite
def damaged(draw):
    """(name, bytes): a dump with pieces cut out, put in, doubled, or with its end missing."""
    name = draw(st.sampled_from(sorted(TEXTS)))
    content = TEXTS[name]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        action = draw(st.sampled_from(["cut", "put", "double", "end", "line", "byte"]))
        length = draw(st.sampled_from([1, 2, 7, 40, 400, 4000]))
        if action == "cut":
            content = content[:at] + content[at + length :]
        elif action == "put":
            content = content[:at] + draw(st.sampled_from(FRAGMENTS)) + content[at:]
        elif action == "double":
            content = content[: at + length] + content[at:]
        elif action == "end":
            content = content[:at]
        elif action == "line":
            start = content.rfind(b"\n", 0, at) + 1
            content = content[:start] + content[content.find(b"\n", at) + 1 :]
        elif content:
            at = min(at, len(content) - 1)
            content = content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]
    return name, content


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(damaged())
def test_damaged_text_ends_in_a_snapshot_or_a_refusal(name_and_content):
    ends_well(name_and_content[1], name_and_content[0])


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"{", b"apiVersion: v1\nkind: Pod\n", b'{"items": [', b"\x1f\x8b\x08"]),
)
def test_any_bytes_end_in_a_snapshot_or_a_refusal(content, start):
    ends_well(start + content, "any")


ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2**70,
        1.5,
        float("inf"),
        "",
        "x",
        "-5",
        "1e99",
        [],
        {},
        [None],
        [[]],
        {"": None},
        {"a": [1]},
        "\n---\n",
        "*a",
    ]
)


def paths(value, at=()):
    """Places in a tree, each as its keys."""
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*at, key))


def is_unread(place):
    """Annotations that decide nothing fall away from YAML as text, whatever they hold."""
    return "annotations" in place and str(place[-1]).encode() in dump_yaml.UNREAD_ANNOTATIONS.split()


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**9), st.lists(ODD, min_size=1, max_size=3), st.booleans())
def test_odd_values_end_alike_in_json_and_yaml(seed, values, with_key):
    rng = random.Random(seed)
    things = json.loads(json.dumps([OBJECTS[0], OBJECTS[1], OBJECTS[4]]))
    for value in values:
        place = rng.choice([p for p in paths(things) if len(p) > 1 and not is_unread(p)])
        parent = things
        for key in place[:-1]:
            parent = parent[key]
        if with_key and isinstance(parent, dict):
            parent["unknownField"] = value
        else:
            parent[place[-1]] = value
    listed = {"apiVersion": "v1", "items": things, "kind": "List"}
    if any(v == float("inf") for v in values):
        ends_well(yaml.dump(listed, Dumper=Quoting).encode(), "d.yaml")
        return
    ends = [
        ends_well(json.dumps(listed).encode(), "d.json"),
        ends_well(yaml.dump(listed, Dumper=Quoting).encode(), "d.yaml"),
    ]
    assert isinstance(ends[0], Snapshot) == isinstance(ends[1], Snapshot), ends
    if isinstance(ends[0], Snapshot):
        assert ends[0] == ends[1]


# ---- cutting YAML

TEXT = st.text(st.sampled_from("ab:-#'\"{}[]&*!|>%@`\n\t ,.0é"), max_size=12)
VALUES = st.recursive(
    TEXT | st.booleans() | st.none() | st.integers(-5, 5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["a", "name", "args", "image", "- x", "k: v"]), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
VOLUMES = [{"name": "v", "configMap": {"name": "x"}}, {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": TEXT},
        optional={
            "args": st.lists(TEXT, max_size=2), "command": st.lists(TEXT, max_size=2), "image": TEXT, "env": VALUES,
            "livenessProbe": VALUES, "volumeMounts": VALUES, "zz": VALUES,
            "resources": st.fixed_dictionaries({}, optional={"limits": st.just({"cpu": "1"}), "claims": VALUES}),
        },
    ),
    min_size=1, max_size=3,
)  # fmt: skip
PODS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.fixed_dictionaries(
            {"name": st.just("a")},
            optional={
                "managedFields": VALUES, "labels": st.dictionaries(TEXT, TEXT, max_size=3),
                "annotations": st.dictionaries(TEXT | st.just(APPLIED), TEXT, max_size=3),
                "finalizers": VALUES,
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": CONTAINERS},
            optional={"initContainers": CONTAINERS, "nodeName": TEXT, "hostAliases": VALUES, "securityContext": VALUES,
                      "volumes": st.just(VOLUMES)},
        ),
    },
    optional={
        "status": st.fixed_dictionaries(
            {},
            optional={
                "phase": TEXT, "conditions": VALUES, "hostIPs": VALUES,
                "containerStatuses": st.lists(st.fixed_dictionaries({"name": TEXT}, optional={"zz": VALUES})),
            },
        ),
    },
)  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(PODS, min_size=1, max_size=2),
    st.booleans(),
    st.sampled_from([20, 80, 10**6]),
    st.booleans(),
    st.booleans(),
)
def test_cutting_yaml_reads_what_parsing_it_whole_reads(things, unicode, width, listed, indented):
    class Indented(Quoting):
        def increase_indent(self, flow=False, indentless=False):
            return super().increase_indent(flow, False if indented else indentless)

    options = {"Dumper": Indented, "width": width, "allow_unicode": unicode}
    value = {"apiVersion": "v1", "items": things, "kind": "List"} if listed else things[0]
    text = yaml.dump(value, **options).encode()
    assume(yaml.safe_load(text) == value)  # PyYAML wraps some texts wrongly where lines are short and indents deep
    found = [value for _, _, value, _ in dump_yaml.objects(text, "d.yaml")]
    tree = yaml_tree.parse(text)
    whole = tree["items"] if listed else [tree]
    assert whole == (things if listed else things[:1])
    assert [forget_empty(f) for f in found] == [forget_empty(msgspec.convert(thing, wire.Pod)) for thing in whole]


def forget_empty(pod: wire.Pod) -> wire.Pod:
    """Without the annotation that is cut as text where that is possible, and read where it is not."""
    kept = {k: v for k, v in (pod.metadata.annotations or {}).items() if k != APPLIED}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=kept))


def test_the_benchmark_dump_takes_the_short_way():
    """What kubectl writes is cut, not parsed whole; else the time budget would be lost without a sign."""
    for thing in OBJECTS:
        text = yaml.safe_dump(thing).encode()
        blocks = dump_yaml.split(text)
        assert blocks is not None and set(blocks) == {k.encode() for k in thing}
        for key in ("metadata", "spec", "status"):
            parts = dump_yaml.split(blocks[key.encode()])
            assert parts is not None and set(parts) == {k.encode() for k in thing[key]}
    containers = (
        b"containers:" + dump_yaml.split(dump_yaml.split(yaml.safe_dump(OBJECTS[3]).encode())[b"spec"])[b"containers"]
    )
    assert b"SETTING_3" in containers
    assert b"SETTING_3" not in dump_yaml.without(containers.partition(b"\n")[2], dump_yaml._OF_CONTAINERS)


@pytest.mark.parametrize(
    "text", ["a: &x [*x]", "a: [" * 1200, "? [a]\n: b", "!!set {a}", "a: !!binary AA==", "<<: 1", "%TAG x", "a: \x01"]
)
def test_odd_yaml_is_a_value_or_an_error(text):
    with contextlib.suppress(yaml_tree.YAMLError, RecursionError, UnicodeDecodeError):
        yaml_tree.parse(text.encode())
