"""An event loop in a thread: what watches and answers while a test goes on in its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundLoop:
    """A running event loop. `run` waits for a coroutine's answer, `spawn` does not."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[Any]] = set()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """The coroutine's result, or its exception."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a coroutine that goes on until `close`."""

        async def start() -> None:
            task = asyncio.get_running_loop().create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self.run(start())

    def close(self) -> None:
        """Cancel what runs and end the thread."""
        if not self._thread.is_alive():
            return

        async def cancel_all() -> None:
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run(cancel_all(), 10.0)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._loop.close()
