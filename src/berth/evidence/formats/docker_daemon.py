"""Docker's daemon.json, whole or as quoted lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.formats.config_path import path_of
from berth.evidence.formats.container_facts import Handler, RuntimeConfig
from berth.evidence.formats.toml_tables import table, truth, word, words
from berth.evidence.piece import Piece

_LOOKS = re.compile(rb'"default-runtime"\s*:|"runtimes"\s*:\s*\{|native\.cgroupdriver=|"cdi-spec-dirs"\s*:')
_DEFAULT = re.compile(r'"default-runtime"\s*:\s*"([^"]+)"')
_RUNTIME = re.compile(r'"([\w.-]+)"\s*:\s*\{[^{}]*?"path"\s*:\s*"([^"]+)"')
_CDI = re.compile(r'"features"\s*:\s*\{[^{}]*?"cdi"\s*:\s*(true|false)')
_CGROUP = re.compile(r"native\.cgroupdriver=(\w+)")


def looks_like(head: bytes) -> bool:
    """Also in the middle of a text: people quote it between other things."""
    if b'"runtimeHandlers"' in head or b'"enableCDI"' in head:
        return False
    if b"docker/daemon.json" in head and b"docker/daemon.json" in head.partition(b"\n")[0]:
        return True
    said = b'"default-runtime"' in head or b'"runtimes"' in head or b'"cdi-spec-dirs"' in head
    return (said or b"native.cgroupdriver=" in head) and _LOOKS.search(head) is not None


def read(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    default, cdi, cgroup = _DEFAULT.search(text), _CDI.search(text), _CGROUP.search(text)
    handlers = tuple(Handler(name=name, binary=path) for name, path in _RUNTIME.findall(text))
    whole = _document(text)
    is_torn = not whole and _is_torn(text)
    if not (default or handlers or cdi or cgroup or whole or is_torn):
        return
    features = table(whole, "features")
    yield RuntimeConfig(
        engine="docker",
        path=path_of(piece.source, text),
        handlers=handlers,
        default_handler=word(whole.get("default-runtime")) or (default[1] if default else ""),
        enable_cdi=truth(features.get("cdi")) if features else (cdi[1] == "true" if cdi else None),
        cdi_dirs=words(whole["cdi-spec-dirs"]) if "cdi-spec-dirs" in whole else None,
        cgroup_driver=cgroup[1] if cgroup else "",
        is_whole=bool(whole),
        problem="it is no JSON: a comma is missing, or it holds more than one document" if is_torn else "",
        origin=Origin(
            source=piece.source,
            kind=piece.kind,
            text=text.strip()[:LONGEST_TEXT],
            line=1,
            node=piece.node,
            pod=piece.pod,
        ),
    )


def _is_torn(text: str) -> bool:
    """A whole file that no JSON parser takes: a comma is missing, or it holds two documents. What was left out by who
    quotes it is no fault."""
    file = text.strip()
    if not (file.startswith("{") and file.endswith("}") and file.count("{") == file.count("}")):
        return False
    return not any(mark in file for mark in ("...", "\u2026", "//", "#", "<"))


def _document(text: str) -> dict[str, Any]:
    begin, end = text.find("{"), text.rfind("}")
    try:
        found = msgspec.json.decode(text[begin : end + 1]) if begin >= 0 else None
    except (msgspec.DecodeError, RecursionError):
        return {}
    known = ("default-runtime", "runtimes", "exec-opts", "features", "cdi-spec-dirs", "storage-driver", "log-driver")
    return found if isinstance(found, dict) and any(key in found for key in known) else {}


FORMAT = Format(name="Docker daemon.json", kinds=("docker-config",), looks_like=looks_like, read=read)
