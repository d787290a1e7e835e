"""What each kind of fault makes of a device or a node, and until when. docs/agent.md has the same as a table.

The doctor says what is wrong; here it says what follows for who places work. A device is taken out at once where its
answers cannot be trusted or it is gone, and comes back only after what mends it: a reset, or another start of the
machine. What may be a passing state of software has to last before it counts.
"""

from __future__ import annotations

import re
from enum import Enum

from msgspec import Struct

from berth.diagnosis.finding import Finding
from berth.diagnosis.words import LIKELY, WEAK, Effect, Layer, Severity


class State(Enum):
    """Is it fit to be given work?"""

    Fit = "Fit"
    Suspect = "Suspect"  # it works; there is a reason to look at it, or to place what matters elsewhere
    Unfit = "Unfit"
    Unknown = "Unknown"  # nobody could look

    @property
    def rank(self) -> int:
        return {State.Fit: 0, State.Unknown: 1, State.Suspect: 2, State.Unfit: 3}[self]


class Until(Enum):
    """What ends a fault."""

    Gone = "Gone"  # it has not been seen for its time to settle
    Reset = "Reset"  # the device has been set back, or the driver loaded again, after its last sign
    Reboot = "Reboot"  # the machine has been started again

    @property
    def rank(self) -> int:
        return {Until.Gone: 0, Until.Reset: 1, Until.Reboot: 2}[self]


class Ruling(Struct, frozen=True):
    """`grace_s`: before, nothing is said. `confirm_s`: before, Unfit is only Suspect."""

    state: State
    until: Until = Until.Gone
    settle_s: float = 600.0
    grace_s: float = 0.0
    confirm_s: float = 0.0

    def is_milder_than(self, other: Ruling) -> bool:
        return (self.state.rank, self.until.rank) < (other.state.rank, other.until.rank)


_SOON = 120.0  # software that is started again is well within it
_LASTS = 60.0  # two looks at least

BY_EFFECT: dict[Effect, Ruling] = {
    Effect.DeviceGone: Ruling(State.Unfit, Until.Reboot),
    Effect.DeviceUnfit: Ruling(State.Unfit, Until.Reset),
    Effect.LinkSlow: Ruling(State.Suspect),
    Effect.FabricDown: Ruling(State.Unfit, settle_s=_SOON, confirm_s=_LASTS),
    Effect.DriverAbsent: Ruling(State.Unfit, settle_s=_SOON, confirm_s=_LASTS),
    Effect.NvmlFails: Ruling(State.Unfit, settle_s=_SOON, confirm_s=_LASTS),
    Effect.DeviceNodesMissing: Ruling(State.Suspect, settle_s=_SOON),
    Effect.PluginDown: Ruling(State.Suspect, settle_s=_SOON),
    Effect.DevicesUnhealthy: Ruling(State.Suspect, settle_s=_SOON),
    Effect.AccountStale: Ruling(State.Suspect, settle_s=_SOON),
    Effect.MigNotApplied: Ruling(State.Suspect, settle_s=_SOON),
}
# Where the effect says too much or too little of what mends it.
BY_CODE: dict[str, Ruling | None] = {
    "GspTimeout": Ruling(State.Unfit, Until.Reset),
    "GpuStateLeftOver": Ruling(State.Unfit, Until.Reset),
    "PcieUncorrectable": Ruling(State.Unfit, Until.Reset),
    "NvLinkFault": Ruling(State.Unfit, Until.Reset),
    "NvSwitchFault": Ruling(State.Unfit, Until.Reset),
    "RowRemapPending": Ruling(State.Suspect, Until.Reset),  # it works, and is whole again after its next reset
    "InforomCorrupted": Ruling(State.Suspect),
    "FirmwareOutdated": Ruling(State.Suspect),
    "NvLinkDown": Ruling(State.Suspect),  # work on one GPU does not need it
    "ImexDown": Ruling(State.Suspect),
    "HostHardwareError": Ruling(State.Suspect),
    "GpuTooHot": Ruling(State.Suspect),
    "GpuPowerBrake": Ruling(State.Suspect),
    "NvLinkErrorsGrow": Ruling(State.Suspect),
    "NvSwitchErrorNotFatal": Ruling(State.Suspect),
    "VfioHoldsGpu": None,  # given to virtual machines on purpose, as a rule
    "NvmlNoPermission": None,  # the agent's own lack
    "PersistenceDaemonFails": None,
}

# The driver has ended who met the error, and takes the page out of use: others go on, and the next reset repairs it.
# That is what Xid 94 says, and what a counter by itself does not contradict. Xid 95 and 48 were not contained.
MEMORY = "GpuMemoryUncorrectable"
CONTAINED = Ruling(State.Suspect, Until.Reset)
_UNCONTAINED = re.compile(r"Xid \([^)]*\): (?:95|48)\b")

# What the agent itself sees, beside the doctor's findings.
MISSING = "DeviceMissing"  # NVML answers, and does not list a device that was there since the machine was started
PLUGIN_SILENT = "PluginSilent"  # a device plugin stands still, and the kubelet goes on advertising what it once said
LEDGER_PARTS = "LedgerParts"  # hardware, plugin and node do not say the same
OWN: dict[str, Ruling] = {
    MISSING: Ruling(State.Unfit, Until.Reboot, grace_s=_LASTS),
    PLUGIN_SILENT: Ruling(State.Unfit, settle_s=_LASTS, confirm_s=_LASTS),
    LEDGER_PARTS: Ruling(State.Suspect, settle_s=_LASTS, grace_s=_LASTS),
}


def ruling_of(finding: Finding) -> Ruling | None:
    """None for what says nothing of a device's or the node's fitness: traps, hints, faults of pods and policies. Nor
    does the container runtime's configuration (L2): where it is at fault the plugin does not run, which is seen by
    itself.
    """
    if finding.is_trap or finding.confidence <= WEAK or finding.layer not in (Layer.L0, Layer.L1, Layer.L3):
        return None
    ruling = BY_CODE[finding.code] if finding.code in BY_CODE else BY_EFFECT.get(finding.effect)
    if finding.code == MEMORY and not _is_uncontained(finding):
        ruling = CONTAINED
    if ruling is None or finding.severity is Severity.Info:
        return None
    is_sure = finding.confidence >= LIKELY
    if ruling.state is State.Unfit and (finding.severity < Severity.Error or not is_sure):
        # It may be, or it is not as bad: worth a look, and nothing that has to be mended before it ends.
        return Ruling(State.Suspect, settle_s=max(ruling.settle_s, 3600.0))
    return ruling if is_sure or ruling.state is State.Suspect else None


def _is_uncontained(finding: Finding) -> bool:
    return any(_UNCONTAINED.search(one.text) for one in finding.evidence)
