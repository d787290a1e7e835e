"""However a workload is cut into sets and whatever pods are there, its standings add up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from berth.dialects.membership import Membership, PodFacts, SetNeed, standings

NAMES = ("a", "b", "c")


@st.composite
def needs(draw: st.DrawFn) -> tuple[SetNeed, ...]:
    made = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        count = draw(st.integers(0, 6))
        made.append(SetNeed(name, count, draw(st.integers(0, count)), draw(st.booleans())))
    return tuple(made)


STATES = st.sampled_from(("waiting", "bound", "ended"))
PODS = st.lists(st.tuples(st.sampled_from(NAMES), STATES), max_size=12)


def pods_of(drawn: list[tuple[str, str]]) -> list[tuple[PodFacts, str]]:
    return [
        (PodFacts(f"{name}-{i}", bound=state == "bound", ended=state == "ended"), name)
        for i, (name, state) in enumerate(drawn)
    ]


@given(needs(), st.integers(-1, 12), PODS)
def test_standings_add_up(sets: tuple[SetNeed, ...], least: int, drawn: list[tuple[str, str]]) -> None:
    made = standings(Membership("PodGroup", "ml", "g", sets=sets, least=least), pods_of(drawn))
    assert [s.name for s in made][: len(sets)] == [s.name for s in sets]
    for one in made:
        assert one.waiting == drawn.count((one.name, "waiting"))
        assert one.bound == drawn.count((one.name, "bound"))
        assert 0 <= one.min_count <= one.waiting + one.missing
    assert sum(s.waiting + s.bound for s in made) == sum(state != "ended" for _, state in drawn)


@given(needs(), st.integers(1, 12), PODS)
def test_a_minimum_of_the_whole_is_met_by_bound_and_required_pods(
    sets: tuple[SetNeed, ...], least: int, drawn: list[tuple[str, str]]
) -> None:
    sets = tuple(SetNeed(s.name, s.count, 0) for s in sets)
    made = standings(Membership("PodGroup", "ml", "g", sets=sets, least=least), pods_of(drawn))
    bound, required = sum(s.bound for s in made), sum(s.min_count for s in made)
    ended = sum(state == "ended" for _, state in drawn)
    if not ended:
        assert required == max(0, least - bound)
    assert required <= max(0, least - bound)
