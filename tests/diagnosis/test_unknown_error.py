"""An error that no rule knows: its writer gives the layer, its sort the class. Anything that is known outranks it."""

from __future__ import annotations

import pytest
from asked import codes, of_text

from berth.diagnosis.words import GUESSED

CODE = "ErrorNotKnown"


@pytest.mark.parametrize(
    ("kind", "text", "layer", "cause_class"),
    [
        ("mig-log", 'level=error msg="the wobbler is not frobnicated"', "L4", "mig-state"),
        ("fabricmanager-log", "[ERROR] [tid 1] wobble 7 of quux", "L1", "fabric"),
        ("runtime-log", "error: wobble.toml: failed to parse quux", "L2", "runtime-config"),
        ("kubelet-log", 'E0101 00:00:00.000000 1 wobble.go:1] "Wobbled" err="quux"', "L3", "kubelet-state"),
        ("plugin-log", "open /var/lib/quux: permission denied", "L3", "permission"),
        ("plugin-log", "wobble.c:7: error: implicit declaration of function 'quux'", "L1", "driver-build"),
        ("app-log", "wobble: symbol lookup error: libquux.so: undefined symbol: frobnicate", "L6", "image"),
        ("app-log", "wobble: cannot allocate memory for quux", "L6", "host-limits"),
    ],
)
def test_the_writer_gives_the_layer_and_the_sort_the_class(kind: str, text: str, layer: str, cause_class: str) -> None:
    (found,) = of_text(text, kind).findings
    assert (found.code, found.layer.name, found.cause_class) == (CODE, layer, cause_class)
    assert found.confidence == GUESSED, "nobody is told that more is known than that"


def test_it_is_left_out_where_anything_is_known() -> None:
    known = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    found = of_text(f"NVRM: wobbleFrobnicate: quux failed\n{known}", "dmesg")
    assert found.findings and CODE not in codes(found)


@pytest.mark.parametrize(
    "text",
    [
        'level=info msg="wobbled"',
        "WARNING: the wobbler is not frobnicated",
        "quux failed, falling back to the wobbler",
        'level=error msg="wobble failed"\nlevel=info msg="wobbled"',
        "If the wobbler fails with permission denied, frobnicate it.",
    ],
)
def test_what_goes_on_is_no_error(text: str) -> None:
    assert of_text(text, "plugin-log").findings == ()


def test_a_log_that_nobody_has_shortened_is_not_searched_for_any_error() -> None:
    quiet = "time=2026-01-01 msg=wobbled\n" * 20
    assert of_text(quiet + 'level=error msg="quux"', "plugin-log").findings == ()


@pytest.mark.parametrize("text", ["the training is slow since yesterday, 40% of the throughput", "hello"])
def test_words_alone_let_nobody_go_on(text: str) -> None:
    found = of_text(text)
    assert found.findings == () and not found.gate.go and found.gate.stage == "discovery"


def test_an_event_of_a_cluster_that_was_looked_through_is_chosen_by_nobody() -> None:
    # Events are read where a known sentence may be in them: here one that says nothing by itself.
    text = "kubelet: Error: quux is not frobnicated: permission denied (RTX 4090)"
    event = (
        '{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "type": "Warning", "reason": "FailedWobble", '
        f'"message": "{text}", "involvedObject": {{"kind": "ReplicaSet", "name": "quux", "namespace": "a"}}}}'
    )
    assert CODE in codes(of_text(text, "pod-events"))
    assert CODE not in codes(of_text(event))
