"""What the API server was asked to do, counted by itself: its metrics, and its audit log where that is on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SAMPLE = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
WRITES = ("CREATE", "POST", "PUT", "UPDATE", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION")


@dataclass(frozen=True)
class Requests:
    """How often, by (verb, resource with its subresource, HTTP status): ("POST", "pods/binding", 201)."""

    counts: Counter[tuple[str, str, int]]

    def of(self, *, verb: str = "", resource: str = "", status: int = 0) -> int:
        """How many match what is given."""
        return sum(
            count
            for (each_verb, each_resource, each_status), count in self.counts.items()
            if verb in ("", each_verb) and resource in ("", each_resource) and status in (0, each_status)
        )

    def writes(self, resource: str = "") -> int:
        """How many asked for a change, granted or not."""
        return sum(
            count
            for (verb, each_resource, _), count in self.counts.items()
            if verb in WRITES and resource in ("", each_resource)
        )

    def since(self, before: Requests) -> Requests:
        """What came after an earlier count of the same API server process."""
        return Requests(self.counts - before.counts)


def read_requests(metrics: str) -> Requests:
    """The counts from the text of /metrics."""
    counts: Counter[tuple[str, str, int]] = Counter()
    for line in metrics.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        sample = _SAMPLE.match(line)
        if sample is None:
            continue
        labels = dict(_LABEL.findall(sample["labels"]))
        resource = labels.get("resource", "")
        if labels.get("subresource"):
            resource += "/" + labels["subresource"]
        counts[labels.get("verb", ""), resource, int(labels.get("code") or 0)] += int(float(sample["value"]))
    return Requests(counts)


def audited_writes(log: Path) -> Iterator[tuple[str, str, str, int]]:
    """(user, verb, resource with its subresource, HTTP status) of each write in an audit log."""
    if not log.exists():
        return
    with log.open() as lines:
        for line in lines:
            event = json.loads(line)
            target = event.get("objectRef") or {}
            resource = target.get("resource", "") + ("/" + target["subresource"] if target.get("subresource") else "")
            status = (event.get("responseStatus") or {}).get("code", 0)
            yield event["user"]["username"], event["verb"], resource, status
