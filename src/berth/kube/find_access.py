"""Finding the access that kubectl would have: from a kubeconfig, or from inside the cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from berth.base.errors import UNREADABLE, BadInput
from berth.kube import kubeconfig as files
from berth.kube.access import Access
from berth.kube.proxies import proxy_from_environment

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


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
