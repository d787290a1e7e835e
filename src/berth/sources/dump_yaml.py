"""YAML dumps, read item by item and, of known kinds, only the parts that decide.

kubectl's YAML is block style, and by the rules of YAML everything that belongs to a key is indented deeper than
the key (lists of a key may start at its own column). So an item can be cut at its keys by indentation, what
nobody reads (managedFields, statuses, environments) falls away as text, and a part that was seen before
(the containers of the pod before) is not parsed again. Whatever is not as plain as that, such as flow style,
anchors or odd keys, is parsed whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from msgspec import ValidationError, convert

from berth.base.errors import UNREADABLE, BadInput
from berth.base.yaml_tree import AliasUnknown, YAMLError, parse
from berth.evidence.damage import AGAIN, NO_KIND
from berth.sources.dump_files import Content
from berth.sources.dump_kinds import PLAIN, fields_read, type_of
from berth.sources.dump_refusals import not_an_object, object_name, wrong_type

Blocks = dict[bytes, bytes]  # key: the text after its colon, to the line before the next key

WHOLE_AT_MOST = 64 << 20  # a document with anchors across its items is parsed at once up to this size
CACHE_BYTES = 32 << 20

_COMMENT = ord("#")
_LISTED = re.compile(rb"-(?: |$)")
_SAFE = re.compile(rb"[A-Za-z][A-Za-z0-9_./-]*|\"[A-Za-z0-9_./:+ -]*\"")
_WORDS = frozenset(b"null true false yes no on off y n".split())
_MARK = re.compile(rb"---(?=[ \t\n]|\Z)")
_NOTHING = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?(?:\n|\Z)|[ \t]*(?:%|\.\.\.)[^\n]*(?:\n|\Z))*")
_ITEMS = re.compile(rb"items:[ \t]*(?:#[^\n]*)?(?:\n|$)")
_LIST_END = re.compile(rb"\n(?=[^\s#-])")
_FIRST_ITEM = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\n)*( *)-(?=[ \n]|$)")
_CONTENT = re.compile(rb"(?m)^( *)(?![ #])[^\n]")

# Parts of parts that decide nothing, and that differ from pod to pod.
_OF_CONTAINERS = (
    b"args command env envFrom image imagePullPolicy lifecycle livenessProbe readinessProbe startupProbe"
    b" securityContext terminationMessagePath terminationMessagePolicy volumeDevices volumeMounts workingDir"
)
_OF_VOLUMES = b"projected configMap secret emptyDir hostPath downwardAPI csi nfs flexVolume iscsi rbd cephfs image"
UNREAD_ANNOTATIONS = (
    b"kubectl.kubernetes.io/last-applied-configuration k8s.v1.cni.cncf.io/network-status"
    b" k8s.v1.cni.cncf.io/networks-status cni.projectcalico.org/podIP cni.projectcalico.org/podIPs"
    b" cni.projectcalico.org/containerID k8s.ovn.org/pod-networks openshift.io/scc"
)
_PRUNED = {
    b"containers": _OF_CONTAINERS,
    b"initContainers": _OF_CONTAINERS,
    b"volumes": _OF_VOLUMES,
    b"annotations": UNREAD_ANNOTATIONS,
}

# (apiVersion, kind, value, offset): a Struct, a mapping of a plain kind, or None where the kind is not read
Found = tuple[str, str, Any, int]


def objects(content: Content, name: str) -> Iterator[Found]:
    """Each object of the file. Raises BadInput with the line where the text is not YAML."""
    reader = _Reader(content, name)
    for start, end in _documents(content):
        try:
            yield from reader.document(start, end)
        except AliasUnknown as error:
            raise reader.not_yaml(error, start) from None


def line_of(content: Content, offset: int) -> int:
    """Number of the line at an offset, from 1."""
    return content[:offset].count(b"\n") + 1


def _documents(content: Content) -> Iterator[tuple[int, int]]:
    """Spans between lines that start with `---`: at column 0 that is always a mark, never content."""
    start = 3 if _MARK.match(content) else 0
    seek = start
    while (at := content.find(b"\n---", seek)) >= 0:
        seek = at + 4
        if _MARK.match(content, at + 1):
            yield start, at + 1
            start = seek
    yield start, len(content)


class _Reader:
    def __init__(self, content: Content, name: str) -> None:
        self.content = content
        self.name = name
        self._seen: dict[bytes, Any] = {}
        self._seen_bytes = 0

    # ---- documents and lists

    def document(self, start: int, end: int) -> Iterator[Found]:
        """The objects of one document: the items of a list, or the object itself."""
        at = self._items_line(start, end)
        first = _FIRST_ITEM.match(self.content, at, end) if at >= 0 else None
        if first is None:
            yield from self._one(start, end)
            return
        closing = _LIST_END.search(self.content, first.end() - 1, end)
        stop = closing.end() if closing else end
        header = self._header(start, at, stop, end)
        kind = header.get("kind")
        if kind is None:
            where = f"{self.name}: line {line_of(self.content, end)}"
            raise BadInput(where, f"{NO_KIND}.", AGAIN, UNREADABLE)
        if not isinstance(kind, str) or not kind.endswith("List"):
            yield from self._one(start, end)
            return
        item_kind = "" if kind == "List" else kind.removesuffix("List")
        yield from self._items(first.start(1), len(first[1]), stop, item_kind, header, (start, end))

    def _items_line(self, start: int, end: int) -> int:
        """Offset after the line `items:` at column 0; -1 where there is none."""
        at = start if self.content[start : start + 6] == b"items:" else -1
        if at < 0:
            at = self.content.find(b"\nitems:", start, end) + 1
        found = _ITEMS.match(self.content, at, end) if at > 0 or start == at == 0 else None
        return found.end() if found else -1

    def _header(self, start: int, at: int, stop: int, end: int) -> dict[str, Any]:
        text = self.content[start:at] + b"\n" + self.content[stop:end]
        header = self._parse(text, start)
        return header if isinstance(header, dict) else {}

    def _items(
        self, start: int, indent: int, stop: int, kind: str, header: dict[str, Any], span: tuple[int, int]
    ) -> Iterator[Found]:
        api_version = str(header.get("apiVersion") or "") if kind else ""
        count = 0
        try:
            for offset, text in self._pieces(start, indent, stop):
                yield self._object(text, offset, kind, api_version)
                count += 1
        except AliasUnknown:
            yield from self._whole(span, count, kind, api_version)

    def _pieces(self, start: int, indent: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Items as mappings: the dash is a space, so that their keys stay in their column."""
        mark = re.compile(rb"\n {%d}-(?=[ \n])" % indent)
        margin = b" " * (indent + 1)
        begin = start
        for following in mark.finditer(self.content, start + indent, stop):
            yield begin, margin + self.content[begin + indent + 1 : following.start() + 1]
            begin = following.start() + 1
        yield begin, margin + self.content[begin + indent + 1 : stop]

    def _whole(self, span: tuple[int, int], skip: int, kind: str, api_version: str) -> Iterator[Found]:
        """A list whose items share anchors: parsed at once, from the item that needed it on."""
        start, end = span
        if end - start > WHOLE_AT_MOST:
            problem = "anchors are shared between items, and the list is too large to be read at once."
            raise BadInput(self.name, problem, "Dump it with kubectl, which writes none.", UNREADABLE)
        tree = self._parse(self.content[start:end], start)
        items = tree.get("items") if isinstance(tree, dict) else None
        for item in (items if isinstance(items, list) else [])[skip:]:
            yield self._typed(item, start, kind, api_version)

    def _one(self, start: int, end: int) -> Iterator[Found]:
        text = self.content[start:end]
        if _NOTHING.fullmatch(text):
            return
        found = self._object(text, start, "", "")
        tree = found[2]
        if found[1].endswith("List") and isinstance(tree, dict) and isinstance(tree.get("items"), list):
            kind = "" if found[1] == "List" else found[1].removesuffix("List")
            for item in tree["items"]:
                yield self._typed(item, start, kind, found[0] if kind else "")
        elif not (found[1].endswith("List") and isinstance(tree, dict) and tree.get("items", self) is None):
            yield found

    # ---- one object

    def _object(self, text: bytes, offset: int, kind: str, api_version: str) -> Found:
        if not text.endswith(b"\n"):
            text += b"\n"
        blocks = split(text)
        if blocks is None:
            return self._typed(self._parse(text, offset), offset, kind, api_version)
        own_version = self._value(b"apiVersion", blocks.get(b"apiVersion"), offset)
        own_kind = self._value(b"kind", blocks.get(b"kind"), offset)
        if not isinstance(own_kind, str) or not isinstance(own_version, str):
            own_kind, own_version = kind, api_version
        wanted = type_of(own_version, own_kind)
        if wanted is None and not _is_note(own_kind):
            return own_version, own_kind, None, offset
        if wanted is None or wanted is PLAIN:
            tree = self._parse(without(text, b"managedFields"), offset)
            return self._typed(tree, offset, own_kind, own_version)
        try:
            tree = self._parts(blocks, fields_read(wanted), offset)
            return own_version, own_kind, convert(tree, wanted), offset
        except (ValidationError, AliasUnknown):  # perhaps because of what was left out: the whole text decides
            return self._typed(self._parse(text, offset), offset, own_kind, own_version)

    def _typed(self, tree: Any, offset: int, kind: str, api_version: str) -> Found:
        """An object that was parsed whole."""
        if not isinstance(tree, dict):
            raise not_an_object(tree, f"{self.name}: line {line_of(self.content, offset)}")
        own_kind, own_version = tree.get("kind"), tree.get("apiVersion")
        if not isinstance(own_kind, str) or not isinstance(own_version, str):
            own_kind, own_version = kind, api_version
        wanted = type_of(own_version, own_kind)
        if wanted is None or wanted is PLAIN:
            return own_version, own_kind, tree, offset
        try:
            return own_version, own_kind, convert(tree, wanted), offset
        except ValidationError as error:
            raise wrong_type(error, self._where(tree, offset), own_kind, tree) from None

    def _where(self, tree: Mapping[str, Any], offset: int) -> str:
        """The file, with the line of an object whose name does not tell which it is."""
        if object_name("", tree.get("metadata")):
            return self.name
        return f"{self.name}: line {line_of(self.content, offset)}"

    def _parts(self, blocks: Blocks, kept: Mapping[str, frozenset[str] | None], offset: int) -> dict[str, Any]:
        return {
            name: self._part(key, block, kept[name], offset)
            for key, block in blocks.items()
            if (name := key.decode()) in kept
        }

    def _part(self, key: bytes, block: bytes, inside: frozenset[str] | None, offset: int) -> Any:
        """The value of a key of the object: of `metadata`, `spec` and `status` only the fields that are read."""
        if inside is None or not block.startswith(b"\n"):
            return self._value(key, block, offset)
        parts = split(block)
        if parts is None:
            return self._value(key, block, offset)
        return {
            name: self._value(inner, text, offset)
            for inner, text in parts.items()
            if (name := inner.decode()) in inside
        }

    def _value(self, key: bytes, block: bytes | None, offset: int) -> Any:
        """What stands after a key, parsed once for each distinct text."""
        if block is None:
            return None
        short = block.strip()
        if b"\n" not in short and _SAFE.fullmatch(short) and short.lower() not in _WORDS:
            return short.strip(b'"').decode()
        if key in _PRUNED and block.startswith(b"\n"):
            block = without(block, _PRUNED[key])
        text = key + b":" + block
        found = self._seen.get(text, self)
        if found is not self:
            return found
        tree = self._parse(text, offset)
        value = tree.get(key.decode()) if isinstance(tree, dict) else None
        self._seen_bytes += len(text)
        if self._seen_bytes > CACHE_BYTES:
            self._seen.clear()
            self._seen_bytes = len(text)
        self._seen[text] = value
        return value

    def _parse(self, text: bytes, offset: int) -> Any:
        try:
            return parse(text)
        except AliasUnknown:
            raise
        except (YAMLError, UnicodeDecodeError) as error:
            raise self.not_yaml(error, offset) from None
        except RecursionError:
            where = f"{self.name}: line {line_of(self.content, offset)}"
            raise BadInput(where, "YAML nested too deeply.", AGAIN, UNREADABLE) from None

    def not_yaml(self, error: Exception, offset: int) -> BadInput:
        line = line_of(self.content, offset)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        return BadInput(f"{self.name}: object at line {line}", f"not YAML: {problem}.", AGAIN, UNREADABLE)


