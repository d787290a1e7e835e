"""`berth`: the commands, loaded when they are called, and the one place where errors become sentences."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from berth import __version__
from berth.app.cli.streams import drop_output, prepare, say
from berth.base.errors import BadInput

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERNAL = 70  # EX_SOFTWARE
UNWRITTEN = 74  # EX_IOERR
INTERRUPTED = 130
UNREAD = 141  # as if by SIGPIPE: neither "it fits" nor "it does not"

# name: (where the command is, what it does in a line)
COMMANDS: dict[str, tuple[str, str]] = {
    "check": ("berth.app.cli.check:check", "Would this job start now? If not, why, and what would unlock it."),
    "why": ("berth.app.cli.why:why", "Why does this workload wait, or where does it run?"),
    "queue": ("berth.app.cli.queue:queue", "Who waits where, in which order, and why."),
    "nodes": ("berth.app.cli.capacity:nodes", "GPUs by node: total, healthy, allocated, free."),
    "free": ("berth.app.cli.capacity:free", "What is free by GPU class and domain, and the largest gang that fits."),
    "doctor": ("berth.app.cli.doctor:doctor", "What is broken, at which layer, how we know, and what to do."),
    "ledger": ("berth.app.cli.ledger:ledger", "Does the account equal the hardware, and where does it part?"),
    "verify": ("berth.app.cli.verify:verify", "Does the same look find it again? What a record of the doctor says."),
    "agent": ("berth.app.cli.agent:agent", "Watch this machine's GPUs and keep its NodeLedger."),
    "preflight": ("berth.app.cli.preflight:preflight", "Is this cluster ready for Berth, and what is missing?"),
    "scheduler": ("berth.app.cli.scheduler:scheduler", "Schedule a cluster, or report what would have been done."),
    "up": ("berth.app.cli.up:up", "A built-in cluster, alive: what runs where, who waits and why, what happens."),
    "simulate": ("berth.app.cli.simulate:simulate", "Place a built-in day, or a public trace, and report."),
    "data": ("berth.app.cli.data:data", "The public traces: source, licence, hash."),
}


def _meant(name: str) -> str:
    """Commands that are spelt much alike, as click says it of options; else all of them."""
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, 3, 0.6)
    if not close:
        return f"Commands: {', '.join(COMMANDS)}."
    return f"Did you mean {' or '.join(repr(one) for one in close)}?"


class _ReaderGone(Exception):
    """Whoever read the output has seen enough. Click would make exit code 1 of it, which says that a job does
    not fit."""


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise _ReaderGone from None


class _Lazy(click.Group):
    """Commands whose modules are imported when they are called: `--help` imports none of them."""

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _told_apart():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _told_apart():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands without importing them; options as ever."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(name, help=does) for name, (_, does) in COMMANDS.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, does) for name, (_, does) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            ctx.fail(f"No such command {args[0]!r}. {_meant(args[0])}")


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="berth")
def cli() -> None:
    """The GPU scheduler and ledger for Kubernetes: who gets which GPU, and why.

    Exit codes: 0 fine, 1 a finding or it does not fit, 2 usage or a bad manifest, 3 the truth could not be seen.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Nothing ends in a traceback; BERTH_TRACEBACK=1 shows it to those who mend Berth."""
    # What the imports made lives as long as the process; a short command need not look at it again.
    gc.freeze()
    prepare()
    name = os.path.basename(sys.argv[0])  # noqa: PTH119
    prog = "kubectl berth" if name.startswith("kubectl-") else "berth"
    try:
        code = cli.main(args=arguments, prog_name=prog, standalone_mode=False) or 0
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.exit(code)
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        drop_output()
        sys.exit(INTERRUPTED)
    except BadInput as error:
        say(f"berth: {error.sentence}")
        sys.exit(error.exit_code)
    except (_ReaderGone, BrokenPipeError):
        drop_output()
        sys.exit(UNREAD)
    except Exception as error:
        if os.environ.get("BERTH_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            drop_output()
            say(f"berth: {error.filename or 'output'}: cannot be written: {error.strerror}. Make room and try again.")
            sys.exit(UNWRITTEN)
        say(
            f"berth: a fault of Berth's own: {type(error).__name__}: {error}. "
            "Please report it, with the output of the same command under BERTH_TRACEBACK=1."
        )
        sys.exit(INTERNAL)


if __name__ == "__main__":
    main()
