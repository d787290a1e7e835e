"""What DCGM's health watches, policies and diagnostics say of a device, in logs, in `dcgmi health -c`, in `dcgmi diag`.

Texts of 2.x to 4.x; 4.x says "clocks event" where others said "clock throttling". Agents that watch its health hand on
the name of an error, with or without the text.
"""

from berth.evidence.message import Message


def _code(names: str, unless: str) -> str:
    """The name of an error where what it says does not follow: in JSON, conditions of nodes and events."""
    return rf"|DCGM_FR_(?:{names})\b(?![^\n]*(?:{unless}))"


MESSAGES: tuple[Message, ...] = (
    Message(
        "dcgm_health.hot",
        (
            "thermal violation",
            "in health system thermal",
            "user-specified maximum allowed temperature",
            "dcgm_fr_clock",
            "dcgm_fr_thermal",
            "dcgm_fr_temp",
            "gpu_temp_hw_slowdown",
            "being throttled for gpu",
            "below hw slowdown",
        ),
        r"(?:clocks? (?:event|throttl\w+)|slowdown) due to thermal violation(?: in GPU (?P<gpu>\d+))?"
        r"|thermal violations totaling (?P<seconds>(?!0+(?:\.0+)? )[\d.]+) seconds\b(?:.*?GPU (?P<gpu2>\d+))?"
        r"|Detected a \w+ in health system Thermal\b(?:.*?GPU (?P<gpu4>\d+))?"
        r"|Temperature (?P<degrees>\d+) of GPU (?P<gpu3>\d+) exceeded user-specified maximum allowed temperature"
        r"|Clocks are being throttled for GPU (?P<gpu5>\d+) because of[^\n]*thermal"
        r"|GPU_TEMP_HW_SLOWDOWN_VIOLATION(?:[^\n]*?\bGPU:(?P<gpu6>\d+))?"
        + _code(
            "CLOCK_THROTTLE_THERMAL|CLOCKS_EVENT_THERMAL|THERMAL_VIOLATIONS(?:_TS)?|TEMP_VIOLATION",
            "thermal violation|exceeded user",
        ),
    ),
    Message(
        "dcgm_health.power_capped",
        ("due to power violation", "dcgm_fr_clock"),
        r"(?:clocks? (?:event|throttl\w+)|slowdown) due to power violation(?: in GPU (?P<gpu>\d+))?"
        + _code("CLOCK_THROTTLE_POWER|CLOCKS_EVENT_POWER", "power violation"),
    ),
    Message(
        "dcgm_health.remap_failed",
        ("row remapping failed", "retired pages", "dcgm_fr_row_remap", "dcgm_fr_retired"),
        r"(?:GPU (?P<gpu>\d+) )?had uncorrectable memory errors and row remapping failed"
        r"|excess of \d+ retired pages due to DBEs\b(?:.*?GPU (?P<gpu2>\d+))?"
        r"|\d+ or more retired pages have been detected(?: in GPU (?P<gpu3>\d+))?"
        + _code("ROW_REMAP_FAILURE|RETIRED_PAGES_(?:DBE_)?LIMIT", "remapping failed|retired pages"),
    ),
    Message(
        "dcgm_health.remap_pending",
        (
            "row remappings are pending",
            "ecc memory for gpu",
            "retired page has been",
            "pending page retirements",
            "dcgm_fr_pending",
            "dcgm_fr_ecc_pending",
            "dcgm_fr_dbe_pending",
            "page_retirement_row_remap",
        ),
        r"(?:GPU (?P<gpu>\d+) )?had memory errors and row remappings are pending"
        r"|ECC memory for GPU (?P<gpu2>\d+) is in a pending state"
        r"|A pending retired page has been detected in GPU (?P<gpu3>\d+)"
        r"|Pending page retirements together with a DBE were detected on GPU (?P<gpu4>\d+)"
        r"|dcgm\.level\.\d\W+ERR_\S*page_retirement_row_remap\.(?P<gpu5>\d+)"  # the label of IBM Autopilot
        + _code("PENDING_ROW_REMAP|(?:DBE_)?PENDING_PAGE_RETIREMENTS|ECC_PENDING", "pending|Pending page"),
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
            "rows were remapped",
            "an uncontained error",
            "dcgm_fr_volatile_dbe",
            "dcgm_fr_faulty",
            "dcgm_fr_memory_mismatch",
            "dcgm_fr_l1tag",
            "dcgm_fr_dbe_",
            "dcgm_fr_cuda_dbe",
            "dcgm_fr_uncont",
            "dcgm_fr_uncorr",
            "dcgm_fr_sram",
            "ecc_dbe_volatile_total for",
            "ecc_dbe_aggregate_total for",
        ),
        r"Found (?P<count>[1-9]\d*) (?:faulty|NaN-value) memory elements on GPU (?P<gpu>\d+)"
        r"|memory mismatch was detected on GPU (?P<gpu2>\d+)|miscompare failure in the L1 cache"
        r"|Detected [1-9]\d* volatile double-bit ECC error\S*(?: in GPU (?P<gpu3>\d+))?"
        r"|indicated that a double-bit ECC error has occ?ur\w*(?: on GPU (?P<gpu4>\d+))?"
        r"|GPU (?P<gpu5>\d+) had uncorrectable memory errors and [1-9]\d* rows were remapped"
        r"|GPU had an uncontained error"
        r"|Detected [1-9]\d* ecc_dbe_(?:volatile|aggregate)_total for GPU (?P<gpu6>\d+)"
        + _code(
            "VOLATILE_DBE_DETECTED|FAULTY_MEMORY|MEMORY_MISMATCH|L1TAG_MISCOMPARE|DBE_(?:THRESHOLD_)?VIOLATION|CUDA_DBE"
            "|UNCONTAINED_ERROR|UNCORRECTABLE_ROW_REMAP|SRAM_THRESHOLD",
            "memory elements|memory mismatch|miscompare failure|double-bit|rows were remapped|uncontained error",
        ),
    ),
    Message(
        "dcgm_health.pcie_replays",
        ("pcie replays per minute", "host-side pcie replay violation", "dcgm_fr_pci", "pcie_replay_counter"),
        r"more than \d+ PCIe replays per minute(?: for GPU (?P<gpu>\d+))?(?:\W+(?P<count>\d+))?"
        r"|GPU (?P<gpu2>\d+) host-side PCIe replay violation"
        r"|Detected (?P<count2>[1-9]\d*) pcie_replay_counter for GPU (?P<gpu3>\d+)"
        r"|pcie_replay_counter met or exceeded the threshold"
        + _code("PCI_REPLAY_RATE|PCIE_(?:H_)?REPLAY_(?:THRESHOLD_)?VIOLATION", "replays per minute|host-side PCIe"),
    ),
    Message(
        "dcgm_health.link_reduced",
        ("is running at pci link", "dcgm_fr_pcie_generation", "dcgm_fr_pcie_width"),
        r"GPU (?P<gpu>\d+) is running at PCI link (?P<what>generation|width) (?P<is>\d+)X?, which is below"
        + _code("PCIE_(?:GENERATION|WIDTH)", "is running at PCI link"),
    ),
    Message(
        "dcgm_health.nvlink_down",
        ("nvlink link", "'s nvlink ", "nvlinks are up out of", "dcgm_fr_nvlink_down", "dcgm_fr_nvswitch"),
        r"GPU (?P<gpu>\d+)'s NvLink link (?P<link>\d+) is (?:currently )?down"
        r"|NVSwitch (?:physical ID )?(?P<switch>\d+)'s NvLink (?:port )?(?P<link2>\d+) is (?:currently )?down"
        r"|(?:NvSwitch (?P<switch2>\d+) - )?Only (?P<up>\d+) NvLinks are up out of the expected \d+"
        + _code("NVLINK_DOWN|NVSWITCH_(?:NVLINK_)?DOWN", "NvLink link|'s NvLink"),
    ),
    # `nvidia-smi -L` whose UUIDs somebody cut off: only cards for PCI Express, of which a rule asks.
    Message(
        "smi.model",
        ("gb pcie", "gb pci-e", "-pcie", "-pci-e", "00 pcie", "00 pci-e"),
        r"(?P<model>(?:\b(?:NVIDIA|Tesla) )?\b[AHVP][18]00\b(?:[ -]\d+GB)?[ -]PCI-?E\b(?:[ -]\d+GB)?)",
    ),
    Message(
        "dcgm_health.nvlink_errors",
        ("nvlink errors", "dcgm_fr_nvlink_", " nvlink_"),
        r"Detected [1-9]\d* \w* ?NvLink errors on GPU (?P<gpu>\d+)'s NVLink"
        r"|[\d.]+ \w* ?NvLink errors found occ?ur\w* per second on GPU (?P<gpu2>\d+)"
        r"|Detected [1-9]\d* nvlink_\w+ for GPU (?P<gpu3>\d+)"
        + _code(
            "NVLINK_(?:CRC_)?ERROR_(?:THRESHOLD|CRITICAL)|NVLINK_(?:EFFECTIVE|SYMBOL)_BER_THRESHOLD", "NvLink errors"
        ),
    ),
    Message(
        "dcgm_health.switch_error",
        ("errors on nvswitch", "dcgm_fr_nvswitch", "dcgm_fr_sxid"),
        r"Detected (?P<fatality>fatal|nonfatal) errors on NvSwitch (?P<switch>\d+)(?: link (?P<link>\d+))?"
        r"|DCGM_FR_NVSWITCH_(?P<fatality2>FATAL|NON_FATAL)_ERROR\b(?![^\n]*errors on NvSwitch)"
        r"|DCGM_FR_SXID_ERROR\b(?![^\n]*SXID \d)",
    ),
    # What a test reached under load, and what it should have.
    Message(
        "dcgm_health.below_target",
        (
            "did not reach desired", "only achieved a memory bandwidth", "did not exceed minimum required bandwidth",
            "exceeded maximum allowed latency", "which is below the threshold", "in a peer-to-peer test",
            "dcgm_fr_stress", "dcgm_fr_target_power", "dcgm_fr_low_bandwidth", "dcgm_fr_high_latency",
            "dcgm_fr_memory_bandwidth", "dcgm_fr_gflops", "dcgm_fr_broken_p2p", "dcgm_fr_eud_test_failed",
            "dcgmdiagnosticfailure", "dtoh bandwidth", "htod bandwidth",
        ),
        r"Max (?:stress level|power) of (?P<is>[\d.]+) did not reach desired (?:stress level|power minimum)\b.*?"
        r"of (?P<wanted>[\d.]+) for GPU (?P<gpu>\d+)"
        r"|GPU (?P<gpu2>\d+) only achieved a memory bandwidth of (?P<is2>[\d.]+ \w+/s), failing to meet "
        r"(?P<wanted2>[\d.]+ \w+/s)"
        r"|Bandwidth of GPU (?P<gpu3>\d+) in direction \S+ of (?P<is3>[\d.]+) did not exceed minimum required "
        r"bandwidth of (?P<wanted3>[\d.]+)"
        r"|Latency type \S+ of GPU (?P<gpu4>\d+) value (?P<is4>[\d.]+) exceeded maximum allowed latency of "
        r"(?P<wanted4>[\d.]+)"
        r"|Detected (?P<is5>[\d.]+) [\w ]+ for GPU (?P<gpu5>\d+) which is below the threshold (?P<wanted5>[\d.]+)"
        r"|GPU (?P<gpu6>\d+) (?:was unsuccessfully written to|unsuccessfully wrote data) in a peer-to-peer test"
        r"|\bGPU \d+ (?:DtoH|HtoD) bandwidth [\d.]+[^\n]{0,12} is (?:less than|below) [\d.]+"
        r"|DCGMDiagnosticFailure(?!\W+(?:status\W+)?False)"
        + _code(
            "STRESS_LEVEL|TARGET_POWER|LOW_BANDWIDTH|HIGH_LATENCY|MEMORY_BANDWIDTH|GFLOPS_THRESHOLD_VIOLATION"
            "|BROKEN_P2P_\\w+|EUD_TEST_FAILED",
            "did not reach|only achieved|did not exceed|exceeded maximum|below the threshold|peer-to-peer test",
        ),
    ),
    # Tests of hardware in the table of `dcgmi diag`; those of the deployment are told by other layers.
    Message(
        "dcgm_health.test_failed",
        ("| fail",),
        r"^\W*(?P<test>GPU Memory|Memory(?: Bandwidth)?|Diagnostic|Pulse Test|EUD(?: Test)?"
        r"|(?:SM|Targeted) (?:Stress|Power)|memtest|nvbandwidth"
        r"|sm_stress|targeted_(?:stress|power)|memory_bandwidth|diagnostic|pulse_test)"
        r" *\| Fail\b(?:[^\n|]*?GPUs?:? ?(?P<gpu>\d+))?",
    ),
    # It fails for links that are down, too, and those may not be there.
    Message(
        "dcgm_health.pcie_test_failed",
        "| fail",
        r"^\W*(?:PCIe|pcie) *\| Fail\b(?:[^\n|]*?GPUs?:? ?(?P<gpu>\d+))?",
    ),
    Message(
        "gpu_burn.faulty",
        ("silent data corruption", "failed sdc check", ": faulty", "(warning!)", "(died!)", "errors found in block"),
        r"\bGPU (?P<gpu>\d+): FAULTY\b|\berrors: [1-9]\d* +\(WARNING!\)|\berrors: -\d+ +\(DIED!\)"
        r"|\bGPU (?P<gpu2>\d+)\b[^\n]{0,40}\b(?:failed SDC check|silent data corruption)"
        r"|silent data corruption (?:detected |found )?on GPU (?P<gpu3>\d+)"
        r"|cuda_memtest[^\n]*\b[1-9]\d* errors found in block \d+",
    ),
)
