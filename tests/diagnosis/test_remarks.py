"""A line whose writer says that it goes on, or that all works: an answer where there is no other, and never more."""

from __future__ import annotations

import pytest
from asked import of_text

from berth.evidence.formats.remarks import Remark
from berth.evidence.piece import Piece
from berth.evidence.read import read


@pytest.mark.parametrize(
    ("text", "code", "layer"),
    [
        ("WARNING [x.py:44] The error message 'scheduled before' can be ignored", "GoesOnByItself", "L6"),
        ("level=info msg=\"dockerd: option not known here, ignoring\"", "GoesOnByItself", "L2"),
        ("nvcc warning : The 'sm_35' architectures are deprecated", "GoesOnByItself", "L6"),
        ("torch/x.py:68: UserWarning: all input tensors were scalars; will unsqueeze", "WarningAlone", "L6"),
        ("W0412 10:11:12.3 1234 x.go:1] kubelet: a thing that nobody has written down", "WarningAlone", "L3"),
        ("The exporter logs a line at each start and everything works fine. Is this normal?", "WorksAllTheSame", "L4"),
        ("The device plugin restarts twice and runs after that. Is that expected?", "WorksAllTheSame", "L3"),
    ],
)  # fmt: skip
def test_what_is_said_of_it_is_answered(text: str, code: str, layer: str) -> None:
    found = of_text(text)
    assert found.findings == ()
    assert [(one.code, one.layer.name) for one in found.traps] == [(code, layer)]


@pytest.mark.parametrize(
    "text",
    [
        "UserWarning: something odd\nRuntimeError: it ends here",
        "nvidia-smi works fine on the host but the pod sees nothing",
        "everything works except the second job, which hangs",
        "the job fails, is this normal?",
        "Since then GPU nodes have no driver and GPU pods do not run.",
    ],
)
def test_what_does_not_work_is_not_called_harmless(text: str) -> None:
    assert [one.code for one in of_text(text).traps] == []


def test_a_remark_gives_way_to_whatever_else_is_found() -> None:
    remark = "torch/x.py:68: UserWarning: all input tensors were scalars; will unsqueeze"
    fault = "NVRM: Xid (PCI:0000:b3:00): 79, pid=1, GPU has fallen off the bus."
    beside = of_text(f"{remark}\n{fault}")
    assert [one.code for one in beside.findings] == ["GpuFellOffBus"]
    assert beside.traps == ()
    trap = "[drm] nvidia 0000:02:00.0: Cannot find any crtc or sizes"
    assert [one.code for one in of_text(f"{remark}\n{trap}").traps] == ["DriverStartupNoise"]


def test_a_line_that_is_known_to_be_harmless_holds_back_what_rests_on_it_alone() -> None:
    optional = "mca_base_component_repository_open: unable to open mca_btl_openib: librdmacm.so.1: cannot open shared object file: No such file or directory (ignored)"  # noqa: E501
    missing = "ImportError: libnccl.so.2: cannot open shared object file: No such file or directory"
    assert of_text(optional).findings == ()
    assert "ImageLibraryMissing" in {one.code for one in of_text(f"{optional}\n{missing}").findings}


def test_logs_and_documents_are_not_asked() -> None:
    line = 'level=warning msg="containerd: ignoring this"\n'
    assert read([Piece(line.encode() * 400, "log")]).of(Remark) == []
    assert read([Piece(b'{"kind": "Pod", "warning": "ignoring"}', "object")]).of(Remark) == []
