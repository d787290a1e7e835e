"""What the agents of nodes say, kept up with by their ledgers, and who of them has fallen silent."""

from __future__ import annotations

import logging

from berth.kube.wire_ledger import NodeLedger
from berth.model.cluster import Node
from berth.sources.health import SILENT_S, Report, heartbeat_of, heed, is_silent, report_of
from berth.sources.inventory import seconds, some

log = logging.getLogger("berth.agents")


class Agents:
    """By the name of the node. Heartbeats come all the time: they are noted, and looked at when one may be missing.

    Clocks of two machines do not agree: an agent is heard when its heartbeat is seen to change, by our own clock. Only
    of one that is seen for the first time it is taken as it is written.
    """

    def __init__(self, silent_s: float = SILENT_S) -> None:
        self._silent_s = silent_s
        self._reports: dict[str, Report] = {}
        self._heartbeats: dict[str, str | None] = {}
        self._heard_s: dict[str, float] = {}
        self._silent: set[str] = set()
        self._judge_s = float("inf")  # nobody is missed before

    def put(self, node: str, ledger: NodeLedger, now_s: float) -> bool:
        """Whether what is said of the node may be another now."""
        report, heartbeat = report_of(ledger), heartbeat_of(ledger)
        beats = node in self._reports and heartbeat != self._heartbeats[node]
        heard_s = now_s if beats else self._heard_s.get(node, min(seconds(heartbeat), now_s))
        speaks_again = beats and node in self._silent
        has_changed = self._reports.get(node) != report
        self._reports[node], self._heartbeats[node], self._heard_s[node] = report, heartbeat, heard_s
        self._judge_s = min(self._judge_s, now_s if speaks_again else heard_s + self._silent_s)
        return has_changed or speaks_again

    def drop(self, node: str) -> bool:
        self._heartbeats.pop(node, None)
        self._heard_s.pop(node, None)
        self._silent.discard(node)
        return self._reports.pop(node, None) is not None

    def heeded(self, node: Node) -> Node:
        """The node with what its agent says."""
        report = self._reports.get(node.name)
        return node if report is None else heed(node, report, node.name in self._silent)

    @property
    def next_s(self) -> float:
        """When an agent may have fallen silent; infinity where none speaks."""
        return self._judge_s

    def judge(self, now_s: float) -> list[str]:
        """The nodes whose agents have fallen silent, or speak again."""
        if now_s < self._judge_s:
            return []
        silent = {name for name, heard_s in self._heard_s.items() if is_silent(heard_s, now_s, self._silent_s)}
        speaking = (heard_s for name, heard_s in self._heard_s.items() if name not in silent)
        self._judge_s = min(speaking, default=float("inf")) + self._silent_s
        fallen, again = sorted(silent - self._silent), sorted(self._silent - silent)
        self._silent = silent
        if fallen:
            log.warning("node agents are silent: what they found unfit counts still, and nothing else",
                        extra={"count": len(fallen), "nodes": some(fallen)})  # fmt: skip
        if again:
            log.info("node agents speak again", extra={"count": len(again), "nodes": some(again)})
        return [*fallen, *again]
