"""Where the API server is and who we are there: from a kubeconfig, or from inside the cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from berth.base.errors import UNREADABLE, BadInput
from berth.kube.proxies import proxy_from_environment

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECRET = frozenset({"client_key_data", "token", "password"})


class ExecConfig(Struct, frozen=True):
    """A command that prints credentials (client.authentication.k8s.io). `where` is its place in the kubeconfig."""

    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    provide_cluster_info: bool = False
    cluster_config: object = None
    may_ask: bool = False
    where: str = ""


class Impersonate(Struct, frozen=True):
    """Whom to act as; the right to do so is RBAC's verb `impersonate`."""

    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Access(Struct, frozen=True):
    """One API server and one identity. Data fields are PEM bytes, file fields are absolute paths; data wins.

    `source` says where all of this came from, for error messages and for what is printed at start.
    """

    server: str
    ca_data: bytes | None = None
    ca_file: str | None = None
    client_certificate_data: bytes | None = None
    client_certificate_file: str | None = None
    client_key_data: bytes | None = None
    client_key_file: str | None = None
    token: str | None = None
    token_file: str | None = None
    username: str | None = None
    password: str | None = None
    exec: ExecConfig | None = None
    impersonate: Impersonate | None = None
    proxy_url: str | None = None
    insecure: bool = False
    tls_server_name: str | None = None
    namespace: str = "default"
    user: str = ""
    cluster: str = ""
    context: str = ""
    source: str = ""

    def __repr__(self) -> str:
        """Without secrets: this is what ends up in logs and tracebacks."""
        shown = (
            f"{name}={'(hidden)' if name in _SECRET else repr(value)}"
            for name in self.__struct_fields__
            if (value := getattr(self, name)) and name not in ("ca_data", "client_certificate_data")
        )
        return f"Access({', '.join(shown)})"


def load_access(
    kubeconfig: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The access that kubectl would use: `kubeconfig`, else $KUBECONFIG, else ~/.kube/config, else in-cluster.

    Raises BadInput (exit code 3) that names file, field and remedy.
    """
    from berth.kube import kubeconfig as files

    if kubeconfig:
        paths, must_exist = [Path(kubeconfig).expanduser()], True
    else:
        paths, must_exist = files.usual_paths(environ), False
    merged = files.merge([path for path in paths if must_exist or path.exists()])
    if not merged.is_empty:
        return files.access_of(merged, context, environ)
    if context:
        problem = f"no context {context!r}: there is no kubeconfig."
        raise BadInput(_searched(paths), problem, "Name one with --kubeconfig.", UNREADABLE)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environ, service_account)
    raise BadInput(
        _searched(paths),
        "no kubeconfig found, and this is not a pod of a cluster.",
        "Name one with --kubeconfig or KUBECONFIG.",
        UNREADABLE,
    )


def in_cluster(environ: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Access:
    """The service account of the pod that we run in. Its token is read again as it rotates."""
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "443")
    token = service_account / "token"
    if not token.exists():
        raise BadInput(
            str(token),
            "a pod of a cluster, but no service account token is mounted.",
            "Set automountServiceAccountToken, or name a kubeconfig.",
            UNREADABLE,
        )
    ca = service_account / "ca.crt"
    namespace = service_account / "namespace"
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Access(
        server=server,
        ca_file=str(ca) if ca.exists() else None,
        token_file=str(token),
        proxy_url=proxy_from_environment(server, environ),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        source="service account of this pod",
    )


def _searched(paths: list[Path]) -> str:
    return os.pathsep.join(str(path) for path in paths)
