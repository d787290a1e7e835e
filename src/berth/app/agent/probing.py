"""`berth agent probe`: device plugins asked on their own sockets, and their answers printed."""

from __future__ import annotations

import msgspec

from berth.app.agent.configuration import places_of
from berth.app.agent.settings import Configuration
from berth.evidence.formats.boundary_facts import KubeletOffers
from berth.evidence.read import read
from berth.node import kubelet, plugins
from berth.node.look import resources_of
from berth.node.places import Places
from berth.node.plugins import Served
from berth.node.seen import parted


def probed(value: Configuration, resource: str, lists: bool) -> tuple[list[Served], str]:
    """The plugins with their answers, of `resource` where one is named; then why there are none to be asked."""
    places = places_of(value)
    timeout_s = value.looks.socket_seconds
    facts, pieces, _ = parted(kubelet.look(places, timeout_s=timeout_s))
    known = read(pieces)
    for fact in facts:
        if isinstance(fact, KubeletOffers):
            known.add(fact)
    asked, problem = plugins.look(places, timeout_s)
    found = plugins.served(asked, resources_of(known))
    wanted = [one for one in found if not resource or one.resource == resource]
    if not lists:
        return wanted, problem
    return [one if one.asked.problem else _listed(places, one, timeout_s) for one in wanted], problem


def _listed(places: Places, one: Served, timeout_s: float) -> Served:
    """The same plugin, with its list."""
    path = places.device_plugins / one.asked.socket
    return Served(plugins.ask(path, timeout_s, with_list=True), one.resource)


def record(found: list[Served]) -> list[dict[str, object]]:
    return [
        {
            "resource": one.resource or None,
            "socket": one.asked.socket,
            "answers": not one.asked.problem,
            "problem": one.asked.problem or None,
            "devices": None
            if one.asked.devices is None
            else [{"id": each.id, "healthy": each.is_healthy, "numa": each.numa} for each in one.asked.devices],
        }
        for one in found
    ]


def show_probed(found: list[Served], output: str) -> None:
    import click

    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode({"plugins": record(found)}), indent=2).decode())
        return
    for one in found:
        head = f"{one.resource or '?'} ({one.asked.socket})"
        if one.asked.problem:
            click.echo(f"{head}: {one.asked.problem}")
            continue
        devices = one.asked.devices
        if devices is None:
            click.echo(f"{head}: answers")
            continue
        click.echo(f"{head}: answers, {sum(each.is_healthy for each in devices)} healthy of {len(devices)}")
        for each in devices:
            click.echo(f"    {each.id}  {'healthy' if each.is_healthy else 'UNHEALTHY'}")
