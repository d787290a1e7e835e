"""`berth simulate` and `berth data` at the command line: wrong input gets a sentence, stdout stays clean."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from berth.app.cli.data import data
from berth.app.cli.main import main
from berth.app.cli.simulate import _seeds, simulate
from berth.sources import datasets

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i},96000,393216,8,G2\n" for i in range(3))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "".join(
    f"p{i},4000,8192,1,{(500, 1000)[i % 2]},\n" for i in range(30)
)


@pytest.fixture
def folder(tmp_path):
    """Three nodes and thirty pods in the format of openb."""
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_default.csv").write_text(PODS)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--seed", "x"], "'x' is no seed"),
        (["--seed", "-1"], "no seed"),
        (["--seed", "1,"], "no seed"),
        (["--seed", "9..3"], "runs backwards"),
        (["--seed", "0..99999999"], "more than 1000 seeds"),
        (["--seed", "9" * 30], "no seed"),
        (["--seed", "1,2"], "one seed"),
        (["--policy", "best"], "There are: berth, random"),
        (["--policy", "fgd"], "Add --trace"),
        (["--plot", "a.svg"], "Add --trace"),
        (["--trace", ""], "a name is empty"),
        (["--jobs", "0"], "range 1<=x<=256"),
        (["--jobs", "many"], "not a valid integer"),
        (["-o", "yaml"], "'table', 'json', 'csv'"),
        (["--demand", "guessed"], "'known', 'learned'"),
        (["--moves", "1"], "Add --trace"),
        (["--moves", "-1"], "range 0<=x<=100"),
        (["--moves", "nan"], "not a number"),
        (["--moves", "1", "--policy", "fgd", "--trace", "openb:default"], "Add berth to --policy"),
        (["surplus"], "unexpected extra argument"),
    ],
)
def test_wrong_flags_are_usage_errors(arguments, says):
    result = CliRunner().invoke(simulate, ["packing", *arguments])
    assert result.exit_code == 2
    assert says in result.stderr
    assert result.stdout == ""


def _main(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out = capsys.readouterr()
    return int(ended.value.code or 0), out.out, out.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--trace", "nowhere"], 2, "neither openb:VARIANT nor a folder"),
        (["--trace", "FOLDER:other"], 2, "no pod list of the variant 'other'"),
        (["--trace", "FOLDER/sub"], 3, "holds no openb_node_list_gpu_node.csv"),
        (["--trace", "openb:default"], 3, "BERTH_DATA"),
        (["--trace", "FOLDER", "--plot", "a.pdf"], 2, "neither .svg nor .png"),
        (["--trace", "FOLDER", "--plot", "FOLDER/no/a.svg"], 2, "does not exist"),
    ],
)
def test_traces_that_are_not_there(capsys, monkeypatch, folder, arguments, code, says):
    monkeypatch.delenv("BERTH_DATA", raising=False)
    (folder / "sub").mkdir()
    given = [a.replace("FOLDER", str(folder)) for a in arguments]
    ended, out, err = _main(capsys, "simulate", "packing", *given)
    assert (ended, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


def test_seeds_are_lists_and_ranges():
    assert _seeds(None, None, "42") == (42,)
    assert _seeds(None, None, "3..5,4, 9") == (3, 4, 5, 9)
    assert _seeds(None, None, None) is None


def test_json_is_alone_on_stdout(capsys, folder):
    arguments = ("--trace", str(folder), "--policy", "fgd,berth", "--seed", "1..2", "--jobs", "1", "-o", "json")
    code, out, err = _main(capsys, "simulate", "packing", *arguments)
    record = json.loads(out)
    assert code == 0
    assert [(r["policy"], r["seed"]) for r in record["runs"]] == [("fgd", 1), ("fgd", 2), ("berth", 1), ("berth", 2)]
    assert [(s["policy"], s["n"]) for s in record["summary"]] == [("fgd", 2), ("berth", 2)]
    assert "4 runs in" in err


def test_moves_have_a_policy_name_of_their_own(capsys, folder):
    arguments = ("--trace", str(folder), "--policy", "berth,fgd", "--jobs", "1", "--moves", "10", "-o", "json")
    code, out, _ = _main(capsys, "simulate", "packing", *arguments)
    assert code == 0
    runs = json.loads(out)["runs"]
    assert [r["policy"] for r in runs] == ["berth+moves", "fgd"]
    assert 0 <= runs[0]["moved_pct"] <= 10
    assert runs[1]["moved_pct"] == 0


def test_csv_and_table_of_a_folder(capsys, folder):
    code, out, _ = _main(capsys, "simulate", "packing", "--trace", str(folder), "--policy", "fgd", "-o", "csv")
    assert code == 0
    assert out.startswith("trace,policy,seed,arrived_pct")
    code, out, _ = _main(capsys, "simulate", "packing", "--trace", str(folder), "--policy", "fgd")
    assert code == 0
    assert "Unallocated GPUs in percent" in out


def test_plot_is_written(capsys, folder):
    pytest.importorskip("matplotlib")
    picture = folder / "curves.svg"
    code, _, err = _main(
        capsys, "simulate", "packing", "--trace", str(folder), "--policy", "fgd", "--plot", str(picture)
    )
    assert code == 0
    assert picture.read_text().lstrip().startswith("<?xml")
    assert str(picture) in err


def test_help_names_the_policies():
    result = CliRunner().invoke(simulate, ["packing", "--help"])
    assert result.exit_code == 0
    assert "clustering" in result.stdout


def test_data_lists_source_licence_and_hash():
    result = CliRunner().invoke(data, [])
    assert result.exit_code == 0
    for one in datasets.datasets():
        assert one.sha256 in result.stdout
    record = json.loads(CliRunner().invoke(data, ["-o", "json"]).stdout)
    assert {"name", "source", "commit", "licence", "sha256"} <= set(record["datasets"][0])


def test_verify_tells_missing_from_different(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("BERTH_DATA", raising=False)
    assert _main(capsys, "data", "verify")[0] == 3
    assert _main(capsys, "data", "verify", str(tmp_path / "no"))[0] == 3
    code, out, _ = _main(capsys, "data", "verify", str(tmp_path))
    assert code == 3
    assert "missing" in out
    (tmp_path / "traces" / "openb-v2023").mkdir(parents=True)
    code, out, _ = _main(capsys, "data", "verify", str(tmp_path), "-o", "json")
    assert code == 1
    assert json.loads(out)["datasets"][0]["state"] == "different"
