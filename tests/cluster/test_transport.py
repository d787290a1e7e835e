"""The transport against a real API server: the same answers as from the stand-in, and some that only it can give."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from berth.kube import discover, wire
from berth.kube.access import Access
from berth.kube.changes import Change
from berth.kube.client import Client
from berth.kube.discover import Served, served
from berth.kube.errors import ApiError, Unreachable
from berth.kube.find_access import load_access
from berth.kube.lease import LeaseSpec, create_lease, micro_time, read_lease, write_lease
from berth.kube.listing import pages
from berth.kube.reflect import Reflector
from berth.kube.retry import Backoff
from berth.kube.review import Action, PathAction, User, may, may_we, our_rules, review_token, who_am_i
from devcluster import Admin, Cluster
from devcluster.certificates import make_certificate

T = TypeVar("T")
WIDGETS = "/apis/test.berth.dev/v1/widgets"


def live(cluster: Cluster, story: Callable[[Client], Awaitable[T]], user: str = "admin") -> T:
    return through(load_access(str(cluster.kubeconfig_of(user))), story)


def through(access: Access, story: Callable[[Client], Awaitable[T]], longest_s: float = 60.0) -> T:
    async def run() -> T:
        async with asyncio.timeout(longest_s), Client(access) as client:
            return await story(client)

    return asyncio.run(run())


def pod(namespace: str, name: str, **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **meta},
        "spec": {
            "schedulerName": "nobody",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [{"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
        },
    }


def path_of(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/pods{f'/{name}' if name else ''}"


def refusal(cluster: Cluster, story: Callable[[Client], Awaitable[Any]], user: str = "admin") -> ApiError:
    with pytest.raises(ApiError) as caught:
        live(cluster, story, user)
    return caught.value


# ---- who we are


def test_tokens_certificates_and_commands(cluster: Cluster, tmp_path: Path) -> None:
    pki = cluster.ca.parent
    make_certificate(pki, "jane", "/O=dev/O=ops/CN=jane")
    plugin = tmp_path / "plugin"
    printed = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    printed["status"] = {"token": cluster.token_of("viewer")}  # type: ignore[assignment]
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(printed)}'\n")
    plugin.chmod(0o755)
    users: dict[str, dict[str, Any]] = {
        "admin": {"token": cluster.token_of("admin")},
        "jane": {"client-certificate": str(pki / "jane.crt"), "client-key": str(pki / "jane.key")},
        "viewer": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin"}},
        "alice": {"token": cluster.token_of("admin"), "as": "alice", "as-groups": ["a", "b"]},
    }
    config = {
        "clusters": [{"name": "c", "cluster": {"server": cluster.url, "certificate-authority": str(cluster.ca)}}],
        "users": [{"name": name, "user": fields} for name, fields in users.items()],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name}} for name in users],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    found = {name: through(load_access(str(tmp_path / "config"), name), who_am_i) for name in users}
    assert {name: user.username for name, user in found.items()} == {name: name for name in users}
    assert set(found["jane"].groups or ()) == {"dev", "ops", "system:authenticated"}
    assert set(found["alice"].groups or ()) == {"a", "b", "system:authenticated"}


def test_the_service_account_of_a_pod_whose_token_rotates(
    cluster: Cluster, admin: Admin, namespace: str, tmp_path: Path
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "berth", "namespace": namespace}}
    admin.create(account)
    (tmp_path / "token").write_text("an old one")
    (tmp_path / "namespace").write_text(namespace)
    (tmp_path / "ca.crt").write_bytes(cluster.ca.read_bytes())
    host, port = cluster.url.removeprefix("https://").split(":")
    environ = {"HOME": "/nonexistent", "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    access = load_access(environ=environ, service_account=tmp_path)
    assert access.namespace == namespace

    async def story(client: Client) -> None:
        with pytest.raises(ApiError) as caught:
            await who_am_i(client)
        assert caught.value.is_unauthorized
        (tmp_path / "token").write_text(admin_token)
        assert (await who_am_i(client)).username == f"system:serviceaccount:{namespace}:berth"
        assert client.counts == {("POST", 401): 2, ("POST", 201): 1}

    admin_token = admin.service_account_token(namespace, "berth")
    through(access, story)


# ---- what is served


def test_discovery_says_the_same_both_ways(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    aggregated: Served = live(cluster, served)
    monkeypatch.setattr(discover, "AGGREGATED", "application/json")
    by_group: Served = live(cluster, served)
    assert aggregated.server == by_group.server
    assert aggregated.server.number >= (1, 35)
    assert not aggregated.unseen and not by_group.unseen

    def plain(found: Served) -> dict[Any, Any]:
        return {
            key: [
                (each.version, each.kind, each.is_namespaced, set(each.verbs), set(each.subresources))
                for each in versions
            ]
            for key, versions in found.resources.items()
        }

    assert plain(aggregated) == plain(by_group)
    pods = aggregated.preferred("", "pods")
    assert pods is not None and pods.is_namespaced and {"binding", "eviction"} <= set(pods.subresources)
    assert not aggregated.has("kueue.x-k8s.io", "workloads")


def test_a_viewer_may_discover(cluster: Cluster) -> None:
    assert live(cluster, served, "nobody").has("", "nodes")


# ---- writes and their preconditions


def test_a_bind_holds_its_preconditions(cluster: Cluster, admin: Admin, namespace: str, make_nodes: Any) -> None:
    (node, other) = make_nodes(2)
    uid = admin.create(pod(namespace, "a"))["metadata"]["uid"]

    async def story(client: Client) -> None:
        for preconditions in ((uid[:-4] + "ffff", None), (uid, "1")):
            with pytest.raises(ApiError) as caught:
                await client.bind(namespace, "a", *preconditions, node)
            assert caught.value.is_conflict, caught.value
        version = (await client.get(path_of(namespace, "a")))["metadata"]["resourceVersion"]
        await client.bind(namespace, "a", uid, version, node, {"berth.dev/epoch": '7 "quoted" \u00e4'})
        with pytest.raises(ApiError) as caught:
            await client.bind(namespace, "a", uid, None, other)
        assert caught.value.is_conflict and "already assigned" in caught.value.message
        with pytest.raises(ApiError) as caught:
            await client.bind(namespace, "b", uid, None, node)
        assert caught.value.is_not_found

    live(cluster, story)
    bound = admin.get(path_of(namespace, "a"))
    assert bound["spec"]["nodeName"] == node
    assert bound["metadata"]["annotations"]["berth.dev/epoch"] == '7 "quoted" \u00e4'


def test_an_eviction_asks_the_budget(cluster: Cluster, admin: Admin, namespace: str, make_nodes: Any) -> None:
    (node,) = make_nodes(1)
    made = admin.create(pod(namespace, "a", labels={"app": "x"}))
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "x", "namespace": namespace},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "x"}}},
    }
    admin.bind(namespace, "a", node)
    admin.patch(f"{path_of(namespace, 'a')}/status", {"status": {"phase": "Running"}})
    admin.create(budget)
    uid = made["metadata"]["uid"]
    admin.until(lambda: admin.items(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")[0].get("status"))

    async def story(client: Client) -> None:
        with pytest.raises(ApiError) as caught:
            await client.evict(namespace, "a", uid, 0)
        assert caught.value.is_too_many and "disruption budget" in caught.value.message
        assert client.counts["POST", 429] == 1
        await client.delete(f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/x")
        with pytest.raises(ApiError) as caught:
            await client.evict(namespace, "a", "another", 0)
        assert caught.value.is_conflict
        await client.evict(namespace, "a", uid, 0, dry_run=True)
        assert (await client.get(path_of(namespace, "a")))["metadata"].get("deletionTimestamp") is None
        await client.evict(namespace, "a", uid, 0)
        with pytest.raises(ApiError) as caught:
            await client.get(path_of(namespace, "a"))
        assert caught.value.is_not_found

    live(cluster, story)


def test_patches_and_deletes(cluster: Cluster, admin: Admin, namespace: str) -> None:
    made = admin.create(pod(namespace, "a"))
    version, uid = made["metadata"]["resourceVersion"], made["metadata"]["uid"]
    path = path_of(namespace, "a")

    async def story(client: Client) -> None:
        await client.patch(path, {"metadata": {"labels": {"merge": "1"}, "resourceVersion": version}})
        with pytest.raises(ApiError) as caught:
            await client.patch(path, {"metadata": {"labels": {"merge": "2"}, "resourceVersion": version}})
        assert caught.value.is_conflict
        await client.patch(path, {"metadata": {"labels": {"strategic": "1"}}}, "strategic")
        await client.patch(path, [{"op": "add", "path": "/metadata/labels/json", "value": "1"}], "json")
        applied = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"merge": "3"}}}
        with pytest.raises(ApiError) as caught:
            await client.patch(path, applied, "apply", "somebody")
        assert caught.value.is_conflict and caught.value.causes[0].field == ".metadata.labels.merge"
        await client.patch(path, applied, "apply", "somebody", force=True)
        await client.patch(path, {"metadata": {"labels": {"dry": "1"}}}, dry_run=True)
        labels = (await client.get(path))["metadata"]["labels"]
        assert labels == {"merge": "3", "strategic": "1", "json": "1"}
        for preconditions in ({"uid": "another"}, {"resource_version": version}):
            with pytest.raises(ApiError) as caught:
                await client.delete(path, **preconditions)
            assert caught.value.is_conflict
        await client.delete(path, uid=uid, grace_s=0)
        with pytest.raises(ApiError) as caught:
            await client.post(path_of(namespace), {**pod(namespace, "a"), "spec": {}})
        assert caught.value.status == 422 and caught.value.causes[0].field == "spec.containers"

    live(cluster, story)


def test_creating_twice(cluster: Cluster, admin: Admin, namespace: str) -> None:
    admin.create(pod(namespace, "a"))
    error = refusal(cluster, lambda client: client.post(path_of(namespace), pod(namespace, "a")))
    assert error.is_already_there and not error.is_conflict


def test_a_right_that_is_missing_is_named(cluster: Cluster, namespace: str) -> None:
    error = refusal(cluster, lambda client: client.bind(namespace, "a", "u", None, "n"), "nobody")
    assert error.is_forbidden
    assert '"nobody" cannot create resource "pods/binding"' in error.message


def test_binds_many_at_a_time(cluster: Cluster, admin: Admin, namespace: str, make_nodes: Any) -> None:
    (node,) = make_nodes(1)
    made = admin.create_all([pod(namespace, f"p{number}") for number in range(100)])

    async def story(client: Client) -> None:
        uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in made}
        await asyncio.gather(*(client.bind(namespace, name, uid, None, node) for name, uid in uids.items()))
        assert client.counts == {("POST", 201): 100}

    live(cluster, story)
    assert {each["spec"]["nodeName"] for each in admin.items(path_of(namespace))} == {node}


# ---- Leases and reviews


def test_only_one_writes_a_lease(cluster: Cluster, namespace: str) -> None:
    async def story(client: Client) -> None:
        with pytest.raises(ApiError) as caught:
            await read_lease(client, namespace, "berth")
        assert caught.value.is_not_found
        spec = LeaseSpec("me", 15, micro_time(time.time()), micro_time(time.time()), 1)
        made = await create_lease(client, namespace, "berth", spec)
        with pytest.raises(ApiError) as caught:
            await create_lease(client, namespace, "berth", spec)
        assert caught.value.is_already_there
        assert made.spec == spec
        written = await write_lease(client, made)
        assert written.spec == spec
        outcomes = await asyncio.gather(
            *(write_lease(client, changed(written, n)) for n in range(5)), return_exceptions=True
        )
        assert sum(isinstance(outcome, ApiError) and outcome.is_conflict for outcome in outcomes) == 4

    def changed(lease: Any, number: int) -> Any:
        return type(lease)(lease.metadata, LeaseSpec("other", 15, lease_transitions=number + 2))

    live(cluster, story)


def test_reviews(cluster: Cluster, namespace: str) -> None:
    async def as_admin(client: Client) -> None:
        found = await review_token(client, cluster.token_of("alice"))
        assert found.authenticated and found.user.username == "alice"
        assert "team-a" in (found.user.groups or ())
        assert not (await review_token(client, "nonsense")).authenticated
        assert (await may_we(client, Action("create", "pods", subresource="binding"))).allowed
        assert not (await may(client, User("nobody"), Action("list", "nodes"))).allowed
        assert (await may(client, User("x", groups=("system:masters",)), PathAction("get", "/debug/snapshot"))).allowed
        assert not (await may(client, User("nobody"), PathAction("get", "/debug/snapshot"))).allowed
        assert (await our_rules(client, namespace)).allow(Action("create", "pods", namespace=namespace))

    async def as_nobody(client: Client) -> None:
        assert not (await may_we(client, Action("list", "nodes"))).allowed
        assert not (await our_rules(client, namespace)).allow(Action("list", "pods", namespace=namespace))

    live(cluster, as_admin)
    live(cluster, as_nobody, "nobody")


# ---- lists


def test_pages(cluster: Cluster, admin: Admin, namespace: str) -> None:
    admin.create_all([pod(namespace, f"p{number:02}") for number in range(23)])

    async def story(client: Client) -> None:
        got = [page async for page in pages(client, path_of(namespace), wire.Pod, 10)]
        assert [len(page.items) for page in got] == [10, 10, 3]
        assert [(page.is_first, page.is_last) for page in got] == [(True, False), (False, False), (False, True)]
        assert len({page.resource_version for page in got}) == 1
        names = [each.metadata.name for page in got for each in page.items if each.metadata]
        assert names == [f"p{number:02}" for number in range(23)]

    live(cluster, story)


def test_a_continue_token_that_is_none(cluster: Cluster, namespace: str) -> None:
    async def story(client: Client) -> None:
        await client.get(path_of(namespace), params={"limit": 1, "continue": "nonsense"})

    assert refusal(cluster, story).status == 400


# ---- watches


class Mirror:
    """A reflector's sink: the names that there are, and on which node."""

    def __init__(self) -> None:
        self.state: dict[str, str] = {}
        self.uids: dict[str, str] = {}
        self.failures: list[ApiError] = []

    def sink(self, changes: list[Change[Any]]) -> None:
        for change in changes:
            name = change.key[1]
            if change.object is None:
                del self.state[name]
                del self.uids[name]
                continue
            thing = change.object
            if isinstance(thing, dict):
                self.state[name], self.uids[name] = "", thing["metadata"]["uid"]
            else:
                assert self.uids.setdefault(name, thing.metadata.uid) == thing.metadata.uid
                self.state[name] = thing.spec.node_name or ""

    async def until(self, state: dict[str, str], longest_s: float = 20.0) -> None:
        async with asyncio.timeout(longest_s):
            while self.state != state:
                await asyncio.sleep(0.005)


