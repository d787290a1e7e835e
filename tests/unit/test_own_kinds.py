"""Berth's own kinds in files are held to the rules of their custom resources, and to what there is in the cluster."""

from __future__ import annotations

import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from dump_objects import NODE

from berth.base.errors import USAGE, BadInput
from berth.sources.assemble import read_snapshot
from berth.sources.dump import Dump
from berth.sources.dump_kinds import CHECKED
from berth.sources.schema import _TYPES, checked, schemas
from berth.sources.schema_rules import PATTERNS, RULES

ROOT = Path(__file__).parents[2]
# What of OpenAPI the checks know; another keyword in a schema would be a rule that nobody applies.
KNOWN = {
    "type", "required", "properties", "additionalProperties", "items", "enum", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "pattern",
    "format", "x-kubernetes-validations", "x-kubernetes-list-type",
}  # fmt: skip
GOOD: dict[str, dict[str, Any]] = {
    "GPUQueue": {
        "parent": "science", "weight": 2, "quota": {"H100-80GB": 4}, "limit": {"*": 8}, "namespaces": ["a"],
        "borrowing": True, "lending": False, "reclaim": "Any", "maxTimeLimit": "7d", "preemptible": True,
        "allowedClasses": ["H100-80GB"], "sharing": ["exclusive", "mig"], "checkpointRequired": True,
        "defaults": {"time-limit": "1d", "gpu-compute": "9.0", "preemptible": "true"},
    },
    "GPUReservation": {
        "queue": "q", "gpus": 4, "gpuClass": "H100-80GB", "from": "2026-12-01T00:00:00Z",
        "until": "2026-12-24T00:00:00Z",
        "repeat": {"days": ["Mon"], "start": "20:00", "end": "06:00", "timeZone": "Europe/Berlin"},
    },
    "GPUTopology": {"levels": [{"name": "rack", "label": "example.com/rack"}]},
    "GPUClass": {"match": {"pool": "h100-*"}, "class": "H100-80GB", "memory": "80Gi", "compute": "9.0",
                 "precision": ["fp8"], "valuePerHour": 2.5},
}  # fmt: skip
# (kind, what is written over the good spec; None takes it out, field, what is said)
BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("GPUQueue", {"parent": "it"}, "spec.parent", "its own parent"),
    ("GPUQueue", {"parent": 7}, "spec.parent", "is 7: text is needed"),
    ("GPUQueue", {"weight": -1}, "spec.weight", "is -1: it has to be 0 or more"),
    ("GPUQueue", {"weight": 2.5}, "spec.weight", "a whole number is needed"),
    ("GPUQueue", {"quota": {"*": -8}}, 'spec.quota["*"]', "is -8: it has to be 0 or more"),
    ("GPUQueue", {"limit": {"H100-80GB": 2}}, "spec.quota", "quota is above limit"),
    ("GPUQueue", {"limit": {"*": 3}}, "spec.quota", "above the limit for all classes"),
    ("GPUQueue", {"limit": 8}, "spec.limit", "a mapping is needed"),
    ("GPUQueue", {"borrowing": False, "quota": None}, "spec.borrowing", "does not borrow"),
    ("GPUQueue", {"borrowing": "false"}, "spec.borrowing", "true or false is needed"),
    ("GPUQueue", {"reclaim": "any"}, "spec.reclaim", "Did you mean Any?"),
    ("GPUQueue", {"sharing": ["mig", "exclusiv"]}, "spec.sharing[1]", "Did you mean exclusive?"),
    ("GPUQueue", {"sharing": ["mig", "mig"]}, "spec.sharing[1]", "in the list already"),
    ("GPUQueue", {"maxTimeLimit": "a week"}, "spec.maxTimeLimit", "no duration. Write 90s"),
    ("GPUQueue", {"defaults": {"gpu-compute": "nine"}}, 'spec.defaults.gpu-compute', "no compute capability"),
    ("GPUQueue", {"preemptible": False}, "spec.preemptible", "disagree"),
    ("GPUQueue", {"parent": "a" * 64}, "spec.parent", "has 64 characters: 63 at most"),
    ("GPUReservation", {"queue": None}, "spec", "queue or workload"),
    ("GPUReservation", {"workload": {"name": "w"}}, "spec", "queue or workload"),
    ("GPUReservation", {"workload": {}, "queue": None}, "spec.workload.name", "is missing"),
    ("GPUReservation", {"gpus": None, "gpuClass": None}, "spec", "say what is kept"),
    ("GPUReservation", {"gpus": 0}, "spec.gpus", "is 0: it has to be 1 or more"),
    ("GPUReservation", {"gpus": 10**7}, "spec.gpus", "1,000,000 or less"),
    ("GPUReservation", {"gpus": None, "domain": {"level": "rack", "name": "r"}}, "spec.gpuClass", "how many GPUs"),
    ("GPUReservation", {"nodes": ["n"]}, "spec.nodes", "kept whole"),
    ("GPUReservation", {"from": "tomorrow"}, "spec.from", "it is no moment. Write it like 2026-12-01T08:00:00Z"),
    ("GPUReservation", {"from": "2026-02-30T00:00:00Z"}, "spec.from", "it is no moment"),
    ("GPUReservation", {"until": "2026-11-01T00:00:00+01:00"}, "spec.until", "ends before it begins"),
    ("GPUReservation", {"repeat": {"days": ["Monday"]}}, "spec.repeat.days[0]", "Did you mean Mon?"),
    ("GPUReservation", {"repeat": {"start": "8:00"}}, "spec.repeat.start", "no time of day"),
    ("GPUReservation", {"repeat": {"end": "24:01"}}, "spec.repeat.end", "no time of day"),
    ("GPUReservation", {"repeat": {"timeZone": "+01:00"}}, "spec.repeat.timeZone", "no time zone"),
    ("GPUReservation", {"repeat": {}}, "spec.repeat", "is empty"),
    ("GPUTopology", {"levels": []}, "spec.levels", "is an empty list"),
    ("GPUTopology", {"levels": [{"name": "rack"}]}, "spec.levels[0].label", "is missing"),
    ("GPUTopology", {"levels": [{"name": "a rack", "label": "r"}]}, "spec.levels[0].name", "no word for a level"),
    ("GPUTopology", {"levels": [{"name": "rack", "label": "a b"}]}, "spec.levels[0].label", "no key of a label"),
    ("GPUTopology", {"levels": [{"name": "r", "label": "a"}, {"name": "r", "label": "b"}]}, "spec.levels", "one name"),
    ("GPUTopology", {"levels": [{"name": "a", "label": "r"}, {"name": "b", "label": "r"}]}, "spec.levels", "one label"),
    ("GPUTopology", {"levels": [{"name": "host", "label": "kubernetes.io/hostname"}]}, "spec.levels", "is not listed"),
    ("GPUClass", {"match": {}}, "spec.match", "is empty"),
    ("GPUClass", {"match": None}, "spec.match", "is missing"),
    ("GPUClass", {"class": "H100 80GB"}, "spec.class", "no name of a class"),
    ("GPUClass", {"class": ""}, "spec.class", "is empty"),
    ("GPUClass", {"memory": "lots"}, "spec.memory", "not a quantity"),
    ("GPUClass", {"memory": "0"}, "spec.memory", "not a quantity above 0"),
    ("GPUClass", {"compute": "sm_90"}, "spec.compute", "no compute capability"),
    ("GPUClass", {"precision": ["FP8"]}, "spec.precision[0]", "small letters"),
    ("GPUClass", {"link": "nvlnk"}, "spec.link", "Did you mean nvlink?"),
    ("GPUClass", {"valuePerHour": 0}, "spec.valuePerHour", "more than 0"),
    ("GPUClass", {"valuePerHour": 1000000}, "spec.valuePerHour", "less than 1,000,000"),
]


