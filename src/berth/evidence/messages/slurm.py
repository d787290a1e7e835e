"""Slurm: what slurmd and slurmctld say of GPUs (gres.conf, slurm.conf), and why a job for GPUs waits or is refused.

Wordings of Slurm 2.6 to 26.05: src/interfaces/gres.c and gpu.c (before 22.05 src/common), plugins gres/gpu and
gpu/nvml, src/common/slurm_errno.c, src/slurmctld/job_reasons.c."""

from berth.evidence.message import Message

# Why a job waits, but for its turn. Partition and node are away, or the job may not go there as it is asked for.
_REASONS = (
    "Resources", "PartitionNodeLimit", "PartitionTimeLimit", "PartitionDown", "PartitionInactive", "NodeDown",
    "InvalidAccount", "InvalidQOS", "QOSNotAllowed", "AccountNotAllowed", "JobHeldAdmin", "JobHeldUser", "Reservation",
    "Licenses",
)  # fmt: skip
_SAYS = ("show", "shows", "is", "was", "says")
_GPU = r"(?:gres[/:])?gpu\b"

MESSAGES: tuple[Message, ...] = (
    # gres.conf contradicts itself, or slurm.conf, or the machine.
    Message(
        "slurm.devices_refused",
        (
            "gres.conf duplicate records for", "specification while others do not", "invalid gres core specification",
            "invalid gres cpu count", "has cpus configured for only some of the records", "ignoring gres.conf name=",
            "ignoring file-less gpu", "invalid gres record", "invalid gres data for",
            "more configured than expected in slurm.conf", "lack of file specification",
            "following autodetected gpus are being ignored",
            "mismatching cores or links", "gres.conf line", "parsing error at unrecognized key",
            "gres plugin for gres/gpu", "plugin name for gres/gpu", "gpus were not found on the system",
            "gpus weren't found on the system", "invalid grestypes",
        ),
        rf"(?P<why>gres\.conf duplicate records for {_GPU})|"
        rf"gres\.conf for {_GPU}, (?P<why2>some records have \W{{0,2}}\w+=?\W{{0,2}} specification while others do "
        r"not)|"
        rf"{_GPU}:? (?P<why3>invalid GRES (?:core specification|cpu count) ?(?:\([^)]*\))?)|"
        rf"{_GPU}:? (?P<why4>has CPUs configured for only some of the records)|"
        r"(?P<why5>Ignoring gres\.conf Name=gpu\S*)|(?P<why6>Ignoring file-less GPU \S+)|"
        rf"(?P<why7>Invalid GRES (?:record|data) for {_GPU}.*)|"
        rf"(?P<why8>A line in gres\.conf for GRES {_GPU}\S* has \d+ more configured than expected in slurm\.conf)|"
        r"(?P<why9>(?:GPU|GPUs|device)\b.{0,60}?(?:due to lack of File specification|mismatching Cores or Links).*)|"
        r"(?P<why10>following autodetected GPUs are being ignored.*|following GPUs (?:were not|weren't) found on the "
        r"system)|"
        r"(?P<why12>cannot find gres plugin for gres/gpu|Couldn't find the specified plugin name for gres/gpu|"
        r"Invalid GresTypes)|"
        r"(?:Parse error in file \S*gres\.conf line \d+|Parsing error at unrecognized key:? "
        r"(?P<why11>AutoDetect|Cores|Links|Flags|MultipleFiles)\b)",
    ),
    # AutoDetect asks for a library that this build has not, or that the machine has not.
    Message(
        "slurm.autodetect_unbuilt",
        ("autodetect nvml functionality", "isn't enabled during the build", "configured to autodetect"),
        r"configured to autodetect \w+ functionality, but we weren't able to find that lib when Slurm was configured|"
        r"Configured with (?:rsmi|oneapi), but \w+ isn't enabled during the build",
    ),
    Message(
        "slurm.library_absent",
        ("configured with nvml functionality", "gpu_nvml.so", "configured with rsmi, but that lib"),
        r"configured with nvml functionality, but that lib wasn't found on the system|"
        r"(?:dlopen|plugin_load_from_file)\S*\b.{0,60}?gpu_nvml\.so\W.{0,20}?libnvidia-ml\.so\S*\W.{0,10}?cannot open|"
        r"Configured with rsmi, but that lib wasn't found",
    ),
    Message(
        "slurm.file_absent",
        "gres.conf file",
        r"(?:Waiting for|can'?t stat|cannot stat) gres\.conf file (?P<path>/dev/\S+?)(?=[:\s]|$)",
    ),
    # What slurmd registers is less than what slurm.conf promises.
    Message(
        "slurm.fewer_devices",
        ("count reported lower than configured", "count too low", "gres/gpu count repor"),
        r"gres/(?:gpu|mps|shard)(?P<type>:\S+)? count (?:reported lower than configured|too low) ?"
        r"\((?P<found>\d+) < (?P<configured>\d+)\)|"
        r"gres/gpu count repor\w*(?! lower than configured ?\(\d)",
    ),
    Message(
        "slurm.count_changed_in_use",
        "count changed and jobs are using them",
        r"gres/gpu\S* count changed and jobs are using them ?\(\d+ != \d+\)",
    ),
    Message(
        "slurm.node_held",
        ("kill task failed", "prolog error", "prolog failed", "epilog error", "node unexpectedly rebooted",
         "batch job complete failure"),
        r"(?:Reason=|reason(?: set)?(?: to)?:? ?|^)\W{0,2}(?P<why>Kill task failed|Prolog (?:error|failed)|"
        r"Epilog error|Node unexpectedly rebooted|batch job complete failure)",
    ),
    Message(
        "slurm.node_smaller",
        ("low realmemory", "low socket*core", "low cpus", "low tmpdisk", "low cores", "low real_memory",
         "low cpu count",
         "low tmp_disk", "invalid_reg"),
        r"(?P<why>Low (?:RealMemory|socket\*core\S*|CPUs|TmpDisk|Cores)(?: count)?(?: \([^)]*\))?)|"
        r"\bhas (?P<why2>low (?:real_memory size|cpu count|socket\*core\S* count|tmp_disk size)(?: \([^)]*\))?)|"
        r"\bState=\S*(?P<why3>INVALID_REG)\b",
    ),
    # The same as people tell it.
    Message(
        "slurm.told_fewer",
        ("scontrol", "slurmd", "slurmctld", "in slurm", "slurm show", "slurm see", "slurm does", "slurm only",
         "slurm report"),
        r"\bnvidia-smi\b.{0,40}?\b(?:shows?|sees?|lists?|reports?|works?)\b.{0,60}?"
        r"\b(?:scontrol|slurmd|slurmctld|in slurm|slurm (?:shows?|sees?|does|only|reports?))\b.{0,60}?"
        r"(?:\(null\)|\bgpu:0\b|\b(?:0|no|zero|fewer|not)\b)",
    ),
    Message(
        "slurm.devices_unconfined",
        ("constraindevices", "in slurm", "slurm job", "--gres=gpu", "--gpus="),
        r"\bConstrainDevices\b\W{0,3}(?:=|is|was)? ?(?:no\b|not set|missing|false|off)|"
        r"(?:\b(?:in slurm|slurm jobs?)\b|--gres=gpu|--gpus=).{0,99}?\b(?:sees?|shows?|can (?:use|access)|may use)"
        r"\b.{0,20}?\ball (?:of )?(?:the )?(?:\w+ )?GPUs\b|"
        r"\b(?:sees?|shows?|can (?:use|access)) all (?:of )?(?:the )?(?:\w+ )?GPUs\b.{0,80}?"
        r"(?:--gres=gpu|--gpus=|\bin slurm\b)",
    ),
    # A job for GPUs that does not run.
    Message(
        "slurm.limit_reached",
        ("qosgrp", "qosmax", "qosmin", "assocgrp", "assocmax", "assocmin", "qosusagethreshold",
         "violates accounting/qos policy"),
        r"\b(?P<why>(?:QOS|Assoc)(?:Grp|Max|Min)(?:GRES|CPU|Node|Mem|Job|Billing|Submit|Wall)[A-Za-z]*|"
        r"QOSUsageThreshold)\b|"
        r"(?P<why2>violates accounting/QOS policy)",
    ),
    Message(
        "slurm.gres_refused",
        ("generic resource (gres) specification", "trackable resource (tres) specification",
         "gres option unsupported by configured selecttype", "invalid gres specification"),
        r"(?P<why>Invalid generic resource \(gres\) specification|Invalid Trackable RESource \(TRES\) specification|"
        r"Requested GRES option unsupported by configured SelectType plugin|Invalid GRES specification)",
    ),
    # The controller, or a filter of the site's own, does not take the job as it is asked for.
    Message(
        "slurm.request_refused",
        ("invalid partition name specified", "invalid account or account/partition", "invalid qos specification",
         "invalid feature specification", "not permitted to use this partition", "requested time limit is invalid",
         "requested partition configuration not available", "are mutually exclusive", "sbatch: error: ",
         "srun: error: ", "salloc: error: "),
        r"(?P<why>Invalid partition name specified|Invalid account or account/partition combination specified|"
        r"Invalid qos specification|Invalid feature specification|group not permitted to use this partition|"
        r"Requested time limit is invalid|Requested partition configuration not available now|"
        r"SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive)|"
        r"(?:sbatch|srun|salloc): error: (?P<why3>[^\n]{0,60}\b(?:invalid|not a valid|unknown|valid)\b[^\n]{0,24}"
        r"\b(?:GRES|GPUs?)\b(?! \(gres\) spec)[^\n]{0,100})|"
        r"(?:sbatch|srun|salloc): error: (?P<why2>[^\n]{0,120}\b(?:GPUs?|gres)\b[^\n]{0,80}?"
        r"\b(?:not (?:allowed|permitted|requesting)|may not|must|required?|need|please|should|only)\b[^\n]{0,80}|"
        r"[^\n]{0,80}\b(?:must|may not|please|need to|have to|should|required? to|required? at least)\b[^\n]{0,60}"
        r"\b(?:GPUs?|gres)\b[^\n]{0,60})",
    ),
    # As squeue tells why a job waits.
    Message(
        "slurm.waits",
        tuple(form % reason.lower() for reason in _REASONS for form in ("(%s)", "reason=%s")),
        rf"\bPD\b[^\n]{{0,120}}\((?P<why>{'|'.join(_REASONS)})\)|"
        rf"\bJobState=PENDING Reason=(?P<why2>{'|'.join(_REASONS)})\b",
    ),
    # A node for GPUs, or somebody who tells of one: a node without any has nothing to show.
    Message(
        "slurm.gres_null",
        ("gres=(null)", *(f"gres {what}{says} (null)" for what in ("", "field ", "column ") for says in _SAYS)),
        rf"\bGRES (?:field |column )?(?:{'|'.join(_SAYS)}) \(null\)|\bNodeName=\S*gpu\S*\b[^\n]{{0,99}}\bGres=\(null\)",
    ),
    Message(
        "slurm.files_differ",
        ("gres.conf",),
        r"\bgres\.conf\b.{0,40}\b(?:mismatch|differs?|(?:does|do)(?:n't| not) match|inconsistent|contradicts?)\b.{0,40}"
        r"\bslurm\.conf\b|\bslurm\.conf\b.{0,40}\b(?:mismatch|differs?|(?:does|do)(?:n't| not) match|inconsistent|"
        r"contradicts?)\b.{0,40}\bgres\.conf\b|\b(?:mismatch|difference|inconsisten\w+) between\b.{0,40}\bgres\.conf\b",
    ),
    Message(
        "slurm.no_node_fits",
        ("requested node configuration is not available", "badconstraints", "node count specification invalid",
         "more processors requested than permitted"),
        r"(?P<why>Requested node configuration is not available|\(BadConstraints\)|Reason=BadConstraints|"
        r"Node count specification invalid|More processors requested than permitted)",
    ),
    Message(
        "slurm.nodes_away",
        ("reqnodenotavail", "nodes required for job are down", "required node not available"),
        r"(?P<why>ReqNodeNotAvail[^)\n|]{0,120}|Nodes required for job are DOWN, DRAINED or reserved[^)\n|]{0,60}|"
        r"Required node not available)",
    ),
)  # fmt: skip
