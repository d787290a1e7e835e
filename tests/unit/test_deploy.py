"""What is deployed agrees with what the code reads: kinds, rights, configuration, chart, image."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import yaml
from msgspec.structs import fields

from berth.actions import verdicts
from berth.app.scheduler.configuration import configure
from berth.app.scheduler.rights import rights as needed_rights
from berth.app.scheduler.settings import Configuration
from berth.dialects.groups import KAI, PLUGINS, UPSTREAM, VOLCANO
from berth.kube import wire_reservations, wire_verdict
from berth.kube.wire_queues import QueueSpec, TopologyLevel
from berth.model import gpu_mapping
from berth.model.queue import Reclaim
from berth.model.reasons import Answer, Cause, Reason
from berth.sources import bookings
from berth.sources.governing import DEFAULT_KEYS
from berth.sources.live.kinds import FOLLOWED

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CRDS = sorted((DEPLOY / "crds").glob("berth.dev_*.yaml"))
KUSTOMIZED = DEPLOY / "kustomize" / "berth.yaml"
READS = ("get", "list", "watch")
OURS = {"GPUQueue", "GPUReservation", "GPUTopology", "GPUClass", "NodeLedger", "Verdict"}


def script(path: str) -> ModuleType:
    """A program of deploy/, which is no package."""
    spec = spec_from_file_location(Path(path).stem, DEPLOY / path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


manifests = script("manifests.py")
run_lock = script("image/run_lock.py")


def schema_of(kind: str) -> dict[str, Any]:
    for path in CRDS:
        crd = yaml.safe_load(path.read_text())["spec"]
        if crd["names"]["kind"] == kind:
            (version,) = crd["versions"]
            return version["schema"]["openAPIV3Schema"]
    raise AssertionError(f"no CRD of {kind}")


def parts_of(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from parts_of(below, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            yield from parts_of(schema[key], path + mark)


def wire_names(struct: type) -> set[str]:
    return {field.encode_name for field in fields(struct)}


def objects(text: str) -> list[dict[str, Any]]:
    return [thing for thing in yaml.safe_load_all(text) if thing]


def named(things: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = [thing for thing in things if (thing["kind"], thing["metadata"]["name"]) == (kind, name)]
    return found


def rights(rules: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """(group, resource, verb)."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


# ---- kinds


def test_every_kind_of_ours_has_its_definition() -> None:
    found = [yaml.safe_load(path.read_text()) for path in CRDS]
    assert {crd["spec"]["names"]["kind"] for crd in found} == OURS
    for path, crd in zip(CRDS, found, strict=True):
        names = crd["spec"]["names"]
        assert crd["metadata"]["name"] == f"{names['plural']}.berth.dev"
        assert path.name == f"berth.dev_{names['plural']}.yaml"
        assert names["categories"] == ["berth"]
        assert [version["name"] for version in crd["spec"]["versions"]] == ["v1alpha1"]


def test_a_queue_offers_what_is_read_and_nothing_else() -> None:
    assert set(schema_of("GPUQueue")["properties"]["spec"]["properties"]) == wire_names(QueueSpec)


def test_a_queue_gives_defaults_for_keys_that_are_read_from_it() -> None:
    spec = schema_of("GPUQueue")["properties"]["spec"]["properties"]
    assert set(spec["defaults"]["properties"]) == set(DEFAULT_KEYS)
    assert spec["reclaim"]["enum"] == list(get_args(Reclaim))


def test_a_reservation_offers_what_is_read_and_nothing_else() -> None:
    spec = schema_of("GPUReservation")["properties"]["spec"]["properties"]
    assert set(spec) == wire_names(wire_reservations.ReservationSpec)
    assert set(spec["workload"]["properties"]) == wire_names(wire_reservations.WorkloadNamed)
    assert set(spec["domain"]["properties"]) == wire_names(wire_reservations.DomainNamed)
    assert set(spec["repeat"]["properties"]) == wire_names(wire_reservations.Repeated)
    assert spec["repeat"]["properties"]["days"]["items"]["enum"] == list(bookings.DAYS)


def test_a_topology_level_is_read_as_it_is_written() -> None:
    level = schema_of("GPUTopology")["properties"]["spec"]["properties"]["levels"]["items"]
    assert set(level["properties"]) == set(level["required"]) == {"name", "label"}
    assert set(level["properties"]) <= wire_names(TopologyLevel)


