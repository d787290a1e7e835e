"""The agent put together: looks, judges, writes, until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import time
from contextlib import suppress

from berth.app.agent.configuration import Configured, looking_of, node_of, places_of
from berth.app.agent.server import Server
from berth.app.memory import keep_small, trim
from berth.evidence.fact import Fact
from berth.kube.access import Access
from berth.kube.few import FewRequests
from berth.node.keeper import Keeper, Report
from berth.node.look import Machine
from berth.node.metrics import Measures
from berth.node.transitions import transitions
from berth.node.writer import Writer, Writes

log = logging.getLogger("berth.agent")

SETTLE_S = 1.0  # after a sentence of the kernel: what belongs to it is said within
LAST_WORD_S = 3.0
# A change in what the kernel says that is worth a look at once.
_URGENT = ("kernel.", "pcie.", "nvidia_smi.")


def main(configured: Configured, access: Access | None) -> int:
    """Until SIGTERM or SIGINT. The exit code. Without `access` the agent only serves its metrics."""
    for path, value, source in configured.sources:
        log.info("configuration", extra={"key": path, "value": value, "source": source})
    for sentence in configured.unknown:
        log.warning(sentence)
    keep_small(arenas=1)  # hardly ever do two of its threads work
    node = node_of(configured.value, os.environ)
    measures = Measures(node)
    server = Server(configured, measures)
    server.start()
    log.info("serves", extra={"address": f"{server.address[0]}:{server.address[1]}", "node": node})
    try:
        asyncio.run(_run(configured, access, node, measures))
    finally:
        server.stop()
    return 0


async def _run(configured: Configured, access: Access | None, node: str, measures: Measures) -> None:
    value = configured.value
    ends = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ends.set)
    keeper = Keeper(Machine(places_of(value), node, looking_of(value)))
    try:
        if access is None:
            await _Loop(keeper, None, measures, value.looks.seconds).run(ends)
            return
        async with FewRequests(access, user_agent="berth-agent") as client:
            said = value.writes
            writes = Writes(
                said.ledger, said.condition, said.events, said.taint, said.cordon, said.heartbeat_seconds, said.queues
            )
            writer = Writer(client, node, writes, os.environ.get("POD_NAME", f"berth-agent-{node}"))
            await _Loop(keeper, writer, measures, value.looks.seconds).run(ends)
    finally:
        keeper.machine.close()


class _Loop:
    """One look after another: each after its time, sooner when the kernel says something of a GPU."""

    def __init__(self, keeper: Keeper, writer: Writer | None, measures: Measures, every_s: float) -> None:
        self._keeper = keeper
        self._writer = writer
        self._measures = measures
        self._every_s = every_s
        self._last: Report | None = None
        self._is_first = True

    async def run(self, ends: asyncio.Event) -> None:
        while not ends.is_set():
            try:
                await self._look()
            except Exception:
                # A fault of the agent's own in one look must not end the account of the node.
                log.exception("a look failed")
            if self._is_first:
                self._is_first = False
                _settle()
            trim()  # what a look has read is not needed any more
            await self._wait(ends)

    async def _look(self) -> None:
        now_s = time.time()
        beside: tuple[Fact, ...] = ()
        if self._writer is not None:
            if not self._writer.knows:
                await self._go_on(self._writer, now_s)
            beside = await self._writer.node_facts(now_s, self._is_doubtful())
        queues: dict[str, str] = {}
        if self._writer is not None and self._last is not None:
            queues = await self._writer.queues_of(_pods_of(self._last))
        report = await asyncio.to_thread(self._keeper.step, beside, queues)
        self._tell(report)
        if self._writer is not None:
            await self._writer.write(report)
        counts = self._writer.counts if self._writer is not None else {}
        self._measures.looked(report, queues, counts, self._keeper.risen)
        self._last = report

    async def _go_on(self, writer: Writer, now_s: float) -> None:
        """From what an earlier process has remembered; asked for until the API server answers."""
        status = await writer.restored(now_s)
        if status is not None:
            self._keeper.go_on_from(status)
            log.info("goes on", extra={"state": status.state, "faults": len(status.faults)})

    def _is_doubtful(self) -> bool:
        """The Node object may say something else by now."""
        last = self._last
        return last is None or any(not one.is_equal for one in last.accounts) or last.before != last.memory

    def _tell(self, report: Report) -> None:
        for one in transitions(report.before, report.memory):
            said = {"target": one.target, "state": one.now.state.value, "code": one.now.code, "note": one.note}
            log.warning("state", extra=said)
        if self._last is None:
            if not report.has_gpus:
                log.info("no GPU on this machine: nothing is written of it")
            for missing in report.looked.not_seen:
                log.info("not seen", extra={"what": missing.what, "why": missing.why})

    async def _wait(self, ends: asyncio.Event) -> None:
        """Until it is time, the end, or the kernel says something of a GPU."""
        loop = asyncio.get_running_loop()
        urgent = asyncio.Event()
        machine = self._keeper.machine
        descriptor = machine.log.descriptor

        def heard() -> None:
            new = machine.log.catch_up()
            if any(one.message.startswith(_URGENT) for one in new):
                urgent.set()

        watches = False
        if descriptor >= 0:
            with suppress(PermissionError, OSError):  # an ordinary file cannot be waited on
                loop.add_reader(descriptor, heard)
                watches = True
        waits = [asyncio.ensure_future(ends.wait()), asyncio.ensure_future(urgent.wait())]
        try:
            await asyncio.wait(waits, timeout=self._every_s, return_when=asyncio.FIRST_COMPLETED)
            if urgent.is_set() and not ends.is_set():
                await asyncio.wait(waits[:1], timeout=SETTLE_S)
        finally:
            for one in waits:
                one.cancel()
            if watches:
                loop.remove_reader(descriptor)


def _settle() -> None:
    """What the first look and the imports left over goes back to the machine; what stays is not gone through again."""
    gc.collect()
    gc.freeze()


def _pods_of(report: Report) -> set[str]:
    given = {one.pod for one in report.status.given}
    return given | {one.pod for one in report.status.holders if one.pod}
