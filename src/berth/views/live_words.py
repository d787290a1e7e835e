"""Stories of a live view in words: who, what, and the numbers that matter."""

from __future__ import annotations

from collections.abc import Callable

from berth.base.units import counted, duration
from berth.simulation.queueing.stories import Kind, Story
from berth.views.live import Watch, gpus_words

# A piece of a sentence, and the job whose queue's colour it is in (-1: none).
Piece = tuple[str, int]
Pieces = list[Piece]


def pieces(story: Story, watch: Watch) -> Pieces:
    """The sentence of a story."""
    return _WORDS[story.kind](story, watch)


def text(story: Story, watch: Watch) -> str:
    return "".join(words for words, _ in pieces(story, watch))


def _who(job: int, watch: Watch) -> Piece:
    return watch.keys[job], job


def _node_fails(story: Story, watch: Watch) -> Pieces:
    node = watch.nodes[story.node]
    return [(f"node {node.name} fails with {counted(len(node.devices), 'GPU')}", -1)]


def _node_is_back(story: Story, watch: Watch) -> Pieces:
    return [(f"node {watch.nodes[story.node].name} is back", -1)]


def _stops(story: Story, watch: Watch) -> Pieces:
    return [_who(story.job, watch), (f" stops with its node and goes on from its last checkpoint ({_gpus(story)})", -1)]


def _leaves(why: str) -> Callable[[Story, Watch], Pieces]:
    def words(story: Story, watch: Watch) -> Pieces:
        leaving = [_who(story.other, watch)]
        if story.jobs > 1:
            queue = watch.jobs.queues[int(watch.jobs.queue[story.other])]
            leaving = [(f"{story.jobs} jobs", -1), (f" of {queue}", story.other)]
        verb = "leave" if story.jobs > 1 else "leaves"
        return [*leaving, (f" {verb} {_gpus(story)} to ", -1), _who(story.job, watch), (why, -1)]

    return words


def _gang_starts(story: Story, watch: Watch) -> Pieces:
    where = f"{_gpus(story)} on {counted(story.nodes, 'node')}"
    if story.waited_s < 0:
        return [_who(story.job, watch), (f" goes on, whole: {where}", -1)]
    waited = f", after {duration(story.waited_s)}" if story.waited_s >= 60 else ", at once"
    return [_who(story.job, watch), (f" starts whole: {where}{waited}", -1)]


def _gang_waits(story: Story, watch: Watch) -> Pieces:
    return [_who(story.job, watch), (f" wants {_gpus(story)} together and waits: {_reason(story, watch)}", -1)]


def _never(story: Story, watch: Watch) -> Pieces:
    return [_who(story.job, watch), (f" can never start: {_reason(story, watch)}", -1)]


def _passes(story: Story, watch: Watch) -> Pieces:
    return [
        _who(story.job, watch),
        (" fills in before ", -1),
        _who(story.other, watch),
        (" and delays it by nothing", -1),
    ]


def _starts(story: Story, watch: Watch) -> Pieces:
    return [_who(story.job, watch), (f" starts: {_gpus(story)}", -1)]


def _ends(story: Story, watch: Watch) -> Pieces:
    return [_who(story.job, watch), (" ends", -1)]


def _changes(verb: str) -> Callable[[Story, Watch], Pieces]:
    return lambda story, watch: [_who(story.job, watch), (f" {verb}", -1)]


def _gpus(story: Story) -> str:
    return gpus_words(story.gpus)


def _reason(story: Story, watch: Watch) -> str:
    return short(watch.sentence(story.said))


def short(sentence: str) -> str:
    """Without the place in time, which has a column of its own."""
    return sentence.partition("; it is to start by")[0]


_WORDS: dict[Kind, Callable[[Story, Watch], Pieces]] = {
    Kind.NodeFails: _node_fails,
    Kind.NodeIsBack: _node_is_back,
    Kind.StopsWithNode: _stops,
    Kind.LeavesForPriority: _leaves(", which has priority"),
    Kind.LeavesForShare: _leaves(", whose queue is owed it"),
    Kind.LeavesForShorter: _leaves(", which has less left to do"),
    Kind.GangStarts: _gang_starts,
    Kind.GangWaits: _gang_waits,
    Kind.CanNeverStart: _never,
    Kind.Passes: _passes,
    Kind.Starts: _starts,
    Kind.Grows: _changes("grows"),
    Kind.Shrinks: _changes("shrinks"),
    Kind.Ends: _ends,
    Kind.IsGivenUp: _changes("is given up"),
}
