"""Logs of NCCL, INFO and WARN of 2.18 to 2.30: with and without time stamp, behind the prefixes of launchers.

A line that is not there proves nothing: what is printed depends on the level, the subsystems and the version, and since
2.22 connections are made at first use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.line_time import line_time
from berth.evidence.piece import Piece


class By(Struct, frozen=True, gc=False):
    """Who wrote a line. `device` is the process's own, never a rank; a log without prefixes names nobody."""

    host: str = ""
    pid: int = 0
    device: int = -1


class NcclLine(Fact, frozen=True, kw_only=True):
    """What all lines of NCCL have."""

    by: By = By()

    @property
    def host(self) -> str:
        return self.by.host


class NcclVersion(NcclLine, frozen=True, kw_only=True):
    version: str  # "2.26.2"
    cuda: str = ""  # "12.2", that it was built with


class NcclDriver(NcclLine, frozen=True, kw_only=True):
    cuda_driver: int  # 12080


class NcclChannel(NcclLine, frozen=True, kw_only=True):
    """A connection between two ranks; like ones of several channels are one, with their number."""

    rank: int
    peer: int
    direction: str = ""  # send, receive, "" where it is inside the node
    transport: str = ""  # P2P, SHM, NET, COLLNET
    way: str = ""  # "IB/0", "Socket/0", "CUMEM", "AWS Libfabric/1"
    is_gdr: bool = False
    channels: int = 1


class NcclRank(NcclLine, frozen=True, kw_only=True):
    """A rank of a communicator, at the begin or the end of its initialisation."""

    communicator: str
    rank: int
    ranks: int
    bus: str = ""
    state: str = ""  # START, COMPLETE, Destroy COMPLETE, Abort COMPLETE


class NcclSetting(NcclLine, frozen=True, kw_only=True):
    """A setting that is in effect."""

    name: str
    value: str


class NcclNetwork(NcclLine, frozen=True, kw_only=True):
    """The network that was chosen: IB, Socket, AWS Libfabric."""

    network: str


class NcclHcas(NcclLine, frozen=True, kw_only=True):
    """The network devices that were found, with their ports and link layers."""

    devices: tuple[tuple[str, int, str], ...]  # ("mlx5_0", 1, "IB")
    interface: str = ""  # for the control connection


class NcclInterface(NcclLine, frozen=True, kw_only=True):
    """The interface of the bootstrap connection."""

    interface: str
    address: str = ""


class NcclSockets(NcclLine, frozen=True, kw_only=True):
    """The interfaces that data may go over where there is no RDMA."""

    interfaces: tuple[tuple[str, str], ...]  # ("eth0", "10.1.0.7")


class NcclPlugin(NcclLine, frozen=True, kw_only=True):
    """A network plugin that was loaded."""

    plugin: str
    version: str = ""


class NcclNvls(NcclLine, frozen=True, kw_only=True):
    """NVLink SHARP: whether the device can, or that a group was made."""

    is_available: bool
    ranks: int = 0


class NcclWarn(NcclLine, frozen=True, kw_only=True):
    text: str
    place: str = ""  # file:line that printed it


_LINE = re.compile(
    r"(?:(?P<host>[A-Za-z0-9][\w.-]*):(?P<pid>\d+):(?P<tid>\d+) )?(?:\[(?P<dev>\d+)\] )?"
    r"(?:(?P<place>[\w/.-]+\.\w+:\d+)(?: \(\w+\))? )?NCCL (?P<level>INFO|WARN)[: ]\s*(?P<text>.*)"
)
_VERSION = re.compile(r"\bNCCL version (?P<version>\d+\.\d+\.\d+)(?:[\w.-]*?\+cuda(?P<cuda>[\d.]+))?")
_CHANNEL = re.compile(
    r"(?:Channel (?P<channel>\d+)(?:/\d+)? ?: )?(?P<rank>\d+)\[\w+\] -> (?P<peer>\d+)\[\w+\]"
    r"(?: \[(?P<direction>send|receive)\])? via (?P<via>[A-Z]\S.*?)(?=\s{2,}|\s\(|\s+comm 0x|\s*$)"
)
_RANK = re.compile(
    r"comm 0?x?[\w.…]+ rank (?P<rank>\d+) n[rR]anks (?P<ranks>\d+)(?:.*? busId (?P<bus>\w+))?"
    r"(?:.*? commId (?P<comm>0x[\w.…]+))?.*?(?P<state>Init START|Init COMPLETE|Destroy COMPLETE|Abort COMPLETE)"
)
_SETTING = re.compile(r"(?P<name>NCCL_[A-Z0-9_]+) set by environment to (?P<value>.*?)\.?\s*$")
_NETWORK = re.compile(r"\bUsing network (?P<network>\S[^\n]*?)\s*$")
_HCAS = re.compile(r"NET/\S+ ?: Using (?P<devices>\[\d+\].*)")
_HCA = re.compile(r"\[\d+\](?P<name>[\w-]+):(?P<port>\d+)/(?P<layer>\w+)")
_SOCKETS = re.compile(r"NET/Socket ?: Using (?P<interfaces>\[\d+\].*)")
_SOCKET = re.compile(r"\[\d+\](?P<name>[\w.@-]+):(?P<address>[^<\s\[]+)<")
_OOB = re.compile(r"OOB (?P<interface>[\w.@-]+):")
_BOOTSTRAP = re.compile(r"Bootstrap ?: Using (?:\[\d+\])?(?P<interface>[\w.@-]+):(?P<address>[\w.:%]*)")
_PLUGIN = re.compile(
    r"NET/OFI Initializing (?P<plugin>[\w-]+) (?P<version>[\w.-]+)|Initialized NET plugin (?P<net>.+?)\s*$"
)
_DRIVER = re.compile(r"cudaDriverVersion (?P<version>\d+)")
_NVLS = re.compile(
    r"NVLS multicast support is (?P<no>not )?available|NVLS Created Multicast group .*? nranks (?P<ranks>\d+)"
)
_PIECES = (b"NCCL INFO", b"NCCL WARN", b"NCCL version ", b"] via NET/", b"] via P2P/", b"] via SHM/")


