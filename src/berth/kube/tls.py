"""The TLS context of an access: whom we believe, and the certificate that we show."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path
from typing import Any

from berth.base.errors import UNREADABLE, BadInput
from berth.kube.access import Access


class ResumingContext(ssl.SSLContext):
    """A context that offers its last TLS session again, so that a new connection skips the full handshake.

    asyncio has no parameter for it, but both asyncio and uvloop call `wrap_bio` of the context that they get.
    """

    last_session: ssl.SSLSession | None = None

    def wrap_bio(self, *args: Any, **named: Any) -> ssl.SSLObject:
        if self.last_session is not None and not named.get("server_side"):
            named["session"] = self.last_session
        return super().wrap_bio(*args, **named)

    def remember(self, connection: ssl.SSLObject | None) -> None:
        """Keep the session of a connection. With TLS 1.3 it arrives after the handshake, with the first answer."""
        if connection is not None and (session := connection.session) is not None and session.has_ticket:
            self.last_session = session


def tls_context(access: Access, certificate: bytes | None = None, key: bytes | None = None) -> ResumingContext | None:
    """The context for `access`, None where it speaks plain HTTP. `certificate` and `key` (PEM) replace its own.

    Raises BadInput for a certificate or key that cannot be used.
    """
    if not access.server.startswith("https://"):
        return None
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Kubernetes makes CAs without the extensions that Python 3.13 asks for by default.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if access.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _believe(context, access)
    if certificate or access.client_certificate_data or access.client_certificate_file:
        _show(context, access, certificate, key)
    return context


def _believe(context: ssl.SSLContext, access: Access) -> None:
    try:
        if access.ca_data:
            context.load_verify_locations(cadata=access.ca_data.decode("ascii"))
        elif access.ca_file:
            context.load_verify_locations(cafile=access.ca_file)
        else:
            context.load_default_certs()
    except (OSError, UnicodeDecodeError) as error:
        what = access.ca_file or f"{access.source}: clusters[{access.cluster}].certificate-authority-data"
        raise BadInput(what, f"no usable CA certificate: {_said(error)}.", "It must be PEM.", UNREADABLE) from None


def _show(context: ssl.SSLContext, access: Access, certificate: bytes | None, key: bytes | None) -> None:
    """Load the client certificate. OpenSSL reads it from files only, so data lies in one for a moment."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        try:
            certificate_file = _as_file(
                folder, "certificate", certificate or access.client_certificate_data, access.client_certificate_file
            )
            key_file = _as_file(folder, "key", key or access.client_key_data, access.client_key_file)
            # Without a password of ours OpenSSL would ask for one on the terminal.
            context.load_cert_chain(certificate_file, key_file, password="")
        except OSError as error:
            what = access.client_certificate_file or f"{access.source}: users[{access.user}].client-certificate-data"
            raise BadInput(
                what,
                f"no usable client certificate and key: {_said(error)}.",
                "Both must be PEM, belong together, and have no password.",
                UNREADABLE,
            ) from None


def _as_file(folder: str, name: str, data: bytes | None, file: str | None) -> str:
    if data is None:
        return file or ""
    path = Path(folder) / name
    path.touch(mode=0o600)
    path.write_bytes(data)
    return str(path)


def _said(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    return str(error)
