"""Configuration on the machine's disk that decides whether containers get GPUs: containerd, the NVIDIA toolkit, CDI.

Files are read again only when they have changed: a CDI specification has thousands of lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from berth.evidence.fact import Fact
from berth.evidence.piece import Piece
from berth.evidence.read import read
from berth.node.places import Places
from berth.node.seen import NotSeen, because

LARGEST_BYTES = 8 * 2**20
# Below the machine's root; the runtimes of k3s, RKE2, k0s and MicroK8s have their own.
_CONTAINERD = (
    "etc/containerd/config.toml", "etc/containerd/conf.d/*.toml", "etc/containerd/config.d/*.toml",
    "var/lib/rancher/k3s/agent/etc/containerd/config.toml", "var/lib/rancher/rke2/agent/etc/containerd/config.toml",
    "etc/k0s/containerd.toml", "etc/k0s/containerd.d/*.toml", "var/snap/microk8s/current/args/containerd.toml",
)  # fmt: skip
_TOOLKIT = (
    "etc/nvidia-container-runtime/config.toml",
    "usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml",
)
_CRIO = ("etc/crio/crio.conf", "etc/crio/crio.conf.d/*")
_CDI = ("etc/cdi/*.yaml", "etc/cdi/*.json", "run/cdi/*.yaml", "run/cdi/*.json")
KINDS = {**dict.fromkeys(_CONTAINERD, "containerd-config"), **dict.fromkeys(_TOOLKIT, "runtime-log"),
         **dict.fromkeys(_CRIO, "crio-config"), **dict.fromkeys(_CDI, "cdi")}  # fmt: skip
VALIDATIONS = "nvidia/validations"

Signature = tuple[int, int, int]


def files_of(places: Places) -> Iterator[tuple[Path, str]]:
    """Each file that is there, with its kind; one that two paths lead to once."""
    known: set[Signature] = set()
    for pattern, kind in KINDS.items():
        of_run = pattern.startswith("run/")
        base, rest = (places.run, pattern.removeprefix("run/")) if of_run else (places.root, pattern)
        try:
            found = sorted(base.glob(rest))
        except OSError:
            continue
        for path in found:
            signature = _signature(path)
            if signature is not None and signature not in known:
                known.add(signature)
                yield path, kind


def pieces_of(places: Places, node: str = "") -> Iterator[Piece | NotSeen]:
    """Every file as evidence, and which parts the operator's validator has passed."""
    for path, kind in files_of(places):
        yield _piece(places, path, kind, node)
    yield from validations(places, node)


def validations(places: Places, node: str = "") -> Iterator[Piece]:
    folder = places.run / VALIDATIONS
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return
    text = f"ls /run/{VALIDATIONS}\n" + "\n".join(names) + "\n"
    yield Piece(text.encode(), f"/run/{VALIDATIONS}", "validations", node)


class Texts:
    """The facts of all files, each read when it has changed."""

    def __init__(self, places: Places, node: str = "") -> None:
        self._places = places
        self._node = node
        self._known: dict[Path, tuple[Signature, tuple[Fact, ...]]] = {}

    def look(self) -> Iterable[Fact | NotSeen]:
        before, self._known = self._known, {}
        for path, kind in files_of(self._places):
            signature = _signature(path)
            if signature is None:
                continue
            if (known := before.get(path)) is None or known[0] != signature:
                piece = _piece(self._places, path, kind, self._node)
                if isinstance(piece, NotSeen):
                    yield piece
                    continue
                known = (signature, tuple(read((piece,))))
            self._known[path] = known
            yield from known[1]
        yield from read(validations(self._places, self._node))


def _piece(places: Places, path: Path, kind: str, node: str) -> Piece | NotSeen:
    name = places.as_the_machine_names_it(path)
    try:
        with path.open("rb") as file:
            return Piece(file.read(LARGEST_BYTES), name, kind, node)
    except OSError as error:
        return NotSeen(name, because(error))


def _signature(path: Path) -> Signature | None:
    """Inode, size and time of change."""
    try:
        said = path.stat()
    except OSError:
        return None
    return said.st_ino, said.st_size, said.st_mtime_ns
