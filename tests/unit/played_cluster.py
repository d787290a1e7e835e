"""A cluster that a stand-in plays: discovery, lists of the objects given, and reviews, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from stand_in import Answer, Seen, StandIn, refused

Thing = dict[str, Any]

# (group, version, plural, kind, namespaced)
CORE = (
    ("", "v1", "nodes", "Node", False),
    ("", "v1", "pods", "Pod", True),
    ("", "v1", "namespaces", "Namespace", False),
    ("", "v1", "persistentvolumes", "PersistentVolume", False),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False),
    ("batch", "v1", "jobs", "Job", True),
    ("apps", "v1", "replicasets", "ReplicaSet", True),
)
OURS = (
    ("berth.dev", "v1alpha1", "gpuqueues", "GPUQueue", False),
    ("berth.dev", "v1alpha1", "gputopologies", "GPUTopology", False),
    ("berth.dev", "v1alpha1", "gpuclasses", "GPUClass", False),
    ("berth.dev", "v1alpha1", "verdicts", "Verdict", True),
    ("berth.dev", "v1alpha1", "nodeledgers", "NodeLedger", False),
)
HOOKS = "/apis/admissionregistration.k8s.io/v1"
ASKER = "alice"


class Played:
    """What is played. Change `things`, `tokens` or `may` at any time.

    `hidden` are plurals that may not be listed in the whole cluster, `closed` (namespace, plural) there.
    `may` answers reviews: (user, attributes) → allowed.
    """

    def __init__(self, *things: Thing, kinds: tuple[tuple[str, str, str, str, bool], ...] = (*CORE, *OURS)) -> None:
        self.things = list(things)
        self.kinds = kinds
        self.hidden: set[str] = set()
        self.closed: set[tuple[str, str]] = set()
        self.tokens: dict[str, str] = {}
        self.may = lambda user, attributes: True
        self.version = "v1.37.2"
        self.server = StandIn()

    def _set_up(self) -> None:
        on = self.server.on
        _, minor, *_ = self.version.removeprefix("v").split(".")
        on("/version", lambda _: Answer({"major": "1", "minor": minor, "gitVersion": self.version}))
        on("/api", Answer(self._discovery(lambda group: not group)))
        on("/apis", Answer(self._discovery(bool)))
        for group, version, plural, kind, namespaced in self.kinds:
            root = f"/apis/{group}/{version}" if group else f"/api/{version}"
            self._list(f"{root}/{plural}", kind, plural, group)
            if namespaced:
                for namespace in {t["metadata"].get("namespace", "default") for t in self.things} | {"default", "ml"}:
                    self._list(f"{root}/namespaces/{namespace}/{plural}", kind, plural, group, namespace)
        for namespace in {t["metadata"].get("namespace", "default") for t in self.things} | {"default", "ml"}:
            on(f"/api/v1/namespaces/{namespace}", Answer({"kind": "Namespace", "metadata": {"name": namespace}}))
        for plural, kind in (("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
                             ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration")):  # fmt: skip
            self._list(f"{HOOKS}/{plural}", kind, plural, "admissionregistration.k8s.io")
        self._list("/apis/coordination.k8s.io/v1/leases", "Lease", "leases", "coordination.k8s.io")
        on("/apis/authentication.k8s.io/v1/selfsubjectreviews", Answer({"status": {"userInfo": {"username": ASKER}}}))
        on("/apis/authentication.k8s.io/v1/tokenreviews", self._token)
        for review in ("selfsubjectaccessreviews", "subjectaccessreviews"):
            on(f"/apis/authorization.k8s.io/v1/{review}", self._review)

    def _list(self, path: str, kind: str, plural: str, group: str, namespace: str = "") -> None:
        def answer(_: Seen) -> Answer:
            if (plural in self.hidden) if not namespace else (namespace, plural) in self.closed:
                where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
                said = f'{plural} is forbidden: User "{ASKER}" cannot list resource "{plural}" in API group "" {where}'
                return refused(403, "Forbidden", said)
            found = [
                {k: v for k, v in thing.items() if k not in ("apiVersion", "kind")}
                for thing in self.things
                if thing["kind"] == kind
                and thing["apiVersion"].rpartition("/")[0] == group
                and namespace in ("", thing["metadata"].get("namespace", "default"))
            ]
            return Answer({"kind": f"{kind}List", "metadata": {"resourceVersion": "7"}, "items": found})

        self.server.on(path, answer)

    def _discovery(self, chosen: Any) -> Thing:
        groups: dict[str, dict[str, list[Thing]]] = {}
        for group, version, plural, kind, namespaced in self.kinds:
            if chosen(group):
                groups.setdefault(group, {}).setdefault(version, []).append(
                    {"resource": plural, "responseKind": {"kind": kind}, "verbs": ["list", "watch"],
                     "scope": "Namespaced" if namespaced else "Cluster"}
                )  # fmt: skip
        items = [
            {"metadata": {"name": group}, "versions": [{"version": v, "resources": r} for v, r in versions.items()]}
            for group, versions in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}

    def _token(self, seen: Seen) -> Answer:
        user = self.tokens.get(msgspec.json.decode(seen.body)["spec"]["token"])
        status = {"authenticated": True, "user": {"username": user}} if user else {"authenticated": False}
        return Answer({"status": status})

    def _review(self, seen: Seen) -> Answer:
        spec = msgspec.json.decode(seen.body)["spec"]
        attributes = spec.get("resourceAttributes") or spec.get("nonResourceAttributes")
        return Answer({"status": {"allowed": bool(self.may(spec.get("user", ASKER), attributes))}})

    @contextlib.contextmanager
    def running(self) -> Iterator[Played]:
        """In a thread of its own, for commands that run an event loop themselves."""
        self._set_up()
        loop, ready, done = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

        async def serve() -> None:
            async with self.server:
                ready.set()
                await done.wait()

        thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(done.set)
            thread.join(10)

    def kubeconfig(self, folder: Path, namespace: str = "default", server: str = "") -> str:
        """A kubeconfig for the stand-in."""
        path = folder / "kubeconfig"
        text = f"""
