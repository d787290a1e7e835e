"""The part of requirements.lock that runs: what pyproject.toml's dependencies bring along, and no development tools.

`python run_lock.py [EXTRA …]` in an environment that has the whole lock installed prints it, hashes included. So the
repository has one lock file, and an image has no library that nothing in it calls.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ENTRY = re.compile(r"(?m)^(?=[A-Za-z0-9])")


def needed(root: Path, extras: tuple[str, ...] = ()) -> set[str]:
    """Names of all that the project and its extras need here, down to the last."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    first = [*project["dependencies"], *(d for extra in extras for d in project["optional-dependencies"][extra])]
    found: set[str] = set()
    waiting = [Requirement(text) for text in first]
    while waiting:
        one = waiting.pop()
        wanted = {"", *one.extras}
        if one.marker is not None and not any(one.marker.evaluate({"extra": extra}) for extra in wanted):
            continue
        name = canonicalize_name(one.name)
        if name in found and not one.extras:
            continue
        found.add(name)
        for text in requires(one.name) or ():
            below = Requirement(text)
            if below.marker is None or any(below.marker.evaluate({"extra": extra}) for extra in wanted):
                below.marker = None
                waiting.append(below)
    return found


def part_of(lock: str, names: set[str]) -> str:
    """The entries of a lock file with these names, in its order. Raises LookupError where one is not in it."""
    entries = [(canonicalize_name(re.split(r"[=\[; ]", e)[0]), e) for e in ENTRY.split(lock) if e.strip()]
    if absent := names - {name for name, _ in entries}:
        raise LookupError(f"requirements.lock has no {', '.join(sorted(absent))}: make lock")
    return "".join(entry for name, entry in entries if name in names)  # one name may stand there for several Pythons


if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.stdout.write(part_of((ROOT / "requirements.lock").read_text(), needed(ROOT, tuple(sys.argv[1:]))))
