"""Traces are read as they are, and wrong input is answered with file, row, column, value, rule and remedy."""

from __future__ import annotations

import pytest

from berth.base.errors import BadInput
from berth.sources import csv_rows, traces
from berth.sources.traces import read_trace

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,1000,8,G2\nn1,64000,1000,2,T4\nn2,8000,1000,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
    "p0,4000,10,1,460,,LS\np1,8000,20,2,1000,T4|G2,BE\np2,1000,30,0,0,,LS\np3,1000,30,1,1000,G2|T4,LS\n"
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / traces.NODE_FILE).write_text(NODES)
    (tmp_path / traces.POD_FILE.format("default")).write_text(PODS)
    return tmp_path


def refused(folder, pods=None, nodes=None, name=None):
    if pods is not None:
        written = pods if isinstance(pods, bytes) else pods.encode()
        (folder / traces.POD_FILE.format("default")).write_bytes(written)
    if nodes is not None:
        (folder / traces.NODE_FILE).write_text(nodes)
    with pytest.raises(BadInput) as caught:
        read_trace(name or str(folder))
    assert caught.value.remedy, "an error says what to do"
    return caught.value.sentence


def test_columns_come_in_file_order(folder):
    trace = read_trace(f"{folder}:default")
    assert trace.cluster.names == ("n0", "n1", "n2")
    assert trace.cluster.models == ("G2", "T4")
    assert trace.cluster.model.tolist() == [0, 1, -1]
    assert trace.cluster.capacity_milli == 10_000
    assert trace.pods.names == ("p0", "p1", "p2", "p3")
    assert trace.pods.asked_milli.tolist() == [460, 2000, 0, 1000]
    assert [trace.pods.specs[spec] for spec in trace.pods.spec] == [(), ("G2", "T4"), (), ("G2", "T4")]


def test_a_pod_list_may_lack_specs_and_have_its_columns_in_any_order(folder):
    (folder / traces.POD_FILE.format("small")).write_text(
        "gpu_milli,num_gpu,memory_mib,cpu_milli,name\n1000,1,5,100,a\n")
    pods = read_trace(f"{folder}:small").pods
    assert (pods.gpu_milli.tolist(), pods.cpu_milli.tolist(), pods.specs) == ([1000], [100], ((),))


def test_names_resolve_through_the_environment(folder, monkeypatch, tmp_path):
    monkeypatch.delenv("BERTH_DATA", raising=False)
    assert "BERTH_DATA is not set" in refused(folder, name="openb:default").replace(":", "")
    monkeypatch.setenv("BERTH_DATA", str(tmp_path / "nowhere"))
    assert "holds no traces/openb-v2023" in refused(folder, name="openb:default")
    target = tmp_path / "data" / "traces"
    target.mkdir(parents=True)
    (target / "openb-v2023").symlink_to(folder)
    monkeypatch.setenv("BERTH_DATA", str(tmp_path / "data"))
    assert read_trace("openb:default").name == "openb:default"
    assert "It has: default" in refused(folder, name="openb:gpuspec34")
    assert "It has: default" in refused(folder, name="openb:../../default")
    assert "neither" in refused(folder, name="nonsense")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("p9,-4,10,1,460,,", ["row 2, column cpu_milli", "'-4'", "whole number"]),
        ("p9,4.5,10,1,460,,", ["column cpu_milli", "'4.5'"]),
        ("p9,1_0,10,1,460,,", ["column cpu_milli", "'1_0'"]),
        ("p9,99999999999999999999,10,1,460,,", ["column cpu_milli"]),
        ("p9,1,,1,460,,", ["column memory_mib", "''"]),
        ("p9,1,1,33,1000,,", ["column num_gpu", "'33'", "0 to 32"]),
        ("p9,1,1,1,1001,,", ["column gpu_milli", "'1001'", "0 to 1000"]),
        ("p9,1,1,1,0,,", ["column gpu_milli", "'0'", "1 to 1000"]),
        ("p9,1,1,0,500,,", ["column gpu_milli", "'500'", "num_gpu 0"]),
        ("p9,1,1,2,500,,", ["column gpu_milli", "'500'", "whole"]),
        ("p9,1,1,1,500,A||B,", ["column gpu_spec", "'A||B'"]),
        (",1,1,1,500,,", ["column name", "''"]),
        ("p9,1,1,1,500", ["row 2", "5 cells", "header has 7"]),
        ("p9,1,1,1,500,,,,", ["row 2", "9 cells"]),
        ('"p9,1,1,1,500,,', ["csv file"]),
        ("p9,1,1,1,500,,\np9,1,1,1,500,,", ["row 3, column name", "'p9'", "earlier row"]),
        ("", ["no pods"]),
    ],
)
def test_a_wrong_pod_is_told_by_its_cell(folder, row, told):
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n"
    sentence = refused(folder, pods=head + row + "\n")
    for part in ["openb_pod_list_default.csv", *told]:
        assert part in sentence


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ("sn,cpu_milli,memory_mib,gpu\nn0,1,1,1\n", ["row 1", "lacks the column model"]),
        ("sn,sn,cpu_milli,memory_mib,gpu,model\n", ["row 1", "column sn twice"]),
        ("", ["row 1", "the file is empty"]),
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,1,\n", ["row 2, column model", "names their model"]),
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,1,A|B\n", ["row 2, column model", "'A|B'"]),
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,0,\n", ["no node with a GPU"]),
        ("sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{i},1,1,1,M{i}\n" for i in range(63)),
         ["row 64, column model", "at most 62"]),
    ],
)
def test_a_wrong_node_list_is_told(folder, nodes, told):
    sentence = refused(folder, nodes=nodes)
    for part in [traces.NODE_FILE, *told]:
        assert part in sentence


def test_text_that_is_no_text_is_told(folder):
    assert "not UTF-8 at byte" in refused(folder, pods=b"name,cpu_milli\xff\xfe\n")
    assert "csv file" in refused(folder, pods=PODS.encode() + b'"\x00' + b"x" * 200_000 + b"\n")


def test_size_is_bounded(folder, monkeypatch):
    monkeypatch.setattr(csv_rows, "MAX_ROWS", 2)
    assert "row 4" in refused(folder)
    monkeypatch.setattr(csv_rows, "MAX_FILE_BYTES", 10)
    assert "at most 10 are read" in refused(folder)


def test_a_folder_that_cannot_be_read_is_told(folder):
    pods = folder / traces.POD_FILE.format("default")
    pods.unlink()
    pods.mkdir()
    assert "cannot be read" in refused(folder)
    (folder / traces.NODE_FILE).unlink()
    assert f"holds no {traces.NODE_FILE}" in refused(folder)
