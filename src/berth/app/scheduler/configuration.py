"""What the scheduler runs by: one versioned object, each value with the place that it came from (app/layers.py)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from berth.app.layers import DEFAULT, address, layered
from berth.app.scheduler.configuration_rules import check, idle
from berth.app.scheduler.settings import API_VERSION, KIND, Configuration
from berth.model.gpus import GpuMapping, read_mapping

PREFIX = "BERTH_"


class Configured(Struct, frozen=True):
    """The configuration, and where each value came from: ("batch.windowMs", "5.0", "default").

    `unknown` are sentences about variables that look like ours and set nothing, and about values that do nothing with
    the others. `mapping` is what `gpuClasses` says.
    """

    value: Configuration
    sources: tuple[tuple[str, str, str], ...]
    unknown: tuple[str, ...] = ()
    mapping: GpuMapping | None = None

    def where(self, path: str) -> str:
        """The address of a value for a sentence: "--set server.port", "berth.yaml: server.port"."""
        return address(path, next((source for found, _, source in self.sources if found == path), DEFAULT))


def configure(
    file: str | None = None, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Configured:
    """Put the parts together. `flags` by path ("batch.windowMs"); variables are BERTH_BATCH_WINDOW_MS.

    Raises BadInput with the file, flag or variable, the field, its value and the remedy.
    """
    found = layered(Configuration, (API_VERSION, KIND), PREFIX, file, flags, environ, check)
    classes = found.value.gpu_classes
    mapping = read_mapping(classes, found.where("gpuClasses")) if classes else None
    return Configured(found.value, found.sources, (*found.unknown, *idle(found.value, found.where)), mapping)
