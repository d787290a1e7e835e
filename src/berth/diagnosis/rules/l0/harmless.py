"""L0. Values and lines of a device that look like a fault and are none."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.rules.l0.memory_errors import MANY_ROWS
from berth.diagnosis.trap import noted, trap
from berth.diagnosis.words import LIKELY, Effect, Layer
from berth.diagnosis.xid.story import story_of
from berth.evidence.facts import Facts
from berth.evidence.formats.smi_facts import DeviceSeen

_SMI = ("nvidia-smi manual", "NVML documentation: NVML_ERROR_NOT_SUPPORTED")
MIB = 2**20
_AT_REST = frozenset(("gpu_idle", "applications_clocks_setting"))
NO_WORK = 128 * MIB  # what the driver itself takes
FULL = 90.0  # per cent

ABSENT = trap(
    "ValueNotOnThisCard",
    Layer.L0,
    Effect.BlindMonitoring,
    "a value or setting that this card does not have",
    meaning="N/A and Not Supported say that the model has no such thing: ECC, a power limit and retired pages on "
    "GeForce, a fan on cards that the machine cools, own memory on systems that share it with the processor, MIG on "
    "most models. The device works.",
    known_by="N/A or Not Supported for single values, while others are read.",
    disproved_by="A card of the same model shows the value, or the field says ERR! or Unknown Error.",
    counter_check="nvidia-smi -q -i PCI.0 on another machine with this model: N/A there, too",
    sources=_SMI,
)
RESTS = trap(
    "ClocksLowByDesign",
    Layer.L0,
    Effect.CollectiveSlow,
    "clocks are low because the GPU rests, or because they were set",
    meaning="Without work a GPU goes down to P8 and a few hundred MHz, and names Idle as the reason; as long as a "
    "program holds it, many models stay in P0. A setting of clocks is kept as well. All are what the driver was asked "
    "for.",
    known_by="The reason for the clocks is Idle or the clocks' setting, and none of heat, power or brake.",
    disproved_by="The clocks stay low under load, with another reason.",
    counter_check="nvidia-smi -q -d PERFORMANCE -i PCI.0 under load: Idle Not Active, HW Slowdown Not Active",
    sources=("NVML documentation: clocks event reasons",),
    instead_of=("PluginTroubleTold",),
)
SCRUBBED = trap(
    "UtilisationWithoutProcess",
    Layer.L0,
    Effect.BlindMonitoring,
    "a GPU shows full use although nothing computes on it",
    meaning="Without persistence the driver starts the GPU anew for each question, and the work of starting it (ECC "
    "memory is written once) is what is shown. No program is missing from the list.",
    known_by="Utilisation near 100 %, no process, and no memory in use.",
    disproved_by="It stays so with persistence on, at more than idle power.",
    counter_check="nvidia-smi -pm 1; nvidia-smi a minute later: 0 %",
    sources=("NVIDIA driver persistence documentation",),
    steps=("run nvidia-persistenced; nothing else to mend",),
)
PERSISTENCE = trap(
    "PersistenceNotKept",
    Layer.L0,
    Effect.BlindMonitoring,
    "persistence mode is off: slow first answers, lost settings, no fault",
    meaning="Without a client the driver lets go of the GPU: the first call takes seconds, and limits, clocks and the "
    "mode itself are gone after a restart. It is a setting.",
    known_by="Persistence mode is off, and nvidia-smi is slow or settings go away.",
    disproved_by="With nvidia-persistenced at work it is as slow.",
    counter_check="systemctl status nvidia-persistenced; time nvidia-smi: under a second",
    sources=("NVIDIA driver persistence documentation",),
    steps=("systemctl enable --now nvidia-persistenced, where wanted",),
)
MEMORY = trap(
    "MemoryBelowTheLabel",
    Layer.L0,
    Effect.MemoryShort,
    "a card shows less memory than its name says",
    meaning="ECC on cards with GDDR memory takes a part (6 to 12 %), the driver keeps some, and makers count in "
    "powers of ten: 15 of 16 GB or 22.5 of 24 GB is the whole card.",
    known_by="A little less memory than the model's name, and ECC on.",
    disproved_by="Cards of the same model and driver show more.",
    counter_check="nvidia-smi -q -d MEMORY,ECC: total and reserved are alike on all cards of the model",
    sources=("nvidia-smi manual: FB memory usage, reserved",),
)
MENDED = trap(
    "MemoryMendedByItself",
    Layer.L0,
    Effect.DeviceUnfit,
    "memory errors that the card corrected or put aside",
    meaning="Corrected errors cost nothing, and a row that was remapped is out of use: with nothing pending and no "
    "failure the memory is as good as before. A few in the life of a card are normal.",
    known_by="Corrected errors or remapped rows, no uncorrected error, nothing pending, no failure.",
    disproved_by="Uncorrected errors, a remapping that is pending or failed, or thousands of corrected ones.",
    counter_check="nvidia-smi -q -d ECC,ROW_REMAPPER -i PCI.0: Uncorrectable 0, Pending No, Failure No",
    sources=("NVIDIA GPU memory error management",),
)
KILLED = trap(
    "XidOfEndedProgram",
    Layer.L0,
    Effect.ProgramFails,
    "an Xid that tells of a program that was ended",
    meaning="When a program is killed or preempted while it computes, the driver stops its channels and notes Xid 43 "
    "or 45 on each GPU that it held. The GPUs are well.",
    known_by="Only Xid 43 or 45, and somebody ended the program.",
    disproved_by="Another Xid before it on the same GPU, or the program was not ended by anybody.",
    counter_check="dmesg -T | grep Xid: only 43 and 45, at the time of the end of the program",
    sources=("NVIDIA Xid catalogue, 43 and 45",),
    instead_of=("ProgramEndedOnGpu",),
)
LIFTED = trap(
    "RecoveryActionLifted",
    Layer.L0,
    Effect.ProgramFails,
    "a demand for recovery that the driver takes back (Xid 154)",
    meaning="The driver notes each change of what a GPU asks for. A change to None says that it asks for nothing any "
    "more: it was reset, or the error has passed.",
    known_by="Xid 154 with a change to 0x0 (None), and no later one.",
    disproved_by="A later Xid 154 names an action other than None.",
    counter_check="nvidia-smi -q -i PCI.0 | grep -i 'recovery action': None",
    sources=("NVIDIA Xid catalogue, 154",),
)
USB = trap(
    "CardUsbControllerSilent",
    Layer.L0,
    Effect.BlindMonitoring,
    "the USB-C controller of a card does not answer",
    meaning="Cards of the Turing generation have a controller for a USB-C socket; where the board has no socket the "
    "kernel's driver for it waits in vain. It has nothing to do with computing.",
    known_by="i2c time-outs of nvidia-gpu or errors of ucsi_ccg.",
    disproved_by="nvidia-smi lists fewer devices than lspci.",
    counter_check="nvidia-smi -L: all devices",
    sources=("Linux, drivers/i2c/busses/i2c-nvidia-gpu.c",),
    steps=("nothing to mend; blacklist i2c_nvidia_gpu and ucsi_ccg to be rid of the lines",),
)

CHIP = trap(
    "BoardChipAbsent",
    Layer.L0,
    Effect.BlindMonitoring,
    "a chip for the board's own notes does not answer",
    meaning="Some drivers keep counts of memory errors and the serial number in a small memory that is read over I2C. "
    "Boards and slots without those wires have none; only these records are missing.",
    known_by="I2C is not acknowledged, or the table of an EEPROM cannot be read, while the driver starts.",
    disproved_by="The driver ends with another error after it, or the device is not listed.",
    counter_check="the vendor's tool lists the device and computes on it",
    sources=("Linux, drivers/gpu/drm/amd/amdgpu: amdgpu_ras_eeprom.c, smu_v11_0_i2c.c",),
)
NO_VIOLATION = trap(
    "ViolationOfNothing",
    Layer.L0,
    Effect.BlindMonitoring,
    "the diagnostic tells of violations that lasted 0 seconds",
    meaning="DCGM adds up how long a GPU was slowed down during a test. A sum of 0.0 seconds is none: the line is "
    "printed although there is nothing to tell.",
    known_by="violations totaling 0.0 seconds.",
    disproved_by="Another line has a sum above 0, or the test itself failed for heat or power.",
    counter_check="nvidia-smi -q -d PERFORMANCE -i PCI.0 under load: HW Thermal Slowdown Not Active",
    sources=("DCGM issue 242",),
    instead_of=("GpuTooHot",),
)
HEADROOM = trap(
    "HeadroomNotHeat",
    Layer.L0,
    Effect.BlindMonitoring,
    "the figure T.Limit is a distance, and falls as the GPU warms up",
    meaning="From Hopper on the driver tells how many degrees are left before it slows the GPU down. It is no second "
    "temperature; at 0 the clocks go down.",
    known_by="GPU T.Limit Temp that moves against GPU Current Temp.",
    disproved_by="It is 0 or less, or a thermal slowdown is active.",
    counter_check="nvidia-smi -q -d TEMPERATURE,PERFORMANCE -i PCI.0: above 0, no thermal slowdown",
    sources=("nvidia-smi manual: temperature", "NVML documentation: nvmlDeviceGetMarginTemperature"),
    instead_of=("GpuTooHot",),
)
SLOT_POWER = trap(
    "SlotPowerUntold",
    Layer.L0,
    Effect.BlindMonitoring,
    "a network adapter does not learn how much power its slot gives",
    meaning="The slot announces no power limit, or a lower one than the adapter could use at most; mlx5 then says "
    "'insufficient power'. Adapters with their own cables and modules work as they are.",
    known_by="mlx5_core: Detected insufficient power on the PCIe slot, or the slot's power is not advertised.",
    disproved_by="The adapter's ports go down under load.",
    counter_check="ibstat or ip link on NODE: the ports are up at their full speed",
    sources=("Linux, drivers/net/ethernet/mellanox/mlx5/core/events.c",),
)
IO_PORTS = trap(
    "IoPortsNotGiven",
    Layer.L0,
    Effect.BlindMonitoring,
    "a bridge gets no window of I/O ports",
    meaning="The whole I/O space has 64 KiB, and each bridge asks for 4 KiB in case a device behind it wants some. "
    "GPUs and network adapters use memory windows only.",
    known_by="no space for or failed to assign [io size 0x1000].",
    disproved_by="A memory window ([mem …]) of the GPU is not assigned.",
    counter_check="lspci -vv -s PCI: Region 0, 1 and 3 are memory, with addresses",
    sources=("Linux, drivers/pci/setup-bus.c",),
)
AUDIO = trap(
    "CardAudioSilent",
    Layer.L0,
    Effect.BlindMonitoring,
    "the sound device of a card is not served",
    meaning="A card with display sockets has a sound device as its second function. Without a monitor it finds no "
    "codec, or sleeps; computing does not use it.",
    known_by="snd_hda_intel or hdaudio on function .1 of a card.",
    disproved_by="Function .0 of the card does not answer either.",
    counter_check="nvidia-smi -L: all devices",
    sources=("Linux, sound/pci/hda",),
)


def find(facts: Facts) -> Iterator[Answer]:
    yield from noted(
        facts, HEADROOM, ("harmless.headroom_told",), "It is a distance.", unless=("host.hw_slowdown", "kernel.xid")
    )
    yield from noted(facts, SLOT_POWER, ("harmless.slot_power_untold",), "The slot tells less than it gives.")
    yield from noted(facts, IO_PORTS, ("harmless.no_io_ports",), "No GPU needs I/O ports.")
    yield from noted(facts, AUDIO, ("harmless.card_audio",), "It is the sound device alone.", unless=("kernel.xid",))
    yield from noted(facts, CHIP, ("harmless.board_chip_absent",), "The board's memory for records does not answer.")
    yield from noted(
        facts,
        ABSENT,
        ("harmless.value_absent", "harmless.setting_unsupported", "harmless.fan_absent"),
        "The card does not have it, or does not let it be set.",
        unless=("nvidia_smi.err_field",),
    )
    if not any(device.uuid or device.name for device in facts.of(DeviceSeen)):
        rests = ("harmless.clocks_idle", "harmless.clocks_kept", "harmless.power_settles")
        yield from noted(facts, RESTS, rests, "The GPU has no work.", unless=("host.hw_slowdown",))
    computes = ("harmless.compute_in_p2",)
    yield from noted(facts, RESTS, computes, "CUDA runs most GeForce cards in P2.", unless=("host.hw_slowdown",))
    recovered = ("harmless.driver_recovered",)
    yield from noted(facts, MENDED, recovered, "The driver put the rows aside.", unless=("kernel.xid",))
    yield from noted(
        facts, ABSENT, ("harmless.memory_shared",), "Its memory is the processor's.", unless=("nvidia_smi.err_field",)
    )
    if any(facts.said("harmless.consumer_card", "context.card_number")) or any(
        "NotSupported" in said.origin.text for said in facts.said("harmless.fields_absent")
    ):
        yield from noted(
            facts, ABSENT, ("harmless.fields_absent",), "The card does not have it.", unless=("nvidia_smi.err_field",)
        )
    violations = ("harmless.violation_of_nothing",)
    yield from noted(facts, NO_VIOLATION, violations, "The sum is 0 seconds.", unless=("dcgm_health.hot",))
    yield from noted(facts, PERSISTENCE, ("harmless.persistence_off",), "Nobody keeps the driver loaded.")
    yield from noted(facts, MEMORY, ("harmless.memory_below_label",), "ECC and the driver take the rest.")
    yield from noted(facts, USB, ("harmless.usb_controller",), "Its controller for USB-C does not answer.")
    mended = [
        device.quote("remapped_uncorrectable", "remapped_correctable")
        for device in facts.of(DeviceSeen)
        if (device.remapped_correctable or device.remapped_uncorrectable)
        and device.is_remap_pending is False
        and device.is_remap_failed is False
        and not (device.uncorrected_volatile or 0)
        and not device.remap_banks.get("none", 0)
        and (device.remapped_uncorrectable or 0) < MANY_ROWS
    ]
    told = [said.origin for said in facts.said("harmless.remapped_and_done", "harmless.ecc_corrected")]
    if mended or told:
        yield MENDED.finding("The card put the rows aside or corrected the errors.", LIKELY, [*mended, *told])
    yield from noted(facts, LIFTED, ("harmless.recovery_lifted",), "The GPU asks for nothing any more.")
    if not any(one.code not in (43, 45) for one in story_of(facts).events):
        yield from noted(facts, KILLED, ("harmless.program_killed",), "Somebody ended the program.")
    rest = [
        device.quote("slowed_by")
        for device in facts.of(DeviceSeen)
        if device.slowed_by and set(device.slowed_by) <= _AT_REST and not (device.uuid or device.name)
    ]
    if rest:
        yield RESTS.finding("The only reason for the clocks is rest, or their setting.", LIKELY, rest)
    busy = [
        device.quote("gpu_percent")
        for device in facts.of(DeviceSeen)
        if device.processes == ()
        and (device.gpu_percent or 0.0) >= FULL
        and device.memory_used_bytes is not None
        and device.memory_used_bytes < NO_WORK
    ]
    if quotes := [*busy, *(said.origin for said in facts.said("harmless.busy_without_process"))]:
        yield SCRUBBED.finding("Full use without a process or memory is the start of the GPU itself.", LIKELY, quotes)


RULE = Rule(
    (
        ABSENT,
        RESTS,
        SCRUBBED,
        PERSISTENCE,
        MEMORY,
        MENDED,
        KILLED,
        LIFTED,
        USB,
        CHIP,
        NO_VIOLATION,
        SLOT_POWER,
        IO_PORTS,
        HEADROOM,
        AUDIO,
    ),
    find,
)
