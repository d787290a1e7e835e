"""Controllers that make groups of pods of one object: Volcano's jobs, JobSet, LeaderWorkerSet, Kubeflow, KubeRay."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "group.not_made",
        (
            "execute plugin when job",
            "failed to create podgroup, err",
            "failed to create pvc, err",
            "to create worker statefulset",
            "is too long, must be less than 63",
            "name is too long, leading to invalid",
            "headless service creation failed",
            "failed to create headless service",
            "failed to create head pod",
            "failed to create worker pod",
            "failedtocreateworkerpod",
            "failedtocreateheadpod",
            "spec is not valid",
            "is not managed by mpijob",
            "clustertrainingruntime",
            "trainingruntime",
            "trainjobresourcescreationfailed",
            "create pod with name",
        ),
        r"Execute plugin when job (?:add|update|delete|sync)\w* failed,? err: (?P<why>[^\n]+)"
        r"|Failed to create (?:PodGroup|PVC), err: (?P<why2>[^\n]+)"
        r"|[Ff]ailed to create worker statefulset[^\n]*"
        r"|(?:subdomain|name|pod names?)[^\n]{0,60} is too long, must be less than 63"
        r"|\bname is too long, leading to invalid"
        r"|[Hh]eadless service creation failed with:? (?P<why3>[^\n]+)|[Ff]ailed to create headless service[^\n]*"
        r"|FailedToCreate(?:Worker|Head)Pod\b[^\n]*|[Ff]ailed to create (?:head|worker) [Pp]od\b[^\n]*"
        r"|\b(?:PyTorch|TF|MPI|XGBoost|Paddle|JAX)JobSpec is not valid: (?P<why4>[^\n]+)"
        r"|Resource \S+ already exists and is not managed by MPIJob"
        r"|(?:clusterT|ClusterT|T|t)rainingRuntime\b[^\n]{0,60}\b(?:not found|must be created before|does not exist)"
        r"|TrainJobResourcesCreationFailed"
        r"|create pod with name \S+ validate failed",
    ),
    # Of groups that are started one by one, the first members may take what the others need.
    Message(
        "group.half_started",
        ("worker pod", "follower pod", "executor pod", "neither ", "deadlock"),
        r"\b(?:leader|launcher|master|driver|head) pods?\b[^\n.]{0,80}?"
        r"\b(?:worker|follower|executor) pods?\b[^\n.]{0,40}?\b(?:pending|unschedulable|starv\w+)\b"
        r"|\bneither\b[^\n]{0,40}\b(?:receives?|gets?|obtains?)\b[^\n]{0,60}\b(?:wait|pending)"
        r"|\bdeadlock\w*\b[^\n]{0,80}\b(?:gang|pod ?groups?|launcher|minMember|minAvailable)\b"
        r"|\b(?:gang|pod ?groups?|minMember|minAvailable)\b[^\n]{0,80}\bdeadlock",
    ),
    Message(
        "group.follower_waits",
        "not creating follower pod",
        r"leader pod not yet scheduled, not creating follower pod",
    ),
)
