"""Kubeconfig files: read, merged as kubectl merges them, and one context of them resolved.

Rules (Kubernetes docs, "Organizing Cluster Access Using kubeconfig Files"): the first file that has an entry
of a name wins with the whole entry; the first that sets current-context wins; a path is relative to its file.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from berth.base.errors import UNREADABLE, BadInput
from berth.kube.access import Access, ExecConfig, Impersonate
from berth.kube.proxies import proxy_from_environment

READ_PROXIES = ("http", "https")


class Kebab(Struct, frozen=True, rename="kebab"):
    """Base: kebab-case in the file."""


class ClusterEntry(Kebab, frozen=True, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[dict[str, Any]] | None = None


class EnvEntry(Struct, frozen=True):
    name: str
    value: str = ""


class ExecEntry(Struct, frozen=True, rename="camel"):
    command: str | None = None
    args: list[str] | None = None
    env: list[EnvEntry] | None = None
    api_version: str | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class UserEntry(Kebab, frozen=True, rename="kebab"):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: ExecEntry | None = None
    auth_provider: dict[str, Any] | None = None
    impersonate: str | None = field(default=None, name="as")
    impersonate_uid: str | None = field(default=None, name="as-uid")
    impersonate_groups: list[str] | None = field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = field(default=None, name="as-user-extra")


class ContextEntry(Kebab, frozen=True, rename="kebab"):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class NamedCluster(Struct, frozen=True):
    name: str
    cluster: ClusterEntry | None = None


class NamedUser(Struct, frozen=True):
    name: str
    user: UserEntry | None = None


class NamedContext(Struct, frozen=True):
    name: str
    context: ContextEntry | None = None


class KubeconfigFile(Struct, frozen=True, rename="kebab"):
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
    current_context: str | None = None


class Merged(Struct):
    """Entries by name, each with the file that it came from."""

    files: list[Path]
    clusters: dict[str, tuple[ClusterEntry, Path]] = field(default_factory=dict)
    users: dict[str, tuple[UserEntry, Path]] = field(default_factory=dict)
    contexts: dict[str, tuple[ContextEntry, Path]] = field(default_factory=dict)
    current: str = ""

    @property
    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current)

    @property
    def where(self) -> str:
        return os.pathsep.join(str(path) for path in self.files)


def usual_paths(environ: Mapping[str, str]) -> list[Path]:
    """$KUBECONFIG as a list of files where it is set, else ~/.kube/config."""
    named = [part for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if named:
        return [Path(part) for part in named]
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return [(Path(home) if home else Path.home()) / ".kube" / "config"]


def merge(paths: list[Path]) -> Merged:
    """All files as one. Raises BadInput for a file that cannot be read."""
    merged = Merged(files=paths)
    for path in paths:
        file = _read(path)
        for cluster in file.clusters or ():
            merged.clusters.setdefault(cluster.name, (cluster.cluster or ClusterEntry(), path))
        for user in file.users or ():
            merged.users.setdefault(user.name, (user.user or UserEntry(), path))
        for context in file.contexts or ():
            merged.contexts.setdefault(context.name, (context.context or ContextEntry(), path))
        merged.current = merged.current or file.current_context or ""
    return merged


def access_of(merged: Merged, context: str | None, environ: Mapping[str, str]) -> Access:
    """One context resolved: its cluster and its user, paths made absolute, data decoded."""
    name = context or merged.current
    known = ", ".join(sorted(merged.contexts)) or "none is defined"
    if not name:
        raise _refuse(merged.where, "no current-context is set.", f"Choose one with --context ({known}).")
    if name not in merged.contexts:
        field_name = "context" if context else "current-context"
        raise _refuse(merged.where, f"{field_name} {name!r} is not defined.", f"Choose one with --context ({known}).")
    chosen, file = merged.contexts[name]
    at = f"{file}: contexts[{name}]"
    if not chosen.cluster or chosen.cluster not in merged.clusters:
        raise _refuse(f"{at}.cluster", f"cluster {chosen.cluster!r} is not defined.", "Add it under clusters.")
    if chosen.user and chosen.user not in merged.users:
        raise _refuse(f"{at}.user", f"user {chosen.user!r} is not defined.", "Add it under users.")
    cluster, cluster_file = merged.clusters[chosen.cluster]
    user, user_file = merged.users.get(chosen.user or "", (UserEntry(), file))
    cluster_at, user_at = f"{cluster_file}: clusters[{chosen.cluster}]", f"{user_file}: users[{chosen.user}]"
    server = _server(cluster, user, cluster_at)
    ca_data = _decoded(cluster.certificate_authority_data, f"{cluster_at}.certificate-authority-data")
    ca_file = None if ca_data else _beside(cluster.certificate_authority, cluster_file)
    insecure = bool(cluster.insecure_skip_tls_verify)
    if insecure and (ca_data or ca_file):
        raise _refuse(
            f"{cluster_at}.insecure-skip-tls-verify",
            "true beside a certificate authority: one of them is not meant.",
            "Remove insecure-skip-tls-verify.",
        )
    certificate = _decoded(user.client_certificate_data, f"{user_at}.client-certificate-data")
    key = _decoded(user.client_key_data, f"{user_at}.client-key-data")
    certificate_file = None if certificate else _beside(user.client_certificate, user_file)
    key_file = None if key else _beside(user.client_key, user_file)
    if (certificate or certificate_file) and not (key or key_file):
        raise _refuse(f"{user_at}.client-key", "missing beside a client certificate.", "Add client-key-data.")
    if user.auth_provider and not (user.token or user.exec):
        provider = user.auth_provider.get("name", "?")
        raise _refuse(
            f"{user_at}.auth-provider",
            f"{provider!r}: built-in providers were removed from Kubernetes.",
            "Use the provider's exec plugin.",
        )
    return Access(
        server=server,
        ca_data=ca_data,
        ca_file=ca_file,
        client_certificate_data=certificate,
        client_certificate_file=certificate_file,
        client_key_data=key,
        client_key_file=key_file,
        token=user.token,
        token_file=_beside(user.token_file, user_file),
        username=user.username,
        password=user.password,
        exec=_exec(user.exec, cluster, user_file, f"{user_at}.exec"),
        impersonate=_impersonate(user),
        proxy_url=_proxy(cluster.proxy_url, server, environ, cluster_at),
        insecure=insecure,
        tls_server_name=cluster.tls_server_name,
        namespace=chosen.namespace or "default",
        user=chosen.user or "",
        cluster=chosen.cluster,
        context=name,
        source=str(file),
    )


def _read(path: Path) -> KubeconfigFile:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise _refuse(str(path), f"cannot be read: {error.strerror}.", "Name a file that can.") from None
    try:
        tree = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise _refuse(f"{path}{line}", f"not a kubeconfig: {problem}.", "Mend the YAML.") from None
    if tree is None:
        return KubeconfigFile()
    try:
        return msgspec.convert(tree, KubeconfigFile)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        where = f"{path}: {place.rstrip('`').lstrip('.')}".rstrip(": ")
        raise _refuse(where, f"{what}.", "Mend the kubeconfig.") from None


def _server(cluster: ClusterEntry, user: UserEntry, at: str) -> str:
    server = (cluster.server or "").rstrip("/")
    if not server:
        raise _refuse(f"{at}.server", "missing.", "Write https://HOST:PORT.")
    scheme, separator, rest = server.partition("://")
    if separator and scheme in ("http", "https") and rest:
        return server
    if separator:
        raise _refuse(f"{at}.server", f"{server!r} is not an address.", "Write https://HOST:PORT.")
    tls = cluster.certificate_authority or cluster.certificate_authority_data or cluster.insecure_skip_tls_verify
    certificate = user.client_certificate or user.client_certificate_data
    return f"{'https' if tls or certificate else 'http'}://{server}"


def _exec(entry: ExecEntry | None, cluster: ClusterEntry, file: Path, at: str) -> ExecConfig | None:
    if entry is None:
        return None
    if not entry.command:
        raise _refuse(f"{at}.command", "missing.", "Name the command that prints credentials.")
    version = entry.api_version or ""
    if version not in ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"):
        raise _refuse(
            f"{at}.apiVersion",
            f"{version!r} is not spoken.",
            "Write client.authentication.k8s.io/v1; update the plugin if it knows v1alpha1 only.",
        )
    # Only a command with a separator in it is a path; a bare name is looked for in PATH.
    has_path = Path(entry.command).name != entry.command
    settings = next(
        (each.get("extension") for each in cluster.extensions or () if each.get("name") == EXEC_EXTENSION), None
    )
    return ExecConfig(
        command=(_beside(entry.command, file) or "") if has_path else entry.command,
        args=tuple(entry.args or ()),
        env=tuple((each.name, each.value) for each in entry.env or ()),
        api_version=version,
        install_hint=entry.install_hint or "",
        provide_cluster_info=bool(entry.provide_cluster_info),
        cluster_config=settings,
        may_ask=entry.interactive_mode in (None, "IfAvailable", "Always"),
        where=at,
    )


EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def _impersonate(user: UserEntry) -> Impersonate | None:
    if not user.impersonate:
        return None
    return Impersonate(
        user=user.impersonate,
        groups=tuple(user.impersonate_groups or ()),
        uid=user.impersonate_uid or "",
        extra=tuple((key, tuple(values)) for key, values in (user.impersonate_extra or {}).items()),
    )


def _proxy(named: str | None, server: str, environ: Mapping[str, str], at: str) -> str | None:
    url = named or proxy_from_environment(server, environ)
    if url and url.partition("://")[0] not in READ_PROXIES:
        raise _refuse(f"{at}.proxy-url", f"{url!r}: only http and https proxies are supported.", "Use one of these.")
    return url or None


def _decoded(text: str | None, at: str) -> bytes | None:
    if not text:
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise _refuse(at, "not base64.", "Write the PEM file's bytes as base64.") from None


def _beside(path: str | None, file: Path) -> str | None:
    """A path as the file means it: absolute, or relative to the folder of the file."""
    return str(file.absolute().parent / path) if path else None


def _refuse(where: str, problem: str, remedy: str) -> BadInput:
    return BadInput(where, problem, remedy, UNREADABLE)
