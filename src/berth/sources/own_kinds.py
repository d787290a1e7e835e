"""Berth's own kinds in a file: held to their schema, since no API server may have seen them.

Who writes a queue that is not what it seems would get answers for another cluster: what breaks a rule is refused, what
there is no field for is a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import Struct

from berth.base.errors import BadInput
from berth.base.units import counted
from berth.sources.dump_kinds import CHECKED, GROUP, OWN
from berth.sources.dump_refusals import wrong_type

_SHOWN = 4  # further fields that are named; the rest is a number


def read(kind: str, tree: Mapping[str, Any], file: str) -> tuple[Struct, tuple[str, ...]]:
    """The object as its Struct, and notes on what in it is no field. Raises BadInput naming file, object and field."""
    from berth.sources.schema import checked

    metadata = tree.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    called = f"{file}: {kind} {name}" if name else f"{file}: {kind}"
    found = checked(kind, tree)
    if found.faults:
        first, *others = found.faults
        more = sorted({fault.path for fault in others} - {first.path})
        remedy = first.remedy
        if more:
            rest = "" if len(more) <= _SHOWN else f" and {len(more) - _SHOWN} more"
            remedy += f" {counted(len(more), 'more field')} to mend: {', '.join(more[:_SHOWN])}{rest}."
        raise BadInput(f"{called}: {first.path}" if first.path else called, first.problem, remedy.strip())
    try:
        value: Struct = msgspec.convert(found.value, CHECKED[kind])
    except msgspec.ValidationError as error:  # of what the schema leaves open: metadata, status
        raise wrong_type(error, file, kind, tree) from None
    return value, tuple(f"{called}: {sentence}" for sentence in found.unknown)


def misspelt(api_version: str, kind: str) -> str:
    """What is meant by a kind that looks like one of Berth's; "" where it is no such."""
    group = api_version.rpartition("/")[0]
    kinds = {one.lower(): one for one in OWN}
    close = get_close_matches(kind.lower(), kinds, 1, 0.7)
    if group == GROUP and kind not in OWN:
        return f"close to it: {kinds[close[0]]}" if close else f"there are {', '.join(OWN)}"
    if group != GROUP and kind in CHECKED:
        return f"{kind} is of {GROUP}: write apiVersion: {GROUP}/v1alpha1"
    return ""