def reflecting(
    cluster: Cluster,
    path: str,
    story: Callable[[Reflector[Any], Mirror], Awaitable[None]],
    type: Any = wire.Pod,
    user: str = "admin",
    **options: Any,
) -> None:
    async def run(client: Client) -> None:
        mirror = Mirror()
        options.setdefault("backoff", Backoff(0.05, 0.2))
        reflector = Reflector(client, path, type, mirror.sink, failures=mirror.failures.append, **options)
        task = asyncio.create_task(reflector.run())
        try:
            await story(reflector, mirror)
            assert not task.done()
        finally:
            task.cancel()

    live(cluster, run, user)


async def aside(work: Callable[..., Any], *arguments: Any) -> Any:
    """The test's own client blocks: not on the reflector's loop."""
    return await asyncio.to_thread(work, *arguments)


@pytest.mark.parametrize("stream_lists", [True, False])
def test_a_reflector_follows(
    cluster: Cluster, admin: Admin, namespace: str, make_nodes: Any, stream_lists: bool
) -> None:
    (node,) = make_nodes(1)
    admin.create_all([pod(namespace, f"p{number}") for number in range(5)])

    async def story(reflector: Reflector[Any], mirror: Mirror) -> None:
        await reflector.synced.wait()
        assert mirror.state == {f"p{number}": "" for number in range(5)}
        await aside(admin.bind, namespace, "p1", node)
        await aside(lambda: admin.delete(path_of(namespace, "p2"), grace_s=0))
        await aside(admin.create, pod(namespace, "q"))
        await mirror.until({"p0": "", "p1": node, "p3": "", "p4": "", "q": ""})
        assert reflector._stream_lists == stream_lists, "the server streams lists"
        assert not mirror.failures and reflector.relists == 0

    reflecting(cluster, path_of(namespace), story, stream_lists=stream_lists, page_limit=2)


