"""What schedulers, queues and autoscalers say of themselves: their rights, their configuration, their start."""

from berth.evidence.message import Message

_WHO = (
    r"[\w.-]*(?:scheduler|kueue|volcano|kai-|binder|pod-?grouper|podgroup|yunikorn|karpenter|autoscaler|hami|jobset"
    r"|lws|training-operator|mpi-operator|kuberay|compute-domain|dra-driver|dra-kubelet|resource-claim|kubevirt|virt-)"
    r"[\w.-]*"
)

MESSAGES: tuple[Message, ...] = (
    # The API server refuses what one of them asks for. Accounts of the operator and the plugin have rules of their own.
    Message(
        "scheduler.rights_missing",
        ("system:serviceaccount:", "system:kube-scheduler", "is not authorized to perform: "),
        rf"User \W{{0,3}}system:(?:serviceaccount:(?P<account>[\w-]+:{_WHO})|(?P<account2>kube-scheduler))\W{{1,4}}"
        r"cannot (?P<verb>\w+) resource(?: \W{0,3}(?P<what>[\w./-]+))?"
        # The cloud's own rights, which autoscalers need.
        r"|(?:User: )?(?P<account4>arn:aws:\S+) is not authorized to perform: "
        r"(?P<verb3>(?:autoscaling|ec2|eks|iam|ssm|pricing)"
        r":\w+)"
        r"|User \W{0,3}system:serviceaccount:(?P<account3>[\w-]+:[\w.-]+)\W{1,4}cannot (?P<verb2>\w+) resource "
        r"\W{0,3}(?P<what2>resourceclaims|deviceclasses|podgroups|computedomains\w*)",
    ),
    # Whoever else is refused what makes or shows pods.
    Message(
        "scheduler.rights_missing_for_pods",
        "is forbidden: user",
        r"(?P<what>pods|pods/\w+|jobs|deployments|daemonsets|statefulsets|nodes|events|leases|persistentvolumeclaims"
        r"|services|workflowtaskresults|resourceclaims\w*|configmaps|secrets)(?:\.[a-z0-9.-]+)? (?:\S+ )?is forbidden: "
        r"User \W{0,3}(?P<account>system:(?:serviceaccount:[\w-]+:[\w.-]+|anonymous)|[\w.@-]+)\W{1,4}"
        r"cannot (?P<verb>\w+) resource",
    ),
    # Files of configuration, and what stands in them for a plugin that was not built in.
    Message(
        "scheduler.config_refused",
        (
            "initializing profiles",
            "initializing plugin",
            "creating profile for scheduler",
            "does not exist",
            "scheduler config",
            "scheduler configuration",
            "failed to get plugin ",
            "failed to load plugin",
            "kubeschedulerconfiguration",
        ),
        r"initializing profiles: creating profile for scheduler name (?P<profile>[\w.-]+): (?P<why>[^\n]+)"
        r"|initializing plugin \W{0,2}(?P<plugin>\w+)\W{0,2}: (?P<why2>[^\n]+)"
        r"|profile \W{0,2}(?P<profile2>[\w.-]+)\W{0,2}: plugin \W{0,2}(?P<plugin2>\w+)\W{0,2} does not exist"
        r"|(?:unable|failed) to (?:decode|load|parse|read|unmarshal)\w* (?:the )?(?:\w+ )?scheduler "
        r"config(?:uration)?\b(?P<why3>[^\n]*)"
        r"|[Ff]ailed to (?:get|load) plugin \W{0,2}(?P<plugin3>[a-z][\w-]+)\W{0,3}$"
        r"|strict decoding error: [^\n]*KubeSchedulerConfiguration",
    ),
)
