"""The port of the endpoints is opened first: who cannot have it is told which value to change, and nothing else."""

from __future__ import annotations

import errno
import socket

import pytest
from cli_runs import here
from played_cluster import Played

from berth.app.scheduler.configuration import configure
from berth.app.scheduler.listening import _not_open, listen
from berth.base.errors import BadInput


def at(port, address="127.0.0.1"):
    return configure(None, {"server.port": str(port), "server.address": address})


def test_it_listens_at_once():
    (one,) = listen(at(0))
    with one, socket.create_connection(one.getsockname(), timeout=5):
        pass


def test_a_port_in_use_is_told_and_nobody_is_asked(tmp_path):
    (taken,) = listen(at(0))
    port = taken.getsockname()[1]
    played = Played()
    with taken, played.running():
        values = ("--set", f"server.port={port}", "--set", "server.address=127.0.0.1")
        ran = here("scheduler", "--kubeconfig", played.kubeconfig(tmp_path), "--set", "logLevel=error", *values)
    assert ran.code == 2
    assert f"berth: --set server.port: {port} is in use. Stop what listens there, or set another" in ran.err
    assert not played.server.seen and ran.err.count("\n") == 1


@pytest.mark.parametrize("address", ["192.0.2.1", "no such host", "a" * 300])
def test_an_address_of_another_machine_is_told(address):
    with pytest.raises(BadInput, match="is no address of this machine"):
        listen(at(0, address))


def test_a_port_that_takes_more_rights_is_told():
    error = _not_open(configure(), OSError(errno.EACCES, ""))
    assert (error.exit_code, error.sentence.partition(" Set")[0]) == (
        2, "server.port: 8090 may not be opened by this user.",
    )  # fmt: skip
