"""What containerd 2.4.2 says when it starts and all is well is no finding."""

from __future__ import annotations

from asked import codes

from berth.diagnosis.diagnose import diagnose
from berth.evidence.piece import Piece
from berth.evidence.read import read

START = r"""
time="2026-11-30T08:50:02Z" level=warning msg="Configuration migrated from version 3, use `containerd config migrate` to avoid migration" t="9.564µs"
time="2026-11-30T08:50:02.300600786Z" level=warning msg="failed check for fsverity support" error="enable fsverity failed: operation not supported" path=/var/lib/containerd/io.containerd.content.v1.content
time="2026-11-30T08:50:02.310279470Z" level=info msg="skip loading plugin" error="failed to check mkfs.erofs availability: failed to run mkfs.erofs --help: exec: \"mkfs.erofs\": executable file not found in $PATH: skip plugin" id=io.containerd.differ.v1.erofs type=io.containerd.differ.v1
time="2026-11-30T08:50:02.419593590Z" level=warning msg="DEPRECATION: The support for cgroup v1 is deprecated since containerd v2.2 and will be removed by no later than May 2029. Upgrade the host to use cgroup v2."
"""  # noqa: E501
LACKING = 'exec: "train.py": executable file not found in $PATH: unknown'


def of(text: str) -> set[str]:
    return codes(diagnose(read([Piece(text.encode(), "containerd-journal.txt", "host", "n1")])))


def test_its_start() -> None:
    assert of(START) - {"RuntimeStartupNoise"} == set()


def test_a_program_that_an_image_lacks_is_one_all_the_same() -> None:
    assert of(START + LACKING) - {"RuntimeStartupNoise"} == {"ProgramNotInImage"}
