"""A container image of one static busybox, made here: nothing is pulled from a registry."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

IMAGE = "devcluster.local/busybox:1"
_LINKS = ("sh", "sleep", "env", "cat", "echo", "ls", "true", "false", "id", "date")
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # as uname says it -> as images do


def write_image(busybox: Path, target: Path) -> None:
    """An OCI layout as one tar file, as `ctr image import` takes it. Run without a command the image only waits."""
    layer = _layer(busybox)
    config = _json(
        {
            "architecture": MACHINES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": ["/bin/sleep", "2147483647"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _described(config, "application/vnd.oci.image.config.v1+json"),
            "layers": [_described(layer, "application/vnd.oci.image.layer.v1.tar")],
        }
    )
    named = {"io.containerd.image.name": IMAGE, "org.opencontainers.image.ref.name": "1"}
    entry = _described(manifest, "application/vnd.oci.image.manifest.v1+json") | {"annotations": named}
    with tarfile.open(target, "w") as image:
        _add(image, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(image, "index.json", _json({"schemaVersion": 2, "manifests": [entry]}))
        for blob in (layer, config, manifest):
            _add(image, f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}", blob)


def _layer(busybox: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as layer:
        for folder in ("bin", "tmp", "etc", "proc", "sys", "dev"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            layer.addfile(entry)
        _add(layer, "bin/busybox", busybox.read_bytes(), mode=0o755)
        for name in _LINKS:
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(entry)
    return out.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _described(blob: bytes, media_type: str) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
