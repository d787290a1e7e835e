"""CDI specifications are read whole, truncated, as YAML and as JSON."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from berth.evidence.formats.container_facts import CdiListed, CdiSpec
from berth.evidence.piece import Piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples" / "cdi"
needs_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="BERTH_DATA has no samples")


def spec(text: str, source: str = "") -> CdiSpec:
    (found,) = read([Piece(text.encode(), source=source)]).of(CdiSpec)
    return found


@needs_samples
@pytest.mark.parametrize("number", range(4))
def test_samples(number: int) -> None:
    found = spec((SAMPLES / f"toolkit_expected_{number}.yaml").read_text())
    assert (found.kind, found.version) == ("example.com/device", "0.5.0")
    assert found.names == ("example.com/device=0", "example.com/device=all")
    assert found.nodes == ("/dev/nvidiactl",)
    assert found.devices[0].nodes == ("/dev/nvidia0",)
    assert found.driver == "999.88.77"
    assert found.hooks == (("/usr/bin/nvidia-cdi-hook",) if number < 3 else ())


def test_json() -> None:
    found = spec(
        '{"cdiVersion":"0.6.0","kind":"k8s.gpu.nvidia.com/claim","devices":[{"name":"a-gpu-0","containerEdits":{}}],'
        '"containerEdits":{}}',
        "/var/run/cdi/k8s.gpu.nvidia.com-claim.json",
    )
    assert found.names == ("k8s.gpu.nvidia.com/claim=a-gpu-0",)
    assert found.all_nodes == ()
    assert found.path == "/var/run/cdi/k8s.gpu.nvidia.com-claim.json"


def test_truncated_under_a_prompt() -> None:
    found = spec(
        '$ cat /etc/cdi/nvidia.yaml\n---\ncdiVersion: 0.5.0\ndevices:\n- name: "0"\n  containerEdits:\n'
        "    deviceNodes:\n"
        "    - path: /dev/nvidia0\n    - path: /dev/dri/card1\nkind: nvidia.com/gpu\ncontainerEdits:\n  deviceNodes:\n"
        "  - path: /dev/nvidia-uvm\n  hooks:\n  - args: [\n"
    )
    assert found.names == ("nvidia.com/gpu=0",)
    assert found.devices[0].nodes == ("/dev/nvidia0", "/dev/dri/card1")
    assert found.nodes == ("/dev/nvidia-uvm",)
    assert found.path == "/etc/cdi/nvidia.yaml"


def test_lists_of_devices() -> None:
    text = "INFO[0000] Found 3 CDI devices\nnvidia.com/gpu=0\nnvidia.com/gpu=GPU-e90\nnvidia.com/gpu=all\n"
    (found,) = read([Piece(text.encode())]).of(CdiListed)
    assert found.names == ("nvidia.com/gpu=0", "nvidia.com/gpu=GPU-e90", "nvidia.com/gpu=all")
    (none,) = read([Piece(b'time="x" level=info msg="Found 0 CDI devices"\n')]).of(CdiListed)
    assert none.names == ()
    docker = " Discovered Devices:\n  cdi: nvidia.com/gpu=0\n  cdi: nvidia.com/gpu=all\n Swarm: inactive\n"
    assert read([Piece(docker.encode())]).of(CdiListed)[0].names == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")


@pytest.mark.parametrize(
    "text", ["cdiVersion:", "cdiVersion: [", '{"cdiVersion": "0.5.0", "devices": [{', "cdiVersion: x\n\x00"]
)
def test_rubble_does_not_raise(text: str) -> None:
    read([Piece(text.encode())])