def test_selectors(cluster: Cluster, admin: Admin, namespace: str, make_nodes: Any) -> None:
    (node,) = make_nodes(1)
    admin.create(pod(namespace, "a", labels={"app": "x"}))
    admin.create(pod(namespace, "b"))

    async def story(reflector: Reflector[Any], mirror: Mirror) -> None:
        await reflector.synced.wait()
        assert mirror.state == {"a": ""}
        await aside(admin.bind, namespace, "a", node)
        await mirror.until({})

    reflecting(cluster, path_of(namespace), story, label_selector="app=x", field_selector="spec.nodeName=")


def test_a_position_that_is_too_old(cluster: Cluster, admin: Admin, namespace: str) -> None:
    """What vanished and what was made anew, while nobody listened, is told after a 410."""
    for name in ("stays", "goes", "anew"):
        admin.create(pod(namespace, name))

    async def story(client: Client) -> None:
        mirror = Mirror()
        reflector = Reflector(client, path_of(namespace), wire.Pod, mirror.sink, backoff=Backoff(0.05, 0.2))
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        task.cancel()
        before = dict(mirror.uids)
        for name in ("goes", "anew"):
            await aside(lambda name=name: admin.delete(path_of(namespace, name), grace_s=0))
        await aside(admin.create, pod(namespace, "anew"))
        # A server that was started after these changes has no history of them.
        await aside(cluster.restart, "kube-apiserver")
        task = asyncio.create_task(reflector.run())
        await mirror.until({"stays": "", "anew": ""})
        assert reflector.relists == 1
        assert mirror.uids["stays"] == before["stays"] and mirror.uids["anew"] != before["anew"]
        task.cancel()

    live(cluster, story)


