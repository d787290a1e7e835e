"""Who may talk to the API server and where: tokens, kubeconfigs, free ports."""

from __future__ import annotations

import base64
import random
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from devcluster.options import USERS

# Below the range from which the kernel takes the ports of outgoing connections: a client that tries to reach a server
# that is down for a moment can otherwise be given the server's own port.
_PORTS = range(20_000, 32_000)


@dataclass(frozen=True)
class Access:
    """How one user reaches one API server. `authority` is the PEM text of who signed the server's certificate."""

    url: str
    token: str
    authority: str

    @classmethod
    def read(cls, path: Path) -> Access:
        """From a kubeconfig that `kubeconfig` below has written."""
        known = yaml.safe_load(path.read_text())
        server, user = known["clusters"][0]["cluster"], known["users"][0]["user"]
        authority = base64.b64decode(server["certificate-authority-data"]).decode()
        return cls(server["server"], user["token"], authority)


def new_tokens() -> dict[str, str]:
    """A token for each user."""
    return {user: secrets.token_hex(16) for user in USERS}


def token_file(tokens: Mapping[str, str]) -> str:
    """The text for --token-auth-file."""
    lines = []
    for number, (user, token) in enumerate(tokens.items()):
        groups = ",".join(USERS.get(user, ()))
        lines.append(f"{token},{user},{number}" + (f',"{groups}"' if groups else ""))
    return "\n".join(lines) + "\n"


def kubeconfig(url: str, authority: Path, user: str, token: str) -> str:
    """A kubeconfig that carries everything it needs, for one user."""
    certificate = base64.b64encode(authority.read_bytes()).decode()
    return f"""apiVersion: v1
kind: Config
current-context: devcluster
clusters:
- name: devcluster
  cluster:
    server: {url}
    certificate-authority-data: {certificate}
users:
- name: {user}
  user:
    token: {token}
contexts:
- name: devcluster
  context:
    cluster: devcluster
    user: {user}
"""


def free_ports(count: int) -> list[int]:
    """Ports on which nobody listens now. Each is taken for a moment, so that they differ."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            candidate = socket.socket()
            try:
                candidate.bind(("127.0.0.1", random.choice(_PORTS)))
            except OSError:
                candidate.close()
                continue
            held.append(candidate)
        return [each.getsockname()[1] for each in held]
    finally:
        for each in held:
            each.close()
