"""`--topology`: any list of label keys as levels."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from berth.app.cli.main import cli
from berth.base.errors import BadInput


def node(name: str, pod: str) -> dict:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "8"}
    labels = {"kubernetes.io/hostname": name, "example.com/pod": pod, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}],
        },
    }  # fmt: skip


@pytest.fixture
def dump(tmp_path):
    items = [node("a", "p1"), node("b", "p1"), node("c", "p2")]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


@pytest.mark.parametrize("levels", ["superpod=example.com/pod", "example.com/pod"])
def test_levels_by_any_label(dump, levels):
    name = levels.partition("=")[0]
    found = CliRunner().invoke(cli, ["free", "--from", dump, "--topology", levels, "--by", name, "-o", "json"])
    assert found.exit_code == 0, found.output
    classes = json.loads(found.output)["classes"]
    assert {c["domain"]: c["gpus"] for c in classes} == {"p1": 16, "p2": 8}


@pytest.mark.parametrize("levels", ["", "=x", "rack=", "a=x,a=y", "a,,b"])
def test_what_is_no_level_is_refused(dump, levels):
    found = CliRunner().invoke(cli, ["free", "--from", dump, "--topology", levels])
    assert found.exit_code == 2
    assert "--topology" in found.output


@pytest.mark.parametrize("command", ["nodes", "free"])
def test_a_label_that_no_node_carries_is_a_mistake_of_who_typed_it(dump, command):
    found = CliRunner().invoke(cli, [command, "--from", dump, "--topology", "rack=example.com/pud"])
    assert isinstance(found.exception, BadInput) and found.exception.exit_code == 2
    assert found.exception.sentence == (
        "--topology rack=example.com/pud: no node carries the label example.com/pud. Close to it: example.com/pod."
    )
