"""A label that a workload names as its domain is a level, even if nobody declared it."""

from __future__ import annotations

from berth.model.topology import discover

RACKS = [
    {"example.com/rack": f"r{i // 2}", "example.com/block": f"b{i // 4}", "topology.kubernetes.io/zone": "z"}
    for i in range(8)
]


def labels(asked):
    return [level.label for level in discover(RACKS, (), asked).levels]


def test_a_label_that_is_asked_for_goes_where_its_number_of_domains_puts_it():
    assert labels({"example.com/rack", "example.com/block"}) == [
        "topology.kubernetes.io/zone", "example.com/block", "example.com/rack",
    ]  # fmt: skip


def test_a_label_that_no_node_carries_is_no_level():
    assert labels({"example.com/cage"}) == ["topology.kubernetes.io/zone"]


def test_what_is_known_or_the_host_is_not_added():
    assert labels({"zone", "kubernetes.io/hostname"}) == ["topology.kubernetes.io/zone"]
