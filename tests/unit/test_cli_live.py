"""Commands that ask a live cluster, played by a stand-in: whose word counts, what is missing, what went wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran, here
from played_cluster import CORE, Played, node, pod, verdict

from berth.app.cli.complete import kubectl
from berth.kube.lease import OURS, SERVES

Berth = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_NOW", "2026-11-29T12:00:00Z")
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def played() -> Iterator[Played]:
    """Two nodes, one of them full; a pod that runs, one that fits, one that does not."""
    things = (node("n-1"), node("n-2"), pod("runs", gpus=8, on="n-1"), pod("fits"), pod("large", gpus=16), lease())
    with Played(*things).running() as it:
        yield it


def lease(renewed: str = "11:59:55", holder: str = "berth-1", serves: str = "berth") -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "berth", "namespace": "berth-system", "labels": OURS, "annotations": {SERVES: serves}},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": f"2026-11-29T{renewed}.000000Z"},
    }  # fmt: skip


def berth(played: Played, tmp_path: Path, *arguments: str, namespace: str = "ml") -> Ran:
    return here(*arguments, "--kubeconfig", played.kubeconfig(tmp_path, namespace))


def test_what_runs_and_what_waits(played, tmp_path):
    ran = berth(played, tmp_path, "why", "runs")
    assert (ran.code, ran.out.splitlines()[:2]) == (
        0, ["RUNNING  ml/runs  Pod · 1 pod · 8 GPUs", "  1 pod on n-1"]
    )  # fmt: skip
    ran = berth(played, tmp_path, "why", "large", "-o", "json")
    answer = json.loads(ran.out)["answers"][0]
    assert (ran.code, answer["reason"], answer["told"]) == (1, "LargerThanNode", None)
    assert "GPU CLASS" in berth(played, tmp_path, "free").out
    assert berth(played, tmp_path, "nodes", "-o", "name").out == "node/n-1\nnode/n-2\n"


def test_nodes_by_their_labels(tmp_path):
    with Played(node("a", zone="x"), node("b", zone="y"), node("c", zone="y", spot="1")).running() as played:
        assert berth(played, tmp_path, "nodes", "-o", "name", "-l", "zone=y,!spot").out == "node/b\n"
        free = json.loads(berth(played, tmp_path, "free", "-o", "json", "-l", "zone in (y,z)").out)
        assert free["classes"][0]["nodes"] == 2
        bad = berth(played, tmp_path, "nodes", "-l", "zone>3")
        assert bad.code == 2 and "is no condition on labels" in bad.err
        chosen = "zone=z,!spot,gpu in (a,b)"
        none = f"No node with GPUs has the labels {chosen}.\n"
        assert berth(played, tmp_path, "nodes", "-l", chosen).out == none
        assert berth(played, tmp_path, "free", "-l", chosen).out == none
        assert berth(played, tmp_path, "nodes", "--all", "-l", chosen).out == none.replace(" with GPUs", "")


def test_the_schedulers_own_word_goes_first_and_says_how_old_it_is(played, tmp_path):
    played.things.append(verdict("fits", position=2, ahead=5, aheadHere=["runs-2"]))
    ran = berth(played, tmp_path, "why", "fits")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "NOT YET  QuotaExceeded  ml/fits  Pod · 1 pod · 8 GPUs · for 30 min",
        "  Others wait within their quota, and 8 GPUs are above that of queue ml.",
        "  number 2 in queue ml; 5 workloads decided before it, in this namespace runs-2",
        "  said by the scheduler 12 s ago",
    ]
    # Nobody listed the whole cluster for it.
    assert not played.server.asked("/api/v1/nodes")
    anew = berth(played, tmp_path, "why", "fits", "--anew")
    assert anew.code == 0 and anew.out.startswith("FITS NOW")


@pytest.mark.parametrize(
    ("written", "arguments", "namespace"),
    [
        ("", [], "ml"),  # that of the context
        (", namespace: default", [], "default"),
        (", namespace: other", [], "other"),
        ("", ["-n", "default"], "default"),
        (", namespace: other", ["-n", "default"], "default"),
    ],
)
def test_a_job_is_checked_in_the_namespace_that_is_named_for_it(played, tmp_path, written, arguments, namespace):
    job = tmp_path / "job.yaml"
    meta = f"metadata: {{name: new{written}}}"
    job.write_text(f"apiVersion: v1\nkind: Pod\n{meta}\nspec: {{containers: [{{name: c}}]}}\n")
    ran = berth(played, tmp_path, "check", "-f", str(job), "-o", "json", *arguments)
    assert json.loads(ran.out)["answers"][0]["workload"] == f"{namespace}/new"


def test_a_fault_of_the_job_goes_before_one_of_the_way_to_the_cluster(tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: c}]}\n")
    ran = here("check", "-f", str(job), "--kubeconfig", "/nowhere")
    assert ran.code == 2 and "metadata" in ran.err
    job.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: c}]}\n")
    assert here("check", "-f", str(job), "--kubeconfig", "/nowhere").code == 3


def test_a_word_on_a_pod_of_that_name_that_was_there_before_is_not_believed(played, tmp_path):
    owner = {"kind": "Job", "name": "j", "uid": "j", "apiVersion": "batch/v1", "controller": True}
    old = {"kind": "Pod", "name": "j-x", "uid": "old"}
    played.things += [pod("j-x", gpus=9, ownerReferences=[owner]), verdict("j-x", workload=old)]
    ran = berth(played, tmp_path, "why", "j", "-o", "json")
    assert json.loads(ran.out)["answers"][0]["reason"] == "LargerThanNode"


def test_a_verdict_is_found_by_the_name_of_a_pod(played, tmp_path):
    gang = {"labels": {"berth.dev/gang": "duo"}, "annotations": {"berth.dev/min-count": "2"}}
    word = verdict("duo", "Gang", workload={"kind": "Gang", "name": "duo"})
    played.things += [pod("duo-a", gpus=8, **gang), pod("duo-b", gpus=8, **gang), word]
    ran = berth(played, tmp_path, "why", "duo-b", "-o", "json")
    answer = json.loads(ran.out)["answers"][0]
    assert (answer["workload"], answer["reason"]) == ("ml/duo", "QuotaExceeded")
    assert answer["told"]["at"] == "2026-11-29T11:59:48Z"


def test_a_reason_that_we_do_not_know_is_told_as_it_is(played, tmp_path):
    played.things.append(verdict("fits", verdict="Someday", reason="SolarFlare", sentence="the sun is in the way"))
    ran = berth(played, tmp_path, "why", "fits")
    assert ran.code == 1 and "SolarFlare  ml/fits" in ran.out and "The sun is in the way." in ran.out


def test_the_namespace_of_the_context_goes_first_then_all(played, tmp_path):
    played.things.append(pod("fits", "other", gpus=16))
    assert "other/fits" in berth(played, tmp_path, "why", "fits", namespace="other").out
    assert "ml/fits" in berth(played, tmp_path, "why", "fits", "-n", "ml", namespace="other").out
    assert "ml/large" in berth(played, tmp_path, "why", "large", namespace="other").out
    assert "other/fits" in berth(played, tmp_path, "why", "other/fits").out
    both = berth(played, tmp_path, "why", "fits", "-A").out
    assert "ml/fits" in both and "other/fits" in both
    ran = berth(played, tmp_path, "why", "large", "-n", "other")
    assert ran.code == 2 and "no workload or pod 'large' in namespace other" in ran.err


def test_a_job_is_checked_in_the_namespace_of_the_context(played, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text(json.dumps(pod("new", "x", gpus=2)).replace('"namespace": "x", ', ""))
    ran = berth(played, tmp_path, "check", "-f", str(job))
    assert ran.code == 0 and ran.out.startswith("FITS NOW ml/new")


# ---- who leads


@pytest.mark.parametrize("last", [lease("11:56:00"), lease("11:56:00", holder="")])
def test_that_nobody_leads_is_said_of_what_waits(played, tmp_path, last):
    played.things[-1] = last
    lacking = "no Berth leads here: Lease berth-system/berth is not held since 4 min"
    nobody = f"note: {lacking}; until one leads nobody places"
    ran = berth(played, tmp_path, "why", "fits")
    assert f"{nobody} pods of berth\n" in ran.err and "look at its events" not in ran.out
    assert f"{nobody} pods of berth\n" in berth(played, tmp_path, "queue").err
    played.things.append(verdict("fits"))
    ran = berth(played, tmp_path, "why", "fits")
    assert "QuotaExceeded" in ran.out and f"{nobody} what waits for it\n" in ran.err
    assert berth(played, tmp_path, "why", "runs").err == ""


def test_who_leads_is_not_doubted_without_being_seen(played, tmp_path):
    assert berth(played, tmp_path, "why", "fits").err == ""
    played.hidden = {"leases"}
    assert berth(played, tmp_path, "why", "fits").err == ""
    played.hidden, played.things[-1] = set(), pod("of-another", scheduler="default-scheduler")
    assert "Berth" not in berth(played, tmp_path, "why", "of-another").err
    assert "no Berth is seen here: no Lease of one is there" in berth(played, tmp_path, "why", "fits").err


# ---- namespaces


def test_a_namespace_that_is_not_there_is_told(played, tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: c}]}\n")
    gone = "note: there is no namespace nosuchns\n"
    assert gone in berth(played, tmp_path, "check", "-f", str(job), "-n", "nosuchns").err
    assert gone in berth(played, tmp_path, "queue", "-n", "nosuchns").err
    for there in ("ml", "default"):
        assert "no namespace" not in berth(played, tmp_path, "check", "-f", str(job), "-n", there).err
        assert "no namespace" not in berth(played, tmp_path, "queue", "-n", there).err


# ---- rights


NO_RIGHT = "cannot list nodes and pods in the whole cluster"


@pytest.mark.parametrize("command", ["nodes", "free", "check -f {job}"])
def test_the_right_that_is_missing_is_named(played, tmp_path, command):
    job = tmp_path / "job.yaml"
    job.write_text(json.dumps(pod("new")))
    played.hidden = {"nodes", "pods"}
    ran = berth(played, tmp_path, *command.format(job=job).split())
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        f"berth: {NO_RIGHT}: needs get, list on nodes, pods; asked as alice. "
        "Check with: kubectl auth can-i list nodes -A\n"
    )


def test_what_else_may_not_be_seen_is_a_note(played, tmp_path):
    played.hidden = {"jobs"}
    ran = berth(played, tmp_path, "why", "fits")
    assert ran.code == 0
    assert "note: cannot list jobs.batch in the whole cluster: needs get, list on jobs.batch; asked as alice" in ran.err


def test_one_namespace_is_enough_for_why(played, tmp_path):
    played.things.append(verdict("large"))
    played.hidden = {p for _, _, p, _, _ in CORE} | {"verdicts", "gpuqueues"}
    ran = berth(played, tmp_path, "why", "large")
    assert (ran.code, ran.err) == (1, "") and "QuotaExceeded" in ran.out
    ran = berth(played, tmp_path, "why", "runs")
    assert ran.code == 0 and "1 pod on n-1" in ran.out and "is not in the" not in ran.out
    silent = berth(played, tmp_path, "why", "fits")
    assert silent.code == 3 and NO_RIGHT in silent.err
    assert "The scheduler has said nothing of ml/fits yet" in silent.err
    played.closed = {("ml", "verdicts")}
    unread = berth(played, tmp_path, "why", "fits")
    assert unread.code == 3 and "said nothing" not in unread.err
    assert f"{NO_RIGHT}, nor verdicts.berth.dev in namespace ml" in unread.err and "berth-view" in unread.err
    played.closed = set()
    nowhere = berth(played, tmp_path, "why", "nothing")
    assert nowhere.code == 2 and "in namespace ml, and no other may be seen" in nowhere.err


def test_verdicts_that_may_not_be_read_are_not_taken_for_none(played, tmp_path):
    played.things.append(verdict("fits"))
    played.closed = {("ml", "verdicts")}
    ran = berth(played, tmp_path, "why", "fits")
    assert ran.code == 0 and "cannot list verdicts.berth.dev in namespace ml" in ran.err
    assert "worked out here" in ran.err
    assert "verdicts" not in berth(played, tmp_path, "why", "runs").err


def test_one_namespace_is_enough_for_queue(played, tmp_path):
    elsewhere = verdict("x", namespace="other")
    played.things += [verdict("large", position=2, ahead=4), verdict("fits", position=1), elsewhere]
    played.hidden = {p for _, _, p, _, _ in CORE} | {"verdicts", "gpuqueues"}
    ran = berth(played, tmp_path, "queue", "-o", "json")
    record = json.loads(ran.out)
    assert ran.code == 0 and record["queues"] == []
    assert [(w["workload"], w["position"], w["saidBy"]) for w in record["waiting"]] == [
        ("ml/fits", 1, "scheduler"), ("ml/large", 2, "scheduler")
    ]  # fmt: skip
    assert NO_RIGHT in record["notes"][0]
    played.closed = {("ml", "verdicts")}
    ran = berth(played, tmp_path, "queue")
    assert ran.code == 3 and f"{NO_RIGHT}, nor verdicts.berth.dev in namespace ml" in ran.err


QUEUE = {"apiVersion": "berth.dev/v1alpha1", "kind": "GPUQueue"}


def test_queues_by_their_status_where_pods_may_not_be_seen(played, tmp_path):
    played.things += [
        {**QUEUE, "metadata": {"name": "ml"}, "spec": {"parent": "all"},
         "status": {"used": {"*": 8, "H100-80GB": 8}, "running": 1, "waiting": 2, "waitingGpus": 17}},
        {**QUEUE, "metadata": {"name": "all"}, "spec": {"limit": {"*": 9}}},
        verdict("large"),
    ]  # fmt: skip
    played.hidden = {"pods"}
    ran = berth(played, tmp_path, "queue")
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[1] == ["all", "1", "-", "-", "9", "-", "0", "0"]
    assert lines[2] == ["ml", "1", "8", "-", "-", "1", "2", "17"]


# ---- queue


def test_queue_takes_the_schedulers_word_and_works_out_the_rest(played, tmp_path):
    played.things.append(verdict("fits"))
    ran = berth(played, tmp_path, "queue", "-o", "json")
    said = {w["workload"]: (w["reason"], w["saidBy"], w["position"]) for w in json.loads(ran.out)["waiting"]}
    assert said == {"ml/fits": ("QuotaExceeded", "scheduler", 1), "ml/large": ("LargerThanNode", "here", 2)}


def test_queue_keeps_the_places_that_the_scheduler_has_said(played, tmp_path):
    """Of two that came in the same second the scheduler knew the other one first: `queue` and Verdicts agree."""
    played.things += [verdict("fits", position=2, ahead=1), verdict("large", position=1, ahead=0)]
    ran = berth(played, tmp_path, "queue", "-o", "json")
    said = [(w["workload"], w["position"], w["ahead"]) for w in json.loads(ran.out)["waiting"]]
    assert said == [("ml/large", 1, 0), ("ml/fits", 2, 1)]


def test_queue_shows_the_namespace_of_the_context_unless_told_otherwise(played, tmp_path):
    played.things.append(pod("elsewhere", "other"))
    names = lambda ran: [w["workload"] for w in json.loads(ran.out)["waiting"]]  # noqa: E731
    assert names(berth(played, tmp_path, "queue", "-o", "json")) == ["ml/fits", "ml/large"]
    assert names(berth(played, tmp_path, "queue", "-o", "json", "-n", "other")) == ["other/elsewhere"]
    assert len(names(berth(played, tmp_path, "queue", "-o", "json", "-A"))) == 3
    assert names(berth(played, tmp_path, "queue", "other", "-o", "json")) == ["other/elsewhere"]
    assert berth(played, tmp_path, "queue", "other", "-o", "name").out == "other/elsewhere\n"
    ran = berth(played, tmp_path, "queue", "-n", "default")
    assert ran.code == 0 and "note: nothing waits in namespace default" in ran.err
    ran = berth(played, tmp_path, "queue", "othr")
    assert ran.code == 2 and "no queue 'othr'. Close to it: other." in ran.err


# ---- kinds


def test_kinds_that_are_absent_are_no_error(tmp_path):
    with Played(node("n"), pod("fits"), lease(), kinds=CORE).running() as played:
        assert berth(played, tmp_path, "why", "fits").code == 0
        ran = berth(played, tmp_path, "queue")
        assert ran.code == 0 and ran.err == "" and "ml/fits" in ran.out


def test_an_object_that_cannot_be_read_is_told_and_left_out(played, tmp_path):
    broken = pod("broken")
    broken["spec"]["priority"] = "high"
    played.things.append(broken)
    ran = berth(played, tmp_path, "nodes")
    assert ran.code == 0 and "note: an object of pods cannot be read and was left out" in ran.err


# ---- the way there


def test_nobody_listens(tmp_path):
    ran = here("nodes", "--kubeconfig", Played().kubeconfig(tmp_path, server="http://127.0.0.1:9"))
    assert ran.code == 3
    assert ran.err == (
        "berth: http://127.0.0.1:9: cannot be reached: the connection was refused. Is the cluster up, and the network "
        f"open? It is what context 'played' of {tmp_path}/kubeconfig names; choose another with --context.\n"
    )


def test_who_is_not_known_is_told_so(played, tmp_path):
    from stand_in import refused

    played.server.answers["/version"] = [refused(401, "Unauthorized", "Unauthorized")]
    ran = berth(played, tmp_path, "queue")
    assert ran.code == 3 and ran.out == ""
    assert f"does not accept user 'alice' of {tmp_path}/kubeconfig: the token is not valid, or no longer." in ran.err
    assert "secret-token" not in ran.err


def test_what_is_no_api_server(played, tmp_path):
    played.server.answers.clear()
    ran = berth(played, tmp_path, "nodes")
    assert ran.code == 3 and "Is it a Kubernetes API server?" in ran.err


@pytest.mark.parametrize(("arguments", "said"), [
    (["--context", "nowhere"], "context 'nowhere' is not defined. Choose one with --context (played)."),
    (["--from", "examples/cluster.yaml"], "--kubeconfig is of a live cluster, --from of a dump."),
])  # fmt: skip
def test_a_wrong_choice(tmp_path, arguments, said):
    ran = here("nodes", *arguments, "--kubeconfig", Played().kubeconfig(tmp_path, server="http://127.0.0.1:9"))
    assert ran.code == (3 if "--context" in arguments else 2) and said in ran.err


def test_a_plugin_that_is_not_there(tmp_path):
    config = Path(Played().kubeconfig(tmp_path, server="http://127.0.0.1:9"))
    plugin = (
        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, installHint: Get it., "
        "interactiveMode: Never}}"
    )
    config.write_text(config.read_text().replace("{token: secret-token}", plugin))
    ran = here("nodes", "--kubeconfig", str(config))
    assert ran.code == 3 and "the command 'no-such-plugin' was not found. Get it." in ran.err


# ---- watch, completion, cost


def test_watch_writes_a_line_for_each_change(played, tmp_path):
    played.things.append(verdict("fits"))
    config = played.kubeconfig(tmp_path, "ml")
    program = (sys.executable, "-c", "from berth.app.cli.main import main; main()")
    with subprocess.Popen(
        [*program, "why", "fits", "-w", "-o", "json", "--kubeconfig", config], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        played.things[-1] = verdict("fits", reason="Fragmented", sentence="scattered", at="2026-11-29T11:59:50Z")
        second = json.loads(process.stdout.readline())
        process.terminate()
    assert [first["answers"][0]["reason"], second["answers"][0]["reason"]] == ["QuotaExceeded", "Fragmented"]


def test_names_are_completed_for_kubectl(played, tmp_path, capsys):
    played.things.append(verdict("fits"))
    config = played.kubeconfig(tmp_path, "ml")
    kubectl(["why", "--kubeconfig", config, ""])
    assert capsys.readouterr().out.splitlines() == ["fits\tQuotaExceeded", "runs\tpod", "large\tpod", ":4"]
    kubectl(["why", "--kubeconfig", config, "l"])
    assert capsys.readouterr().out.splitlines() == ["large\tpod", ":4"]
    kubectl(["wh"])
    assert capsys.readouterr().out.splitlines()[0].startswith("why\t")
    kubectl(["check", "-f", ""])
    assert capsys.readouterr().out.splitlines()[-1] == ":0"
    kubectl(["why", "--kubeconfig", "/nowhere", ""])
    assert capsys.readouterr().out == ":4\n"


@pytest.mark.parametrize("line", ["--help", "why --help", "queue --help", "preflight --help",
                                  "nodes --from examples/cluster.yaml"])  # fmt: skip
def test_who_asks_no_cluster_pays_for_no_client(line):
    program = (
        "import sys; from berth.app.cli.main import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\n"
        "bad = {'aiohttp', 'uvloop', 'prometheus_client'} & set(sys.modules)\n"
        "assert not bad, bad"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program, *line.split()], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
