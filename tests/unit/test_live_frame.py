"""Frames of the live view: any terminal, any cluster, with colour and without."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from berth.scheduling.cycle import cycle
from berth.scheduling.policy import Policy
from berth.simulation.queueing.cluster import like_nodes
from berth.simulation.queueing.engine import steps
from berth.simulation.queueing.scene import scene_of
from berth.simulation.queueing.schedule import Overhead
from berth.simulation.queueing.stories import Kind, Story, stories_of
from berth.sources.job_traces import jobs_of
from berth.views.live import Watch, gpus_words
from berth.views.live_frame import Moment, frame
from berth.views.live_map import map_lines, pools_of
from berth.views.live_paint import Paint
from berth.views.live_parts import fit
from berth.views.live_words import text

NOW = Moment(50.0, 1.0, 1800.0, keys="q quit")
PAINTS = [(True, True), (True, False), (False, True), (False, False)]


@lru_cache
def watched(nodes: int = 3, length_s: float = float("inf")) -> Watch:
    """Four queues on nodes of four GPUs; a gang of twelve waits behind what runs."""
    rows = [(f"j{i}", float(i), 100.0 + i, 1 + i % 5, 0.0, f"queue-{i % 4}") for i in range(8)]
    rows.append(("wide", 9.0, 50.0, 4 * nodes, 0.0, "queue-0"))
    jobs, cluster, policy = jobs_of("made up", rows), like_nodes(nodes, 4), Policy()
    keys = [f"{jobs.queues[q]}/{name}" for q, name in zip(jobs.queue.tolist(), jobs.names, strict=True)]
    watch = Watch("made up", jobs, keys, cluster.nodes, 8 * 3600.0, length_s)
    for state in steps(jobs, cluster, Overhead.AtStart, lambda one: cycle(one, policy)):
        if state.now_s > 50.0:
            break
        watch.take(scene_of(state, stories_of(state)), 0.0)
    return watch


def pools(watch: Watch) -> Sequence[object]:
    return pools_of([node.name for node in watch.nodes], [len(node.devices) for node in watch.nodes])


def drawn(watch: Watch, width: int, height: int, blocks: bool = True, colours: bool = True) -> list[Text]:
    return frame(watch, pools(watch), NOW, width, height, Paint(watch.jobs.queues, blocks, colours))


@settings(max_examples=40, deadline=None)
@given(st.integers(20, 220), st.integers(6, 90), st.sampled_from(PAINTS), st.sampled_from([3, 40]), st.booleans())
def test_a_frame_fits_its_terminal(
    width: int, height: int, paint: tuple[bool, bool], nodes: int, has_end: bool
) -> None:
    lines = drawn(watched(nodes, 600.0 if has_end else float("inf")), width, height, *paint)
    assert len(lines) == height
    assert max(line.cell_len for line in lines) <= width
    if not paint[0]:
        assert "".join(line.plain for line in lines).isascii()
    if not paint[1]:
        assert "#" not in "".join(
            str(span.style) for line in lines for span in line.spans if "bold" not in str(span.style)
        )


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_it_says_who_waits_why_and_what_happened(width: int, height: int) -> None:
    shown = "\n".join(line.plain for line in drawn(watched(), width, height))
    assert "queue-0/wide" in shown and "NotEnoughGpus" in shown
    assert "12 GPUs" in shown and "WAITING" in shown and "92 % in use" in shown


def test_before_the_first_decision_there_is_a_frame_too() -> None:
    watch = watched()
    empty = Watch("made up", watch.jobs, watch.keys, watch.nodes)
    assert len(drawn(empty, 80, 24)) == 24


def map_of(watch: Watch, width: int, rows: int, blocks: bool = True, colours: bool = True) -> list[str]:
    paint = Paint(watch.jobs.queues, blocks, colours)
    return [line.plain for line in map_lines(watch, pools(watch), width, rows, paint, 10.0)]


def test_the_map_is_as_fine_as_there_is_room() -> None:
    watch = watched(40)
    assert len(map_of(watch, 60, 20)) == 7 and "39 ····" in map_of(watch, 60, 20)[-1]
    assert all(len(line) <= 60 for line in map_of(watch, 60, 20))
    assert len(map_of(watch, 60, 2)) == 1, "a character a node"
    assert len(map_of(watch, 20, 1)) == 1, "several nodes a character"


def test_without_colour_a_device_shows_its_queues_letter() -> None:
    shown = "".join(map_of(watched(), 60, 5, colours=False))
    assert set(shown.replace("node", "")) - set("0123456789 ·") <= set("QUEAQUEA".lower() + "QUEA"), (
        "letters that are nobody else's"
    )
    assert Paint(("llm", "lab", "x", "y")).letters == ("L", "A", "X", "Y")


def test_pools_are_names_that_differ_by_a_number() -> None:
    found = pools_of(["h100-01", "h100-02", "a100-01", "odd"], [8, 8, 4, 2])
    assert [(one.name, one.numbers, one.devices) for one in found] == [
        ("h100", ("01", "02"), 8), ("a100", ("01",), 4), ("odd", ("",), 2),
    ]  # fmt: skip
    assert pools_of(["node-0000", "node-0011"], [8, 8])[0].numbers == ("00", "11")


def test_times_of_the_simulation_are_told_by_its_clock() -> None:
    day = Watch("day", watched().jobs, (), (), 8 * 3600.0, 86_400.0)
    assert day.clock(6.2 * 3600) == "14:12" and day.clock(17 * 3600) == "01:00"
    assert day.sentence("held until 1970-01-01T06:12:00Z.") == "held until 14:12."
    assert watched().clock(17 * 3600) == "day 2 01:00"


def test_stories_are_sentences() -> None:
    watch = watched()
    assert text(Story(9.0, Kind.GangStarts, 8, gpus=12.0, nodes=3, waited_s=120.0), watch) == (
        "queue-0/wide starts whole: 12 GPUs on 3 nodes, after 2 min"
    )
    assert text(Story(9.0, Kind.LeavesForShare, 8, 1, jobs=3, gpus=6.0), watch) == (
        "3 jobs of queue-1 leave 6 GPUs to queue-0/wide, whose queue is owed it"
    )
    assert text(Story(9.0, Kind.NodeFails, node=0), watch) == "node node-0000 fails with 4 GPUs"
    assert [gpus_words(n) for n in (0.5, 1.0, 64.0)] == ["0.5 GPU", "1 GPU", "64 GPUs"]


def test_who_passes_one_and_the_same_is_told_once_an_hour() -> None:
    watch = Watch("day", watched().jobs, watched().keys, watched().nodes)
    for at_s in (0.0, 100.0, 3700.0):
        watch._take(Story(at_s, Kind.Passes, 1, 8))
    assert [one.at_s for one in watch.told] == [0.0, 3700.0]


def test_what_is_too_long_ends_in_dots() -> None:
    assert fit("research/pretrain", 10, Paint(())) == "research/…"
    assert fit("short", 10, Paint(())) == "short     " and fit("日本語日本語", 5, Paint(())) == "日本…"
