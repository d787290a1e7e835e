"""Guides, release notes, wishes, minutes and good news use the words of faults, and tell of none."""

from __future__ import annotations

import pytest
from asked import codes, of_text

from berth.evidence.in_general import is_advice, is_of_document, says_what_is, what_happened, without_denied

HARMLESS = {
    "advice": (
        "If the driver of a node is missing, install it and reboot the GPU node.",
        "Make sure that nouveau is off on the host, otherwise the installer of the nvidia driver fails.",
        "In case the DCGM exporter crashes, raise its memory limit.",
        "Note that GPUs in use cannot be reset while MIG is changed.",
        "To fix a driver/library version mismatch, reboot the node.",
        "You may see that the nvidia module is not signed; this is of no concern without Secure Boot.",
        "Without the toolkit installed, docker containers will see no GPU.",
        "Remember that a GPU pod without a toleration stays pending.",
    ),
    "remarks in a configuration": (
        '  snapshotter = "native"  # overlay does not lie on overlay\n'
        "  low = true  # without it runc dies when it may not lower a score\n"
        '  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]',
    ),
    "news": (
        "- Fixed a crash of the device plugin when the kubelet restarts",
        "Fixed missing labels on nodes with several GPUs",
        "Previously, the exporter lost its pod labels after a restart.",
        "GPU pods no longer get stuck in Pending while the autoscaler scales up",
        "Known limitations: MIG partitions are not supported together with time-slicing",
        "- Update the base image\n- Skip nodes that have no GPU label\n- Add a check for missing MIG devices",
        "Add tests for nodes without GPU labels",
        'Revert "exporter: drop the labels of pods"',
    ),
    "wishes": (
        "It would be great to have a metric for GPUs that nobody uses, the dashboards lack it.",
        "Should I switch the IOMMU off for faster P2P between the cards?",
        "Proposal: jobs that wait too long in the queue get a higher priority, so that gangs do not starve.",
        "What happens to the pods on a node when one of its GPUs becomes unhealthy?",
        "As a cluster admin I want a quota for each team, so that nobody is blocked by others.",
        "Minutes: the new taint keeps CPU jobs off the GPU pool, Ben adds the toleration.",
    ),
    "good news": (
        "Solved! The label was missing on the GPU node, everybody is happy.",
        "DKMS built the nvidia module for the new kernel without errors and all GPUs are there.",
        "Benchmark of 16 cards: no errors, no throttling, 370 GB/s.",
        "One of the GPUs had a bad riser in spring; the node has been fine since.",
        "The incident of the missing GPU labels after the NFD upgrade is closed.",
    ),
    "documents": (
        "Kueue is a queueing controller that keeps jobs pending until the quota has room.",
        "Taints keep pods without a toleration off the GPU nodes.",
        "MIG lets you split one card; a fault of one instance does not affect the others.",
        "This guide shows how GPU jobs that wait in the queue are preempted.",
        "The monitor watches the log for errors of GPUs and drains the node.",
        "Karpenter's disruption budgets allow consolidation at night.",
        "The module for the new kernel comes with the nvidia package.",
        "A namespace may be given a soft quota and a hard one.",
        "The controller decides when a queued workload may take GPUs of another team.",
    ),
}


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=f"{kind}-{n}") for kind, texts in HARMLESS.items() for n, text in enumerate(texts)]
)
def test_nothing_is_found_where_nothing_is_broken(text: str) -> None:
    assert [(one.code, one.cause) for one in of_text(text).findings] == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("since we fixed the taint the labels are missing and NFD stays silent", "NfdLabelsMissing"),
        (
            "the driver of our GPU nodes is said to be missing the kernel headers, they need to be installed by hand",
            "KernelHeadersMissing",
        ),
        ("when I label the node the mig-manager fails to change the layout", "MigChangeFailed"),
        ("kubernetes lists no GPU for that node", "ResourceNotAdvertised"),
        ("Let me know if logs help, the device plugin fails to register with the kubelet", "PluginRegistrationFails"),
        ("Fixed it once by a reboot, but kubernetes lists no GPU again", "PluginStreamBroken"),
        ("It would be great if somebody could help: the MIG partitions are gone after each reboot", "MigStateFailed"),
        ("No errors in dmesg, yet kubernetes shows no GPU for the node", "ResourceNotAdvertised"),
        ("If our node restarts, kubernetes shows no GPU for it any more", "PluginStreamBroken"),
    ],
)
def test_who_tells_of_a_fault_of_his_own_is_heard(text: str, code: str) -> None:
    assert code in codes(of_text(text))


def test_words_of_a_component_count_where_they_are_no_example() -> None:
    words = "nvidia-smi fails with a driver/library version mismatch"
    assert codes(of_text(f"{words} on our node")) == {"DriverVersionsDiffer"}
    assert codes(of_text(f"If {words}, reboot the node")) == set()
    assert codes(of_text(f"If {words} on our node, the pods fail")) == {"DriverVersionsDiffer"}


def test_advice_takes_nothing_from_what_happened() -> None:
    happened = "The pods of that node lose their GPU after a while."
    assert what_happened(f"{happened} You can restart them.").strip() == happened
    assert what_happened(f"You can restart the pods. {happened}") == ""
    assert what_happened(f"Solved! {happened}") == ""


def test_what_is_denied_is_no_trouble() -> None:
    assert without_denied("it ran without any errors and no throttling").split() == ["it", "ran", "and"]
    assert without_denied("no error message, no GPU") == "no error message, no GPU"


def test_forms_are_told_apart() -> None:
    assert is_advice("Check whether the plugin runs")
    assert not is_advice("the plugin does not run")
    assert says_what_is("Fixed a leak of the exporter")
    assert not says_what_is("it was fixed by a restart, and came back")
    assert is_of_document("You can share a GPU among several pods")
    assert not is_of_document("You can share a GPU, but mine is gone")


@pytest.mark.parametrize("word", ["if ", "without ", "is a ", "no GPU ", "to fix ", "when you ", "avoid ", "- add "])
def test_forms_are_found_in_linear_time(word: str) -> None:
    """Long lines of one word, as fuzzing makes them, take no longer than others."""
    text = word * 300 + "x"
    assert says_what_is(text) in (True, False)
    assert is_of_document(text) in (True, False)
    assert without_denied(text)
