"""A gang that may begin with fewer than all is told so: "fits now" is not "all of it runs now"."""

from __future__ import annotations

import json

import pytest
from cli_runs import here

NODE = """
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {
    capacity: {cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "8"},
    allocatable: {cpu: "64", memory: 256Gi, pods: "110", nvidia.com/gpu: "8"},
    conditions: [{type: Ready, status: "True"}]}}
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: vj, namespace: ml}
spec:
  minAvailable: %d
  tasks:
  - name: w
    replicas: 3
    template: {spec: {containers: [{name: m, image: x, resources: {limits: {nvidia.com/gpu: "4"}}}]}}
"""


@pytest.mark.parametrize(("least", "words"), [(2, "It starts with 2 of 3 pods, 8 of 12 GPUs"), (3, "")])
def test_it_says_how_many_start(tmp_path, least, words):
    (tmp_path / "dump.yaml").write_text(f"apiVersion: v1\nkind: List\nitems:\n{NODE}")
    (tmp_path / "job.yaml").write_text(JOB % least)
    ran = here("check", "-f", str(tmp_path / "job.yaml"), "--from", str(tmp_path / "dump.yaml"), "-o", "json")
    (answer,) = json.loads(ran.out)["answers"]
    assert any(one.startswith(words) for one in answer["remarks"]) if words else answer["verdict"] != "Fits"
