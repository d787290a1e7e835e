"""Volumes of pods that were placed: selected, waited for, given back; against an API server that is played here."""

from __future__ import annotations

import asyncio
import json

import msgspec
from storage_objects import EBS, LOCAL, NODES, claim, csi_node, local, node, pod, storage_class, volume

from berth.actions.binding import Binder, Outcome, Result
from berth.actions.volumes import Volumes
from berth.app.scheduler.driver import Driver
from berth.kube import wire, wire_volumes
from berth.kube.errors import ApiError, Unreachable
from berth.model.reasons import Reason
from berth.model.resources import is_accelerator, is_extended
from berth.sources.live.refusals import Refusals
from berth.sources.live.world import World

SELECTED = "volume.kubernetes.io/selected-node"


class Cluster:
    """Objects, the world that is told of them, and a client. `refuse` may raise for a verb and a path.

    `provision(claim, node)` is called once a node has been selected, `complete(volume, claim)` once a volume names
    its claim; what they do is told like everything else.
    """

    def __init__(self, *things):
        self.things = {}
        self.now = 1000.0
        self.world = World({"berth"}, now=lambda: self.now)
        self.writes = []
        self.bound = {}
        self.plans = []
        self.leads = True
        self.asked_to_leave = []
        self.refuse = lambda verb, path: None
        self.provision = self.make_volume
        self.complete = self.bind_claim
        for thing in things:
            self.put(thing)

    # ---- objects

    def put(self, thing):
        kind, meta = thing["kind"], thing["metadata"]
        self.things[kind, meta["name"]] = thing
        stock, world = self.world.stock, self.world
        types = {
            "Node": (wire.Node, world.put_node), "Pod": (wire.Pod, world.put_pod),
            "PersistentVolumeClaim": (wire_volumes.PersistentVolumeClaim, stock.put_claim),
            "PersistentVolume": (wire_volumes.PersistentVolume, stock.put_volume),
            "StorageClass": (wire_volumes.StorageClass, stock.put_class),
            "CSINode": (wire_volumes.CsiNode, stock.put_limits),
        }  # fmt: skip
        type_, tell = types[kind]
        tell(msgspec.convert(json.loads(json.dumps(thing)), type_))

    def claim(self, name):
        return self.things["PersistentVolumeClaim", name]

    def selected(self, name):
        return self.claim(name)["metadata"].get("annotations", {}).get(SELECTED)

    def make_volume(self, name, on):
        """As a provisioner does it."""
        self.put(volume(f"pv-{name}", self.claim(name)["spec"]["storageClassName"], of=name, on=on, driver=EBS))
        self.bind_claim(f"pv-{name}", name)

    def give_up(self, name, on):
        """As a provisioner says that it cannot."""
        del self.claim(name)["metadata"]["annotations"][SELECTED]
        self.put(self.claim(name))

    def bind_claim(self, volume_name, name):
        """As the controller-manager completes it."""
        claim = self.claim(name)
        claim["spec"]["volumeName"], claim["status"]["phase"] = volume_name, "Bound"
        self.put(claim)

    # ---- the API server

    async def request(self, verb, path, body=None, *, content_type="", params=None, timeout_s=0.0, most_attempts=1):
        await asyncio.sleep(0)
        assert most_attempts == 1 and content_type == "application/merge-patch+json" and verb == "PATCH"
        change, (*_, resource, name) = json.loads(body), path.split("/")
        self.refuse(verb, path)
        self.writes.append((resource, name))
        kind = {"persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim"}[resource]
        thing = self.things.get((kind, name))
        if thing is None:
            raise ApiError(404, "NotFound", "not found", verb=verb, path=path)
        meta = thing["metadata"]
        for key, value in change["metadata"].items():
            if key != "annotations" and meta.get(key) != value:
                raise ApiError(409, "Conflict", f"{key} is another", verb=verb, path=path)
        for key, value in change["metadata"].get("annotations", {}).items():
            (meta.setdefault("annotations", {}).update({key: value}) if value else meta["annotations"].pop(key, None))
        thing["spec"].update(change.get("spec", {}))
        self.put(thing)
        loop = asyncio.get_running_loop()
        if kind == "PersistentVolume":
            loop.call_soon(self.complete, name, thing["spec"]["claimRef"]["name"])
        elif on := self.selected(name):
            loop.call_soon(self.provision, name, on)
        return body

    async def bind(self, namespace, name, uid, version, node, annotations=None, *, timeout_s=0.0):
        self.bound[name] = node
        thing = self.things["Pod", name]
        thing["spec"]["nodeName"] = node
        self.put(thing)

    async def get(self, path, type):
        raise AssertionError(path)

    # ---- the scheduler

    def heard(self, outcome: Outcome):
        assert outcome.result is Result.Bound, outcome
        self.driver.heard(outcome)

    def tell(self, story, patience_s=600.0):
        """Decide as long as the story goes on; a lambda is a story that ends when it holds."""

        async def work():
            self.volumes = Volumes(self, self.world.selections, may_write=lambda: self.leads, patience_s=patience_s,
                                   now=lambda: self.now)  # fmt: skip
            self.world.stock.on_claim = self.volumes.heard
            binder = Binder(self, self.heard)
            self.driver = Driver(self.world, binder, self, self.volumes, told=self.told, now=lambda: self.now)
            deciding = asyncio.create_task(self.driver.run())
            try:
                self.driver.wake()
                await (story() if asyncio.iscoroutinefunction(story) else self.until(story))
            finally:
                deciding.cancel()
                await asyncio.gather(deciding, return_exceptions=True)
                await self.volumes.close()
                await binder.close()

        asyncio.run(work())

    async def until(self, holds, seconds=5.0):
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.sleep(0.002)

    def pass_time(self, seconds):
        self.now += seconds
        self.driver.wake()

    def submit(self, leaving, promises=None):
        """As the evictor."""
        self.asked_to_leave += leaving

    def told(self, plan, snapshot, seconds):
        self.plans.append((plan, snapshot))

    @property
    def waiting(self):
        if not self.plans:
            return {}
        plan, _ = self.plans[-1]
        return {plan.workloads[w].name: verdict.causes[0] for w, verdict in plan.verdicts.items()}