def _is_note(kind: str) -> bool:
    """Kinds that are no object of the cluster but say something about the dump."""
    return kind in ("", "Status") or kind.endswith("List")


def split(text: bytes) -> Blocks | None:
    """The text of a block mapping by its keys; None where it is not as plain as kubectl writes it."""
    first = _CONTENT.search(text)
    if first is None:
        return None
    indent = len(first[1])
    blocks: Blocks = {}
    key, begin = b"", -1
    for line in _outer_lines(indent).finditer(b"\n" + text):
        margin, found, other = line.groups()
        if found is None:
            if other[0] == _COMMENT or (begin >= 0 and len(margin) == indent and _LISTED.match(other)):
                continue  # a list may start at the column of its key
            return None
        if len(margin) < indent or found in blocks or found == key:
            return None
        if begin >= 0:
            blocks[key] = text[begin : line.start()]
        key, begin = found, line.end() - 1
    if begin < 0:
        return None
    blocks[key] = text[begin:]
    return blocks


@cache
def _outer_lines(indent: int) -> re.Pattern[bytes]:
    """Lines that start at a column up to `indent`: their margin, and their key or whatever else they hold."""
    return re.compile(rb"\n( {0,%d}+)(?:([A-Za-z0-9_][A-Za-z0-9_./-]*):(?=[ \n]|\Z)|([^ \n][^\n]*))" % indent)


