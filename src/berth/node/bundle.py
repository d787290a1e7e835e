"""Everything of one machine that a diagnosis can read later, as files: texts as they are found, outputs of commands,
and the NodeLedger as the agent would write it.

The folder nodes/NAME says whose they are; `--from` of doctor and ledger reads it, packed or not.
"""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from berth.node import kernel_log
from berth.node.places import Places
from berth.node.programs import output_of
from berth.node.seen import NotSeen, because
from berth.node.texts import LARGEST_BYTES, files_of

# (file, command): run on the machine's own root, with its own programs.
COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("nvidia-smi-q.txt", ("nvidia-smi", "-q")),
    ("nvidia-smi-q.xml", ("nvidia-smi", "-q", "-x")),
    ("nvidia-smi-L.txt", ("nvidia-smi", "-L")),
    ("nvidia-smi-topo.txt", ("nvidia-smi", "topo", "-m")),
    ("nvidia-smi-nvlink-s.txt", ("nvidia-smi", "nvlink", "-s")),
    ("nvidia-smi-nvlink-e.txt", ("nvidia-smi", "nvlink", "-e")),
    ("nvidia-smi-mig-lgi.txt", ("nvidia-smi", "mig", "-lgi")),
    ("lspci.txt", ("lspci", "-Dnnvvv")),
    ("containerd-config-dump.toml", ("containerd", "config", "dump")),
    ("cdi-list.txt", ("nvidia-ctk", "cdi", "list")),
    ("fabricmanager-journal.txt", ("journalctl", "-u", "nvidia-fabricmanager", "-n", "2000", "--no-pager")),
    ("containerd-journal.txt", ("journalctl", "-u", "containerd", "-n", "5000", "--no-pager")),
    ("kubelet-journal.txt", ("journalctl", "-u", "kubelet", "-n", "5000", "--no-pager")),
)
_DRIVER_FILES = ("version", "params", "registry")


class Entry(Struct, frozen=True):
    path: str  # within the bundle
    raw: bytes


def entries(places: Places, node: str, ledger: bytes, *, runs_commands: bool = True) -> Iterator[Entry | NotSeen]:
    """The files of a bundle, one by one. `ledger` is the NodeLedger object as JSON."""
    base = f"nodes/{node}"
    yield Entry(f"{base}/nodeledger.json", ledger)
    try:
        yield Entry(f"{base}/dmesg-kmsg.txt", kernel_log.whole(places.dev / "kmsg"))
    except OSError as error:
        yield NotSeen("the kernel log", str(error))
    for path, name in _files(places):
        try:
            with path.open("rb") as file:
                yield Entry(f"{base}/{name}", file.read(LARGEST_BYTES))
        except OSError as error:
            yield NotSeen(places.as_the_machine_names_it(path), because(error))
    yield Entry(f"{base}/dev-nvidia.txt", _listing(places).encode())
    if runs_commands:
        for name, command in COMMANDS:
            yield _printed(places, f"{base}/{name}", command)


def _files(places: Places) -> Iterator[tuple[Path, str]]:
    yield places.checkpoint, "kubelet_internal_checkpoint"
    yield places.proc / "modules", "lsmod-proc-modules.txt"
    for name in _DRIVER_FILES:
        if (places.driver / name).exists():
            yield places.driver / name, f"proc-driver-nvidia-{name}.txt"
    for file in sorted((places.driver / "gpus").glob("*/information")):
        yield file, f"proc-driver-nvidia-gpus-{file.parent.name}.txt"
    for path, kind in files_of(places):
        flat = places.as_the_machine_names_it(path).strip("/").replace("/", "_")
        yield path, f"{kind}/{flat}"


def _listing(places: Places) -> str:
    try:
        names = sorted(path.name for path in places.dev.iterdir() if path.name.startswith("nvidia"))
    except OSError:
        names = []
    return "ls /dev\n" + "\n".join(names) + "\n"


def _printed(places: Places, path: str, command: tuple[str, ...]) -> Entry | NotSeen:
    said = output_of(command, root=places.root)
    return said if isinstance(said, NotSeen) else Entry(path, said[:LARGEST_BYTES])


def write(target: Path, found: Iterable[Entry | NotSeen]) -> tuple[int, list[NotSeen]]:
    """Into a folder, or an archive where the name ends in .tar.gz or .tgz. How many files, and what is missing from it.

    Raises OSError.
    """
    missing: list[NotSeen] = []
    if target.name.endswith((".tar.gz", ".tgz")):
        partial = target.with_name(f".{target.name}.partial")
        try:
            with tarfile.open(partial, "w:gz") as archive:
                count = _each(found, missing, lambda entry: _into(archive, entry))
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return count, missing
    return _each(found, missing, lambda entry: _below(target, entry)), missing


def _each(found: Iterable[Entry | NotSeen], missing: list[NotSeen], keep: Callable[[Entry], None]) -> int:
    count = 0
    for one in found:
        if isinstance(one, NotSeen):
            missing.append(one)
        else:
            keep(one)
            count += 1
    return count


def _into(archive: tarfile.TarFile, entry: Entry) -> None:
    member = tarfile.TarInfo(entry.path)
    member.size = len(entry.raw)
    member.mtime = int(time.time())
    member.mode = 0o600
    archive.addfile(member, io.BytesIO(entry.raw))


def _below(folder: Path, entry: Entry) -> None:
    path = folder / entry.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(entry.raw)
    path.chmod(0o600)
