"""Lists in pages, discovery, and reviews."""

from __future__ import annotations

import json
from typing import Any

import pytest
from stand_in import Answer, StandIn, live, refused

from berth.kube import wire
from berth.kube.client import Client
from berth.kube.discover import Served, served
from berth.kube.errors import ApiError
from berth.kube.listing import MOST_RESTARTS, Page, pages
from berth.kube.review import Action, PathAction, User, may, may_we, our_rules, review_token, who_am_i

PODS = "/api/v1/pods"


def listed(*names: str, token: str = "", version: str = "10") -> Answer:
    items = [{"metadata": {"name": name, "namespace": "d"}} for name in names]
    return Answer({"items": items, "metadata": {"resourceVersion": version, "continue": token}})


def shown(page: Page[wire.Pod]) -> tuple[list[str | None], str, bool, bool]:
    names = [pod.metadata.name if pod.metadata else None for pod in page.items]
    return names, page.resource_version, page.is_first, page.is_last


# ---- pages


def test_pages_in_order() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(PODS, listed("a", "b", token="t/1 +"), listed("c", token="t2"), listed())
        got = [shown(page) async for page in pages(client, PODS, wire.Pod, 2, params={"labelSelector": "x=y"})]
        assert got == [
            (["a", "b"], "10", True, False),
            (["c"], "10", False, False),
            ([], "10", False, True),
        ]
        assert [each.query for each in server.seen] == [
            {"labelSelector": "x=y", "limit": "2"},
            {"labelSelector": "x=y", "limit": "2", "continue": "t/1 +"},
            {"labelSelector": "x=y", "limit": "2", "continue": "t2"},
        ]

    live(story)


def test_an_empty_list_is_one_page() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(PODS, Answer({"items": None, "metadata": {"resourceVersion": "3"}}))
        assert [shown(page) async for page in pages(client, PODS, wire.Pod)] == [([], "3", True, True)]

    live(story)


def test_a_token_that_is_too_old_starts_the_list_again() -> None:
    async def story(server: StandIn, client: Client) -> None:
        expired = refused(410, "Expired", "the provided continue parameter is too old")
        server.on(
            PODS, listed("a", token="t"), expired, listed("b", token="t", version="20"), listed("c", version="20")
        )
        got = [shown(page) async for page in pages(client, PODS, wire.Pod)]
        assert got == [
            (["a"], "10", True, False),
            (["b"], "20", True, False),
            (["c"], "20", False, True),
        ]
        assert "continue" not in server.seen[2].query

    live(story)


def test_a_list_that_is_always_too_old_is_given_up() -> None:
    async def story(server: StandIn, client: Client) -> None:
        for _ in range(MOST_RESTARTS + 1):
            server.on(PODS, listed("a", token="t"), refused(410, "Expired"))
        with pytest.raises(ApiError) as caught:
            [page async for page in pages(client, PODS, wire.Pod)]
        assert caught.value.is_gone
        assert len(server.seen) == 2 * (MOST_RESTARTS + 1)

    live(story)


def test_one_object_that_cannot_be_decoded_costs_no_other() -> None:
    items = b'[{"metadata":{"name":"a"}},{"metadata":{"name":7}},{"spec":null}]'
    body = b'{"metadata":{"resourceVersion":"1"},"items":' + items + b"}"

    async def story(server: StandIn, client: Client) -> None:
        server.on(PODS, Answer(body))
        got = [page async for page in pages(client, PODS, wire.Pod, is_lenient=True)]
        assert [pod.metadata for pod in got[0].items] == [wire.ObjectMeta(name="a"), None]
        (broken,) = got[0].undecodable
        assert "Expected `str | null`, got `int`" in broken.problem
        assert broken.raw == b'{"metadata":{"name":7}}'
        with pytest.raises(ApiError, match="Undecodable"):
            [page async for page in pages(client, PODS, wire.Pod)]

    live(story)


def test_a_list_that_is_none() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on(PODS, Answer(b"<html>"))
        with pytest.raises(ApiError, match="Undecodable"):
            [page async for page in pages(client, PODS, wire.Pod, is_lenient=True)]

    live(story)


