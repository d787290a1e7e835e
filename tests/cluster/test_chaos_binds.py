"""Between a decision and its binds: nodes that die, pods that are deleted, binds that are refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from devcluster import Admin, Cluster, Refused, gpu_pod
from gangs import JOB, KEYED, UPSTREAM, bound
from proxy import BINDS, Proxy
from stage import SetStage, Stage

# One bind after the other, each a while under way: there is time for something to happen in between.
SLOWLY = {"clients.inFlight": 1}
SLOW_S = 0.25
DECISION = "berth.dev/decision"
POLICIES = "/apis/admissionregistration.k8s.io/v1"


def decided_last(stage: Stage, name: str) -> str:
    """The node that the decision on a gang has for its last pods, read from its first bound one."""

    def first() -> str:
        return next((p["metadata"]["annotations"].get(DECISION, "") for p in bound(stage.pods(name))), "")

    nodes: dict[str, list[str]] = json.loads(stage.until(first, 10, "the first pod of the gang is bound"))
    return list(nodes)[-1]


# ---- nodes


def delete(admin: Admin, node: str) -> None:
    admin.delete(f"/api/v1/nodes/{node}")


def cordon(admin: Admin, node: str) -> None:
    admin.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})


def fall_silent(admin: Admin, node: str) -> None:
    """As the node-lifecycle controller writes it."""
    condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    admin.patch(f"/api/v1/nodes/{node}/status", {"status": {"conditions": [condition]}},
                "application/strategic-merge-patch+json")  # fmt: skip
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    admin.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})


def lose_devices(admin: Admin, node: str) -> None:
    """As a kubelet writes it whose device plugin has ended."""
    admin.patch(f"/api/v1/nodes/{node}/status", {"status": {"allocatable": {"nvidia.com/gpu": "0"}}})


@pytest.mark.parametrize(
    ("dies", "form"),
    [(delete, JOB), (cordon, UPSTREAM), (fall_silent, KEYED), (lose_devices, UPSTREAM)],
)
def test_a_node_that_goes_before_its_binds_are_sent_gets_none(
    set_stage: SetStage, proxy: Proxy, dies: Callable[[Admin, str], None], form: str
) -> None:
    """The gang is whole all the same, elsewhere."""
    stage = set_stage(10, partial_s=15)
    stage.run(kubeconfig=proxy.kubeconfig(), values=SLOWLY)
    gang = stage.gang(form, "train", 6, 8)
    with proxy.delay(SLOW_S, BINDS):
        stage.create(gang)
        last = decided_last(stage, "train")
        dies(stage.admin, last)
        stage.wait_whole(gang, timeout_s=15)
    assert len(set(stage.nodes_of("train")) - {last}) == 6


def test_pods_on_a_node_that_is_gone_come_back_elsewhere(set_stage: SetStage) -> None:
    """The pods are deleted by Kubernetes, their ReplicaSet makes them again, the gang is whole again."""
    stage = set_stage(6, partial_s=15)
    stage.run()
    gang = stage.replicas("serve", 4, 8, minimum=4)
    stage.create(gang)
    stage.wait_whole(gang)
    lost = stage.pods("serve")[0]
    node = lost["spec"]["nodeName"]
    stage.admin.delete(f"/api/v1/nodes/{node}")
    stage.delete(lost["metadata"]["name"])  # what the pod garbage collector does
    stage.wait_whole(gang)
    assert node not in stage.nodes_of("serve")


def test_a_node_that_was_deleted_and_made_again_keeps_what_it_holds(set_stage: SetStage) -> None:
    """Its pods run on: they count although the node was not there for a moment."""
    stage = set_stage(2)
    stage.run()
    first = stage.gang(UPSTREAM, "first", 2, 6)
    stage.create(first)
    stage.wait_whole(first)
    node = stage.admin.get("/api/v1/nodes/n00000")
    kept = {key: node["metadata"][key] for key in ("name", "labels", "annotations")}
    stage.admin.delete("/api/v1/nodes/n00000")
    stage.admin.create({**node, "metadata": kept})
    small = [stage.single(f"small-{number}", 2) for number in range(3)]
    stage.create(*small)
    stage.until(lambda: len(bound(stage.pods())) == 4, 10, "what there is room for is bound")
    stage.stays(lambda: len(bound(stage.pods())) == 4, 1, "and no more")


# ---- pods


def test_a_pod_of_a_gang_that_somebody_else_binds_meanwhile_counts_where_it_is(
    set_stage: SetStage, proxy: Proxy
) -> None:
    """It is not bound again; the others go where they still can."""
    stage = set_stage(4, foreign=True)
    stage.run(kubeconfig=proxy.kubeconfig())
    gang = stage.gang(UPSTREAM, "train", 3, 8)
    with proxy.hold(BINDS) as held:
        stage.create(gang)
        stage.until(lambda: held.met, 10, "the first bind is on its way")
        stage.admin.bind(stage.namespace, "train-2", "n00003")
    stage.wait_whole(gang, timeout_s=10)
    assert stage.pod("train-2")["spec"]["nodeName"] == "n00003"
    assert len(set(stage.nodes_of("train"))) == 3


def test_names_that_are_used_again_and_again(set_stage: SetStage) -> None:
    """Pods that are deleted and made anew under their names, as fast as can be, while they are being bound."""
    stage = set_stage(2)
    replica = stage.run(values={"clients.inFlight": 2})
    names = [f"reused-{number}" for number in range(10)]
    for _ in range(8):
        for name in names:
            stage.delete(name)
        stage.admin.until(lambda: not stage.pods(), 5)
        stage.create(*(stage.single(name) for name in names))
        time.sleep(0.05)
    stage.wait_whole(*(stage.single(name) for name in names))
    stage.until(lambda: replica.metrics().of("berth_assumed_pods") == 0, 5, "nothing is assumed any more")


def test_pods_that_are_deleted_while_they_are_bound_leave_their_room_to_others(
    set_stage: SetStage, proxy: Proxy
) -> None:
    stage = set_stage(2)
    replica = stage.run(kubeconfig=proxy.kubeconfig(), values=SLOWLY)
    with proxy.delay(SLOW_S, BINDS):
        stage.create(stage.gang(UPSTREAM, "gone", 4, 3), stage.single("also-gone"))
        stage.until(lambda: bound(stage.pods("gone")), 10, "the first pod is bound")
        for pod in stage.pods():
            stage.delete(pod["metadata"]["name"])
        others = stage.gang(KEYED, "others", 4, 4)
        stage.create(others)
        stage.wait_whole(others)
    stage.until(lambda: replica.metrics().of("berth_assumed_pods") == 0, 5, "nothing is assumed any more")


def test_a_gang_that_lost_a_pod_during_its_binds_is_completed_with_the_next_of_that_name(
    set_stage: SetStage, proxy: Proxy
) -> None:
    """Another pod under the name of the one that was decided on: it is not bound by the old decision's uid."""
    stage = set_stage(4, partial_s=15)
    stage.run(kubeconfig=proxy.kubeconfig(), values=SLOWLY)
    gang = stage.gang(UPSTREAM, "train", 4, 8)
    with proxy.delay(SLOW_S, BINDS):
        stage.create(gang)
        stage.until(lambda: bound(stage.pods("train")), 10, "the first pod is bound")
        (waiting, *_) = [pod for pod in stage.pods("train") if not pod["spec"].get("nodeName")]
        name = waiting["metadata"]["name"]
        stage.delete(name)
        (again,) = [thing for thing in gang.objects if thing["metadata"]["name"] == name]
        stage.admin.create(again)
        stage.wait_whole(gang)