def looks_like(head: bytes) -> bool:
    return any(words in head for words in _PIECES)


def read(piece: Piece) -> Iterator[Fact]:
    """Facts in the order of their first line. Channels between the same two ranks are counted into one."""
    channels: dict[tuple[object, ...], NcclChannel] = {}
    counts: dict[tuple[object, ...], int] = {}
    for number, line in enumerate(piece.text.splitlines(), 1):
        if "NCCL" not in line and " via " not in line:
            continue
        found = _LINE.search(line)
        writer = _Writer(piece, line, number, found)
        if (version := _VERSION.search(line)) and "set by" not in line:
            yield NcclVersion(
                version=version["version"], cuda=version["cuda"] or "", origin=writer.origin, by=writer.by
            )
            continue
        if channel := _CHANNEL.search(line):
            one = _channel(channel, writer)
            key: tuple[object, ...] = (one.by, one.rank, one.peer, one.direction, one.transport, one.way, one.is_gdr)
            counts[key] = counts.get(key, 0) + 1
            channels.setdefault(key, one)
            continue
        if found is None:
            continue
        if found["level"] == "WARN":
            yield NcclWarn(text=found["text"].strip(), place=found["place"] or "", origin=writer.origin, by=writer.by)
        else:
            yield from _info(found["text"], writer)
    for key, one in channels.items():
        yield replace(one, channels=counts[key])


class _Writer:
    """Who wrote a line, as arguments of a fact, made only where a fact is."""

    __slots__ = ("_found", "_line", "_number", "_piece")

    def __init__(self, piece: Piece, line: str, number: int, found: re.Match[str] | None) -> None:
        self._piece, self._line, self._number, self._found = piece, line, number, found

    @property
    def origin(self) -> Origin:
        time, at_s = line_time(self._line)
        piece = self._piece
        text = self._line.strip()[:LONGEST_TEXT]
        return Origin(piece.source, piece.kind, text, time, at_s, self._number, piece.node, piece.pod)

    @property
    def by(self) -> By:
        found = self._found
        if found is None:
            return By()
        return By(found["host"] or "", int(found["pid"] or 0), int(found["dev"]) if found["dev"] else -1)


def _info(text: str, writer: _Writer) -> Iterator[Fact]:
    if rank := _RANK.search(text):
        yield NcclRank(
            communicator=rank["comm"] or "",
            rank=int(rank["rank"]),
            ranks=int(rank["ranks"]),
            bus=rank["bus"] or "",
            state=rank["state"].removeprefix("Init "),
            origin=writer.origin,
            by=writer.by,
        )
    elif setting := _SETTING.search(text):
        yield NcclSetting(name=setting["name"], value=setting["value"], origin=writer.origin, by=writer.by)
    elif sockets := _SOCKETS.search(text):
        if interfaces := interfaces_of(sockets["interfaces"]):
            yield NcclSockets(interfaces=interfaces, origin=writer.origin, by=writer.by)
    elif hcas := _HCAS.search(text):
        devices = tuple((one["name"], int(one["port"]), one["layer"]) for one in _HCA.finditer(hcas["devices"]))
        if devices:
            oob = _OOB.search(text)
            yield NcclHcas(
                devices=devices, interface=oob["interface"] if oob else "", origin=writer.origin, by=writer.by
            )
    elif network := _NETWORK.search(text):
        yield NcclNetwork(network=network["network"], origin=writer.origin, by=writer.by)
    elif bootstrap := _BOOTSTRAP.search(text):
        yield NcclInterface(
            interface=bootstrap["interface"], address=bootstrap["address"], origin=writer.origin, by=writer.by
        )
    elif plugin := _PLUGIN.search(text):
        yield NcclPlugin(
            plugin=plugin["plugin"] or plugin["net"],
            version=plugin["version"] or "",
            origin=writer.origin,
            by=writer.by,
        )
    elif driver := _DRIVER.search(text):
        yield NcclDriver(cuda_driver=int(driver["version"]), origin=writer.origin, by=writer.by)
    elif nvls := _NVLS.search(text):
        yield NcclNvls(is_available=not nvls["no"], ranks=int(nvls["ranks"] or 0), origin=writer.origin, by=writer.by)


def interfaces_of(words: str) -> tuple[tuple[str, str], ...]:
    """Name and address of each: `[0]eth0:10.1.0.7<0> [1]docker0:172.17.0.1<0>`."""
    return tuple((one["name"], one["address"]) for one in _SOCKET.finditer(words))


def _channel(found: re.Match[str], writer: _Writer) -> NcclChannel:
    transport, _, way = found["via"].strip().partition("/")
    way = way.partition("/GDRDMA")[0]
    is_gdr = "/GDRDMA" in found["via"]
    return NcclChannel(
        rank=int(found["rank"]),
        peer=int(found["peer"]),
        direction=found["direction"] or "",
        transport=transport,
        way=way.strip(),
        is_gdr=is_gdr,
        origin=writer.origin,
        by=writer.by,
    )


FORMAT = Format("nccl-log", ("nccl-log",), looks_like, read)
