"""Which kind of evidence a fact is of, where nobody has said it: by what it is, how its line begins, and who speaks.

Rules do not ask it. It tells whether a second look has seen the like of the first.
"""

from __future__ import annotations

import re

from berth.evidence.fact import Fact, Said
from berth.evidence.formats.container_facts import CdiListed, CdiSpec, RuntimeConfig
from berth.evidence.formats.errors_said import ErrorSaid
from berth.evidence.formats.machine_facts import ModulesSeen, PciSeen
from berth.evidence.formats.nccl_log import NcclLine
from berth.evidence.formats.remarks import Remark, Spoke
from berth.evidence.formats.smi_facts import DeviceSeen, DriverSeen, MigInstanceSeen, NvlinkSeen, TopologySeen
from berth.evidence.formats.told import KIND as TOLD
from berth.evidence.formats.told import Told

# Who speaks in a text, in what tone, and what somebody thinks of it: not what a component states.
WORDS_ALONE = (Told, Remark, Spoke, ErrorSaid)
_OF_FACTS: dict[type[Fact], str] = {
    DeviceSeen: "nvidia-smi", DriverSeen: "nvidia-smi", TopologySeen: "nvidia-smi", NvlinkSeen: "nvidia-smi",
    MigInstanceSeen: "nvidia-smi", PciSeen: "lspci", ModulesSeen: "lsmod", RuntimeConfig: "containerd-config",
    CdiSpec: "cdi", CdiListed: "cdi", NcclLine: "nccl-log",
}  # fmt: skip
# How lines begin: of the kernel as dmesg, /dev/kmsg and journals print them, of daemons in a journal, of NCCL, of the
# events in `kubectl describe`.
_OF_LINES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            r"^(?:<\d+>)?\[ *\d+\.\d+\] |^\d+,\d+,\d+,[^;]*;|^\[\w{3} \w{3} +\d+ [\d:]{8} \d{4}\]|\bkernel: |^NVRM: "
        ),
        "dmesg",
    ),
    (re.compile(r"\bkubelet\[\d+\]: "), "kubelet-log"),
    (re.compile(r"\bcontainerd\[\d+\]: "), "containerd-log"),
    (re.compile(r"\b(?:nv-fabricmanager|nv-hostengine-fm)\[\d+\]: "), "fabricmanager-log"),
    (re.compile(r"\bNCCL (?:INFO|WARN|TRACE|ERROR) "), "nccl-log"),
    (re.compile(r"^\s*(?:Normal|Warning) +[A-Z]\w+ "), "pod-events"),
)
# Families of sentences whose speaker has a log of its own, whoever else repeats them.
_OF_FAMILIES = {
    "kernel": "dmesg", "nccl": "nccl-log", "transport": "nccl-log", "fabric": "fabricmanager-log", "dcgm": "dcgm-log",
    "dcgm_health": "dcgm-log", "plugin": "plugin-log", "gfd": "plugin-log", "sharing": "plugin-log", "mig": "mig-log",
    "toolkit": "plugin-log", "operator": "operator-log", "scheduler": "pod-events", "gang": "pod-events",
    "kueue": "pod-events", "kubelet": "kubelet-log", "cuda": "app-log", "app": "app-log", "dist": "app-log",
    "nvidia_smi": "nvidia-smi", "smi": "nvidia-smi",
}  # fmt: skip


def kind_of(fact: Fact) -> str:
    """One of piece.KINDS; "" where neither somebody nor the content says it."""
    if fact.origin.kind:
        return "" if fact.origin.kind == TOLD else fact.origin.kind
    if isinstance(fact, Said):
        return _of_line(fact.origin.text) or _OF_FAMILIES.get(fact.message.partition(".")[0], "")
    return _OF_FACTS.get(type(fact), "")


def _of_line(text: str) -> str:
    return next((kind for form, kind in _OF_LINES if form.search(text)), "")
