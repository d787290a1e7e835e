"""The proxy misbehaves as it is told to, and only then."""

from __future__ import annotations

import threading
import time

import aiohttp
import pytest

from devcluster import Admin, Interference, Refusal, Refused, gpu_pod
from devcluster.api import Api
from devcluster.background import BackgroundLoop
from devcluster.watch import SYNCED, changes


@pytest.fixture
def proxy(cluster):
    with Interference(cluster) as proxy:
        yield proxy


@pytest.fixture
def through(proxy):
    """A client that goes through the proxy."""
    client = Admin(proxy.access_of("admin"))
    yield client
    client.close()


@pytest.fixture
def seen(proxy):
    """Names of the pods that a watch through the proxy has told, in order."""
    names, synced, loop, api = [], threading.Event(), BackgroundLoop("watch"), Api(proxy.access_of("admin"))

    async def watch():
        async for change, pod in changes(api, "/api/v1/pods"):
            if change == SYNCED:
                synced.set()
            else:
                names.append(pod["metadata"]["name"])

    loop.spawn(watch())
    assert synced.wait(10)
    until(lambda: proxy.open_watches == 1)
    yield names
    loop.run(api.close())
    loop.close()


def until(claim, timeout_s=5.0):
    end = time.monotonic() + timeout_s
    while not claim():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_left_alone_it_changes_nothing(cluster, admin, namespace, through, proxy, seen):
    through.create(gpu_pod("p", namespace))
    assert through.get(f"/api/v1/namespaces/{namespace}/pods/p") == admin.get(f"/api/v1/namespaces/{namespace}/pods/p")
    with pytest.raises(Refused) as refused:
        through.create(gpu_pod("p", namespace))
    assert (refused.value.status, refused.value.reason) == (409, "AlreadyExists")
    until(lambda: seen == ["p"])
    assert f"server: {proxy.url}\n" in proxy.kubeconfig_of("admin").read_text()


def test_it_is_slow_where_it_should_be(namespace, through, proxy):
    proxy.delay_s = lambda method, path: 0.4 if method == "POST" else 0.0
    began = time.monotonic()
    through.create(gpu_pod("p", namespace))
    assert time.monotonic() - began > 0.4
    began = time.monotonic()
    through.get("/version")
    assert time.monotonic() - began < 0.3


def test_it_refuses_so_many_of_what_matches(admin, namespace, make_nodes, through, proxy):
    make_nodes(1)
    through.create(gpu_pod("p", namespace))
    conflict = Refusal(409, path="/binding$", method="POST", at_most=2)
    proxy.refusals = [conflict]
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            through.bind(namespace, "p", "n00000")
        assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    assert "nodeName" not in admin.get(f"/api/v1/namespaces/{namespace}/pods/p")["spec"]
    through.bind(namespace, "p", "n00000")
    assert conflict.count == 2


def test_too_many_requests_are_asked_to_come_again(through, proxy):
    proxy.refusals = [Refusal(429, at_most=3, retry_after_s=1)]
    began = time.monotonic()
    assert through.get("/version")
    assert time.monotonic() - began > 2.5


def test_an_answer_can_be_lost_of_what_was_done(admin, namespace, through, proxy):
    proxy.refusals = [Refusal(0, path="/pods$", method="POST", is_done=True, at_most=1)]
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        through.create(gpu_pod("p", namespace))
    assert admin.get(f"/api/v1/namespaces/{namespace}/pods/p")


def test_watches_are_cut_and_come_again(admin, namespace, proxy, seen):
    assert proxy.cut_watches() == 1
    admin.create(gpu_pod("after", namespace))
    until(lambda: seen == ["after"])


def test_watches_can_be_held(admin, namespace, proxy, seen):
    proxy.hold_watches()
    admin.create(gpu_pod("held", namespace))
    time.sleep(0.5)
    assert seen == []
    proxy.release_watches()
    until(lambda: seen == ["held"])


def test_a_watch_can_be_told_that_its_position_is_too_old(admin, namespace, proxy, seen):
    gone = Refusal(410, path="watch=1", at_most=1)
    proxy.refusals = [gone]
    proxy.cut_watches()
    until(lambda: gone.count == 1)
    admin.create(gpu_pod("after", namespace))
    until(lambda: seen == ["after"])
