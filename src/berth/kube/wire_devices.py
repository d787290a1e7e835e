"""Devices as dynamic resource allocation tells them: DeviceClasses, ResourceSlices and ResourceClaims.

Reads resource.k8s.io v1 and v1beta2 (the same fields), and v1beta1 (a device's fields under `basic`).
"""

from __future__ import annotations

from msgspec import field

from berth.kube.wire import ObjectMeta, Quantity, Text, Wire


class DeviceAttribute(Wire, frozen=True, gc=False):
    string: Text = None
    version: Text = None
    number: int | None = field(default=None, name="int")


class DeviceCapacity(Wire, frozen=True, gc=False):
    value: Quantity = None


class DeviceTaint(Wire, frozen=True, gc=False):
    key: Text = None
    value: Text = None
    effect: Text = None


class SliceDeviceBasic(Wire, frozen=True, gc=False):
    """What v1beta1 wraps the fields of a device in."""

    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None


class SliceDevice(Wire, frozen=True, gc=False):
    name: Text = None
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    taints: tuple[DeviceTaint, ...] | None = None
    basic: SliceDeviceBasic | None = None


class ResourcePool(Wire, frozen=True, gc=False):
    name: Text = None
    generation: int | None = None


class ResourceSliceSpec(Wire, frozen=True, gc=False):
    driver: Text = None
    node_name: Text = None
    pool: ResourcePool | None = None
    devices: tuple[SliceDevice, ...] | None = None


class ResourceSlice(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: ResourceSliceSpec | None = None


class CelSelector(Wire, frozen=True, gc=False):
    expression: Text = None


class DeviceSelector(Wire, frozen=True, gc=False):
    cel: CelSelector | None = None


class DeviceClassSpec(Wire, frozen=True, gc=False):
    """`extended_resource_name`: pods get devices of the class by asking for this resource, too."""

    selectors: tuple[DeviceSelector, ...] | None = None
    extended_resource_name: Text = None


class DeviceClass(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    spec: DeviceClassSpec | None = None


class DeviceResult(Wire, frozen=True, gc=False):
    driver: Text = None
    pool: Text = None
    device: Text = None
    admin_access: bool | None = None


class DeviceAllocation(Wire, frozen=True, gc=False):
    results: tuple[DeviceResult, ...] | None = None


class AllocationResult(Wire, frozen=True, gc=False):
    devices: DeviceAllocation | None = None


class ClaimConsumer(Wire, frozen=True, gc=False):
    resource: Text = None
    name: Text = None
    uid: Text = None


class ResourceClaimStatus(Wire, frozen=True, gc=False):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ClaimConsumer, ...] | None = None


class ResourceClaim(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    status: ResourceClaimStatus | None = None
