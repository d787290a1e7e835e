"""Versions that the evidence shows, by node: its driver, its GPUs, images that run on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct

from berth.diagnosis.versions import cards
from berth.diagnosis.versions.cards import Generation
from berth.diagnosis.versions.number import number
from berth.evidence.fact import Fact, Origin
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import NodeSeen, Operand, PodSeen
from berth.evidence.formats.machine_facts import KernelDriver
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen

Kind = TypeVar("Kind")
_DONE = ("Succeeded", "Failed")
_FULL = "nvidia.com/cuda.driver-version.full"
_PARTS = ("nvidia.com/cuda.driver-version.", "nvidia.com/cuda.driver.")
_CUDA = ("nvidia.com/cuda.runtime-version.", "nvidia.com/cuda.runtime.")


class DriverOn(Struct, frozen=True):
    """The driver of a node. "" where it is not known."""

    version: str
    cuda: str  # the newest that it serves
    origin: Origin


class CardOn(Struct, frozen=True):
    """A kind of GPU that a node has. Its product may be unknown."""

    product: str
    generation: Generation | None
    capability: str
    origin: Origin


class ImageOn(Struct, frozen=True):
    """An image that is to run. `node` is "" for a set of pods."""

    image: str
    node: str
    pod: str  # namespace/name; of a set its name
    asks_for_gpus: bool
    does_run: bool  # and has not been started again
    origin: Origin


class Seen:
    """All of it, looked through once."""

    def __init__(self, facts: Facts) -> None:
        self._drivers: dict[str, list[DriverOn]] = {}
        self._cards: dict[str, list[CardOn]] = {}
        self.kubelets = {node.name: node for node in facts.of(NodeSeen)}
        for node, driver in _drivers(facts):
            self._drivers.setdefault(node, []).append(driver)
        for node, card in _cards(facts):
            self._cards.setdefault(node, []).append(card)
        self.nodes = sorted({*self.kubelets, *self._drivers, *self._cards} - {""})

    def driver(self, node: str) -> DriverOn | None:
        """What runs in the kernel there. Different answers are a matter of their own (L1), and none here."""
        found = self._there(self._drivers, node)
        if not found or len({number(one.version)[:2] for one in found}) > 1:
            return None
        return next((one for one in found if one.cuda), found[0])

    def cards(self, node: str) -> list[CardOn]:
        """Each kind once."""
        return list({(one.product, one.capability): one for one in self._there(self._cards, node)}.values())

    def _there(self, by_node: dict[str, list[Kind]], node: str) -> list[Kind]:
        """What names no node tells of the only one that there is."""
        found = by_node.get(node, [])
        if found or len(self.nodes) > 1:
            return found
        return by_node.get("", []) if node else [one for some in by_node.values() for one in some]


_known: WeakKeyDictionary[Facts, tuple[int, Seen]] = WeakKeyDictionary()


def seen(facts: Facts) -> Seen:
    """The same for all rules of a diagnosis; facts that were added since make it anew."""
    count, known = _known.get(facts, (-1, None))
    if known is None or count != len(facts):
        known = Seen(facts)
        _known[facts] = (len(facts), known)
    return known


def images(facts: Facts, wanted: Callable[[str], object]) -> Iterator[ImageOn]:
    """Images that are wanted, of pods that are not over and of sets."""
    for pod in facts.of(PodSeen):
        if pod.phase in _DONE or pod.is_ending:
            continue
        for one in pod.limits:
            if wanted(one.image):
                asks = any("nvidia.com/" in resource for resource in one.devices) or bool(one.claims)
                told = Origin(pod.origin.source, pod.origin.kind, f"image: {one.image}", node=pod.on, pod=pod.key)
                runs = any(
                    state.container == one.container and state.state == "running" and not state.restarts
                    for state in pod.states
                )
                yield ImageOn(one.image, pod.on, pod.key, asks, runs, told)
    for operand in facts.of(Operand):
        if operand.image and wanted(operand.image):
            told = Origin(operand.origin.source, operand.origin.kind, f"{operand.name} image: {operand.image}")
            runs = 0 < operand.wanted == operand.ready
            yield ImageOn(operand.image, "", f"{operand.namespace}/{operand.name}", False, runs, told)


def label_version(labels: Mapping[str, str], prefixes: tuple[str, ...]) -> str:
    """`580.65.06` of labels that have it in parts."""
    for prefix in prefixes:
        parts = [labels.get(prefix + part, "") for part in ("major", "minor")]
        last = labels.get(f"{prefix}revision", "") or labels.get(f"{prefix}rev", "")
        if all(part.isdigit() for part in parts):
            return ".".join([*parts, last] if last.isdigit() else parts)
    return ""


def _drivers(facts: Facts) -> Iterator[tuple[str, DriverOn]]:
    for node in facts.of(NodeSeen):
        version = node.labels.get(_FULL, "") or label_version(node.labels, _PARTS)
        if version:
            told = _labels(node, _FULL, *_PARTS)
            yield node.name, DriverOn(version, label_version(node.labels, _CUDA), told)
    for kernel in facts.of(KernelDriver):
        if kernel.is_loaded:
            yield kernel.node, DriverOn(kernel.version, "", kernel.origin)
    for tool in facts.of(DriverSeen):
        if tool.version:
            yield tool.node, DriverOn(tool.version, tool.cuda, tool.origin)
    for device in facts.of(DeviceSeen):
        if device.driver:
            yield device.node, DriverOn(device.driver, device.cuda, device.quote("driver"))


def _cards(facts: Facts) -> Iterator[tuple[str, CardOn]]:
    for node in facts.of(NodeSeen):
        product = node.labels.get("nvidia.com/gpu.product", "").replace("-", " ")
        family = cards.of_name(node.labels.get("nvidia.com/gpu.family", ""))
        capability = label_version(node.labels, ("nvidia.com/gpu.compute.",))
        if product or family or capability:
            generation = family or cards.of_capability(capability) or cards.of_product(product)
            told = _labels(node, "nvidia.com/gpu.product", "nvidia.com/gpu.family", "nvidia.com/gpu.compute.")
            yield node.name, CardOn(product, generation, capability, told)
    for device in facts.of(DeviceSeen):
        if device.name or device.architecture:
            generation = cards.of_name(device.architecture) or cards.of_product(device.name)
            yield device.node, CardOn(device.name, generation, "", device.quote("name", "architecture"))


def _labels(node: NodeSeen, *begins: str) -> Origin:
    text = ", ".join(f"{key}={value}" for key, value in node.labels.items() if key.startswith(begins))
    return Origin(node.origin.source, node.origin.kind, text, node=node.name)


def origins(*some: Fact | Origin | DriverOn | CardOn | ImageOn) -> list[Fact | Origin]:
    """Evidence of what was put together here."""
    return [one.origin if isinstance(one, (DriverOn, CardOn, ImageOn)) else one for one in some]
