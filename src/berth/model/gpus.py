"""Which GPU class a node has, from what its labels say, and whether a class is enough for a wish.

The best source is GPU Feature Discovery (`nvidia.com/gpu.product` and its kin); where it is absent, the
labels of clouds and other vendors, then the instance type, and at last the bare resource name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from berth.model.cluster import GpuClass
from berth.model.gpu_catalogue import NVIDIA, Product, precisions_of, product_like
from berth.model.resources import Resources
from berth.model.workload import Capability

MIB = 2**20
GIB = 2**30

_PRODUCT = "nvidia.com/gpu.product"
# GFD appends how a GPU is cut or shared to the product's name.
_MIG_SUFFIX = re.compile(r"-MIG-(?P<profile>[0-9a-z.+-]+|INVALID)$")
_SHARED_SUFFIX = "-SHARED"


def gpu_class_of(labels: Mapping[str, str], allocatable: Resources = ()) -> GpuClass | None:
    """The class of a node's GPUs; None where neither labels nor resources speak of one."""
    raw = labels.get(_PRODUCT, "")
    return _from_feature_discovery(raw, labels) if raw else None


def _from_feature_discovery(raw: str, labels: Mapping[str, str]) -> GpuClass:
    name = raw.removesuffix(_SHARED_SUFFIX)
    compute = (
        _number(labels, "nvidia.com/gpu.compute.major"),
        _number(labels, "nvidia.com/gpu.compute.minor"),
    )
    memory_mib = _number(labels, "nvidia.com/gpu.memory")
    cut = _MIG_SUFFIX.search(name)
    if cut is None:
        return _whole(product_like(name, memory_mib / 1024), name, memory_mib * MIB, compute)
    return _whole(product_like(name[: cut.start()]), name, memory_mib * MIB, compute)


def _whole(product: Product | None, raw: str, memory_bytes: int, compute: tuple[int, int]) -> GpuClass:
    if product is None:
        return GpuClass(
            raw, NVIDIA, raw, memory_bytes=memory_bytes, compute=compute, precisions=precisions_of(compute)
        )
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


def satisfies(gpu_class: GpuClass, least: Capability) -> bool:
    """The class is at least what is asked for. What the class does not say (0, "") does not satisfy a wish."""
    if least.memory_bytes > gpu_class.memory_bytes:
        return False
    if least.compute > gpu_class.compute:
        return False
    if least.precision and least.precision.lower() not in gpu_class.precisions:
        return False
    if least.link and least.link.lower() != "any" and least.link.lower() != gpu_class.link:
        return False
    return not least.products or any(_is_product(gpu_class, wish) for wish in least.products)


def _is_product(gpu_class: GpuClass, wish: str) -> bool:
    """By the name of the class or of the product, or a part of it that ends where a word of it ends."""
    asked = wish.strip().lower()
    return bool(asked) and (asked in gpu_class.name.lower() or asked in gpu_class.product.lower())


def _number(labels: Mapping[str, str], key: str) -> int:
    """0 where the label is missing or no number: labels are free text."""
    text = labels.get(key, "")
    return int(text) if text.isascii() and text.isdigit() else 0
