"""A device plugin over the kubelet's real protocol, with devices that exist in name only.

It speaks v1beta1 as the NVIDIA plugin does: registers, streams its list, answers Allocate with the identifiers in
NVIDIA_VISIBLE_DEVICES, or with the names of CDI devices. What can go wrong with one can be made to happen: a device
that turns unhealthy, a refusal to allocate, a stream that stands still. Source of the messages: k8s.io/kubelet,
deviceplugin/v1beta1/api.proto.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path

import grpc

from devcluster.protobuf import decode, encode, encode_map, messages, texts

_VERSION = "v1beta1"
_REGISTER = "/v1beta1.Registration/Register"
_POLL_S = 0.1


@dataclass(frozen=True)
class Allocation:
    """One container that was given devices."""

    devices: tuple[str, ...]
    at_s: float  # time.time()


class DevicePlugin:
    """Serves `devices` as `resource` to the kubelet whose device-plugins folder is given, from `start` to `stop`.

    It registers again when the kubelet comes back. `socket` is the name of its socket; `refusal` is the text with which
    Allocate fails, while set. With `cdi_kind`, nvidia.com/gpu for instance, Allocate answers with the CDI devices
    nvidia.com/gpu=GPU-… and nothing else: a specification has to say what they are.
    """

    def __init__(
        self,
        folder: Path,
        resource: str = "nvidia.com/gpu",
        devices: Iterable[str] = (),
        socket: str = "",
        cdi_kind: str = "",
    ) -> None:
        self.resource = resource
        self.allocations: list[Allocation] = []
        self.refusal = ""
        self.registrations = 0
        self._folder = folder
        self._cdi_kind = cdi_kind
        self._endpoint = socket or resource.replace("/", "-") + ".sock"
        self._healthy = dict.fromkeys(devices, True)
        self._streams: list[queue.Queue[bytes | None]] = []
        self._server: grpc.Server | None = None
        self._registered_with: tuple[int, int] = (0, 0)
        self._ends = threading.Event()
        self._keeper: threading.Thread | None = None

    def start(self, timeout_s: float = 20.0) -> DevicePlugin:
        """Registered when this returns."""
        until = time.monotonic() + timeout_s
        while not self._register_where_needed():
            if time.monotonic() > until:
                raise TimeoutError(f"No kubelet serves {self._folder / 'kubelet.sock'}.")
            time.sleep(_POLL_S)
        self._keeper = threading.Thread(target=self._keep_registered, name="device-plugin", daemon=True)
        self._keeper.start()
        return self

    def stop(self) -> None:
        """Gone, as when its pod ends: the kubelet sees the stream close and counts no device any more."""
        self._ends.set()
        if self._keeper is not None:
            self._keeper.join(5)
        self._stop_serving()

    def __enter__(self) -> DevicePlugin:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def set_health(self, device: str, is_healthy: bool) -> None:
        """Tell the kubelet at once."""
        self._healthy[device] = is_healthy
        for stream in list(self._streams):
            stream.put(self._list())

    # --- inside

    def _keep_registered(self) -> None:
        while not self._ends.wait(_POLL_S):
            self._register_where_needed()

    def _register_where_needed(self) -> bool:
        """A kubelet that starts removes all sockets and knows no plugin: its own socket is then a new file."""
        try:
            status = (self._folder / "kubelet.sock").stat()
        except OSError:
            return False
        if (status.st_ino, status.st_ctime_ns) == self._registered_with:
            return True
        self._stop_serving()
        self._serve()
        request = encode([(1, _VERSION), (2, self._endpoint), (3, self.resource)])
        try:
            with grpc.insecure_channel(f"unix://{self._folder / 'kubelet.sock'}") as channel:
                channel.unary_unary(_REGISTER)(request, timeout=5)
        except grpc.RpcError:
            return False
        self.registrations += 1
        self._registered_with = (status.st_ino, status.st_ctime_ns)
        return True

    def _serve(self) -> None:
        nothing = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")  # an empty message of any type
        methods = {
            "GetDevicePluginOptions": nothing,
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self._list_and_watch),
            "Allocate": grpc.unary_unary_rpc_method_handler(self._allocate),
            "PreStartContainer": nothing,
            "GetPreferredAllocation": nothing,
        }
        (self._folder / self._endpoint).unlink(missing_ok=True)
        self._server = grpc.server(futures.ThreadPoolExecutor(8, "device-plugin"))
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(f"{_VERSION}.DevicePlugin", methods),)
        )
        self._server.add_insecure_port(f"unix://{self._folder / self._endpoint}")
        self._server.start()

    def _stop_serving(self) -> None:
        if self._server is None:
            return
        for stream in list(self._streams):
            stream.put(None)
        self._server.stop(0.5).wait(5)
        self._server = None
        (self._folder / self._endpoint).unlink(missing_ok=True)

    def _list(self) -> bytes:
        words = {True: "Healthy", False: "Unhealthy"}
        return encode([(1, encode([(1, name), (2, words[healthy])])) for name, healthy in self._healthy.items()])

    def _list_and_watch(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        stream: queue.Queue[bytes | None] = queue.Queue()
        stream.put(self._list())
        self._streams.append(stream)
        context.add_callback(lambda: stream.put(None))
        try:
            while (answer := stream.get()) is not None:
                yield answer
        finally:
            self._streams.remove(stream)

    def _allocate(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if self.refusal:
            context.abort(grpc.StatusCode.UNKNOWN, self.refusal)
        answers: list[tuple[int, bytes]] = []
        for container in messages(decode(request).get(1)):
            devices = tuple(texts(container.get(1)))
            self.allocations.append(Allocation(devices, time.time()))
            answers.append((1, self._answer(devices)))
        return encode(answers)

    def _answer(self, devices: tuple[str, ...]) -> bytes:
        """ContainerAllocateResponse: envs are its field 1, cdi_devices its field 5."""
        if self._cdi_kind:
            return encode((5, encode([(1, f"{self._cdi_kind}={device}")])) for device in devices)
        return encode(encode_map(1, [("NVIDIA_VISIBLE_DEVICES", ",".join(devices))]))