def gang(*names, **spec):
    """Pods of one workload, all or nothing."""
    for name in names:
        made = pod(name, f"c-{name}", **spec)
        made["metadata"]["labels"] = {"berth.dev/gang": "g"}
        made["metadata"]["annotations"] = {"berth.dev/min-count": str(len(names))}
        yield made


MADE = storage_class("s")
LIMITS = (csi_node("n1", ebs_csi_aws_com=25), csi_node("n2", ebs_csi_aws_com=25))


def test_the_node_is_selected_the_volume_made_and_the_pod_bound():
    c = Cluster(*NODES, *LIMITS, MADE, pod("p", "c"), claim("c", "s"))
    c.tell(lambda: c.bound)
    assert c.bound == {"p": "n1"} and c.selected("c") == "n1"
    assert c.writes == [("persistentvolumeclaims", "c")]


def test_nobody_is_bound_before_the_volume_is_there_and_the_place_is_held():
    c = Cluster(node("n1", gpus=1), MADE, pod("p", "c"), claim("c", "s"))
    asked = []
    c.provision = lambda name, on: asked.append((name, on))

    async def story():
        await c.until(lambda: asked and c.waiting.get("p") and c.waiting["p"].reason is Reason.WaitingForVolume)
        cause = c.waiting["p"]
        assert cause.sentence == "its place on n1 is held, and the volume claim c waits for its volume there"
        assert (cause.where, cause.need, cause.unlock) == ("c", 1, ("c bound",))
        assert c.bound == {} and [h.workload for h in c.plans[-1][1].holds] == ["Pod a/p"]
        c.put(pod("other", priority=-1))
        await c.until(lambda: "other" in c.waiting)
        assert c.waiting["other"].reason is Reason.BehindReservation
        c.make_volume("c", "n1")
        await c.until(lambda: c.bound)
        assert c.bound == {"p": "n1"}

    c.tell(story)


