"""What `berth ledger` prints: the five boundaries side by side, for nodes in counts, for devices one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from berth.base.units import counted, duration
from berth.model.ledger import Account, Boundary, DeviceLine
from berth.views.tables import QUIET_STYLE, Column, show_whole, signs, table

GIB = 2**30
MOST_NODES = 60  # rows; of more nodes those that part are shown
MOST_BYPASSES = 6


def record(accounts: Sequence[Account], notes: Sequence[str] = ()) -> dict[str, Any]:
    """The stable record. null is a boundary that nobody looked at."""
    return {
        "accounts": [_account_record(one) for one in accounts],
        "equal": sum(one.is_equal for one in accounts),
        "parted": sum(not one.is_equal for one in accounts),
        "notes": list(notes),
    }


def _account_record(one: Account) -> dict[str, Any]:
    return {
        "node": one.node,
        "resource": one.resource,
        "class": one.gpu_class or None,
        "host": one.host,
        "plugin": one.plugin,
        "capacity": one.capacity,
        "allocatable": one.allocatable,
        "requested": one.requested,
        "visible": one.visible,
        "partsAt": _word(one.parts_at),
        "sentence": one.sentence or None,
        "since": one.since or None,
        "devices": [
            {
                "id": line.id,
                "kind": line.kind,
                "index": line.index if line.index >= 0 else None,
                "pci": line.pci or None,
                "parent": line.parent or None,
                "name": line.name or None,
                "host": line.host or None,
                "plugin": line.plugin or None,
                "node": line.node or None,
                "request": line.request or None,
                "visible": line.visible or None,
                "partsAt": _word(line.parts_at),
                "memoryBytes": line.memory_bytes or None,
                "memoryUsedBytes": line.memory_used_bytes if line.memory_bytes else None,
                "peaksBytes": line.peaks_bytes or None,
                "fullInSeconds": round(line.full_in_s) or None,
                "holders": [{"who": who, "bytes": held} for who, held in line.holders],
            }
            for line in one.devices
        ],
        "bypasses": [{"pod": bypass.pod, "how": bypass.how} for bypass in one.bypasses],
    }


def _word(at: Boundary | None) -> str | None:
    return None if at is None else at.name.lower()


def show(accounts: Sequence[Account], screen: Console, wide: bool, *, one_node: bool) -> None:
    """Nodes that part first; in the long form each device, and who reaches devices past the account."""
    if not accounts:
        screen.print("no node with GPUs in what was read")
        return
    ordered = sorted(accounts, key=lambda one: (one.is_equal, one.node, one.resource))
    parted = [one for one in ordered if not one.is_equal]
    equal = ordered[len(parted) :]
    few = wide or len(ordered) <= MOST_NODES
    shown = ordered if few else parted[:MOST_NODES]
    if shown:
        _nodes(shown, screen)
    if not few:
        rest = len(parted) - len(shown)
        words = [f"and {counted(rest, 'more node')} that part"] if rest else []
        words += [f"{counted(len(equal), 'node')} equal as far as they were seen"] if equal else []
        screen.print(Text("; ".join(words) + " (all: -o wide)", style=QUIET_STYLE))
    if parted:
        screen.print()
        for one in parted if few else shown:
            line = Text(f"{one.node} {one.resource} ")
            line.append(f"parts at {_word(one.parts_at)}", style="bold red")
            line.append(f": {one.sentence}" + (f", since {one.since}" if one.since else ""))
            screen.print(line, soft_wrap=True)
    for one in ordered if wide or one_node else ():
        if one.devices:
            screen.print()
            screen.print(Text(f"{one.node}  {one.resource}", style="bold"))
            _devices(one.devices, screen)
    _bypasses(ordered, screen)


def _nodes(accounts: Sequence[Account], screen: Console) -> None:
    columns = (
        Column("NODE"), Column("RESOURCE"), Column("HOST", number=True), Column("PLUGIN", number=True),
        Column("NODE", number=True), Column("REQUEST", number=True), Column("VISIBLE", number=True), Column(""),
    )  # fmt: skip
    dash = signs(screen).dash

    def seen(number: int | None) -> str:
        return dash if number is None else str(number)

    rows = [
        (
            one.node,
            one.resource,
            seen(one.host),
            seen(one.plugin),
            _of(one, dash),
            seen(one.requested),
            seen(one.visible),
            Text("equal", style="green") if one.is_equal else Text(f"parts at {_word(one.parts_at)}", style="bold red"),
        )
        for one in accounts
    ]
    show_whole(screen, table(columns, rows))
    unseen = sum(one.host is None for one in accounts)
    if unseen:
        words = f"{dash} not looked at: hardware, plugin and containers are seen by the node agent"
        screen.print(Text(words, style=QUIET_STYLE))


def _of(one: Account, dash: str) -> str:
    if one.capacity is None and one.allocatable is None:
        return dash
    if one.capacity == one.allocatable:
        return str(one.capacity)
    return f"{dash if one.allocatable is None else one.allocatable} of {one.capacity}"


def _devices(lines: Sequence[DeviceLine], screen: Console) -> None:
    columns = (
        Column("", number=True), Column("DEVICE"), Column("PCI"), Column("HOST"), Column("PLUGIN"), Column("NODE"),
        Column("REQUEST"), Column("VISIBLE"), Column("MEMORY", number=True),
    )  # fmt: skip
    dash = signs(screen).dash
    rows = []
    for line in lines:
        style = "bold red" if line.parts_at is not None else ""
        used, size = line.memory_used_bytes / GIB, line.memory_bytes / GIB
        memory = f"{used:.0f} of {size:.0f} GiB" if line.memory_bytes else dash
        rows.append(
            (
                str(line.index) if line.index >= 0 else "",
                Text(_name(line), style=style),
                line.pci or dash,
                line.host or dash,
                line.plugin or dash,
                line.node or dash,
                line.request or dash,
                line.visible or dash,
                memory,
            )
        )
    show_whole(screen, table(columns, rows, indent=2))
    for line in lines:
        for words in _memory(line):
            screen.print(Text(f"    {_short(line.id)} {words}", style=QUIET_STYLE), soft_wrap=True)


def _memory(line: DeviceLine) -> Iterator[str]:
    """Memory as an account: who shares it, whether their peaks fit together, and when it will be full."""
    if len(line.holders) > 1:
        yield "is held by " + ", ".join(f"{name} {held / GIB:.1f} GiB" for name, held in line.holders[:6])
        if line.peaks_bytes:
            over = ": more than there is" if line.memory_bytes and line.peaks_bytes > line.memory_bytes else ""
            yield f"would need {line.peaks_bytes / GIB:.1f} GiB if all had their peaks at once{over}"
    if line.full_in_s:
        yield f"is full in {duration(line.full_in_s)} if it goes on to grow like this"


def _name(line: DeviceLine) -> str:
    """A replica stands under its device, by its number."""
    return f"  {line.id.removeprefix(line.parent)}" if line.kind == "replica" and line.parent else _short(line.id)


def _short(id: str) -> str:
    """Eight digits of a UUID tell devices of a node apart."""
    return id[:12] if id.startswith(("GPU-", "MIG-")) else id


def _bypasses(accounts: Sequence[Account], screen: Console) -> None:
    found = {(account.node, bypass.pod): bypass for account in accounts for bypass in account.bypasses}
    if not found:
        return
    screen.print()
    words = f"{counted(len(found), 'pod')} reach{'es' if len(found) == 1 else ''} GPUs without asking for them"
    screen.print(Text(words, style="bold yellow"))
    for (node, pod), bypass in list(found.items())[:MOST_BYPASSES]:
        screen.print(f"    {pod} on {node}: {bypass.how}", soft_wrap=True)
    if len(found) > MOST_BYPASSES:
        screen.print(f"    and {len(found) - MOST_BYPASSES} more")
