"""GPUClass objects say what labels mean, after the configuration; a change is seen at once, live and in a dump."""

from __future__ import annotations

import msgspec

from berth.kube import wire, wire_queues
from berth.model.gpus import joined, read_mapping
from berth.sources.live.world import World

RULE = {"match": {"example.com/card": "big-*"}, "class": "Big-96GB", "memory": "96Gi", "valuePerHour": 3.0}


def node(name, card):
    has = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    labels = {"example.com/card": card}
    return msgspec.convert(
        {"metadata": {"name": name, "labels": labels}, "status": {"capacity": has, "allocatable": has}}, wire.Node
    )


def gpu_class(name, spec):
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, wire_queues.GPUClass)


def classes(world):
    snapshot = world.snapshot(0.0)
    return {n.name: n.gpu_class for n in snapshot.nodes}, {c.name: c.value_per_hour for c in snapshot.gpu_classes}


def test_an_object_is_believed_as_long_as_it_is_there():
    world = World({"berth"})
    world.put_node(node("n0", "big-1"))
    world.put_node(node("n1", "small"))
    world.snapshot(0.0)
    world.put_gpu_class(gpu_class("big", RULE))
    assert classes(world) == ({"n0": "Big-96GB", "n1": classes(world)[0]["n1"]}, {**classes(world)[1], "Big-96GB": 3.0})
    world.put_node(node("n2", "big-2"))
    assert classes(world)[0]["n2"] == "Big-96GB"
    world.drop_gpu_class("big")
    assert "Big-96GB" not in classes(world)[0].values()


def test_the_configuration_goes_before_objects_and_objects_by_name():
    mine = read_mapping("classes: [{match: {card: x}, class: Mine}]", "here")
    found, troubles = joined(mine, {
        "b": {"match": {"card": "x"}, "class": "B"}, "a": {"match": {"card": "*"}, "class": "A"},
    })  # fmt: skip
    assert [rule.gpu_class.name for rule in found.rules] == ["Mine", "A", "B"]
    assert not troubles


def test_an_object_that_cannot_be_read_is_told_and_passed_over():
    found, troubles = joined(None, {"bad": {"match": {}, "class": "X"}, "good": RULE})
    assert [rule.gpu_class.name for rule in found.rules] == ["Big-96GB"]
    assert "GPUClass bad" in troubles[0]
