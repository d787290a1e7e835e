"""One real node: a kubelet with containerd, in namespaces of its own, joined to a cluster of this machine.

It needs root and the Debian packages containernetworking-plugins and busybox-static, and what its runtime is made of
(runtimes.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from devcluster import access, binaries, cgroups
from devcluster.busybox_image import IMAGE, write_image
from devcluster.certificates import make_certificate
from devcluster.cluster import Cluster
from devcluster.process import Process
from devcluster.runtimes import DEBIAN, Runtime


def missing(runtime: Runtime = DEBIAN) -> str:
    """Why no real node can run here; empty where one can, once what Go builds is built."""
    if os.geteuid() != 0:
        return "A real node needs root."
    if not shutil.which("unshare"):
        return "A real node needs the program unshare (util-linux)."
    return runtime.missing()


class RealNode:
    """A node that runs containers, from `start` to `stop`. It ends with its cluster.

    `device_plugins` is the folder where device plugins register; `kubelet_folder` the kubelet's root; `cdi_specs` what
    the node sees as /run/cdi, which only a runtime that knows CDI reads.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str = "real-0",
        config: dict[str, Any] | None = None,
        runtime: Runtime = DEBIAN,
    ) -> None:
        self.name = name
        self.folder = cluster.state / "nodes" / name
        self.kubelet_folder = self.folder / "var-lib" / "kubelet"
        self.device_plugins = self.kubelet_folder / "device-plugins"
        self.cdi_specs = self.folder / "run-cdi"
        self.containerd_config = self.folder / "containerd.toml"
        self.containerd_log = self.folder / "containerd.log"
        self._cluster = cluster
        self._config = config or {}
        self._runtime = runtime
        self._group = f"devcluster-{hashlib.sha256(str(self.folder).encode()).hexdigest()[:10]}"
        self._process = Process(f"node-{name}", self.folder / "node.log")

    def start(self, timeout_s: float = 60.0, keeps_disk: bool = False) -> RealNode:
        """Ready in the API when this returns; about 2 s. With `keeps_disk` it is the node that was stopped, rebooted.

        Raises MissingBinaries, TimeoutError.
        """
        if reason := missing(self._runtime):
            raise binaries.MissingBinaries(reason)
        path = self._runtime.path()
        kubelet = binaries.program("kubelet", self._cluster.options.kubernetes)
        if not keeps_disk:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._write_files()
        cgroups.make(self._group)
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        init = [sys.executable, "-S", str(Path(__file__).parent / "node_init.py"), str(self.folder)]
        self._process.start([*namespaces, *init, str(kubelet), *self._kubelet_flags()], {"PATH": path})
        self._cluster.adopt(self._process, self._group)
        try:
            self._cluster.admin.until(self._is_ready, timeout_s, f"{self.name} is ready")
        except TimeoutError as late:
            self.stop()
            raise TimeoutError(f"{late} The end of {self.folder / 'kubelet.log'}:\n{self.last_lines()}") from None
        return self

    def stop(self) -> None:
        """Kubelet, containerd and all containers are gone; the Node object stays."""
        self._process.kill()
        cgroups.remove(self._group)

    def __enter__(self) -> RealNode:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def signal_kubelet(self, number: int = signal.SIGKILL) -> int:
        """Send the kubelet a signal; its process number. One that ends is started again, as an init system does."""
        pid = self.kubelet_pid()
        if pid is None:
            raise ProcessLookupError(f"No kubelet runs on {self.name} now.")
        os.kill(pid, number)
        return pid

    def kubelet_pid(self) -> int | None:
        """The kubelet's process number as this side of the namespace counts; None while it is down."""
        assert self._process.identity is not None, "start() comes first"
        for init in _children(self._process.identity.pid):  # unshare -> node_init -> kubelet
            for pid in _children(init):
                if _command(pid) == "kubelet":
                    return pid
        return None

    def wait_allocatable(self, resource: str, amount: int, timeout_s: float = 15.0) -> None:
        """Until the node advertises so much. Raises TimeoutError."""

        def advertised() -> bool:
            node = self._cluster.admin.get(f"/api/v1/nodes/{self.name}")
            return int(node["status"]["allocatable"].get(resource, "0")) == amount

        self._cluster.admin.until(advertised, timeout_s, f"{self.name} advertises {amount} {resource}")

    def last_lines(self, count: int = 15) -> str:
        """The end of the kubelet's log."""
        for log in (self.folder / "kubelet.log", self.containerd_log, self.folder / "node.log"):
            if log.exists() and log.stat().st_size:
                return "\n".join(log.read_text(errors="replace").splitlines()[-count:])
        return "(no log)"

    def pod(self, name: str, namespace: str, command: str, gpus: int = 0, **spec: Any) -> dict[str, Any]:
        """A pod for this image-less world: a shell command in busybox, bound to this node."""
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
        container = {
            "name": "main",
            "image": IMAGE,
            "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", command],
            "resources": {"limits": limits},
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "nodeName": self.name,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "containers": [container],
                **spec,
            },
        }

    def output(self, namespace: str, pod: str) -> str:
        """What the pod's container has written, read from the node's own log files."""
        lines = []
        for log in sorted((self.folder / "var-log" / "pods").glob(f"{namespace}_{pod}_*/main/*.log")):
            # Each line: time, stream, whether it is whole, text.
            lines += [line.split(" ", 3)[3] for line in log.read_text().splitlines()]
        return "\n".join(lines)

    # --- inside

    def _is_ready(self) -> bool:
        if not self._process.is_alive:
            raise TimeoutError(f"{self.name} ended while it started.")
        nodes = self._cluster.admin.items("/api/v1/nodes", fieldSelector=f"metadata.name={self.name}")
        conditions = [each for node in nodes for each in node["status"].get("conditions", [])]
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _write_files(self) -> None:
        for each in ("var-lib/kubelet", "var-lib/containerd", "var-log", "cni", "run-cdi"):
            (self.folder / each).mkdir(parents=True, exist_ok=True)
        busybox = Path(shutil.which("busybox") or "")
        write_image(busybox, self.folder / "image.tar")
        self.containerd_config.write_text(self._runtime.config(self.folder))
        (self.folder / "cni" / "10-pods.conflist").write_text(json.dumps(_POD_NETWORK))
        pki = self._cluster.state / "pki"
        subject = f"/O=system:nodes/CN=system:node:{self.name}"
        make_certificate(pki, self.name, subject)
        # Both are JSON, which is YAML.
        (self.folder / "kubeconfig").write_text(json.dumps(self._kubeconfig(pki)))
        (self.folder / "kubelet.json").write_text(json.dumps(self._kubelet_config(pki) | self._config))

    def _kubeconfig(self, pki: Path) -> dict[str, Any]:
        server = {"server": self._cluster.url, "certificate-authority": str(self._cluster.ca)}
        user = {"client-certificate": str(pki / f"{self.name}.crt"), "client-key": str(pki / f"{self.name}.key")}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "devcluster", "cluster": server}],
            "users": [{"name": "node", "user": user}],
            "contexts": [{"name": "node", "context": {"cluster": "devcluster", "user": "node"}}],
            "current-context": "node",
        }

    def _kubelet_flags(self) -> list[str]:
        address = _own_address()
        return [
            f"--config={self.folder / 'kubelet.json'}",
            f"--kubeconfig={self.folder / 'kubeconfig'}",
            f"--hostname-override={self.name}",
            f"--node-labels=kubernetes.io/hostname={self.name}",
            *([f"--node-ip={address}"] if address else []),
        ]

    def _kubelet_config(self, pki: Path) -> dict[str, Any]:
        (port,) = access.free_ports(1)
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(pki / "ca.crt")},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "port": port,
            "healthzPort": 0,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._group}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,  # not every file system has what it needs
            "enforceNodeAllocatable": [],
            "evictionHard": {
                "memory.available": "0%",
                "nodefs.available": "0%",
                "nodefs.inodesFree": "0%",
                "imagefs.available": "0%",
            },
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "makeIPTablesUtilChains": False,
            "maxPods": 30,
            "resolvConf": "",
            "nodeStatusUpdateFrequency": "1s",  # a test does not wait ten
        }


# A pair of interfaces for each pod: nothing of it is left when the pod's namespace ends, and no pod reaches further.
_POD_NETWORK = {
    "cniVersion": "0.4.0",
    "name": "pods",
    "plugins": [
        {
            "type": "ptp",
            "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.254.0.0/24"}]], "dataDir": "/run/cni"},
        }
    ],
}


def _own_address() -> str:
    """An address of this machine that is not loopback, which a kubelet refuses as its own; empty where none is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: the kernel only picks a source address
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