def test_a_gang_is_bound_when_all_its_volumes_are_there():
    things = [claim(f"c-w{i}", "s") for i in range(4)]
    c = Cluster(node("n1", gpus=2), node("n2", gpus=2), MADE, *things, *gang("w0", "w1", "w2", "w3"))
    made = []
    c.provision = lambda name, on: made.append((name, on))

    async def story():
        await c.until(lambda: len(made) == 4 and c.waiting)
        (cause,) = c.waiting.values()
        assert cause.sentence == (
            "its place on 2 nodes is held, and the volume claims c-w0, c-w1, c-w2 and 1 more wait for their volumes "
            "there"
        )
        for name, on in made[:3]:
            c.make_volume(name, on)
        await c.until(lambda: [cause.need for cause in c.waiting.values()] == [1])
        assert c.bound == {}
        c.make_volume(*made[3])
        await c.until(lambda: len(c.bound) == 4)
        assert {f"c-{pod}": node for pod, node in c.bound.items()} == dict(made)

    c.tell(story)


def test_another_node_is_tried_where_the_provisioner_gives_one_up():
    c = Cluster(*NODES, MADE, pod("p", "c"), claim("c", "s"))
    tried = []

    def provision(name, on):
        tried.append(on)
        (c.give_up if on == "n1" else c.make_volume)(name, on)

    async def story():
        c.provision = provision
        await c.until(lambda: tried == ["n1"] and "p" in c.waiting and c.waiting["p"].reason is Reason.BindRefused)
        assert c.waiting["p"].sentence == "the provisioner of claim c could not make its volume for n1"
        assert not c.plans[-1][1].holds
        c.pass_time(2.0)  # it is left alone for a second
        await c.until(lambda: c.bound)
        assert tried == ["n1", "n2"] and c.bound == {"p": "n2"}

    c.tell(story)


def test_where_every_node_was_given_up_that_is_told_and_the_first_is_tried_again():
    c = Cluster(node("n1"), MADE, pod("p", "c"), claim("c", "s"))
    tried: list[str] = []

    def provision(name, on):
        tried.append(on)
        (c.give_up if len(tried) == 1 else c.make_volume)(name, on)

    async def story():
        c.provision = provision
        await c.until(lambda: tried and "p" in c.waiting and c.waiting["p"].reason is Reason.BindRefused)
        c.pass_time(2.0)
        await c.until(lambda: "p" in c.waiting and c.waiting["p"].reason is Reason.NotEnoughResources)
        assert c.waiting["p"].where == "room for the volume of claim c in a"
        assert not any(is_accelerator(name) or is_extended(name) for name in c.world.stock.offers.known)
        assert tried == ["n1"] and not c.bound
        c.pass_time(4.0)
        await c.until(lambda: c.bound)
        assert tried == ["n1", "n1"]

    c.tell(story)


def test_a_provisioner_that_does_nothing_is_waited_for_and_then_no_more():
    c = Cluster(*NODES, MADE, pod("p", "c"), claim("c", "s"))
    c.provision = lambda name, on: None

    async def story():
        await c.until(lambda: len(c.writes) == 2)
        assert c.selected("c") is None
        await c.until(lambda: "p" in c.waiting and c.waiting["p"].reason is Reason.BindRefused)
        assert c.waiting["p"].sentence == "claim c had no volume on n1 after 0 s"
        c.provision = c.make_volume
        c.pass_time(2.0)
        await c.until(lambda: c.bound)
        assert c.bound == {"p": "n2"}

    c.tell(story, patience_s=0.05)


def test_a_leader_that_follows_goes_on_with_what_was_selected():
    """Half of a gang was selected before the end: the rest is, on the nodes that are left."""
    claims = [claim("c-w0", "s", selected="n2"), claim("c-w1", "s")]
    c = Cluster(node("n1", gpus=1), node("n2", gpus=1), MADE, *claims, *gang("w0", "w1"))

    async def story():
        c.provision = lambda name, on: None
        await c.until(lambda: c.selected("c-w1"))
        assert c.selected("c-w1") == "n1" and c.writes == [("persistentvolumeclaims", "c-w1")]
        for name, on in (("c-w0", "n2"), ("c-w1", "n1")):
            c.make_volume(name, on)
        await c.until(lambda: len(c.bound) == 2)
        assert c.bound == {"w0": "n2", "w1": "n1"}

    c.tell(story)