@pytest.mark.parametrize("component", ["kube-apiserver", "etcd"])
def test_the_control_plane_is_restarted(cluster: Cluster, admin: Admin, namespace: str, component: str) -> None:
    admin.create_all([pod(namespace, f"p{number}") for number in range(10)])

    async def story(reflector: Reflector[Any], mirror: Mirror) -> None:
        await reflector.synced.wait()
        await aside(cluster.restart, component, 0.5)
        await aside(admin.forget_connections)
        await aside(lambda: admin.until(lambda: admin.create(pod(namespace, "after")), 20))
        await aside(lambda: admin.delete(path_of(namespace, "p3"), grace_s=0))
        await mirror.until({**{f"p{number}": "" for number in range(10) if number != 3}, "after": ""})

    reflecting(cluster, path_of(namespace), story)


def test_writes_while_the_api_server_is_away(cluster: Cluster, admin: Admin, namespace: str, make_nodes: Any) -> None:
    (node,) = make_nodes(1)
    uid = admin.create(pod(namespace, "a"))["metadata"]["uid"]

    async def story(client: Client) -> None:
        await client.get(path_of(namespace, "a"))
        await aside(cluster.kill, "kube-apiserver")
        with pytest.raises(Unreachable):
            await client.bind(namespace, "a", uid, None, node, timeout_s=0.5)
        again = asyncio.create_task(client.request("GET", path_of(namespace, "a"), timeout_s=40, most_attempts=1000))
        await aside(cluster.start_component, "kube-apiserver")
        assert json.loads(await again)["metadata"]["uid"] == uid
        await client.bind(namespace, "a", uid, None, node)

    live(cluster, story)


