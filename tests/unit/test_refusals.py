"""Why a cluster did not answer, in words for whoever can mend it."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest

from berth.app.cli.refusals import as_input, not_after
from berth.base.errors import UNREADABLE
from berth.kube.access import Access, ExecConfig
from berth.kube.errors import ApiError, Unreachable

# Self-signed, without a version (v1): valid until 28 November 2026, and until 2059 with a four-digit year.
PAST = b"""-----BEGIN CERTIFICATE-----
MIIBFTCBvQIUFI1HcAZ1Z/ifaMeLCpVKzYtR1dUwCgYIKoZIzj0EAwIwDjEMMAoG
A1UEAwwDZmFyMB4XDTI2MTEyOTIzMTAwOVoXDTI2MTEyODIzMTAwOVowDjEMMAoG
A1UEAwwDZmFyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQPjNPqN6/qtCoA7z
KsI0sOskjrgLqlwNEh9zqygctIuoipudWkEIDOUkostMgGBeko7zRs3nCJHLfbUA
0TvS2DAKBggqhkjOPQQDAgNHADBEAiBrUay5DFxBO1J18Mx13+bTWvwdqFeXm6ZV
4erj6kPQwAIgZ0bGFQJuLivGSS1zzm8C8omelH7WWiSiJaUBnLqgTeE=
-----END CERTIFICATE-----
"""
FAR = b"""-----BEGIN CERTIFICATE-----
MIIBGDCBvwIUMTXD6TSUm0ymR6hH82Tea8Vjx6swCgYIKoZIzj0EAwIwDjEMMAoG
A1UEAwwDZmFyMCAXDTI2MTEyOTIzMTAwOVoYDzIwNTkxMDA3MjMxMDA5WjAOMQww
CgYDVQQDDANmYXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARA+M0+o3r+q0Kg
DvMqwjSw6ySOuAuqXA0SH3OrKBy0i6iKm51aQQgM5SSiy0yAYF6SjvNGzecIkct9
tQDRO9LYMAoGCCqGSM49BAMCA0gAMEUCIQCTXSVD++3oCrmYFT+9Zz1F9WuHG2QE
1Vcsl4XdlAgV1gIgAxvbpJDXdnccTMaG8ZxMhSCRnyWpu5otWZA3rk267V8=
-----END CERTIFICATE-----
"""
ACCESS = Access(server="https://api", user="ann", context="prod", source="/kube/config")
UNAUTHORIZED = ApiError(401, "Unauthorized", "Unauthorized", verb="GET", path="/version")


def test_the_end_of_a_certificate():
    assert not_after(PAST) == datetime(2026, 11, 28, 23, 10, 9, tzinfo=UTC)
    assert not_after(b"key first\n" + FAR) == datetime(2059, 10, 7, 23, 10, 9, tzinfo=UTC)
    for nothing in (b"", b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"):
        with pytest.raises((ValueError, IndexError)):
            not_after(nothing)


@pytest.mark.parametrize(("access", "said"), [
    ({"client_certificate_data": PAST}, "the client certificate has expired on 2026-11-28. Have a new one made."),
    ({"client_certificate_data": FAR}, "the client certificate is of another authority. Is it for this cluster?"),
    ({"client_certificate_data": b"no PEM"}, "the client certificate is of another authority."),
    ({"client_certificate_file": "/nowhere"}, "the client certificate is of another authority."),
    ({"token": "t"}, "the token is not valid, or no longer. Log in again."),
    ({"exec": ExecConfig("aws")}, "what aws printed is not valid. Log in again."),
    ({}, "does not let anybody in without credentials, and user 'ann' of /kube/config has none."),
])  # fmt: skip
def test_who_is_not_known(monkeypatch, access, said):
    from msgspec.structs import replace

    monkeypatch.setattr("berth.app.cli.refusals.datetime", Late)
    found = as_input(UNAUTHORIZED, replace(ACCESS, **access))
    assert said in found.sentence and found.exit_code == UNREADABLE


class Late(datetime):
    """The third of December 2026."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 12, 3, tzinfo=tz)


def unreachable(cause: BaseException) -> Unreachable:
    error = Unreachable(f"Cannot connect: {cause}")
    error.__cause__ = cause
    return error


def untrusted(said: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    error.verify_message = said
    return error


@pytest.mark.parametrize(("cause", "said"), [
    (OSError("Connect call failed ('10.0.0.1', 6443)"), "the connection was refused. Is the cluster up"),
    (OSError(-2, "Name or service not known"), "its name is not known."),
    (OSError(113, "No route to host"), "there is no way to it."),
    (TimeoutError("timed out"), "no answer in time."),
    (untrusted("self-signed certificate"), "cannot be trusted: self-signed certificate. Is the certificate authority"),
    (untrusted("certificate has expired"), "cannot be trusted: certificate has expired. Have it renewed"),
    (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), "it does not speak TLS."),
    (ssl.SSLError(1, "[SSL] tlsv13 alert certificate required"), "it asks for a client certificate. Is the cluster up"),
])  # fmt: skip
def test_what_kept_it_from_being_reached(cause, said):
    sentence = as_input(unreachable(cause), ACCESS).sentence
    assert sentence.startswith("https://api: cannot be reached: ") and said in sentence
    assert "context 'prod' of /kube/config" in sentence and "\n" not in sentence


@pytest.mark.parametrize(("error", "said"), [
    (ApiError(403, "Forbidden", "User \"ann\" cannot list"), 'User "ann" cannot list. Ask for the right'),
    (ApiError(404, "NotFound", "<html>nothing</html>"), "Is it a Kubernetes API server? It is what context 'prod'"),
    (ApiError(200, "Undecodable", "no discovery document"), "Is it a Kubernetes API server?"),
    (ApiError(503, "ServiceUnavailable", "x" * 500), "…. Try again; if it stays, see how the API server is."),
])  # fmt: skip
def test_what_it_refused(error, said):
    found = as_input(error, ACCESS)
    assert said in found.sentence and len(found.sentence) < 400 and found.exit_code == UNREADABLE