def test_a_class_has_the_keys_of_a_mapping_file() -> None:
    spec = schema_of("GPUClass")["properties"]["spec"]
    assert set(spec["properties"]) == set(gpu_mapping._KEYS)
    assert spec["properties"]["link"]["enum"] == [gpu_mapping.NVLINK, gpu_mapping.PCIE]


def test_a_verdict_can_hold_what_is_said() -> None:
    said = schema_of("Verdict")["properties"]
    assert said["verdict"]["enum"] == [answer.value for answer in Answer]
    for reason in Reason:
        assert re.fullmatch(said["reason"]["pattern"], reason.name), reason
    causes = said["causes"]["items"]["properties"]
    assert set(causes) == {field.name for field in fields(Cause)}


def test_a_verdict_is_sent_as_the_schema_has_it() -> None:
    """The API server drops a field that it does not know, and refuses an answer that is too long."""
    said = schema_of("Verdict")["properties"]

    def same(struct: type, schema: dict[str, Any]) -> None:
        assert wire_names(struct) == set(schema["properties"]), struct.__name__

    assert wire_names(wire_verdict.VerdictSaid) == set(said) - {"apiVersion", "kind", "metadata"}
    same(wire_verdict.WorkloadReference, said["workload"])
    same(wire_verdict.CauseSaid, said["causes"]["items"])
    same(wire_verdict.NearestNode, said["causes"]["items"]["properties"]["nearest"]["items"])
    same(wire_verdict.Estimate, said["expectedStart"])
    same(wire_verdict.Eviction, said["lastEviction"])
    cause = said["causes"]["items"]["properties"]
    assert min(said["sentence"]["maxLength"], cause["sentence"]["maxLength"]) >= verdicts._SENTENCE
    assert cause["where"]["maxLength"] >= verdicts._WHERE
    assert min(said["unlock"]["items"]["maxLength"], cause["unlock"]["items"]["maxLength"]) >= verdicts._LINE
    assert said["causes"]["maxItems"] >= verdicts._CAUSES
    assert min(said["unlock"]["maxItems"], cause["unlock"]["maxItems"]) >= verdicts._UNLOCKS
    assert cause["nearest"]["maxItems"] >= verdicts._NEAREST
    assert said["aheadHere"]["maxItems"] >= verdicts.MOST_AHEAD


def test_a_verdict_takes_one_write() -> None:
    """With a status subresource a create would drop the status, and every first verdict would be two writes."""
    for path in CRDS:
        crd = yaml.safe_load(path.read_text())["spec"]
        (version,) = crd["versions"]
        has_subresource = "status" in version.get("subresources", {})
        # A NodeLedger is made once and written for ever: its agent may write the status and nothing else of it.
        of_status = ("GPUQueue", "GPUReservation", "NodeLedger")
        assert has_subresource == (crd["names"]["kind"] in of_status), "of the others Berth writes none"
        assert ("status" in version["schema"]["openAPIV3Schema"]["properties"]) == has_subresource


@pytest.mark.parametrize("kind", sorted(OURS))
def test_schemas_are_structural_bounded_and_told(kind: str) -> None:
    for path, part in parts_of(schema_of(kind)):
        where = f"{kind}{path}"
        assert "type" in part or part.get("x-kubernetes-int-or-string"), where
        assert not part.get("x-kubernetes-preserve-unknown-fields"), f"{where} takes anything"
        if part.get("type") == "array":
            assert "maxItems" in part and "x-kubernetes-list-type" in part, where
        if isinstance(part.get("additionalProperties"), dict):
            assert "maxProperties" in part, where
        for rule in part.get("x-kubernetes-validations", ()):
            assert rule["message"], where
    for path, part in parts_of(schema_of(kind)["properties"].get("spec", {})):
        if path and not path.endswith(("[]", "{}")):
            assert part.get("description"), f"{kind}.spec{path} is not described"


