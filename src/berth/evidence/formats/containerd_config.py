"""containerd's config.toml: versions 1 to 4, drop-ins, dumps, templates of K3s and RKE2, and lines quoted of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format, toml_tables
from berth.evidence.formats.config_path import path_of
from berth.evidence.formats.container_facts import TABLE_OF_VERSION, V1_TABLE, Handler, RuntimeConfig
from berth.evidence.formats.toml_tables import Tree, at, table, truth, word, words
from berth.evidence.piece import Piece

_LOOKS = re.compile(
    rb"""^[ \t>+|-]*\[+[ ]*plugins[. \]]|^[ \t>+|-]*disabled_plugins[ \t]*=|\[[^\]\n]*\.containerd\.runtimes"""
    # or lines out of one of its tables, without the table
    rb"""|^[ \t>+|-]*imports[ \t]*=[ \t]*\[(?:[^\]\n]*containerd|[ \t]*\])"""
    rb"""|^[ \t>+|-]*(?:default_runtime_name|BinaryName|SystemdCgroup|enable_cdi|cdi_spec_dirs)[ \t]*=[ \t]*\S""",
    re.MULTILINE,
)
_VERSION = re.compile(r"(?:^|[^\w-])version\s*[=:]?\s*(\d)\b(?![.\d])")  # a person may have written `a version 1 file`
_EXCERPT = re.compile(r"^.*(?:containerd|disabled_plugins|default_runtime|BinaryName|runtime_type).*$", re.MULTILINE)
_OURS = ("containerd", "enable_cdi", "cdi_spec_dirs")  # what the table of each version is read for
_LOOSE = ("default_runtime_name", "BinaryName", "SystemdCgroup", "enable_cdi", "cdi_spec_dirs")
_DROP_IN = ("conf.d/", "config.d/")
EXCERPT = 8 * 1024  # bytes: of what somebody quotes


def looks_like(head: bytes) -> bool:
    if not (b"[plugins" in head or b"disabled_plugins" in head or (len(head) < EXCERPT and _loose_in(head))):
        return False
    return _LOOKS.search(head) is not None


def _loose_in(head: bytes) -> bool:
    """Lines out of a table that was not quoted with them: only in short texts, where it costs little to look."""
    return (
        b"imports" in head or b".containerd.runtimes" in head or b"default_runtime_name" in head
        or b"BinaryName" in head or b"SystemdCgroup" in head or b"enable_cdi" in head or b"cdi_spec_dirs" in head
    )  # fmt: skip


def read(piece: Piece) -> Iterator[Fact]:
    text = piece.text
    tree, is_toml = toml_tables.parsed(text)
    plugins = table(tree, "plugins")
    path = path_of(piece.source, text)
    disabled = words(tree.get("disabled_plugins"))
    # In version 3 the table of version 2 lives on, for the streaming server only.
    tables = tuple(
        name for name in dict.fromkeys(TABLE_OF_VERSION.values()) if any(key in table(plugins, name) for key in _OURS)
    )
    loose = not tables and any(key in tree for key in _LOOSE)
    is_template = path.endswith(".tmpl") or "-template" in path or "{{" in text
    is_file = piece.source.endswith("config.toml") and not is_template
    problem = toml_tables.problem(text) if is_file and not is_toml else ""
    if not (tables or disabled or loose or problem or "imports" in tree):
        return
    handlers: dict[str, Handler] = {}
    default, enable_cdi, cdi_dirs = "", None, None
    for name in tables:
        cri = table(plugins, name)
        containerd = table(cri, "containerd")
        for key, body in table(containerd, "runtimes").items():
            if isinstance(body, dict):
                handlers[key] = _handler(key, body)
        if name == V1_TABLE and (first := table(containerd, "default_runtime")):
            handlers.setdefault("default_runtime", _handler("default_runtime", first))
        default = word(containerd.get("default_runtime_name")) or default
        enable_cdi = truth(cri.get("enable_cdi")) if "enable_cdi" in cri else enable_cdi
        cdi_dirs = words(cri.get("cdi_spec_dirs")) if "cdi_spec_dirs" in cri else cdi_dirs
    if loose:
        default, enable_cdi = word(tree.get("default_runtime_name")), truth(tree.get("enable_cdi"))
        cdi_dirs = words(tree.get("cdi_spec_dirs")) if "cdi_spec_dirs" in tree else None
        one = _handler("", {"options": tree})
        if one.binary:
            name = "nvidia" if "nvidia" in one.binary + one.shadow else "runc"
            handlers[name] = _handler(name, {"options": tree})
    imports = words(tree.get("imports"))
    yield RuntimeConfig(
        engine="containerd",
        path=path,
        version=_version(tree, text),
        tables=tables,
        handlers=tuple(handlers.values()),
        default_handler=default,
        enable_cdi=enable_cdi,
        cdi_dirs=cdi_dirs,
        imports=imports,
        disabled_plugins=disabled,
        is_template=is_template,
        problem=problem,
        is_in_effect="config dump" in piece.source or "[stream_processors" in text,
        is_whole=is_toml and not imports and not any(mark in path for mark in _DROP_IN) and _begins_as_a_file(tree),
        origin=_origin(piece, text),
    )


def _handler(name: str, body: Tree) -> Handler:
    options = table(body, "options")
    # containerd takes these keys in any case.
    binaries = [word(value) for key, value in options.items() if key.lower() == "binaryname" and word(value)]
    managed = [truth(value) for key, value in options.items() if key.lower() == "systemdcgroup"]
    return Handler(
        name=name,
        runtime_type=word(body.get("runtime_type")),
        binary=next(iter(binaries), "") or word(options.get("Runtime")) or word(body.get("runtime_engine")),
        systemd_cgroup=next(iter(managed), None),
        shadow=next((one for one in binaries[1:] if one != binaries[0]), ""),
    )


def _version(tree: Tree, text: str) -> int:
    said = at(tree, "version")
    if isinstance(said, int):
        return said
    found = _VERSION.search(text)
    return int(found[1]) if found else 0


def _begins_as_a_file(tree: Tree) -> bool:
    return "version" in tree and any(key in tree for key in ("root", "state", "grpc", "oom_score", "required_plugins"))


def _origin(piece: Piece, text: str) -> Origin:
    """The lines that say which runtimes there are; else the beginning."""
    lines = "\n".join(found[0].strip() for found in _EXCERPT.finditer(text)) or text.strip()
    return Origin(
        source=piece.source, kind=piece.kind, text=lines[:LONGEST_TEXT], line=1, node=piece.node, pod=piece.pod
    )


FORMAT = Format(name="containerd configuration", kinds=("containerd-config",), looks_like=looks_like, read=read)