def without(text: bytes, keys: bytes) -> bytes:
    """The text without these keys (space-separated) wherever they stand at the column of the first of them.

    Keys are looked for at the outermost column of the text, in the mappings of an outermost list, and, for a
    whole object, in its metadata.
    """
    first = _CONTENT.search(text)
    if first is None:
        return text
    indent = len(first[1])
    is_list = text[first.end(1) : first.end(1) + 2] == b"- "
    column = indent + 2 if is_list or keys == b"managedFields" else indent
    return _cutter(indent if is_list else -1, column, keys).sub(_keep_dash, text)


def _keep_dash(match: re.Match[bytes]) -> bytes:
    margin = match[1]
    return margin.rstrip() + b"\n" if b"-" in margin else b""


@cache
def _cutter(dash: int, column: int, keys: bytes) -> re.Pattern[bytes]:
    names = b"|".join(re.escape(k) for k in keys.split())
    margin = rb" {%d}" % column + (rb"| {%d}- " % dash if dash >= 0 else b"")
    deeper = rb" {%d}[^\n]*| {%d}-(?: [^\n]*)?|[ \t]*(?:#[^\n]*)?" % (column + 1, column)
    return re.compile(rb"(?m)^(%b)(?:%b):(?: [^\n]*)?\n(?:(?:%b)\n)*+" % (margin, names, deeper))
