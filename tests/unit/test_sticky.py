"""SRSF that moves nobody without need: the baseline where starts and moves cost something."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.simulation.baselines.sticky import place_sticky

NODES, NODE_GPUS, SPANS = 3, 8, 4


def placed(width: list[int], held: dict[int, list[tuple[int, int]]]) -> tuple[list[bool], list[dict[int, int]]]:
    """Who stays, and GPUs by node of each. `held` are the places of those who run: (node, GPUs)."""
    node, taken = np.full((len(width), SPANS), -1), np.zeros((len(width), SPANS), np.int64)
    runs = np.zeros(len(width), bool)
    for j, places in held.items():
        runs[j] = True
        for s, (n, gpus) in enumerate(places):
            node[j, s], taken[j, s] = n, gpus
    stays = place_sticky(np.arange(len(width)), np.array(width), runs, node, taken, NODE_GPUS, NODES)
    return stays.tolist(), [
        {int(n): int(g) for n, g in zip(node[j], taken[j], strict=True) if n >= 0} for j in range(len(width))
    ]


def test_a_newcomer_goes_to_the_fullest_node_with_room_and_nobody_moves() -> None:
    stays, where = placed([4, 6, 2], {0: [(1, 4)], 1: [(2, 6)]})
    assert stays == [True, True, False] and where == [{1: 4}, {2: 6}, {2: 2}]


def test_the_fewest_gpus_move_for_one_that_needs_a_node() -> None:
    stays, where = placed([3, 1, 2, 8], {0: [(0, 3)], 1: [(1, 1)], 2: [(2, 2)]})
    assert stays == [True, False, True, False]
    assert where[3] == {1: 8} and where[1] == {0: 1}, "the one GPU goes to the fullest node that has room"


def test_a_wide_one_gets_whole_nodes_and_the_rest_of_another() -> None:
    stays, where = placed([1, 12], {0: [(0, 1)]})
    assert stays == [True, False] and sum(where[1].values()) == 12 and max(where[1].values()) == 8


def test_where_nothing_else_helps_all_are_placed_anew() -> None:
    stays, where = placed([8, 8, 8], {0: [(0, 4), (1, 4)], 1: [(1, 4), (2, 4)]})
    assert stays == [False] * 3 and sorted(n for one in where for n in one) == [0, 1, 2]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([1, 2, 4, 8, 16]), max_size=8), st.data())
def test_no_node_gives_more_than_it_has_and_who_stays_stays(width: list[int], data: st.DataObject) -> None:
    while sum(width) > NODES * NODE_GPUS:
        width = width[1:]
    room, held = [NODE_GPUS] * NODES, {}
    for j, gpus in enumerate(width):
        n = data.draw(st.integers(0, NODES))
        if n < NODES and gpus <= room[n]:
            room[n] -= gpus
            held[j] = [(n, gpus)]
    stays, where = placed(width, held)
    used = [sum(one.get(n, 0) for one in where) for n in range(NODES)]
    assert max(used, default=0) <= NODE_GPUS
    assert [sum(one.values()) for one in where] == width, "powers of two that fit in all always find a place"
    assert all(where[j] == dict(held[j]) for j, stay in enumerate(stays) if stay)
