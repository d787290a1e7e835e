"""Leaders that are killed, servers that go away, nodes that die: nothing is lost, nothing double, all that fits bound.

BERTH_CHAOS_KILLS=300 .venv/bin/python -m pytest -s tests/cluster/test_chaos.py -k killed   prints a summary.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from devcluster import InvariantWatcher, gpu_pod
from gangs import FORMS, KEYED, UPSTREAM, Gang, remove
from scheduler import TAKEOVER_S, holder
from stage import SetStage, Stage

KILLS = int(os.environ.get("BERTH_CHAOS_KILLS", "30"))
SEED = int(os.environ.get("BERTH_CHAOS_SEED", "0")) or random.randrange(10**6)
START_S = 3.0  # of a process, on a machine that has other things to do
# One bind after the other: a kill then falls into the middle of a gang.
SLOWLY = {"clients.inFlight": 1}


@pytest.fixture
def dice() -> random.Random:
    """Printed when a test fails: BERTH_CHAOS_SEED makes the same choices again."""
    print(f"BERTH_CHAOS_SEED={SEED}")
    return random.Random(SEED)


def burst(dice: random.Random, stage: Stage, number: int) -> list[Gang]:
    """Gangs of every form and single pods, 80 to 103 GPUs of the 128."""
    made: list[Gang] = []
    while sum(each.total_gpus for each in made) < 70:
        size, gpus = dice.choice([(2, 8), (3, 4), (4, 4), (6, 2), (8, 2), (12, 1)])
        made.append(stage.gang(dice.choice(FORMS), f"r{number}-g{len(made)}", size, gpus))
    made += [stage.single(f"r{number}-s{each}") for each in range(10)]
    dice.shuffle(made)
    return made


@dataclass
class Record:
    """What the kills of one test led to."""

    kills: int = 0
    while_partial: int = 0  # kills at which a gang was partly bound
    pods: int = 0
    until_whole_s: list[float] = field(default_factory=list)  # from each kill until everything was bound

    def told(self, watcher: InvariantWatcher, what: str) -> str:
        times = sorted(self.until_whole_s)
        partial = max((each.longest_partial_s for each in watcher.gangs.values()), default=0.0)
        return (
            f"{what}: {self.kills} kills, at {self.while_partial} of them a gang was partly bound; {self.pods} pods, "
            f"{watcher.binds} binds, {len(watcher.violations)} violations; from a kill until all is bound "
            f"{times[len(times) // 2]:.1f} s (median), {times[-1]:.1f} s (longest); longest partial gang "
            f"{partial:.1f} s; seed {SEED}."
        )


def one_round(
    dice: random.Random, stage: Stage, record: Record, kill: Callable[[], None], revive: Callable[[], None]
) -> None:
    """Half a burst, a kill after so many of its binds, the other half; then all of it is bound, and nothing twice."""
    load = burst(dice, stage, record.kills)
    half, rest = load[: len(load) // 2], load[len(load) // 2 :]
    before, wanted = stage.watcher.binds, dice.randrange(sum(each.size for each in half))
    stage.create(*half)
    until = time.monotonic() + 2
    while stage.watcher.binds - before < wanted and time.monotonic() < until:
        time.sleep(0.001)
    kill()
    killed_s = time.monotonic()
    record.kills += 1
    time.sleep(0.05)  # for what the watch still brings
    record.while_partial += any(each.is_partial for each in list(stage.watcher.gangs.values()))
    revive()
    stage.create(*rest)
    stage.wait_whole(*load, timeout_s=3 * TAKEOVER_S)
    record.until_whole_s.append(time.monotonic() - killed_s)
    pods = sum(each.size for each in load)
    record.pods += pods
    assert len(stage.pods()) == pods
    stage.until(lambda: not stage.verdicts(), 10, "nobody is said to wait any more")
    remove(stage.admin, stage.namespace)


def test_a_killed_leader_is_followed_by_the_replica_that_stands_by(set_stage: SetStage, dice: random.Random) -> None:
    stage = set_stage(partial_s=TAKEOVER_S)
    replicas = {"a": stage.run("a", values=SLOWLY)}
    replicas["b"] = stage.run("b", values=SLOWLY, wait=False)
    record = Record()
    leader = replicas["a"]

    def kill() -> None:
        nonlocal leader
        leader = replicas[holder(stage.cluster, stage.namespace)]
        leader.kill()

    for _ in range((KILLS + 1) // 2):
        for replica in replicas.values():
            replica.wait_said("synced")  # whoever was killed stands by again
        one_round(dice, stage, record, kill, lambda: leader.start() and None)
    print(record.told(stage.watcher, "A second replica takes over"))


def test_a_killed_leader_that_is_alone_goes_on_where_it_was(set_stage: SetStage, dice: random.Random) -> None:
    stage = set_stage(partial_s=TAKEOVER_S + START_S)
    replica = stage.run("a", values=SLOWLY)
    record = Record()
    for _ in range(KILLS // 2):
        one_round(dice, stage, record, replica.kill, lambda: replica.start() and None)
    print(record.told(stage.watcher, "The only replica is started again"))


def test_the_rest_of_a_gang_goes_elsewhere_when_its_place_was_taken_while_nobody_led(set_stage: SetStage) -> None:
    """The leader dies after the first bind; another scheduler fills one of the nodes that it had decided on."""
    stage = set_stage(5, foreign=True, partial_s=TAKEOVER_S + START_S)
    replica = stage.run("a", values=SLOWLY)
    gang = stage.gang(UPSTREAM, "train", 4, 8)
    stage.create(gang)
    stage.wait_binds(1)
    replica.kill()
    taken = next(node for node in stage.nodes if node not in stage.nodes_of("train"))
    stage.admin.create(gpu_pod("foreign", stage.namespace, 8, scheduler="another"))
    stage.admin.bind(stage.namespace, "foreign", taken)
    replica.start()
    stage.wait_whole(gang, timeout_s=3 * TAKEOVER_S)
    assert set(stage.nodes_of("train")) == set(stage.nodes) - {taken}


# ---- while room is made


@pytest.mark.parametrize("leaving", [1, 4])
@pytest.mark.parametrize("second", [True, False], ids=["followed", "alone"])
def test_a_leader_that_is_killed_while_it_makes_room_takes_no_more_than_it_needs(
    set_stage: SetStage, high: str, leaving: int, second: bool
) -> None:
    """Eight nodes full of pods that come back when they are evicted, a gang of four above them.

    The room is the gang's, although others wait for it and the leader that made it is dead; nobody else leaves.
    """
    stage = set_stage(8, partial_s=TAKEOVER_S + START_S, kubelet={"stop_s": 1.5})
    first = stage.run("a", values=SLOWLY)
    if second:
        stage.run("b", values=SLOWLY, wait=False).wait_said("synced")
    low = stage.replicas("low", 8, 8)
    stage.create(low)
    stage.wait_whole(low)
    there = {pod["metadata"]["uid"] for pod in stage.pods("low")}

    def evicted() -> int:
        return len(there - {pod["metadata"]["uid"] for pod in stage.pods("low")})

    gang = stage.gang(KEYED, "urgent", 4, 8, priority_class=high)
    stage.create(gang)
    stage.admin.until(lambda: evicted() >= leaving, 10, f"{leaving} are on their way out", every_s=0.001)
    first.kill()
    if not second:
        first.start()
    stage.wait_whole(gang, timeout_s=3 * TAKEOVER_S)
    stage.until(lambda: len(stage.pods("low")) == 8, 10, "who left waits for its turn")
    time.sleep(3)
    assert evicted() == 4, "four have left, and no more"
