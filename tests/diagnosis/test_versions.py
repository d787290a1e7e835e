"""The tables of versions are in themselves right, the rules heed every way in which versions go together after all, and
the documentation shows the same tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked import codes, of_text

from berth.diagnosis.diagnose import diagnose
from berth.diagnosis.versions import cards, claims, collectives, cuda, fabric, monitoring, operator, runtimes, toolkit
from berth.diagnosis.versions.number import branch, is_below, number, tag
from berth.diagnosis.versions.tables import markdown
from berth.evidence.piece import Piece
from berth.evidence.read import read

DOCS = Path(__file__).parents[2] / "docs" / "doctor.md"
BEGIN, END = "<!-- versions: made by berth.diagnosis.versions.tables -->\n", "<!-- end of versions -->"


def test_the_documentation_shows_these_tables() -> None:
    text = DOCS.read_text()
    shown = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert shown.strip() == markdown().strip(), (
        "put what `python -c 'from berth.diagnosis.versions.tables import markdown; print(markdown())'` prints between "
        "the two comments"
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("v1.34.2-gke.1", (1, 34, 2)), ("containerd://2.1.0", (2, 1, 0)), ("580.65.06", (580, 65, 6)), ("none", ()),
        ("4.5.2-4.8.1-distroless", (4, 5, 2)),
    ],
)  # fmt: skip
def test_a_version_is_read(words: str, expected: tuple[int, ...]) -> None:
    assert number(words) == expected


def test_what_a_version_leaves_open_is_not_below() -> None:
    assert is_below("579.99", "580.65.06") and is_below("580.64", "580.65.06") and is_below("v1.9.3", "1.17.4")
    assert not is_below("580", "580.65.06") and not is_below("", "580") and not is_below("unknown", "580")
    assert not is_below("580.65.06", "580.65.06") and not is_below("1.17.10", "1.17.4")
    assert branch("570.172.08") == 570 and branch("") == 0
    assert tag("nvcr.io:443/nvidia/k8s/container-toolkit:v1.17.8-ubi8@sha256:00") == "v1.17.8-ubi8"
    assert tag("localhost:5000/cuda") == "" and tag("cuda@sha256:00") == ""


def test_newer_cuda_never_needs_an_older_driver() -> None:
    versions = [number(one.cuda) for one in cuda.TOOLKITS]
    drivers = [number(one.driver) for one in cuda.TOOLKITS]
    assert versions == sorted(set(versions)) and drivers == sorted(set(drivers))
    for lower, upper in zip(cuda.MAJORS, cuda.MAJORS[1:], strict=False):
        assert is_below(lower.floor, upper.floor) and lower.forward < upper.forward
        assert number(lower.oldest) <= number(upper.oldest)


def test_the_floor_of_a_major_version_is_the_branch_of_its_first_toolkit() -> None:
    for major in cuda.MAJORS:
        first = next(one for one in cuda.TOOLKITS if number(one.cuda) == (major.major, 0))
        assert branch(major.floor) == branch(first.driver) and major.forward < branch(major.floor)


def test_generations_follow_each_other() -> None:
    firsts = [one.first for one in cards.GENERATIONS if one.first]
    capabilities = [number(word) for one in cards.GENERATIONS for word in one.capabilities]
    assert firsts == sorted(firsts) and capabilities == sorted(set(capabilities))
    for one in cards.GENERATIONS:
        assert one.open_modules or one.closed_modules
        assert one.open_modules == (number(one.capabilities[0]) >= (7, 5)), "open modules need the GSP, from Turing on"
        assert not one.last or one.last > one.first
    assert len({one.chips for one in cards.GENERATIONS}) == len(cards.GENERATIONS)


@pytest.mark.parametrize(
    ("name", "driver", "is_served"),
    [
        ("Volta", 580, True), ("Volta", 590, False), ("Pascal", 535, True), ("Maxwell", 595, False),
        ("Kepler", 470, True), ("Kepler", 525, False), ("Turing", 610, True), ("Ampere", 440, False),
        ("Hopper", 535, True), ("Blackwell", 550, False), ("Blackwell", 570, True), ("Blackwell", 0, True),
    ],
)  # fmt: skip
def test_branches_serve_generations(name: str, driver: int, is_served: bool) -> None:
    generation = cards.of_name(name)
    assert generation is not None and cards.is_served(generation, driver) is is_served


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA Corporation GB202GL [RTX PRO 6000 Blackwell Server Edition]", "Blackwell"),
        ("NVIDIA Corporation GH100 [GH200 120GB / 480GB]", "Hopper"),
        ("NVIDIA Corporation AD102GL [L40S]", "Ada Lovelace"),
        ("NVIDIA Corporation TU104GL [Tesla T4]", "Turing"),
        ("NVIDIA Corporation GP102 [GeForce GTX 1080 Ti]", "Pascal"),
        ("NVIDIA Corporation Device 2330", ""),
        ("NVIDIA Corporation Device [GB200]", ""),
    ],
)
def test_a_chip_tells_its_generation(name: str, expected: str) -> None:
    found = cards.of_chip(name)
    assert (found.name if found else "") == expected


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("NVIDIA B200", "Blackwell"), ("NVIDIA GB300", "Blackwell"), ("NVIDIA GeForce RTX 5090", "Blackwell"),
        ("NVIDIA H100 80GB HBM3", "Hopper"), ("NVIDIA GH200 480GB", "Hopper"), ("NVIDIA RTX 5000 Ada Generation", ""),
        ("Quadro RTX 5000", ""), ("NVIDIA A100-SXM4-80GB", ""), ("Tesla V100-SXM2-32GB", ""),
    ],
)  # fmt: skip
def test_a_product_tells_its_generation(product: str, expected: str) -> None:
    found = cards.of_product(product)
    assert (found.name if found else "") == expected


A100, GEFORCE = "NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090"


@pytest.mark.parametrize(
    ("wants", "driver", "product", "floor"),
    [
        ("13.2", "580.65.06", GEFORCE, ""),  # minor version compatibility
        ("12.9", "525.60.13", GEFORCE, ""),
        ("13.0", "570.172.08", A100, ""),  # forward compatibility of data centre GPUs
        ("13.0", "535.261.03", "", ""),
        ("13.0", "570.172.08", GEFORCE, "580"),
        ("13.0", "525.147.05", A100, "580"),
        ("12.4", "470.256.02", A100, ""),
        ("12.4", "470.256.02", "NVIDIA TITAN RTX", "525.60.13"),
        ("11.8", "450.80.02", A100, ""),
        ("14.0", "450.80.02", GEFORCE, ""),  # not known
        ("13.0", "", GEFORCE, ""),
        ("11.8", "580.65.06", A100, ""),  # older CUDA on newer drivers always runs
    ],
)
def test_floors_heed_compatibility(wants: str, driver: str, product: str, floor: str) -> None:
    assert cuda.floor_missed(wants, driver, product) == floor


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nvidia/cuda:13.0.1-base-ubuntu24.04", "13.0"),
        ("nvcr.io/nvidia/cuda:12.8.0-devel-ubi9", "12.8"),
        ("pytorch/pytorch:2.9.1-cuda13.0-cudnn9-runtime", "13.0"),
        ("vllm/vllm-openai:v0.12.0-cu130", "13.0"),
        ("ghcr.io/x/y:cu128-2", "12.8"),
        ("nvcr.io/nvidia/pytorch:25.08-py3", ""),
        ("x/cuda13.0/y:latest", ""),
        ("nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0", "12.5"),
        ("x:cu12", ""),
        ("x:focus130", ""),
        ("nvidia/cuda@sha256:13", ""),
    ],
)
def test_an_image_tells_its_cuda(image: str, expected: str) -> None:
    assert cuda.cuda_of(image) == expected


def test_a_demand_is_refused_only_where_no_alternative_may_hold() -> None:
    demand = "cuda>=13.0 brand=tesla,driver>=535,driver<536 brand=nvidia,driver>=570,driver<571"
    assert cuda.cuda_required(demand) == "13.0" and cuda.cuda_required("driver>=450") == ""
    assert not cuda.is_refused(demand, "570.172.08", A100) and not cuda.is_refused(demand, "535.1", "")
    assert cuda.is_refused(demand, "570.172.08", GEFORCE) and cuda.is_refused(demand, "550.54.14", A100)
    assert not cuda.is_refused(demand, "", A100)


def test_companions_of_the_driver() -> None:
    exact, imex, own = (fabric.companion(name) for name in ("nvidia-fabricmanager-570", "nvidia-imex-570", "nvlsm"))
    assert exact and imex and own and fabric.companion("nvidia-driver-570") is None
    assert fabric.fits(exact, "570.172.08", "570.172.08") and not fabric.fits(exact, "570.172.08", "570.158.01")
    assert fabric.fits(imex, "570.172.08", "570.158.01") and not fabric.fits(imex, "580.65.06", "570.158.01")
    assert fabric.fits(own, "2025.03.1", "570.158.01")


def test_toolkits_and_configurations() -> None:
    assert toolkit.reads("v1.14.6", 2, is_in_effect=False) and not toolkit.reads("v1.14.6", 3, is_in_effect=False)
    assert toolkit.reads("v1.14.6", 3, is_in_effect=True), "it reads the file, and that was not seen"
    assert not toolkit.reads("v1.17.2", 3, is_in_effect=True) and toolkit.reads("v1.17.4", 3, is_in_effect=True)
    assert toolkit.reads("", 3, is_in_effect=False) and toolkit.reads("v1.19.1", 4, is_in_effect=True)
    since = [number(one.since) for one in toolkit.RELEASES]
    assert since == sorted(set(since))
    releases = [number(one.version) for one in operator.OPERATORS]
    assert releases == sorted(set(releases))
    brought = [number(one.toolkit) for one in operator.OPERATORS if one.toolkit]
    assert brought == sorted(brought)
    assert [one.version for one in runtimes.CONFIGURATIONS] == [1, 2, 3, 4]
    minors = [number(one.kubernetes) for one in runtimes.RECOMMENDED]
    assert minors == sorted(set(minors))


def test_claims_dcgm_and_nccl() -> None:
    assert [number(one.kubernetes)[1] for one in claims.SERVED] == [31, 32, 33, 34]
    assert claims.has_api("v1.32.0+k3s1") and not claims.has_api("v1.31.9") and claims.has_api("")
    for gate in claims.GATES:
        assert number(gate.alpha) < number(gate.beta) < number(gate.stable)
    assert is_below(claims.GPUS.driver, claims.COMPUTE_DOMAINS.driver)
    names = {one.name for one in cards.GENERATIONS}
    assert {one.generation for one in monitoring.FLOORS} | {one.generation for one in collectives.FLOORS} <= names
    assert monitoring.dcgm_of("3.3.5-3.4.1-ubuntu22.04") == "3.3.5" and monitoring.dcgm_of("4.5.2-4.8.1") == "4.5.2"
    assert monitoring.dcgm_of("v1.7.2") == "" and monitoring.dcgm_of("latest") == ""
    assert monitoring.floor_of("Turing") == "" and collectives.floor_of("Hopper") == ""


NODE = """apiVersion: v1
kind: Node
metadata:
  name: n1
  labels:
    nvidia.com/gpu.product: {product}
    nvidia.com/gpu.compute.major: "{major}"
    nvidia.com/gpu.compute.minor: "{minor}"
    nvidia.com/cuda.driver-version.full: {driver}
