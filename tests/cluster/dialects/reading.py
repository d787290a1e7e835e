"""A scenario file as steps. What README.md does not name is an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SCENARIOS = Path(__file__).parent / "scenarios"
Thing = dict[str, Any]

_SCENARIO = {"name", "why", "dialect", "complaint", "nodes", "racks", "gang", "shorthands", "steps"}
_STEPS = {"user creates", "user changes", "user deletes", "controller makes", "controller changes",
          "controller deletes", "expect"}  # fmt: skip
_PODS = {"pods", "of", "template", "labels", "annotations", "owned by", "each", "ends"}
_EXPECT = {"bound", "waiting", "pods", "inOne", "inDomains", "where", "verdict", "noVerdict", "status", "within"}
_VERDICT = {"of", "answer", "reason", "need", "have", "says", "finding", "pods", "queue"}


@dataclass(frozen=True)
class Scenario:
    """`gang`: beginnings of pods' names, and how many such pods may only be bound together."""

    file: str
    name: str
    dialect: str
    nodes: int
    racks: int
    gang: Mapping[str, int]
    steps: tuple[tuple[str, Any], ...]

    @property
    def api_versions(self) -> set[str]:
        """Of all objects that are created in it."""
        found: set[str] = set()
        for verb, what in self.steps:
            if verb in ("user creates", "controller makes"):
                found |= {thing["apiVersion"] for thing in what if "apiVersion" in thing}
        return found


def scenarios() -> list[Scenario]:
    return [_read(file) for file in sorted(SCENARIOS.rglob("*.yaml"))]


def _read(file: Path) -> Scenario:
    where = str(file.relative_to(SCENARIOS))
    said = yaml.safe_load(file.read_text())
    _known(said, _SCENARIO, where)
    steps: list[tuple[str, Any]] = []
    for number, step in enumerate(said["steps"], 1):
        _known(step, _STEPS, f"{where}: step {number}")
        for verb, what in step.items():
            if verb == "controller makes":
                for thing in what:
                    _known(thing, _PODS if "pods" in thing else thing.keys(), f"{where}: step {number}")
            if verb == "expect":
                _known(what, _EXPECT, f"{where}: step {number}")
                for verdict in what.get("verdict", ()):
                    _known(verdict, _VERDICT, f"{where}: step {number}")
            steps.append((verb, what))
    return Scenario(
        where, said["name"], said["dialect"], said.get("nodes", 1), said.get("racks", 1), said.get("gang", {}),
        tuple(steps),
    )  # fmt: skip


def _known(said: Mapping[str, Any], keys: Any, where: str) -> None:
    strange = set(said) - set(keys)
    assert not strange, f"{where}: {', '.join(sorted(strange))} means nothing. README.md has what does."