def test_a_gang_of_very_many_pods_runs_whole(set_stage: SetStage) -> None:
    """What is written of the decision on one of them must leave it a pod that can be changed: by its kubelet, say.

    Names are long here, so that a thousand pods do for five thousand.
    """
    stage = set_stage(12, partial_s=15)
    stage.run()
    count, name = 1150, "p" * 230
    keys: dict[str, Any] = {"labels": {"berth.dev/gang": "many"}, "annotations": {"berth.dev/min-count": str(count)}}
    stage.admin.create_all(gpu_pod(f"{name}-{number}", stage.namespace, 0, **keys) for number in range(count))
    stage.until(lambda: len(bound(stage.pods())) == count, 30, "all are bound")
    stage.until(lambda: all(p["status"]["phase"] == "Running" for p in stage.pods()), 10, "all run")


# ---- binds that are refused


@pytest.fixture
def deny_binds(admin: Admin, namespace: str) -> Iterator[Callable[[str], Callable[[], None]]]:
    """deny_binds("object.target.name == 'n00000'"): until what it gives back is called, or the test ends."""
    made: list[str] = []

    def deny(rule: str) -> Callable[[], None]:
        name = f"{namespace}-{len(made)}"
        bindings = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
        here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        spec: dict[str, Any] = {
            "matchConstraints": {"resourceRules": [bindings], "namespaceSelector": here},
            "validations": [{"expression": f"!({rule})", "message": "the platform says no"}],
        }
        admin.create(_policy("ValidatingAdmissionPolicy", name, spec))
        made.append(name)
        spec = {"policyName": name, "validationActions": ["Deny"]}
        admin.create(_policy("ValidatingAdmissionPolicyBinding", name, spec))
        admin.create(gpu_pod("probe", namespace, 0, scheduler="nobody"))
        admin.until(lambda: _is_denied(admin, namespace, rule), 20, "the policy holds")
        admin.delete(f"/api/v1/namespaces/{namespace}/pods/probe", grace_s=0)
        return lambda: remove(name)

    def remove(name: str) -> None:
        admin.delete(f"{POLICIES}/validatingadmissionpolicybindings/{name}")
        admin.delete(f"{POLICIES}/validatingadmissionpolicies/{name}")

    yield deny
    for name in made:
        remove(name)


