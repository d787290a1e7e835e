"""Names of one partition that differ by how its memory was rounded; profiles of one card differ by more."""

from __future__ import annotations

import pytest
from asked import codes, of_text

CODE = "MigProfileNamesDiffer"


@pytest.mark.parametrize(
    "text",
    [
        # One A100 80GB, one H100 NVL, one B200: all profiles beside each other.
        "mig-1g.10gb mig-1g.20gb mig-2g.20gb mig-3g.40gb mig-4g.40gb mig-7g.80gb",
        "mig-1g.12gb mig-1g.24gb mig-2g.24gb mig-3g.47gb mig-4g.47gb mig-7g.94gb",
        "mig-1g.23gb mig-1g.45gb mig-2g.45gb mig-3g.90gb mig-4g.90gb mig-7g.180gb",
        "nvidia.com/mig-1g.5gb: 7\nnvidia.com/mig-1g.5gb.shared: 14",
    ],
)
def test_profiles_of_one_card_are_no_finding(text: str) -> None:
    assert CODE not in codes(of_text(text))


def test_the_two_names_are_told() -> None:
    (found,) = [one for one in of_text("mig-7g.79gb: 1\nregistered mig-7g.80gb").findings if one.code == CODE]
    assert "mig-7g.79gb" in found.cause and "mig-7g.80gb" in found.cause
    assert (found.layer.name, found.cause_class) == ("L4", "mig-state")
