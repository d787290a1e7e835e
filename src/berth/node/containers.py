"""Which process is of which pod, and which GPUs a container reaches.

A process's control group names the pod's uid and the container's id; the names to these are in the kubelet's log
folders (/var/log/pods, /var/log/containers), so that no right on pods is needed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from berth.evidence.fact import LONGEST_TEXT, Origin
from berth.evidence.formats.boundary_facts import Visible
from berth.node.driver_files import minors
from berth.node.places import Places

# kubepods/burstable/pod<uid>/<id>, kubepods-besteffort-pod<uid with _>.slice/cri-containerd-<id>.scope; a static pod's
# uid is a hash without dashes.
_POD = re.compile(
    r"pod(?P<uid>[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?=[/.])"
    r"[^\n]*?(?P<container>[0-9a-f]{64})"
)
_DEVICE = re.compile(r"/dev/nvidia(\d+)$")
_VISIBLE = b"NVIDIA_VISIBLE_DEVICES="
MOST_PROCESSES = 64  # of one container whose open files are looked at


class Container(Struct, frozen=True):
    """One running container and its processes."""

    pod_uid: str
    id: str
    pod: str = ""  # namespace/name; "" where the kubelet's folders do not name it
    name: str = ""
    pids: tuple[int, ...] = ()


class Reach(Struct, frozen=True):
    """What a container reaches."""

    container: Container
    asked: str = ""  # NVIDIA_VISIBLE_DEVICES in its environment
    nodes: tuple[int, ...] = ()  # minors of device files in its own /dev
    opened: tuple[int, ...] = ()  # minors of device files that it has open
    is_readable: bool = True  # False where its processes could not be looked into


def pod_names(places: Places) -> dict[str, str]:
    """Uid → namespace/name, of the folders namespace_name_uid."""
    found: dict[str, str] = {}
    try:
        folders = [folder.name for folder in (places.logs / "pods").iterdir()]
    except OSError:
        return found
    for folder in folders:
        namespace, _, rest = folder.partition("_")
        name, _, uid = rest.rpartition("_")
        if namespace and name:
            found[uid] = f"{namespace}/{name}"
    return found


def container_names(places: Places) -> dict[str, str]:
    """Container id → its name, of the links pod_namespace_container-id.log."""
    found: dict[str, str] = {}
    try:
        files = [file.name for file in (places.logs / "containers").iterdir()]
    except OSError:
        return found
    for file in files:
        head, _, id = file.removesuffix(".log").rpartition("-")
        if "_" in head:
            found[id] = head.rpartition("_")[2]
    return found


def containers(places: Places) -> list[Container]:
    """Those of pods that run now. Raises OSError where processes cannot be listed."""
    names, called = pod_names(places), container_names(places)
    pids: dict[tuple[str, str], list[int]] = {}
    for entry in places.proc.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            found = _POD.search((entry / "cgroup").read_text(errors="replace"))
        except OSError:
            continue  # it has ended
        if found:
            pids.setdefault((found["uid"].replace("_", "-"), found["container"]), []).append(int(entry.name))
    return [
        Container(uid, id, names.get(uid, ""), called.get(id, ""), tuple(sorted(of)))
        for (uid, id), of in sorted(pids.items())
    ]


def reach(places: Places, container: Container) -> Reach:
    """What it reaches: by its environment, the device files that it has, and those that are open."""
    asked = ""
    nodes: tuple[int, ...] = ()
    is_readable = False
    for pid in container.pids[:1]:
        process = places.proc / str(pid)
        try:
            environment = (process / "environ").read_bytes()
            is_readable = True
        except OSError:
            continue
        asked = _variable(environment)
        nodes = minors(process / "root" / "dev")
    opened = sorted({minor for pid in container.pids[:MOST_PROCESSES] for minor in _open(places.proc / str(pid))})
    return Reach(container, asked, nodes, tuple(opened), is_readable)


def _variable(environment: bytes) -> str:
    for one in environment.split(b"\0"):
        if one.startswith(_VISIBLE):
            return one[len(_VISIBLE) :].decode("utf-8", "replace")
    return ""


def _open(process: Path) -> Iterator[int]:
    try:
        files = list((process / "fd").iterdir())
    except OSError:
        return
    for file in files:
        try:
            target = file.readlink()
        except OSError:
            continue
        if found := _DEVICE.search(str(target)):
            yield int(found[1])


def visible(
    found: Reach, uuids: Mapping[int, str], has_device_files: bool, has_asked: bool | None, node: str = ""
) -> Visible | None:
    """None for a container that reaches no GPU.

    `uuids` are the devices by minor number. Where the machine has device files they decide, and the environment only
    says what was meant: images carry NVIDIA_VISIBLE_DEVICES=all without reaching anything. `has_asked` is whether the
    kubelet gave it devices; None where that is not known.
    """
    reached = tuple(sorted({*found.nodes, *found.opened}))
    named = tuple(one for one in found.asked.split(",") if one.startswith(("GPU-", "MIG-"))) if found.asked else ()
    if has_device_files:
        partitions = tuple(one for one in named if one.startswith("MIG-")) if reached else ()
        ids = partitions or tuple(uuids[minor] for minor in reached if minor in uuids)
        if not reached and not (named and has_asked):
            return None  # a container that was given devices and reaches none is told
    else:
        ids = named
        if not named:
            return None
    words = f"NVIDIA_VISIBLE_DEVICES={found.asked or '(unset)'}; device files " + (
        " ".join(f"/dev/nvidia{minor}" for minor in found.nodes) or "none"
    )
    if found.opened:
        words += "; open " + " ".join(f"/dev/nvidia{minor}" for minor in found.opened)
    container = found.container
    return Visible(
        origin=Origin(f"processes of {container.pod or container.pod_uid}", "probe", words[:LONGEST_TEXT], node=node),
        of_pod=container.pod or container.pod_uid,
        container=container.name,
        ids=ids,
        minors=reached,
        all_of_them=len(uuids) > 1 and set(uuids) <= set(reached),
        asked_for_none=bool(reached) and has_asked is False,
    )


def by_pid(found: Collection[Container]) -> dict[int, Container]:
    return {pid: one for one in found for pid in one.pids}
