"""`berth preflight`: is this cluster ready for Berth, and what is missing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from berth.app.cli.options import Where, gpu_mapping, live, named, now_s, output, topology
from berth.app.cli.streams import say
from berth.model.topology import Level

if TYPE_CHECKING:
    from berth.app.cli.live import Connection
    from berth.app.scheduler.preflight import Found


@click.command()
@live
@click.option(
    "--service-account", metavar="NAMESPACE/NAME", callback=named,
    help="Whose rights are looked at; default: those of whoever asks.",
)  # fmt: skip
@click.option("--config", type=click.Path(), metavar="FILE", callback=named, help="Configuration of the scheduler.")
@click.option("--shadow", is_flag=True, help="As for `berth scheduler --shadow`, which needs no right to write.")
@gpu_mapping
@topology
@output("table", "json", "yaml")
def preflight(
    where: Where,
    service_account: str | None,
    config: str | None,
    shadow: bool,
    gpu_mapping: str | None,
    topology: tuple[Level, ...],
    output: str,
) -> None:
    """What Berth needs of this cluster: rights, kinds, labels, and who else schedules here.

    Nothing is written. Exit code: 0 all is well, 1 findings, 3 the cluster, or a part of it, cannot be seen.
    """
    from berth.app.cli.frames import Frame, emit
    from berth.app.cli.live import ask
    from berth.app.scheduler.configuration import configure
    from berth.app.scheduler.preflight import gather
    from berth.app.scheduler.preflight_checks import checks_of, exit_code
    from berth.sources.assemble import mapping_in
    from berth.views import preflight as view

    account = _account(service_account)
    configured = configure(config, {}, os.environ)
    configuration = configured.value
    for sentence in configured.unknown:
        say(f"note: {sentence}")
    mapping = mapping_in(gpu_mapping) if gpu_mapping else configured.mapping
    levels = topology or tuple(Level(level.name, level.label) for level in configuration.topology.levels)

    async def work(connection: Connection) -> tuple[Found, str]:
        namespace = account[0] if account else connection.access.namespace
        found = await gather(
            connection.client, connection.served, configuration, now_s=now_s(), namespace=namespace,
            service_account=account, shadow=shadow, mapping=mapping, levels=levels,
        )  # fmt: skip
        return found, connection.access.server

    found, server = ask(where, work)
    checks = checks_of(found)
    version = found.served.server.git_version
    emit(Frame(view.record(checks, server, version, found.who), lambda screen, wide: view.show(checks, screen)), output)
    sys.exit(exit_code(checks))


def _account(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    namespace, slash, name = text.partition("/")
    if not slash or not namespace or not name:
        raise click.BadParameter(f"{text!r} is no service account. Write NAMESPACE/NAME.")
    return namespace, name
