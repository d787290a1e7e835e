"""CRI-O's crio.conf and its drop-ins in crio.conf.d."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format, toml_tables
from berth.evidence.formats.config_path import path_of
from berth.evidence.formats.container_facts import Handler, RuntimeConfig
from berth.evidence.formats.toml_tables import table, word, words
from berth.evidence.piece import Piece

_LOOKS = re.compile(rb"^[ \t>+|-]*\[crio[.\]]", re.MULTILINE)


def looks_like(head: bytes) -> bool:
    return b"[crio" in head and _LOOKS.search(head) is not None


def read(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    tree, is_toml = toml_tables.parsed(text)
    runtime = table(tree, "crio", "runtime")
    path = path_of(piece.source, text)
    yield RuntimeConfig(
        engine="cri-o",
        path=path,
        handlers=tuple(
            Handler(name=name, runtime_type=word(body.get("runtime_type")), binary=word(body.get("runtime_path")))
            for name, body in table(runtime, "runtimes").items()
            if isinstance(body, dict)
        ),
        default_handler=word(runtime.get("default_runtime")),
        cdi_dirs=words(runtime["cdi_spec_dirs"]) if "cdi_spec_dirs" in runtime else None,
        hooks_dirs=words(runtime["hooks_dir"]) if "hooks_dir" in runtime else None,
        cgroup_driver=word(runtime.get("cgroup_manager")),
        is_whole=is_toml and path.endswith("/crio.conf"),
        origin=Origin(
            source=piece.source,
            kind=piece.kind,
            text=text.strip()[:LONGEST_TEXT],
            line=1,
            node=piece.node,
            pod=piece.pod,
        ),
    )


FORMAT = Format(name="CRI-O configuration", kinds=("crio-config",), looks_like=looks_like, read=read)
