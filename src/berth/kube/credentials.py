"""Proof of who we are, kept fresh: tokens that rotate in files, commands that print them, certificates on disk."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from berth.base.errors import UNREADABLE, BadInput
from berth.kube.access import Access, Impersonate
from berth.kube.exec_plugin import run_plugin
from berth.kube.tls import ResumingContext, tls_context

REREAD_S = 60.0
"""A token or certificate file is looked at again this often; a service account token rotates well before it ends."""
SOONEST_RERUN_S = 5.0
EARLY_S = 30.0
"""A printed credential is replaced this long before it ends, or after nine tenths of its life where that is sooner."""


class Credentials:
    """Headers and TLS context of the moment. `version` counts changes.

    `check_at_s` (on the clock) is when `refresh` must be awaited before the next request; comparing it is all
    that a request pays.
    """

    def __init__(self, access: Access, clock: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._clock = clock
        self._lock = asyncio.Lock()
        self._asked_at_s = float("-inf")
        self._files_seen: tuple[float, ...] = ()
        # A token that is written down wins over the command, as in client-go.
        self._has_plugin = access.exec is not None and not (access.token or access.token_file)
        self.version = 0
        self.check_at_s = float("-inf")
        self.headers: tuple[tuple[str, str], ...] = ()
        self.context: ResumingContext | None = None
        self._is_ready = False
        self._last_token: str | None = None

    async def refresh(self) -> None:
        """Look again at what may have changed. Raises BadInput where nothing usable is there."""
        async with self._lock:
            if self._clock() >= self.check_at_s:
                await self._look()

    async def renew(self, version: int) -> bool:
        """After a 401 to a request made with `version`: True where there is now something else to try with."""
        async with self._lock:
            if self.version != version:
                return True
            if self._has_plugin and self._clock() - self._asked_at_s < SOONEST_RERUN_S:
                return False
            await self._look(forced=True)
            return self.version != version

    async def _look(self, forced: bool = False) -> None:
        now = self._clock()
        access = self._access
        if self._has_plugin and access.exec is not None:
            printed = await run_plugin(access, access.exec)
            self._asked_at_s = now
            certificate = printed.client_certificate_data
            key = printed.client_key_data
            context = tls_context(access, certificate.encode() if certificate else None, key.encode() if key else None)
            self._take(context, printed.token)
            self.check_at_s = now + _life_s(printed.expiration_timestamp)
            # A command that is run again has done what can be done, even if it prints the same.
            self.version += 1
            return
        changed = self._files_changed()
        if not self._is_ready or changed:
            try:
                context = tls_context(access)
            except BadInput:
                # Certificate and key are replaced one after the other: between the two they do not match.
                if not self._is_ready:
                    raise
                context = self.context
                self._files_seen = ()
        else:
            context = self.context
        self._take(context, self._token())
        has_files = access.token_file or access.client_certificate_file
        self.check_at_s = now + REREAD_S if has_files else float("inf")

    def _take(self, context: ResumingContext | None, token: str | None) -> None:
        access = self._access
        headers: list[tuple[str, str]] = []
        if token:
            headers.append(("Authorization", f"Bearer {token}"))
        elif access.username:
            pair = f"{access.username}:{access.password or ''}".encode()
            headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
        if access.impersonate is not None:
            headers.extend(_acting_as(access.impersonate))
        if tuple(headers) != self.headers or context is not self.context:
            self.version += 1
        self.headers, self.context, self._is_ready, self._last_token = tuple(headers), context, True, token

    def _token(self) -> str | None:
        access = self._access
        if not access.token_file:
            return access.token
        try:
            token = Path(access.token_file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            if self._last_token or access.token:  # the last one may still be good
                return self._last_token or access.token
            said = error.strerror if isinstance(error, OSError) else "not text"
            raise BadInput(access.token_file, f"the token cannot be read: {said}.", "", UNREADABLE) from None
        return token or access.token

    def _files_changed(self) -> bool:
        files = [self._access.client_certificate_file, self._access.client_key_file, self._access.ca_file]
        try:
            seen = tuple(os.stat(file).st_mtime for file in files if file)  # noqa: PTH116
        except OSError:
            return False
        changed, self._files_seen = seen != self._files_seen, seen
        return changed


def _life_s(until: datetime | None) -> float:
    """Seconds until a printed credential should be replaced; without an end, only a 401 does."""
    if until is None:
        return float("inf")
    life = (until - datetime.now(UTC)).total_seconds() if until.tzinfo else 0.0
    return max(SOONEST_RERUN_S, life - min(EARLY_S, life / 10))


def _acting_as(whom: Impersonate) -> Iterator[tuple[str, str]]:
    yield "Impersonate-User", whom.user
    for group in whom.groups:
        yield "Impersonate-Group", group
    if whom.uid:
        yield "Impersonate-Uid", whom.uid
    for key, values in whom.extra:
        for value in values:
            yield f"Impersonate-Extra-{quote(key, safe='')}", value