def test_columns_point_at_fields() -> None:
    for file in CRDS:
        (version,) = yaml.safe_load(file.read_text())["spec"]["versions"]
        known = {path for path, _ in parts_of(version["schema"]["openAPIV3Schema"])}
        for column in version["additionalPrinterColumns"]:
            path = re.sub(r"\[\?\(.*?\)\]|\[-?\d+:?\]", "[]", column["jsonPath"])
            assert path in known or path.startswith(".metadata."), f"{file.name}: {column['jsonPath']}"
        for field in version.get("selectableFields", ()):
            assert field["jsonPath"] in known, field


# ---- made from something else


def test_the_chart_carries_the_same_kinds() -> None:
    copied = manifests.copied_crds()
    assert {path.name for path in (DEPLOY / "chart" / "files" / "crds").iterdir()} == {path.name for path in copied}
    for path, text in copied.items():
        assert path.read_text() == text, f"{path.name} differs from deploy/crds: python deploy/manifests.py"
    listed = yaml.safe_load((DEPLOY / "crds" / "kustomization.yaml").read_text())["resources"]
    assert listed == [path.name for path in CRDS]


# ---- rights


def scheduler_rights() -> set[tuple[str, str, str]]:
    things = objects(KUSTOMIZED.read_text())
    return rights(named(things, "ClusterRole", "berth")["rules"])


def test_what_people_may_do_is_to_be_had_without_the_rest() -> None:
    alone = objects((DEPLOY / "people" / "roles.yaml").read_text())
    assert {thing["metadata"]["name"] for thing in alone} >= {"berth-view", "berth-cluster-viewer"}
    for thing in alone:
        assert thing == named(objects(KUSTOMIZED.read_text()), thing["kind"], thing["metadata"]["name"])


TOO_MUCH = {"secrets", "configmaps", "serviceaccounts/token", "pods/exec", "pods/ephemeralcontainers", "nodes/proxy"}


def test_no_wildcard_and_nothing_secret() -> None:
    roles = [thing for thing in objects(KUSTOMIZED.read_text()) if "rules" in thing]
    assert len(roles) >= 6
    for role in roles:
        for rule in role["rules"]:
            where, resources = role["metadata"]["name"], rule.get("resources", ())
            assert "*" not in (*rule.get("apiGroups", ()), *resources, *rule["verbs"]), where
            assert not TOO_MUCH & set(resources), where
            assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"]), where


def test_what_is_followed_may_be_read() -> None:
    granted = scheduler_rights()
    absent = {
        (kind.group, kind.resource, verb)
        for kind in FOLLOWED
        for verb in ("list", "watch")
        if (kind.group, kind.resource, verb) not in granted
    }
    assert not absent


# Granted for what is being built: a name goes from here as soon as the code says it.
AHEAD = {("berth.dev", "gpuclasses")}
WRITES_AHEAD: set[tuple[str, str, str]] = set()
# How the code says each right to write.
WRITES = {
    ("", "pods/binding", "create"): r"/binding\b",
    ("", "pods/status", "patch"): r"/status\b",
    ("", "persistentvolumeclaims", "patch"): r"SELECTED_NODE: node",
    ("", "persistentvolumes", "patch"): r'"claimRef": reference',
    ("events.k8s.io", "events", "create"): r"events\.k8s\.io/v1",
    ("events.k8s.io", "events", "patch"): r"lastObservedTime",
    ("berth.dev", "verdicts", "create"): r"wire_verdict",
    ("berth.dev", "verdicts", "patch"): r"wire_verdict",
    ("berth.dev", "verdicts", "delete"): r"wire_verdict",
    ("berth.dev", "gpuqueues/status", "patch"): r"/gpuqueues/",
    ("berth.dev", "gpureservations/status", "patch"): r"/gpureservations/",
    ("authentication.k8s.io", "tokenreviews", "create"): r"TokenReview",
    ("authorization.k8s.io", "subjectaccessreviews", "create"): r"SubjectAccessReview",
    ("", "pods/eviction", "create"): r"/eviction\b",
    ("", "pods", "delete"): r"DeleteOptions",
    (VOLCANO, "podgroups", "patch"): r"\blet_in\b",
    **{(group, "podgroups/status", "patch"): r"podgroups" for group in (UPSTREAM, PLUGINS, VOLCANO, KAI)},
}


