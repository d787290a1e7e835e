"""Which GPU class a node has, from what its labels say, and whether a class is enough for a wish.

The best source is GPU Feature Discovery (`nvidia.com/gpu.product` and its kin); where it is absent, the
labels of other vendors and of clouds, then the instance type, and at last the bare resource name. A user's
mapping goes before all of them. A product that the catalogue does not know becomes a class with the name that
the label has and with what the labels say, nothing guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec.structs import replace

from berth.model.cluster import GpuClass
from berth.model.gpu_catalogue import (
    AMD,
    NVIDIA,
    PRODUCTS,
    Product,
    precisions_of,
    product_like,
    product_named,
)
from berth.model.gpu_clouds import (
    INSTANCE_LABELS,
    MEMORY_LABELS,
    PARTITION_LABEL,
    gpus_expected,
    instance_gpus,
    spelt_product,
)
from berth.model.gpu_mapping import GpuMapping, MappingRule, joined, read_mapping
from berth.model.mig_profiles import PROFILES, canonical, compute_slices, profile_of
from berth.model.resources import DEVICE_RESOURCES, MIG_PREFIX, NVIDIA_GPU, Resources, is_accelerator
from berth.model.workload import Capability

__all__ = [
    "GpuMapping",
    "MappingRule",
    "gpu_class_of",
    "gpus_expected",
    "joined",
    "partition_classes",
    "precisions_of",
    "read_mapping",
    "replicas_of",
    "satisfies",
]

MIB = 2**20
GIB = 2**30
INVALID = "INVALID"  # MIG strategy single on a node whose GPUs are not cut alike

_PRODUCT = "nvidia.com/gpu.product"
# Feature discovery appends how a GPU is cut or shared to the product's name.
_MIG_SUFFIX = re.compile(r"-MIG-(?P<profile>[0-9a-z.+-]+|INVALID)$")
_SHARED_SUFFIX = "-SHARED"
# A label whose memory is further than this from the product's own is of another card with a similar name.
# GDDR with ECC and the driver's own share take up to 8 %.
_MEMORY_SLACK = 0.12

_AMD_DEVICES = {
    "740c": "MI250X-64GB", "7408": "MI250X-64GB", "740f": "MI210-64GB", "74a0": "MI300A-128GB",
    "74a1": "MI300X-192GB", "74a2": "MI308X-192GB", "74a5": "MI325X-256GB", "75a0": "MI350X-288GB",
    "75a3": "MI355X-288GB",
}  # fmt: skip


def gpu_class_of(
    labels: Mapping[str, str], allocatable: Resources = (), mapping: GpuMapping | None = None
) -> GpuClass | None:
    """The class of a node's GPUs; None where neither labels nor resources speak of one.

    With MIG strategy single it is the class of the partitions (`H100-MIG-1g.10gb`), because those are what
    `nvidia.com/gpu` counts; with strategy mixed it is the whole device's, and `partition_classes` has the
    rest. Time-slices and MPS clients see the whole device and are of its class.
    """
    mapped = mapping.find(labels) if mapping else None
    raw = labels.get(_PRODUCT, "")
    name = raw.removesuffix(_SHARED_SUFFIX)
    cut = _MIG_SUFFIX.search(name)
    profile = canonical(cut["profile"]) if cut else labels.get(PARTITION_LABEL, "")
    name = name[: cut.start()] if cut else name
    whole = mapped or _discovered(name, labels, is_cut=bool(cut)) or _elsewhere(labels, allocatable)
    if whole is None or not profile or whole.vendor != NVIDIA:
        return whole
    return _partition(whole, profile, _number(labels, "nvidia.com/gpu.memory") * MIB if cut else 0)


def partition_classes(labels: Mapping[str, str], whole: GpuClass) -> tuple[tuple[str, GpuClass, int], ...]:
    """MIG strategy mixed: (resource, class, how many on the node) for each kind of partition, by resource.

    Source: labels `nvidia.com/mig-<profile>.count` and `.memory` of GPU Feature Discovery.
    """
    found = []
    for key in labels:
        if not (key.startswith(MIG_PREFIX) and key.endswith(".count")):
            continue
        resource = key.removesuffix(".count")
        memory_bytes = _number(labels, f"{resource}.memory") * MIB
        found.append((resource, _partition(whole, canonical(resource), memory_bytes), _number(labels, key)))
    return tuple(sorted(found, key=lambda entry: entry[0]))


def replicas_of(labels: Mapping[str, str], resource: str = NVIDIA_GPU) -> tuple[int, str]:
    """As how many each device or partition is advertised, and how it is shared: (4, "time-slicing").

    (1, "none") where it is not shared. The label is 0 for what cannot be shared or is cut.
    """
    prefix = "nvidia.com/gpu" if resource in (NVIDIA_GPU, f"{NVIDIA_GPU}.shared") else resource
    strategy = labels.get(f"{prefix}.sharing-strategy", "none") or "none"
    count = _number(labels, f"{prefix}.replicas")
    return (max(count, 1), strategy) if strategy != "none" else (1, "none")


def satisfies(gpu_class: GpuClass, least: Capability) -> bool:
    """The class is at least what is asked for. What it does not say (0, "") satisfies no wish.

    Memory is compared with the size on the box (see gpu_catalogue), so 80Gi is met by an 80 GB card.
    `least.rdma` is a property of the node, not looked at here.
    """
    if least.memory_bytes > gpu_class.memory_bytes:
        return False
    if least.compute > gpu_class.compute:
        return False
    if least.precision and least.precision.lower() not in gpu_class.precisions:
        return False
    if least.link.lower() not in ("", "any", gpu_class.link):
        return False
    return not least.products or any(_is_product(gpu_class, wish) for wish in least.products)


def _is_product(gpu_class: GpuClass, wish: str) -> bool:
    """By class, by product, or by whole words of either: `A10` is no A100, and `L40` no L40S.

    A `*` stands for anything, as in `MI3*`.
    """
    asked = re.sub(r"[\s_]+", "-", wish.strip().lower())
    if not asked:
        return False
    for name in (gpu_class.name.lower(), gpu_class.product.lower().replace(" ", "-")):
        if "*" in asked:
            if any(fnmatchcase(tail, asked) for tail in _tails(name)):
                return True
        elif f"-{asked}-" in f"-{name}-":
            return True
    return False


def _tails(name: str) -> list[str]:
    words = name.split("-")
    return ["-".join(words[i:]) for i in range(len(words))]


def _discovered(name: str, labels: Mapping[str, str], is_cut: bool) -> GpuClass | None:
    """From GPU Feature Discovery. `gpu.memory` is that of one partition where the GPU is cut."""
    if not name:
        return None
    compute = (
        _number(labels, "nvidia.com/gpu.compute.major"),
        _number(labels, "nvidia.com/gpu.compute.minor"),
    )
    memory_mib = 0 if is_cut else _number(labels, "nvidia.com/gpu.memory")
    product = product_like(name, memory_mib / 1024)
    if product and not _is_size(product, memory_mib):
        product = None
    if product:
        return _catalogued(product, name)
    return GpuClass(name, NVIDIA, name, memory_mib * MIB, compute, precisions=precisions_of(compute))


def _is_size(product: Product, memory_mib: int) -> bool:
    nominal = product.memory_gib * 1024
    return not memory_mib or abs(memory_mib - nominal) <= nominal * _MEMORY_SLACK


def _elsewhere(labels: Mapping[str, str], allocatable: Resources) -> GpuClass | None:
    """From whoever labels nodes but GPU Feature Discovery, most telling first."""
    if found := _amd(labels) or _intel(labels):
        return found
    spelt, key = spelt_product(labels)
    memory_mib = next((n for n in (_number(labels, label) for label in MEMORY_LABELS) if n), 0)
    if product := product_like(spelt, memory_mib / 1024):
        return _catalogued(product)
    for instance in INSTANCE_LABELS:
        if known := instance_gpus(labels.get(instance, "")):
            return _named(known[0])
    resource = _accelerator_resource(allocatable)
    # Anybody may set `accelerator`; an unknown word there is a GPU only where there is one.
    if spelt and (key != "accelerator" or resource):
        return GpuClass(spelt, _vendor(resource), spelt, memory_mib * MIB)
    if resource or labels.get("nvidia.com/gpu.present") == "true":
        return GpuClass(resource or NVIDIA_GPU, _vendor(resource))
    return None


def _amd(labels: Mapping[str, str]) -> GpuClass | None:
    """From AMD's node labeller: `amd.com/gpu.product-name=…`, or with the value in the key."""
    name = _value_or_key(labels, "gpu.product-name")
    device = _value_or_key(labels, "gpu.device-id")
    vram = re.fullmatch(r"(\d+)G(?:i?B?)?", _value_or_key(labels, "gpu.vram"))
    memory_gib = int(vram[1]) if vram else 0
    words = re.sub(r"-(vf|hf)$", "", name.replace("_", "-").lower())
    product = product_like(words, memory_gib) or product_named(_AMD_DEVICES.get(device.lower(), ""))
    if product:
        return _catalogued(product, name)
    family = _value_or_key(labels, "gpu.family")
    if name or device or family:
        said = name or (f"AMD-{device}" if device else f"AMD-{family}")
        return GpuClass(said, AMD, name, memory_gib * GIB)
    return None


