"""How GPUs may be had: what a node gives of a resource, and the queues that allow some ways alone."""

from __future__ import annotations

from io import StringIO

import msgspec
import pytest
from rich.console import Console

from berth.kube.wire_queues import GPUQueue
from berth.model.cluster import Device, Node
from berth.model.queue import Queue
from berth.model.queue_rules import rules_of
from berth.model.sharing import sharing_of
from berth.model.workload import PodClass, PodSet, Workload
from berth.sources.governing import governed
from berth.sources.pod_class import PodReading, read_template, with_inherited
from berth.sources.queues_read import queue_of
from berth.views.queue_policy import policy_of, record, show

GPU, SHARED, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"
SLICED = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
MPS = {**SLICED, "nvidia.com/gpu.sharing-strategy": "mps"}


@pytest.mark.parametrize(
    ("resource", "labels", "kinds"),
    [
        (GPU, {}, ("exclusive",)),
        (GPU, SLICED, ("time-slice",)),
        (SHARED, SLICED, ("time-slice",)),
        (SHARED, MPS, ("mps",)),
        (MIG, {}, ("mig",)),
        (MIG, {f"{MIG}.replicas": "2", f"{MIG}.sharing-strategy": "time-slicing"}, ("mig", "time-slice")),
        ("amd.com/gpu", SLICED, ("exclusive",)),
    ],
)
def test_what_a_node_gives(resource: str, labels: dict[str, str], kinds: tuple[str, ...]) -> None:
    assert sharing_of(resource, 1000, Node("n", labels=labels)) == kinds


def test_what_labels_do_not_say_devices_do() -> None:
    node = Node("n", devices=(Device(0, replicas=4),))
    assert sharing_of(SHARED, 1000, node) == ("time-slice",)
    assert sharing_of(GPU, 500, Node("n")) == ("time-slice",), "a fraction is shared in time"
    assert sharing_of(GPU, 1000, Node("n"), is_cut=True) == ("mig",), "all GPUs of the node are partitions"


def test_what_every_queue_on_the_way_allows_is_allowed() -> None:
    queues = (Queue("top", sharing=("exclusive", "mig")), Queue("below", "top", sharing=("mig", "mps")),
              Queue("free", "top"))  # fmt: skip
    rules = rules_of(queues)
    assert rules["below"].sharing == ("mig",) and rules["below"].sharing_by == "top"
    assert rules["free"].sharing == ("exclusive", "mig")
    pods = (PodSet("p", PodClass(requests=((GPU, 1),))), PodSet("launcher", PodClass(requests=(("cpu", 1000),))))
    made = governed(Workload("w", pods, queue="below"), rules["below"])
    assert [s.pod_class.queue_sharing for s in made.pod_sets] == [("mig",), None]


def test_a_queue_object_says_it_and_what_the_schema_refuses_is_passed_over() -> None:
    thing = msgspec.convert({"metadata": {"name": "q"}, "spec": {"sharing": ["mps", "mine"]}}, GPUQueue)
    assert queue_of("q", thing).sharing == ("mps",)


def told(name: str, *queues: Queue) -> str:
    out = StringIO()
    show(policy_of(name, queues, (), (), (), 0.0), Console(file=out, width=120), 0.0)
    return out.getvalue()


def test_the_policy_of_a_queue_says_it_and_who_states_it() -> None:
    queues = (Queue("top", sharing=("exclusive", "mig")), Queue("below", "top"), Queue("other"))
    assert "whole GPUs and partitions alone (queue top); each counts as one GPU" in told("below", *queues)
    assert "whole GPUs, partitions, time-slices and MPS replicas, as pods ask" in told("other", *queues)
    assert record(policy_of("below", queues, (), (), (), 0.0), 0.0)["sharing"] == ["exclusive", "mig"]


def asking(annotation: str | None) -> PodReading:
    pod = {"metadata": {"annotations": {"berth.dev/sharing": annotation}}, "spec": {"containers": [{}]}}
    return read_template(pod, path="")


@pytest.mark.parametrize(
    ("said", "ways"),
    [(None, ()), ("any", ()), ("exclusive", ("exclusive",)), ("mps | time-slice", ("time-slice", "mps")),
     ("Exclusive", ("exclusive",)), ("exclusive|any", ())],
)  # fmt: skip
def test_pods_say_how_they_want_gpus(said: str | None, ways: tuple[str, ...]) -> None:
    assert asking(said).pod_class.sharing == ways and not asking(said).problems


def test_a_way_that_there_is_not_is_told() -> None:
    (problem,) = asking("exclusiv").problems
    assert problem == (
        'metadata.annotations["berth.dev/sharing"] is "exclusiv": it is exclusive, mig, time-slice, mps or any. '
        "Did you mean exclusive?"
    )


def test_a_pod_has_it_from_its_owners_too_and_its_own_goes_first() -> None:
    plain = asking(None).pod_class
    assert with_inherited(plain, {"berth.dev/sharing": "mig"}).sharing == ("mig",)


@pytest.mark.parametrize(
    ("own", "queue", "ways"),
    [((), None, None), ((), ("mig",), ("mig",)), (("exclusive",), None, ("exclusive",)),
     (("exclusive", "mig"), ("mig", "mps"), ("mig",)), (("exclusive",), ("mig",), ())],
)  # fmt: skip
def test_what_pods_ask_for_and_what_their_queue_allows(
    own: tuple[str, ...], queue: tuple[str, ...] | None, ways: tuple[str, ...] | None
) -> None:
    assert PodClass(sharing=own, queue_sharing=queue).ways == ways
