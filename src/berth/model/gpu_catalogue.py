"""GPU products: memory, compute capability, link and relative value, by the name of their class.

Facts come from the vendors' data sheets (NVIDIA data-centre, RTX and GeForce product pages, "CUDA GPUs" for
compute capabilities, AMD Instinct and Intel Gaudi data sheets). `memory_gib` is the size that is printed on
the box, read as GiB: an "80 GB" H100 has 80 GiB of HBM, of which the driver keeps some (81559 MiB are left),
and who asks for 80Gi means this card. For B300 and GB300, whose sheets disagree, it is what the driver
reports, rounded up.

`value` is ours: what an hour is worth relative to an A100-80GB, from dense half-precision throughput, memory
and list prices of clouds, rounded coarsely. It only has to make hours of different cards add up; the user's
mapping overrides it.
"""

from __future__ import annotations

import re

from msgspec import Struct

NVIDIA = "nvidia.com"
AMD = "amd.com"
INTEL = "habana.ai"
NVLINK = "nvlink"
PCIE = "pcie"


class Product(Struct, frozen=True, gc=False):
    """One product. `spelling` is a regular expression over the name without vendor, in lower case."""

    name: str  # of its class: "H100-80GB"
    spelling: str
    memory_gib: int
    compute: tuple[int, int]  # CUDA compute capability; (0, 0) for other vendors
    link: str
    value: float
    vendor: str = NVIDIA
    precisions: tuple[str, ...] = ()  # where they do not follow from the compute capability

    @property
    def base(self) -> str:
        """The name without its memory: what a MIG class is named after."""
        return re.sub(r"-\d+GB$", "", self.name)


_CDNA2 = ("fp64", "fp32", "fp16", "bf16", "int8")
_CDNA3 = ("fp64", "fp32", "tf32", "fp16", "bf16", "int8", "fp8")
_CDNA4 = ("fp64", "fp32", "fp16", "bf16", "int8", "fp8", "fp4")
# Export versions of Hopper compute fp64 at a fraction of the H100's rate.
_HOPPER_CUT = ("fp32", "tf32", "fp16", "bf16", "int8", "fp8")
_GAUDI = ("fp32", "tf32", "fp16", "bf16", "fp8")