def test_no_right_that_no_code_uses() -> None:
    code = "\n".join(
        file.read_text()
        for folder in ("kube", "sources", "actions", "app")
        for file in (ROOT / "src" / "berth" / folder).rglob("*.py")
    )
    granted = scheduler_rights()
    reads = {(group, resource) for group, resource, verb in granted if verb in READS}
    unread = {(group, resource) for group, resource in reads if not re.search(rf"\b{resource}\b", code)}
    assert unread <= AHEAD, "no code reads these"
    writes = {right for right in granted if right[2] not in READS}
    assert writes == set(WRITES)
    assert {right for right, said in WRITES.items() if not re.search(said, code)} <= WRITES_AHEAD


def test_the_roles_grant_what_the_scheduler_says_that_it_needs() -> None:
    needed = needed_rights(Configuration(), namespace="berth-system")
    everywhere, at_home = set(), set()
    for one in needed:
        resource = f"{one.resource}/{one.subresource}" if one.subresource else one.resource
        (at_home if one.namespace else everywhere).add((one.group, resource, one.verb))
    assert scheduler_rights() == everywhere
    assert rights(named(objects(KUSTOMIZED.read_text()), "Role", "berth-leader")["rules"]) == at_home


def test_the_lease_is_ours_alone() -> None:
    things = objects(KUSTOMIZED.read_text())
    rules = named(things, "Role", "berth-leader")["rules"]
    lease = yaml.safe_load(named(things, "ConfigMap", "berth")["data"]["config.yaml"])["leaderElection"]["name"]
    assert rights(rules) == {("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")}
    for rule in rules:
        assert rule.get("resourceNames") == (None if rule["verbs"] == ["create"] else [lease])
    everywhere = {verb for _, resource, verb in scheduler_rights() if resource == "leases"}
    assert everywhere == {"list"}, "those of others are looked at and left alone"


# ---- configuration and values


def test_the_configuration_of_the_chart_is_read_and_is_the_default(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(named(objects(KUSTOMIZED.read_text()), "ConfigMap", "berth")["data"]["config.yaml"])
    read = configure(str(file), {}, {}).value
    # No namespace in the text: kustomize moves objects to another one, and the Lease is where the scheduler runs.
    assert (read.leader_election.namespace, read.leader_election.name) == ("", "berth")
    default = Configuration()
    for field in fields(Configuration):
        if field.name != "leader_election":
            assert getattr(read, field.name) == getattr(default, field.name), field.name
    for field in fields(type(default.leader_election)):
        if field.name not in ("namespace", "name"):
            assert getattr(read.leader_election, field.name) == getattr(default.leader_election, field.name)


def keys_of(schema: dict[str, Any], path: str = "") -> set[str]:
    """Paths of a schema of values."""
    found: set[str] = set()
    for name, below in schema.get("properties", {}).items():
        found.add(path + name)
        found |= keys_of(below, f"{path}{name}.")
    return found


def values_of(tree: dict[str, Any], path: str = "") -> set[str]:
    found: set[str] = set()
    for name, below in tree.items():
        found.add(path + name)
        if isinstance(below, dict):
            found |= values_of(below, f"{path}{name}.")
    return found


def test_every_value_is_in_the_schema_and_every_other_is_refused() -> None:
    schema = json.loads((DEPLOY / "chart" / "values.schema.json").read_text())
    values = yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text())
    free = tuple(f"{of}resources.{what}." for of in ("", "agent.") for what in ("requests", "limits"))
    written = {path for path in values_of(values) if not path.startswith(free)}
    known = keys_of(schema)
    assert not written - known
    # Those that are left empty stand in a comment only.
    assert known - written == {
        "global", "config.leaderElection.namespace", "config.leaderElection.name", "resources.claims",
        "agent.resources.claims", "agent.config.node", "agent.config.operandNamespaces",
        "agent.config.looks.logWindowSeconds",
        *(f"agent.config.paths.{path}" for path in ("kubelet", "devicePlugins", "logs", "run", "proc")),
    }  # fmt: skip

    def closed(part: dict[str, Any], path: str) -> None:
        if "properties" in part and path:
            assert part["additionalProperties"] is False, path
        for name, below in part.get("properties", {}).items():
            closed(below, f"{path}.{name}")

    closed(schema, "values")


