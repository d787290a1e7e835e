"""`berth scheduler`: schedule a cluster, or, in shadow, report what would have been done."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence

import click

from berth.app.cli.compiled import kept_for_now
from berth.app.cli.options import context, kubeconfig, named


class _Told(click.Command):
    """`--help` lists every value of the configuration with its default and what it means."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from berth.app.scheduler.configuration import configure
        from berth.app.scheduler.meanings import MEANINGS

        values_told(configure().sources, MEANINGS, formatter)


def values_told(
    sources: Sequence[tuple[str, str, str]], meanings: Mapping[str, str], formatter: click.HelpFormatter
) -> None:
    """Each value as --set takes it, with its default and what it means."""
    defaults = {path: ",".join(json.loads(value)) if value[:1] == "[" else value for path, value, _ in sources}
    with formatter.section("Values for --set, with their defaults"):
        formatter.write_dl([(f"{path}={defaults[path]}", words) for path, words in meanings.items()])


def values_given(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        path, sign, value = text.partition("=")
        if not sign or not path.strip():
            raise click.BadParameter(f"{text!r} sets nothing. Write path=value, such as batch.windowMs=5.")
        if path.strip() in found:
            raise click.BadParameter(f"{path.strip()} is set twice. Leave one of them out.")
        found[path.strip()] = value
    return found


@click.command(cls=_Told)
@click.option(
    "--config", type=click.Path(), metavar="FILE", envvar="BERTH_CONFIG", callback=named,
    help="The configuration: one YAML object, SchedulerConfiguration. Also BERTH_CONFIG.",
)  # fmt: skip
@click.option(
    "--set", "values", multiple=True, metavar="PATH=VALUE", callback=values_given,
    help="One value of the configuration; goes before the file and before variables. May be repeated.",
)  # fmt: skip
@click.option(
    "--scheduler-name", "names", multiple=True, metavar="NAME", callback=lambda _, __, given: given,
    help="Serve pods with this spec.schedulerName. May be repeated. The same as --set schedulerNames=NAME,…",
)  # fmt: skip
@kubeconfig
@context
@click.option("--shadow", is_flag=True, help="Write nothing; report what would have been placed, where, and said.")
@click.option("--no-leader-election", is_flag=True, help="Decide at once. Never with two replicas.")
def scheduler(
    config: str | None,
    values: dict[str, str],
    names: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    shadow: bool,
    no_leader_election: bool,
) -> None:
    """Schedule the pods that name Berth in spec.schedulerName, until SIGTERM.

    Each value of the configuration comes from a flag, else from a variable (BERTH_BATCH_WINDOW_MS for
    batch.windowMs), else from the file, else it is the default; all are logged at start with where they came from.
    Exit code: 0 ended by a signal, 2 a bad configuration, a port in use or another Berth for the same name, 3 no way
    to the cluster.
    """
    kept_for_now()
    from berth.app.cli.refusals import as_input
    from berth.app.scheduler import logs
    from berth.app.scheduler.configuration import configure
    from berth.kube.errors import ApiError
    from berth.kube.find_access import load_access

    configured = configure(config, _flags(values, names, shadow, no_leader_election), os.environ)
    logs.start(configured.value.log_level, configured.value.log_format)
    access = load_access(kubeconfig, context)
    from berth.app.scheduler.run import main

    try:
        sys.exit(main(configured, access, shadow))
    except ApiError as error:
        raise as_input(error, access) from None


def _flags(values: dict[str, str], names: tuple[str, ...], shadow: bool, no_election: bool) -> dict[str, str]:
    """What the flags say, by path. A path that there is not, and one that is said twice, is a usage error."""
    from berth.app.scheduler.configuration import configure

    known = [path for path, _, _ in configure().sources]
    for path in values:
        if path not in known:
            from difflib import get_close_matches

            close = get_close_matches(path, known, 3, 0.5)
            raise click.UsageError(f"--set {path}: there is no such value. {_likely(close or known)}")
    flags = dict(values)
    if names:
        _once(flags, "schedulerNames", ",".join(names), "--scheduler-name")
    if no_election or shadow:
        # Who only looks on holds no Lease, and takes none from who decides.
        option = "--no-leader-election" if no_election else "--shadow"
        _once(flags, "leaderElection.enabled", "false", option)
    return flags


def _once(flags: dict[str, str], path: str, value: str, option: str) -> None:
    if flags.get(path, value).lower() != value:
        raise click.UsageError(f"{option} and --set {path}={flags[path]} say different things. Leave one of them out.")
    flags[path] = value


def _likely(paths: list[str]) -> str:
    return f"Perhaps {' or '.join(paths)}." if len(paths) <= 3 else f"Known are {', '.join(paths)}."
