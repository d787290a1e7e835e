"""What kernel, driver, its installer and nvidia-smi say on machines that are well, and what people ask about it."""

from berth.evidence.message import Message, phrases

_MODEL = (
    r"\b(?:GeForce|RTX A?\d{4}|A100|H100|L40S|L40 |Quadro|Titan|Jetson|GB10|Tesla (?:T4|P4|P40|M\d+|K\d+)|passive)\b"
)
_VALUE = (
    r"\b(?:ECC|fan|power (?:draw|limit|cap)|Pwr|temperature|utili[sz]ation|retired pages|remapped rows|MIG|NVLink"
    r"|memory|serial)\b"
)
_GDDR = r"\b(?:ECC|T4|A10G?|A40|A6000|L4|L40S?|P40)\b"
_LESS = r"\b(?:1[45]|2[123]|39|4[456]|79)(?:\.\d+)? ?Gi?B?\b.{0,60}\b"
_THAN = r"(?:of|not|than) (?:the )?(?:16|24|40|48|80) ?Gi?B\b"
_NONE = r"(?:\bN/A\b|(?<=ECC: )Off|\b(?:mode )?Current: Disabled|\bNot Supported\b|\bunsupported\b)"

MESSAGES: tuple[Message, ...] = (
    # The driver as it is loaded
    Message(
        "harmless.driver_startup",
        (
            "taints kernel",
            "mapping multiple bars",
            "persistence mode is deprecated",
            "memdescprintmemdesc",
            "rmapi_gpu_lock_internal alloc requested",
            "argument #4 type mismatch",
            "unable to read edid for display",
            "vga decodes changed",
            "chipset setup function error",
            "changed vga decodes",
        ),
        r"\bnvidia\w*: (?:loading out-of-tree module|module license '[^']*') taints kernel"
        r"|caller \S*(?:nvidia|os_map_kernel_space|_nv\d)\S*.*mapping multiple BARs"
        r"|NVRM: Persistence mode is deprecated|NVRM: memdescPrintMemdesc"
        r"|RMAPI_GPU_LOCK_INTERNAL alloc requested without holding"
        r"|NVRM.*Chipset Setup Function Error"
        r"|_DSM: Argument #4 type mismatch|nvidia\S*:? .*Unable to read EDID for display"
        r"|nvidia \S+ ?:? ?vgaarb: (?:VGA decodes changed|changed VGA decodes)",
    ),
    Message(
        "harmless.usb_controller",
        ("i2c timeout error", "ucsi_ccg"),
        r"nvidia-gpu \S+: i2c timeout error|ucsi_ccg \S+: (?:i2c_transfer failed|ucsi_ccg_init failed|probe)",
    ),
    # Services and chips that only some boards have.
    Message(
        "harmless.powerd",
        ("nvidia-powerd", "nvpcf", "dynamic boost"),
        r"nvidia-powerd(?:\.service)?\b(?!.*\b(?:Started|active \(running\)))[^\n]{0,60}\b(?:No matching GPU found"
        r"|Failed|SBIOS|Allocate client failed|Main process exited|ERROR)|Failed to start nvidia-powerd"
        r"|SBIOS support not found for NVPCF|(?:presumably SBIOS|Client)[^\n]{0,60}disable Dynamic Boost",
    ),
    Message(
        "harmless.board_chip_absent",
        (
            "i2c_nak_7b_addr_noack",
            "i2c error occurred",
            "eeprom table header",
            "fru eeprom",
            "readi2cdata",
            "writei2cdata",
        ),
        r"amdgpu\S*[^\n]*(?:I2C_NAK_7B_ADDR_NOACK|(?:Write|Read)I2CData\(\)|I2C error occurred"
        r"|Failed to read EEPROM table header|(?:read|access)\w* (?:the )?FRU EEPROM)",
    ),
    # The GPU of a Jetson has no fields of its own in this tool.
    Message(
        "harmless.integrated_gpu",
        ("(nvgpu)", "not supported", "not report ", "doesn't report ", "cannot report ", "can't report "),
        r"\b(?:Orin|Xavier|Thor|Tegra\w*|GV11B|GA10B)\b[^\n]{0,12}\(nvgpu\)[^\n]*N/A|"
        # GB10 shares the memory of the machine: there is no figure of the card's own.
        r"\|\s*N/A +\d+C +P\d+ +\d+W / +N/A +\| +Not Supported +\||"
        r"MemoryInfo\b[^\n]{0,40}Not Supported[^\n]{0,40}\b(?:GB10|Spark|Orin|Thor)\b|"
        r"\b(?:GB10|DGX Spark|Orin|Thor)\b[^\n]{0,60}(?:MemoryInfo|memory)[^\n]{0,40}Not Supported|"
        r"nvidia-smi\W{0,2} (?:does not|doesn't|cannot|can't) report (?:the )?(?:GPU[- ])?memory\b[^\n]{0,80}"
        r"\b(?:GB10|Spark|Orin|Thor)\b",
    ),
    # A library of that name which is not the driver's.
    Message(
        "harmless.nvml_replaced",
        ("hook", "stub", "libnvidia-ml", "intercept", "ld_library_path", "ld_preload"),
        r"\bnvidia-smi\b[^\n]{0,60}\b(?:in|from|inside|within|under)\b[^\n]{0,40}(?:hook|stubs?\b|intercept|fake|mock)"
        r"|\b(?:hook\w*|stubs?|intercept\w*|fake|mock)\b[^\n]{0,40}\blibnvidia-ml\b"
        r"|(?:LD_LIBRARY_PATH|LD_PRELOAD)\S*(?:hook|/stubs\b|intercept)|always run with libnvidia-ml\.so that is "
        r"installed|/stubs/libnvidia-ml",
    ),
    # The module as it is built
    phrases(
        "harmless.driver_build",
        "Skipping BTF generation for",
        "could not open modules.builtin",
        "could not open modules.order",
        "forced to guess the X library path",
        "Unable to find a suitable destination to install 32-bit compatibility",
        "'naked' return found in RETHUNK build",
        "missing .note.GNU-stack section implies executable stack",
        "Unable to determine the path to install the libglvnd",
    ),
    Message(
        "harmless.driver_unload",
        (
            "is not currently loaded",
            "nvidia driver module is not loaded",
            "/run/nvidia/driver: not mounted",
            "/run/nvidia/driver: no mount point",
        ),
        r"(?:rmmod|modprobe): (?:ERROR|FATAL): Module nvidia\w* is not currently loaded"
        r"|nvidia driver module is not loaded"
        r"|umount: /run/nvidia/driver: (?:not mounted|no mount point)",
    ),
    # Fabric Manager where no switch can be
    Message(
        "fabric.card_without_switch",
        (
            "g4dn",
            *(f"g{line}.{size}" for line in (5, 6) for size in ("xl", "2x", "4x", "8x", "12", "16", "24", "48", "me")),
            "g6e.",
            "l40s",
            "rtx a",
            "gb pcie",
            "100 pcie",
            "pcie card",
            "pcie gpu",
            "nvidia a30",
            "nvidia a16",
            "tesla t4",
            "nvidia t4",
            "a10g",
            "nvidia l4",
            "nvidia a10",
            "nvidia a40",
            "nvidia rtx",
            "geforce",
            "rtx a",
            "quadro",
            "single gpu",
            "single-gpu",
            "without nvswitch",
            "no nvswitch",
        ),
        r"\bg4dn\b|\bg6e\.|\bg[56]\.(?:xl|2x|4x|8x|12|16|24|48|me)|\b(?:Tesla|NVIDIA) T4\b|\bA10G\b|\bNVIDIA (?:L4"
        r"|L40S?|A10|A40|RTX)\b"
        r"|\bL40S\b|\b[AH](?:30|100|800)[ -](?:\d+GB[ -])?PCIe\b|\bPCIe (?:cards?|GPUs?)\b|\bNVIDIA A(?:16|30)\b"
        r"|GeForce|\bRTX A\d{4}|Quadro|\bsingle[ -]GPU\b|\b(?:without|no) NVSwitch",
    ),
    # Values that a card does not have
    Message(
        "harmless.setting_unsupported",
        (
            "is not supported for gpu",
            "treating as warning and moving on",
            "not supported on this device",
            "memory-usage",
            "getting device memory",
        ),
        r"(?:Changing|Setting|Resetting|Modifying|Enabling|Disabling)\b.{0,60}\bis not supported for GPU"
        r"|Treating as warning and moving on"
        r"|(?:power|fan|clock|ECC|persistence)\b.{0,40}not supported on this device"
        r"|Memory-Usage\W+Not Supported"
        r"|(?:ignoring|skipping)\b.{0,20}\b(?:error )?getting device memory",
    ),
    # DCGM's diagnostic, which names a clock that never ran.
    Message(
        "harmless.violation_of_nothing",
        "violations totaling 0",
        r"\bviolations totaling 0[0.]* seconds\b",
    ),
    # nvidia-smi -q of a system whose memory is the processor's.
    Message(
        "harmless.memory_shared",
        ("bar1 memory usage", "fb memory usage"),
        r"^\s*(?:BAR1|FB) Memory Usage\s*\n"
        r"(?:\s*(?:Total|Reserved|Used)\s*:\s*(?:N/A|\[N/A\]|Not Supported)\s*(?:\n|$)){2}",
        lines=4,
    ),
    # Told of a model: what it does not have.
    Message(
        "harmless.value_absent",
        ("geforce", "a100", "h100", "l40s", "l40 ", "quadro", "titan", "jetson", "gb10", "tesla ", "passive", "rtx "),
        # Most lines with a model have nothing that is absent: that is looked for first.
        rf"^(?=.*{_NONE}).*?(?:{_MODEL}.{{0,160}}{_VALUE}.{{0,60}}{_NONE}|{_VALUE}.{{0,60}}{_NONE}.{{0,160}}{_MODEL})",
    ),
    Message(
        "harmless.fan_absent",
        ("fanspeed() error", "get fan speed", "no targets match target"),
        r"FanSpeed\(\) error: nvml: Not Supported|[Cc]an't get fan speed\b[^\n]{0,40}Not Supported"
        r"|No targets match target\b[^\n]*(?:\n[^\n]*)?GPUCurrentFanSpeedRPM",
        lines=2,
    ),
    Message(
        "harmless.memory_below_label",
        (
            "where is the rest",
            "where's the rest",
            "where did the rest",
            "where is the missing",
            *(
                f"{word} {size}{unit}"
                for word in ("of", "of the", "not", "not the", "than", "than the")
                for size in (16, 24, 40, 48, 80)
                for unit in ("g", " g")
            ),
        ),
        r"\b\d{5} ?MiB\b[^\n]{0,160}\b\d{2,3} ?GB\b[^\n]{0,60}(?:where is the rest|where's the rest|where did the rest"
        r"|where is the missing)|"
        rf"{_LESS}{_THAN}.{{0,120}}{_GDDR}|{_GDDR}.{{0,120}}{_LESS}{_THAN}",
    ),
    Message(
        "harmless.busy_without_process",
        ("gpu-util", "gpu util", "utilization"),
        r"\b(?:GPU[- ]Util\w*|utilization)\b.{0,40}\b(?:9\d|100) ?%.{0,80}\b(?:no|without|any) (?:running )?process"
        r"|\bno (?:running )?process\w*\b.{0,80}\b(?:GPU[- ]Util\w*|utilization)\b.{0,40}\b(?:9\d|100) ?%"
        r"|\b(?:9\d|100) ?% (?:GPU )?utilization\b.{0,60}\b(?:no|without) (?:running )?process",
    ),
    Message(
        "harmless.clocks_idle",
        (
            "gpuidle",
            "gpu idle",
            "idle  ",
            "idle : active",
            "idle: active",
            "clocks setting",
            "throttle_reasons.active",
            "event_reasons.active",
        ),
        r"^\s*(?:GPU ?)?Idle\s*:\s*Active|^\s*Applications Clocks Setting\s*:\s*Active|ClocksThrottleReasonGpuIdle"
        r"|reasons?\b.{0,60}\bGpu ?Idle\b|clocks_(?:event|throttle)_reasons\.active\s+0x0*1\b",
        lines=2,
    ),
    Message(
        "harmless.persistence_off",
        ("persistence mode", "persistence-m", "first time", "first run", "first call"),
        r"[Pp]ersistence mode is disabled on device"
        r"|Persistence[- ]M(?:ode)?\b.{0,40}\b(?:Off|Disabled)\b.{0,100}(?:\b(?:slow|seconds|takes|reset|lost)\b|\?)"
        r"|Persistence mode\b.{0,30}\b(?:resets?|reverts?|lost|goes back|turns? off)\b.{0,40}\b(?:reboot|restart)"
        r"|\bfirst (?:time|run|call)\b.{0,80}\bnvidia-smi\b.{0,60}\b(?:slow|takes)\b.{0,20}\d+ ?s",
    ),
    Message(
        "harmless.clocks_kept",
        ("performance state", " p0 ", "p0 although", "stays p0", "stays in p0", "stays at p0", "p8 when idle"),
        r"\bP0\b.{0,60}\b(?:although|even though|while|but|despite)\b.{0,60}\b(?:idle|0 ?%|no (?:work|load))"
        r"|\b(?:stays|locks?|locked|stuck) .{0,20}\bP0\b.{0,80}\b(?:idle|0 ?%|no (?:work|load))"
        r"|\bP8 when idle\b.{0,60}\b(?:not with|[PM]40|older?)\b",
    ),
    Message(
        "harmless.link_rests",
        ("pcie", "lnksta", "link speed", "link gen"),
        r"(?:PCIe|LnkSta|Link (?:gen|speed))\b.{0,80}?\b(?:2\.5 ?GT/s|Current\W{1,3}1\b|Gen ?1\b)"
        r".{0,100}?\b(?:idle|P8\b|P12\b|utili[sz]ation\W{1,3}0\b|no load)",
    ),
    Message(
        "harmless.power_capped",
        ("throttle_reasons.active", "event_reasons.active", "sw power cap"),
        r"clocks_(?:event|throttle)_reasons\.active\W+0x0*4\b|\bSW power cap\b.{0,40}\b\d+ ?W of \d+",
    ),
    # Memory that was mended by itself
    Message(
        "harmless.recovery_lifted",
        "recovery action changed from",
        r"GPU recovery action changed from 0x\d+ \([^)]*\) to 0x0 \(None\)",
    ),
    Message(
        "harmless.remapped_and_done",
        ("remapped row",),
        r"Remapped Rows?\b.{0,60}\b(?:Correctable|Uncorrectable)\b.{0,12}\b[1-9]\d*\b.{0,80}\bPending\W{1,3}No\b"
        r".{0,60}\b(?:Failure|Occurred)\W{1,3}No\b",
    ),
    Message(
        "harmless.ecc_corrected",
        ("uncorrectable", "uncorrected"),
        r"(?<!un)correct(?:ed|able)\b.{0,50}\b[1-9]\d{0,2}\b.{0,60}\buncorrect(?:ed|able)\b(?: errors?)?\W{1,3}0\b",
    ),
    # A program that was ended, and what the driver notes of it.
    Message(
        "harmless.program_killed",
        ("killed", "sigkill", "sigterm", "scancel", "ctrl-c", "preempted", "was terminated", "evicted", "repeatedxid"),
        # An agent that counts notes of ended programs as faults of the card.
        r"\bRepeatedXID\w*OnSameGPU\b"
        r"|\bXid\b.{0,40}\b(?:43|45)\b.{0,120}\b(?:killed|SIGKILL|SIGTERM|scancel|ctrl-c|preempted|was terminated"
        r"|evicted)\b"
        r"|\b(?:killed|SIGKILL|SIGTERM|scancel|ctrl-c|preempted|was terminated|evicted)\b.{0,120}\bXid\b.{0,40}\b(?:43"
        r"|45)\b",
    ),
    phrases("harmless.fabric_not_there", "Fabric State: N/A", "Fabric: State: N/A", "Fabric State : N/A"),
    # The number beside the driver's is the newest that it serves, not what is installed.
    Message(
        "harmless.cuda_versions_differ",
        ("nvcc", "torch.version.cuda", "cuda version"),
        r"\bCUDA Version:? [\d.]+.{0,40}\b(?:in|inside) (?:the |a |my )?container\b.{0,40}\bCUDA Version:? [\d.]+"
        r"|nvidia-smi\b.{0,80}\bCUDA\b.{0,80}\b(?:nvcc\b(?!.{0,20}not found)|torch\.version\.cuda)"
        r"|\bnvcc\b.{0,100}\bnvidia-smi\b.{0,80}\bCUDA\b"
        r"|\bnvcc\b.{0,140}\bnvidia-smi\b.{0,40}\b(?:still |only |but |always )?(?:shows?|says?|displays?|reports?"
        r"|prints?)\b.{0,60}\b(?:version|toolkit|1\d\.\d)\b",
    ),
    Message(
        "harmless.cuda_of_the_host",
        ("nvidia-smi",),
        r"(?-i:nvidia-smi)\b(?:.{0,40}\b(?:different|another|wrong) CUDA versions?\b"
        r"|.{0,60}\bCUDA\b.{0,60}\b(?:of|from|on) the host\b)"
        r"|nvidia/cuda:(?P<image>\d+\.\d)\S*\s+nvidia-smi\s[\s\S]{0,700}?CUDA Version: (?!(?P=image)\b)\d+\.\d",
        lines=8,
    ),
)