# Of several rows that match a spelling, the one nearest to the labelled memory is taken, else the first.
PRODUCTS: tuple[Product, ...] = (
    # Kepler to Turing
    Product("K80-12GB", r"k80", 12, (3, 7), PCIE, 0.03),
    Product("P4-8GB", r"p4", 8, (6, 1), PCIE, 0.06),
    Product("P40-24GB", r"p40", 24, (6, 1), PCIE, 0.12),
    Product("P100-16GB", r"p100(-sxm2)?(-16gb)?", 16, (6, 0), NVLINK, 0.12),
    Product("P100-PCIe-16GB", r"p100-pcie(-16gb)?", 16, (6, 0), PCIE, 0.12),
    Product("P100-PCIe-12GB", r"p100-pcie(-12gb)?", 12, (6, 0), PCIE, 0.1),
    Product("V100-16GB", r"v100(-sxm[23])?(-16gb)?", 16, (7, 0), NVLINK, 0.3),
    Product("V100-32GB", r"v100s?(-sxm[23])?(-32gb)?(-ls)?", 32, (7, 0), NVLINK, 0.35),
    Product("V100-PCIe-16GB", r"v100-pcie(-16gb)?|v100-fhhl(-16gb)?", 16, (7, 0), PCIE, 0.28),
    Product("V100-PCIe-32GB", r"v100s?-pcie(-32gb)?", 32, (7, 0), PCIE, 0.33),
    Product("T4-16GB", r"t4g?", 16, (7, 5), PCIE, 0.15),
    Product("RTX6000-24GB", r"rtx-?6000", 24, (7, 5), PCIE, 0.25),
    Product("RTX8000-48GB", r"rtx-?8000", 48, (7, 5), PCIE, 0.3),
    # Ampere
    Product("A2-16GB", r"a2", 16, (8, 6), PCIE, 0.1),
    Product("A10-24GB", r"a10", 24, (8, 6), PCIE, 0.35),
    Product("A10G-24GB", r"a10g", 24, (8, 6), PCIE, 0.35),
    Product("A10M-20GB", r"a10m", 20, (8, 6), PCIE, 0.3),
    Product("A16-16GB", r"a16", 16, (8, 6), PCIE, 0.12),
    Product("A30-24GB", r"a30(-24gb|-pcie)?", 24, (8, 0), PCIE, 0.5),
    Product("A40-48GB", r"a40(-48gb|-pcie)?", 48, (8, 6), PCIE, 0.5),
    Product("A100-40GB", r"a100(-sxm4?|-nvlink)?(-40gb)?|pg509-2[01]0", 40, (8, 0), NVLINK, 0.8),
    Product("A100-80GB", r"a100(-sxm4?|-nvlink)?(-80gb)?", 80, (8, 0), NVLINK, 1.0),
    Product("A100-PCIe-40GB", r"a100-pcie(-40gb)?", 40, (8, 0), PCIE, 0.75),
    Product("A100-PCIe-80GB", r"a100-pcie(-80gb)?|a100-80gb-pcie", 80, (8, 0), PCIE, 0.95),
    Product("A800-80GB", r"a800(-sxm4?)?(-80gb)?", 80, (8, 0), NVLINK, 0.95),
    Product("A800-PCIe-80GB", r"a800-pcie(-80gb)?|a800-80gb-pcie", 80, (8, 0), PCIE, 0.9),
    Product("A800-40GB", r"a800-40gb-active|a800(-sxm4?|-pcie)?-40gb", 40, (8, 0), PCIE, 0.75),
    # Ada
    Product("L2-24GB", r"l2", 24, (8, 9), PCIE, 0.25),
    Product("L4-24GB", r"l4", 24, (8, 9), PCIE, 0.3),
    Product("L20-48GB", r"l20", 48, (8, 9), PCIE, 0.5),
    Product("L40-48GB", r"l40g?", 48, (8, 9), PCIE, 0.6),
    Product("L40S-48GB", r"l40s", 48, (8, 9), PCIE, 0.75),
    # Hopper
    Product("H20-96GB", r"h20(-96gb)?(-hbm3)?", 96, (9, 0), NVLINK, 0.9, NVIDIA, _HOPPER_CUT),
    Product("H20-141GB", r"h20-3e|h20(-141gb)?(-hbm3e)?", 141, (9, 0), NVLINK, 1.0, NVIDIA, _HOPPER_CUT),
    Product("H100-80GB", r"h100(-sxm5?|-nvlink)?(-80gb)?(-hbm3)?", 80, (9, 0), NVLINK, 2.0),
    Product("H100-64GB", r"h100(-sxm5?)?-64gb(-hbm[23])?", 64, (9, 0), NVLINK, 1.8),
    Product("H100-96GB", r"h100(-sxm5?)?-9[46]gb(-hbm[23]e?)?", 96, (9, 0), NVLINK, 2.1),
    Product("H100-PCIe-80GB", r"h100-pcie(-80gb)?|h100-80gb-(pcie|hbm2e)", 80, (9, 0), PCIE, 1.6),
    Product("H100-NVL-94GB", r"h100-nvl(-94gb)?", 94, (9, 0), PCIE, 1.8),
    Product("H800-80GB", r"h800(-sxm5?)?(-80gb)?(-hbm3)?", 80, (9, 0), NVLINK, 1.9, NVIDIA, _HOPPER_CUT),
    Product("H800-PCIe-80GB", r"h800-pcie(-80gb)?", 80, (9, 0), PCIE, 1.5, NVIDIA, _HOPPER_CUT),
    Product("H800-NVL-94GB", r"h800-nvl(-94gb)?", 94, (9, 0), PCIE, 1.7, NVIDIA, _HOPPER_CUT),
    Product("H200-141GB", r"h200(-sxm5?)?(-141gb)?(-hbm3e)?", 141, (9, 0), NVLINK, 2.4),
    Product("H200-NVL-141GB", r"h200-nvl(-141gb)?", 141, (9, 0), PCIE, 2.2),
    Product("GH200-96GB", r"gh200(-(120|480)gb)?(-96gb)?(-hbm3)?", 96, (9, 0), NVLINK, 2.2),
    Product("GH200-144GB", r"gh200(-480gb)?(-14[14]gb?)?(-hbm3e)?", 144, (9, 0), NVLINK, 2.5),
    # Blackwell
    Product("B100-180GB", r"b100(-1[89][02]gb)?(-hbm3e)?", 180, (10, 0), NVLINK, 3.4),
    Product("B200-180GB", r"b200(-sxm6?)?(-1[89][02]gb)?(-hbm3e)?", 180, (10, 0), NVLINK, 4.2),
    Product("GB200-186GB", r"gb200(-(186|189|192)gb)?(-hbm3e)?|hgx-gb200", 186, (10, 0), NVLINK, 4.6),
    Product("B300-270GB", r"b300(-sxm6?)?(-ac)?(-2\d\dgb)?(-hbm3e)?", 270, (10, 3), NVLINK, 5.2),
    Product("GB300-279GB", r"gb300(-2\d\dgb)?(-hbm3e)?", 279, (10, 3), NVLINK, 5.6),
    Product("GB10-128GB", r"gb10", 128, (12, 1), PCIE, 0.4),
    # RTX workstation and server boards
    Product(
        "RTX-PRO-6000-96GB",
        r"rtx-pro-6000(-blackwell)?(-(server|workstation|max-q-workstation)(-edition)?)?",
        96,
        (12, 0),
        PCIE,
        1.1,
    ),
    Product("RTX-PRO-5000-48GB", r"rtx-pro-5000(-blackwell)?.*", 48, (12, 0), PCIE, 0.7),
    Product("RTX-PRO-5000-72GB", r"rtx-pro-5000(-blackwell)?.*", 72, (12, 0), PCIE, 0.75),
    Product("RTX-PRO-4500-32GB", r"rtx-pro-4500(-blackwell)?.*", 32, (12, 0), PCIE, 0.5),
    Product("RTX-A4000-16GB", r"(rtx-)?a4000", 16, (8, 6), PCIE, 0.2),
    Product("RTX-A4500-20GB", r"(rtx-)?a4500", 20, (8, 6), PCIE, 0.25),
    Product("RTX-A5000-24GB", r"(rtx-)?a5000", 24, (8, 6), PCIE, 0.3),
    Product("RTX-A5500-24GB", r"(rtx-)?a5500", 24, (8, 6), PCIE, 0.35),
    Product("RTX-A6000-48GB", r"(rtx-)?a6000", 48, (8, 6), PCIE, 0.5),
    Product("RTX-4000-Ada-20GB", r"rtx-4000(-sff)?-ada(-generation)?", 20, (8, 9), PCIE, 0.3),
    Product("RTX-4500-Ada-24GB", r"rtx-4500-ada(-generation)?", 24, (8, 9), PCIE, 0.35),
    Product("RTX-5000-Ada-32GB", r"rtx-5000-ada(-generation)?", 32, (8, 9), PCIE, 0.5),
    Product("RTX-6000-Ada-48GB", r"rtx-6000-ada(-generation)?", 48, (8, 9), PCIE, 0.65),
    # GeForce
    Product("GTX1080Ti-11GB", r"gtx-1080-ti", 11, (6, 1), PCIE, 0.08),
    Product("TITAN-V-12GB", r"titan-v", 12, (7, 0), PCIE, 0.2),
    Product("TITAN-RTX-24GB", r"titan-rtx", 24, (7, 5), PCIE, 0.25),
    Product("RTX2080Ti-11GB", r"rtx-2080-ti", 11, (7, 5), PCIE, 0.18),
    Product("RTX3060-12GB", r"rtx-3060", 12, (8, 6), PCIE, 0.12),
    Product("RTX3070-8GB", r"rtx-3070", 8, (8, 6), PCIE, 0.15),
    Product("RTX3080-10GB", r"rtx-3080", 10, (8, 6), PCIE, 0.22),
    Product("RTX3080-12GB", r"rtx-3080", 12, (8, 6), PCIE, 0.22),
    Product("RTX3080Ti-12GB", r"rtx-3080-ti", 12, (8, 6), PCIE, 0.25),
    Product("RTX3090-24GB", r"rtx-3090", 24, (8, 6), PCIE, 0.3),
    Product("RTX3090Ti-24GB", r"rtx-3090-ti", 24, (8, 6), PCIE, 0.32),
    Product("RTX4060Ti-16GB", r"rtx-4060-ti", 16, (8, 9), PCIE, 0.15),
    Product("RTX4070-12GB", r"rtx-4070(-super)?", 12, (8, 9), PCIE, 0.22),
    Product("RTX4070Ti-12GB", r"rtx-4070-ti(-super)?", 12, (8, 9), PCIE, 0.28),
    Product("RTX4080-16GB", r"rtx-4080(-super)?", 16, (8, 9), PCIE, 0.35),
    Product("RTX4090-24GB", r"rtx-4090(-d)?", 24, (8, 9), PCIE, 0.5),
    Product("RTX5070Ti-16GB", r"rtx-5070-ti", 16, (12, 0), PCIE, 0.35),
    Product("RTX5080-16GB", r"rtx-5080", 16, (12, 0), PCIE, 0.4),
    Product("RTX5090-32GB", r"rtx-5090(-d)?", 32, (12, 0), PCIE, 0.7),
    # AMD Instinct: the GPUs of one node are joined by Infinity Fabric, which is not NVLink
    Product("MI100-32GB", r"mi100", 32, (0, 0), PCIE, 0.4, AMD, _CDNA2),
    Product("MI210-64GB", r"mi210", 64, (0, 0), PCIE, 0.6, AMD, _CDNA2),
    # an MI250 shows itself as two devices of 64 GB
    Product("MI250-64GB", r"mi250", 64, (0, 0), PCIE, 0.6, AMD, _CDNA2),
    Product("MI250X-64GB", r"mi250x", 64, (0, 0), PCIE, 0.65, AMD, _CDNA2),
    Product("MI300A-128GB", r"mi300a", 128, (0, 0), PCIE, 1.7, AMD, _CDNA3),
    Product("MI300X-192GB", r"mi300x(-o?a?m?)?", 192, (0, 0), PCIE, 2.1, AMD, _CDNA3),
    Product("MI308X-192GB", r"mi308x(-oam)?", 192, (0, 0), PCIE, 1.0, AMD, _CDNA3),
    Product("MI325X-256GB", r"mi325x(-oam)?", 256, (0, 0), PCIE, 2.4, AMD, _CDNA3),
    Product("MI350X-288GB", r"mi350x(-oam)?", 288, (0, 0), PCIE, 4.0, AMD, _CDNA4),
    Product("MI355X-288GB", r"mi355x(-oam)?", 288, (0, 0), PCIE, 4.3, AMD, _CDNA4),
    # Intel
    Product("Gaudi-32GB", r"(hl-?200|hl-?205|gaudi)", 32, (0, 0), PCIE, 0.4, INTEL, _GAUDI[:-1]),
    Product("Gaudi2-96GB", r"(hl-?225[a-z]?|gaudi-?2)", 96, (0, 0), PCIE, 1.0, INTEL, _GAUDI),
    Product("Gaudi3-128GB", r"(hl-?3\d\d[a-z]?|gaudi-?3)", 128, (0, 0), PCIE, 1.7, INTEL, _GAUDI),
)

