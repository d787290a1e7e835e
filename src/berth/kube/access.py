"""Where the API server is and who we are there."""

from __future__ import annotations

from msgspec import Struct

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
