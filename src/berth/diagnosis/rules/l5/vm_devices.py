"""L5. A virtual machine asks for its GPU as a container would, and gets none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l5.quota import is_device
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import Advertised, ObjectSeen

AS_RESOURCE = Code(
    name="VmAsksForDeviceAsResource",
    layer=Layer.L5,
    cause_class="passthrough",
    severity=Severity.Error,
    effect=Effect.NoDeviceInContainer,
    title="the virtual machine asks for a device by resources alone",
    meaning="KubeVirt gives a machine what stands under domain.devices.gpus or hostDevices. A limit alone takes the "
    "card from the node and puts nothing into the machine.",
    known_by="domain.resources names a device's resource, and domain.devices has neither gpus nor hostDevices.",
    disproved_by="domain.devices.gpus of the running VirtualMachineInstance names the resource.",
    counter_check="kubectl get vmi -A -o yaml | grep -A3 -E 'gpus:|hostDevices:': deviceName is the resource",
    fix=Fix(
        steps=(
            "spec.domain.devices.gpus: [{name: gpu1, deviceName: RESOURCE}], and take RESOURCE out of resources",
            "RESOURCE in permittedHostDevices of the KubeVirt object",
            "restart the virtual machine",
        ),
        risk="the virtual machine restarts",
        rollback="the former manifest",
    ),
    verify=("lspci inside the virtual machine shows the GPU",),
    sources=("KubeVirt user guide: host devices", "kubevirt-gpu-device-plugin README"),
)

_KVM = "devices.kubevirt.io/kvm"


def find(facts: Facts) -> Iterator[Answer]:
    for one in facts.of(ObjectSeen):
        if one.kind in ("VirtualMachine", "VirtualMachineInstance") and (asked := _as_resource(one.body)):
            yield AS_RESOURCE.finding(
                f"{one.kind} {one.namespace}/{one.name} has {asked} under resources and no device.",
                LIKELY,
                [one],
                resource=asked,
            )
    offers = list(facts.of(Advertised))
    if any(offer.resource == _KVM for offer in offers):
        free = {offer.resource for offer in offers if max(offer.allocatable, offer.capacity) > 0}
        for said in facts.said("vfio.asked_as_resource"):
            if (asked := said.get("resource")) in free:
                yield AS_RESOURCE.finding(
                    f"{asked} is asked for under resources; the node offers it, and the machine has no card.",
                    POSSIBLE,
                    [said],
                    resource=asked,
                )


def _as_resource(body: Mapping[str, Any]) -> str:
    """The device's resource that a virtual machine asks for in no other way."""
    spec = _within(body, "spec")
    domain = _within(spec, "domain") or _within(_within(_within(spec, "template"), "spec"), "domain")
    devices = _within(domain, "devices")
    if devices.get("gpus") or devices.get("hostDevices"):
        return ""
    resources = _within(domain, "resources")
    names = [str(name) for part in ("limits", "requests") for name in _within(resources, part)]
    return next((name for name in names if is_device(name) and not name.startswith("devices.kubevirt.io/")), "")


def _within(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = body.get(key)
    return found if isinstance(found, Mapping) else {}


RULE = Rule((AS_RESOURCE,), find)