# ---- discovery


def aggregated(*groups: tuple[str, list[tuple[str, str, list[tuple[str, bool]]]]]) -> Answer:
    return Answer(
        {
            "kind": "APIGroupDiscoveryList",
            "items": [
                {
                    "metadata": {"name": group} if group else {},
                    "versions": [
                        {
                            "version": version,
                            "freshness": freshness,
                            "resources": [
                                {
                                    "resource": name,
                                    "responseKind": {"kind": name.title()},
                                    "scope": "Namespaced" if is_namespaced else "Cluster",
                                    "verbs": ["list", "watch"],
                                    "subresources": [{"subresource": "status"}],
                                }
                                for name, is_namespaced in resources
                            ],
                        }
                        for version, freshness, resources in versions
                    ],
                }
                for group, versions in groups
            ],
        }
    )


def discovered(server: StandIn, client: Client) -> Any:
    server.on("/version", Answer({"major": "1", "minor": "37+", "gitVersion": "v1.37.2"}))
    return served(client)


def test_aggregated_discovery() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on("/api", aggregated(("", [("v1", "Current", [("pods", True), ("nodes", False)])])))
        server.on(
            "/apis",
            aggregated(
                (
                    "a.io",
                    [("v2", "Current", [("things", True)]), ("v1", "Current", [("things", True), ("olds", False)])],
                ),
                ("down.io", [("v1", "Stale", [])]),
            ),
        )
        found: Served = await discovered(server, client)
        assert len(server.seen) == 3
        assert "apidiscovery.k8s.io" in server.asked("/apis")[0].headers["Accept"]
        assert found.server.number == (1, 37)
        assert found.has("", "pods") and found.has("a.io", "olds")
        assert not found.has("a.io", "pods") and not found.has("kueue.x-k8s.io", "workloads")
        assert found.version("a.io", "things") == "v2"
        assert found.version("a.io", "things", ["v1beta1", "v1"]) == "v1"
        assert found.version("a.io", "things", ["v3"]) is None
        assert found.is_unknown("down.io", "x") and not found.is_unknown("a.io", "x")
        things, nodes = found.preferred("a.io", "things"), found.preferred("", "nodes")
        assert things is not None and nodes is not None
        assert (things.kind, things.api_version, things.subresources) == ("Things", "a.io/v2", ("status",))
        assert things.path() == "/apis/a.io/v2/things"
        assert things.path("team", "x") == "/apis/a.io/v2/namespaces/team/things/x"
        assert nodes.path("team", "n") == "/api/v1/nodes/n"

    live(story)


def test_discovery_by_group() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on("/api", Answer({"kind": "APIVersions", "versions": ["v1"]}))
        server.on("/api/v1", Answer({"resources": [{"name": "pods", "namespaced": True}, {"name": "pods/binding"}]}))
        group = {
            "name": "a.io",
            "versions": [{"version": "v2beta1"}, {"version": "v1"}],
            "preferredVersion": {"version": "v1"},
        }
        down = {"name": "down.io", "versions": [{"version": "v1"}]}
        server.on("/apis", Answer({"kind": "APIGroupList", "groups": [group, down]}))
        for version in ("v2beta1", "v1"):
            server.on(f"/apis/a.io/{version}", Answer({"resources": [{"name": "things", "kind": "Thing"}]}))
        server.on("/apis/down.io/v1", refused(404, "NotFound"))
        found: Served = await discovered(server, client)
        pods = found.preferred("", "pods")
        assert pods is not None and pods.subresources == ("binding",) and pods.is_namespaced
        assert not found.has("", "pods/binding")
        assert found.version("a.io", "things") == "v1"
        assert found.version("a.io", "things", {"v2beta1"}) == "v2beta1"
        assert found.unseen == ("down.io",)

    live(story)


