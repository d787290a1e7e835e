"""Keeps the account of one machine: looks, judges, and remembers from look to look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from berth.diagnosis.diagnose import Diagnosis
from berth.evidence.fact import Fact, pci_words
from berth.evidence.formats.boundary_facts import HostCount
from berth.evidence.formats.node_ledger import Status
from berth.model.ledger import Account
from berth.node.counters import VOLATILE, counts_of, fell, resets_said, risen
from berth.node.fitness import NODE, Memory, judge
from berth.node.look import Looked, Machine
from berth.node.occupancy import Occupancy
from berth.node.policy import State
from berth.node.signals import judged, sighted, signals_of
from berth.node.status import memory_of, status_of, with_occupancy


class Report(Struct, frozen=True):
    """One look with its judgement. `before` is what was remembered at the look before."""

    looked: Looked
    diagnosis: Diagnosis
    accounts: tuple[Account, ...]
    before: Memory
    memory: Memory
    status: Status

    @property
    def has_gpus(self) -> bool:
        """Something shows a GPU, or showed one since the machine was started."""
        return any(target != NODE for target in self.memory.standings) or bool(self.accounts)


class Keeper:
    """One for a process. `step` is called from one thread at a time."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.memory = Memory()
        self.risen: Counter[tuple[str, str]] = Counter()  # (PCI address, counter): since the agent runs
        self.occupancy = Occupancy()
        self._counts: dict[str, dict[str, int]] = {}
        self._uuids: dict[str, str] = {}  # of devices that were seen, by PCI address

    def go_on_from(self, status: Status) -> None:
        """What an earlier process of this agent has remembered in the NodeLedger."""
        self.memory = memory_of(status)
        self._uuids = {one.pci: one.uuid for one in status.devices if one.uuid}

    def step(self, beside: Iterable[Fact] = (), queues: Mapping[str, str] | None = None) -> Report:
        """Look and judge. `beside` are facts from elsewhere, `queues` those of pods."""
        looked = self.machine.look(beside)
        diagnosis, found = judged(looked)
        before = self.memory
        known = self._known(looked)
        devices = sighted(looked, known)
        resets = self._resets(looked, devices)
        unfit = [pci for pci, one in before.standings.items() if one.state is State.Unfit]
        self.memory = judge(
            before, signals_of(looked, diagnosis, found, known, unfit), devices, looked.at_s, looked.boot_id, resets,
            is_blind=not any(one.by in ("lspci", "nvml") for one in looked.facts.of(HostCount)),
        )  # fmt: skip
        for device in looked.devices:
            if device.uuid:
                self._uuids[pci_words(device.pci)] = device.uuid
        self.occupancy.take(looked)
        status = with_occupancy(status_of(looked, self.memory, found, queues, self._uuids), looked, self.occupancy)
        return Report(looked, diagnosis, found, before, self.memory, status)

    def _known(self, looked: Looked) -> frozenset[str]:
        """Devices that NVML has described since the machine was started. Another start forgets those that are gone."""
        if looked.boot_id and self.memory.boot_id and looked.boot_id != self.memory.boot_id:
            self._uuids.clear()
        return frozenset(self._uuids)

    def _resets(self, looked: Looked, devices: Iterable[str]) -> dict[str, float]:
        now = counts_of(looked.devices)
        resets = resets_said(self.machine.log.since(), devices)
        resets.update(dict.fromkeys(fell(self._counts, now), looked.at_s))
        for pci, counts in now.items():
            before = self._counts.get(pci)
            for name in VOLATILE:
                if name in counts and before is not None:
                    self.risen[pci, name] += risen(before.get(name), counts[name])
        self._counts.update(now)
        return resets