def test_too_many_requests(cluster: Cluster, admin: Admin, namespace: str) -> None:
    """A user of whom the API server serves one request at a time, and rejects the others (priority and fairness)."""
    flow = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "metadata": {"name": "jail"}}
    limited = {"nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}}
    whom = [{"kind": "User", "user": {"name": "alice"}}]
    what = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"], "namespaces": ["*"]}]
    rules = [{"subjects": whom, "resourceRules": what}]
    spec = {"priorityLevelConfiguration": {"name": "jail"}, "matchingPrecedence": 2, "rules": rules}

    async def story(client: Client) -> None:
        def once() -> Awaitable[Any]:
            return client.request("GET", path_of(namespace), most_attempts=1)

        async def refused() -> list[ApiError]:
            answers = await asyncio.gather(*(once() for _ in range(40)), return_exceptions=True)
            return [answer for answer in answers if isinstance(answer, ApiError) and answer.is_too_many]

        async with asyncio.timeout(20):
            while not (await may_we(client, Action("create", "pods", namespace=namespace))).allowed:
                await asyncio.sleep(0.05)
            while not (errors := await refused()):
                await asyncio.sleep(0.05)
        assert {error.retry_after_s for error in errors} == {1.0}
        client.counts.clear()
        reads = (client.get(path_of(namespace)) for _ in range(40))
        writes = (client.post(path_of(namespace), pod(namespace, f"p{number}")) for number in range(10))
        await asyncio.gather(*reads, *writes)
        assert client.counts["GET", 429] + client.counts["POST", 429] > 0
        assert client.counts["GET", 200] == 40 and client.counts["POST", 201] == 10

    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    admin.create(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "alice", "namespace": namespace},
            "roleRef": role,
            "subjects": [{"kind": "User", "name": "alice"}],
        }
    )
    admin.create({**flow, "kind": "PriorityLevelConfiguration", "spec": {"type": "Limited", "limited": limited}})
    try:
        admin.create({**flow, "kind": "FlowSchema", "spec": spec})
        live(cluster, story, "alice")
    finally:
        for kind in ("flowschemas", "prioritylevelconfigurations"):
            admin.delete(f"/apis/flowcontrol.apiserver.k8s.io/v1/{kind}/jail")


