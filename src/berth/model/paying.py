"""Which queue pays for a workload: a limit is never passed by writing another name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from berth.model.queue import Queue

IMPLIED = "default"  # what other schedulers write where nobody has named a queue: no word of a user's


class Payers:
    """`namespaces` are those that each queue object lists, by the queue's name.

    A namespace is at home in the queues that list it, else in the one of its own name. Whose namespace is at home
    somewhere may name these queues alone; others may name any queue that lists no namespace.
    """

    def __init__(self, namespaces: Mapping[str, Iterable[str]]) -> None:
        self._known = sorted(namespaces)
        self._is_open = {name: not tuple(listed) for name, listed in namespaces.items()}
        self._homes: dict[str, list[str]] = {}
        for name in self._known:
            for namespace in namespaces[name]:
                self._homes.setdefault(namespace, []).append(name)
        for name in self._known:
            self._homes.setdefault(name, [name])
        self._found: dict[tuple[str, str], str] = {}

    def of(self, queue: str, namespace: str) -> str:
        """The name of the queue that pays. `queue` is the one that the workload names, "" for none.

        Where nothing of it is an object the name itself is one: a queue without a limit.
        """
        key = (queue, namespace)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._of(queue, namespace)
        return found

    def doubt(self, queue: str, namespace: str) -> str:
        """Why the queue that a workload names does not pay, and which does; "" where it does."""
        pays = self.of(queue, namespace)
        if not queue or pays == queue or (queue == IMPLIED and queue not in self._is_open):
            return ""
        if queue in self._is_open:
            why = f"Queue {queue} may not be named from namespace {namespace}: its GPUQueue does not list it"
        else:
            close = get_close_matches(queue, self._known, 1, 0.7)
            why = f"There is no GPUQueue {queue}" + (f" (close to it: {close[0]})" if close else "")
        return f"{why}. Queue {pays} pays, where namespace {namespace} is at home."

    def _of(self, queue: str, namespace: str) -> str:
        homes = self._homes.get(namespace, ())
        if not queue:
            return homes[-1] if homes else namespace
        if homes:
            return queue if queue in homes else homes[-1]
        return queue if self._is_open.get(queue, True) else namespace


def payers_of(queues: Iterable[Queue]) -> Payers:
    return Payers({queue.name: queue.namespaces for queue in queues})