_BY_NAME = {p.name: p for p in PRODUCTS}
_BY_LOWER_NAME = {p.name.lower(): p for p in PRODUCTS}
_SPELLINGS = tuple((re.compile(p.spelling), p) for p in PRODUCTS)
_VENDOR_WORDS = re.compile(r"^(nvidia|tesla|geforce|quadro|grid|amd|instinct|radeon|intel|habana|labs)-")


def product_named(name: str) -> Product | None:
    """The product whose class has exactly this name."""
    return _BY_NAME.get(name)


def product_like(raw: str, memory_gib: float = 0.0) -> Product | None:
    """The product that a label spells like this (`NVIDIA-H100-80GB-HBM3`, `nvidia-tesla-t4`, `h100`).

    `memory_gib` of the whole card tells apart products of one name; 0 where it is not known.
    """
    text = re.sub(r"[\s_]+", "-", raw.strip().lower()).strip("-")
    while shorter := _VENDOR_WORDS.sub("", text):
        if shorter == text:
            break
        text = shorter
    if exact := _BY_LOWER_NAME.get(text):
        return exact
    found = [p for spelling, p in _SPELLINGS if spelling.fullmatch(text)]
    if not found:
        return None
    if memory_gib:
        return min(found, key=lambda p: abs(p.memory_gib - memory_gib))
    return found[0]


def precisions_of(compute: tuple[int, int]) -> tuple[str, ...]:
    """Number formats that the tensor or arithmetic units do at a useful rate, by CUDA compute capability.

    fp64 is listed where it runs at half the fp32 rate (the chips made for it); every other chip has it at
    1/32 or less, which nobody means who asks for fp64. Source: CUDA C++ Programming Guide, "Arithmetic
    Instructions", and the architecture white papers (tf32 and bf16 since 8.0, fp8 since 8.9, fp4 since 10.0).
    """
    if compute <= (0, 0):
        return ()
    made_for_fp64 = compute in ((3, 5), (3, 7), (6, 0), (7, 0), (8, 0), (9, 0), (10, 0))
    since = (
        ("fp64", made_for_fp64),
        ("fp32", True),
        ("tf32", compute >= (8, 0)),
        ("fp16", compute >= (6, 0) and compute != (6, 1)),
        ("bf16", compute >= (8, 0)),
        ("int8", compute >= (6, 1)),
        ("fp8", compute >= (8, 9)),
        ("fp4", compute >= (10, 0)),
    )
    return tuple(name for name, has in since if has)
