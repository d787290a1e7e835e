"""What the kubelet's sockets say, decoded; which resource a plugin's socket serves; what is told of plugins."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import pytest
from made_up_machine import MadeUpMachine, MadeUpNvml, nvml_device, uuid_of

from berth.diagnosis.ledger import accounts
from berth.evidence.formats.boundary_facts import Given, KubeletOffers, Offered, Visible
from berth.evidence.piece import Piece
from berth.node import kubelet, plugins
from berth.node.kubelet_messages import allocatable_in, given_in, offered_in
from berth.node.look import Looking, Machine
from berth.node.places import Places
from berth.node.plugins import Asked, Served, facts_of, served
from berth.node.protobuf import Undecodable, decode
from berth.node.seen import parted
from devcluster.protobuf import encode

GPU = "nvidia.com/gpu"


def devices(resource: str, *ids: str) -> bytes:
    return encode([(1, resource), *((2, one) for one in ids)])


def test_devices_of_pods_are_put_together_over_numa_nodes_and_claims() -> None:
    device = encode([(2, "gpu.nvidia.com"), (3, "node-1"), (4, "gpu-3")])
    claim = encode([(2, "claim"), (4, device)])
    container = encode([(1, "main"), (2, devices(GPU, "GPU-a")), (2, devices(GPU, "GPU-b")), (5, claim)])
    answer = encode([(1, encode([(1, "train"), (2, "ml"), (3, container)]))])
    found = {(one.pod, one.container, one.resource): one.ids for one in given_in(answer)}
    assert found == {
        ("ml/train", "main", GPU): ("GPU-a", "GPU-b"),
        ("ml/train", "main", "gpu.nvidia.com"): ("node-1/gpu-3",),
    }


def test_allocatable_and_lists_are_decoded() -> None:
    answer = encode([(1, devices(GPU, "GPU-a")), (1, devices(GPU, "GPU-b")), (1, devices("x/y", "1"))])
    assert allocatable_in(answer) == {GPU: ("GPU-a", "GPU-b"), "x/y": ("1",)}
    numa = encode([(1, encode([(1, 1)]))])
    good, bad = encode([(1, "GPU-a"), (2, "Healthy"), (3, numa)]), encode([(1, "GPU-b"), (2, "Unhealthy")])
    listed = encode([(1, good), (1, bad)])
    assert offered_in(listed) == (Offered("GPU-a", True, 1), Offered("GPU-b", False, -1))
    with pytest.raises(Undecodable):
        decode(b"\x0a\x05abc")


def test_a_socket_is_told_by_its_devices_or_its_name() -> None:
    known = {GPU: {"GPU-a"}, "nvidia.com/mig-1g.10gb": set(), "amd.com/gpu": set(), "rdma/hca": {"m0"}}
    names = {
        "nvidia-gpu.sock": GPU,
        "nvidia.com-gpu.sock": GPU,
        "nvidia-mig-1g.10gb.sock": "nvidia.com/mig-1g.10gb",
        "amd.com_gpu.sock": "amd.com/gpu",
        "nvidia-gpu.shared.sock": "nvidia.com/gpu.shared",
        "example.com-thing.sock": "example.com/thing",
        "something.sock": "",
    }
    assert {name: served([Asked(name)], known)[0].resource for name in names} == names
    listed = Asked("plugin-7.sock", devices=(Offered("m0"),))
    assert served([listed], known)[0].resource == "rdma/hca"


def test_a_plugin_that_answers_and_was_not_asked_for_its_list_says_nothing_of_devices() -> None:
    found = [Served(Asked("a.sock"), GPU), Served(Asked("b.sock", "no answer within 3 s"), "amd.com/gpu")]
    (told,) = facts_of(found)
    assert (told.resource, told.answered, told.problem) == ("amd.com/gpu", False, "no answer within 3 s")


def test_a_socket_that_was_left_behind_says_nothing_where_another_answers() -> None:
    old = Served(Asked("old.sock", "refused: nobody listens on the socket"), GPU)
    new = Served(Asked("new.sock", devices=(Offered("GPU-a"),)), GPU)
    (told,) = facts_of([old, new])
    assert told.answered and told.devices == (Offered("GPU-a"),)
    assert [one.answered for one in facts_of([old])] == [False]


# ---- over real sockets


@pytest.fixture
def places() -> Iterator[Places]:
    """In a short folder: the path of a socket has 107 characters at most."""
    with TemporaryDirectory(prefix="b") as folder:
        found = Places.of(folder)
        found.device_plugins.mkdir(parents=True)
        found.pod_resources.parent.mkdir(parents=True)
        yield found


def serve(path: Path, service: str, methods: dict[str, object]) -> grpc.Server:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    return server


def test_absent_refused_silent_and_alive_are_told_apart(places: Places) -> None:
    folder = places.device_plugins
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(folder / "nvidia-left.sock"))
    silent = socket.socket(socket.AF_UNIX)  # takes calls, and nobody answers them
    silent.bind(str(folder / "nvidia-silent.sock"))
    silent.listen()
    ends = threading.Event()

    def lists(request: bytes, context: grpc.ServicerContext):  # type: ignore[no-untyped-def]
        yield encode([(1, encode([(1, "GPU-a"), (2, "Healthy")]))])
        ends.wait(5)

    server = serve(
        folder / "nvidia-gpu.sock",
        "v1beta1.DevicePlugin",
        {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(lambda request, context: b""),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(lists),
        },
    )
    try:
        (folder / "kubelet.sock").touch()
        asked, problem = plugins.look(places, timeout_s=0.5)
        assert not problem
        assert {one.socket: one.problem for one in asked} == {
            "nvidia-gpu.sock": "",
            "nvidia-left.sock": "refused: nobody listens on the socket",
            "nvidia-silent.sock": "no answer within 0.5 s",
        }
        assert all(one.devices is None for one in asked)
        listed = plugins.ask(folder / "nvidia-gpu.sock", 2.0, with_list=True)
        assert listed.devices == (Offered("GPU-a"),)
        assert plugins.ask(folder / "nothing.sock").problem == "no socket"
    finally:
        ends.set()
        server.stop(None)
        silent.close()


def test_what_a_plugin_says_when_it_refuses_is_kept(places: Places) -> None:
    def refuses(request: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.UNKNOWN, "the driver does not answer")
        return b""

    methods = {"GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(refuses)}
    server = serve(places.device_plugins / "a.sock", "v1beta1.DevicePlugin", methods)
    try:
        assert plugins.ask(places.device_plugins / "a.sock").problem == "the driver does not answer"
    finally:
        server.stop(None)


def test_the_kubelets_account_is_read_from_its_socket_and_checkpoint(places: Places) -> None:
    container = encode([(1, "main"), (2, devices(GPU, "GPU-a"))])
    given = encode([(1, encode([(1, "train"), (2, "ml"), (3, container)]))])
    offers = encode([(1, devices(GPU, "GPU-a", "GPU-b"))])
    methods = {
        "List": grpc.unary_unary_rpc_method_handler(lambda request, context: given),
        "GetAllocatableResources": grpc.unary_unary_rpc_method_handler(lambda request, context: offers),
    }
    places.checkpoint.write_text('{"Data": {"RegisteredDevices": {}}}')
    server = serve(places.pod_resources, "v1.PodResourcesLister", methods)
    try:
        facts, pieces, missing = parted(kubelet.look(places, "n1"))
    finally:
        server.stop(None)
    assert [(type(one), one.resource) for one in facts] == [(KubeletOffers, GPU), (Given, GPU)]  # type: ignore[attr-defined]
    assert [(type(one), one.kind) for one in pieces] == [(Piece, "kubelet-checkpoint")]
    assert not missing
    _, _, missing = parted(kubelet.look(places, "n1", timeout_s=0.2))
    assert [one.why.partition(": ")[0] for one in missing] == ["PodResources", "PodResources"]


def test_a_pod_that_reaches_a_device_without_having_been_given_one_is_told() -> None:
    """Only where the kubelet has said whom it gave devices."""
    with TemporaryDirectory(prefix="b") as folder:
        machine = MadeUpMachine(Path(folder) / "m")
        machine.run_container(500, pod="ml/train", nodes=(0,))
        machine.run_container(
            600, pod="ml/thief", nodes=(0, 1), uid="11111111-8f2e-4a63-9d1e-3f1c2b7a9e10", id="d" * 64
        )  # fmt: skip
        container = encode([(1, "main"), (2, devices(GPU, uuid_of(0)))])
        given = encode([(1, encode([(1, "train"), (2, "ml"), (3, container)]))])
        methods = {
            "List": grpc.unary_unary_rpc_method_handler(lambda request, context: given),
            "GetAllocatableResources": grpc.unary_unary_rpc_method_handler(lambda request, context: b""),
        }
        machine.places.pod_resources.parent.mkdir()
        server = serve(machine.places.pod_resources, "v1.PodResourcesLister", methods)
        nvml = MadeUpNvml([nvml_device(0), nvml_device(1)])
        try:
            facts = Machine(machine.places, "n1", Looking(socket_s=2.0), nvml).look().facts
        finally:
            server.stop(None)
        seen = {one.of_pod: one for one in facts.of(Visible)}
        assert (seen["ml/train"].asked_for_none, seen["ml/train"].all_of_them) == (False, False)
        assert (seen["ml/thief"].asked_for_none, seen["ml/thief"].all_of_them) == (True, True)
        (account,) = accounts(facts)
        assert [one.pod for one in account.bypasses] == ["ml/thief"]
        assert (account.requested, account.visible) == (1, 1), "who was given none is no part of the sum"
