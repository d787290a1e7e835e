"""What `berth preflight` finds, and what the list of rights that it asks for is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runs import here
from played_cluster import CORE, OURS, Played, node
from stand_in import Answer

from berth.app.scheduler.rights import FOREIGN, Right, rights
from berth.app.scheduler.settings import Configuration, Election, Preemption
from berth.sources.live.kinds import FOLLOWED

ROOT = Path(__file__).parents[2]
PRIORITIES = "priorityclasses.scheduling.k8s.io"
CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
READY = (node("n-1", zone="a"), node("n-2", zone="b"), CLASS)


@pytest.fixture(autouse=True)
def _at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_NOW", "2026-11-29T12:00:00Z")


def ask(tmp_path: Path, *things: Any, change: Callable[[Played], Any] = lambda played: None, arguments: str = "",
        kinds: Any = (*CORE, *OURS)) -> tuple[int, list[dict[str, str]], dict[str, Any]]:  # fmt: skip
    played = Played(*things, kinds=kinds)
    change(played)
    with played.running():
        config = played.kubeconfig(tmp_path)
        ran = here("preflight", "-o", "json", "--kubeconfig", config, *arguments.split())
    record = json.loads(ran.out)
    return ran.code, [c for c in record["checks"] if c["state"] != "ok"], record


def found(checks: list[dict[str, str]], state: str = "finding") -> list[tuple[str, str]]:
    return [(c["area"], c["said"]) for c in checks if c["state"] == state]


def test_a_cluster_that_is_ready_has_no_findings(tmp_path):
    code, checks, record = ask(tmp_path, *READY)
    assert (code, found(checks), found(checks, "unseen")) == (0, [], [])
    assert (record["kind"], record["version"], record["askedAs"]) == ("Preflight", "v1.37.2", "alice")
    said = [c["said"] for c in record["checks"]]
    assert "2 nodes, H100-80GB on 2 nodes" in said and "1 PriorityClass: high 100" in said


def test_the_rights_that_are_missing_are_named_with_what_is_lost(tmp_path):
    def no_binding(played: Played) -> None:
        played.may = lambda user, attributes: attributes.get("subresource") != "binding" and not (
            attributes["resource"] == "priorityclasses" and attributes["verb"] != "get"
        )

    code, checks, _ = ask(tmp_path, *READY, change=no_binding)
    assert code == 1
    assert found(checks) == [
        ("rights", f"alice may not list, watch {PRIORITIES}: what these objects say does not count"),
        ("rights", "alice may not create pods/binding: no pod can be placed"),
    ]
    assert checks[0]["remedy"] == (
        "kubectl create clusterrolebinding berth --clusterrole=berth --user=alice (the role comes with `helm install`; "
        "for the scheduler's own rights ask with --service-account berth-system/berth)"
    )


def with_account(played: Played) -> None:
    account = {"metadata": {"name": "berth", "namespace": "berth-system"}}
    played.server.on("/api/v1/namespaces/berth-system/serviceaccounts/berth", Answer(account))


ACCOUNT = "--service-account berth-system/berth"


def test_a_service_account_that_is_not_there_is_one_finding(tmp_path):
    asked = []
    code, checks, _ = ask(
        tmp_path, *READY, arguments=ACCOUNT,
        change=lambda played: setattr(played, "may", lambda user, attributes: asked.append(user) or False),
    )  # fmt: skip
    said = "there is no ServiceAccount berth-system/berth: nothing was asked of its rights"
    assert code == 1 and found(checks) == [("rights", said)] and not asked


def test_rights_of_a_service_account(tmp_path):
    asked = set()

    def note(played: Played) -> None:
        with_account(played)
        played.may = lambda user, attributes: asked.add((user, attributes["verb"], attributes["resource"])) or False

    leases = ("coordination.k8s.io", "v1", "leases", "Lease", True)
    code, checks, record = ask(tmp_path, *READY, change=note, arguments=ACCOUNT, kinds=(*CORE, *OURS, leases))
    who = "system:serviceaccount:berth-system:berth"
    assert code == 1 and record["askedAs"] == who and (who, "create", "pods") in asked
    whom = "--serviceaccount=berth-system:berth (the role comes with `helm install`"
    assert {c["remedy"] for c in checks if c["area"] == "rights"} == {
        f"kubectl create clusterrolebinding berth --clusterrole=berth {whom})",
        f"kubectl -n berth-system create rolebinding berth-leader --role=berth-leader {whom}; "
        "where its Lease has another name say so by --config)",
    }
    # In shadow it needs no right to write.
    asked.clear()
    ask(tmp_path, *READY, change=note, arguments="--shadow")
    assert {verb for _, verb, _ in asked} == {"get", "list", "watch"}


def test_a_cluster_without_the_kinds_of_berth(tmp_path):
    code, checks, _ = ask(tmp_path, *READY, kinds=CORE)
    assert code == 1
    ((area, said),) = found(checks)
    assert area == "kinds" and said.endswith("verdicts.berth.dev; nobody can look up why a workload waits")
    older = tuple((g, "v1alpha0" if g == "berth.dev" else v, p, k, n) for g, v, p, k, n in (*CORE, *OURS))
    code, checks, _ = ask(tmp_path, *READY, kinds=older)
    assert ("kinds", "verdicts.berth.dev is served as v1alpha0, not as v1alpha1") in found(checks)


@pytest.mark.parametrize(("version", "says"), [
    ("v1.34.1", "older"), ("v1.35.4", ""), ("v1.36.0", ""), ("v1.37.2", ""), ("v1.38.0", "newer"),
])  # fmt: skip
def test_the_version_of_the_api_server(tmp_path, version, says):
    def serve(played: Played) -> None:
        played.version = version

    code, checks, _ = ask(tmp_path, *READY, change=serve)
    assert code == (1 if says else 0)
    assert bool(says) == any(f"is {says} than" in said for _, said in found(checks))


# ---- who else schedules


def hook(configuration: str, name: str, kind: str = "MutatingWebhookConfiguration", **more: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"], "apiVersions": ["v1"]}
    webhook = {"name": name, "rules": [rule], "clientConfig": {"service": {"name": "s", "namespace": "n"}}, **more}
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": configuration},
            "webhooks": [webhook]}  # fmt: skip


def test_webhooks_of_other_schedulers(tmp_path):
    code, checks, _ = ask(
        tmp_path, *READY,
        hook("yunikorn-mutations", "admission-webhook.yunikorn.mutate-pods", failurePolicy="Ignore"),
        hook("volcano-admission-service-pods-validate", "validatepod.volcano.sh", "ValidatingWebhookConfiguration",
             namespaceSelector={"matchLabels": {"a": "b"}}),
        hook("kai", "admission.kai-scheduler.svc"),
        hook("kueue-mutating-webhook-configuration", "mpod.kb.io"),
        hook("other", "policy.example.com"),
        hook("volcano-jobs", "mutatejob.volcano.sh", rules=[{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"],
                                                             "operations": ["CREATE"]}]),
    )  # fmt: skip
    assert code == 1
    said = [s for area, s in found(checks) if area == "webhooks"]
    assert [s.partition(" (")[0] for s in said] == [
        "YuniKorn's webhook admission-webhook.yunikorn.mutate-pods", "KAI's webhook admission.kai-scheduler.svc",
        "Volcano's webhook validatepod.volcano.sh",
    ]  # fmt: skip
    assert "so that Berth never sees such a pod" in said[0] and "cannot be made" not in said[0]
    assert "that its selectors let through" in said[2]
    assert said[2].endswith("while it does not answer, such pods cannot be made")
    assert any("Kueue's webhook mpod.kb.io" in s for _, s in found(checks, "note"))


def lease(name: str, renewed: str, namespace: str = "kube-system", holder: str = "a") -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}}  # fmt: skip


FRESH, STALE = "2026-11-29T11:59:58.000000Z", "2026-11-29T11:58:00.000000Z"


@pytest.mark.parametrize(("served", "leases", "state", "said"), [
    ("berth", [lease("kube-scheduler", FRESH)], "note", "default-scheduler is alive: Lease kube-system/kube-scheduler"),
    ("berth,volcano", [lease("volcano", FRESH, "volcano-system")], "finding", "its pods are not Berth's while it is"),
    ("berth,volcano", [lease("volcano", STALE)], "ok", "volcano is served by Berth: no Lease is held"),
    ("berth,volcano", [lease("volcano", FRESH, holder="")], "ok", "volcano is served by Berth: no Lease is held"),
    ("berth,yunikorn", [], "note", "yunikorn is served by Berth: it keeps no Lease"),
    ("berth", [lease("berth", FRESH, "berth-system")], "note", "Berth itself leads here"),
])  # fmt: skip
def test_other_schedulers_by_their_leases(tmp_path, monkeypatch, served, leases, state, said):
    monkeypatch.setenv("BERTH_SCHEDULER_NAMES", served)
    code, _, record = ask(tmp_path, *READY, *leases)
    checks = [c for c in record["checks"] if c["area"] == "other schedulers" and said in c["said"]]
    assert [c["state"] for c in checks] == [state]
    assert code == (1 if state == "finding" else 0)


def of_berth(namespace: str, renewed: str, serves: str = "berth", name: str = "berth", holder: str = "b-0") -> Any:
    made = lease(name, renewed, namespace, holder)
    made["metadata"]["annotations"] = {"berth.dev/serves": serves}
    return made


TWO = "two Berths serve berth: Lease berth-system/berth, held by b-0, renewed 2 s ago; Lease other/x, held by b-0"
STANDS = "no Berth leads here: Lease berth-system/berth is not held since 2 min"


@pytest.mark.parametrize(("leases", "state", "said"), [
    ([of_berth("berth-system", FRESH)], "note", "Berth itself leads here: Lease berth-system/berth, held by b-0"),
    ([of_berth("berth-system", FRESH), of_berth("other", FRESH, "a,berth", "x")], "finding", TWO),
    ([of_berth("other", FRESH)], "finding", "another Berth serves berth: Lease other/berth, held by b-0"),
    ([of_berth("other", FRESH, serves="theirs")], "note", "no Berth is seen here: no Lease of one is there"),
    ([of_berth("berth-system", STALE)], "finding", STANDS),
    ([of_berth("berth-system", STALE, holder="")], "note", STANDS),
])  # fmt: skip
def test_which_berths_lead(tmp_path, leases, state, said):
    code, _, record = ask(tmp_path, *READY, *leases, change=with_account, arguments=ACCOUNT)
    checks = [c for c in record["checks"] if c["area"] == "other schedulers" and said in c["said"]]
    assert [c["state"] for c in checks] == [state]
    assert code == (1 if state == "finding" else 0)
    # Who only looks on needs nobody to lead.
    _, _, record = ask(tmp_path, *READY, *leases, change=with_account, arguments=f"{ACCOUNT} --shadow")
    assert not any("until one leads" in c["said"] for c in record["checks"])


def test_kinds_are_told_by_project_and_the_class_of_the_chart_is_not_your_own(tmp_path):
    of_chart = {**CLASS, "metadata": {"name": "x-berth", "labels": {"app.kubernetes.io/part-of": "berth"}}}
    ray = ("ray.io", "v1", "rayjobs", "RayJob", True)
    _, checks, record = ask(tmp_path, *READY[:2], of_chart, kinds=(*CORE, *OURS, ray))
    (gone,) = [c["said"] for c in checks if "understood and not served" in c["said"]]
    assert "Volcano, " in gone and "Ray (" in gone and "rayjobs" not in gone and len(gone) < 400
    assert any(c["said"].endswith("Ray (rayjobs.ray.io)") for c in record["checks"])
    assert any("no PriorityClass of your own" in said for _, said in found(checks, "note"))


# ---- nodes


def test_nodes_that_lack_something(tmp_path):
    silent = node("silent", gpus=0, **{"nvidia.com/gpu.count": "8"})
    code, checks, _ = ask(
        tmp_path, CLASS, node("n-1", **{"topology.kubernetes.io/zone": "a"}), node("n-2"), silent,
    )  # fmt: skip
    assert code == 1
    assert ("nodes", "1 node has labels of GPUs and no GPU to offer: silent") in found(checks)
    assert any(area == "topology" and "1 GPU node lacks the label" in said and said.endswith(": n-2")
               for area, said in found(checks))  # fmt: skip


def test_a_gpu_without_a_class(tmp_path):
    bare, uneven = node("bare"), node("uneven")
    bare["metadata"]["labels"] = {"pool": "big"}
    uneven["metadata"]["labels"] = {"nvidia.com/gpu.product": "INVALID"}
    code, checks, _ = ask(tmp_path, CLASS, bare, uneven, node("n-1"))
    assert code == 1
    assert ("nodes", "2 nodes have GPUs whose class nobody tells: bare, uneven") in found(checks)
    mapping = tmp_path / "classes.yaml"
    mapping.write_text("classes:\n- {match: {pool: big}, class: H100-80GB}\n")
    code, checks, record = ask(tmp_path, CLASS, bare, arguments=f"--gpu-classes {mapping}")
    assert (code, found(checks)) == (0, [])
    assert "1 node, H100-80GB on 1 node" in [c["said"] for c in record["checks"]]


def test_what_cannot_be_seen_is_no_clean_bill(tmp_path):
    def hide(played: Played) -> None:
        played.hidden = {"leases", "mutatingwebhookconfigurations"}

    code, checks, _ = ask(tmp_path, *READY, change=hide)
    assert (code, found(checks)) == (3, [])
    assert {area for area, _ in found(checks, "unseen")} == {"webhooks", "other schedulers"}


def test_nobody_there_is_exit_code_3(tmp_path):
    ran = here("preflight", "--kubeconfig", Played().kubeconfig(tmp_path, server="http://127.0.0.1:9"))
    assert ran.code == 3 and "cannot be reached" in ran.err


# ---- the list of rights


def granted() -> set[tuple[str, str, str]]:
    """(group, resource or resource/subresource, verb) of the roles that the chart makes."""
    found = set()
    for thing in yaml.safe_load_all((ROOT / "deploy/kustomize/berth.yaml").read_text()):
        if thing and "rules" in thing and thing["metadata"]["name"] in ("berth", "berth-leader"):
            for rule in thing["rules"]:
                found |= {(g, r, v) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}
    return found


def as_rule(right: Right) -> tuple[str, str, str]:
    return right.group, f"{right.resource}/{right.subresource}" if right.subresource else right.resource, right.verb


def test_the_chart_grants_what_is_asked_for_and_no_more():
    assert {as_rule(right) for right in rights(Configuration())} == granted()


def test_whatever_is_followed_is_among_the_rights():
    asked = {as_rule(right) for right in rights(Configuration(), shadow=True)}
    assert {(k.group, k.resource, verb) for k in FOLLOWED for verb in ("list", "watch")} <= asked


def test_rights_follow_the_configuration():
    plain = set(rights(Configuration()))
    without = rights(Configuration(leader_election=Election(enabled=False), preemption=Preemption(enabled=False)))
    assert {as_rule(r) for r in plain - set(without)} == {
        ("", "pods/eviction", "create"), ("", "pods", "delete"),
        *(("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")),
    }  # fmt: skip
    foreign = rights(Configuration(scheduler_names=("berth", "volcano")))
    assert {as_rule(r) for r in foreign} == {as_rule(r) for r in plain}
    looks_on = rights(Configuration(scheduler_names=("berth", "volcano")), shadow=True)
    only_looks = {as_rule(r) for r in rights(Configuration(), shadow=True)}
    assert {as_rule(r) for r in looks_on} - only_looks == {("coordination.k8s.io", "leases", "list")}
    assert all(r.verb in ("get", "list", "watch", "create") for r in rights(Configuration(), shadow=True))
    assert "berth" not in FOREIGN
