"""`berth agent`: what one machine shows of its GPUs, judged, and written to the objects of its own node."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from berth.app.cli.options import context, kubeconfig, named, output
from berth.app.cli.scheduler import values_given, values_told
from berth.app.cli.streams import say
from berth.base.errors import UNREADABLE, BadInput, unwritten

if TYPE_CHECKING:
    from berth.app.agent.configuration import Configured
    from berth.evidence.fact import Fact
    from berth.kube.access import Access
    from berth.node.keeper import Report


class _Told(click.Group):
    """`--help` lists every value of the configuration with its default and what it means."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from berth.app.agent.configuration import configure
        from berth.app.agent.meanings import MEANINGS

        values_told(configure().sources, MEANINGS, formatter)


config = click.option(
    "--config", type=click.Path(), metavar="FILE", envvar="BERTH_AGENT_CONFIG", callback=named,
    help="The configuration: one YAML object, AgentConfiguration. Also BERTH_AGENT_CONFIG.",
)  # fmt: skip
settings = click.option(
    "--set", "values", multiple=True, metavar="PATH=VALUE", callback=values_given,
    help="One value of the configuration; goes before the file and before variables. May be repeated.",
)  # fmt: skip
no_cluster = click.option(
    "--no-cluster", is_flag=True, help="Ask and write no API server; only the machine is looked at."
)


@click.group(cls=_Told, invoke_without_command=True)
@config
@settings
@kubeconfig
@context
@no_cluster
@click.option("--once", is_flag=True, help="Look once, print what is seen, write nothing.")
@output("table", "wide", "json", "yaml")
@click.pass_context
def agent(
    ctx: click.Context,
    config: str | None,
    values: dict[str, str],
    kubeconfig: str | None,
    context: str | None,
    no_cluster: bool,
    once: bool,
    output: str,
) -> None:
    """Watch this machine's GPUs and keep its NodeLedger, until SIGTERM. A DaemonSet runs it on every node with GPUs.

    It restarts and resets nothing. On a machine without a GPU it says so and writes nothing. What cannot be seen (no
    driver, no kubelet, a socket that does not answer) is named, and never taken for an absence.

    Exit code of --once: 0 fit, and all boundaries are equal; 1 not; 2 usage; 3 nothing could be seen.
    """
    ctx.obj = (config, values)
    if ctx.invoked_subcommand is not None:
        return
    configured = _configured(config, values, machine=once)
    if once:
        report, notes = _once(configured, kubeconfig, context, no_cluster)
        _print(report, notes, output)
        return
    from berth.app.agent.run import main
    from berth.app.scheduler import logs
    from berth.kube.find_access import load_access

    logs.start(configured.value.log_level, configured.value.log_format)
    access = None if no_cluster else load_access(kubeconfig, context)
    sys.exit(main(configured, access))


@agent.command()
@click.argument("target", type=click.Path(), metavar="DIR|FILE.tar.gz", callback=named)
@click.option("--no-commands", is_flag=True, help="Files only; no program of the machine is run.")
@kubeconfig
@context
@no_cluster
@click.pass_obj
def bundle(
    given: tuple[str | None, dict[str, str]],
    target: str,
    no_commands: bool,
    kubeconfig: str | None,
    context: str | None,
    no_cluster: bool,
) -> None:
    """Write all evidence of this machine into a folder or an archive, for `berth doctor --from` and `berth ledger
    --from`.

    The kernel log, the driver's files, the kubelet's checkpoint, configuration of the container runtime, CDI
    specifications, outputs of nvidia-smi and lspci, and the NodeLedger. It names pods, and holds no secret that a
    file of these does not hold.
    """
    import msgspec

    from berth.app.agent.configuration import node_of, places_of
    from berth.app.agent.show import record
    from berth.node.bundle import entries, write

    configured = _configured(*given, machine=True)
    report, notes = _once(configured, kubeconfig, context, no_cluster)
    ledger = msgspec.json.format(msgspec.json.encode(record(report)), indent=2)
    node, places = node_of(configured.value, os.environ), places_of(configured.value)
    try:
        count, missing = write(Path(target), entries(places, node, ledger, runs_commands=not no_commands))
    except OSError as error:
        raise unwritten(target, error, "Name a folder that you may write to.") from None
    for note in notes:
        say(f"note: {note}")
    for one in missing:
        say(f"note: {one.what} is not in it: {one.why}")
    click.echo(f"{target}: {count} files of {node}")