def test_discovery_that_is_forbidden_or_nonsense() -> None:
    async def forbidden(server: StandIn, client: Client) -> None:
        server.on("/api", aggregated())
        server.on("/apis", refused(403, "Forbidden"))
        with pytest.raises(ApiError) as caught:
            await discovered(server, client)
        assert caught.value.is_forbidden

    async def nonsense(server: StandIn, client: Client) -> None:
        server.on("/api", aggregated())
        server.on("/apis", Answer(b"<html>"))
        with pytest.raises(ApiError, match="no discovery document"):
            await discovered(server, client)

    live(forbidden)
    live(nonsense)


# ---- reviews


def test_whose_token_this_is() -> None:
    path = "/apis/authentication.k8s.io/v1/tokenreviews"

    async def story(server: StandIn, client: Client) -> None:
        user = {"username": "jane", "groups": ["dev"], "extra": {"k": ["v"]}}
        server.on(
            path, Answer({"status": {"authenticated": True, "user": user}}, 201), Answer({"status": {"error": "x"}})
        )
        found = await review_token(client, "t", ("berth",))
        assert found.authenticated
        assert found.user == User("jane", None, ("dev",), {"k": ("v",)})
        assert json.loads(server.seen[0].body) == {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": "t", "audiences": ["berth"]},
        }
        found = await review_token(client, "t")
        assert not found.authenticated and found.error == "x"

    live(story)


def test_whether_somebody_may() -> None:
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

    async def story(server: StandIn, client: Client) -> None:
        server.on(
            path, Answer({"status": {"allowed": True}}, 201), Answer({"status": {"allowed": False, "denied": True}})
        )
        user = User("jane", "7", ("dev",), {"k": ("v",)})
        assert (await may(client, user, PathAction("get", "/debug/snapshot"))).allowed
        assert json.loads(server.seen[0].body)["spec"] == {
            "user": "jane",
            "uid": "7",
            "groups": ["dev"],
            "extra": {"k": ["v"]},
            "nonResourceAttributes": {"verb": "get", "path": "/debug/snapshot"},
        }
        ruling = await may(client, User("joe"), Action("create", "pods", namespace="team", subresource="binding"))
        assert ruling.denied and not ruling.allowed
        assert json.loads(server.seen[1].body)["spec"] == {
            "user": "joe",
            "resourceAttributes": {
                "verb": "create",
                "resource": "pods",
                "namespace": "team",
                "subresource": "binding",
            },
        }

    live(story)


def test_what_we_may() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", Answer({"status": {"allowed": True}}, 201))
        assert (await may_we(client, Action("list", "nodes"))).allowed
        rule = {"verbs": ["get", "list"], "apiGroups": ["", "a.io"], "resources": ["pods", "*/status", "things/scale"]}
        named = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["mine"]}
        server.on(
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            Answer({"status": {"resourceRules": [rule, named], "nonResourceRules": [], "incomplete": False}}, 201),
        )
        rules = await our_rules(client, "team")
        may_do = {
            str(action): rules.allow(action)
            for action in (
                Action("list", "pods", namespace="team"),
                Action("create", "pods"),
                Action("get", "pods", subresource="status"),
                Action("get", "pods", subresource="log"),
                Action("get", "things", "a.io", subresource="scale"),
                Action("get", "things", "a.io"),
                Action("get", "pods", "b.io"),
                Action("delete", "pods", name="mine"),
                Action("delete", "pods", name="yours"),
            )
        }
        assert may_do == {
            "list pods in team": True,
            "create pods": False,
            "get pods/status": True,
            "get pods/log": False,
            "get things.a.io/scale": True,
            "get things.a.io": False,
            "get pods.b.io": False,
            "delete pods mine": True,
            "delete pods yours": False,
        }
        server.on(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            Answer({"status": {"userInfo": {"username": "me", "groups": ["a"]}}}, 201),
        )
        assert await who_am_i(client) == User("me", None, ("a",))

    live(story)


def test_a_review_that_answers_nonsense() -> None:
    async def story(server: StandIn, client: Client) -> None:
        server.on("/apis/authentication.k8s.io/v1/selfsubjectreviews", Answer({"status": 7}, 201))
        with pytest.raises(ApiError, match="no SelfSubjectReview"):
            await who_am_i(client)

    live(story)
