"""A small client of the Kubernetes API for tests: objects are plain mappings, errors are exceptions.

`Api` is for coroutines; `Admin` gives the same to a test that has no event loop.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec

from devcluster.access import Access
from devcluster.background import BackgroundLoop

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Refused(Exception):
    """The API server said no. `status` is the HTTP status, `reason` Kubernetes' own word (NotFound, Conflict, ...)."""

    def __init__(self, status: int, reason: str, message: str, request: str) -> None:
        super().__init__(f"{request}: {status} {reason}: {message}")
        self.status = status
        self.reason = reason


class Api:
    """The API of one server as one user. Use it on one event loop, and close it."""

    def __init__(self, access: Access) -> None:
        self.url = access.url
        self._access = access
        self._session: aiohttp.ClientSession | None = None
        self._places: dict[tuple[str, str], tuple[str, bool]] = {}

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            context = ssl.create_default_context(cadata=self._access.authority)
            self._session = aiohttp.ClientSession(
                headers={"Authorization": f"Bearer {self._access.token}"},
                connector=aiohttp.TCPConnector(ssl=context, limit=0),
                read_bufsize=1 << 20,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(
        self, method: str, path: str, body: Any = None, content: str = "application/json", timeout_s: float = 60.0
    ) -> Any:
        """The decoded answer (text where it is not JSON). Raises Refused; waits and repeats on 429.

        A connection that breaks is tried again for reads alone: a write may have happened.
        """
        data = None if body is None else msgspec.json.encode(body)
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=10)
        headers = {"Content-Type": content} if data is not None else {}
        for attempt in range(20):
            try:
                sent = self.session.request(method, self.url + path, data=data, headers=headers, timeout=timeout)
                async with sent as answer:
                    text = await answer.read()
                    if answer.status == 429 and answer.headers.get("Retry-After"):
                        await asyncio.sleep(min(1.0, float(answer.headers["Retry-After"])))
                        continue
                    if answer.status >= 400:
                        raise _refusal(answer.status, text, f"{method} {path}")
                    if "json" in answer.headers.get("Content-Type", ""):
                        return msgspec.json.decode(text)
                    return text.decode()
            except (aiohttp.ClientConnectionError, ConnectionError):
                if method != "GET" or attempt >= 3:
                    raise
                await asyncio.sleep(0.05)
        raise Refused(429, "TooManyRequests", "20 attempts were refused", f"{method} {path}")

    async def path_of(self, item: Mapping[str, Any]) -> str:
        """Where an object with apiVersion, kind and metadata.name lives; where it is made, without the name."""
        return f"{await self.collection_of(item)}/{item['metadata']['name']}"

    async def collection_of(self, item: Mapping[str, Any]) -> str:
        """The path of the list that an object belongs to. The API server is asked once for each kind."""
        version, kind = item["apiVersion"], item["kind"]
        root = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        if (version, kind) not in self._places:
            for resource in (await self.request("GET", root))["resources"]:
                if "/" not in resource["name"]:
                    self._places[version, resource["kind"]] = (resource["name"], resource["namespaced"])
        if (version, kind) not in self._places:
            raise Refused(404, "NotFound", f"the server knows no {kind} in {version}", f"GET {root}")
        plural, namespaced = self._places[version, kind]
        if not namespaced:
            return f"{root}/{plural}"
        return f"{root}/namespaces/{item['metadata'].get('namespace', 'default')}/{plural}"

    async def create(self, item: Mapping[str, Any]) -> Any:
        return await self.request("POST", await self.collection_of(item), item)

    async def apply(self, item: Mapping[str, Any], manager: str = "devcluster") -> Any:
        """Server-side apply, by force: what `kubectl apply --server-side` does."""
        query = urlencode({"fieldManager": manager, "force": "true"})
        return await self.request("PATCH", f"{await self.path_of(item)}?{query}", item, APPLY)

    async def delete(self, path: str, grace_s: int | None = None) -> None:
        """Delete an object, or all of a list. What is gone already is no error."""
        body = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        try:
            await self.request("DELETE", path, {"propagationPolicy": "Background", **body})
        except Refused as refused:
            if refused.status != 404:
                raise

    async def all_of(self, requests: Iterable[tuple[str, str, Any, str]], in_flight: int = 48) -> list[Any]:
        """Answers to many (method, path, body, content type), so many at once. The first refusal is raised."""
        todo = list(enumerate(requests))
        answers: list[Any] = [None] * len(todo)
        work = iter(todo)

        async def worker() -> None:
            for index, (method, path, body, content) in work:
                answers[index] = await self.request(method, path, body, content)

        await asyncio.gather(*[worker() for _ in range(min(in_flight, len(todo)))])
        return answers


