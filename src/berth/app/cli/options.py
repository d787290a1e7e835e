"""Options that several commands share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar

import click

from berth.app.cli.selector import Selector, parse
from berth.app.cli.streams import say
from berth.base.errors import BadInput
from berth.model.topology import Level

Command = TypeVar("Command", bound=Callable[..., Any])


def named(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    """What is left empty, as by a variable that is not set, would otherwise mean the current folder."""
    if text is not None and not text.strip():
        raise click.BadParameter("it is empty. Write a name.")
    return text


def once(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Of an option that names one thing, given twice, click would take the last and say nothing of the others."""
    if len(given) > 1:
        raise click.BadParameter(f"it was given {len(given)} times ({', '.join(given)}), and one is read. Name one.")
    return named(context, option, given[0]) if given else None


def each_named(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for one in given:
        named(context, option, one)
    return given


@dataclass(frozen=True)
class Where:
    """The cluster that is asked about: a dump, or the live one that kubectl would ask, and how it is read."""

    dump: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    acting_as: str | None = None
    gpu_mapping: str | None = None
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        if self.dump is None:
            return
        for option, value in (("--kubeconfig", self.kubeconfig), ("--context", self.context), ("--as", self.acting_as)):
            if value is not None:
                raise click.UsageError(f"{option} is of a live cluster, --from of a dump. Leave one of them out.")


from_dump = click.option(
    "--from", "dump", type=click.Path(allow_dash=True), metavar="DUMP", multiple=True, callback=once,
    help="A dump in place of the live cluster: file, folder or - with the output of `kubectl get nodes,pods -A "
    "-o json` (or yaml, gzip or not).",
)  # fmt: skip
from_evidence = click.option(
    "--from", "dump", type=click.Path(allow_dash=True), metavar="PATH", multiple=True, callback=once,
    help="Files in place of the live cluster: a kubectl dump, a must-gather, an nvidia-bug-report, a folder of command "
    "outputs, an archive of them (tar, zip; gzip, xz, bzip2); - for standard input.",
)  # fmt: skip
evidence_from = click.option(
    "--evidence", multiple=True, type=click.Path(allow_dash=True), metavar="PATH",
    help='A text, or JSON lines {"kind": "dmesg", "text": "…"}; - for standard input. May be given several times.',
)  # fmt: skip
kubeconfig = click.option(
    "--kubeconfig", type=click.Path(), metavar="FILE", callback=named,
    help="Default: KUBECONFIG, else ~/.kube/config, else the service account of the pod that this runs in.",
)  # fmt: skip
context = click.option(
    "--context", metavar="NAME", callback=named, help="Context of the kubeconfig; default: its current one."
)
acting_as = click.option(
    "--as", "acting_as", metavar="USER", callback=named, help="Ask as this user; needs the right to impersonate."
)


def live(command: Command) -> Command:
    """Options of commands that only a live cluster answers: the command gets `where`."""
    return _bundled(command, (kubeconfig, context, acting_as), ("kubeconfig", "context", "acting_as"))


def of_cluster(command: Command) -> Command:
    """Options of commands that a dump answers, too: the command gets `where`."""
    options = (from_dump, kubeconfig, context, acting_as, gpu_mapping, topology)
    return _bundled(command, options, ("dump", "kubeconfig", "context", "acting_as", "gpu_mapping", "topology"))


def of_evidence(command: Command) -> Command:
    """Options of commands that read any evidence: files, or what a live cluster shows. The command gets `where`."""
    options = (from_evidence, kubeconfig, context, acting_as)
    return _bundled(command, options, ("dump", "kubeconfig", "context", "acting_as"))


def _bundled(command: Command, options: tuple[Callable[[Any], Any], ...], names: tuple[str, ...]) -> Command:
    @wraps(command)
    def called(**given: Any) -> Any:
        taken = {option: given.pop(option) for option in names if option in given}
        if "topology" in taken:
            taken["levels"] = taken.pop("topology")
        return command(where=Where(**taken), **given)

    bundled: Any = called
    for option in reversed(options):
        bundled = option(bundled)
    return bundled  # type: ignore[no-any-return]


gpu_mapping = click.option(
    "--gpu-classes", "gpu_mapping", type=click.Path(), metavar="FILE", multiple=True, callback=once,
    help="YAML that maps node labels to GPU classes, where nodes do not tell.",
)  # fmt: skip


def _topology(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[Level, ...]:
    """`block=example.com/block,rack=example.com/rack`, from wide to narrow; a label alone is its own name."""
    text = once(context, option, given)
    if text is None:
        return ()
    levels = []
    for part in text.split(","):
        name, sign, label = (piece.strip() for piece in part.partition("="))
        if not name or (sign and not label):
            raise click.BadParameter(
                f"{part.strip()!r} is no level. Write name=label, from wide to narrow: block=example.com/block,rack=…"
            )
        levels.append(Level(name, label or name))
    if len({level.name for level in levels}) < len(levels):
        raise click.BadParameter("a level is named twice. Give each its own name.")
    return tuple(levels)


topology = click.option(
    "--topology", metavar="LEVELS", multiple=True, callback=_topology,
    help="Levels as name=label,… from wide to narrow, in place of those that the nodes are known to carry.",
)  # fmt: skip
job = click.option(
    "-f", "--filename", "filenames", type=click.Path(allow_dash=True), required=True, multiple=True, metavar="JOB",
    callback=each_named, help="Manifest of the job; - for standard input. May be given several times.",
)  # fmt: skip
namespace = click.option(
    "-n", "--namespace", metavar="NAME", callback=named,
    help="Namespace; default: the one of the manifest, of the context where it names none.",
)  # fmt: skip
in_namespace = click.option(
    "-n", "--namespace", metavar="NAME", callback=named,
    help="Only this namespace; default: that of the context, of a dump all.",
)  # fmt: skip
all_namespaces = click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
watch = click.option("-w", "--watch", is_flag=True, help="Look again and again, and show what has changed.")


def _selector(_: click.Context, __: click.Parameter, text: str | None) -> Selector:
    try:
        return parse(text or "")
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


labels = click.option(
    "-l", "--selector", metavar="LABELS", callback=_selector,
    help="Only nodes with these labels: zone=a,gpu!=l4,rack in (r1,r2),!spot.",
)  # fmt: skip
level = click.option(
    "--by", "level", metavar="LEVEL", callback=named,
    help="A row for each domain of this level (rack, block, … or its label).",
)  # fmt: skip


def output(*formats: str) -> Callable[[Command], Command]:
    """`-o`, the first format being the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="Output format."
    )


def now_s() -> float:
    """Seconds since the epoch: the clock's, or what BERTH_NOW says, so that an answer can be had again."""
    text = os.environ.get("BERTH_NOW", "").strip()
    if not text:
        return time.time()
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise BadInput("BERTH_NOW", f"{text!r} is no time.", "Write it as 2026-01-31T12:00:00Z.") from None


def say_notes(notes: tuple[str, ...], most: int = 10) -> None:
    """What could not be seen, on stderr."""
    for note in notes[:most]:
        say(f"note: {note}")
    if len(notes) > most:
        say(f"note: and {len(notes) - most} more (all in -o json)")
