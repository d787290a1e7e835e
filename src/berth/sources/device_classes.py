"""Resources that pods may ask for as if a device plugin advertised them, and that dynamic allocation gives them.

A DeviceClass names such a resource (`extendedResourceName`; `deviceclass.resource.kubernetes.io/CLASS` always), a
ResourceSlice says that a node has devices of a driver. Which devices a class takes is an expression; of that only the
driver is read that it compares with. Source: KEP-5004.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from berth.kube import wire_devices as wire
from berth.kube.wire import NO_META
from berth.model.cluster import Node
from berth.model.resources import get

IMPLICIT = "deviceclass.resource.kubernetes.io/"
_DRIVER = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']""")


class _Class(Struct, frozen=True, gc=False):
    """`drivers` that its selectors name; () where they name none: then any."""

    resources: tuple[str, ...]
    drivers: tuple[str, ...] = ()


class DeviceClasses:
    """Kept up with by objects, each by its name. Each call says whether anything is different now."""

    def __init__(self) -> None:
        self._classes: dict[str, _Class] = {}
        self._slices: dict[str, tuple[str, str]] = {}  # (node, driver)
        self._by_node: dict[str, dict[str, int]] = {}  # slices by node and driver

    def put_class(self, device_class: wire.DeviceClass) -> bool:
        name, spec = (device_class.metadata or NO_META).name or "", device_class.spec or wire.DeviceClassSpec()
        said = " ".join((s.cel.expression or "") if s.cel else "" for s in spec.selectors or ())
        own = (spec.extended_resource_name,) if spec.extended_resource_name else ()
        made = _Class((*own, IMPLICIT + name), tuple(dict.fromkeys(_DRIVER.findall(said))))
        before = self._classes.get(name)
        self._classes[name] = made
        return before != made and bool(self._slices)

    def drop_class(self, name: str) -> bool:
        return self._classes.pop(name, None) is not None and bool(self._slices)

    def put_slice(self, resource_slice: wire.ResourceSlice) -> bool:
        name, spec = (resource_slice.metadata or NO_META).name or "", resource_slice.spec or wire.ResourceSliceSpec()
        if not spec.node_name or not spec.devices:
            return self.drop_slice(name)
        now = (spec.node_name, spec.driver or "")
        if self._slices.get(name) == now:
            return False
        self.drop_slice(name)
        self._slices[name] = now
        drivers = self._by_node.setdefault(now[0], {})
        drivers[now[1]] = drivers.get(now[1], 0) + 1
        return bool(self._classes)

    def drop_slice(self, name: str) -> bool:
        before = self._slices.pop(name, None)
        if before is None:
            return False
        node, driver = before
        drivers = self._by_node[node]
        drivers[driver] -= 1
        if not drivers[driver]:
            del drivers[driver]
        if not drivers:
            del self._by_node[node]
        return bool(self._classes)

    def resources(self, node: str) -> tuple[str, ...]:
        """What dynamic allocation gives on a node under names of resources."""
        drivers = self._by_node.get(node)
        if not drivers:
            return ()
        found = {
            resource
            for one in self._classes.values()
            if not one.drivers or not drivers.keys().isdisjoint(one.drivers)
            for resource in one.resources
        }
        return tuple(sorted(found))

    def told(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """The nodes with what dynamic allocation alone gives there: a device plugin that advertises it goes first."""
        if not self._by_node or not self._classes:
            return tuple(nodes)
        return tuple(
            replace(node, dynamic_resources=alone)
            if (alone := tuple(r for r in self.resources(node.name) if not get(node.allocatable, r)))
            else node
            for node in nodes
        )
