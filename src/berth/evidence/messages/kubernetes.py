"""What Kubernetes says of pods and containers, whichever component wrote it."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "pod.host_memory_killed",
        ("exit code", "exitcode", "oomkilled", "memory cgroup out of memory", "oom-kill:"),
        r"OOMKilled|Memory cgroup out of memory: Killed process (?P<pid>\d+) \((?P<name>[^)]*)\)"
        r"|oom-kill:constraint=CONSTRAINT_MEMCG"
        r"|(?:exit ?code|exitCode)\W{1,3}137\b",
    ),
    Message(
        "pod.wrong_architecture",
        ("exec format error", "no matching manifest for"),
        r"exec format error|no matching manifest for (?P<platform>[\w/]+)",
    ),
    Message(
        "pod.evicted_for_volume",
        "exceeds the limit",
        r"Usage of EmptyDir volume \W*(?P<volume>[\w.-]+)\W* exceeds the limit \W*(?P<limit>\w+)",
    ),
    Message(
        "pod.volume_unbound",
        (
            "available persistent volumes to bind",
            "persistentvolumeclaim",
            "volume node affinity conflict",
            "available volume zone",
        ),
        r"unbound immediate PersistentVolumeClaims|persistentvolumeclaim \W*(?P<claim>[\w.-]+)\W* not found"
        r"|volume node affinity conflict|no available volume zone|didn.t find available persistent volumes to bind",
    ),
)
