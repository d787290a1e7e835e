"""GPUs by what a cloud says of its machines: accelerator labels and instance types.

For nodes without GPU Feature Discovery. Sources: the instance tables of AWS EC2, Google Compute Engine, Azure
Virtual Machines, Oracle Cloud shapes and CoreWeave; the label references of GKE, Karpenter and AKS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

# Label keys whose value spells a product, most telling first.
PRODUCT_LABELS = (
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
    "gpu.nvidia.com/model",
    "gpu.nvidia.com/class",
    "aliyun.accelerator/nvidia_name",
    "k8s.amazonaws.com/accelerator",
    "accelerator",
    "kubernetes.azure.com/accelerator",
)
MEMORY_LABELS = (  # MiB of one GPU
    "karpenter.k8s.aws/instance-gpu-memory",
    "eks.amazonaws.com/instance-gpu-memory",
)
COUNT_LABELS = (
    "nvidia.com/gpu.count",
    "karpenter.k8s.aws/instance-gpu-count",
    "eks.amazonaws.com/instance-gpu-count",
    "cloud.google.com/gke-accelerator-count",
    "gpu.nvidia.com/count",
    "aliyun.accelerator/nvidia_count",
)
PARTITION_LABEL = "cloud.google.com/gke-gpu-partition-size"  # "1g.5gb": nvidia.com/gpu counts partitions
INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")

# What some clouds call a product, where it is not the product's own name.
_CALLED = {
    "nvidia-tesla-a100": "A100-40GB",
    "nvidia-h100-mega-80gb": "H100-80GB",
    "t4g": "T4-16GB",
    "gaudi-hl-205": "Gaudi-32GB",
}
_NO_PRODUCT = {"", "nvidia", "amd", "intel", "gpu", "true", "false", "none", "yes", "no"}

_ONE_TO_EIGHT = {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "16xlarge": 1, "12xlarge": 4,
                 "24xlarge": 4, "48xlarge": 8}  # fmt: skip
_AWS: dict[str, tuple[str, dict[str, int]]] = {
    "p2": ("K80-12GB", {"xlarge": 1, "8xlarge": 8, "16xlarge": 16}),
    "p3": ("V100-16GB", {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8}),
    "p3dn": ("V100-32GB", {"24xlarge": 8}),
    "p4d": ("A100-40GB", {"24xlarge": 8}),
    "p4de": ("A100-80GB", {"24xlarge": 8}),
    "p5": ("H100-80GB", {"48xlarge": 8, "4xlarge": 1}),
    "p5e": ("H200-141GB", {"48xlarge": 8}),
    "p5en": ("H200-141GB", {"48xlarge": 8}),
    "p6-b200": ("B200-180GB", {"48xlarge": 8}),
    "p6-b300": ("B300-270GB", {"48xlarge": 8}),
    "p6e-gb200": ("GB200-186GB", {"36xlarge": 4}),
    "p6e-gb300": ("GB300-279GB", {"36xlarge": 4}),
    "g4dn": ("T4-16GB", {**_ONE_TO_EIGHT, "metal": 8}),
    "g5": ("A10G-24GB", _ONE_TO_EIGHT),
    "g5g": ("T4-16GB", {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "16xlarge": 2, "metal": 2}),
    "g6": ("L4-24GB", _ONE_TO_EIGHT),
    "gr6": ("L4-24GB", {"4xlarge": 1, "8xlarge": 1}),
    "g6e": ("L40S-48GB", _ONE_TO_EIGHT),
    "g7e": (
        "RTX-PRO-6000-96GB",
        {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
    ),
    "dl1": ("Gaudi-32GB", {"24xlarge": 8}),
}
_GCP_FAMILY = {
    "a2-highgpu": "A100-40GB",
    "a2-megagpu": "A100-40GB",
    "a2-ultragpu": "A100-80GB",
    "a3-highgpu": "H100-80GB",
    "a3-megagpu": "H100-80GB",
    "a3-edgegpu": "H100-80GB",
    "a3-ultragpu": "H200-141GB",
    "a4-highgpu": "B200-180GB",
    "a4x-highgpu": "GB200-186GB",
    "a4x-maxgpu": "GB300-279GB",
}
_GCP_BY_CPUS = {
    "g2-standard": ("L4-24GB", {4: 1, 8: 1, 12: 1, 16: 1, 32: 1, 24: 2, 48: 4, 96: 8}),
    "g4-standard": ("RTX-PRO-6000-96GB", {48: 1, 96: 2, 192: 4, 384: 8}),
}
_AZURE = {
    "nc6s_v3": ("V100-PCIe-16GB", 1),
    "nc12s_v3": ("V100-PCIe-16GB", 2),
    "nc24s_v3": ("V100-PCIe-16GB", 4),
    "nc24rs_v3": ("V100-PCIe-16GB", 4),
    "nd40rs_v2": ("V100-32GB", 8),
    "nc4as_t4_v3": ("T4-16GB", 1),
    "nc8as_t4_v3": ("T4-16GB", 1),
    "nc16as_t4_v3": ("T4-16GB", 1),
    "nc64as_t4_v3": ("T4-16GB", 4),
    "nv36ads_a10_v5": ("A10-24GB", 1),
    "nv36adms_a10_v5": ("A10-24GB", 1),
    "nv72ads_a10_v5": ("A10-24GB", 2),
    "nd96asr_v4": ("A100-40GB", 8),
    "nd96amsr_a100_v4": ("A100-80GB", 8),
    "nc24ads_a100_v4": ("A100-PCIe-80GB", 1),
    "nc48ads_a100_v4": ("A100-PCIe-80GB", 2),
    "nc96ads_a100_v4": ("A100-PCIe-80GB", 4),
    "nc40ads_h100_v5": ("H100-NVL-94GB", 1),
    "nc80adis_h100_v5": ("H100-NVL-94GB", 2),
    "nd96isr_h100_v5": ("H100-80GB", 8),
    "nd96isr_h200_v5": ("H200-141GB", 8),
    "nd96isr_mi300x_v5": ("MI300X-192GB", 8),
    "nd128isr_ndr_gb200_v6": ("GB200-186GB", 4),
    "nd128isr_gb300_v6": ("GB300-279GB", 4),
}
_ORACLE = {
    "gpu2": "P100-16GB", "gpu3": "V100-16GB", "gpu4": "A100-40GB", "gpu.a100-v2": "A100-80GB",
    "gpu.a10": "A10-24GB", "gpu.l40s": "L40S-48GB", "gpu.h100": "H100-80GB", "gpu.h100t": "H100-80GB",
    "gpu.h200": "H200-141GB", "gpu.b200": "B200-180GB", "gpu.b300": "B300-270GB", "gpu.gb200": "GB200-186GB",
    "gpu.gb300": "GB300-279GB", "gpu.mi300x": "MI300X-192GB", "gpu.mi355x": "MI355X-288GB",
}  # fmt: skip
_COREWEAVE = {
    "a100": "A100-80GB", "h100": "H100-80GB", "h100ib": "H100-80GB", "h200": "H200-141GB",
    "h200ib": "H200-141GB", "b200": "B200-180GB", "b200ib": "B200-180GB", "b300": "B300-270GB",
    "b300ib": "B300-270GB", "gb200": "GB200-186GB", "gb300": "GB300-279GB", "gh200": "GH200-96GB",
    "l40": "L40-48GB", "l40s": "L40S-48GB", "rtxp6000": "RTX-PRO-6000-96GB",
}  # fmt: skip


def instance_gpus(instance_type: str) -> tuple[str, int] | None:
    """Class name and GPU count of a well-known instance type; None for any other."""
    text = instance_type.strip().lower()
    family, dot, size = text.partition(".")
    if dot and family in _AWS:
        product, sizes = _AWS[family]
        return (product, sizes[size]) if size in sizes else None
    if shape := re.fullmatch(r"(a\d[a-z]*-[a-z]+)-(\d+)g(-[a-z]+)?", text):
        return (_GCP_FAMILY[shape[1]], int(shape[2])) if shape[1] in _GCP_FAMILY else None
    if shape := re.fullmatch(r"(g\d-standard)-(\d+)", text):
        product, by_cpus = _GCP_BY_CPUS.get(shape[1], ("", {}))
        count = by_cpus.get(int(shape[2]), 0)
        return (product, count) if count else None
    if text.startswith("standard_"):
        return _AZURE.get(text.removeprefix("standard_"))
    if shape := re.fullmatch(r"(?:bm|vm)\.(gpu\d|gpu\.[a-z0-9-]+)\.(\d+)", text):
        return (_ORACLE[shape[1]], int(shape[2])) if shape[1] in _ORACLE else None
    if shape := re.fullmatch(r"gd-(\d+)x([a-z0-9]+)(?:-[a-z0-9]+)*", text):
        return (_COREWEAVE[shape[2]], int(shape[1])) if shape[2] in _COREWEAVE else None
    if shape := re.fullmatch(r"([a-z0-9]+)-(\d+)x(?:-[a-z0-9]+)*", text):
        return (_COREWEAVE[shape[1]], int(shape[2])) if shape[1] in _COREWEAVE else None
    return None


def gpus_expected(labels: Mapping[str, str]) -> int:
    """Physical GPUs that the labels or the instance type promise; 0 where nothing says so.

    With MIG strategy single GPU Feature Discovery counts partitions, so its count is not used there.
    """
    is_cut = "-MIG-" in labels.get("nvidia.com/gpu.product", "")
    for key in COUNT_LABELS[1:] if is_cut else COUNT_LABELS:
        text = labels.get(key, "")
        if text.isascii() and text.isdigit() and int(text):
            return int(text)
    for key in INSTANCE_LABELS:
        if known := instance_gpus(labels.get(key, "")):
            return known[1]
    return 0


def spelt_product(labels: Mapping[str, str]) -> tuple[str, str]:
    """(what the label spells, its key) of the first accelerator label that names a product; else ("", "")."""
    for key in PRODUCT_LABELS:
        value = labels.get(key, "")
        if value.lower() not in _NO_PRODUCT:
            return _CALLED.get(value.lower(), value), key
    return "", ""