status:
  nodeInfo: {{kubeletVersion: v1.34.2}}
---
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: lab}}
spec:
  nodeName: n1
  containers:
  - name: main
    image: {image}
    resources: {{limits: {{nvidia.com/gpu: "1"}}}}
status: {{phase: {phase}}}
"""


@pytest.mark.parametrize(
    ("product", "capability", "driver", "image", "phase"),
    [
        ("NVIDIA-A100-SXM4-80GB", "8.0", "570.172.08", "nvidia/cuda:13.0.1-base-ubuntu24.04", "Running"),
        ("NVIDIA-GeForce-RTX-4090", "8.9", "580.95.05", "nvidia/cuda:13.2.1-base-ubuntu24.04", "Running"),
        ("NVIDIA-GeForce-RTX-4090", "8.9", "535.183.01", "nvidia/cuda:12.8.1-base-ubuntu24.04", "Running"),
        ("NVIDIA-GeForce-RTX-4090", "8.9", "570.133.07", "nvidia/cuda:13.0.1-base-ubuntu24.04", "Succeeded"),
        ("Tesla-V100-SXM2-32GB", "7.0", "580.95.05", "nvidia/cuda:12.9.1-base-ubuntu24.04", "Running"),
        ("Tesla-T4", "7.5", "580.95.05", "nvidia/cuda:13.0.1-base-ubuntu24.04", "Running"),
        ("NVIDIA-B200", "10.0", "580.95.05", "nvidia/cuda:12.4.1-base-ubuntu22.04", "Running"),
        ("NVIDIA-B200", "10.0", "580.95.05", "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.2-4.8.1-ubi9", "Running"),
        ("NVIDIA-A100-SXM4-80GB", "8.0", "535.161.08", "nvcr.io/nvidia/k8s/dcgm-exporter:2.4.6-2.6.10", "Running"),
        ("NVIDIA-H100-80GB-HBM3", "9.0", "580.95.05", "nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.1", "Running"),
    ],
)
def test_what_goes_together_gives_nothing(product: str, capability: str, driver: str, image: str, phase: str) -> None:
    major, minor = capability.split(".")
    text = NODE.format(product=product, major=major, minor=minor, driver=driver, image=image, phase=phase)
    assert codes(of_text(text)) == set()


PASCAL = "02:00.0 3D controller [0302]: NVIDIA Corporation GP100GL [Tesla P100 PCIe 16GB] [10de:15f8] (rev a1)\n"
VOLTA = "3b:00.0 3D controller [0302]: NVIDIA Corporation GV100GL [Tesla V100 PCIe 16GB] [10de:1db4] (rev a1)\n"
AMPERE = "5e:00.0 3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)\n"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@U22-I3)\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed Oct 23 2024\n"


@pytest.mark.parametrize(
    "text",
    [
        PASCAL + CLOSED.format("580.95.05"),
        VOLTA + CLOSED.format("535.261.03"),
        AMPERE + OPEN.format("610.43.02"),
        VOLTA + "        Kernel driver in use: vfio-pci\n" + OPEN.format("590.48.01"),
        VOLTA,
        OPEN.format("590.48.01"),
    ],
)
def test_cards_that_are_served_or_left_out_on_purpose(text: str) -> None:
    assert codes(of_text(text)) & {"CardOutsideDriverBranch", "DriverModuleKindWrong"} == set()


def test_a_card_is_outside_the_branch_of_its_own_node_only() -> None:
    found = diagnose(
        read([
            Piece((VOLTA + CLOSED.format("580.95.05")).encode(), "a", node="a"),
            Piece((AMPERE + OPEN.format("590.48.01")).encode(), "b", node="b"),
        ])
    )  # fmt: skip
    assert found.findings == ()


def test_an_old_card_beside_one_that_is_served_is_a_warning() -> None:
    found = of_text(VOLTA + AMPERE + OPEN.format("590.48.01"))
    assert [(one.code, one.severity.name, one.confidence < 0.9) for one in found.findings] == [
        ("CardOutsideDriverBranch", "Warning", True)
    ]
    assert "580" in found.findings[0].cause


PACKAGES = (
    "ii  nvidia-fabricmanager-570  {fm}-1  amd64  Fabric Manager\nii  nvlsm  2025.03.1-1  amd64  Subnet Manager\n"
)


def test_a_manager_of_the_drivers_version_is_well() -> None:
    assert codes(of_text(PACKAGES.format(fm="570.172.08") + OPEN.format("570.172.08"))) == set()
    removed = PACKAGES.format(fm="550.54.14").replace("ii  nvidia-fab", "rc  nvidia-fab")
    assert codes(of_text(removed + OPEN.format("570.172.08"))) == set()
    switch = "05:00.0 Bridge [0680]: NVIDIA Corporation GH100 [H100 NVSwitch] [10de:22a3] (rev a1)\n"
    alone = of_text(PACKAGES.format(fm="550.54.14") + OPEN.format("570.172.08"))
    beside = of_text(switch + PACKAGES.format(fm="550.54.14") + OPEN.format("570.172.08"))
    assert alone.findings[0].code == beside.findings[0].code == "FabricPackageDiffers"
    assert alone.findings[0].confidence < beside.findings[0].confidence < 0.9


TOOLKIT = """apiVersion: v1
kind: Pod
metadata: {{name: toolkit, namespace: gpu-operator}}
spec:
  nodeName: n1
  containers:
  - name: ctr
    image: nvcr.io/nvidia/k8s/container-toolkit:{version}