def _value_or_key(labels: Mapping[str, str], what: str) -> str:
    """`amd.com/gpu.vram=192G`, or `beta.amd.com/gpu.vram.192G=8`."""
    for domain in ("amd.com", "beta.amd.com"):
        key = f"{domain}/{what}"
        if value := labels.get(key):
            return value
        for label in labels:
            if label.startswith(key + "."):
                return label[len(key) + 1 :]
    return ""


def _intel(labels: Mapping[str, str]) -> GpuClass | None:
    """From the node labels of Intel's GPU plugin: `gpu.intel.com/product=Max_1550`, memory in bytes."""
    name = labels.get("gpu.intel.com/product", "")
    if not name:
        return None
    return GpuClass(name, "gpu.intel.com", name, _number(labels, "gpu.intel.com/memory.max"))


def _catalogued(product: Product, raw: str = "") -> GpuClass:
    return GpuClass(
        name=product.name,
        vendor=product.vendor,
        product=raw,
        memory_bytes=product.memory_gib * GIB,
        compute=product.compute,
        link=product.link,
        precisions=product.precisions or precisions_of(product.compute),
        value_per_hour=product.value,
    )


def _named(class_name: str) -> GpuClass | None:
    product = product_named(class_name)
    return _catalogued(product) if product else None


