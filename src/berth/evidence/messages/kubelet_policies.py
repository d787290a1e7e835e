"""The kubelet's managers of CPU, memory and topology: what they wrote down, and settings that they refuse."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "kubelet.state_file_must_go",
        (
            "with cpus in state",
            "drain this node and",
            "drain node and",
            "manager checkpoint file",
            "differs from state checkpoint policy",
            "are present in defaultcpuset",
            "overlaps with default cpuset",
            "default cpuset cannot be empty",
            "expected machine state is different",
            "machine state can not be empty",
            "numa node and resource are different",
        ),
        r"available CPUs .*? doesn't match with CPUs in state|"
        r"(?:drain (?:this )?node and (?:delete|remove)|delete the \w+ manager checkpoint file)"
        r".*?(?P<file>/[\w./-]+(?:_state|checkpoint\S*))?|"
        r"(?:configured|current) policy .*? differs from state checkpoint policy|"
        r"reserved cpus: .*? are present in defaultCpuSet|overlaps with default cpuset|default cpuset cannot be empty|"
        r"expected machine state is different from the real one|machine state can not be empty when|"
        r"[Mm]emory states for the NUMA node and resource are different",
    ),
    Message(
        "kubelet.policies_refused",
        (
            "static policy requires systemreserved.cpu",
            "unable to determine reserved cpu",
            "determined by node allocatable",
            "specify the system reserved memory",
            "unsupported on machines with more than",
            "unable to reserve the required amount of cpus",
            "unable to build the reserved",
            "policy alpha-level options not enabled",
            "policy beta-level options not enabled",
            "unknown cpu manager policy",
            "unknown topology manager policy",
            "manager policy option",
            "new static policy error",
            "references a numa node",
            "unknown policy: ",
            "unknown scope: ",
            "is incompatible with cpumanager",
            "invalid configuration: ",
        ),
        r"static policy requires systemreserved\.cpu|unable to determine reserved CPU resources|"
        r"the total amount .*? is not equal to the value .*? determined by Node Allocatable|"
        r"you should specify the system reserved memory|unsupported on machines with more than \d+ NUMA|"
        r"unable to reserve the required amount of CPUs|unable to build the reserved physical CPUs|"
        r"policy (?:alpha|beta)-level options not enabled, but option|new static policy error: (?P<why>.*)|"
        r"unknown (?:CPU|Topology) Manager Policy option|policy is incompatible with CPUManager|"
        r"reserved memory configuration references a NUMA node|"
        r"(?:(?:cpu|memory|topology)[ _-]?manager|ContainerManager|kubelet)\b.*?unknown (?:policy|scope): |"
        r"invalid configuration: (?:topologyManager|cpuManager|memoryManager|reservedMemory|reservedSystemCPUs)\w*",
    ),
)