status:
  phase: Running
  containerStatuses:
  - {{name: ctr, restartCount: {restarts}, state: {{{state}}}}}
"""
V3 = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\n  default_runtime_name = 'runc'\n"
V2 = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n  default_runtime_name = "runc"\n'


@pytest.mark.parametrize(
    ("version", "state", "restarts", "config", "is_found"),
    [
        ("v1.14.6-ubi8", "waiting: {reason: CrashLoopBackOff}", 4, V3, True),
        ("v1.14.6-ubi8", "running: {}", 0, V3, False),
        ("v1.14.6-ubi8", "waiting: {reason: CrashLoopBackOff}", 4, V2, False),
        ("v1.18.1", "waiting: {reason: CrashLoopBackOff}", 4, V3, False),
    ],
)
def test_a_toolkit_that_runs_is_not_too_old(
    version: str, state: str, restarts: int, config: str, is_found: bool
) -> None:
    pod = TOOLKIT.format(version=version, state=state, restarts=restarts)
    found = diagnose(
        read([Piece(pod.encode(), "pod"), Piece(config.encode(), "/etc/containerd/config.toml", node="n1")])
    )
    assert ("ToolkitOlderThanContainerd" in codes(found)) is is_found


@pytest.mark.parametrize(
    ("containerd", "config", "is_found"),
    [
        ("containerd://1.7.27", V3, True), ("containerd://2.1.5", V3, False), ("containerd://2.0.0", V2, False),
        ("cri-o://1.34.0", V3, False), ("containerd://2.2.1", V3.replace("3", "4", 1), True),
        ("containerd://2.3.0", V3.replace("3", "4", 1), False),
    ],
)  # fmt: skip
def test_a_configuration_against_its_containerd(containerd: str, config: str, is_found: bool) -> None:
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {nodeInfo: "
    node += f"{{kubeletVersion: v1.34.2, containerRuntimeVersion: '{containerd}'}}}}\n"
    pieces = [Piece(node.encode(), "node"), Piece(config.encode(), "/etc/containerd/config.toml", node="n1")]
    found = diagnose(read(pieces))
    assert [(one.code, one.severity.name) for one in found.findings] == [
        ("ContainerdConfigRefused", "Warning")
    ] * is_found


@pytest.mark.parametrize(
    ("gpu", "nccl", "is_found"),
    [
        ("NVIDIA B200", "2.25.1+cuda12.8", False), ("NVIDIA H100 80GB HBM3", "2.18.5+cuda12.2", False),
        ("NVIDIA B200", "2.24.3+cuda12.6", True), ("NVIDIA GeForce RTX 5090", "2.21.5+cuda12.4", True),
    ],
)  # fmt: skip
def test_nccl_against_cards(gpu: str, nccl: str, is_found: bool) -> None:
    text = f"GPU 0: {gpu} (UUID: GPU-6e1f9c0a-1111-2222-3333-444455556666)\nNCCL version {nccl}\n"
    assert ("NcclOlderThanCard" in codes(of_text(text))) is is_found


def test_nccl_of_another_node_says_nothing() -> None:
    pieces = [
        Piece(b"GPU 0: NVIDIA B200 (UUID: GPU-6e1f9c0a-1111-2222-3333-444455556666)\n", "a", node="a"),
        Piece(b"GPU 0: NVIDIA A100 (UUID: GPU-6e1f9c0a-1111-2222-3333-444455556667)\n", "b", node="b"),
        Piece(b"NCCL version 2.21.5+cuda12.4\n", "log", node="b"),
    ]
    assert "NcclOlderThanCard" not in codes(diagnose(read(pieces)))
    # Of several nodes nobody knows whose the unnamed card is.
    unnamed = [Piece(pieces[0].raw, "somewhere"), Piece(pieces[1].raw, "a", node="a"), pieces[1]]
    assert "NcclOlderThanCard" not in codes(diagnose(read([*unnamed, Piece(pieces[2].raw, "log", node="c")])))


def test_a_driver_for_claims_that_publishes_devices_is_new_enough() -> None:
    text = NODE.format(
        product="NVIDIA-A100-SXM4-80GB", major=8, minor=0, driver="535.261.03", phase="Running",
        image="nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.1",
    )  # fmt: skip
    slices = """---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpu.nvidia.com-x}
spec: {driver: gpu.nvidia.com, nodeName: n1, pool: {name: n1}, devices: [{name: gpu-0}]}
"""
    assert codes(of_text(text)) == {"ClaimDriverFloorMissed"}
    assert codes(of_text(text + slices)) == set()


def test_many_pods_of_one_node_are_one_finding() -> None:
    text = NODE.format(
        product="NVIDIA-GeForce-RTX-4090", major=8, minor=9, driver="570.133.07", image="x:cu130", phase="Running"
    )
    pod = text.partition("---\n")[2]
    found = of_text("---\n".join([text, *(pod.replace("name: p,", f"name: p{n},") for n in range(5))]))
    assert [one.code for one in found.findings] == ["ImageCudaAboveDriver"]
    assert found.findings[0].severity.name == "Warning" and found.gate.go