@agent.command()
@click.option(
    "--plugin", "resource", metavar="RESOURCE", help="Only the plugin of this resource, such as nvidia.com/gpu."
)
@click.option(
    "--list/--no-list", "lists", default=True,
    help="Ask for the devices, too. It opens a stream beside the kubelet's: NVIDIA's plugin may tell its next change "
    "of health to it and not to the kubelet. --no-list only finds out whether it answers.",
)  # fmt: skip
@output("table", "json")
@click.pass_obj
def probe(given: tuple[str | None, dict[str, str]], resource: str | None, lists: bool, output: str) -> None:
    """Ask the device plugins of this machine on their own sockets.

    Exit code: 0 all answer with healthy devices, 1 one does not, 3 there is none to be asked.
    """
    from berth.app.agent.probing import probed, show_probed

    configured = _configured(*given, machine=True)
    found, problem = probed(configured.value, resource or "", lists)
    if not found:
        what = f"no plugin of {resource} has a socket" if resource else "no device plugin has a socket"
        raise BadInput("", f"{problem or what}.", "See the folder device-plugins of the kubelet.", UNREADABLE)
    show_probed(found, output)
    is_well = all(not one.asked.problem and all(each.is_healthy for each in one.asked.devices or ()) for one in found)
    sys.exit(0 if is_well else 1)


def _configured(config: str | None, values: dict[str, str], *, machine: bool) -> Configured:
    """`machine`: typed by a person on the machine itself, whose root is / where nothing else is said."""
    from difflib import get_close_matches
    from importlib.util import find_spec

    if find_spec("grpc") is None:
        remedy = "Install it with: pip install 'berth[agent]'"
        raise BadInput("berth agent", "grpcio is not installed.", remedy, UNREADABLE)
    from berth.app.agent.configuration import configure

    known = [path for path, _, _ in configure().sources]
    for path in values:
        if path not in known:
            close = get_close_matches(path, known, 3, 0.5)
            raise click.UsageError(f"--set {path}: there is no such value. Known are {', '.join(close or known)}.")
    found = configure(config, values, os.environ)
    if machine and found.where("paths.root") == "paths.root" and not Path(found.value.paths.root).is_dir():
        return configure(config, {**values, "paths.root": "/"}, os.environ)
    return found


def _once(
    configured: Configured, kubeconfig: str | None, context: str | None, no_cluster: bool
) -> tuple[Report, list[str]]:
    """One look, with the Node object where a cluster can be asked."""
    from berth.app.agent.configuration import looking_of, node_of, places_of
    from berth.kube.find_access import load_access
    from berth.node.keeper import Keeper
    from berth.node.look import Machine

    node = node_of(configured.value, os.environ)
    notes: list[str] = []
    beside: tuple[Fact, ...] = ()
    if not no_cluster:
        try:
            beside = _of_node(load_access(kubeconfig, context), node, notes)
        except BadInput as error:
            if kubeconfig or context:
                raise
            notes.append(f"the Node object was not read: {error.sentence}")
    machine = Machine(places_of(configured.value), node, looking_of(configured.value))
    try:
        return Keeper(machine).step(beside), notes
    finally:
        machine.close()


def _of_node(access: Access, node: str, notes: list[str]) -> tuple[Fact, ...]:
    import asyncio

    from berth.evidence.formats.objects import CUT_OUT
    from berth.evidence.piece import Piece
    from berth.evidence.read import read
    from berth.kube.errors import ApiError
    from berth.kube.few import FewRequests

    async def ask() -> bytes:
        async with FewRequests(access, user_agent="berth-cli") as client:
            return await client.request("GET", f"/api/v1/nodes/{node}", timeout_s=10.0, most_attempts=2)

    try:
        return tuple(read([Piece(asyncio.run(ask()), f"Node {node}", CUT_OUT, node)]))
    except ApiError as error:
        notes.append(f"the Node object was not read: {error.sentence}")
        return ()


def _print(report: Report, notes: list[str], output: str) -> None:
    from berth.app.agent.show import code_of, record, show
    from berth.app.cli.frames import Frame, emit

    frame = Frame(
        record=record(report),
        draw=lambda screen, wide: show(report, screen, wide),
        notes=tuple(notes),
        code=code_of(report),
    )
    emit(frame, output)
    sys.exit(frame.code)
