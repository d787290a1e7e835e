"""What is deployed of the node agent agrees with what its code reads, writes and asks for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec.structs import fields

from berth.app.agent.configuration import configure
from berth.app.agent.settings import Configuration
from berth.evidence.formats import node_ledger as wire
from berth.node import node_object, status

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def things() -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all((DEPLOY / "agent" / "agent.yaml").read_text()) if one]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [one for one in things() if one["kind"] == kind]
    return found


def status_schema() -> dict[str, Any]:
    crd = yaml.safe_load((DEPLOY / "crds" / "berth.dev_nodeledgers.yaml").read_text())["spec"]
    (version,) = crd["versions"]
    assert crd["names"]["kind"] == wire.KIND and crd["scope"] == "Cluster"
    return dict(version["schema"]["openAPIV3Schema"]["properties"]["status"])


def same(struct: type, schema: dict[str, Any], path: str = "status") -> None:
    """The API server drops a field that it does not know."""
    assert {field.encode_name for field in fields(struct)} == set(schema["properties"]), path
    for field in fields(struct):
        below = schema["properties"][field.encode_name]
        inner = getattr(field.type, "__args__", (field.type,))[0]
        if below["type"] == "array" and below["items"]["type"] == "object":
            same(inner, below["items"], f"{path}.{field.encode_name}")
        elif below["type"] == "object":
            same(field.type, below, f"{path}.{field.encode_name}")


def test_the_schema_has_every_field_that_is_written() -> None:
    same(wire.Status, status_schema())


def test_nothing_is_written_that_the_schema_would_refuse_for_its_length() -> None:
    bounds = status_schema()["properties"]
    assert bounds["devices"]["maxItems"] >= status.MOST_DEVICES
    assert bounds["devices"]["items"]["properties"]["partitions"]["maxItems"] >= status.MOST_PARTITIONS
    assert bounds["given"]["maxItems"] >= status.MOST_ROWS
    assert bounds["offers"]["items"]["properties"]["ids"]["maxItems"] >= status.MOST_IDS
    assert bounds["notSeen"]["maxItems"] >= status.MOST_FEW
    for path in (bounds["message"], bounds["devices"]["items"]["properties"]["evidence"]):
        assert path["maxLength"] >= status.LONGEST


def test_the_configuration_of_the_chart_is_read_and_is_the_default(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(of_kind("ConfigMap")["data"]["agent.yaml"])
    assert configure(str(file)).value == Configuration()


def test_the_schema_of_values_knows_the_whole_configuration() -> None:
    described = json.loads((DEPLOY / "chart" / "values.schema.json").read_text())["properties"]["agent"]["properties"]

    def alike(part: type, schema: dict[str, Any], path: str) -> None:
        assert set(schema["properties"]) == {one.encode_name for one in fields(part)} - {"apiVersion", "kind"}, path
        for field in fields(part):
            if hasattr(field.type, "__struct_fields__"):
                alike(field.type, schema["properties"][field.encode_name], f"{path}.{field.encode_name}")

    alike(Configuration, described["config"], "agent.config")


# How the code says each right.
RIGHTS = {
    ("", "nodes", "get"): r'"GET", node_object\.path_of',
    ("", "pods", "get"): r"/pods/\{name\}",
    ("berth.dev", "nodeledgers", "get"): r'"GET", ledger_path',
    ("berth.dev", "nodeledgers", "create"): r"post\(f\"/apis/\{GROUP\}",
    ("berth.dev", "nodeledgers/status", "patch"): r"\{path\}/status",
    ("", "nodes/status", "patch"): r"path_of\(self\._node\)\}/status",
    ("events.k8s.io", "events", "create"): r"events\.k8s\.io/v1",
}


def test_the_role_grants_what_the_agent_does_and_no_more() -> None:
    granted = {
        (group, resource, verb)
        for rule in of_kind("ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == set(RIGHTS)
    code = "\n".join(path.read_text() for path in (ROOT / "src" / "berth" / "node").glob("*.py"))
    assert not [right for right, said in RIGHTS.items() if not re.search(said, code)]


def test_the_policy_speaks_of_what_the_code_writes() -> None:
    policy = json.dumps(of_kind("ValidatingAdmissionPolicy"))
    for name in (node_object.CONDITION, node_object.TAINT, node_object.CORDONED, wire.RESOURCE):
        assert name in policy, name
    assert f":{of_kind('ServiceAccount')['metadata']['name']}'" in policy
    (binding,) = [one for one in things() if one["kind"] == "ValidatingAdmissionPolicyBinding"]
    assert binding["spec"] == {
        "policyName": of_kind("ValidatingAdmissionPolicy")["metadata"]["name"], "validationActions": ["Deny"]
    }  # fmt: skip


def test_the_pod_sees_the_machine_and_may_not_write_to_its_disk() -> None:
    spec = of_kind("DaemonSet")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {one["name"]: one for one in container["volumeMounts"]}
    assert mounts["host"] == {
        "name": "host", "mountPath": "/host", "readOnly": True, "mountPropagation": "HostToContainer",
    }  # fmt: skip
    assert spec["hostPID"] is True and "hostNetwork" not in spec
    assert spec["tolerations"] == [{"operator": "Exists"}], "an unfit node is the one to look at"
    paths = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in container["env"] if "valueFrom" in one}
    assert paths == {"NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name"}
    port = msgspec.convert(yaml.safe_load(of_kind("ConfigMap")["data"]["agent.yaml"]), Configuration).server.port
    assert container["ports"][0]["containerPort"] == port


def test_the_image_has_what_the_agent_needs() -> None:
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert "run_lock.py agent >" in dockerfile
    lock = (ROOT / "requirements.lock").read_text()
    assert re.search(r"(?m)^grpcio==", lock) and re.search(r"(?m)^nvidia-ml-py==", lock)


def test_the_namespace_admits_the_pods() -> None:
    namespace = yaml.safe_load((DEPLOY / "agent" / "namespace.yaml").read_text())
    kustomization = yaml.safe_load((DEPLOY / "agent" / "kustomization.yaml").read_text())
    assert kustomization["namespace"] == namespace["metadata"]["name"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert of_kind("DaemonSet")["spec"]["template"]["spec"]["containers"][0]["securityContext"]["privileged"] is True
