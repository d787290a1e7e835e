"""GPU Operator: what each release brings by default and was tested with."""

from __future__ import annotations

from msgspec import Struct

SOURCE = "GPU Operator, release notes and platform support of that release"


class OperatorRelease(Struct, frozen=True):
    """Empty where the source does not say it of this release."""

    version: str
    toolkit: str
    driver: str  # branch by default
    kubernetes: str  # minors
    containerd: str
    is_cdi_default: bool
    is_drop_in: bool  # configures containerd by a drop-in, not in its file


OPERATORS: tuple[OperatorRelease, ...] = (
    OperatorRelease("24.9.0", "1.17.0", "550", "", "", False, False),
    OperatorRelease("25.3.0", "1.17.5", "570", "1.29 to 1.32", "up to 2.0", False, False),
    OperatorRelease("25.3.1", "1.17.8", "570", "1.29 to 1.33", "up to 2.0", False, False),
    OperatorRelease("25.3.4", "", "580", "", "", False, False),
    OperatorRelease("25.10.0", "1.18.0", "580", "up to 1.34", "", True, True),
    OperatorRelease("25.10.1", "1.18.1", "580", "up to 1.34", "", True, True),
    OperatorRelease("26.3.0", "1.19.0", "580", "1.32 to 1.35", "1.7 to 2.2", True, True),
)
