"""L2. The CUDA that an image brings against driver and GPU of the node, before anything has failed."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.versions import cuda
from berth.diagnosis.versions.number import number
from berth.diagnosis.versions.seen import ImageOn, images, origins, seen
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.packages import CudaRequired

ABOVE = Code(
    name="ImageCudaAboveDriver",
    layer=Layer.L2,
    cause_class="version-mismatch",
    severity=Severity.Warning,
    effect=Effect.CudaFails,
    title="the image's CUDA is of a newer major version than the node's driver runs",
    meaning="Within a major version an older driver is enough; across one it is not, but with the compatibility "
    "libraries of a data centre GPU's image. The runtime refuses the container, or CUDA does not begin in it.",
    known_by="The image's tag or NVIDIA_REQUIRE_CUDA, the node's driver version, and a GPU or branch for which forward "
    "compatibility is not made.",
    disproved_by="The container runs and torch.cuda.is_available() (or cuInit) succeeds in it.",
    counter_check="in the image, on NODE: python -c 'import torch; print(torch.cuda.is_available())', or a CUDA "
    "sample : True, passes",
    fix=Fix(
        steps=(
            "a driver from the floor on: 525.60.13 for CUDA 12, 580 for CUDA 13",
            "or an image of the driver's major version (nvidia-smi shows it as CUDA Version)",
            "keep such pods off older nodes: nodeSelector nvidia.com/cuda.driver-version.major",
        ),
        risk="a new driver needs the node drained",
        rollback="the former image or driver",
    ),
    verify=("kubectl logs POD -n NAMESPACE: CUDA begins", "in the container: nvidia-smi: a table"),
    sources=("CUDA Compatibility: minor version and forward compatibility", "nvidia/cuda images, NVIDIA_REQUIRE_CUDA"),
)
DROPPED = Code(
    name="ImageCudaWithoutCard",
    layer=Layer.L6,
    cause_class="image",
    severity=Severity.Warning,
    effect=Effect.CudaFails,
    title="the image's CUDA has given up GPUs as old as the node's",
    meaning="From a major version on the compiler and the libraries (cuBLAS, cuDNN, NCCL) hold no code for old "
    "generations, even where the driver still serves the card: no kernel image is available.",
    known_by="The image's tag names the CUDA version, the node's labels the compute capability.",
    disproved_by="The program brings code of its own for this GPU and uses none of the libraries.",
    counter_check="in the container: nvidia-smi --query-gpu=name,compute_cap --format=csv ; cuobjdump --list-elf "
    "LIBRARY | grep sm_ : the same number",
    fix=Fix(
        steps=(
            "an image with CUDA 12 for Maxwell, Pascal and Volta; CUDA 11 for Kepler",
            "or a node with newer GPUs: nodeSelector nvidia.com/gpu.family",
        ),
        risk="none",
        rollback="the former image",
    ),
    verify=("a small kernel runs in the container: python -c 'import torch; torch.ones(1).cuda() + 1'",),
    sources=("CUDA 13 release notes, deprecated architectures",),
)


def find(facts: Facts) -> Iterator[Answer]:
    told = set[tuple[str, str]]()  # one finding for a node and a version, however many pods
    for image in images(facts, cuda.cuda_of):
        wants = cuda.cuda_of(image.image)
        if image.node and image.asks_for_gpus and (image.node, wants) not in told:
            told.add((image.node, wants))
            yield from _above(facts, wants, "", image.node, image)
            yield from _without_card(facts, wants, image)
    for demand in facts.of(CudaRequired):
        wants = cuda.cuda_required(demand.requirement)
        if wants:
            yield from _above(facts, wants, demand.requirement, demand.node, demand)


def _above(facts: Facts, wants: str, requirement: str, node: str, told: ImageOn | CudaRequired) -> Iterator[Answer]:
    driver = seen(facts).driver(node)
    if driver is None:
        return
    there = seen(facts).cards(node)
    floors = {cuda.floor_missed(wants, driver.version, one.product) for one in there}
    if not there:
        floors = {cuda.floor_missed(wants, driver.version, "")}
    if not all(floors):
        return
    if requirement and any(not cuda.is_refused(requirement, driver.version, one.product) for one in there):
        return
    product = f" on {there[0].product}" if there and there[0].product else ""
    yield ABOVE.finding(
        f"The image brings CUDA {wants}, which needs driver {max(floors)} or newer{product}; the node's is "
        f"{driver.version}" + (f" (CUDA {driver.cuda})." if driver.cuda else "."),
        LIKELY,
        origins(told, driver, *there[:1]),
        node=node or driver.origin.node,
        pod=told.pod if isinstance(told, ImageOn) else told.origin.pod,
    )


def _without_card(facts: Facts, wants: str, image: ImageOn) -> Iterator[Answer]:
    major = cuda.major_of(wants)
    there = [one for one in seen(facts).cards(image.node) if number(one.capability)]
    if major is None or not there:
        return
    if all(number(one.capability) < number(major.oldest) for one in there):
        yield DROPPED.finding(
            f"The image brings CUDA {wants}, whose libraries begin with compute capability {major.oldest}; the node "
            f"has {there[0].product or 'GPUs'} of {there[0].capability}.",
            LIKELY,
            origins(image, there[0]),
            node=image.node,
            pod=image.pod,
        )


RULE = Rule((ABOVE, DROPPED), find)
