"""What proves a mending: the commands of a finding's `verify` that only look, and whether their output shows what it
must. Whatever is not known to change nothing is no check: a person runs it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Place = Literal["cluster", "node"]  # anywhere with the rights; on the machine that the finding is about
Shown = Literal["yes", "no", "read it"]  # "read it": what it must show is said in words that a person has to judge

_PCI = r"[0-9A-Fa-f:.]+"
_NAME = r"[A-Za-z0-9][\w./@-]*"
_VALUE = r"[A-Za-z0-9][\w./=,!-]*"  # of an option: no word of its own, and no option
# The whole command has to match, word by word: of most programs some option changes the machine.
_ON_A_NODE = tuple(
    re.compile(form)
    for form in (
        rf"nvidia-smi( -L| -i {_PCI}| topo -m| mig -(lgi|lci|lgip)| nvlink -[se]( -i {_PCI})?)?",
        rf"nvidia-smi -q( -d [A-Z_,]+)?( -i {_PCI})?",
        r"nvidia-smi --query-gpu=[\w.,]+ --format=csv(,no\w+)*",
        r"lspci( -[knvD]+)*( -d 10de:)?",
        r"dmesg( -T)?|lsmod",
        r"ls( -[ald]+)? /(dev|proc|sys|run|etc|usr)(/[\w.-]+)*(/[\w.-]*\*?)?( /dev/nvidia[\w-]*)*",
        r"cat /(proc/driver/nvidia/[\w./-]+|proc/cmdline|sys/(kernel/mm|module|bus/pci|class)/[\w./:-]+)",
        rf"systemctl is-active {_NAME}",
        rf"modinfo( -F [a-z]+)? {_NAME}",
        r"nvidia-ctk cdi list|nvidia-container-cli info|crictl info|containerd config dump",
        r"dcgmi (health -c|discovery -l)",
    )
)
_IN_THE_CLUSTER = tuple(
    re.compile(form)
    for form in (
        rf"kubectl (get|describe) [a-z][a-z.,]*( {_NAME})?"
        rf"( (-n|-L) {_NAME}| (-l|--field-selector) {_VALUE}| -A| -o (wide|yaml|json|jsonpath=\S+)| --show-labels)*",
        rf"kubectl logs( -n {_NAME})? -l {_VALUE}",
    )
)
_WORD = re.compile(r"[\w./:=,@*{}!+-]+", re.ASCII)  # nothing that a shell, or another splitting, reads differently
_SECRETS = re.compile(r"secret", re.IGNORECASE)
_PLACES = re.compile(r"\b(NODE|PCI|RESOURCE|NAMESPACE|POD)\b")  # a name that the finding did not know
_NODE_FIRST = re.compile(r"on [\w.-]+: ")
_BETWEEN = re.compile(r"\s?:\s")
_STATES = frozenset(("active", "ready", "success", "upgrade-done", "allocated,reserved"))
_SOMETHING = frozenset(("loaded", "listed", "there", "the handler is there"))  # any line that is left
_LITERAL = re.compile(r"\d+|[A-Z]\w+( [A-Z]\w+)*")
_THERE = re.compile(r"(\S+) is there")
_ABSENT = re.compile(r"(?:no|none) (?:'([^']+)'|([A-Z]\w+!?)(?=$| in | that ))")


class Check(Struct, frozen=True):
    """A command that changes nothing. `filters` are what its output is piped through: grep and wc."""

    command: tuple[str, ...]
    filters: tuple[tuple[str, ...], ...]
    expected: str  # as the finding says it; "" where only the look matters
    at: Place

    @property
    def words(self) -> str:
        return " | ".join(shlex.join(part) for part in (self.command, *self.filters))


def checks_of(verify: Iterable[str]) -> tuple[Check, ...]:
    """Those steps of a finding's `verify` that can be run unasked, in their order."""
    return tuple(check for step in verify for part in step.split("; ") if (check := _check(part)) is not None)


