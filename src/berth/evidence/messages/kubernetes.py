"""What Kubernetes says of pods and containers, whichever component wrote it."""

from berth.evidence.message import Message, exit_codes

MESSAGES: tuple[Message, ...] = (
    Message(
        "pod.host_memory_killed",
        (
            "signal 9 (sigkill)",
            "return code = -9",
            "out of memory: killed process",
            "ray.exceptions.outofmemoryerror",
            "node running low on memory",
            "perhaps out of memory",
            "by oom killer due to high memory usage",
            "oom-killed",
            "oom killed",
            "oom killer",
            "oom-killer",
            "oom_kill",
            "detected 1 oom",
            "out-of-memory handler",
            "memory limit",
            "memory crosses",
            "memory exceed",
            "memory goes over",
            "exceeded memory",
            "exceeded job memory",
            *exit_codes(137, -9),
            "exited with code 137",
            "exits with code 137",
            "exit status 137",
            ", failcnt ",
            "oomkilled",
            "memory cgroup out of memory",
            "oom-kill:",
            "oom-kill event",
        ),
        r"OOMKilled|Memory cgroup out of memory: Killed process (?P<pid>\d+) \((?P<name>[^)]*)\)"
        r"|oom-kill:constraint=CONSTRAINT_MEMCG"
        r"|(?:exit ?code|exitCode)\W{1,3}137\b|\bexit(?:ed|s) with code 137\b"
        r"|\bexit status 137\b"
        r"|memory: usage \d+kB, limit \d+kB, failcnt [1-9]"
        r"|Signal 9 \(SIGKILL\) received by PID|exit ?code\W{1,3}-9\b|return code = -9\b|Out of memory: Killed process"
        r"|ray\.exceptions\.OutOfMemoryError|node running low on memory"
        r"|was sent SIGKILL! Perhaps out of memory|(?P<maybe>killed by SIGKILL by OOM killer due to high memory usage)"
        r"|\boom-kill(?::|ed\b| event)|\bOOM[- ]killed?\b|\bkilled by (?:the )?(?:kernel )?OOM[- ]killer\b"
        r"|invoked oom-killer|[Dd]etected \d+ oom[_-]kill|(?:killed by|event\(s\) in) .{0,60}?out-of-memory handler"
        r"|exceeded (?:job |step )?memory limit"
        r"|\b(?:pod|container|job|process)\b.{0,60}\bkilled\b.{0,60}\bmemory (?:crosses|exceeds|limit|goes over)",
    ),
    Message(
        "pod.wrong_architecture",
        (
            "illegal instruction (core dumped)",
            "exec format error",
            "no matching manifest for",
            "with signal 4",
            "signal 4 (sigill)",
            "signal: illegal instruction",
            *exit_codes(132, -4),
        ),
        r"exec format error|no matching manifest for (?P<platform>[\w/]+)"
        r"|Illegal instruction \(core dumped\)|shutdown with signal 4\b|signal 4 \(SIGILL\)"
        r"|signal: illegal instruction|exit ?code\W{1,3}(?:132|-4)\b",
    ),
    # Of a node, as its list, its conditions and events say it. Kubelets that start say the like for some seconds.
    Message(
        "node.network_not_ready",
        ("kubeletnotready", "networknotready", "networkpluginnotready"),
        r"KubeletNotReady\b[^\n]*(?:runtime network not ready|NetworkPluginNotReady|cni \w+ (?:not init|uninit)ialized)"
        r"|Warning[ \t]+NetworkNotReady|\"reason\": \"NetworkPluginNotReady\"",
    ),
    Message(
        "node.runtime_stalled",
        ("kubeletnotready", "pleg was last seen active", "with pleg is not healthy"),
        r"KubeletNotReady\b[^\n]*(?:PLEG is not healthy|container runtime is down)|pleg was last seen active \w+ ago"
        r"|NotReady with PLEG is not healthy",
    ),
    Message(
        "node.not_ready",
        ("node is not ready", "stopped posting node status", "notready  ", "notready\t", "notready,schedulingdisabled"),
        r"\bNodeNotReady\b[^\n]*\bNode is not ready|[Kk]ubelet stopped posting node status"
        r"|^[ \t]*(?P<node>[a-z0-9][\w.-]+)[ \t]+(?:NotReady  |NotReady\t|NotReady,SchedulingDisabled)[ \t]*\S+[ \t]+"
        r"\d+[smhdy]\w*[ \t]+v\d",
    ),
    Message(
        "pod.evicted_for_pressure",
        ("node was low on resource", "node had condition: [", "attempting to reclaim ", "node had conditions: ["),
        r"[Nn]ode was low on resource:? \[?(?P<what>[\w.-]+)|[Nn]ode had conditions?: \[(?P<what2>[A-Z]\w+Pressure)"
        r"|Attempting to reclaim (?P<what3>ephemeral-storage|memory|inodes|pids|nodefs|imagefs)",
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
            "multi-attach error for volume",
        ),
        r"unbound immediate PersistentVolumeClaims|persistentvolumeclaim \W*(?P<claim>[\w.-]+)\W* not found"
        r"|volume node affinity conflict|no available volume zone|didn.t find available persistent volumes to bind"
        r"|Multi-Attach error for volume",
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