def _policy(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def _is_denied(admin: Admin, namespace: str, rule: str) -> bool:
    """A bind that is as the rule's would be refused; it is tried without being carried out."""
    node = rule.partition("target.name == '")[2].partition("'")[0] or "nowhere"
    name = rule.partition("startsWith('")[2].partition("'")[0] or "probe"
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    try:
        admin.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding?dryRun=All", body)
    except Refused as refused:
        return "the platform says no" in str(refused)
    return False


def test_a_bind_that_is_refused_for_good_is_left_alone_for_a_while_and_told(
    set_stage: SetStage, proxy: Proxy, deny_binds: Callable[[str], Callable[[], None]]
) -> None:
    """Everybody else goes on; once the rule is gone it is bound."""
    stage = set_stage(4)
    stage.run(kubeconfig=proxy.kubeconfig())
    allow = deny_binds("object.metadata.name.startsWith('denied')")
    unlucky = stage.single("denied", 2)
    stage.create(unlucky)
    verdict = stage.wait_verdict("denied", "BindRefused")
    assert "the platform says no" in verdict["sentence"]
    others = stage.mixed("others")[:3]
    began = time.monotonic()
    stage.create(*others)
    stage.wait_whole(*others, timeout_s=5)
    stage.stays(lambda: not stage.pod("denied")["spec"].get("nodeName"), 7, "it is not bound")
    tries = len(proxy.requests("POST", "/pods/denied/binding"))
    assert 2 <= tries <= 5, f"{tries} tries within {time.monotonic() - began:.0f} s"
    allow()
    stage.wait_whole(unlucky, timeout_s=25)
    stage.until(lambda: stage.verdict("denied") is None, 10, "what was said is taken back")


@pytest.mark.parametrize("form", [UPSTREAM, JOB])
def test_a_gang_of_which_one_bind_fails_is_completed_on_another_node(
    set_stage: SetStage, deny_binds: Callable[[str], Callable[[], None]], form: str
) -> None:
    """Whole within a bounded time, although the node that was chosen refuses for good."""
    stage = set_stage(5, partial_s=6)
    deny_binds("object.target.name == 'n00001'")
    stage.run()
    gang = stage.gang(form, "train", 4, 8)
    stage.create(gang)
    stage.wait_whole(gang, timeout_s=15)
    assert "n00001" not in stage.nodes_of("train")


def test_a_gang_that_can_never_be_whole_gives_its_room_back_where_its_pods_are_made_again(
    set_stage: SetStage, deny_binds: Callable[[str], Callable[[], None]]
) -> None:
    """One pod of a Job is always refused: those that are bound are deleted, as a disruption, and come again."""
    stage = set_stage(4, partial_s=30)
    deny_binds("object.metadata.name.startsWith('train-2-')")
    stage.run()
    stage.create(stage.gang(JOB, "train", 4, 8))
    first = stage.until(lambda: {pod["metadata"]["uid"] for pod in bound(stage.pods("train"))}, 10, "a part is bound")
    stage.until(
        lambda: not first & {pod["metadata"]["uid"] for pod in bound(stage.pods("train"))}, 30, "they have been deleted"
    )
    assert stage.verdict("train") is not None


def test_a_gang_that_can_never_be_whole_keeps_pods_that_nobody_would_make_again(
    set_stage: SetStage, deny_binds: Callable[[str], Callable[[], None]]
) -> None:
    """And says so."""
    stage = set_stage(4, partial_s=60)
    deny_binds("object.metadata.name.startsWith('train-2')")
    stage.run()
    stage.create(stage.gang(UPSTREAM, "train", 4, 8))
    stage.until(lambda: len(bound(stage.pods("train"))) == 3, 15, "all but the refused one are bound")
    verdict = stage.wait_verdict("train", "BindRefused")
    assert "the platform says no" in verdict["sentence"]
    stage.stays(lambda: len(stage.pods("train")) == 4, 10, "no pod is deleted")


# ---- evictions that are refused


def test_evictions_that_a_budget_does_not_allow_now_are_not_asked_for_in_a_loop(
    set_stage: SetStage, proxy: Proxy, cluster: Cluster
) -> None:
    """429 to each; who would have had the room waits, everybody else goes on, and it is had in the end."""
    stage = set_stage(2)
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "test-high"}}
    cluster.admin.apply(kind | {"value": 1000})
    stage.run(kubeconfig=proxy.kubeconfig())
    low = [stage.single(f"low-{number}", 6) for number in range(2)]
    stage.create(*low)
    stage.wait_whole(*low)
    urgent = stage.single("urgent", 8, priority_class="test-high")
    with proxy.answer(429, "/eviction", "POST", reason="TooManyRequests") as refused:
        stage.create(urgent)
        stage.until(lambda: refused.met, 10, "somebody is asked to leave")
        time.sleep(5)
        assert refused.met <= 12, f"{refused.met} times within 5 s"
        small = stage.single("small", 2)
        stage.create(small)
        stage.wait_whole(small, timeout_s=10)
    stage.wait_whole(urgent, timeout_s=60)
