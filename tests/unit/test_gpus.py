"""GPU classes from node labels, the catalogue, MIG profiles, mappings, and what satisfies a wish."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from berth.base.errors import BadInput
from berth.model.cluster import GpuClass
from berth.model.gpu_catalogue import PRODUCTS, precisions_of, product_like, product_named
from berth.model.gpu_clouds import instance_gpus
from berth.model.gpus import (
    gpu_class_of,
    gpus_expected,
    partition_classes,
    read_mapping,
    replicas_of,
    satisfies,
)
from berth.model.mig_profiles import PROFILES, canonical, compute_slices, profile_of
from berth.model.workload import Capability

GIB = 2**30


def labels_of(product: str, memory_mib: int = 0, compute: str = "", **more: str) -> dict[str, str]:
    labels = {"nvidia.com/gpu.product": product}
    if memory_mib:
        labels["nvidia.com/gpu.memory"] = str(memory_mib)
    if compute:
        labels["nvidia.com/gpu.compute.major"], labels["nvidia.com/gpu.compute.minor"] = compute.split(".")
    return labels | more


def sample(name: str) -> dict[str, str]:
    root = os.environ.get("BERTH_DATA")
    if not root:
        pytest.skip("BERTH_DATA names no folder with captured samples")
    return json.loads((Path(root) / "samples" / "node-json" / name).read_text())


# Product names as drivers print them (spaces become hyphens), and memory as they report it.
@pytest.mark.parametrize(
    ("product", "memory_mib", "name"),
    [
        ("NVIDIA-H100-80GB-HBM3", 81559, "H100-80GB"),
        ("NVIDIA-H100-PCIe", 81559, "H100-PCIe-80GB"),
        ("NVIDIA-H100-80GB-HBM2e", 81559, "H100-PCIe-80GB"),
        ("NVIDIA-H100-NVL", 95830, "H100-NVL-94GB"),
        ("NVIDIA-H200", 143771, "H200-141GB"),
        ("NVIDIA-A100-SXM4-40GB", 40960, "A100-40GB"),
        ("A100-SXM4-40GB", 40536, "A100-40GB"),
        ("NVIDIA-A100-SXM4-80GB", 81920, "A100-80GB"),
        ("NVIDIA-A100-80GB-PCIe", 81920, "A100-PCIe-80GB"),
        ("NVIDIA-A100-PCIE-40GB", 40960, "A100-PCIe-40GB"),
        ("NVIDIA-A800-SXM4-80GB", 81920, "A800-80GB"),
        ("NVIDIA-A30", 24576, "A30-24GB"),
        ("NVIDIA-A10", 23028, "A10-24GB"),
        ("NVIDIA-A10G", 22731, "A10G-24GB"),
        ("NVIDIA-A40", 46068, "A40-48GB"),
        ("NVIDIA-L4", 23034, "L4-24GB"),
        ("NVIDIA-L40", 46068, "L40-48GB"),
        ("NVIDIA-L40S", 46068, "L40S-48GB"),
        ("Tesla-T4", 15109, "T4-16GB"),
        ("Tesla-K80", 11441, "K80-12GB"),
        ("Tesla-P100-PCIE-16GB", 16280, "P100-PCIe-16GB"),
        ("Tesla-V100-SXM2-16GB", 16160, "V100-16GB"),
        ("Tesla-V100-SXM3-32GB", 32510, "V100-32GB"),
        ("Tesla-V100-PCIE-32GB", 32510, "V100-PCIe-32GB"),
        ("NVIDIA-H20", 97871, "H20-96GB"),
        ("NVIDIA-H20-3e", 143771, "H20-141GB"),
        ("NVIDIA-H800", 81559, "H800-80GB"),
        ("NVIDIA-GH200-480GB", 97871, "GH200-96GB"),
        ("NVIDIA-GH200-144G-HBM3e", 147000, "GH200-144GB"),
        ("NVIDIA-B200", 183359, "B200-180GB"),
        ("NVIDIA-B300-SXM6-AC", 275040, "B300-270GB"),
        ("NVIDIA-GB200", 189471, "GB200-186GB"),
        ("NVIDIA-GB200-192GB-HBM3e", 196608, "GB200-186GB"),
        ("NVIDIA-GB300", 284208, "GB300-279GB"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "RTX-PRO-6000-96GB"),
        ("NVIDIA-RTX-A6000", 49140, "RTX-A6000-48GB"),
        ("NVIDIA-RTX-6000-Ada-Generation", 49140, "RTX-6000-Ada-48GB"),
        ("NVIDIA-GeForce-RTX-3090", 24576, "RTX3090-24GB"),
        ("NVIDIA-GeForce-RTX-4090", 24564, "RTX4090-24GB"),
        ("NVIDIA-GeForce-RTX-5090", 32607, "RTX5090-32GB"),
    ],
)
def test_products_of_feature_discovery(product: str, memory_mib: int, name: str) -> None:
    assert gpu_class_of(labels_of(product, memory_mib)).name == name
    assert gpu_class_of(labels_of(product)).name == name or memory_mib  # also where memory is not labelled
    shared = gpu_class_of(labels_of(product + "-SHARED", memory_mib))
    assert shared.name == name


def test_memory_tells_products_of_one_name_apart() -> None:
    assert gpu_class_of(labels_of("NVIDIA-GeForce-RTX-3080", 10240)).name == "RTX3080-10GB"
    assert gpu_class_of(labels_of("NVIDIA-GeForce-RTX-3080", 12288)).name == "RTX3080-12GB"
    assert product_like("a100", 80).name == "A100-80GB"
    assert product_like("a100", 40).name == "A100-40GB"


def test_a_card_with_a_known_name_and_other_memory_is_not_that_card() -> None:
    found = gpu_class_of(labels_of("NVIDIA-H100-80GB-HBM3", 47000, "9.0"))
    assert found == GpuClass(
        "NVIDIA-H100-80GB-HBM3",
        "nvidia.com",
        "NVIDIA-H100-80GB-HBM3",
        47000 * 2**20,
        (9, 0),
        precisions=precisions_of((9, 0)),
    )


def test_an_unknown_product_keeps_its_name_and_what_labels_say() -> None:
    found = gpu_class_of(labels_of("NVIDIA-X900-SXM9", 500_000, "14.2"))
    assert (found.name, found.memory_bytes, found.compute) == ("NVIDIA-X900-SXM9", 500_000 * 2**20, (14, 2))
    assert found.link == ""
    assert "fp4" in found.precisions


def test_numbers_in_labels_are_free_text() -> None:
    found = gpu_class_of(labels_of("NVIDIA-X", **{"nvidia.com/gpu.memory": "lots"}))
    assert found.memory_bytes == 0
    assert gpu_class_of(labels_of("NVIDIA-X", **{"nvidia.com/gpu.memory": "9" * 60})).memory_bytes == 0


def test_a_node_without_gpus_has_no_class() -> None:
    assert gpu_class_of({"kubernetes.io/hostname": "a", "node.kubernetes.io/instance-type": "m5.large"}) is None
    assert gpu_class_of({}, (("cpu", 4000), ("memory", 1))) is None


def test_mig_strategy_single_is_the_class_of_the_partition() -> None:
    found = gpu_class_of(labels_of("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", 9984, "9.0"))
    assert (found.name, found.profile) == ("H100-MIG-1g.10gb", "1g.10gb")
    assert found.memory_bytes == 10 * GIB
    assert found.link == ""
    assert found.value_per_hour == pytest.approx(2.0 / 7, abs=1e-3)
    shared = gpu_class_of(labels_of("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", 9984))
    assert shared.name == "H100-MIG-1g.10gb"


def test_mig_media_profile_is_written_with_a_plus() -> None:
    found = gpu_class_of(labels_of("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me", 4864))
    assert found.name == "A100-MIG-1g.5gb+me"
    assert found.memory_bytes == 5 * GIB


def test_an_invalid_mig_node_has_a_class_that_satisfies_no_memory() -> None:
    found = gpu_class_of(labels_of("NVIDIA-A100-SXM4-40GB-MIG-INVALID", 0))
    assert found.name == "A100-MIG-INVALID"
    assert not satisfies(found, Capability(memory_bytes=1))


def test_equal_names_of_partitions_are_equal_in_value() -> None:
    small = gpu_class_of(labels_of("NVIDIA-A100-SXM4-40GB-MIG-1g.10gb", 9856))
    large = gpu_class_of(labels_of("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", 9728))
    assert small.name == large.name
    assert small.value_per_hour == large.value_per_hour
    assert small.memory_bytes == large.memory_bytes


def test_captured_node_with_mixed_mig() -> None:
    labels = sample("mig-mixed-node-labels.json")
    whole = gpu_class_of(labels)
    assert whole.name == "H100-80GB"
    assert [(r, c.name, n) for r, c, n in partition_classes(labels, whole)] == [
        ("nvidia.com/mig-1g.10gb", "H100-MIG-1g.10gb", 2),
        ("nvidia.com/mig-2g.20gb", "H100-MIG-2g.20gb", 1),
        ("nvidia.com/mig-3g.40gb", "H100-MIG-3g.40gb", 1),
    ]
    assert replicas_of(labels) == (1, "none")
    assert replicas_of(labels, "nvidia.com/mig-1g.10gb") == (1, "none")


def test_captured_node_without_mig() -> None:
    labels = sample("mig-node-labels.json")
    found = gpu_class_of(labels)
    assert (found.name, found.compute, found.profile) == ("H100-80GB", (9, 0), "")
    assert gpus_expected(labels) == 1


def test_every_label_of_the_discovery_patterns_is_harmless() -> None:
    root = os.environ.get("BERTH_DATA")
    if not root:
        pytest.skip("BERTH_DATA names no folder with captured samples")
    for file in sorted((Path(root) / "samples" / "gfd-labels").glob("*.txt")):
        keys = [line.partition("=")[0].replace("\\", "") for line in file.read_text().splitlines()]
        labels = dict.fromkeys(keys, "1") | {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}
        labels["nvidia.com/gpu.memory"] = "16160"
        assert gpu_class_of(labels).name == "V100-16GB"


def test_replicas() -> None:
    shared = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    assert replicas_of(shared) == (4, "time-slicing")
    assert replicas_of(shared, "nvidia.com/gpu.shared") == (4, "time-slicing")
    assert replicas_of({"nvidia.com/gpu.replicas": "0", "nvidia.com/gpu.sharing-strategy": ""}) == (1, "none")


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, "T4-16GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, "A100-40GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-a100-80gb"}, "A100-80GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, "H100-80GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, "H100-80GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h200-141gb"}, "H200-141GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, "L4-24GB"),
        ({"cloud.google.com/gke-accelerator": "nvidia-b200"}, "B200-180GB"),
        (
            {"karpenter.k8s.aws/instance-gpu-name": "a100", "karpenter.k8s.aws/instance-gpu-memory": "81920"},
            "A100-80GB",
        ),
        ({"karpenter.k8s.aws/instance-gpu-name": "l40s"}, "L40S-48GB"),
        ({"karpenter.k8s.aws/instance-gpu-name": "a10g"}, "A10G-24GB"),
        ({"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100"}, "V100-16GB"),
        ({"gpu.nvidia.com/class": "H100_NVLINK_80GB"}, "H100-80GB"),
        ({"gpu.nvidia.com/class": "A100_PCIE_80GB"}, "A100-PCIe-80GB"),
        ({"accelerator": "nvidia-tesla-p100"}, "P100-16GB"),
        (
            {
                "accelerator": "nvidia",
                "kubernetes.azure.com/accelerator": "nvidia",
                "node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5",
            },
            "H100-80GB",
        ),
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}, "MI300X-192GB"),
        ({"beta.amd.com/gpu.product-name.AMD_Instinct_MI210": "8"}, "MI210-64GB"),
        ({"beta.amd.com/gpu.device-id.74a5": "8", "beta.amd.com/gpu.family.AI": "8"}, "MI325X-256GB"),
        ({"beta.amd.com/gpu.family": "AI"}, "AMD-AI"),
        ({"amd.com/gpu.product-name": "AMD_Radeon_X"}, "AMD_Radeon_X"),
        ({"gpu.intel.com/product": "Max_1550"}, "Max_1550"),
        ({"node.kubernetes.io/instance-type": "dl1.24xlarge"}, "Gaudi-32GB"),
    ],
)
def test_labels_of_clouds_and_other_vendors(labels: dict[str, str], name: str) -> None:
    assert gpu_class_of(labels).name == name


def test_feature_discovery_is_believed_before_a_cloud() -> None:
    labels = labels_of("NVIDIA-L4", 23034) | {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    assert gpu_class_of(labels).name == "L4-24GB"


def test_a_partition_on_gke() -> None:
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
        "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
    }
    assert gpu_class_of(labels).name == "A100-MIG-1g.5gb"


def test_the_accelerator_label_of_others_is_no_gpu_on_its_own() -> None:
    assert gpu_class_of({"accelerator": "fpga-board"}) is None
    assert gpu_class_of({"accelerator": "nvidia-x9"}, (("nvidia.com/gpu", 8),)).name == "nvidia-x9"


def test_without_any_label_the_resource_names_the_class() -> None:
    assert gpu_class_of({}, (("nvidia.com/gpu", 8),)) == GpuClass("nvidia.com/gpu")
    found = gpu_class_of({}, (("cpu", 1), ("habana.ai/gaudi", 8)))
    assert (found.name, found.vendor) == ("habana.ai/gaudi", "habana.ai")
    assert gpu_class_of({"nvidia.com/gpu.present": "true"}).name == "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        ("p5.48xlarge", ("H100-80GB", 8)),
        ("p4de.24xlarge", ("A100-80GB", 8)),
        ("p5en.48xlarge", ("H200-141GB", 8)),
        ("p6-b200.48xlarge", ("B200-180GB", 8)),
        ("g5.12xlarge", ("A10G-24GB", 4)),
        ("g4dn.xlarge", ("T4-16GB", 1)),
        ("g6e.48xlarge", ("L40S-48GB", 8)),
        ("p3.8xlarge", ("V100-16GB", 4)),
        ("a2-highgpu-4g", ("A100-40GB", 4)),
        ("a2-ultragpu-8g", ("A100-80GB", 8)),
        ("a3-megagpu-8g", ("H100-80GB", 8)),
        ("a4x-highgpu-4g", ("GB200-186GB", 4)),
        ("g2-standard-48", ("L4-24GB", 4)),
        ("Standard_ND96asr_v4", ("A100-40GB", 8)),
        ("Standard_NC24ads_A100_v4", ("A100-PCIe-80GB", 1)),
        ("BM.GPU.H100.8", ("H100-80GB", 8)),
        ("BM.GPU4.8", ("A100-40GB", 8)),
        ("VM.GPU3.2", ("V100-16GB", 2)),
        ("gd-8xh100ib-i128", ("H100-80GB", 8)),
        ("gb200-4x", ("GB200-186GB", 4)),
        ("p5.9xlarge", None),
        ("g2-standard-5", None),
        ("m5.xlarge", None),
        ("", None),
    ],
)
def test_instance_types(instance: str, expected: tuple[str, int] | None) -> None:
    assert instance_gpus(instance) == expected
    if expected:
        assert product_named(expected[0]) is not None
        assert gpus_expected({"node.kubernetes.io/instance-type": instance}) == expected[1]


def test_gpus_expected_does_not_count_partitions_as_gpus() -> None:
    labels = labels_of("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb") | {
        "nvidia.com/gpu.count": "56",
        "node.kubernetes.io/instance-type": "p4d.24xlarge",
    }
    assert gpus_expected(labels) == 8


def test_the_catalogue_is_well_formed() -> None:
    names = [p.name for p in PRODUCTS]
    assert len(names) == len(set(names))
    for product in PRODUCTS:
        assert product.memory_gib > 0
        assert product.value > 0
        assert product.name.endswith(f"-{product.memory_gib}GB")
        assert product_like(product.name) is product
    assert set(PROFILES) <= set(names)


def test_mig_profiles() -> None:
    assert profile_of("H200-141GB", "1g.18gb").usable_gib == 16.0
    assert profile_of("A100-40GB", "nvidia.com/mig-1g.5gb.me").name == "1g.5gb+me"
    assert profile_of("A100-40GB", "1g.10gb").most == 4
    assert profile_of("A100-80GB", "1g.10gb").most == 7
    assert profile_of("unheard-of", "2g.99gb").memory_gib == 99
    assert profile_of("A100-40GB", "half") is None
    assert canonical("nvidia.com/mig-1g.24gb.me.all") == "1g.24gb+me.all"
    assert canonical("nvidia.com/mig-1g.24gb-me") == "1g.24gb-me"
    assert (compute_slices("A30-24GB"), compute_slices("A100-40GB"), compute_slices("T4-16GB")) == (4, 7, 0)


@pytest.mark.parametrize(
    ("least", "fits"),
    [
        (Capability(), True),
        (Capability(memory_bytes=80 * GIB), True),  # an 80 GB card, though the driver leaves 79.6 GiB
        (Capability(memory_bytes=81 * GIB), False),
        (Capability(compute=(9, 0)), True),
        (Capability(compute=(8, 9)), True),
        (Capability(compute=(10, 0)), False),
        (Capability(precision="FP8"), True),
        (Capability(precision="fp4"), False),
        (Capability(link="nvlink"), True),
        (Capability(link="any"), True),
        (Capability(products=("h100",)), True),
        (Capability(products=("A100", "H100-80GB")), True),
        (Capability(products=("NVIDIA-H100-80GB-HBM3",)), True),
        (Capability(products=("NVIDIA H100",)), True),
        (Capability(products=("H10",)), False),
        (Capability(products=("H1*",)), True),
        (Capability(products=("A100",)), False),
        (Capability(products=("",)), False),
    ],
)
def test_satisfies(least: Capability, fits: bool) -> None:
    assert satisfies(gpu_class_of(labels_of("NVIDIA-H100-80GB-HBM3", 81559)), least) is fits


def test_a_product_is_named_by_whole_words() -> None:
    a100 = gpu_class_of(labels_of("NVIDIA-A100-SXM4-40GB"))
    l40s = gpu_class_of(labels_of("NVIDIA-L40S"))
    assert not satisfies(a100, Capability(products=("A10",)))
    assert not satisfies(l40s, Capability(products=("L40",)))
    assert not satisfies(l40s, Capability(products=("L4",)))
    assert not satisfies(gpu_class_of(labels_of("NVIDIA-GH200-480GB")), Capability(products=("H200",)))
    assert satisfies(gpu_class_of(labels_of("NVIDIA-GeForce-RTX-4090")), Capability(products=("4090",)))


def test_what_a_class_does_not_say_satisfies_no_wish() -> None:
    unknown = GpuClass("nvidia.com/gpu")
    assert satisfies(unknown, Capability())
    for wish in (Capability(memory_bytes=1), Capability(compute=(1, 0)), Capability(precision="fp32")):
        assert not satisfies(unknown, wish)


def test_precisions() -> None:
    assert precisions_of((7, 5)) == ("fp32", "fp16", "int8")
    assert precisions_of((8, 6)) == ("fp32", "tf32", "fp16", "bf16", "int8")
    assert "fp64" in precisions_of((8, 0))
    assert precisions_of((10, 0))[-2:] == ("fp8", "fp4")
    assert precisions_of((0, 0)) == ()
    for cut in ("NVIDIA-H20", "NVIDIA-H800"):
        assert not satisfies(gpu_class_of(labels_of(cut)), Capability(precision="fp64"))


MAPPING = """
classes:
  - match: {example.com/pool: "h100-*"}
    class: H100-80GB
    valuePerHour: 2.5
  - match: {example.com/card: trainium, zone: "?"}
    class: Trainium-32GB
    vendor: aws.amazon.com
    memory: 32Gi
    compute: "1.2"
    link: pcie
    precision: [BF16]