class Admin:
    """The same for code without an event loop. Threads may share one."""

    def __init__(self, access: Access) -> None:
        self._api = Api(access)
        self._loop = BackgroundLoop("devcluster-admin")

    def close(self) -> None:
        self._loop.run(self._api.close())
        self._loop.close()

    def forget_connections(self) -> None:
        """Open new ones from here on: those that are there lead to a server that has gone."""
        self._loop.run(self._api.close())

    def request(
        self, method: str, path: str, body: Any = None, content: str = "application/json", timeout_s: float = 60.0
    ) -> Any:
        return self._loop.run(self._api.request(method, path, body, content, timeout_s))

    def get(self, path: str) -> Any:
        return self.request("GET", path)

    def items(self, path: str, **query: str) -> list[Object]:
        """The objects of a list, such as `items("/api/v1/pods", labelSelector="app=load")`."""
        items: list[Object] = self.get(path + ("?" + urlencode(query) if query else ""))["items"]
        return items

    def path_of(self, item: Mapping[str, Any]) -> str:
        return self._loop.run(self._api.path_of(item))

    def create(self, item: Mapping[str, Any]) -> Any:
        return self._loop.run(self._api.create(item))

    def apply(self, item: Mapping[str, Any], manager: str = "devcluster") -> Any:
        return self._loop.run(self._api.apply(item, manager))

    def patch(self, path: str, change: Any, content: str = MERGE) -> Any:
        return self.request("PATCH", path, change, content)

    def delete(self, path: str, grace_s: int | None = None) -> None:
        self._loop.run(self._api.delete(path, grace_s))

    def create_all(self, items: Iterable[Mapping[str, Any]], in_flight: int = 48) -> list[Object]:
        """Create many objects, so many at once; about 1,000 a second on two cores."""

        async def work() -> list[Object]:
            posts = [("POST", await self._api.collection_of(item), item, "application/json") for item in items]
            return await self._api.all_of(posts, in_flight)

        return self._loop.run(work())

    def bind(self, namespace: str, pod: str, node: str) -> None:
        """Bind a pod by hand, as a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        self.request("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)

    def make_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """A namespace in which pods can be made at once: its default ServiceAccount is not waited for but made."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}})
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        try:
            self.create(account)
        except Refused as refused:
            if refused.reason != "AlreadyExists":  # the controller was quicker
                raise

    def service_account_token(self, namespace: str, name: str, lifetime_s: int = 3600) -> str:
        """A token of a ServiceAccount, as its pods get one."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        spec = {"expirationSeconds": lifetime_s}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        return str(self.request("POST", path, body)["status"]["token"])

    def until(self, claim: Callable[[], Any], timeout_s: float = 10.0, what: str = "", every_s: float = 0.05) -> Any:
        """Ask until the answer is true and give it back. Raises TimeoutError that says `what` did not happen."""
        until = time.monotonic() + timeout_s
        while not (answer := claim()):
            if time.monotonic() > until:
                raise TimeoutError(f"Not within {timeout_s:g} s: {what or 'the claim'}.")
            time.sleep(every_s)
        return answer


def _refusal(status: int, text: bytes, request: str) -> Refused:
    try:
        answer = json.loads(text)
        return Refused(status, answer.get("reason", ""), answer.get("message", ""), request)
    except (ValueError, AttributeError):
        return Refused(status, "", text[:300].decode(errors="replace"), request)
