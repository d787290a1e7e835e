"""What people report in their own words, where they do not quote anybody: the fact, not the phrasing of one report."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "reported.plugin_busy",
        "device-plugin",
        r"device-plugin\S*\W.{0,60}?\b(?P<percent>\d{2,3})(?:\.\d)? ?%? ?(?:% ?)?CPU|"
        r"device-plugin\S*\W.{0,40}?(?:CPU (?:usage|at)|busy loop)\D{0,20}(?P<load>\d{2,3})",
    ),
    Message(
        "reported.replicas_left",
        ("allocatable", "replicas"),
        r"replicas(?:\W| is| of){0,3}(?P<replicas>\d+)\b(?=.*?\ballocatable)(?=.*\b(?:Xid|unhealthy|fault))"
        r".*?allocatable(?:\W| is| only){0,3}(?P<allocatable>\d+)|allocatable(?:\W| is| only){0,3}(?P<left>\d+)\b"
        r"(?=.*\b(?:Xid|unhealthy|fault)).*?replicas(?:\W| of){0,3}(?P<of>\d+)",
    ),
    Message(
        "reported.lost_still_offered",
        ("allocatable", "healthy", "advertise"),
        r"(?:allocatable|capacity)\b.{0,40}?\b(?:stays|remains|still|unchanged)\b.{0,60}?\b(?:lost|gone|fell|fallen|"
        r"dead|hung|"
        r"failed|missing)\b|plugin\b.{0,40}?\b(?:still|keeps|continues)\b.{0,40}?\b(?:advertis\w+|report\w*|"
        r"offer\w*)\b.{0,60}?"
        r"\b(?:lost|gone|fell|fallen|dead|hung|failed|healthy)\b",
    ),
    Message(
        "reported.healthy_after_restart",
        ("unhealthy", "restart"),
        r"\b(?:un)?healthy\b.{0,80}?\b(?:until|after|once)\b.{0,40}?(?:plugin\b.{0,20}?\brestart|"
        r"restart\w*.{0,30}?plugin)|"
        r"restart\w*.{0,30}?device.?plugin.{0,60}?\b(?:healthy again|becomes healthy|is healthy|comes back|recovers)",
    ),
    Message(
        "reported.labels_missing",
        ("nvidia.com/gpu", "nvidia.com/cuda", "nvidia.com labels", "gpu labels"),
        r"nvidia\.com/(?:gpu|cuda|mig)\.[\w.*-]+.{0,40}?\b(?:missing|not set|absent|removed|not there|not present|"
        r"disappear\w*)|"
        r"\bno (?:nvidia\.com|GPU) labels\b|(?:nvidia\.com|GPU) labels (?:are )?(?:missing|absent)",
    ),
    Message(
        "reported.labels_stale",
        ("gpu.present", "gpu.product", "gpu.count", "stale label", "gpu labels"),
        r"nvidia\.com/gpu\.(?:present|product|count)\S*.{0,60}?\b(?:no GPU|without (?:a |any )?GPU|GPU (?:was |"
        r"is )?(?:removed|gone)|"
        r"stale|still there|left over)|stale (?:GPU |nvidia\.com |node )?labels",
    ),
    Message(
        "reported.busy_mps_client",
        ("mps",),
        r"\bMPS\b.{0,120}?(?:busy or unavailable|CUDA_ERROR_MPS|MPS_(?:CONNECTION_FAILED|SERVER_NOT_READY|"
        r"RPC_FAILURE))|"
        r"(?:busy or unavailable|cudaErrorMps\w+|CUDA_ERROR_MPS\w+).{0,120}?(?:\bMPS\b|\bmps\b)?",
    ),
    Message(
        "reported.stream_dead",
        ("stream dead", "stream is dead", "stream hung", "listandwatch hung", "does not send devices"),
        r"(?:ListAndWatch|plugin)?.{0,40}?stream (?:is )?(?:dead|hung|stale)|ListAndWatch (?:is )?hung",
    ),
    Message(
        "reported.mig_reverts",
        ("needs a reboot", "mode unchanged", "mig mode reverts"),
        r"MIG (?:mode )?reverts|MIG .*?needs a reboot each time",
    ),
)
