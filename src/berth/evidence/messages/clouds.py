"""Clouds and autoscalers: Karpenter, Cluster Autoscaler, managed Kubernetes."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "clouds.resource_not_registered",
        ("requested but not registered", "resourcenotregistered", "not registered", "register on the node",
         " of resource "),
        r"[Rr]esource \\?\"(?P<resource>[\w./-]+)\\?\" was requested but not registered|ResourceNotRegistered|"
        r"[Rr]esource (?P<other>(?:[\w-]+\.)+\w+/[\w.-]+) (?:was )?(?:requested but )?(?:is )?not registered|"
        r"expected \d+ of resource (?P<expected2>[\w./-]+), but found 0\b|"
        r"[Ee]xpected resource \\?\"(?P<expected>[\w./-]+)\\?\" (?:did not|didn't) register on the node",
    ),
    # Karpenter takes a node for initialised once it is Ready, without startup taints, and offers what was asked for.
    Message(
        "clouds.not_initialized",
        ("node isn't initialized", "karpenter.sh/initialized", "node is not initialized", "nodenotinitialized"),
        r"[Nn]ode (?:isn't|is not) initialized|karpenter\.sh/initialized\b.{0,60}\b(?:not|missing|never|absent)\b"
        r"|(?:missing|without|no) (?:the )?(?:label )?karpenter\.sh/initialized",
    ),
    Message(
        "autoscaler.not_joined",
        ("karpenter.sh/unregistered", "node not registered with cluster", "unregistered nodes present",
         "registration ttl", "registration timeout", "scale-up timed out for node group",
         "waiting.for.instances.timeout", "removing unregistered node"),
        r"missing (?:required )?(?:startup )?taint,? \W*karpenter\.sh/unregistered|[Nn]ode not registered with cluster"
        r"|[1-9]\d* unregistered nodes present|terminating due to registration ttl|registration timeout exceeded"
        r"|Scale-up timed out for node group|waiting\.for\.instances\.timeout|Removing unregistered node \S+",
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
        (
            "cordon-by",
            "cordoned by nvsentinel",
            "remained cordoned",
            "remains cordoned",
            "stays cordoned",
            "still cordoned",
            "manually uncordon",
            "uncordoned manually",
            "uncordoned by hand",
            "quarantinehealthevent",
        ),
        # Nothing is wrong any more, and the agent's mark is still there.
        r"quarantineHealthEvent\W{1,4}\[\](?:[^\n]*\n){1,3}?[^\n]*quarantineHealthEventIsCordoned\W{1,4}True"
        r"|\bnode\b.{0,80}?\b(?:manually uncordon|uncordoned (?:manually|by hand))|cordon-by\W+NVSentinel"
        r"|cordoned by NVSentinel|\bnode\b.{0,40}?\b(?:remained|remains|stays|still) cordoned\b",
        lines=5,
    ),
    Message("clouds.no_action", "action=none", r"Recommended ?Action=NONE"),
    Message(
        "clouds.scales_too_far",
        (
            "scale-up",
            "scale up",
            "scaleup",
            "second gpu node",
            "third gpu node",
            "another gpu node",
            "several gpu node",
            "duplicate nodeclaim",
            "multiple nodeclaim",
        ),
        r"GPU\b.{0,60}?\b(?:multiple|too many|unnecessary|additional|two|three|four|\d+) (?:node )?scale[- ]?ups?\b|"
        r"(?:multiple|too many|unnecessary|additional) (?:node )?scale[- ]?ups?\b.{0,60}?\bGPU|"
        r"(?:duplicate|multiple) nodeclaims?\b.{0,60}?\bsingle (?:pod|GPU)|"
        r"(?:autoscaler|karpenter) (?:adds?|starts?|launch(?:es)?) (?:a )?(?:second|third|another|several) GPU node",
    ),
    Message(
        "clouds.autoscaler_waits_for_gpu",
        ("has unready gpu", "gpu label", "still unready gpu", "unready gpu"),
        r"(?:[Nn]ode \S+ )?(?:has|still has|with) (?:an )?unready GPU|"
        r"Overriding status of node \S+, which seems to have unready GPU",
    ),
)