apiVersion: v1
kind: Config
current-context: played
clusters: [{{name: c, cluster: {{server: "{server or self.server.url}"}}}}]
users: [{{name: {ASKER}, user: {{token: secret-token}}}}]
contexts: [{{name: played, context: {{cluster: c, user: {ASKER}, namespace: {namespace}}}}}]
"""
        path.write_text(text)
        return str(path)


def node(name: str, gpus: int = 8, **labels: str) -> Thing:
    told = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", **labels}
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": told},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def pod(
    name: str, namespace: str = "ml", gpus: int = 1, on: str = "", scheduler: str = "berth", **metadata: Any
) -> Thing:
    spec: Thing = {
        "schedulerName": scheduler,
        "containers": [
            {
                "name": "c", "image": "registry/private:1", "command": ["run", "--password=hunter2"],
                "env": [{"name": "TOKEN", "value": "hunter2"}],
                "resources": {"limits": {"nvidia.com/gpu": str(gpus)}, "requests": {"nvidia.com/gpu": str(gpus)}},
            }
        ],
    }  # fmt: skip
    if on:
        spec["nodeName"] = on
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}",
                     "creationTimestamp": "2026-11-29T11:00:00Z", **metadata},
        "spec": spec, "status": {"phase": "Running" if on else "Pending"},
    }  # fmt: skip


def verdict(name: str, kind: str = "Pod", namespace: str = "ml", **said: Any) -> Thing:
    return {
        "apiVersion": "berth.dev/v1alpha1", "kind": "Verdict",
        "metadata": {"name": f"{kind.lower()}-{name}", "namespace": namespace},
        "workload": {"kind": kind, "name": name, "uid": f"uid-{name}"},
        "queue": "ml", "pods": 1, "gpus": "8", "verdict": "NotYet", "reason": "QuotaExceeded",
        "sentence": "others wait within their quota, and 8 GPUs are above that of queue ml",
        "since": "2026-11-29T11:30:00Z", "at": "2026-11-29T11:59:48Z", **said,
    }  # fmt: skip
