"""A device that no specification defines, told apart by why not: it is not in the file, or the file is not taken. The
texts are those of containerd 2.4.2."""

from __future__ import annotations

import json

import pytest
from asked import of_text

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.evidence.piece import Piece
from berth.evidence.read import read

EVENT = (
    "Error: failed to create containerd container: CDI device injection failed: "
    "unresolvable CDI devices nvidia.com/gpu=GPU-3"
)
LOG = 'time="2026-11-30T08:50:05.894997944Z" level=warning msg="CDI registry refresh failed: %s"'
PARSE = r"failed to load CDI Spec failed to parse CDI Spec \"/var/run/cdi/nvidia.json\": failed to unmarshal CDI Spec: "


def spec_of(*devices: str) -> str:
    edits = {"env": ["A=b"]}
    named = [{"name": name, "containerEdits": edits} for name in devices]
    nodes = [{"path": path} for path in ("/dev/nvidiactl", "/dev/nvidia-uvm")]
    return json.dumps(
        {"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": named, "containerEdits": {"deviceNodes": nodes}}
    )


def of(spec: str | None, *log: str) -> Diagnosis:
    pieces = [Piece(EVENT.encode(), "events", "pod-events")]
    pieces += [Piece((LOG % line).encode(), "containerd-journal.txt", "host", "n1") for line in log]
    pieces += [Piece(spec.encode(), "/var/run/cdi/nvidia.json", "cdi", "n1")] if spec else []
    return diagnose(read(pieces))


def test_a_device_that_its_specification_lacks() -> None:
    (found,) = of(spec_of("GPU-0", "GPU-1")).findings
    assert found.code == "CdiDeviceUnresolvable"
    assert found.cause == (
        "No specification that the runtime reads defines nvidia.com/gpu=GPU-3: /var/run/cdi/nvidia.json has "
        "2 devices of that kind."
    )


@pytest.mark.parametrize(
    ("code", "cause", "log"),
    [
        ("CdiSpecInvalid", "yaml: found unexpected end of stream.", f"{PARSE}yaml: found unexpected end of stream"),
        (
            "CdiSpecInvalid",
            "unmarshal errors: line 1: cannot unmarshal !!str `x` into []*specs.DeviceNode.",
            rf"{PARSE}yaml: unmarshal errors:\n  line 1: cannot unmarshal !!str `x` into []*specs.DeviceNode",
        ),
        (
            "CdiSpecInvalid",
            'invalid CDI Spec: invalid version "9.9.9".',
            r"failed to load CDI Spec invalid CDI Spec: invalid version \"9.9.9\"",
        ),
        (
            "CdiEditsEmpty",
            "The device's edits are empty.",
            r"failed to load CDI Spec invalid CDI Spec: failed add device \"GPU-3\": "
            "invalid device, empty device edits",
        ),
        (
            "CdiSpecConflict",
            'nvidia.com/gpu=GPU-3 is defined twice: "/var/run/cdi/other.json", "/var/run/cdi/nvidia.json".',
            r"conflicting device \"nvidia.com/gpu=GPU-3\" (specs \"/var/run/cdi/other.json\", "
            r"\"/var/run/cdi/nvidia.json\")",
        ),
    ],
)
def test_what_the_registry_says_explains_the_device(code: str, cause: str, log: str) -> None:
    diagnosis = of(None, log)
    (found,) = diagnosis.findings
    assert found.code == code
    assert found.cause.endswith(cause)
    assert [one.finding.code for one in diagnosis.consequences] == ["CdiDeviceUnresolvable"]


def test_a_file_that_breaks_off_explains_it_without_a_log() -> None:
    diagnosis = of(spec_of("GPU-0", "GPU-3")[:-30])
    (found,) = diagnosis.findings
    assert (found.code, found.cause) == ("CdiSpecInvalid", "/var/run/cdi/nvidia.json cannot be read to its end.")
    assert [one.finding.code for one in diagnosis.consequences] == ["CdiDeviceUnresolvable"]


def test_another_specification_that_is_refused_does_not_excuse_the_one_that_lacks_the_device() -> None:
    diagnosis = of(spec_of("GPU-0"), r"failed to load CDI Spec invalid CDI Spec: invalid version \"9.9.9\"")
    assert {one.code for one in diagnosis.findings} == {"CdiDeviceUnresolvable", "CdiSpecInvalid"}


@pytest.mark.parametrize(("version", "is_off"), [("1.7.28", True), ("2.1.4", True), ("2.4.2", False)])
def test_containerd_2_4_heeds_its_switch_no_more(version: str, is_off: bool) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"nodeInfo": {"containerRuntimeVersion": f"containerd://{version}"}},
    }
    config = 'version = 3\n[plugins."io.containerd.cri.v1.runtime"]\n  enable_cdi = false\n'
    pieces = [
        Piece(json.dumps(node).encode(), "nodes"),
        Piece(config.encode(), "/etc/containerd/config.toml", "containerd-config", "n1"),
        Piece(b'"deviceListStrategy": ["cdi-cri"],', "plugin.log", "plugin-log"),
    ]
    assert ("CdiSwitchedOff" in {one.code for one in diagnose(read(pieces)).findings}) == is_off


def test_a_file_that_the_specification_names_and_the_host_lacks() -> None:
    """The specification is older than what is there now: it was not made without the file."""
    found = of_text(
        "failed to inject devices: failed to stat CDI host device \"/dev/nvidia3\": no such file or directory\n"
        "ls: cannot access /dev/nvidia3: No such file or directory\n"
    )
    told = [*found.findings, *(one.finding for one in found.consequences)]
    assert "CdiSpecStale" in {one.code for one in told}
    assert not any("made without" in one.cause for one in told)
