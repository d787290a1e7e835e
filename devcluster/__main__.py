"""python -m devcluster up | down | status | kubelet | device-plugin | build | pin"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

from devcluster import binaries, options
from devcluster.cluster import Cluster, NotReady
from devcluster.nodes import profile_names
from devcluster.options import COMPONENTS, Options

_STATE = Path(__file__).parent.parent / ".devcluster"


def main(arguments: list[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    try:
        return {
            "up": _up,
            "down": _down,
            "status": _status,
            "kubelet": _kubelet,
            "device-plugin": _device_plugin,
            "build": _build,
            "pin": _pin,
        }[asked.command](asked)
    except (binaries.MissingBinaries, NotReady) as error:
        print(error, file=sys.stderr)
        return 3


def _up(asked: argparse.Namespace) -> int:
    running = _running(asked.state)
    if running is not None:
        print(f"A cluster runs here already: {running.kubeconfig}. `{_end(asked.state)}` ends it.", file=sys.stderr)
        return 2
    chosen = Options(
        kubernetes=asked.kubernetes,
        scheduler=asked.scheduler,
        kwok=asked.kubelet == "kwok",
        fake_kubelet=asked.kubelet == "fake",
        workload_api=not asked.no_workload_api,
        node_lifecycle=asked.node_lifecycle,
        audit=asked.audit,
    )
    began = time.monotonic()
    cluster = Cluster(chosen, asked.state, tied=False).start()
    ready = time.monotonic()
    if asked.nodes:
        cluster.add_nodes(asked.nodes, asked.profile)
    print(
        f"Kubernetes {chosen.kubernetes} at {cluster.url}, ready in {ready - began:.1f} s; "
        f"{asked.nodes} nodes ({asked.profile}) in {time.monotonic() - ready:.1f} s.",
        file=sys.stderr,
    )
    kubectl = binaries.program("kubectl", chosen.kubernetes)
    print(f"kubectl is {kubectl}. `{_end(asked.state)}` ends it. For KUBECONFIG:", file=sys.stderr)
    print(cluster.kubeconfig)
    cluster.admin.close()
    return 0


def _down(asked: argparse.Namespace) -> int:
    running = _running(asked.state)
    if running is None:
        print("No cluster runs here.", file=sys.stderr)
        return 0
    components = len(running.usage())
    running.stop()
    print(f"Ended: {components} programs. Logs are in {running.state / 'logs'}.", file=sys.stderr)
    return 0


def _end(state: Path) -> str:
    """The command that ends the cluster of this folder."""
    return "make cluster-down" if state == _STATE else f"python -m devcluster down --state {state}"


def _status(asked: argparse.Namespace) -> int:
    running = _running(asked.state)
    if running is None:
        print("No cluster runs here.", file=sys.stderr)
        return 1
    print(f"Kubernetes {running.options.kubernetes} at {running.url}")
    print(f"kubeconfig {running.kubeconfig}")
    usage = running.usage()
    for name in COMPONENTS:
        if name in usage:
            each = usage[name]
            print(f"{name:24} {each.cpu_s:8.1f} s CPU {each.rss_bytes / 2**20:7.0f} MiB")
        elif name in running.options.components:
            print(f"{name:24} not running, see {running.log(name)}")
    return 0


def _kubelet(asked: argparse.Namespace) -> int:
    """FakeKubelet until it is ended."""
    from devcluster.fake_kubelet import serve  # here: `up` needs none of it

    serve(asked.kubeconfig, stop_s=asked.stop_s, run_s=asked.run_s)
    return 0


def _device_plugin(asked: argparse.Namespace) -> int:
    """A device plugin in a process of its own, which can be stopped and killed like a real one."""
    from devcluster.device_plugin import DevicePlugin  # here: needs grpcio, which a cluster does not

    devices = [f"GPU-{index:08d}" for index in range(asked.devices)]
    with DevicePlugin(asked.folder, asked.resource, devices, cdi_kind=asked.cdi_kind):
        print("registered", flush=True)
        threading.Event().wait()
    return 0


def _build(asked: argparse.Namespace) -> int:
    for name in (*binaries.IN_ONE[:1], *(tool.programs[0] for tool in binaries.TOOLS)):
        print(binaries.program(name, asked.kubernetes).parent)
    return 0


def _pin(asked: argparse.Namespace) -> int:
    from devcluster.pin import pin

    print(pin(asked.kubernetes))
    return 0


def _running(state: Path) -> Cluster | None:
    try:
        cluster = Cluster.attach(state)
    except (FileNotFoundError, ValueError):
        return None
    return cluster if cluster.usage() else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devcluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, what: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=what, description=what)
        made.add_argument("--state", type=Path, default=_STATE, help="folder of the cluster (default .devcluster)")
        version = f"version (default {options.DEFAULT_KUBERNETES})"
        made.add_argument("--kubernetes", default=Options().kubernetes, help=version)
        return made

    up = command("up", "start a control plane with fake nodes; prints the path of the kubeconfig")
    up.add_argument("--nodes", type=int, default=0)
    up.add_argument("--profile", choices=profile_names(), default="h100")
    up.add_argument("--kubelet", choices=["kwok", "fake", "none"], default="kwok", help="who runs the pods")
    up.add_argument("--scheduler", action="store_true", help="with the real kube-scheduler")
    up.add_argument("--no-workload-api", action="store_true", help="without PodGroup and its feature gates")
    up.add_argument("--node-lifecycle", action="store_true", help="silent nodes turn NotReady")
    up.add_argument("--audit", action="store_true", help="log each write to logs/audit.log")
    command("down", "end it")
    command("status", "what runs and what it uses")
    kubelet = command("kubelet", "run the pods of fake nodes until interrupted")
    kubelet.add_argument("--kubeconfig", type=Path, required=True)
    kubelet.add_argument("--stop-s", type=float, default=0.0, help="seconds that a pod takes to stop")
    kubelet.add_argument("--run-s", type=float, default=None, help="seconds after which a pod succeeds")
    plugin = command("device-plugin", "serve devices to a real kubelet until interrupted")
    plugin.add_argument("--folder", type=Path, required=True, help="the kubelet's device-plugins folder")
    plugin.add_argument("--resource", default="nvidia.com/gpu")
    plugin.add_argument("--devices", type=int, default=8)
    plugin.add_argument("--cdi-kind", default="", help="answer with CDI devices of this kind, such as nvidia.com/gpu")
    command("build", "build the programs, which `up` else does when they are missing")
    command("pin", "write the module file of another version of Kubernetes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
