"""What the API server refused, in its own words, as one type; and that it could not be reached, as another."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import msgspec
from msgspec import Struct

CONFLICT, NOT_FOUND, GONE = 409, 404, 410
FORBIDDEN, UNAUTHORIZED, TOO_MANY = 403, 401, 429
UNAVAILABLE = 503
# A gateway's answers count as "not now"; 500 does only where the server says when to come back.
NOT_NOW = frozenset({TOO_MANY, 502, UNAVAILABLE, 504})


class StatusCause(Struct, frozen=True):
    reason: str | None = None
    message: str | None = None
    field: str | None = None


class StatusDetails(Struct, frozen=True, rename="camel"):
    name: str | None = None
    group: str | None = None
    kind: str | None = None
    uid: str | None = None
    causes: tuple[StatusCause, ...] | None = None
    retry_after_seconds: int | None = None


class Status(Struct, frozen=True):
    """meta/v1 Status: the body of every refusal, and the object of an ERROR event."""

    kind: str | None = None
    status: str | None = None
    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: StatusDetails | None = None


_STATUS = msgspec.json.Decoder(Status)


class ApiError(Exception):
    """The API server said no. `reason` is its word for machines (`Conflict`, `Expired`), `message` its sentence."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        verb: str = "",
        path: str = "",
        causes: tuple[StatusCause, ...] = (),
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s
        self.verb = verb
        self.path = path
        self.causes = causes
        super().__init__(self.sentence)

    @property
    def sentence(self) -> str:
        """One line: what was asked, what was answered."""
        asked = f"{self.verb} {self.path}: " if self.path else ""
        return f"{asked}{self.status or 'no answer'} {self.reason}: {self.message}"

    @property
    def is_conflict(self) -> bool:
        """A precondition (uid, resourceVersion) did not hold, or the pod is bound already."""
        return self.status == CONFLICT and not self.is_already_there

    @property
    def is_already_there(self) -> bool:
        return self.status == CONFLICT and self.reason == "AlreadyExists"

    @property
    def is_not_found(self) -> bool:
        return self.status == NOT_FOUND

    @property
    def is_gone(self) -> bool:
        """The resourceVersion or the continue token is too old: list again."""
        return self.status == GONE

    @property
    def is_too_new(self) -> bool:
        """The resourceVersion is from the future: etcd was restored, or a replica lags. List again."""
        return any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes)

    @property
    def is_forbidden(self) -> bool:
        return self.status == FORBIDDEN

    @property
    def is_no_right(self) -> bool:
        """The authorizer said no, whatever the object. A quota, a policy or a namespace that ends answer 403, too.

        It words it `User "x" cannot patch resource ...`: k8s.io/apiserver, responsewriters.ForbiddenMessage.
        """
        return self.status == FORBIDDEN and "cannot" in self.message

    @property
    def is_unauthorized(self) -> bool:
        return self.status == UNAUTHORIZED

    @property
    def is_too_many(self) -> bool:
        """429: too many requests, or an eviction that a PodDisruptionBudget does not allow now."""
        return self.status == TOO_MANY

    @property
    def is_retriable(self) -> bool:
        """The same request may succeed later without anybody changing anything."""
        return self.status in NOT_NOW or (self.status >= 500 and self.retry_after_s is not None)


class Unreachable(ApiError):
    """No answer: refused, reset, timed out. `may_have_arrived` tells whether the request may have been carried out."""

    def __init__(self, message: str, *, verb: str = "", path: str = "", may_have_arrived: bool = True) -> None:
        self.may_have_arrived = may_have_arrived
        super().__init__(0, "Unreachable", message, verb=verb, path=path)

    @property
    def is_retriable(self) -> bool:
        return True


def refusal(status: int, retry_after: str | None, body: bytes, verb: str, path: str) -> ApiError:
    """The error that an answer with this status and body means; a body that is no Status is quoted."""
    try:
        said = _STATUS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = Status()
    after = _retry_after_s(retry_after)
    details = said.details or StatusDetails()
    if after is None and details.retry_after_seconds:
        after = float(details.retry_after_seconds)
    quoted = body[:300].decode(errors="replace").strip()
    return ApiError(
        status,
        said.reason or _WORDS.get(status, "Unknown"),
        said.message or quoted or "the answer had no text",
        retry_after_s=after,
        verb=verb,
        path=path,
        causes=details.causes or (),
    )


def refusal_in_stream(raw: bytes | msgspec.Raw, path: str) -> ApiError:
    """The error that the object of an ERROR event means."""
    try:
        said = _STATUS.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = Status()
    return refusal(said.code or 500, None, bytes(raw), "WATCH", path)


def _retry_after_s(text: str | None) -> float | None:
    """Seconds from a Retry-After header, which is a number or a date (RFC 9110, 10.2.3)."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


_WORDS = {
    400: "BadRequest",
    UNAUTHORIZED: "Unauthorized",
    FORBIDDEN: "Forbidden",
    NOT_FOUND: "NotFound",
    405: "MethodNotAllowed",
    CONFLICT: "Conflict",
    GONE: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    TOO_MANY: "TooManyRequests",
    500: "InternalError",
    UNAVAILABLE: "ServiceUnavailable",
    504: "Timeout",
}
