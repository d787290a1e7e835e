"""Two installations of Berth in one cluster: one serves a name, and who cannot begin says why and takes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from devcluster import Cluster
from scheduler import Replica, holder


def end_of(replica: Replica, within_s: float = 30.0) -> str:
    """What it said last, once it has ended by itself."""
    until = time.monotonic() + within_s
    while replica.is_alive and time.monotonic() < until:
        time.sleep(0.05)
    assert not replica.is_alive, replica.last_lines()
    replica.kill()  # it may have ended
    return replica.last_lines()


def test_a_second_one_for_the_same_name_does_not_begin(
    cluster: Cluster, run_scheduler: Callable[..., Replica], namespace: str
) -> None:
    first = run_scheduler("a")
    elsewhere = {"leaderElection.namespace": "default", "leaderElection.name": "second"}
    said = end_of(run_scheduler("b", values=elsewhere, wait=False))
    assert f"schedulerNames: berth: is served by another Berth: Lease {namespace}/berth, held by" in said
    assert "Traceback" not in said and "fault of Berth" not in said
    assert holder(cluster, "default", "second") == "" and first.is_alive
    # A replica of the same installation stands by, and one with a name of its own begins.
    stands_by = run_scheduler("c", wait=False)
    assert stands_by.wait_said("stands by")["lease"] == f"{namespace}/berth"
    run_scheduler("d", values={**elsewhere, "schedulerNames": "another"})


def test_a_port_in_use_is_one_line_and_takes_no_lease(
    cluster: Cluster, run_scheduler: Callable[..., Replica], namespace: str
) -> None:
    first = run_scheduler("a")
    port = first.address().rpartition(":")[2]
    said = end_of(run_scheduler("b", values={"server.port": port, "leaderElection.name": "second"}, wait=False))
    assert said.splitlines()[-1].startswith(f"berth: --set server.port: {port} is in use. ")
    assert "SSL" not in said and "Traceback" not in said
    assert holder(cluster, namespace, "second") == ""


def test_a_namespace_that_is_not_there_is_told_and_not_each_time(run_scheduler: Callable[..., Replica]) -> None:
    lost = run_scheduler("a", values={"leaderElection.namespace": "no-such-namespace"}, wait=False)
    said = "this replica cannot lead: the namespace no-such-namespace does not exist. "
    lost.wait_said(f"{said}Make it, or set leaderElection.namespace")
    time.sleep(2.0)
    assert len([line for line in lost.lines() if str(line.get("message")).startswith(said)]) == 1
