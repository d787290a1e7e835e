"""Credentials that a command prints (client.authentication.k8s.io v1 and v1beta1), as kubectl runs it."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from berth.base.errors import UNREADABLE, BadInput
from berth.kube.access import Access, ExecConfig

LONGEST_S = 60.0


class Printed(Struct, frozen=True, rename="camel"):
    """The status of an ExecCredential."""

    token: str | None = None
    expiration_timestamp: datetime | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None


class ExecCredential(Struct, frozen=True, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    status: Printed | None = None


async def run_plugin(
    access: Access, config: ExecConfig, environ: Mapping[str, str] = os.environ, longest_s: float = LONGEST_S
) -> Printed:
    """What the command printed. Raises BadInput for a missing command, an error, or an answer that cannot be used."""
    can_ask = config.may_ask and sys.stdin is not None and sys.stdin.isatty()
    environment = {**environ, **dict(config.env), "KUBERNETES_EXEC_INFO": _question(access, config, can_ask)}
    try:
        process = await asyncio.create_subprocess_exec(
            config.command,
            *config.args,
            stdin=None if can_ask else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if can_ask else asyncio.subprocess.PIPE,
            env=environment,
        )
    except FileNotFoundError:
        hint = config.install_hint.strip() or "Install it, or put it in PATH."
        raise _refuse(config, f"the command {config.command!r} was not found.", hint) from None
    except OSError as error:
        raise _refuse(config, f"the command {config.command!r} cannot be run: {error.strerror}.", "Mend it.") from None
    try:
        async with asyncio.timeout(longest_s):
            printed, complained = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise _refuse(config, f"{config.command} did not answer within {longest_s:g} s.", "Run it by hand.") from None
    except asyncio.CancelledError:
        process.kill()
        raise
    if process.returncode:
        said = (complained or b"").decode(errors="replace").strip()[-500:]
        problem = f"{config.command} ended with {process.returncode}{': ' + said if said else ''}."
        raise _refuse(config, problem, "Run it by hand.")
    return _read(config, printed)


def _question(access: Access, config: ExecConfig, can_ask: bool) -> str:
    """KUBERNETES_EXEC_INFO: the ExecCredential with the spec that the plugin may look at."""
    spec: dict[str, Any] = {"interactive": can_ask}
    if config.provide_cluster_info:
        cluster: dict[str, Any] = {"server": access.server}
        if access.tls_server_name:
            cluster["tls-server-name"] = access.tls_server_name
        if access.insecure:
            cluster["insecure-skip-tls-verify"] = True
        authority = access.ca_data
        if authority is None and access.ca_file:
            with open(access.ca_file, "rb") as file:  # noqa: PTH123
                authority = file.read()
        if authority:
            cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
        if access.proxy_url:
            cluster["proxy-url"] = access.proxy_url
        if config.cluster_config is not None:
            cluster["config"] = config.cluster_config
        spec["cluster"] = cluster
    return msgspec.json.encode({"apiVersion": config.api_version, "kind": "ExecCredential", "spec": spec}).decode()


def _read(config: ExecConfig, printed: bytes) -> Printed:
    remedy = "Run it by hand: it must print an ExecCredential as JSON."
    try:
        answer = msgspec.json.decode(printed, type=ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _refuse(config, f"{config.command} printed no ExecCredential: {error}.", remedy) from None
    if answer.api_version != config.api_version:
        problem = f"{config.command} answered in {answer.api_version!r}, asked for {config.api_version!r}."
        raise _refuse(config, problem, "Write the version that it speaks.")
    status = answer.status
    if status is None or not (status.token or status.client_certificate_data):
        raise _refuse(config, f"{config.command} printed neither token nor client certificate.", remedy)
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise _refuse(config, f"{config.command} printed one of client certificate and key, not both.", remedy)
    return status


def _refuse(config: ExecConfig, problem: str, remedy: str) -> BadInput:
    return BadInput(config.where, problem, remedy, UNREADABLE)