def test_the_schema_knows_the_whole_configuration() -> None:
    schema = json.loads((DEPLOY / "chart" / "values.schema.json").read_text())["properties"]["config"]

    def same(part: type, described: dict[str, Any], path: str) -> None:
        names = {field.encode_name for field in fields(part)} - {"apiVersion", "kind"}
        assert set(described["properties"]) == names, path
        for field in fields(part):
            if hasattr(field.type, "__struct_fields__"):
                same(field.type, described["properties"][field.encode_name], f"{path}.{field.encode_name}")

    same(Configuration, schema, "config")


# ---- pods


def test_the_pod_is_locked_down() -> None:
    things = objects(KUSTOMIZED.read_text())
    spec = named(things, "Deployment", "berth")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])
    assert spec["schedulerName"] == "default-scheduler", "a scheduler that schedules itself never starts"
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "http"}


def test_selectors_meet_the_pods() -> None:
    things = objects(KUSTOMIZED.read_text())
    labels = named(things, "Deployment", "berth")["spec"]["template"]["metadata"]["labels"].items()
    selectors = [
        named(things, "Deployment", "berth")["spec"]["selector"]["matchLabels"],
        named(things, "Service", "berth-metrics")["spec"]["selector"],
        named(things, "PodDisruptionBudget", "berth")["spec"]["selector"]["matchLabels"],
        named(things, "NetworkPolicy", "berth")["spec"]["podSelector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector and selector.items() <= labels


# ---- image


def dockerfile() -> list[tuple[str, str]]:
    """(instruction, arguments)."""
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text())
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line and not line.startswith("#")]  # type: ignore[misc]


def test_the_image_copies_what_is_there_and_not_ignored() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert "*" in ignored
    kept = [line[1:] for line in ignored if line.startswith("!")]
    for instruction, arguments in dockerfile():
        if instruction == "COPY" and "--from" not in arguments:
            *sources, _ = [word for word in arguments.split() if not word.startswith("--")]
            for source in sources:
                assert (ROOT / source).exists(), source
                assert any(source == keep or source.startswith(keep + "/") for keep in kept), f"{source} is ignored"
    for keep in kept:
        assert (ROOT / keep).exists(), keep


def test_the_image_is_built_from_hashes_and_runs_without_rights() -> None:
    steps = dockerfile()
    for instruction, arguments in steps:
        if instruction == "RUN":
            for command in arguments.split("&&"):
                if "pip install" in command and "/tmp/wheel" not in command:
                    assert "--require-hashes" in command, command
    last = max(i for i, (instruction, _) in enumerate(steps) if instruction == "FROM")
    final = dict(steps[last:])
    assert int(final["USER"].split(":")[0]) > 0
    things = objects(KUSTOMIZED.read_text())
    pod = named(things, "Deployment", "berth")["spec"]["template"]["spec"]
    assert final["USER"] == "{runAsUser}:{runAsGroup}".format(**pod["securityContext"])
    writable = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"] if not mount.get("readOnly")}
    cache = re.search(r"NUMBA_CACHE_DIR=(\S+)", final["ENV"])
    assert cache is not None and cache[1] in writable, "compiled code is read only from where it may be written"
    processors = [m for i, a in steps if i == "ENV" for m in re.findall(r"NUMBA_CPU_NAME=(\S+)", a)]
    assert processors == ["generic", "generic"], "compiled for one processor, run on another: compiled again"


def test_only_libraries_that_run_are_in_the_image() -> None:
    names = run_lock.needed(ROOT)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for requirement in project["dependencies"]:
        assert re.split(r"[<>=!~ ;\[]", requirement)[0].lower() in names
    assert "llvmlite" in names and "pygments" in names, "what the dependencies bring along"
    assert not names & {"pytest", "mypy", "ruff", "scipy", "matplotlib", "hypothesis"}
    lock = (ROOT / "requirements.lock").read_text()
    part = run_lock.part_of(lock, names)
    pinned = re.findall(r"(?m)^([A-Za-z0-9._-]+)==", part)
    assert set(pinned) == names
    assert all("--hash=sha256:" in entry for entry in run_lock.ENTRY.split(part) if entry.strip())
    with pytest.raises(LookupError, match="no such-thing"):
        run_lock.part_of(lock, {"such-thing"})
