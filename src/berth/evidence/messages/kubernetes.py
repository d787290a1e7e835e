"""What Kubernetes says of pods and containers, whichever component wrote it."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "pod.host_memory_killed",
        (
            "signal 9 (sigkill)",
            "return code = -9",
            "out of memory: killed process",
            "ray.exceptions.outofmemoryerror",
            "node running low on memory",
            "exit code",
            "exitcode",
            "oomkilled",
            "memory cgroup out of memory",
            "oom-kill:",
        ),
        r"OOMKilled|Memory cgroup out of memory: Killed process (?P<pid>\d+) \((?P<name>[^)]*)\)"
        r"|oom-kill:constraint=CONSTRAINT_MEMCG"
        r"|(?:exit ?code|exitCode)\W{1,3}137\b"
        r"|Signal 9 \(SIGKILL\) received by PID|exit ?code\W{1,3}-9\b|return code = -9\b|Out of memory: Killed process"
        r"|ray\.exceptions\.OutOfMemoryError|node running low on memory",
    ),
    Message(
        "pod.wrong_architecture",
        ("illegal instruction (core dumped)", "exec format error", "no matching manifest for"),
        r"exec format error|no matching manifest for (?P<platform>[\w/]+)"
        r"|Illegal instruction \(core dumped\)",
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
    Message(
        "pod.probe_kills",
        (
            "failed liveness probe",
            "failed startup probe",
        ),
        r"failed (?P<probe>liveness|startup) probe, (?:will be|it will be) (?:restarted|killed)",
    ),
)