def widget_kind() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.berth.dev"},
        "spec": {
            "group": "test.berth.dev",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def is_established(kind: dict[str, Any]) -> bool:
    conditions = kind.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def test_a_kind_that_comes_and_goes(cluster: Cluster, admin: Admin, namespace: str) -> None:
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.test.berth.dev"
    widget = {"apiVersion": "test.berth.dev/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": namespace}}

    async def story(reflector: Reflector[Any], mirror: Mirror) -> None:
        await reflector.synced.wait()
        assert reflector.is_absent
        await aside(admin.create, widget_kind())
        await aside(lambda: admin.until(lambda: is_established(admin.get(crd)), 10))
        await aside(admin.request, "POST", f"/apis/test.berth.dev/v1/namespaces/{namespace}/widgets", widget)
        await mirror.until({"w": ""})
        assert not reflector.is_absent
        await aside(admin.delete, crd)
        await mirror.until({})
        async with asyncio.timeout(20):
            while not reflector.is_absent:
                await asyncio.sleep(0.05)

    try:
        reflecting(cluster, WIDGETS, story, type=dict, look_again_s=0.3)
    finally:
        admin.delete(crd)


def test_a_right_that_is_given_later(cluster: Cluster, admin: Admin, namespace: str) -> None:
    admin.create(pod(namespace, "a"))
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "see", "namespace": namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "see", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "see"},
        "subjects": [{"kind": "User", "name": "nobody"}],
    }

    async def story(reflector: Reflector[Any], mirror: Mirror) -> None:
        await reflector.answered.wait()
        assert reflector.is_forbidden and not reflector.synced.is_set()
        assert "cannot" in mirror.failures[0].message and "pods" in mirror.failures[0].message
        await aside(admin.create, role)
        await aside(admin.create, binding)
        reflector.look_again()
        async with asyncio.timeout(20):
            await reflector.synced.wait()
        assert mirror.state == {"a": ""} and not reflector.is_forbidden

    reflecting(cluster, path_of(namespace), story, user="nobody", look_again_s=0.5)