def thing(kind: str, changes: dict[str, Any] | None = None, name: str = "it") -> dict[str, Any]:
    spec = {**copy.deepcopy(GOOD[kind]), **(changes or {})}
    spec = {key: value for key, value in spec.items() if value is not None}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def written(folder: Path, *things: dict[str, Any], suffix: str = "json") -> str:
    path = folder / f"cluster.{suffix}"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": things}) if suffix == "json" else
                    yaml.safe_dump_all(things))  # fmt: skip
    return str(path)


def inside(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The schema and all in it."""
    below = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [schema, *(one for part in below if isinstance(part, dict) for one in inside(part))]


def test_the_schemas_are_those_of_the_custom_resources() -> None:
    sys.path.insert(0, str(ROOT / "deploy"))
    try:
        import manifests

        for path, text in manifests.packed_schemas().items():
            assert path.read_text(encoding="utf-8") == text, "python deploy/manifests.py"
    finally:
        sys.path.remove(str(ROOT / "deploy"))
    assert schemas().keys() == CHECKED.keys()


def test_every_rule_of_the_schemas_is_known() -> None:
    parts = [part for schema in schemas().values() for part in inside(dict(schema))]
    assert {key for part in parts for key in part} <= KNOWN
    assert {part["type"] for part in parts if "type" in part} <= _TYPES.keys()
    assert {part["pattern"] for part in parts if "pattern" in part} == PATTERNS.keys()
    said = {" ".join(r["rule"].split()) for part in parts for r in part.get("x-kubernetes-validations", ())}
    assert said == RULES.keys()
    assert {part["format"] for part in parts if "format" in part} == {"date-time", "int64"}


def test_every_rule_and_pattern_is_broken_by_one_that_is_told_below(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    monkeypatch.setattr("berth.sources.schema.RULES", Listening(RULES, asked))
    monkeypatch.setattr("berth.sources.schema.PATTERNS", Listening(PATTERNS, asked))
    for kind, changes, _, _ in BAD:
        checked(kind, thing(kind, changes))
    assert set(PATTERNS) <= asked
    broken = {fault.problem for kind, changes, _, _ in BAD for fault in checked(kind, thing(kind, changes)).faults}
    messages = {
        f"{r['message']}." for schema in schemas().values() for part in inside(dict(schema))
        for r in part.get("x-kubernetes-validations", ())
    }  # fmt: skip
    assert {m for m in messages - broken if "63 characters" not in m} == set()


class Listening(dict[str, Any]):
    def __init__(self, inner: dict[str, Any], asked: set[str]) -> None:
        super().__init__(inner)
        self.asked = asked

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)


@pytest.mark.parametrize("kind", GOOD)
def test_what_keeps_the_rules_is_taken(kind: str) -> None:
    assert checked(kind, thing(kind)).faults == ()
    assert checked(kind, thing(kind)).unknown == ()
    assert checked(kind, thing(kind)).value == thing(kind)


@pytest.mark.parametrize(("kind", "changes", "field", "words"), BAD)
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_what_breaks_a_rule_is_refused(
    tmp_path: Path, kind: str, changes: dict[str, Any], field: str, words: str, suffix: str
) -> None:
    file = written(tmp_path, NODE, thing(kind, changes), suffix=suffix)
    with pytest.raises(BadInput) as told:
        list(Dump(file))
    assert told.value.exit_code == USAGE
    assert told.value.where == f"{file}: {kind} it: {field}"
    assert words in told.value.sentence


@pytest.mark.parametrize("kind", ["GPUQueue", "GPUReservation"])
def test_a_name_that_no_label_can_hold_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BadInput, match=r"metadata\.name: .*63 characters"):
        list(Dump(written(tmp_path, thing(kind, name="q" * 64))))


def test_all_fields_to_mend_are_named_at_once(tmp_path: Path) -> None:
    wrong = {"weight": -1, "reclaim": "any", "limit": {"*": -1}}
    more = r"spec\.weight: .* 2 more fields to mend: spec\.limit\[\"\*\"\], spec\.reclaim\."
    with pytest.raises(BadInput, match=more):
        list(Dump(written(tmp_path, thing("GPUQueue", wrong))))


def test_what_is_no_field_is_passed_over_with_a_note(tmp_path: Path) -> None:
    queue = thing("GPUQueue", {"wieght": 3, "wholly-other": 1, "quota": None})
    queue["limit"] = {"*": 2}
    topology = thing("GPUTopology", {"levels": [{"name": "rack", "label": "example.com/rack", "nodeLabel": "x"}]})
    dump = Dump(written(tmp_path, queue, topology))
    found = [one.value for one in dump]
    assert found[0].spec.weight == 2 and found[1].spec.levels[0].node_label is None
    notes = "\n".join(dump.notes)
    assert "GPUQueue it: spec.wieght is no field of a GPUQueue and was passed over; close to it: weight" in notes
    assert "GPUQueue it: limit is no field of a GPUQueue and was passed over; write it under spec: spec.limit" in notes
    assert "spec.wholly-other is no field of a GPUQueue and was passed over; there are parent, weight," in notes
    assert "GPUTopology it: spec.levels[0].nodeLabel is no field" in notes


def test_a_field_that_is_null_counts_as_not_written(tmp_path: Path) -> None:
    queue = thing("GPUQueue")
    queue["spec"]["parent"] = None
    assert next(iter(Dump(written(tmp_path, queue)))).value.spec.parent is None


@pytest.mark.parametrize(
    ("version", "kind", "meant"),
    [
        ("berth.dev/v1alpha1", "GpuQueue", "close to it: GPUQueue"),
        ("berth.dev/v1alpha1", "Queue", "close to it: GPUQueue"),
        ("berth.io/v1", "GPUQueue", "write apiVersion: berth.dev/v1alpha1"),
    ],
)
def test_a_kind_that_is_nearly_one_is_told(tmp_path: Path, version: str, kind: str, meant: str) -> None:
    dump = Dump(written(tmp_path, NODE, {"apiVersion": version, "kind": kind, "metadata": {"name": "q"}}))
    list(dump)
    assert any(f"{kind} of {version} is no kind of Berth" in note and meant in note for note in dump.notes)


def test_verdicts_and_ledgers_are_no_misspelt_kinds(tmp_path: Path) -> None:
    verdict = {"apiVersion": "berth.dev/v1alpha1", "kind": "Verdict", "metadata": {"name": "v"}}
    dump = Dump(written(tmp_path, NODE, verdict))
    list(dump)
    assert not any("is no kind of Berth" in note for note in dump.notes)


def test_what_does_not_go_with_the_cluster_is_a_note(tmp_path: Path) -> None:
    found = read_snapshot(
        written(
            tmp_path,
            NODE,
            thing("GPUQueue", {"parent": "reserch", "quota": {"H100": 4}, "limit": None, "allowedClasses": None}),
            thing("GPUQueue", {"parent": None, "quota": None, "allowedClasses": None}, name="research"),
            thing("GPUReservation", {"queue": "reserach", "gpuClass": None}),
        ),
        now_s=0.0,
    )
    notes = "\n".join(found.notes)
    assert "GPUQueue it: spec.parent is reserch, and there is no such queue (close to it: research)" in notes
    assert "GPUQueue it: no node has GPUs of class H100 (close to it: H100-80GB)" in notes, "all of its problems"
    assert "GPUReservation it: there is no GPUQueue reserach (close to it: research): nobody may enter" in notes


@pytest.mark.parametrize("kind", ["GPUQueue", "GPUReservation", "GPUClass"])
def test_of_two_of_one_name_the_first_is_read_and_told(tmp_path: Path, kind: str) -> None:
    found = read_snapshot(written(tmp_path, NODE, thing(kind), thing(kind)), now_s=0.0)
    assert any("more than once" in note and f"{kind} it" in note for note in found.notes)


def test_the_examples_of_the_documentation_keep_the_rules() -> None:
    seen = set()
    for page in ("docs/api.md", "docs/cli.md"):
        for block in re.findall(r"```yaml\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S):
            for shown in yaml.load_all(block, yaml.BaseLoader):
                if isinstance(shown, dict) and shown.get("kind") in CHECKED:
                    seen.add(shown["kind"])
                    assert checked(shown["kind"], next(iter(parsed(block, shown["kind"])))).faults == ()
    assert seen == CHECKED.keys()


def parsed(block: str, kind: str) -> list[dict[str, Any]]:
    from berth.base.yaml_tree import parse

    found = [parse(part) for part in block.split("\n---\n")]
    return [one for one in found if one["kind"] == kind]


@pytest.mark.parametrize(
    ("queues", "reservation", "words"),
    [
        ([{"quota": {"*": 9}}], {}, "GPUQueue q0: 9 GPUs are guaranteed, and there are 8"),
        ([{"quota": {"H100-80GB": 9}}], {}, "GPUQueue q0: 9 GPUs of class H100-80GB are guaranteed, and there are 8"),
        ([{"quota": {"*": 5}}, {"quota": {"*": 4}}], {},
         "quotas of GPUQueues add up to 9 GPUs, and there are 8: where all are wanted, all are cut"),
        ([{"quota": {"H100-80GB": 5}}, {"quota": {"*": 4}}], {}, "quotas of GPUQueues add up to 9 GPUs, and there"),
        ([{"quota": {"*": 5}, "parent": "q2"}, {"quota": {"*": 4}, "parent": "q2"}, {}], {}, "add up to 9 GPUs"),
        ([{"quota": {"*": 8}}, {"quota": {"*": 8}, "parent": "q0"}], {}, ""),
        ([{"quota": {"*": 4}}, {"quota": {"H100-80GB": 4}}], {}, ""),
        ([{"quota": {"*": 4}, "parent": "q1"}, {"limit": {"*": 2}}], {},
         "GPUQueue q0: 4 GPUs are guaranteed, and queue q1 above it has a limit of 2"),
        ([{"quota": {"*": 4}, "parent": "q1"}, {"limit": {"*": 4}}], {}, ""),
        ([{}], {"queue": "q0", "gpus": 9}, "GPUReservation it: 9 GPUs are to be kept, and there are 8"),
        ([{}], {"queue": "q0", "gpus": 8, "until": "2020-01-01T00:00:00Z"}, "GPUReservation it: its time is over"),
        ([{}], {"queue": "q0", "gpus": 8}, ""),
    ],
)  # fmt: skip
def test_what_nobody_can_keep_is_a_note(
    tmp_path: Path, queues: list[dict[str, Any]], reservation: dict[str, Any], words: str
) -> None:
    head = {"apiVersion": "berth.dev/v1alpha1"}
    things = [{**head, "kind": "GPUQueue", "metadata": {"name": f"q{i}"}, "spec": s} for i, s in enumerate(queues)]
    if reservation:
        things.append({**head, "kind": "GPUReservation", "metadata": {"name": "it"}, "spec": reservation})
    found = read_snapshot(written(tmp_path, NODE, *things), now_s=1.8e9)
    told = [note for note in found.notes if note.startswith(("GPUQueue", "GPUReservation", "quotas of"))]
    assert [words in note for note in told] == ([True] if words else [])
