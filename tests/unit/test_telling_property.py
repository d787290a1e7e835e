"""Whatever plans come, whatever the API server does: in the end it holds what the last plan says, and no more."""

from __future__ import annotations

import asyncio
import random

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from telling_api import Cluster, FakeApi, refused, run, served, workload

from berth.actions.binding import Result
from berth.actions.telling import Teller
from berth.kube.errors import ApiError, Unreachable
from berth.model.reasons import Reason, Verdict
from berth.model.workload import Workload

REASONS = (Reason.NotEnoughGpus, Reason.QuotaExceeded, Reason.WaitingForGang, Reason.LargerThanCluster)
KINDS = (("solo", 1, ""), ("gang", 3, ""), ("label", 2, "Gang"), ("kai", 3, ""), ("other", 2, ""))
VERSIONS = {"kai": "scheduling.run.ai/v2alpha2", "other": "scheduling.volcano.sh/v1beta1"}
LONG_S = 2000.0  # every pause after a failure, every refresh and every limit of rate is over by then


def make(which: int, generation: int, more: int = 0) -> Workload:
    name, pods, kind = KINDS[which]
    pods += more if pods > 1 else 0
    return workload(name, pods, kind=kind, api_version=VERSIONS.get(name, ""), generation=generation)


# (what, which workload, a number)
step = st.tuples(
    st.sampled_from(["refuse", "refuse", "refuse", "place", "fail", "delete", "wait", "busy", "lead", "join"]),
    st.integers(0, len(KINDS) - 1),
    st.integers(0, 7),
)


class Story:
    """Carries out steps, and knows what the last plan said."""

    def __init__(self, seed: int, trouble: float, loses: bool = False) -> None:
        self.api = FakeApi()
        self.draw = random.Random(seed)
        self.trouble = trouble
        self.draw_lost = random.Random(seed + 1)
        self.c = Cluster(self.api)
        self.said: dict[int, tuple[Workload, Verdict]] = {}
        self.generation = [0] * len(KINDS)
        self.more = [0] * len(KINDS)
        self.api.refuse = self.refuse
        self.lose = self.lose_some if loses else self.api.lose
        self.api.lose = self.lose

    def lose_some(self, verb: str, path: str) -> None:
        if self.draw_lost.random() < self.trouble:
            raise Unreachable("no answer", verb=verb, path=path)

    def refuse(self, verb: str, path: str) -> None:
        if self.draw.random() >= self.trouble:
            return
        what = self.draw.randrange(4)
        if what == 0:
            raise ApiError(503, "ServiceUnavailable", "not now", verb=verb, path=path)
        if what == 1:
            raise Unreachable("no answer", verb=verb, path=path)
        if what == 2:
            raise ApiError(409, "Conflict", "somebody wrote", verb=verb, path=path)
        raise ApiError(422, "Invalid", "no", verb=verb, path=path)

    async def act(self, what: str, which: int, number: int) -> None:
        c = self.c
        if what == "refuse":
            w = self.alive(which)
            self.said[which] = (w, refused(w, REASONS[number % len(REASONS)], number))
            c.plan(self.said.values())
        elif what in ("place", "fail"):
            w = self.alive(which)
            before = self.said.pop(which, None)
            orders = c.plan(self.said.values(), placed=[w])
            await asyncio.sleep(number / 1000)
            if what == "place":
                c.answer(orders)
                await asyncio.sleep(number / 1000)
                self.remove(which)  # its pods run elsewhere now
            else:
                c.answer(orders[:number])
                c.answer(orders[number:], Result.Refused)
                self.remove(which)
                if before is not None:
                    c.plan(self.said.values())
        elif what == "delete":
            self.said.pop(which, None)
            self.remove(which)
            c.plan(self.said.values())
        elif what == "wait":
            await asyncio.sleep((0.001, 0.01, 0.1, 1.0, 5.0, 31.0, 60.0, 100.0)[number])
        elif what == "busy":
            c.is_busy = bool(number % 2)
        elif what == "join":
            self.more[which] += 1
            if which in self.said:
                w = self.alive(which)
                self.said[which] = (w, refused(w, REASONS[number % len(REASONS)], number))
                c.plan(self.said.values())
        elif what == "lead":
            await self.another_leader()

    def alive(self, which: int) -> Workload:
        w = make(which, self.generation[which], self.more[which])
        c = self.c
        if any((w.namespace, name) not in c.world.pods for names in w.pods for name in names):
            c.create(w)
        return w

    def remove(self, which: int) -> None:
        w = make(which, self.generation[which], self.more[which])
        self.c.delete(w)
        self.c.world.members.pop(w.identity, None)
        self.generation[which] += 1

    async def another_leader(self) -> None:
        """The old one is cut off in the middle of what it did."""
        c = self.c
        c.leads = False
        old = c.teller
        await old.close()
        c.leads = True
        loop = asyncio.get_running_loop()
        c.teller = Teller(
            self.api, served(), may_write=lambda: c.leads, busy=lambda: c.is_busy, schedulers=["berth"],
            clock=loop.time, now=c.now, instance="berth-1",
        )  # fmt: skip
        self.api.refuse = self.api.lose = lambda verb, path: None  # what cannot be listed is another story
        await c.teller.adopt()
        self.api.refuse, self.api.lose = self.refuse, self.lose
        c.plan(self.said.values())

    async def finish(self) -> None:
        self.c.is_busy = False
        self.c.plan(self.said.values())
        self.api.refuse = self.api.lose = lambda verb, path: None
        await asyncio.sleep(LONG_S)
        await self.c.teller.idle()


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(step, max_size=25), st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.4]), st.booleans())
# A group made anew was told before its Verdict named it: nobody took it back after a change of leader.
@example(
    [("refuse", 4, 0), ("refuse", 1, 2), ("wait", 0, 5), ("join", 1, 0), ("refuse", 0, 0), ("wait", 0, 4),
     ("lead", 0, 0), ("place", 1, 1), ("refuse", 1, 0), ("place", 0, 0), ("place", 1, 1), ("lead", 0, 0)],
    206013, 0.4, False,
)  # fmt: skip
def test_in_the_end_all_say_what_the_last_plan_says(
    steps: list[tuple[str, int, int]], seed: int, trouble: float, loses: bool
) -> None:
    async def tale() -> None:
        story = Story(seed, trouble, loses)
        for one in steps:
            await story.act(*one)
        await story.finish()
        check(story)

    run(tale())


