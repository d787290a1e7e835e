"""A control plane that runs: its components, its users, its state folder."""

from __future__ import annotations

import json
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from devcluster import access, binaries, certificates, cgroups, commands, counts
from devcluster.api import Admin
from devcluster.nodes import fake_nodes
from devcluster.options import (
    API_SERVER,
    COMPONENTS,
    CONTROLLER_MANAGER,
    ETCD,
    FAKE_KUBELET,
    KWOK,
    SCHEDULER,
    Options,
)
from devcluster.process import Identity, Process, Usage

_READY_S = 60.0
_PORTS = ("etcd", "etcd-peer", "api", "controller-manager", "scheduler", "kwok")
# Where a component says that it is ready; one that is not here is ready when it runs.
_HEALTH = {
    ETCD: ("http", "etcd", "/readyz"),
    API_SERVER: ("https", "api", "/readyz"),
    CONTROLLER_MANAGER: ("https", "controller-manager", "/healthz"),
    SCHEDULER: ("https", "scheduler", "/healthz"),
    KWOK: ("http", "kwok", "/healthz"),
}


class NotReady(Exception):
    """A component did not come up. The text has the end of its log."""


class Cluster:
    """One control plane. `with Cluster() as cluster:` starts it and leaves nothing behind, however it ends.

    With `state` its folder is kept; `tied=False` lets the processes go on after this program (then end them with
    `Cluster.attach(state).stop()`).
    """

    def __init__(self, options: Options | None = None, state: Path | str | None = None, tied: bool = True) -> None:
        self.options = options or Options()
        self._temporary = state is None
        self.state = Path(tempfile.mkdtemp(prefix="devcluster-")) if state is None else Path(state).absolute()
        self.tied = tied
        self.ports: dict[str, int] = {}
        self.tokens: dict[str, str] = {}
        self._processes = {name: Process(name, self.state / "logs" / f"{name}.log") for name in COMPONENTS}
        self._cgroups: list[str] = []
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._admin: Admin | None = None

    # --- the whole cluster

    @classmethod
    def attach(cls, state: Path | str) -> Cluster:
        """The cluster that another program has started in this folder. Raises FileNotFoundError."""
        state = Path(state)
        known = json.loads((state / "state.json").read_text())
        cluster = cls(Options(**known["options"]), state, tied=False)
        cluster.ports, cluster.tokens = known["ports"], known["tokens"]
        cluster._cgroups = known["cgroups"]
        for name, (pid, started_ticks) in known["processes"].items():
            process = cluster._processes.setdefault(name, Process(name, state / "logs" / f"{name}.log"))
            process.identity = Identity(pid, started_ticks)
        return cluster

    def start(self) -> Cluster:
        """Everything that the options ask for, ready. About 5 s."""
        for name in self.options.components:
            if name != FAKE_KUBELET:
                binaries.program(name, self.options.kubernetes)  # building may take minutes: before anything runs
        self._prepare()
        if self.tied:
            self._watch_over()
        try:
            self.start_component(ETCD, wait=False)  # the API server waits for it by itself
            for name in self.options.components[1:]:
                self.start_component(name)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all processes. A folder that was not asked for goes with them, of another one kubeconfigs and tokens."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        for process in reversed(self._processes.values()):
            # Nothing is lost that anybody wants: there is no need to wait for orderly ends.
            if process.is_alive:
                process.kill()
        for group in self._cgroups:
            cgroups.remove(group)
        if self._watchdog is not None and self._watchdog.stdin is not None:
            self._watchdog.stdin.write(b"keep")
            self._watchdog.stdin.close()
            self._watchdog.wait(10)
            self._watchdog = None
        if self._temporary:
            shutil.rmtree(self.state, ignore_errors=True)
        else:
            # What tells the way to a cluster goes with it: with an old kubeconfig kubectl waits for nobody.
            for left in ("state.json", "tokens.csv", *(path.name for path in self.state.glob("kubeconfig*"))):
                (self.state / left).unlink(missing_ok=True)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- one component

    def start_component(self, name: str, wait: bool = True) -> None:
        """Start it with the ports and data that it had; by default wait until it is ready."""
        command = commands.command_line(name, self.options, self.ports, self.state)
        root = {"PYTHONPATH": str(Path(__file__).parent.parent)} if name == FAKE_KUBELET else None
        self._processes[name].start(command, root)
        self._write_state()
        if name == API_SERVER and self._admin is not None:
            self._admin.forget_connections()
        if wait:
            self.wait_ready(name)

    def stop_component(self, name: str) -> None:
        """End it in order (SIGTERM)."""
        self._processes[name].stop()
        self._write_state()

    def kill(self, name: str) -> None:
        """SIGKILL."""
        self._processes[name].kill()
        self._write_state()

    def heal(self) -> None:
        """Everything that the options ask for runs and is ready, nothing else does, whatever a test has done."""
        for name in COMPONENTS:
            self.resume(name)
            if name not in self.options.components and self.is_running(name):
                self.kill(name)
            elif name in self.options.components and not self.is_running(name):
                self.start_component(name)

    def pause(self, name: str) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        self._processes[name].pause()

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self._processes[name].signal(signal.SIGCONT)

    def restart(self, name: str, down_s: float = 0.0, kill: bool = True) -> None:
        """Kill it (or end it in order), wait, start it again, ready."""
        if kill:
            self.kill(name)
        else:
            self.stop_component(name)
        time.sleep(down_s)
        self.start_component(name)

    def adopt(self, process: Process, cgroup: str = "") -> None:
        """A process that ends with the cluster, and the control group, if any, that is removed then."""
        self._processes[process.name] = process
        if cgroup and cgroup not in self._cgroups:
            self._cgroups.append(cgroup)
        self._write_state()

    def is_running(self, name: str) -> bool:
        return self._processes[name].is_alive

    def wait_ready(self, name: str, timeout_s: float = _READY_S) -> None:
        """Until its health endpoint says so. Raises NotReady with the end of its log."""
        process = self._processes[name]
        until = time.monotonic() + timeout_s
        while not self._is_ready(name):
            if not process.is_alive:
                raise NotReady(f"{name} ended while it started. {process.log}:\n{process.last_lines()}")
            if time.monotonic() > until:
                raise NotReady(f"{name} is not ready after {timeout_s:g} s. {process.log}:\n{process.last_lines()}")
            time.sleep(0.05)

    def log(self, name: str) -> Path:
        return self._processes[name].log

    def usage(self) -> dict[str, Usage]:
        """CPU seconds and memory of each component that runs, since its last start."""
        return {name: process.usage() for name, process in self._processes.items() if process.is_alive}

    # --- access

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.ports['api']}"

    @property
    def ca(self) -> Path:
        """The certificate authority that signed the API server's certificate (PEM)."""
        return self.state / "pki" / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """For the user `admin`, who may do everything."""
        return self.state / "kubeconfig"

    def token_of(self, user: str) -> str:
        return self.tokens[user]

    def kubeconfig_of(self, user: str, token: str = "") -> Path:
        """A kubeconfig for a user of the token file, or for anybody whose token is given."""
        name = user.removeprefix("system:").replace(":", "-").replace("/", "-")
        path = self.state / f"kubeconfig-{name}"
        path.write_text(access.kubeconfig(self.url, self.ca, user, token or self.tokens[user]))
        path.chmod(0o600)
        return path

    @property
    def admin(self) -> Admin:
        """A client with all rights."""
        if self._admin is None:
            self._admin = self.client("admin")
        return self._admin

    def client(self, user: str) -> Admin:
        """A client as another user. Close it."""
        return Admin(self.access_of(user))

    def access_of(self, user: str = "admin", token: str = "") -> access.Access:
        """Address, token and certificate authority, for FakeKubelet and InvariantWatcher too."""
        return access.Access(self.url, token or self.tokens[user], self.ca.read_text())

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints, as admin. Raises CalledProcessError with its words."""
        command = [str(binaries.program("kubectl", self.options.kubernetes)), f"--kubeconfig={self.kubeconfig}"]
        done = subprocess.run([*command, *arguments], input=stdin, capture_output=True, text=True)
        if done.returncode != 0:
            raise subprocess.CalledProcessError(done.returncode, arguments, done.stdout, done.stderr)
        return done.stdout

    # --- contents and counts

    def add_nodes(self, count: int, profile: str = "h100", first: int = 0) -> None:
        """Fake nodes n00000, ...: see nodes.py."""
        self.admin.create_all(fake_nodes(count, profile, first))

    def requests(self) -> counts.Requests:
        """What the API server has been asked since it started."""
        return counts.read_requests(self.admin.request("GET", "/metrics"))

    def audited_writes(self) -> Iterator[tuple[str, str, str, int]]:
        """(user, verb, resource, status) of each write; empty without Options(audit=True)."""
        return counts.audited_writes(self.state / "logs" / "audit.log")

    # --- inside

    def _prepare(self) -> None:
        """Folder, certificates, users, ports."""
        (self.state / "logs").mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.state / "etcd", ignore_errors=True)
        self.ports = dict(zip(_PORTS, access.free_ports(len(_PORTS)), strict=True))
        self.tokens = access.new_tokens()
        certificates.make_authority(self.state / "pki")
        tokens = self.state / "tokens.csv"
        tokens.write_text(access.token_file(self.tokens))
        tokens.chmod(0o600)
        for user in self.tokens:
            self.kubeconfig_of(user)
        self.kubeconfig.write_text(self.kubeconfig_of("admin").read_text())
        self.kubeconfig.chmod(0o600)
        commands.write_files(self.options, self.state)
        self._write_state()

    def _watch_over(self) -> None:
        arguments = [str(self.state), *(["remove"] if self._temporary else [])]
        program = [sys.executable, "-S", str(Path(__file__).parent / "watchdog.py"), *arguments]
        self._watchdog = subprocess.Popen(program, stdin=subprocess.PIPE, start_new_session=True)

    def _write_state(self) -> None:
        alive = {name: process.identity for name, process in self._processes.items() if process.identity is not None}
        known = {
            "options": asdict(self.options),
            "ports": self.ports,
            "tokens": self.tokens,
            "cgroups": self._cgroups,
            "processes": {name: (identity.pid, identity.started_ticks) for name, identity in alive.items()},
        }
        new = self.state / "state.json.new"
        new.touch(mode=0o600)
        new.write_text(json.dumps(known, indent=1))
        new.rename(self.state / "state.json")

    def _is_ready(self, name: str) -> bool:
        if name not in _HEALTH:
            return self._processes[name].is_alive
        scheme, port, path = _HEALTH[name]
        address = f"{scheme}://127.0.0.1:{self.ports[port]}{path}"
        # Components other than the API server make their own certificates at start; this is loopback.
        context = ssl._create_unverified_context() if scheme == "https" else None
        try:
            with urllib.request.urlopen(address, timeout=5, context=context) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False
