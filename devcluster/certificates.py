"""A certificate authority of the cluster's own, and the certificates it signs: made with `openssl`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from devcluster.binaries import MissingBinaries

_DAYS = "3650"
_SERVER_NAMES = "IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"


def make_authority(folder: Path) -> None:
    """ca.crt and ca.key, a serving certificate for the API server, and the key that signs ServiceAccount tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    subject = ["-subj", "/CN=devcluster", "-addext", "keyUsage=critical,digitalSignature,keyCertSign,cRLSign"]
    _openssl(folder, "req", "-x509", *_new_key("ca.key"), "-days", _DAYS, "-out", "ca.crt", *subject)
    make_certificate(folder, "apiserver", "/CN=kube-apiserver", names=_SERVER_NAMES)
    _openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "service-accounts.key")


def make_certificate(folder: Path, name: str, subject: str, names: str = "") -> None:
    """NAME.crt and NAME.key for a subject such as `/O=system:nodes/CN=system:node:real`, good for both ends."""
    extension = folder / f"{name}.ext"
    lines = ["extendedKeyUsage=serverAuth,clientAuth", *([f"subjectAltName={names}"] if names else [])]
    extension.write_text("\n".join(lines) + "\n")
    _openssl(folder, "req", *_new_key(f"{name}.key"), "-out", f"{name}.csr", "-subj", subject)
    authority = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"]
    request = ["-in", f"{name}.csr", "-days", _DAYS, "-extfile", extension.name]
    _openssl(folder, "x509", "-req", *request, *authority, "-out", f"{name}.crt")
    extension.unlink()
    (folder / f"{name}.csr").unlink()


def _new_key(path: str) -> list[str]:
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path]


def _openssl(folder: Path, *arguments: str) -> None:
    if shutil.which("openssl") is None:
        raise MissingBinaries("The certificates of the cluster are made with the program openssl; it is not installed.")
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(arguments)}: {done.stderr.strip()}")
