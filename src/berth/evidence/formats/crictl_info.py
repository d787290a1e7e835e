"""`crictl info`: what a runtime says that it is configured to do, as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.container_facts import Handler, RuntimeConfig
from berth.evidence.formats.toml_tables import table, truth, word, words
from berth.evidence.piece import Piece

_LOOKS = re.compile(rb'"(?:RuntimeReady|runtimeHandlers|defaultRuntimeName|enableCDI|cdiSpecDirs)"')


def looks_like(head: bytes) -> bool:
    return _LOOKS.search(head) is not None


def read(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    begin, end = text.find("{"), text.rfind("}")
    try:
        found: Any = msgspec.json.decode(text[begin : end + 1]) if begin >= 0 else None
    except (msgspec.DecodeError, RecursionError):
        return
    if not isinstance(found, dict):
        return
    config = table(found, "config") or found
    containerd = table(config, "containerd")
    handlers = {
        name: Handler(
            name=name,
            runtime_type=word(body.get("runtimeType")),
            binary=word(table(body, "options").get("BinaryName")),
            systemd_cgroup=truth(table(body, "options").get("SystemdCgroup")),
        )
        for name, body in table(containerd, "runtimes").items()
        if isinstance(body, dict)
    }
    listed = found.get("runtimeHandlers")
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and (name := word(one.get("name"))):
            handlers.setdefault(name, Handler(name=name))
    if not handlers and "enableCDI" not in config:
        return
    yield RuntimeConfig(
        engine="containerd" if containerd else "cri-o",
        path=word(config.get("containerdConfigPath")),
        handlers=tuple(handlers.values()),
        default_handler=word(containerd.get("defaultRuntimeName")),
        enable_cdi=truth(config.get("enableCDI")),
        cdi_dirs=words(config["cdiSpecDirs"]) if isinstance(config.get("cdiSpecDirs"), list) else None,
        is_in_effect=True,
        is_whole=bool(handlers),
        origin=Origin(
            source=piece.source or "crictl info",
            kind=piece.kind,
            text=", ".join(f"runtime {name}" for name in handlers)[:LONGEST_TEXT],
            node=piece.node,
            pod=piece.pod,
        ),
    )


FORMAT = Format(name="crictl info", kinds=("containerd-config",), looks_like=looks_like, read=read)
