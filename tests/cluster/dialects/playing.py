"""One scenario on a real API server, in a namespace and on nodes of its own."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from devcluster import Admin, fake_node
from devcluster.api import Refused
from dialects.reading import Scenario, Thing

OWN = "example.com/scenario"  # a label of the scenario's nodes, and a selector of all pods and templates in it
RACK, BLOCK = "example.com/rack", "example.com/block"
WITHIN_S = 15.0
SETTLES_S = 0.5  # for which what is not to happen has not happened
CLUSTER_WIDE = {"ClusterTrainingRuntime", "Topology", "HyperNode", "Queue", "PriorityClass"}


class Unlike(AssertionError):
    """What happened is not what the scenario expects."""


class Play:
    """A scenario while it runs. `run` raises Unlike with the step, what was expected and what is there."""

    def __init__(self, scenario: Scenario, admin: Admin, namespace: str) -> None:
        self.scenario = scenario
        self.namespace = namespace
        self._admin = admin
        self._made: dict[str, Thing] = {}  # by "Kind/name", as the API server has them

    def run(self) -> None:
        self._admin.make_namespace(self.namespace)
        self._admin.create_all(self._nodes())
        for number, (verb, what) in enumerate(self.scenario.steps, 1):
            try:
                self._step(verb, json.loads(json.dumps(what).replace("{namespace}", self.namespace)))
            except (Unlike, Refused) as error:
                raise Unlike(f"{self.scenario.file}, step {number} ({verb}): {error}") from None

    def end(self) -> None:
        """Room for others: neither pods nor nodes are left."""
        for thing in list(self._made.values()):
            if thing["kind"] != "Pod":
                self._admin.delete(self._admin.path_of(thing))
        self._admin.delete(f"/api/v1/namespaces/{self.namespace}/pods", grace_s=0)
        self._admin.delete(f"/api/v1/nodes?labelSelector={OWN}%3D{self.namespace}")
        self._admin.delete(f"/api/v1/namespaces/{self.namespace}")

    def _nodes(self) -> Iterator[Thing]:
        racks = self.scenario.racks
        for i in range(self.scenario.nodes):
            rack = i * racks // self.scenario.nodes
            labels = {OWN: self.namespace, RACK: f"{self.namespace}-r{rack}", BLOCK: f"{self.namespace}-b0"}
            yield fake_node(i, "h100", f"{self.namespace}-n{i}", labels)

    # ---- steps

    def _step(self, verb: str, what: Any) -> None:
        if verb in ("user creates", "controller makes"):
            for thing in what:
                for each in self._objects(thing):
                    self._create(each)
        elif verb.endswith("changes"):
            for called, change in what.items():
                self._change(called, change)
        elif verb.endswith("deletes"):
            for called in what:
                self._delete(called)
        else:
            self._expect(what)

    def _objects(self, thing: Thing) -> list[Thing]:
        """The object itself, or the pods that its controller would make."""
        if "pods" not in thing:
            made = self._with_own(copy.deepcopy(thing))
            meta = made["metadata"]
            for owner in (meta.pop("owned by", None),):
                if owner:
                    meta["ownerReferences"] = [self._reference(owner)]
            return [made]
        owner = self._made[thing["of"]]
        template = _at(owner, thing.get("template", "spec.template"))
        pods = []
        for name in _names(thing["pods"]):
            number = re.search(r"\d*$", name)[0]  # type: ignore[index]
            pod = copy.deepcopy(template)
            meta = dict(pod.get("metadata") or {})
            for kind in ("labels", "annotations"):
                said = {key: str(value).replace("{i}", number) for key, value in thing.get(kind, {}).items()}
                meta[kind] = {**(meta.get(kind) or {}), **said}
            meta |= {"name": name, "ownerReferences": [self._reference(thing.get("owned by", thing["of"]))]}
            pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod["spec"]})
        return [self._with_own(pod) for pod in pods]

    def _with_own(self, thing: Thing) -> Thing:
        """In the scenario's namespace; each pod and each pod template in it kept to the scenario's nodes."""
        if thing["kind"] not in CLUSTER_WIDE:
            thing["metadata"]["namespace"] = self.namespace
        _select(thing, {OWN: self.namespace})
        return thing

    def _reference(self, called: str) -> Thing:
        owner = self._made[called]
        meta = owner["metadata"]
        return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
                "controller": True, "blockOwnerDeletion": True}  # fmt: skip

    def _create(self, thing: Thing) -> None:
        status = thing.pop("status", None)
        made = self._admin.create(thing)
        made = {**made, "apiVersion": thing["apiVersion"], "kind": thing["kind"]}
        if status is not None:
            self._admin.patch(self._admin.path_of(made) + "/status", {"status": status})
        self._made[f"{thing['kind']}/{thing['metadata']['name']}"] = made

    def _change(self, called: str, change: Mapping[str, Any]) -> None:
        thing = self._known(called)
        for part, content in change.items():
            below = "/status" if part == "status" else ""
            self._admin.patch(self._admin.path_of(thing) + below, {part: content})

    def _delete(self, called: str) -> None:
        self._admin.delete(self._admin.path_of(self._known(called)), grace_s=0)
        self._made.pop(called, None)

    def _known(self, called: str) -> Thing:
        """What was made in the scenario, or a pod that a controller of Kubernetes has made."""
        kind, _, name = called.partition("/")
        pod = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": self.namespace}}
        return self._made.get(called, pod)

    # ---- what must come of it

    def _expect(self, wanted: Mapping[str, Any]) -> None:
        until = time.monotonic() + wanted.get("within", WITHIN_S)
        while problem := self._unlike(wanted):
            if time.monotonic() > until:
                raise Unlike(f"{problem}\n{self._scene()}")
            time.sleep(0.15)
        if "waiting" in wanted or wanted.get("bound") == 0:
            time.sleep(SETTLES_S)
            if problem := self._unlike(wanted):
                raise Unlike(f"it did not last: {problem}\n{self._scene()}")

    def _unlike(self, wanted: Mapping[str, Any]) -> str:
        """The first thing that is not so; "" where all is."""
        checks: dict[str, Callable[[Any], str]] = {
            "verdict": self._verdicts_unlike, "noVerdict": self._still_said, "status": self._status_unlike,
        }  # fmt: skip
        if problem := self._pods_unlike(wanted):
            return problem
        return next((said for key, check in checks.items() if key in wanted and (said := check(wanted[key]))), "")

    def _pods(self, beginning: str = "") -> list[Thing]:
        pods = self._admin.items(f"/api/v1/namespaces/{self.namespace}/pods")
        return [p for p in pods if p["metadata"]["name"].startswith(beginning)
                and not p["metadata"].get("deletionTimestamp")]  # fmt: skip

    def _pods_unlike(self, wanted: Mapping[str, Any]) -> str:
        pods = self._pods(wanted.get("pods", ""))
        bound = [p for p in pods if p["spec"].get("nodeName")]
        if "bound" in wanted and len(bound) != wanted["bound"]:
            return f"{wanted['bound']} pods are to be bound, {len(bound)} of {len(pods)} are"
        if "waiting" in wanted and len(pods) - len(bound) != wanted["waiting"]:
            return f"{wanted['waiting']} pods are to wait, {len(pods) - len(bound)} of {len(pods)} do"
        nodes = {n["metadata"]["name"]: n["metadata"]["labels"] for n in self._own_nodes()} if bound else {}
        if strange := {p["spec"]["nodeName"] for p in bound} - set(nodes):
            return f"pods are on nodes that are not of this scenario: {', '.join(sorted(strange))}"
        for label, most in [(label, 1) for label in _listed(wanted.get("inOne"))] + list(
            wanted.get("inDomains", {}).items()
        ):
            domains = {nodes[p["spec"]["nodeName"]][label] for p in bound}
            if len(domains) != most:
                return f"{most} domains of {label} are to be used, it is {', '.join(sorted(domains)) or 'none'}"
        for name, label in wanted.get("where", {}).items():
            node = next((p["spec"]["nodeName"] for p in bound if p["metadata"]["name"] == name), None)
            if node is None or not label.items() <= nodes[node].items():
                return f"{name} is to be on a node with {label}, it is on {node}"
        return ""

    def _own_nodes(self) -> list[Thing]:
        return self._admin.items("/api/v1/nodes", labelSelector=f"{OWN}={self.namespace}")

    def _verdicts(self) -> dict[str, Thing]:
        found = self._admin.items(f"/apis/berth.dev/v1alpha1/namespaces/{self.namespace}/verdicts")
        return {f"{v['workload']['kind']}/{v['workload']['name']}": v for v in found}

    def _verdicts_unlike(self, wanted: Sequence[Mapping[str, Any]]) -> str:
        there = self._verdicts()
        for one in wanted:
            said = there.get(one["of"])
            if said is None:
                return f"a verdict on {one['of']} is to be there, there are: {', '.join(sorted(there)) or 'none'}"
            cause = (said.get("causes") or [{}])[0]
            facts = {"answer": said["verdict"], "reason": said.get("reason"), "need": cause.get("need"),
                     "have": cause.get("have"), "pods": said.get("pods"), "queue": said.get("queue")}  # fmt: skip
            for key, value in one.items():
                if key in facts and facts[key] != value:
                    return f"the verdict on {one['of']} is to have {key} {value}, it has {facts[key]}"
            for text in _listed(one.get("says")):
                if text not in said.get("sentence", ""):
                    return f"the verdict on {one['of']} is to say {text!r}, it says {said.get('sentence')!r}"
            for text in _listed(one.get("finding")):
                if not any(text in finding for finding in said.get("findings") or ()):
                    return f"the verdict on {one['of']} is to have a finding {text!r}, it has {said.get('findings')}"
        return ""

    def _still_said(self, is_none: bool) -> str:
        there = self._verdicts()
        return f"no verdict is to be there, there is {', '.join(sorted(there))}" if is_none and there else ""

    def _status_unlike(self, wanted: Mapping[str, Any]) -> str:
        for called, part in wanted.items():
            status = self._admin.get(self._admin.path_of(self._known(called))).get("status") or {}
            if not _holds(part, status):
                return f"the status of {called} is to have {part}, it is {status}"
        return ""

    def _scene(self) -> str:
        pods = [f"{p['metadata']['name']} on {p['spec'].get('nodeName') or '-'}" for p in self._pods()]
        said = [f"{of}: {v['verdict']} {v.get('reason')}: {v.get('sentence')}" for of, v in self._verdicts().items()]
        return "\n".join(["pods: " + ", ".join(pods), *said])


def _names(said: str | list[str]) -> list[str]:
    """`worker-{0..3}` is worker-0 to worker-3."""
    names: list[str] = []
    for each in _listed(said):
        span = re.fullmatch(r"(.*)\{(\d+)\.\.(\d+)\}(.*)", each)
        if span is None:
            names.append(each)
        else:
            names += [f"{span[1]}{i}{span[4]}" for i in range(int(span[2]), int(span[3]) + 1)]
    return names


def _listed(said: Any) -> list[Any]:
    return [] if said is None else list(said) if isinstance(said, list) else [said]


def _at(thing: Any, path: str) -> Any:
    """`spec.tasks[0].template`."""
    for part in re.findall(r"[^.\[\]]+", path):
        thing = thing[int(part)] if isinstance(thing, list) else thing[part]
    return thing


def _select(thing: Any, selector: Mapping[str, str]) -> None:
    if isinstance(thing, dict):
        if isinstance(thing.get("containers"), list):
            thing["nodeSelector"] = {**thing.get("nodeSelector", {}), **selector}
        for below in thing.values():
            _select(below, selector)
    elif isinstance(thing, list):
        for below in thing:
            _select(below, selector)


def _holds(part: Any, whole: Any) -> bool:
    """Mappings: all its keys. Lists: each entry is held by some entry. Texts that end in …: the beginning."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and _holds(v, whole[k]) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(_holds(p, w) for w in whole) for p in part)
    if isinstance(part, str) and part.endswith("…"):
        return isinstance(whole, str) and whole.startswith(part[:-1])
    return bool(part == whole)
