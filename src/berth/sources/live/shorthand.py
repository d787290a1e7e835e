"""Which pods go to which nodes, as JSON that stays short: many names differ in a number only.

Plain it is pods by node. Where that is long, what all names have in common is written once, under "", and pods whose
names differ in their last number are one: `{"": ["train-", "gpu-", ".example.org"], "17": ["[0-7]", "x-[3,9]"]}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

PLAIN_BYTES = 4096  # so long it is written in full, which people read more easily
_MOST_PODS = 100_000  # that are read: anybody may write an annotation

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(dict[str, list[str]]).decode


def written(nodes: Mapping[str, Sequence[str]]) -> str:
    """Pods by node, as text."""
    plain = _encode(nodes)
    if len(plain) <= PLAIN_BYTES:
        return plain.decode()
    pod_begin = _common([_common(pods) for pods in nodes.values()]).rstrip("0123456789")  # a number stays whole
    begin = _common(list(nodes))
    end = _common([name[len(begin) :][::-1] for name in nodes])[::-1]
    short: dict[str, Sequence[str]] = {"": (pod_begin, begin, end)}
    for node, pods in nodes.items():
        # Of the only node nothing is left, and "" is taken: its name is written in full.
        name = node[len(begin) : len(node) - len(end)] or f"={node}"
        short[name] = _runs(pod[len(pod_begin) :] for pod in pods)
    return _encode(short).decode()


def read(text: str) -> dict[str, str]:
    """The node of each pod. Raises ValueError where it is not what `written` writes."""
    nodes = _decode(text)
    common = nodes.pop("", ["", "", ""])
    if len(common) != 3:
        raise ValueError("what the names have in common is three texts")
    pod_begin, begin, end = common
    found: dict[str, str] = {}
    for name, runs in nodes.items():
        node = name[1:] if name.startswith("=") else f"{begin}{name}{end}"
        for run in runs:
            for pod in _pods(run, _MOST_PODS - len(found)):
                found[pod_begin + pod] = node
    return found


def _common(names: Sequence[str]) -> str:
    """What all of them begin with."""
    first, last = min(names), max(names)
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _runs(names: Iterable[str]) -> list[str]:
    """Names as they are, and those that differ in their last number only as one: `a-[0-2,5]`."""
    numbers: dict[str, list[int]] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        stem += digits[: len(digits) - len(digits.lstrip("0") or "0")] if digits else ""
        number = name[len(stem) :]
        numbers.setdefault(stem, []).append(int(number) if number else -1)
    return [run for stem, own in numbers.items() for run in _of_stem(stem, sorted(own))]


def _of_stem(stem: str, numbers: Sequence[int]) -> Iterable[str]:
    if numbers[0] < 0:
        yield stem
        numbers = numbers[1:]
    if len(numbers) == 1:
        yield f"{stem}{numbers[0]}"
        return
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    if parts:
        yield f"{stem}[{','.join(str(a) if a == b else f'{a}-{b}' for a, b in parts)}]"


def _pods(run: str, most: int) -> Iterable[str]:
    """The names that `_runs` made one of, `most` of them."""
    stem, opened, rest = run.partition("[")
    if not opened:
        yield run
        return
    for part in rest.removesuffix("]").split(","):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        most -= end - begin + 1
        if most < 0:
            raise ValueError("more pods than there can be")
        for number in range(begin, end + 1):
            yield f"{stem}{number}"