def _check(step: str) -> Check | None:
    words, _, expected = _split(_NODE_FIRST.sub("", step, count=1).strip())
    if _PLACES.search(words):
        return None
    first, *rest = words.split(" | ")
    command = _command(first)
    filters = tuple(_filter(part) for part in rest)
    if command is None or None in filters:
        return None
    spoken = " ".join(command)
    at: Place
    if any(form.fullmatch(spoken) for form in _ON_A_NODE):
        at = "node"
    elif any(form.fullmatch(spoken) for form in _IN_THE_CLUSTER):
        at = "cluster"
    else:
        return None
    return Check(command, tuple(part for part in filters if part is not None), expected, at)


def _command(text: str) -> tuple[str, ...] | None:
    """Its words; None where one is more than a plain word, leads out of a folder, or is about a secret."""
    if "\\" in text or not text.isprintable():
        return None
    words = _words(text)
    if not words or not all(map(_WORD.fullmatch, words)) or ".." in text or "**" in text:
        return None
    return None if _SECRETS.search(" ".join(words)) else words


def _filter(text: str) -> tuple[str, ...] | None:
    """`wc -l`, or grep with a pattern and no file: it reads what it is given and nothing else."""
    words = _words(text) if text.isprintable() else ()
    if words == ("wc", "-l"):
        return words
    if not words or words[0] != "grep":
        return None
    patterns, left = 0, list(words[1:])
    while left:
        word = left.pop(0)
        if word in ("-c", "-i", "-v", "-E") or re.fullmatch(r"-[AB]\d{1,3}", word):
            continue
        if word in ("-A", "-B") and left and left[0].isdigit():
            left.pop(0)
        elif word == "-e" and left:
            left.pop(0)
            patterns += 1
        elif not word.startswith("-") and not patterns and not left:
            patterns += 1
        else:
            return None
    return words if patterns else None


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError:  # an open quotation mark
        return ()


def _split(step: str) -> tuple[str, str, str]:
    between = _BETWEEN.search(step)
    return (step, "", "") if between is None else (step[: between.start()], ":", step[between.end() :].strip())


def shows(check: Check, output: str) -> Shown:
    """Whether the output holds what the check names literally: a number, a state, quoted words, or must not hold. Of a
    table of `kubectl get` each row has to."""
    lines = output.strip().splitlines()
    if check.expected in _SOMETHING:
        return "yes" if lines else "no"
    if check.expected.isdigit() and check.filters:
        return "yes" if output.strip() == check.expected else "no"
    if absent := _ABSENT.match(check.expected):
        return "no" if _holds(output, absent[1] or absent[2]) else "yes"
    wanted = _wanted(check.expected)
    if not wanted:
        return "read it"
    rows = lines[1:] if check.command[:2] == ("kubectl", "get") and len(lines) > 1 and lines[0].isupper() else [output]
    return "yes" if lines and all(_holds(row, word) for row in rows for word in wanted) else "no"


def _wanted(expected: str) -> tuple[str, ...]:
    """The words that stand for themselves; none where a person has to judge."""
    if quoted := re.findall(r"'([^']+)'", expected):
        return tuple(quoted)
    if there := _THERE.fullmatch(expected):
        return (there[1],)
    words = tuple(expected.split(", "))
    return words if all(word in _STATES or _LITERAL.fullmatch(word) for word in words) else ()


def _holds(text: str, word: str) -> bool:
    """As words of their own: "NotReady" is not "Ready". "Pending No" is a name and its value, as `nvidia-smi -q` prints
    them; "ADMITTED True" a column and a value in it."""
    name, _, value = word.partition(" ")
    if value in ("True", "False"):
        form = value
    elif value:
        form = rf"{re.escape(name)}(\s*:)?\s+{re.escape(value)}"
    else:
        form = re.escape(word)
    return re.search(rf"(?<![\w-]){form}(?![\w-])", text) is not None