"""


def test_a_mapping_goes_before_everything() -> None:
    mapping = read_mapping(MAPPING, "gpus.yaml")
    labels = labels_of("NVIDIA-L4") | {"example.com/pool": "h100-a"}
    found = gpu_class_of(labels, (), mapping)
    assert (found.name, found.value_per_hour, found.compute) == ("H100-80GB", 2.5, (9, 0))
    found = gpu_class_of({"example.com/card": "trainium", "zone": "b"}, (), mapping)
    assert found == GpuClass("Trainium-32GB", "aws.amazon.com", "", 32 * GIB, (1, 2), "pcie", ("bf16",))
    assert gpu_class_of({"example.com/card": "trainium", "zone": "bb"}, (), mapping) is None
    assert read_mapping("", "gpus.yaml").rules == ()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("classes: [", "gpus.yaml: not YAML"),
        ("klasses: []", "gpus.yaml: klasses: not a key"),
        ("- a", "gpus.yaml: ['a']; it must be a mapping"),
        ("classes: {}", "gpus.yaml: classes: {}; it must be a list"),
        ("classes: [{match: {a: b}, class: X, memry: 1Gi}]", "classes[0].memry: not a key"),
        ("classes: [{match: {}, class: X}]", "classes[0].match: empty"),
        ("classes: [{class: X}]", "classes[0].match: missing"),
        ("classes: [{match: {a: 1}, class: X}]", "classes[0].match: 'a' has 1; labels are text"),
        ("classes: [{match: {a: b}}]", "classes[0].class: missing"),
        ("classes: [{match: {a: b}, class: 5}]", "classes[0].class: 5; it must be text"),
        ("classes: [{match: {a: b}, class: X, memory: lots}]", "classes[0].memory: 'lots'"),
        ("classes: [{match: {a: b}, class: X, compute: new}]", "classes[0].compute: 'new'"),
        ("classes: [{match: {a: b}, class: X, link: wifi}]", "classes[0].link: 'wifi'"),
        ("classes: [{match: {a: b}, class: X, valuePerHour: -1}]", "classes[0].valuePerHour: -1"),
        ("classes: [{match: {a: b}, class: X, precision: 8}]", "classes[0].precision: 8"),
    ],
)
def test_errors_of_a_mapping_name_the_key(text: str, place: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_mapping(text, "gpus.yaml")
    assert place in caught.value.sentence
    assert caught.value.exit_code == 2
