"""Berth as people run it, in processes of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from devcluster import Admin, Refused
from kinds import install, remove

ROOT = Path(__file__).parents[2]
CRDS = [yaml.safe_load(file.read_text()) for file in sorted((ROOT / "deploy" / "crds").glob("berth.dev_*.yaml"))]
BERTH = (sys.executable, "-c", "from berth.app.cli.main import main; main()")


def install_kinds(admin: Admin) -> None:
    """The kinds of berth.dev; returns once they are served."""
    install(admin, CRDS)


def remove_kinds(admin: Admin) -> None:
    """The cluster as it is before Berth comes; returns once they are gone."""
    remove(admin, CRDS)
    admin.until(lambda: not served(admin), 20, "the kinds are gone")


def served(admin: Admin) -> set[str]:
    """Resources of berth.dev."""
    if not any(group["name"] == "berth.dev" for group in admin.get("/apis")["groups"]):
        return set()
    try:
        return {resource["name"] for resource in admin.get("/apis/berth.dev/v1alpha1")["resources"]}
    except Refused:  # the group is told of a moment before its version is served
        return set()


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        return json.loads(self.out)


def berth(kubeconfig: Path, *arguments: str) -> Ran:
    """A command with this kubeconfig and nothing else of ours in its environment."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("BERTH_", "KUBE"))}
    done = subprocess.run(
        [*BERTH, *arguments], cwd=ROOT, env={**kept, "KUBECONFIG": str(kubeconfig)}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


class Running:
    """A scheduler that runs. `url` is where it answers."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.log = log
        self.url = ""

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def get(self, path: str, token: str = "") -> tuple[int, bytes]:
        """(status, body)."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()

    def until(self, path: str, sign: str, timeout_s: float = 30.0) -> str:
        """The body once it holds a line that matches."""
        end = time.monotonic() + timeout_s
        said = ""
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            with contextlib.suppress(OSError):
                said = self.get(path)[1].decode()
                if re.search(sign, said, re.M):
                    return said
            time.sleep(0.1)
        raise AssertionError(f"{path} never said {sign}: {said[-2000:]}")


@contextlib.contextmanager
def scheduler(kubeconfig: Path, folder: Path, *arguments: str) -> Iterator[Running]:
    """`berth scheduler` on a port of its own, ended by SIGTERM."""
    log = folder / f"scheduler-{time.monotonic_ns()}.log"
    command = [*BERTH, "scheduler", "--set", "server.port=0", "--set", "server.address=127.0.0.1",
               "--set", "leaderElection.namespace=default", "--kubeconfig", str(kubeconfig), *arguments]  # fmt: skip
    with log.open("w") as stream:
        process = subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=subprocess.STDOUT, text=True)
    running = Running(process, log)
    try:
        end = time.monotonic() + 60
        while not running.url:
            assert process.poll() is None and time.monotonic() < end, log.read_text()[-3000:]
            for line in running.lines():
                if line["message"] == "serves":
                    running.url = f"http://{line['address']}"
            time.sleep(0.05)
        yield running
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
