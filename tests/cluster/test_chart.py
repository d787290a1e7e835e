"""The chart on a real API server: what helm installs, who may do what with it, what the kinds take and refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from berth.app.scheduler.configuration import configure
from berth.app.scheduler.rights import FOREIGN
from devcluster import Admin, Cluster, Options, binaries
from devcluster.api import Refused
from devcluster.binaries import MissingBinaries

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"
NAMESPACE = "berth-system"
SCHEDULER = f"system:serviceaccount:{NAMESPACE}:berth"
ANOTHER = "system:serviceaccount:default:default"
VALUES = ("admission.setSchedulerName=true", "admission.requireSchedulerName=true", "replicas=2")
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
READS = ("get", "list", "watch")
Things = list[dict[str, Any]]


@pytest.fixture(scope="module")
def helm() -> str:
    try:
        return str(binaries.program("helm"))
    except MissingBinaries as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def manifests() -> ModuleType:
    """deploy/manifests.py, which is no package."""
    spec = spec_from_file_location("manifests", ROOT / "deploy" / "manifests.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def render(helm: str, manifests: ModuleType) -> Callable[..., Things]:
    """render("shadow=true"): the chart's objects with these values."""

    def rendered(*values: str) -> Things:
        text = manifests.rendered(helm, *values, kubernetes=Options().kubernetes)
        return [thing for thing in yaml.safe_load_all(text) if thing]

    return rendered


@pytest.fixture(scope="module")
def installed(control_plane: Cluster, helm: str) -> Iterator[Cluster]:
    """The control plane with the chart in it, policies included; without pods, which would be made again for ever."""
    run_helm(control_plane, helm, "install", "berth", str(CHART), "--create-namespace", "--take-ownership",
             "--set=" + ",".join(VALUES))  # fmt: skip
    none = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-pods", "namespace": NAMESPACE}}
    control_plane.admin.create(none | {"spec": {"hard": {"pods": "0"}}})
    yield control_plane
    run_helm(control_plane, helm, "uninstall", "berth")
    control_plane.admin.delete(f"/api/v1/namespaces/{NAMESPACE}")