def check(story: Story) -> None:
    c, waiting = story.c, list(story.said.values())
    verdicts = c.api.of("verdicts")
    assert {(v["workload"]["kind"], v["workload"]["name"]) for v in verdicts.values()} == {
        (w.kind, w.name) for w, _ in waiting
    }
    for position, (w, verdict) in enumerate(waiting, 1):
        [said] = [v for v in verdicts.values() if v["workload"]["name"] == w.name]
        cause = verdict.causes[0]
        assert (said["reason"], said["sentence"]) == (cause.reason.name, cause.sentence)
        assert (said["verdict"], said["position"], said["ahead"]) == (verdict.answer.value, position, position - 1)
        assert said["workload"].get("uid", "") == w.uid
        assert (said["metadata"].get("ownerReferences") or [{"uid": ""}])[0]["uid"] == w.uid
        for name in (name for names in w.pods for name in names):
            condition = c.condition(name)
            assert condition["status"] == "False"
            assert condition["message"].split(": ")[0] == cause.reason.name
        if w.kind == "PodGroup":
            check_group(c, w, verdict)
    for which in range(len(KINDS)):
        if which not in story.said:
            check_silence(story, which)


def check_group(c: Cluster, w: Workload, verdict: Verdict) -> None:
    status = c.group(w.name, w.api_version)
    if w.name == "gang":
        [said] = status["conditions"]
        assert (said["status"], said["message"]) == ("False", verdict.message)
    elif w.name == "kai":
        [said] = status["schedulingConditions"]
        assert (said["status"], said["message"]) == ("True", verdict.message)
    else:
        [said] = status["conditions"]
        assert (said["type"], said["message"]) == ("Unschedulable", verdict.message)


def check_silence(story: Story, which: int) -> None:
    """The object of a workload that does not wait says of no wait."""
    name, _, _ = KINDS[which]
    for path, thing in story.api.objects.items():
        if path.endswith(f"/podgroups/{name}"):
            status = thing.get("status") or {}
            for said in (*status.get("conditions", ()), *status.get("schedulingConditions", ())):
                waits = said["type"] in ("Unschedulable", "UnschedulableOnNodePool") or said["status"] == "False"
                assert not waits, f"{path} still says {said}"