def test_who_leads_no_more_holds_nothing_and_goes_on_when_it_leads_again():
    c = Cluster(*NODES, MADE, pod("p", "c"), claim("c", "s"))
    c.provision = lambda name, on: None

    async def story():
        await c.until(lambda: c.selected("c") and "Pod a/p" in c.world.selections)
        c.leads = False
        c.claim("c")["metadata"]["annotations"]["note"] = "something is new"
        c.claim("c")["spec"]["resources"]["requests"]["storage"] = "2Gi"
        c.put(c.claim("c"))
        await c.until(lambda: "Pod a/p" not in c.world.selections)
        assert not c.bound
        c.leads = True
        c.driver.wake()
        await c.until(lambda: "Pod a/p" in c.world.selections)
        c.make_volume("c", "n1")
        await c.until(lambda: c.bound)
        assert len(c.writes) == 1

    c.tell(story)


def test_nothing_is_written_once_another_leads():
    c = Cluster(*NODES, MADE, pod("p", "c"), claim("c", "s"))
    volumes = Volumes(c, c.world.selections, may_write=lambda: False)
    (workload,) = c.world.snapshot(c.now).workloads

    async def story():
        assert volumes.take(workload, [("p", "n1")])
        while volumes.pending:
            await asyncio.sleep(0)
        assert c.writes == [] and workload.identity not in c.world.selections

    asyncio.run(story())


def test_a_place_that_cannot_be_taken_is_not_held_for_long_once_the_volume_is_there():
    c = Cluster(node("n1"), MADE, pod("p", "c"), claim("c", "s"))
    c.provision = lambda name, on: None

    async def story():
        await c.until(lambda: "p" in c.waiting and c.waiting["p"].reason is Reason.WaitingForVolume)
        assert [h.until_s - c.now for h in c.plans[-1][1].holds] == [660.0]
        c.put({**node("n1"), "spec": {"unschedulable": True}})
        c.make_volume("c", "n1")
        await c.until(lambda: c.waiting["p"].reason is Reason.NodesHeldBack and c.plans[-1][1].holds)
        await c.until(lambda: [h.until_s - c.now for h in c.plans[-1][1].holds] == [60.0])
        c.pass_time(61.0)
        await c.until(lambda: not c.plans[-1][1].holds)

    c.tell(story)


def test_a_gang_that_waits_for_the_volumes_of_its_rest_keeps_what_it_has():
    """A pod of it was made again, and its volume takes longer than a gang may be partly bound for other reasons."""
    first, again = gang("w0", "w1")
    first["spec"]["nodeName"], first["status"]["phase"] = "n1", "Running"
    first["metadata"]["annotations"]["berth.dev/decision"] = '{"n1":["w0"],"n2":["w1"]}'
    for each in (first, again):
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
        each["metadata"]["ownerReferences"] = [owner]
    claims = (claim("c-w0", "s", volume="pv-0"), claim("c-w1", "s"))
    c = Cluster(*NODES, MADE, volume("pv-0", "s", of="c-w0"), *claims, first, again)
    c.provision = lambda name, on: None

    async def story():
        await c.until(lambda: any(cause.reason is Reason.WaitingForVolume for cause in c.waiting.values()))
        assert c.world.promises.unfinished
        c.pass_time(30.0)
        before = len(c.plans)
        await c.until(lambda: len(c.plans) > before)
        before = len(c.plans)
        await asyncio.sleep(0.2)
        assert len(c.plans) <= before + 1, "nothing changes, and nothing is decided"
        assert c.asked_to_leave == []
        c.make_volume("c-w1", "n2")
        await c.until(lambda: c.bound == {"w1": "n2"})

    c.tell(story)


