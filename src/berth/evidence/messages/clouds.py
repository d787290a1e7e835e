"""Clouds and autoscalers: Karpenter, Cluster Autoscaler, managed Kubernetes."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "clouds.resource_not_registered",
        ("requested but not registered", "resourcenotregistered", "not registered"),
        r"[Rr]esource \\?\"(?P<resource>[\w./-]+)\\?\" was requested but not registered|ResourceNotRegistered|"
        r"[Rr]esource (?P<other>(?:[\w-]+\.)+\w+/[\w.-]+) (?:was )?(?:requested but )?(?:is )?not registered",
    ),
    Message(
        "clouds.startup_taint_stays",
        ("startuptaint", "startup taint"),
        r"StartupTaintsExist|[Ss]tartup ?[Tt]aint \\?\"(?P<taint>[\w./:=-]+)\\?\" still exists|"
        r"StartupTaint \"(?P<other>[^\"]+)\" still exists",
    ),
    Message(
        "clouds.agent_blind",
        "acceleratedhardwareready",
        r"AcceleratedHardwareReady\"?[=: ]+\"?True.*?(?:in spite of|despite|although|but)|"
        r"AcceleratedHardwareReady.*?(?:dcgm|hostengine).*?(?:unreachable|not (?:running|connected|found)|missing)",
    ),
    Message(
        "clouds.agent_without_dcgm",
        "dcgm",
        r"(?:gpud|agent|monitor\w*)\b.{0,80}?\b(?:dcgm|DCGM) (?:is )?not initialized|"
        r"(?:[Ff]ailed|[Uu]nable|cannot|could not|waiting)\b"
        r".{0,80}?(?:initialize DCGM|connect to (?:the )?DCGM|DCGM socket|dcgm-?server)",
    ),
    Message(
        "clouds.cordoned_by_monitor",
        ("cordon-by", "cordoned by nvsentinel", "remained cordoned", "stays cordoned", "still cordoned"),
        r"cordon-by\W+NVSentinel|cordoned by NVSentinel|\bnode\b.{0,40}?\b(?:remained|stays|still) cordoned\b",
    ),
    Message(
        "clouds.scales_too_far",
        ("scale-up", "scale up", "scaleup"),
        r"GPU\b.{0,60}?\b(?:multiple|too many|unnecessary|additional|two|three|four|\d+) (?:node )?scale[- ]?ups?\b|"
        r"(?:multiple|too many|unnecessary|additional) (?:node )?scale[- ]?ups?\b.{0,60}?\bGPU",
    ),
    Message(
        "clouds.autoscaler_waits_for_gpu",
        ("has unready gpu", "gpu label", "still unready gpu", "unready gpu"),
        r"(?:[Nn]ode \S+ )?(?:has|still has|with) (?:an )?unready GPU|"
        r"Overriding status of node \S+, which seems to have unready GPU",
    ),
)
