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
        r"replicas\W{0,3}(?P<replicas>\d+)\b(?=.*\b(?:Xid|unhealthy|fault)).*?allocatable\W{0,3}(?P<allocatable>\d+)|"
        r"allocatable\W{0,3}(?P<left>\d+)\b(?=.*\b(?:Xid|unhealthy|fault)).*?replicas\W{0,3}(?P<of>\d+)",
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
