"""A user's own mapping from node labels to GPU classes: for labels and cards that the catalogue lacks.

classes:
  - match: {example.com/pool: "h100-*"}    # every label must match; * and ? as in a shell
    class: H100-80GB                       # a class of the catalogue brings its own facts
    valuePerHour: 2.5                      # what is written here goes over them
  - match: {example.com/card: trainium}
    class: Trainium-32GB
    vendor: aws.amazon.com
    memory: 32Gi
    compute: "0.0"
    link: pcie
    precision: [bf16, fp8]
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from msgspec import Struct

from berth.base import quantity
from berth.base.errors import BadInput
from berth.model.cluster import GpuClass
from berth.model.gpu_catalogue import NVIDIA, NVLINK, PCIE, precisions_of, product_named

_KEYS = ("match", "class", "vendor", "product", "memory", "compute", "link", "precision", "valuePerHour")
_GIB = 2**30


class MappingRule(Struct, frozen=True):
    """Nodes whose labels match all patterns have this class."""

    match: tuple[tuple[str, str], ...]
    gpu_class: GpuClass


class GpuMapping(Struct, frozen=True):
    """Rules in the order of the file; the first that matches wins."""

    rules: tuple[MappingRule, ...] = ()

    def find(self, labels: Mapping[str, str]) -> GpuClass | None:
        for rule in self.rules:
            if all(key in labels and fnmatchcase(labels[key], pattern) for key, pattern in rule.match):
                return rule.gpu_class
        return None


def read_mapping(text: str, where: str) -> GpuMapping:
    """The mapping that a YAML text holds. Raises BadInput that names `where` and the key at fault."""
    import yaml  # here: commands without a mapping need no YAML

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(where, f"not YAML: {str(error).splitlines()[0]}.") from None
    if document is None:
        return GpuMapping()
    top = _mapping(document, where, "")
    _refuse_unknown(top, ("classes",), where, "")
    entries = top.get("classes", [])
    if not isinstance(entries, list):
        raise BadInput(f"{where}: classes", f"{_said(entries)}; it must be a list.")
    return GpuMapping(tuple(_rule(entry, where, f"classes[{i}]") for i, entry in enumerate(entries)))


def joined(first: GpuMapping | None, objects: Mapping[str, Mapping[str, object]]) -> tuple[GpuMapping, tuple[str, ...]]:
    """A mapping's rules, then those of GPUClass objects (name to spec) in the order of their names.

    And a sentence for each object that cannot be read: it is passed over.
    """
    rules = list(first.rules if first else ())
    troubles = []
    for name in sorted(objects):
        try:
            rules.append(_rule(dict(objects[name]), f"GPUClass {name}", "spec"))
        except BadInput as error:
            troubles.append(error.sentence)
    return GpuMapping(tuple(rules)), tuple(troubles)


def _rule(entry: object, where: str, path: str) -> MappingRule:
    keys = _mapping(entry, where, path)
    _refuse_unknown(keys, _KEYS, where, path)
    match = _mapping(keys.get("match"), where, f"{path}.match")
    if not match:
        raise BadInput(f"{where}: {path}.match", "empty; it would match every node.", "Name a label.")
    patterns = []
    for key, pattern in match.items():
        if not isinstance(key, str) or not isinstance(pattern, str):
            raise BadInput(f"{where}: {path}.match", f"{key!r} has {_said(pattern)}; labels are text.", "Quote it.")
        patterns.append((key, pattern))
    name = _text(keys, "class", where, path)
    if not name:
        raise BadInput(f"{where}: {path}.class", "missing.", "Give the class a name, such as H100-80GB.")
    return MappingRule(tuple(patterns), _class(name, keys, where, path))


def _class(name: str, keys: Mapping[str, object], where: str, path: str) -> GpuClass:
    known = product_named(name)
    compute = known.compute if known else (0, 0)
    if "compute" in keys:
        compute = _compute(keys["compute"], f"{where}: {path}.compute")
    memory = known.memory_gib * _GIB if known else 0
    if "memory" in keys:
        said = keys["memory"]
        try:
            memory = quantity.whole(str(said))
        except quantity.QuantityError:
            raise BadInput(f"{where}: {path}.memory", f"{_said(said)} is not a quantity.", "Write 80Gi.") from None
    link = _text(keys, "link", where, path) or (known.link if known else "")
    if link not in ("", NVLINK, PCIE):
        raise BadInput(f"{where}: {path}.link", f"{link!r} is not a link.", "Write nvlink or pcie.")
    precisions = (known.precisions if known else ()) or precisions_of(compute)
    if "precision" in keys:
        precisions = _precisions(keys["precision"], f"{where}: {path}.precision")
    value = known.value if known else 1.0
    if "valuePerHour" in keys:
        said = keys["valuePerHour"]
        if isinstance(said, bool) or not isinstance(said, int | float) or not 0 < said < 1e6:
            raise BadInput(f"{where}: {path}.valuePerHour", f"{_said(said)}; it must be a number above 0.")
        value = float(said)
    return GpuClass(
        name=name,
        vendor=_text(keys, "vendor", where, path) or (known.vendor if known else NVIDIA),
        product=_text(keys, "product", where, path),
        memory_bytes=memory,
        compute=compute,
        link=link,
        precisions=precisions,
        value_per_hour=value,
    )


def _compute(said: object, where: str) -> tuple[int, int]:
    major, _, minor = str(said).partition(".")
    if isinstance(said, bool) or not major.isdigit() or not (minor or "0").isdigit():
        raise BadInput(where, f"{_said(said)} is not a compute capability.", 'Write "9.0".')
    return int(major), int(minor or "0")


def _precisions(said: object, where: str) -> tuple[str, ...]:
    items = [said] if isinstance(said, str) else said
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise BadInput(where, f"{_said(said)}; it must be a list of names.", "Write [fp16, bf16].")
    return tuple(item.lower() for item in items)


def _text(keys: Mapping[str, object], key: str, where: str, path: str) -> str:
    said = keys.get(key, "")
    if not isinstance(said, str):
        raise BadInput(f"{where}: {path}.{key}", f"{_said(said)}; it must be text.", "Quote it.")
    return said


def _mapping(said: object, where: str, path: str) -> Mapping[str, object]:
    if not isinstance(said, dict):
        place = f"{where}: {path}" if path else where
        raise BadInput(place, f"{_said(said)}; it must be a mapping.", "See docs/dialects.md, GPU classes.")
    return said


def _refuse_unknown(keys: Mapping[str, object], known: tuple[str, ...], where: str, path: str) -> None:
    for key in keys:
        if key not in known:
            place = f"{where}: {path}.{key}" if path else f"{where}: {key}"
            raise BadInput(place, "not a key of a GPU mapping.", f"Known keys: {', '.join(known)}.")


def _said(value: object) -> str:
    return "missing" if value is None else repr(value)
