"""RDMA ports: ibstat, ibv_devinfo, `rdma link`, and sysfs with one file a line (`mlx5_0/ports/1/state=4: ACTIVE`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

NO_COUNTERS: Mapping[str, int] = {}


class RdmaPort(Fact, frozen=True, kw_only=True):
    """A port of an RDMA device. Counters count since the driver was loaded: take differences."""

    device: str
    port: int = 1
    state: str = ""  # ACTIVE, DOWN, INIT, ARMED
    physical: str = ""  # LinkUp, Polling, Disabled
    rate_gbs: float = -1.0  # Gbit/s
    width: str = ""  # 4X
    layer: str = ""  # InfiniBand, Ethernet
    firmware: str = ""
    model: str = ""  # MT4129
    counters: Mapping[str, int] = NO_COUNTERS


_SYSFS = re.compile(r"^(?:/sys/class/infiniband/)?(?P<device>\w+)/(?P<path>[\w/]+)\s*[=:]\s*(?P<value>.*)$")
_RDMA_LINK = re.compile(
    r"^(?:\d+/\d+: |link )?(?P<device>[a-z]\w+)/(?P<port>\d+):? .*?state (?P<state>\w+)(?: physical_state "
    r"(?P<physical>\w+))?"
)
_RATE = re.compile(r"(?P<rate>[\d.]+)(?: Gb/sec)?(?: \((?P<width>\d+X))?")
_CA = re.compile(r"^CA '(?P<device>\w+)'|^hca_id:\s*(?P<hca>\w+)")
_FIELD = re.compile(r"^\s*(?P<name>[A-Za-z][\w ]*?)\s*:\s*(?P<value>\S.*?)\s*$")
_IBSTAT = {
    "state": "state", "physical state": "physical", "phys_state": "physical", "rate": "rate", "link layer": "layer",
    "link_layer": "layer", "firmware version": "firmware", "fw_ver": "firmware", "ca type": "model",
}  # fmt: skip


def looks_like(head: bytes) -> bool:
    return (
        b"/ports/1/" in head or b"\nCA '" in head or head.startswith(b"CA '") or b"hca_id:" in head
        or b"physical_state " in head
    )  # fmt: skip


def read(piece: Piece) -> Iterator[Fact]:
    ports: dict[tuple[str, int], dict[str, Any]] = {}
    of_device: dict[str, dict[str, str]] = {}
    device, port = "", 0
    for number, line in enumerate(piece.text.splitlines(), 1):
        if found := _RDMA_LINK.match(line):
            one = ports.setdefault((found["device"], int(found["port"])), _begin(number, line))
            one["state"], one["physical"] = found["state"], found["physical"] or ""
        elif found := _SYSFS.match(line):
            _sysfs(found, ports, of_device, number, line)
        elif found := _CA.match(line):
            device, port = found["device"] or found["hca"], 0
        elif device and (named := re.match(r"^\s*[Pp]ort:?\s+(\d+)", line)):
            port = int(named[1])
            ports[device, port] = _begin(number, line)
        elif device and (found := _FIELD.match(line)) and (name := _IBSTAT.get(found["name"].lower())):
            if port:
                ports[device, port][name] = found["value"]
                if name == "state":
                    ports[device, port].update(_begin(number, line))
            else:
                of_device.setdefault(device, {})[name] = found["value"]
    for (device, port), fields in ports.items():
        yield _port(piece, device, port, {**of_device.get(device, {}), **fields})


def _begin(number: int, line: str) -> dict[str, Any]:
    return {"line": number, "text": line.strip()[:LONGEST_TEXT]}


def _sysfs(
    found: re.Match[str],
    ports: dict[tuple[str, int], dict[str, Any]],
    of_device: dict[str, dict[str, str]],
    number: int,
    line: str,
) -> None:
    device, path, value = found["device"], found["path"].split("/"), found["value"].strip()
    if len(path) == 1:
        if name := {"fw_ver": "firmware", "hca_type": "model"}.get(path[0]):
            of_device.setdefault(device, {})[name] = value
        return
    if path[0] != "ports" or len(path) < 3 or not path[1].isdigit():
        return
    one = ports.setdefault((device, int(path[1])), {**_begin(number, line), "counters": {}})
    if len(path) == 4 and value.isdigit():
        one.setdefault("counters", {})[path[3]] = int(value)
    elif name := {"state": "state", "phys_state": "physical", "rate": "rate", "link_layer": "layer"}.get(path[2]):
        one[name] = value
        if name == "state":
            one.update(_begin(number, line))


def _port(piece: Piece, device: str, port: int, fields: dict[str, Any]) -> RdmaPort:
    rate = _RATE.match(str(fields.get("rate", "")))
    return RdmaPort(
        device=device,
        port=port,
        state=_state(fields.get("state", "")),
        physical=_state(fields.get("physical", "")),
        rate_gbs=float(rate["rate"]) if rate else -1.0,
        width=(rate["width"] or "") if rate else "",
        layer=str(fields.get("layer", "")),
        firmware=str(fields.get("firmware", "")),
        model=str(fields.get("model", "")),
        counters=fields.get("counters", NO_COUNTERS),
        origin=Origin(piece.source, piece.kind, fields["text"], line=fields["line"], node=piece.node, pod=piece.pod),
    )


def _state(words: str) -> str:
    """`4: ACTIVE`, `PORT_ACTIVE (4)`, `Active` → ACTIVE; physical ones keep their case: LinkUp."""
    word = words.partition(": ")[2] or words
    word = word.partition(" (")[0].strip().removeprefix("PORT_")
    return word.upper() if word.lower() in ("active", "down", "init", "initializing", "armed") else word


FORMAT = Format("infiniband", ("infiniband",), looks_like, read)
