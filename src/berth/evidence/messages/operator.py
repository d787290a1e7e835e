"""The GPU Operator, its validator and its operands."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "operator.waits_for_toolkit",
        ("container stack to be set", "toolkit"),
        r"waiting for nvidia container stack to be set ?up|waiting for .*?toolkit.*?(?:ready|setup)|"
        r"stat\S* /run/nvidia/validations/toolkit-ready: no such file",
    ),
    Message(
        "operator.waits_for_driver",
        (
            "waiting for driver",
            "waiting for the driver",
            "waiting for nvidia driver",
            "waiting for the nvidia driver",
            "driver-ready",
            "driver-ctr-ready",
            "driver is not ready",
        ),
        r"waiting for (?:the )?(?:nvidia )?driver(?: (?:libraries|modules))? to be|driver is not ready|"
        r"stat\S* /run/nvidia/validations/\.?driver(?:-ctr)?-ready: no such file",
    ),
    Message(
        "operator.waits_for_mofed",
        ("mofed", "state-ofed"),
        r"operator\.mofed\.wait['\"]?\s*[=:]\s*['\"]?true|state-OFED\b[^\n]{0,40}not ?ready"
        r"|waiting for (?:the )?(?:mofed|MOFED)\b|mofed driver (?:is )?not ready|error validating MOFED driver",
    ),
    Message(
        "operator.waits_for_plugin",
        (
            "gpu resources are not discovered",
            "gpu resources are not yet discovered",
            "error validating plugin installation",
        ),
        r"GPU resources are not (?:yet )?discovered(?: by the node)?(?:, retry: (?P<retry>\d+))?|"
        r"error validating plugin installation",
    ),
    Message(
        "operator.plugin_off",
        "deviceplugin",
        r"\bdevicePlugin(?:\.enabled\W{1,3}|\W{1,4}\n? *\W{0,2}enabled\W{1,3})false\b",
        lines=2,
    ),
    Message(
        "operator.toolkit_invalid",
        ("toolkit is not ready", "error validating toolkit", "nodedeploymenttoolkitfailed"),
        r"GPUOperatorNodeDeploymentToolkitFailed|toolkit is not ready|error validating toolkit installation",
    ),
    Message(
        "operator.driver_invalid",
        (
            "error validating driver",
            "failed to validate the driver",
            "error validating nvidia-fs",
            "error validating gdrcopy",
            "error validating nvidia-peermem",
            "waiting for driver pod to be ready",
            "nodedeploymentdriverfailed",
            "waiting for nvidia-driver to be installed",
        ),
        r"GPUOperatorNodeDeploymentDriverFailed|Waiting for nvidia-driver to be installed|error validating (?:driver"
        r"|nvidia-fs driver|gdrcopy driver|nvidia-peermem driver) installation"
        r"|failed to validate the driver(?:, retrying.*)?|Waiting for driver pod to be ready",
    ),
    Message(
        "operator.cuda_invalid",
        (
            "error validating cuda workload",
            "pod nvidia-cuda-validator",
            "cuda validation pod",
            "nodedeploymentcudafailed",
        ),
        r"GPUOperatorNodeDeploymentCudaFailed|error validating cuda workload"
        r"|gave up waiting for pod nvidia-cuda-validator\S*"
        r"|failed to create cuda validation pod",
    ),
    Message(
        "operator.plugin_invalid",
        ("pod nvidia-device-plugin-validator", "plugin validation pod"),
        r"gave up waiting for pod nvidia-device-plugin-validator\S*|failed to create plugin validation pod",
    ),
    # How the validator tells a check that it repeats until it passes: the command says what is waited for.
    Message(
        "operator.check_repeated",
        "running command ",
        r"running command (?:bash|sh|chroot|nvidia-smi) with args \[(?P<args>[^\n]*)\]\n"
        r"(?:[^\n]*\n){0,3}?[^\n]*command failed, retrying",
        lines=6,
    ),
    Message(
        "operator.not_ready",
        ("states not ready", "clusterpolicy isn't ready", "clusterpolicy is not ready"),
        r"ClusterPolicy (?:isn't|is not|is NOT) ready.*?states not ready\"?:? ?\[(?P<states>[^\]]*)|"
        r"ClusterPolicy (?:isn't|is not) ready",
    ),
    Message(
        "operator.api_absent",
        "no matches for kind",
        r"no matches for kind \\?\"(?P<kind>\w+)\\?\" in version \\?\"(?P<version>[^\"\\]+)",
    ),
    # A controller whose kinds are not served ends after waiting for them.
    Message(
        "operator.kinds_absent",
        ("caches to sync", "should be installed before calling start"),
        r"failed to wait for (?P<controller>[\w-]*(?:nvidia|clusterpolicy|upgrade|gpu|nodefeature|nim"
        r"|nic)[\w-]*) caches "
        r"to sync|if kind is a CRD, it should be installed before calling Start[^\n]*?(?P<kind>\w+\.(?:nvidia\.com"
        r"|nfd\.k8s-sigs\.io|mellanox\.com))",
    ),
    Message(
        "operator.cluster_old",
        "chart requires kubeversion",
        r"chart requires kubeVersion: (?P<wanted>[^\n]+?) which is incompatible with Kubernetes (?P<has>v[\w.+-]+)",
    ),
    Message(
        "operator.group_absent",
        ("list of server apis", "could not find the requested resource"),
        r"server APIs: (?P<version>(?:policy|node\.k8s\.io|resource\.k8s\.io|monitoring\.coreos\.com|nvidia\.com|"
        r"nfd\.k8s-sigs\.io|security\.openshift\.io)/\w+): the server could not find the requested resource",
    ),
    Message(
        "operator.rights_missing",
        ("is forbidden: user", "set an ownerref on a resource you", "set blockownerdeletion if an ownerreference"),
        r"cannot set an ownerRef on a resource you can't delete"
        r"|cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
        r"|is forbidden: User \\{0,3}\"system:serviceaccount:[\w-]+:"
        r"(?P<account>[\w-]*(?:gpu-operator|nvidia|nvsentinel|fault-|health-monitor|node-drainer|node-feature|nfd"
        r"|gpu-feature|dcgm|"
        r"mig-manager|nim-operator|network-operator|gpu-feature-discovery|vgpu|device-plugin)[\w-]*)\\{0,3}\" "
        r"cannot (?P<verb>\w+) resource \\{0,3}\"(?P<what>[\w./-]+)",
    ),
    Message(
        "operator.crd_old",
        (
            "com.nvidia.v1",
            "field not declared in schema",
            "clusterpolicy.nvidia.com",
            "clusterpolicies.nvidia.com",
            "nvidiadrivers.nvidia.com",
            "cannot be imported",
            "in clusterpolicy",
            'unknown field "spec.',
            "pruned",
            "the clusterpolicy ",
            "the nvidiadriver ",
            "failed to install crd ",
            r"unknown field \"spec.",
        ),
        r"missing required field \\?\"[\w.]+\\?\" in com\.nvidia\.v1|failed to install CRD \S*(?:nvidia|nfd)\S*"
        r"|The (?:ClusterPolicy|NVIDIADriver) \\?\"[\w-]+\\?\" is invalid:? ?(?P<why2>.*)|"
        r"(?P<field3>(?:spec\.|\.status\.)[\w.]+): field not declared in schema|"
        r"\bpruned\b.{0,60}\b(?:ClusterPolicy|NVIDIADriver)\b|\b(?:ClusterPolicy|NVIDIADriver)\b.{0,60}\bpruned\b|"
        r"unknown field \\?\"(?P<field2>spec\.(?:operator|daemonsets|driver|toolkit|devicePlugin|dcgm(?:Exporter)?|"
        r"gfd|migManager|mig|nodeStatusExporter|gds|gdrcopy|sandboxWorkloads|sandboxDevicePlugin|vfioManager|"
        r"vgpuManager|vgpuDeviceManager|cdi|ccManager|kataManager|kataSandboxDevicePlugin|psa|psp|hostPaths|validator|"
        r"fabricManager|draDriver|kernelModuleType)\b[^\"\\]*)|"
        r"unknown field\b.{0,20}?\bin ClusterPolicy|unknown field \\?\"(?P<field>[\w.]+)\\?\" in com\.nvidia\.v1|"
        r"ClusterPolicy\.nvidia\.com \\?\"[\w-]+\\?\" is invalid:? ?(?P<why>.*)|"
        r"(?:clusterpolicies|nvidiadrivers)\.nvidia\.com\\?\" (?:is invalid|exists and cannot be imported)|"
        r"ClusterPolicy \\?\"[\w-]+\\?\" (?:in namespace \S+ )?exists and cannot be imported|"
        r"(?:\.nvidia\.com|\.nfd\.k8s-sigs\.io|gpu-operator|nvidia|node-feature-discovery)\S* "
        r"(?:in namespace \S+ )?exists and cannot be imported into the current release",
    ),
    # It takes the name of its driver image from the node's system, and does not understand what it is.
    Message(
        "operator.os_unread",
        (
            "error processing os ",
            "gpu node os tag: ",
            "distribution not supported",
            "custom repo config",
            "ssl key/cert config",
            "subscription entitlements",
            "different os versions found",
            "runtime not recognized",
            "failed to get os-release",
        ),
        r"different OS versions found for the same kernel version|runtime not recognized: |failed to get os-release"
        r"|failed to get (?:destination directory for ssl key/cert config|path items for subscription entitlements)"
        r"|failed to get destination directory for custom repo config[^\n]*|distribution not supported"
        r"|error processing OS \w+ version (?P<version>\S+?):"
        r"|failed to retrieve GPU node OS tag: (?!unable to retrieve)"
        r"(?P<why>.*)",
    ),
    Message(
        "operator.policy_ignored",
        (
            "multiple clusterpolicy",
            "multiple instances of clusterpolicy",
            "more than one clusterpolicy",
            "more than one instances of clusterpolicy",
            "singleton",
            "ignored",
        ),
        r"(?:[Mm]ultiple|more than one) (?:instances of )?ClusterPolicy|ClusterPolicy.*?\b(?:ignored|singleton)\b",
    ),
    Message(
        "operator.nfd_absent",
        (
            "did you run the node feature discovery",
            "could not find kernel full version",
            "no gpu node in the cluster",
            "no gpu node can be found",
            "no gpu node can be monitored",
            "could not get any nodes to match",
            "nfd labels",
            "hasnfdlabels",
            "system-os_release",
            "failed to get cluster wide os",
            "kernel-version.full",
            "required nfd label missing",
            "no nfd label found",
            "no gpu node found, watching",
            "number of nodes with gpu label",
            "retrieve os name from label",
            "retrieve os version from label",
            "nfd rhcos version label",
            "could not find nfd labels",
            "failednfdlabelsmissing",
            "mandatory node attribute does not exist",
        ),
        r"GPUOperatorReconciliationFailedNfdLabelsMissing|Could not find NFD labels for node"
        r"|mandatory node attribute does not exist|(?:proper"
        r"|no) NFD RHCOS version label|unable to retrieve OS (?:name|version) from label|"
        r"required NFD Label missing: (?P<label>\S+?)[\"\s]|required NFD Label missing|No NFD label found|"
        r"No GPU node found, watching|Number of nodes with GPU label\W+\"?NodeCount\W+0\b|"
        r"did you run the node feature discovery|Could not find kernel full version|"
        r"No GPU node (?:in the cluster|can be (?:monitored|found))|Could not get any nodes to match|"
        r"(?:no|missing) NFD labels|NFD labels (?:are )?missing|"
        r"\"?HasNFDLabels\"?: ?false|failed to get cluster wide OS|"
        r"(?:system-os_release\.|kernel-version\.full)\S*\W{1,3}(?:label )?(?:is )?(?:missing|not found|not set|"
        r"absent)",
    ),
    # The operator takes the mark from a node that it held for one with GPUs.
    Message(
        "operator.sets_absent",
        ("setting node label", "node no longer has gpus"),
        r"Node no longer has GPUs|Setting node label(?:\W+NodeName\W+[\w.-]+)?"
        r"\W+Label\W+nvidia\.com/gpu\.present\W+Value\W+false",
    ),
    # A description of the plugin's DaemonSet; those of other components may well be wanted nowhere.
    Message(
        "operator.set_wanted_nowhere",
        "device-plugin",
        r"^Name:\s+\S*device-plugin(?!-valid)\S*\n(?:.*\n){1,20}?Desired Number of Nodes Scheduled: 0\b"
        # A line of a list of DaemonSets: desired, current, ready, up to date, available.
        r"|^\s*(?:\S+\s+)?\S*device-plugin-daemonset\s+0\s+0\s+0\s+0\s+0\s",
        lines=24,
    ),
    Message(
        "operator.nfd_pod_denied",
        ("nfd-worker", "node-feature-discovery", "nfd-master"),
        r"(?:nfd-(?:worker|master)|node-feature-discovery)\S*"
        r".*?(?:CrashLoopBackOff|connection refused|Unavailable|forbidden|OOMKilled)",
    ),
    Message(
        "operator.image_fails",
        ("failed to pull image", "back-off pulling image", "errimagepull", "imagepullbackoff", "pulling image: "),
        r"(?:Failed to pull image|Back-off pulling image|ErrImagePull|ImagePullBackOff|pulling image: )"
        r".*?(?P<image>nvcr\.io(?:/|: )[^\s\"\\,]+|(?<![^\s\"\\])[^\s\"\\]*?"
        r"(?:gpu-operator|k8s-device-plugin|container-toolkit|dcgm|driver|"
        r"gpu-feature|k8s-mig-manager|node-feature-discovery)[^\s\"\\,]*)(?P<why>.*)",
    ),
    Message(
        "operator.oom",
        (
            "oomkilled",
            "oom killed",
            "oom-killed",
            "gpu-operator-",
            "nfd-master",
            "nfd-worker",
            "node-feature-discovery-",
        ),
        r"(?P<who>gpu-operator|node-feature-discovery\S*|nfd(?:-\w+)?|nvidia-[\w-]*|dcgm-exporter)\S*"
        r"\s.*?OOM[- ]?Killed|"
        r"OOMKilled.*?(?P<what>gpu-operator|nfd-\w+|dcgm-exporter)|"
        # A list of pods or a description: the reason stands some lines below the name.
        r"^[ \t]*(?:Name:\s*|\S+[ \t]+)?(?P<who2>gpu-operator-[\w-]+|nfd-(?:master|worker)[\w-]*"
        r"|node-feature-discovery-[\w-]+)\b[^\n]*\n(?:[^\n]*\n){0,6}?[^\n]*OOMKilled",
        lines=8,
    ),
    # Labels and states, wherever somebody mentions them.
    Message(
        "operator.workload_label",
        ("gpu.workload.config", "gpuworkloadconfig"),
        r"gpu\.workload\.config['\"]?\s*(?:[=:]|is)?\s*['\"]?(?P<workload>vm-[a-z]+)|"
        r"GpuWorkloadConfig\W{1,4}(?P<workload2>vm-[a-z]+)",
    ),
    Message(
        "operator.deploy_off",
        "gpu.deploy.",
        r"nvidia\.com/gpu\.deploy\.(?P<component>[a-z-]+)['\"]?\s*[=:]\s*['\"]?false\b",
    ),
    Message(
        "operator.policy_state",
        ("notready", "reconciliationfailed", "nodedeploymentfailed"),
        r"GPUOperator(?:ReconciliationFailed|NodeDeploymentFailed)\b|(?:ClusterPolicy"
        r"|cluster-policy)\b.{0,60}?\bnotReady\b",
    ),
    Message(
        "operator.gke_driver_not_installed",
        (
            "driver auto installation is disabled",
            "gpu driver auto installation",
            "gpu driver libraries to be available",
        ),
        r"GPU driver auto installation is disabled|Waiting for GPU driver libraries to be available",
    ),
)