def test_pods_that_share_a_claim_select_once():
    c = Cluster(node("n1", gpus=2), MADE, claim("shared", "s", modes=("ReadWriteMany",)), *gang("w0", "w1"))
    for name in ("w0", "w1"):
        thing = c.things["Pod", name]
        thing["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = "shared"
        c.world.drop_pod(("a", name))
        c.put(thing)
    c.tell(lambda: len(c.bound) == 2)
    assert c.writes == [("persistentvolumeclaims", "shared")]


def test_a_volume_that_came_out_elsewhere_moves_the_pod():
    c = Cluster(*NODES, MADE, pod("p", "c"), claim("c", "s"))
    c.provision = lambda name, on: c.make_volume(name, "n2")
    c.tell(lambda: c.bound)
    assert c.selected("c") == "n1" and c.bound == {"p": "n2"}


def test_a_write_that_was_not_answered_is_sent_again():
    c = Cluster(*NODES, MADE, pod("p", "c"), claim("c", "s"))
    failures = iter([Unreachable("no answer", verb="PATCH", path=""), ApiError(503, "ServiceUnavailable", "not now")])

    def refuse(verb, path):
        if (failure := next(failures, None)) is not None:
            raise failure

    c.refuse = refuse
    c.tell(lambda: c.bound)
    assert c.bound == {"p": "n1"}


def test_a_right_that_is_missing_is_told():
    c = Cluster(*NODES, MADE, pod("p", "c"), claim("c", "s"))

    def refuse(verb, path):
        raise ApiError(403, "Forbidden", 'User "berth" cannot patch resource "persistentvolumeclaims"')

    c.refuse = refuse
    c.tell(lambda: c.plans and "p" in c.waiting and c.waiting["p"].reason is Reason.BindRefused)
    assert "claim c cannot be written" in c.waiting["p"].sentence and "cannot patch" in c.waiting["p"].sentence


def test_a_pod_that_goes_while_its_volume_is_made_leaves_nothing_behind():
    c = Cluster(*NODES, MADE, pod("p", "c"), claim("c", "s"))
    c.provision = lambda name, on: c.world.drop_pod(("a", "p"))
    c.tell(lambda: c.plans and not c.plans[-1][1].workloads and c.writes)
    assert "Pod a/p" not in c.world.selections and not c.world.snapshot(c.now).holds


def test_workloads_that_share_a_claim_select_one_node():
    """The second is placed where the first one's volume is being made, and not told a node of its own."""
    shared = claim("shared", "s", modes=("ReadWriteMany",))
    c = Cluster(node("n1", gpus=1), node("n2", gpus=1), MADE, shared, pod("p", "shared"), pod("q", "shared"))
    told = []
    c.provision = lambda name, on: told.append(on)

    async def story():
        await c.until(lambda: len(c.waiting) == 2 and c.writes)
        await asyncio.sleep(0.1)
        assert set(told) == {"n1"} and [x.reason for x in c.waiting.values()] == [Reason.WaitingForVolume] * 2
        c.put(volume("pv", "s", of="shared", modes=("ReadWriteMany",)))
        c.bind_claim("pv", "shared")
        await c.until(lambda: len(c.bound) == 2)
        assert set(told) == {"n1"}

    c.tell(story)


# ---- volumes that are there


def test_a_local_volume_gets_its_claim_and_the_pod_is_bound():
    c = Cluster(*NODES, LOCAL, local("v1", "n1", "200Gi"), local("v2", "n1"), local("v3", "n2", of="other"),
                pod("p", "c"), claim("c", "local", "50Gi"))  # fmt: skip
    c.tell(lambda: c.bound)
    assert c.bound == {"p": "n1"} and c.writes == [("persistentvolumes", "v2")]  # the smallest that fits
    v2 = c.things["PersistentVolume", "v2"]
    assert v2["spec"]["claimRef"] == {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "a", "name": "c", "uid": "uid-c",
    }  # fmt: skip
    assert v2["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}


def test_two_claims_never_get_the_same_volume():
    pods = [pod(f"p{i}", f"c{i}") for i in range(6)]
    claims = [claim(f"c{i}", "local", "1Gi") for i in range(6)]
    c = Cluster(*NODES, LOCAL, *[local(f"v{i}", f"n{i % 2 + 1}") for i in range(4)], *pods, *claims)
    c.complete = lambda name, claim_name: None  # the controller-manager is slow
    c.tell(lambda: len(c.writes) == 4)
    owners = [c.things["PersistentVolume", f"v{i}"]["spec"]["claimRef"]["name"] for i in range(4)]
    assert len(set(owners)) == 4
    assert sum(cause.reason is Reason.NotEnoughResources for cause in c.waiting.values()) == 2


def test_a_volume_that_somebody_else_took_is_not_taken():
    """Between the look and the write: the version differs, and another volume is chosen."""
    volumes = (local("v1", "n1", "1Gi"), local("v2", "n1", "2Gi"))
    c = Cluster(node("n1"), LOCAL, *volumes, pod("p", "c"), claim("c", "local"))
    c.things["PersistentVolume", "v1"]["metadata"]["resourceVersion"] = "8"

    async def story():
        await c.until(lambda: c.plans and "p" in c.waiting)
        assert c.waiting["p"].sentence == "volume v1 has changed meanwhile"
        assert c.world.stock.storage.chosen == {}
        c.put(local("v1", "n1", "1Gi", of="another"))
        c.pass_time(2.0)
        await c.until(lambda: c.bound)
        assert c.things["PersistentVolume", "v2"]["spec"]["claimRef"]["name"] == "c"

    c.tell(story)


def test_a_volume_that_any_node_reaches_goes_to_one_claim_only():
    """A gang counts it once for each node; what cannot be given is found before anything is written."""
    shared = volume("v", "local", "1Gi")
    c = Cluster(node("n1", gpus=1), node("n2", gpus=1), LOCAL, shared, claim("c-w0", "local"), claim("c-w1", "local"),
                *gang("w0", "w1"))  # fmt: skip
    c.tell(lambda: c.plans and any(v.reason is Reason.BindRefused for v in c.waiting.values()))
    assert c.writes == [] and c.bound == {} and c.world.stock.storage.chosen == {}
    (cause,) = c.waiting.values()
    assert cause.sentence.startswith("no volume of class local is left on n")


def test_a_local_volume_of_a_gang_in_preparation_is_nobody_elses():
    claims = [claim(f"c-w{i}", "local") for i in range(2)]
    volumes = (local("v1", "n1"), local("v2", "n2"))
    c = Cluster(node("n1", gpus=4), node("n2", gpus=1), LOCAL, *volumes, *claims, *gang("w0", "w1"))
    c.complete = lambda name, claim_name: None

    async def story():
        await c.until(lambda: len(c.writes) == 2)
        c.put(pod("late", "c-late"))
        c.put(claim("c-late", "local"))
        await c.until(lambda: "late" in c.waiting)
        assert c.waiting["late"].where == "volumes of class local"
        assert not c.bound

    c.tell(story)


def test_existing_volumes_of_a_class_that_makes_them_go_first():
    c = Cluster(*NODES, MADE, volume("old", "s", "5Gi", on="n1"), pod("p", "c"), claim("c", "s", "1Gi"))
    c.tell(lambda: c.bound)
    assert c.writes == [("persistentvolumes", "old")] and c.bound == {"p": "n1"}


def test_a_refusal_that_is_over_and_remembered_wakes_nobody():
    """It is kept so that the next pause is longer; what is told as the next end is one that is still waited for."""
    refused: Refusals[str] = Refusals(1.0, 8.0)
    refused.add("short", "why", 0.0)
    refused.add("long", "why", 0.0)
    refused.add("long", "why", 1.0)
    assert refused.next_s == 1.0 and refused.over(1.0) == ["short"]
    assert refused.next_s == 3.0 and refused.over(1.5) == []
    assert "short" in refused and refused.over(3.0) == ["long"] and refused.next_s == float("inf")
