"""The status of an object of ours is written where it differs from what is there, and to nobody's successor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from berth.actions.fence import Fenced
from berth.kube.errors import ApiError

Object = dict[str, Any]


async def write_status(client: Fenced, path: str, change: Callable[[Object], Object | None]) -> bool:
    """Whether something was written. `change` gives the new status of an object, None where it stands so already; an
    object that has gone needs none. Raises ApiError, Withdrawn."""
    try:
        there: Object = await client.get(path)
        status = change(there)
        if status is None:
            return False
        uid = (there.get("metadata") or {}).get("uid")
        await client.patch(f"{path}/status", msgspec.json.encode({"metadata": {"uid": uid}, "status": status}))
        return True
    except ApiError as error:
        if not error.is_not_found:
            raise
        return False