def run_helm(cluster: Cluster, helm: str, *arguments: str) -> str:
    command = [helm, *arguments, "--namespace", NAMESPACE, "--kubeconfig", str(cluster.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def named(things: Things, kind: str, name: str) -> dict[str, Any]:
    (found,) = [thing for thing in things if (thing["kind"], thing["metadata"]["name"]) == (kind, name)]
    return found


def rights(rules: Things) -> set[tuple[str, str, str]]:
    """(group, resource, verb)."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def may(admin: Admin, user: str, right: tuple[str, str, str], namespace: str = "", name: str = "") -> bool:
    """The API server's own answer."""
    group, resource, verb = right
    resource, _, below = resource.partition("/")
    asked = {"group": group, "resource": resource, "subresource": below, "verb": verb, "namespace": namespace}
    spec = {"user": user, "groups": ["system:authenticated"], "resourceAttributes": asked | {"name": name}}
    if user.startswith("system:serviceaccount:"):
        spec["groups"] += ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(admin.request("POST", path, review)["status"]["allowed"])


# ---- rendered


def test_the_chart_passes_lint(helm: str) -> None:
    done = subprocess.run([helm, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kubectl_apply_installs_what_the_chart_installs(helm: str, manifests: ModuleType) -> None:
    for path, text in manifests.for_kustomize(helm).items():
        assert path.read_text() == text, f"{path}: python deploy/manifests.py"


def test_preemption_off_takes_no_right_to_remove_pods(render: Callable[..., Things]) -> None:
    usual = rights(named(render(), "ClusterRole", "berth")["rules"])
    careful = rights(named(render("config.preemption.enabled=false"), "ClusterRole", "berth")["rules"])
    assert usual - careful == {("", "pods", "delete"), ("", "pods/eviction", "create")}
    assert not careful - usual


def test_shadow_has_no_right_to_write(render: Callable[..., Things]) -> None:
    things = render("shadow=true")
    assert not [thing for thing in things if thing["kind"] in ("Role", "RoleBinding", "PodDisruptionBudget")]
    for group, _, verb in rights(named(things, "ClusterRole", "berth")["rules"]):
        assert verb in READS or group in ("authentication.k8s.io", "authorization.k8s.io")
    deployment = named(things, "Deployment", "berth")["spec"]
    assert deployment["replicas"] == 1
    assert "--shadow" in deployment["template"]["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("name", list(FOREIGN))
def test_a_shadow_reads_leases_of_others_only_where_their_names_are_served(
    name: str, render: Callable[..., Things]
) -> None:
    usual = rights(named(render("shadow=true"), "ClusterRole", "berth")["rules"])
    names = f"config.schedulerNames={{berth,{name}}}"
    served = rights(named(render("shadow=true", names), "ClusterRole", "berth")["rules"])
    assert served - usual == {("coordination.k8s.io", "leases", "list")}
    assert rights(named(render(names), "ClusterRole", "berth")["rules"]) >= served


@pytest.mark.parametrize("value", ["replica=3", "config.batch.window=1", "config.logLevel=loud", "replicas=0"])
def test_a_wrong_value_is_refused(value: str, helm: str, manifests: ModuleType) -> None:
    with pytest.raises(SystemExit, match="schema"):
        manifests.rendered(helm, value)


LEVELS = "config.topology.levels"


@pytest.mark.parametrize(("values", "said"), [
    (["config.batch.windowMs=100"], "windowMs 100 is above mostMs 50"),
    (["config.leaderElection.renewSeconds=100"], "renewSeconds 100 and leaseSeconds 15 must rise"),
    (["config.leaderElection.enabled=false"], "Set replicas=1"),
    (["config.gpuClasses=a: : b"], "config.gpuClasses: is no YAML"),
    ([f"{LEVELS}[0].name=a", f"{LEVELS}[0].label=x", f"{LEVELS}[1].name=a", f"{LEVELS}[1].label=y"],
     "the level a is there twice"),
    ([f"{LEVELS}[0].name=a", f"{LEVELS}[0].label=x", f"{LEVELS}[1].name=b", f"{LEVELS}[1].label=x"],
     "the label x is of two levels"),
])  # fmt: skip
def test_what_the_scheduler_would_refuse_at_start_is_refused(
    values: list[str], said: str, helm: str, manifests: ModuleType
) -> None:
    with pytest.raises(SystemExit, match=re.escape(said)):
        manifests.rendered(helm, *values)


@pytest.mark.parametrize("values", [
    ["config.batch.windowMs=0", "config.batch.mostMs=0"], ["config.leaderElection.enabled=false", "replicas=1"],
    [f"{LEVELS}[0].name=rack", f"{LEVELS}[0].label=example.com/rack"],
])  # fmt: skip
def test_what_the_chart_takes_the_scheduler_takes(
    values: list[str], render: Callable[..., Things], tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(named(render(*values), "ConfigMap", "berth")["data"]["config.yaml"])
    configure(str(file))


# ---- installed


def test_the_api_server_takes_all_of_it(installed: Cluster, render: Callable[..., Things]) -> None:
    for thing in render(*VALUES):
        found = installed.admin.get(
            installed.admin.path_of(thing | {"metadata": {"namespace": NAMESPACE} | thing["metadata"]})
        )
        assert found["metadata"]["name"] == thing["metadata"]["name"]


def test_so_it_does_by_kubectl(installed: Cluster) -> None:
    said = installed.kubectl(
        "apply", "--dry-run=server", "--server-side", "--force-conflicts", "-k", str(ROOT / "deploy/kustomize")
    )
    assert "deployment.apps/berth serverside-applied" in said


def test_an_upgrade_with_another_value_rolls_the_pods_out_anew(installed: Cluster, helm: str) -> None:
    deployment = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/berth"
    before = installed.admin.get(deployment)["spec"]["template"]["metadata"]["annotations"]["berth.dev/config-hash"]
    run_helm(installed, helm, "upgrade", "berth", str(CHART), "--reuse-values", "--set=config.logLevel=debug")
    after = installed.admin.get(deployment)["spec"]["template"]["metadata"]["annotations"]["berth.dev/config-hash"]
    assert before != after
    run_helm(installed, helm, "rollback", "berth", "1")
    assert (
        installed.admin.get(deployment)["spec"]["template"]["metadata"]["annotations"]["berth.dev/config-hash"]
        == before
    )


def test_queues_outlive_the_release(installed: Cluster) -> None:
    for kind in installed.admin.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"):
        if kind["spec"]["group"] == "berth.dev":
            assert kind["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


# ---- rights


def test_the_scheduler_may_do_what_its_role_says_and_nothing_else(
    installed: Cluster, render: Callable[..., Things]
) -> None:
    """Every verb on every resource that the server has is asked for, in two namespaces."""
    admin = installed.admin
    granted = rights(named(render(), "ClusterRole", "berth")["rules"])
    asked, refused, wrong = 0, 0, []
    for group, resource, namespaced in resources_of(admin):
        for verb in VERBS:
            right = (group, resource, verb)
            for namespace in ("default", NAMESPACE) if namespaced else ("",):
                leads = right == ("coordination.k8s.io", "leases", "create") and namespace == NAMESPACE
                allowed = may(admin, SCHEDULER, right, namespace)
                asked, refused = asked + 1, refused + (not allowed)
                # What every ServiceAccount may do, such as asking for its rights, is not ours to grant or to refuse.
                if allowed != (right in granted or leads) and allowed != may(admin, ANOTHER, right, namespace):
                    wrong.append((right, namespace, allowed))
    assert not wrong
    assert refused > 0.7 * asked > 700
    for verb in ("get", "update"):
        lease = ("coordination.k8s.io", "leases", verb)
        assert may(admin, SCHEDULER, lease, NAMESPACE, "berth")
        assert not may(admin, SCHEDULER, lease, NAMESPACE, "another")
        assert not may(admin, SCHEDULER, lease, "kube-system", "berth")


def resources_of(admin: Admin) -> Iterator[tuple[str, str, bool]]:
    """(group, resource, is namespaced) of all that the server serves, subresources included."""
    roots = ["/api/v1"]
    for group in admin.get("/apis")["groups"]:
        roots += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    seen = set()
    for root in roots:
        group = root.split("/")[2] if root.startswith("/apis/") else ""
        for resource in admin.get(root)["resources"]:
            key = (group, resource["name"], resource["namespaced"])
            if key not in seen:
                seen.add(key)
                yield key


def test_a_viewer_of_one_namespace_sees_its_verdicts_and_no_others(
    installed: Cluster, new_namespace: Callable[..., str]
) -> None:
    admin, here, there = installed.admin, new_namespace("team-a"), new_namespace("team-b")
    for user, role in (("alice", "view"), ("bob", "admin")):
        admin.create({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": f"{user}-{role}", "namespace": here},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        })  # fmt: skip
    verdicts = ("berth.dev", "verdicts", "list")
    admin.until(lambda: may(admin, "alice", verdicts, here), 20, "the controller puts berth-view into view")
    assert not may(admin, "alice", verdicts, there)
    for user in ("alice", "bob"):
        assert may(admin, user, verdicts, here)
        assert not any(may(admin, user, ("berth.dev", "verdicts", verb), here) for verb in VERBS if verb not in READS)
        assert not may(admin, user, ("berth.dev", "gpuqueues", "update")), (
            "queues are the platform's, not a namespace's"
        )


# ---- kinds


@pytest.fixture
def made(installed: Cluster, namespace: str) -> Iterator[Callable[..., dict[str, Any]]]:
    """made(kind, body): an object of ours, made and, if it is in no namespace, taken away after the test."""
    paths: list[str] = []

    def make(kind: str, **body: Any) -> dict[str, Any]:
        thing = {
            "apiVersion": "berth.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": "sample", "namespace": namespace},
        }
        if kind != "Verdict":
            del thing["metadata"]["namespace"]  # type: ignore[attr-defined]
            paths.append(installed.admin.path_of(thing))
        return dict(installed.admin.create(thing | body))

    yield make
    for path in paths:
        installed.admin.delete(path)


SAID = {
    "workload": {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "llm", "uid": "5e1a"},
    "queue": "research",
    "pods": 4,
    "gpus": 16,
    "verdict": "NotYet",
    "reason": "TopologyFragmented",
    "sentence": "16 GPUs (4 × 4 GPUs) asked for in one rack; at most 12 GPUs are free in one rack (rack zone-a/r1).",
    "causes": [
        {
            "reason": "TopologyFragmented",
            "sentence": "16 GPUs asked for in one rack; at most 12 are free in one.",
            "need": 16,
            "have": 12,
            "unit": "GPUs",
            "where": "zone-a/r1",
            "unlock": ["4 more GPUs released in rack zone-a/r1"],
            "blocks": {"Gpus": 2, "Cordoned": 1},
            "nearest": [{"node": "h100-3", "lacks": "4 of 8 GPUs free"}],
            "proven": True,
        }
    ],
    "unlock": ["4 more GPUs released in rack zone-a/r1"],
    "position": 2,
    "ahead": 5,
    "aheadHere": ["Job/tokenize"],
    "expectedStart": {"p10": "2026-12-01T10:00:00Z", "p50": "2026-12-01T11:00:00Z", "p90": "2026-12-01T15:30:00Z"},
    "since": "2026-12-01T08:00:00Z",
    "at": "2026-12-01T09:00:00Z",
    "lastEviction": {"at": "2026-12-01T07:00:00Z", "reason": "Preempted", "sentence": "Room for a/b.", "pods": 4},
}


def test_one_write_makes_a_verdict_whole(
    made: Callable[..., dict[str, Any]], installed: Cluster, namespace: str
) -> None:
    kept = made("Verdict", **SAID)
    assert {key: kept[key] for key in SAID} == SAID
    path = f"/apis/berth.dev/v1alpha1/namespaces/{namespace}/verdicts"
    changed = installed.admin.patch(f"{path}/sample", {"verdict": "Fits", "at": "2026-12-01T09:30:00Z"})
    assert (changed["verdict"], changed["reason"]) == ("Fits", "TopologyFragmented")
    for field, value, count in (("verdict", "Fits", 1), ("verdict", "Never", 0), ("workload.uid", "5e1a", 1)):
        assert len(installed.admin.items(path, fieldSelector=f"{field}={value}")) == count


def test_kubectl_shows_who_waits_and_why(
    made: Callable[..., dict[str, Any]], installed: Cluster, namespace: str
) -> None:
    made("Verdict", **SAID)
    head, line = installed.kubectl("get", "verdicts", "-n", namespace).strip().splitlines()
    assert head.split() == ["NAME", "VERDICT", "REASON", "KIND", "GPUS", "AHEAD", "STARTS", "SINCE", "SENTENCE"]
    assert line.split()[:7] == [
        "sample",
        "NotYet",
        "TopologyFragmented",
        "PyTorchJob",
        "16",
        "5",
        "2026-12-01T11:00:00Z",
    ]
    assert line.endswith("in one rack (rack zone-a/r1).")
    wide = installed.kubectl("get", "verdicts", "-n", namespace, "-o", "wide")
    assert "4 more GPUs released" in wide and "research" in wide


def test_kubectl_shows_queues(made: Callable[..., dict[str, Any]], installed: Cluster) -> None:
    queue = made("GPUQueue", spec={"quota": {"H100-80GB": 16}, "limit": {"*": 40}, "namespaces": ["research"]})
    assert queue["spec"]["weight"] == 1
    path = "/apis/berth.dev/v1alpha1/gpuqueues/sample/status"
    installed.admin.patch(path, {"status": {"used": {"*": 12, "H100-80GB": 12}, "waiting": 3}})
    head, line = installed.kubectl("get", "gpuq").strip().splitlines()
    assert head.split() == ["NAME", "PARENT", "WEIGHT", "USED", "QUOTA", "LIMIT", "WAITING", "AGE"]
    assert line.split()[:-1] == ["sample", "1", '{"*":12,"H100-80GB":12}', '{"H100-80GB":16}', '{"*":40}', "3"]
    assert "gpuqueue.berth.dev/sample" in installed.kubectl("get", "berth", "-A", "-o", "name")


def test_a_queue_without_a_spec_is_one(made: Callable[..., dict[str, Any]]) -> None:
    assert made("GPUQueue")["spec"] == {"weight": 1}


def test_classes_and_topologies_are_taken(made: Callable[..., dict[str, Any]], installed: Cluster) -> None:
    made("GPUClass", spec={
        "match": {"example.com/pool": "h100-*"}, "class": "H100-80GB", "vendor": "nvidia.com", "product": "H100",
        "memory": "80Gi", "compute": "9.0", "link": "nvlink", "precision": ["bf16", "fp8"], "valuePerHour": 2.5,
    })  # fmt: skip
    made("GPUTopology", spec={"levels": [
        {"name": "zone", "label": "topology.kubernetes.io/zone"}, {"name": "rack", "label": "example.com/rack"},
    ]})  # fmt: skip
    assert "H100-80GB" in installed.kubectl("get", "gpuc")
    line = installed.kubectl("get", "gput").strip().splitlines()[1]
    assert line.split()[:3] == ["sample", "zone", "rack"]


WAITS = {"workload": {"kind": "Job", "name": "a"}, "since": "2026-12-01T08:00:00Z", "at": "2026-12-01T08:00:00Z"}
TOLD = WAITS | {"verdict": "NotYet", "reason": "Fragmented", "sentence": "8 GPUs are free, on 8 nodes."}
LEVEL = {"name": "rack", "label": "example.com/rack"}
KEEPS = {"queue": "q", "gpus": 8}
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "own parent": ("GPUQueue", {"spec": {"parent": "sample"}}, "its own parent"),
    "quota above limit": ("GPUQueue", {"spec": {"quota": {"L4": 5}, "limit": {"L4": 4}}}, "quota is above limit"),
    "quota above all": ("GPUQueue", {"spec": {"quota": {"L4": 5}, "limit": {"*": 4}}}, "limit for all classes"),
    "negative limit": ("GPUQueue", {"spec": {"limit": {"L4": -1}}}, "greater than or equal to 0"),
    "part of a GPU": ("GPUQueue", {"spec": {"quota": {"L4": 0.5}}}, "integer"),
    "no weight": ("GPUQueue", {"spec": {"weight": -1}}, "greater than or equal to 0"),
    "no duration": ("GPUQueue", {"spec": {"maxTimeLimit": "soon"}}, "should match"),
    "no flag": ("GPUQueue", {"spec": {"defaults": {"preemptible": "perhaps"}}}, "supported values"),
    "borrows and has nothing": ("GPUQueue", {"spec": {"borrowing": False}}, "it states a quota"),
    "two words on leaving": (
        "GPUQueue", {"spec": {"preemptible": True, "defaults": {"preemptible": "false"}}}, "disagree",
    ),
    "for nobody": ("GPUReservation", {"spec": {"gpus": 8}}, "say for whom"),
    "for two": ("GPUReservation", {"spec": {"gpus": 8, "queue": "q", "workload": {"name": "a"}}}, "say for whom"),
    "of nothing": ("GPUReservation", {"spec": {"queue": "q"}}, "say what is kept"),
    "nodes and GPUs": ("GPUReservation", {"spec": {"queue": "q", "gpus": 8, "nodes": ["a"]}}, "nodes are kept whole"),
    "a class of a domain": (
        "GPUReservation",
        {"spec": {"queue": "q", "gpuClass": "L4", "domain": {"level": "rack", "name": "r1"}}},
        "say how many GPUs",
    ),
    "ends before it begins": (
        "GPUReservation",
        {"spec": {"queue": "q", "gpus": 8, "from": "2026-12-02T00:00:00Z", "until": "2026-12-01T00:00:00Z"}},
        "ends before it begins",
    ),
    "no day": ("GPUReservation", {"spec": KEEPS | {"repeat": {"days": ["Monday"]}}}, "supported values"),
    "no time of day": ("GPUReservation", {"spec": KEEPS | {"repeat": {"end": "25:00"}}}, "should match"),
    "two levels of a name": ("GPUTopology", {"spec": {"levels": [LEVEL, LEVEL | {"label": "b"}]}}, "have one name"),
    "two levels of a label": ("GPUTopology", {"spec": {"levels": [LEVEL, LEVEL | {"name": "b"}]}}, "have one label"),
    "no levels": ("GPUTopology", {"spec": {"levels": []}}, "at least 1"),
    "the node as a level": (
        "GPUTopology",
        {"spec": {"levels": [{"name": "host", "label": "kubernetes.io/hostname"}]}},
        "always the narrowest",
    ),
    "matches every node": ("GPUClass", {"spec": {"match": {}, "class": "L4"}}, "at least 1"),
    "no quantity": ("GPUClass", {"spec": {"match": {"a": "b"}, "class": "L4", "memory": "24GB"}}, "write 80Gi"),
    "worth nothing": ("GPUClass", {"spec": {"match": {"a": "b"}, "class": "L4", "valuePerHour": 0}}, "greater than 0"),
    "unknown verdict": ("Verdict", TOLD | {"verdict": "Maybe"}, "supported values"),
    "no reason": ("Verdict", WAITS | {"verdict": "Never"}, "told why"),
    "reason is no code": ("Verdict", TOLD | {"reason": "too many"}, "should match"),
    "starts early and late": (
        "Verdict",
        TOLD | {"expectedStart": {"p50": "2026-12-01T08:00:00Z", "p90": "2026-12-01T07:00:00Z"}},
        "p90 is not before p50",
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_cannot_be_meant_is_refused(case: str, made: Callable[..., dict[str, Any]]) -> None:
    kind, body, said = REFUSED[case]
    with pytest.raises(Refused, match=said) as refused:
        made(kind, **body)
    assert refused.value.reason == "Invalid"


def test_a_key_that_nothing_reads_is_refused_to_kubectl(installed: Cluster) -> None:
    """kubectl asks for strict reading; a server that reads loosely would drop the key without a word."""
    queue = {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": "a"}, "spec": {"borrow": 1}}
    with pytest.raises(Refused, match=re.escape('unknown field "spec.borrow"')):
        installed.admin.request("POST", "/apis/berth.dev/v1alpha1/gpuqueues?fieldValidation=Strict&dryRun=All", queue)


# ---- policies


def pod(name: str, namespace: str, scheduler: str = "", gpus: int = 1, owner: str = "") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "1"}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "x", "resources": {"limits": limits}}]}
    if scheduler:
        spec["schedulerName"] = scheduler
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "1"}] if owner else []
    meta = {"name": name, "namespace": namespace, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def test_policies_hold_in_labelled_namespaces_alone(installed: Cluster, new_namespace: Callable[..., str]) -> None:
    admin = installed.admin
    labelled, plain = new_namespace("labelled", {"berth.dev/scheduler": "berth"}), new_namespace("plain")
    # Policies take a moment to be compiled.
    probe = pod("probe", labelled)
    admin.until(lambda: scheduler_of(admin, probe) == "berth", 20, "the mutating policy holds")
    admin.until(lambda: scheduler_of(admin, pod("probe", labelled, "other")) == "Forbidden", 20, "the other holds")
    assert scheduler_of(admin, pod("a", labelled, gpus=0)) == "berth", "the launcher of a gang asks for no GPU"
    assert scheduler_of(admin, pod("a", labelled, "other", gpus=0)) == "other"
    assert scheduler_of(admin, pod("a", labelled, "berth")) == "berth"
    assert scheduler_of(admin, pod("a", labelled, owner="DaemonSet")) == "default-scheduler"
    assert scheduler_of(admin, pod("a", plain)) == "default-scheduler"
    assert scheduler_of(admin, pod("a", plain, "other")) == "other"
    with pytest.raises(Refused, match="set it to berth"):
        admin.create(pod("a", labelled, "other"))


def scheduler_of(admin: Admin, asked: dict[str, Any]) -> str:
    """The scheduler that a pod would get, or why it would not be made."""
    try:
        path = f"/api/v1/namespaces/{asked['metadata']['namespace']}/pods?dryRun=All"
        return str(admin.request("POST", path, asked)["spec"]["schedulerName"])
    except Refused as refused:
        return refused.reason


# ---- leaving again


def test_the_stand_in_places_the_pods_that_wait_for_berth(
    installed: Cluster, cluster: Cluster, namespace: str, make_nodes: Callable[..., list[str]], tmp_path: Path
) -> None:
    """deploy/stand-in.yaml with the rights that it has: kube-scheduler under Berth's name."""
    admin = cluster.admin
    for thing in yaml.safe_load_all((ROOT / "deploy" / "stand-in.yaml").read_text()):
        if thing["kind"] == "Deployment":
            (container,) = thing["spec"]["template"]["spec"]["containers"]
            continue  # nobody runs its pods here: the program is started below
        admin.apply(thing)
        if thing["kind"] == "ConfigMap":
            settings = yaml.safe_load(thing["data"]["config.yaml"])
    token = admin.service_account_token(NAMESPACE, "berth-stand-in")
    account = f"system:serviceaccount:{NAMESPACE}:berth-stand-in"
    settings["clientConnection"] = {"kubeconfig": str(cluster.kubeconfig_of(account, token))}
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(settings))
    make_nodes(2)
    for number in range(3):
        admin.create(pod(f"waits-{number}", namespace, "berth"))
    admin.create(pod("another", namespace, "other"))
    flags = [flag for flag in container["command"][1:] if not flag.startswith(("--config", "--secure-port"))]
    program = binaries.program("kube-scheduler", cluster.options.kubernetes)
    command = [str(program), f"--config={file}", "--secure-port=0", *flags]
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        pods = f"/api/v1/namespaces/{namespace}/pods"
        waiting = "spec.schedulerName=berth,spec.nodeName="
        admin.until(lambda: not admin.items(pods, fieldSelector=waiting), 30, "kube-scheduler binds them")
        assert not admin.get(f"{pods}/another")["spec"].get("nodeName")
    finally:
        running.terminate()
        running.wait(10)
        for binding in ("berth-stand-in", "berth-stand-in-volumes"):
            admin.delete(f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{binding}")