def _partition(whole: GpuClass, profile: str, labelled_bytes: int) -> GpuClass:
    """The class of a MIG partition. It has no NVLink: partitions cannot reach each other.

    Its value is its share of the compute slices, so that a fully cut device is worth what a whole one is.
    """
    known_product = product_named(whole.name)
    base = known_product.base if known_product else whole.name
    name = f"{base}-MIG-{profile}"
    if profile == INVALID:
        return replace(whole, name=name, profile=profile, memory_bytes=0, link="", value_per_hour=0.0)
    shape = profile_of(whole.name, profile)
    of_all = compute_slices(whole.name) or 7
    share = min(shape.compute_slices / of_all, 1.0) if shape else 1.0
    value = whole.value_per_hour
    if known_product and value == known_product.value:
        # One name, one value: a 1g of an A100-40GB and of an A100-80GB are the same seventh of one chip.
        alike = [p.value for p in PRODUCTS if p.base == base and profile in (q.name for q in PROFILES.get(p.name, ()))]
        value = max(alike, default=value)
    memory_bytes = shape.memory_gib * GIB if shape else labelled_bytes
    return replace(
        whole,
        name=name,
        profile=profile,
        memory_bytes=memory_bytes,
        link="",
        value_per_hour=round(value * share, 4),
    )


def _accelerator_resource(allocatable: Resources) -> str:
    found = [name for name, amount in allocatable if amount and is_accelerator(name)]
    for known in DEVICE_RESOURCES:
        if known in found:
            return known
    return found[0] if found else ""


def _vendor(resource: str) -> str:
    return resource.partition("/")[0] or NVIDIA


def _number(labels: Mapping[str, str], key: str) -> int:
    """0 where the label is missing or no number: labels are free text."""
    text = labels.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
