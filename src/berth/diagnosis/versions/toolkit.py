"""NVIDIA Container Toolkit: what each release reads and writes of containerd's configuration, and CDI."""

from __future__ import annotations

from msgspec import Struct

from berth.diagnosis.versions.number import is_below, number

CHANGELOG = "nvidia-container-toolkit, CHANGELOG"


class Release(Struct, frozen=True):
    """From this release on."""

    since: str
    does: str
    source: str


RELEASES: tuple[Release, ...] = (
    Release("1.12.0", "generates CDI specifications", "Container Toolkit documentation, CDI"),
    Release("1.17.0", "reads what is in effect (`containerd config dump`), not the file alone", CHANGELOG),
    Release("1.17.1", "reads the file where that command fails", CHANGELOG),
    Release("1.17.4", "understands version 3 of the configuration; compat libraries off by default", CHANGELOG),
    Release("1.17.5", "switches CDI on in the engine (CDI_ENABLED); hook for CUDA forward compatibility", CHANGELOG),
    Release(
        "1.18.0", "writes a drop-in into /etc/containerd/config.d and loses other imports; jit-cdi, nvidia-cdi-refresh",
        "nvidia-container-toolkit#1404; GPU Operator 25.10 release notes",
    ),
    Release(
        "1.18.1", "writes /etc/containerd/conf.d/99-nvidia.toml and keeps imports",
        "nvidia-container-toolkit#1407, CHANGELOG",
    ),
    Release(
        "1.19.1", "writes CDI 0.7.0; a drop-in of version 4 where `config dump` answers 4, whatever the root file's",
        "cloud-native-docs#419; aicr#1688; RUNTIME_CONFIG_SOURCE=file avoids it",
    ),
)  # fmt: skip

OLDEST_FOR_CONFIG_3 = "1.17.4"
READS_EFFECT_SINCE = "1.17.0"


def reads(toolkit: str, config: int, *, is_in_effect: bool) -> bool:
    """Can this toolkit read a configuration of that version? `is_in_effect`: it was seen as the daemon answers, which
    releases before 1.17.0 do not ask. True where it is not known."""
    if config < 3 or not number(toolkit) or not is_below(toolkit, OLDEST_FOR_CONFIG_3):
        return True
    return is_in_effect and is_below(toolkit, READS_EFFECT_SINCE)
