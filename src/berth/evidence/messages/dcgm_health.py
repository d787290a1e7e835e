"""What DCGM's health watches, policies and diagnostics say of a device, in logs, in `dcgmi health -c`, in `dcgmi diag`.

Texts of 2.x to 4.x; 4.x says "clocks event" where others said "clock throttling".
"""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "dcgm_health.hot",
        ("thermal violation", "in health system thermal", "user-specified maximum allowed temperature"),
        r"(?:clocks? (?:event|throttl\w+)|slowdown) due to thermal violation(?: in GPU (?P<gpu>\d+))?"
        r"|thermal violations totaling (?P<seconds>[\d.]+) seconds\b(?:.*?GPU (?P<gpu2>\d+))?"
        r"|Detected a \w+ in health system Thermal\b(?:.*?GPU (?P<gpu4>\d+))?"
        r"|Temperature (?P<degrees>\d+) of GPU (?P<gpu3>\d+) exceeded user-specified maximum allowed temperature",
    ),
    Message(
        "dcgm_health.power_capped",
        ("due to power violation",),
        r"(?:clocks? (?:event|throttl\w+)|slowdown) due to power violation(?: in GPU (?P<gpu>\d+))?",
    ),
    Message(
        "dcgm_health.remap_failed",
        ("row remapping failed", "retired pages"),
        r"(?:GPU (?P<gpu>\d+) )?had uncorrectable memory errors and row remapping failed"
        r"|excess of \d+ retired pages due to DBEs\b(?:.*?GPU (?P<gpu2>\d+))?"
        r"|\d+ or more retired pages have been detected(?: in GPU (?P<gpu3>\d+))?",
    ),
    Message(
        "dcgm_health.remap_pending",
        ("row remappings are pending", "ecc memory for gpu"),
        r"(?:GPU (?P<gpu>\d+) )?had memory errors and row remappings are pending"
        r"|ECC memory for GPU (?P<gpu2>\d+) is in a pending state",
    ),
    Message(
        "dcgm_health.memory_bad",
        (
            "faulty memory elements",
            "memory mismatch was detected on gpu",
            "miscompare failure in the l1 cache",
            "nan-value memory elements",
            "volatile double-bit ecc",
            "double-bit ecc error has",
        ),
        r"Found (?P<count>[1-9]\d*) (?:faulty|NaN-value) memory elements on GPU (?P<gpu>\d+)"
        r"|memory mismatch was detected on GPU (?P<gpu2>\d+)|miscompare failure in the L1 cache"
        r"|Detected [1-9]\d* volatile double-bit ECC error\S*(?: in GPU (?P<gpu3>\d+))?"
        r"|indicated that a double-bit ECC error has occ?ur\w*(?: on GPU (?P<gpu4>\d+))?",
    ),
    Message(
        "dcgm_health.pcie_replays",
        ("pcie replays per minute", "host-side pcie replay violation"),
        r"more than \d+ PCIe replays per minute(?: for GPU (?P<gpu>\d+))?(?:\W+(?P<count>\d+))?"
        r"|GPU (?P<gpu2>\d+) host-side PCIe replay violation",
    ),
    Message(
        "dcgm_health.link_reduced",
        ("is running at pci link",),
        r"GPU (?P<gpu>\d+) is running at PCI link (?P<what>generation|width) (?P<is>\d+)X?, which is below",
    ),
    Message(
        "dcgm_health.nvlink_down",
        ("nvlink link", "'s nvlink "),
        r"GPU (?P<gpu>\d+)'s NvLink link (?P<link>\d+) is (?:currently )?down"
        r"|NVSwitch (?P<switch>\d+)'s NvLink (?P<link2>\d+) is (?:currently )?down",
    ),
    # `nvidia-smi -L` whose UUIDs somebody cut off: only cards for PCI Express, of which a rule asks.
    Message(
        "smi.model",
        ("gb pcie", "-pcie-"),
        r"^\s*GPU \d+:\s*(?P<model>(?:NVIDIA |Tesla )[^\n(|]{0,30}?(?:GB PCIE\b|-PCIE-)[^\n(|]{0,12}?)\s*(?:\(|$)",
    ),
    Message(
        "dcgm_health.nvlink_errors",
        ("nvlink errors",),
        r"Detected [1-9]\d* \w* ?NvLink errors on GPU (?P<gpu>\d+)'s NVLink"
        r"|[\d.]+ \w* ?NvLink errors found occ?ur\w* per second on GPU (?P<gpu2>\d+)",
    ),
    # What a test reached under load, and what it should have.
    Message(
        "dcgm_health.below_target",
        ("did not reach desired", "only achieved a memory bandwidth"),
        r"Max (?:stress level|power) of (?P<is>[\d.]+) did not reach desired (?:stress level|power minimum)\b.*?"
        r"of (?P<wanted>[\d.]+) for GPU (?P<gpu>\d+)"
        r"|GPU (?P<gpu2>\d+) only achieved a memory bandwidth of (?P<is2>[\d.]+ \w+/s), failing to meet "
        r"(?P<wanted2>[\d.]+ \w+/s)",
    ),
    # Tests of hardware in the table of `dcgmi diag`; those of the deployment are told by other layers.
    Message(
        "dcgm_health.test_failed",
        ("| fail",),
        r"^\W*(?P<test>GPU Memory|Memory(?: Bandwidth)?|Diagnostic|Pulse Test|EUD|(?:SM|Targeted) (?:Stress|Power)"
        r"|memtest|nvbandwidth|sm_stress|targeted_(?:stress|power)|memory_bandwidth|diagnostic|pulse_test)"
        r" *\| Fail\b(?:[^\n|]*?GPUs?:? ?(?P<gpu>\d+))?",
    ),
    Message("gpu_burn.faulty", ": faulty", r"\bGPU (?P<gpu>\d+): FAULTY\b"),
)
