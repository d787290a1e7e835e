"""config.toml of the NVIDIA container runtime: a file, or what its installer prints as `Using config:`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format, toml_tables
from berth.evidence.formats.config_path import path_of
from berth.evidence.formats.container_facts import ToolkitConfig
from berth.evidence.formats.toml_tables import table, truth, word, words
from berth.evidence.piece import Piece

_LOOKS = re.compile(
    rb"^[ \t>+|-]*\[nvidia-(?:container-cli|container-runtime|container-runtime-hook|ctk)[.\]]"
    rb"|^[ \t]*#?accept-nvidia-visible-devices-\w",
    re.MULTILINE,
)
_LINES = re.compile(
    r"^\s*(?:mode|root|ldconfig|no-cgroups|accept-nvidia-[\w-]+|disable-require|default-kind|spec-dirs|runtimes)\s*=.*$",
    re.MULTILINE,
)


def looks_like(head: bytes) -> bool:
    return (b"[nvidia-" in head or b"accept-nvidia-" in head) and _LOOKS.search(head) is not None


def read(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    tree, _ = toml_tables.parsed(text)
    cli, runtime = table(tree, "nvidia-container-cli"), table(tree, "nvidia-container-runtime")
    cdi = table(runtime, "modes", "cdi")
    quoted = "\n".join(found[0].strip() for found in _LINES.finditer(text)) or text.strip()
    yield ToolkitConfig(
        path=path_of(piece.source, text),
        mode=word(runtime.get("mode")),
        driver_root=word(cli.get("root")),
        ldconfig=word(cli.get("ldconfig")),
        no_cgroups=truth(cli.get("no-cgroups")),
        accepts_volume_mounts=truth(tree.get("accept-nvidia-visible-devices-as-volume-mounts")),
        accepts_environment_unprivileged=truth(tree.get("accept-nvidia-visible-devices-envvar-when-unprivileged")),
        disables_requirements=truth(tree.get("disable-require")),
        low_level_runtimes=words(runtime.get("runtimes")),
        cdi_default_kind=word(cdi.get("default-kind")),
        cdi_annotation_prefixes=words(cdi.get("annotation-prefixes")),
        cdi_dirs=words(cdi.get("spec-dirs")),
        origin=Origin(
            source=piece.source, kind=piece.kind, text=quoted[:LONGEST_TEXT], line=1, node=piece.node, pod=piece.pod
        ),
    )


FORMAT = Format(name="NVIDIA container runtime", kinds=("toolkit-config",), looks_like=looks_like, read=read)
