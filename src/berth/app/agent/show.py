"""What `berth agent --once` prints: the machine's devices with their state, the ledger, and what could not be seen."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from berth.evidence.formats.node_ledger import GROUP, KIND, VERSION, DeviceSaid
from berth.node.keeper import Report
from berth.node.policy import State
from berth.views import ledger
from berth.views.tables import QUIET_STYLE, Column, show_whole, signs, table

GIB = 2**30
_STYLES = {"Fit": "green", "Suspect": "yellow", "Unfit": "bold red", "Unknown": "yellow"}


def record(report: Report) -> dict[str, Any]:
    """The NodeLedger as the agent would write it: `--from` of doctor and ledger reads it."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {"name": report.looked.node},
        "status": msgspec.to_builtins(report.status),
    }


def code_of(report: Report) -> int:
    """0 fit and equal, 1 not, 3 nothing could be seen."""
    if report.looked.not_seen and not len(report.looked.facts):
        return 3
    is_fine = report.status.state == State.Fit.value and all(one.is_equal for one in report.accounts)
    return 0 if is_fine else 1


def show(report: Report, screen: Console, wide: bool) -> None:
    status = report.status
    line = Text(f"{report.looked.node}  ")
    line.append(status.state, style=_STYLES.get(status.state, ""))
    line.append(f"  {status.code}" if status.code else "")
    line.append(f"  driver {status.driver.version}" if status.driver.version else "")
    screen.print(line)
    if status.message:
        screen.print(Text(f"    {status.message}"), soft_wrap=True)
    if not report.has_gpus:
        counts = ", ".join(f"{one.by} {one.count}" for one in status.counts)
        # Files of a driver are absent where it is not loaded, too: the bus and NVML alone know that there is no GPU.
        is_known = any(one.by in ("lspci", "nvml") for one in status.counts)
        unseen = f"whether this machine has a GPU could not be seen ({counts or 'nothing could count them'})"
        screen.print(f"no GPU on this machine ({counts})" if is_known else unseen, soft_wrap=True)
    if status.devices:
        screen.print()
        _devices(status.devices, screen)
    if report.accounts:
        screen.print()
        ledger.show(report.accounts, screen, wide, one_node=wide)
    _plugins(report, screen)
    if report.diagnosis.findings:
        screen.print()
        for one in report.diagnosis.findings:
            screen.print(Text(f"{one.code}  {one.subject}: {one.cause}"), soft_wrap=True)
        screen.print(Text("berth doctor says how each is mended", style=QUIET_STYLE))
    if report.looked.not_seen:
        screen.print()
        for missing in report.looked.not_seen:
            screen.print(Text(f"not seen: {missing.what}: {missing.why}", style=QUIET_STYLE), soft_wrap=True)


def _devices(devices: tuple[DeviceSaid, ...], screen: Console) -> None:
    columns = (
        Column("", number=True), Column("DEVICE"), Column("PCI"), Column("PRODUCT"), Column("STATE"), Column("CODE"),
        Column("MEMORY", number=True), Column("MIG"),
    )  # fmt: skip
    dash = signs(screen).dash
    rows = []
    for one in devices:
        memory = f"{one.memory_used_bytes / GIB:.0f} of {one.memory_bytes / GIB:.0f} GiB" if one.memory_bytes else dash
        rows.append(
            (
                "" if one.index is None else str(one.index),
                one.uuid[:12] or dash,
                one.pci,
                one.name or dash,
                Text(one.state, style=_STYLES.get(one.state, "")),
                one.code or dash,
                memory,
                ", ".join(part.profile for part in one.partitions) or dash,
            )
        )
    show_whole(screen, table(columns, rows))


def _plugins(report: Report, screen: Console) -> None:
    if not report.looked.plugins:
        return
    screen.print()
    for one in report.looked.plugins:
        asked = one.asked
        if asked.problem:
            said, style = asked.problem, "bold red"
        elif asked.devices is None:
            said, style = "answers", ""
        else:
            healthy = sum(device.is_healthy for device in asked.devices)
            said, style = f"answers: {healthy} healthy of {len(asked.devices)}", ""
        screen.print(Text(f"plugin {one.resource or '?'} ({asked.socket}): ").append(said, style=style), soft_wrap=True)
