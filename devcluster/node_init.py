"""The first process of a real node: containerd and kubelet in a process and mount namespace of their own.

Started by `unshare`; when it ends, for whatever reason, the kernel ends everything in the namespace and its mounts
are gone. /var/lib, /var/log and /run are the node's own; /var/lib/kubelet is NODE/var-lib/kubelet outside, /run/cdi
NODE/run-cdi. containerd and ctr are those of PATH.

usage: node_init.py NODE KUBELET [flags of the kubelet]
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_SOCKET = Path("/run/containerd/containerd.sock")
_AGAIN_S = 0.5


def main(node: Path, kubelet: list[str]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    _mounts(node)
    containerd = _start(["containerd", "--config", str(node / "containerd.toml")], node / "containerd.log")
    while not _SOCKET.exists() or _ctr("version") != 0:
        if containerd.poll() is not None:
            sys.exit(f"containerd ended; see {node / 'containerd.log'}")
        time.sleep(0.05)
    if _ctr("image", "import", "--snapshotter", "native", str(node / "image.tar")) != 0:
        sys.exit("the image was not imported")
    running = _start(kubelet, node / "kubelet.log")
    while True:
        ended, _ = os.wait()  # orphans of the containers come here too
        if ended == containerd.pid:
            sys.exit("containerd ended")
        if ended == running.pid:  # as an init system does, so that a test can kill it
            time.sleep(_AGAIN_S)
            running = _start(kubelet, node / "kubelet.log")


def _mounts(node: Path) -> None:
    for ours, place in (("var-lib", "/var/lib"), ("var-log", "/var/log")):
        subprocess.run(["mount", "--bind", str(node / ours), place], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    Path("/run/netns").mkdir()
    Path("/run/cdi").mkdir()
    subprocess.run(["mount", "--bind", str(node / "run-cdi"), "/run/cdi"], check=True)


def _start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)


def _ctr(*arguments: str) -> int:
    command = ["ctr", "--address", str(_SOCKET), "--namespace", "k8s.io", *arguments]
    return subprocess.run(command, capture_output=True).returncode


if __name__ == "__main__":
    with contextlib.suppress(ChildProcessError):
        main(Path(sys.argv[1]), sys.argv[2:])
