"""What the scheduler logs: one line an event, as JSON or as text, with what `extra` carries as fields."""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
HIDDEN = "(hidden)"

# What every record has; all else came by `extra`.
_ORDINARY = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECRET_NAME = re.compile(r"token|password|secret|authori[sz]ation|credential|private|cookie|api.?key", re.I)
# A bearer token in a sentence, and a JSON Web Token wherever it stands.
_SECRET_TEXT = re.compile(r"(?i:\b(bearer|basic)\s+)[A-Za-z0-9+/=_.~-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+")


def start(level: str = "info", form: str = "json", stream: TextIO | None = None) -> None:
    """Log from `level` up on `stream` (stderr), in place of what was set up before. `form` is json or text."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    logging.captureWarnings(True)
    # A line for each probe and each scrape says nothing.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)


class JsonLines(logging.Formatter):
    """`{"time", "level", "logger", "message", …}`: fields of `extra` beside these, in the order given."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": without_secrets(record.getMessage()),
        }
        for name, value in fields_of(record).items():
            line[name if name not in line else f"{name}_"] = value
        if record.exc_info:
            line["traceback"] = without_secrets(self.formatException(record.exc_info))
        return msgspec.json.encode(line, enc_hook=str).decode()


class TextLines(logging.Formatter):
    """`12:00:00.123 INFO scheduler: synced nodes=100`."""

    def format(self, record: logging.LogRecord) -> str:
        clock = _time(record)[11:23]
        fields = "".join(f" {name}={_short(value)}" for name, value in fields_of(record).items())
        said = without_secrets(record.getMessage())
        line = f"{clock} {record.levelname} {record.name.removeprefix('berth.')}: {said}{fields}"
        if record.exc_info:
            line += "\n" + without_secrets(self.formatException(record.exc_info))
        return line


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """What `extra` carried; values that may be secrets are hidden, by their name or by what they look like."""
    found = {}
    for name, value in vars(record).items():
        if name in _ORDINARY:
            continue
        if _SECRET_NAME.search(name):
            value = HIDDEN
        elif isinstance(value, str):
            value = without_secrets(value)
        elif not isinstance(value, int | float | bool | type(None)):
            value = without_secrets(str(value)) if not isinstance(value, list | tuple | dict) else _inside(value)
        found[name] = value
    return found


def without_secrets(text: str) -> str:
    """The text with tokens hidden."""
    return _SECRET_TEXT.sub(lambda found: f"{found[1]} {HIDDEN}" if found[1] else HIDDEN, text)


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: HIDDEN if _SECRET_NAME.search(str(k)) else _inside(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_inside(one) for one in value]
    return value if isinstance(value, int | float | bool | type(None)) else without_secrets(str(value))


def _short(value: Any) -> str:
    text = str(value)
    return text if text and not re.search(r"[\s\"=]", text) else msgspec.json.encode(text).decode()


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
