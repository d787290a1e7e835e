"""What the API server, or the way to it, refused: one sentence for whoever can mend it, exit code 3."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

from berth.base.errors import UNREADABLE, BadInput
from berth.kube.access import Access
from berth.kube.errors import ApiError, Unreachable
from berth.kube.unreached import distrust, in_words

MOST_WORDS = 200


def as_input(error: ApiError, access: Access) -> BadInput:
    """The refusal as a sentence. `access` is what was asked with."""
    server = access.server
    if isinstance(error, Unreachable):
        return BadInput(server, f"cannot be reached: {_below(error)}.", _reach(error, access), UNREADABLE)
    if error.is_unauthorized:
        problem, remedy = _unknown(access)
        return BadInput(server, problem, remedy, UNREADABLE)
    if error.is_forbidden:
        return BadInput(server, f"{error.message.rstrip('.')}.", "Ask for the right, or ask as somebody who has it.",
                        UNREADABLE)  # fmt: skip
    if error.is_not_found or error.reason == "Undecodable":
        remedy = f"Is it a Kubernetes API server? {_named(access)}"
        return BadInput(server, f"{_cut(error.sentence)}.", remedy, UNREADABLE)
    remedy = "Try again; if it stays, see how the API server is."
    return BadInput(server, f"{_cut(error.sentence)}.", remedy, UNREADABLE)


def _named(access: Access) -> str:
    """Where the address is from."""
    if access.context:
        return f"It is what context {access.context!r} of {access.source} names; choose another with --context."
    return f"The address is from {access.source}." if access.source else ""


def _reach(error: Unreachable, access: Access) -> str:
    if said := distrust(error):
        if "expired" in said:
            return f"Have it renewed, and see whether your clock is right. {_named(access)}"
        return f"Is the certificate authority of the kubeconfig the right one? {_named(access)}"
    if access.proxy_url:
        return f"The proxy is {access.proxy_url}. {_named(access)}"
    return f"Is the cluster up, and the network open? {_named(access)}"


def _below(error: Unreachable) -> str:
    """What went wrong below HTTP, in words."""
    return in_words(error) or _cut(error.message.rstrip("."))


def _unknown(access: Access) -> tuple[str, str]:
    """401: the server does not know who we are, and what may be the cause."""
    who = f"user {access.user!r} of {access.source}" if access.user else access.source or "these credentials"
    ended = _ended(access)
    if ended:
        return f"does not accept {who}: the client certificate has expired on {ended}.", "Have a new one made."
    if access.exec is not None:
        return f"does not accept {who}: what {access.exec.command} printed is not valid.", "Log in again."
    if access.token or access.token_file:
        return f"does not accept {who}: the token is not valid, or no longer.", "Log in again."
    if access.client_certificate_data or access.client_certificate_file:
        remedy = "Is it for this cluster?"
        return f"does not accept {who}: the client certificate is of another authority.", remedy
    return f"does not let anybody in without credentials, and {who} has none.", "Choose a context that has a user."


def _ended(access: Access) -> str:
    """The day on which the client certificate ended; "" where it has not, or cannot be read."""
    try:
        data = access.client_certificate_data
        if data is None and access.client_certificate_file:
            data = Path(access.client_certificate_file).read_bytes()
        until = not_after(data or b"")
    except (OSError, ValueError, IndexError):
        return ""
    return until.date().isoformat() if until < datetime.now(UTC) else ""


def not_after(pem: bytes) -> datetime:
    """Until when the first certificate of a PEM text is valid. Raises ValueError or IndexError where it is none.

    RFC 5280, 4.1: Certificate { tbsCertificate { [0] version, serialNumber, signature, issuer, validity, … } … }.
    """
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    text = pem.partition(begin)[2].partition(end)[0]
    der = base64.b64decode(b"".join(text.split()))
    fields = _parts(_parts(_parts(der)[0][1])[0][1])
    if fields[0][0] == 0xA0:
        fields = fields[1:]
    tag, value = _parts(fields[3][1])[1]
    stamp = value.decode("ascii")
    if tag == 0x17:  # UTCTime: two digits of the year, those below 50 of this century
        stamp = ("20" if stamp < "50" else "19") + stamp
    return datetime.strptime(stamp, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _parts(der: bytes) -> list[tuple[int, bytes]]:
    """(tag, content) of each element in a row."""
    found = []
    while der:
        tag, length, at = der[0], der[1], 2
        if length & 0x80:
            at = 2 + (length & 0x7F)
            length = int.from_bytes(der[2:at], "big")
        found.append((tag, der[at : at + length]))
        der = der[at + length :]
    return found


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_WORDS else line[: MOST_WORDS - 1] + "…"
