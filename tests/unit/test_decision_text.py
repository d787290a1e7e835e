"""The record of a gang's decision: short, whatever the names are; read back as it was meant; never too long."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_promises import NOW, gang, world

from berth.scheduling.cycle import cycle
from berth.sources.live import shorthand
from berth.sources.live.decisions import KEY, MOST_BYTES, written

LONG = "x" * 120
NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,8}[a-z0-9])?", fullmatch=True)


def read_back(nodes):
    return {pod: node for node, pods in nodes.items() for pod in pods}


@settings(max_examples=400, deadline=None)
@given(
    places=st.dictionaries(NAMES | st.builds("p-{}".format, st.integers(0, 2000)), NAMES, min_size=1, max_size=60),
    plain=st.sampled_from([0, shorthand.PLAIN_BYTES]),
)
@example(places={"a-0": "n", "a-00": "n", "a-01": "n", "a-1": "n", "a-": "n", "a": "n", "0": "n"}, plain=0)
@example(places={"a": "n-1", "b": "n-11", "c": "n-111"}, plain=0)
def test_every_pod_is_read_back_with_its_node(places, plain):
    nodes = {}
    for pod, node in places.items():
        nodes.setdefault(node, []).append(pod)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shorthand, "PLAIN_BYTES", plain)
        assert shorthand.read(shorthand.written(nodes)) == places


@pytest.mark.parametrize(
    ("pods", "nodes", "pod", "node", "most"),
    [
        (8, 1, "train-{}", "n{:05}", 200),
        (1024, 128, "train-{}", "gpu-{:03}.cluster.example.org", 6_000),
        (5000, 625, LONG + "-{}", "ip-10-0-{}.eu-central-1.compute.internal", 32_000),
        (5000, 12, "worker-{}", "n{:05}", 30_000),
    ],
)
@pytest.mark.parametrize("dealt", [lambda i, per: i // per, lambda i, per: (i * 7919) % 5003 // per])
def test_it_is_short(pods, nodes, pod, node, most, dealt):
    per = -(-5003 // nodes) if pods == 5000 else pods // nodes
    (text,) = written((pod.format(i), node.format(dealt(i, per) % nodes)) for i in range(pods)).values()
    assert len(text) < most
    found = shorthand.read(text)
    assert found == {pod.format(i): node.format(dealt(i, per) % nodes) for i in range(pods)}


def test_a_small_one_is_written_in_full():
    assert written([("g0", "n1"), ("g1", "n1"), ("g2", "n2")]) == {KEY: '{"n1":["g0","g1"],"n2":["g2"]}'}


def test_where_no_writing_is_short_enough_there_is_none():
    places = [(f"{i * 7919:08x}-{LONG}-{i:08x}", f"{i:06x}-{LONG}-{i}") for i in range(2000)]
    assert len(written(places[:100])[KEY]) < MOST_BYTES
    assert written(places) == {}


def test_the_rest_of_a_gang_without_a_record_is_placed_beside_what_is_bound():
    here = world(*gang(2, {}))
    snapshot = here.snapshot(NOW)
    plan = cycle(snapshot)
    assert len(plan.node) == 2 and not plan.verdicts
    assert not here.promises.unfinished


@pytest.mark.parametrize(
    "text",
    ["no json", "[]", '{"n1":"g2"}', '{"":["a"],"n1":["g2"]}', '{"n1":["g[0-99999999999]"]}', '{"n1":["g[x]"]}', "7",
     json.dumps({f"n{i}": ["g[0-99999]"] for i in range(50)})],
)  # fmt: skip
def test_what_somebody_else_wrote_there_is_passed_over(text):
    here = world(*gang(2, {KEY: text}))
    assert not here.snapshot(NOW).holds
