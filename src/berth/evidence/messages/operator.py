"""The GPU Operator, its validator and its operands; Node Feature Discovery."""

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
        "mofed",
        r"waiting for (?:the )?(?:mofed|MOFED)\b|mofed driver (?:is )?not ready|error validating MOFED driver",
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
        ("toolkit is not ready", "error validating toolkit"),
        r"toolkit is not ready|error validating toolkit installation",
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
        ),
        r"error validating (?:driver|nvidia-fs driver|gdrcopy driver|nvidia-peermem driver) installation"
        r"|failed to validate the driver(?:, retrying.*)?|Waiting for driver pod to be ready",
    ),
    Message(
        "operator.cuda_invalid",
        ("error validating cuda workload", "pod nvidia-cuda-validator", "cuda validation pod"),
        r"error validating cuda workload|gave up waiting for pod nvidia-cuda-validator\S*"
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
        r"(?P<account>[\w-]*(?:gpu-operator|nvidia|node-feature|nfd|gpu-feature|dcgm|"
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
            r"unknown field \"spec.",
        ),
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
        ("error processing os ", "gpu node os tag: ", "distribution not supported", "custom repo config"),
        r"failed to get destination directory for custom repo config[^\n]*|distribution not supported"
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
        ),
        r"(?:proper|no) NFD RHCOS version label|unable to retrieve OS (?:name|version) from label|"
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
        r"^Name:\s+\S*device-plugin(?!-valid)\S*\n(?:.*\n){1,20}?Desired Number of Nodes Scheduled: 0\b",
        lines=24,
    ),
    # How Node Feature Discovery is configured: which fields make the name of a PCI label, which classes get one.
    Message(
        "nfd.label_fields",
        "devicelabelfields",
        r"^[^#\n]*deviceLabelFields\W{0,3}(?P<fields>[:=]\s*\[[^\]]*\]|:(?:[^\S\n]*\n[^\S\n]*(?:#[^\n]*|- *[\"']?\w+"
        r"[\"']?[^\n]*))+)",
        lines=12,
    ),
    Message(
        "nfd.device_classes",
        "deviceclasswhitelist",
        r"^[^#\n]*deviceClassWhitelist\W{0,3}(?P<classes>(?:[:=]|[ ])\s*\[[^\]]*\]|:(?:[^\S\n]*\n[^\S\n]*(?:#[^\n]*"
        r"|- *[\"']?\w+[\"']?[^\n]*))+)",
        lines=16,
    ),
    Message(
        "nfd.other_label",
        ("_10de", "io/pci-0302.present", "pci-10de_"),
        r"kubernetes\.io/pci-(?P<form3>0302)\.present"
        r"|kubernetes\.io/pci-(?P<form4>10de_[0-9a-f]{4}\w*)\.present"
        r"|pci-10de\.present[^\n]{0,160}pci-(?P<form>\d{4}_10de\w*)\.present|"
        r"pci-(?P<form2>\d{4}_10de\w*)\.present[^\n]{0,160}pci-10de\.present",
    ),
    Message(
        "nfd.tainted_away",
        ("nfd-worker", "nfd worker", "discovery-worker", "discovery worker"),
        r"(?:nfd[- ]worker|discovery[- ]worker)\b[^\n]{0,120}\b(?:(?:does|do|did)(?: not|n't) tolerate|"
        r"untolerated taint|"
        r"because of (?:a |the |its )?taint|(?:lacks?|without|missing|has no|have no|no) (?:a |the |matching )?"
        r"toleration|"
        r"not (?:running|scheduled|placed|there) on|(?:0|no|has no|have no) pods? on)",
    ),
    Message(
        "nfd.not_published",
        (
            "failed to advertise labels",
            "connect to {nfd-master",
            "lookup nfd-master",
            "discovery-master:",
            "nfd-master:",
            "v1alpha1.nodefeature:",
            "failed to list *v1alpha1.nodefeature",
            "failed to watch *v1alpha1.nodefeature",
            "node labels got removed",
            "node labels were removed",
            "feature labels got removed",
            "feature labels were removed",
            "failed to advertise features",
            "failed to list nodefeaturerule",
            "failed to merge nodefeature",
            "failed to get nodefeature resources",
            "failed to discover features",
            "failed to read pci devices",
            "failed to detect pci devices",
            "failed to update node",
            "failed to process rule",
        ),
        r"failed to advertise (?:labels|features)|failed to list NodeFeatureRule|failed to merge NodeFeature objects"
        r"|failed to get NodeFeature resources|failed to (?:read|detect) PCI devices"
        r"|failed to discover features\W+[^\n]*source=\W*pci"
        r"|failed to process rule\W+[^\n]*\b(?:nvidia|gpu)|failed to update node\b[^\n]*(?:is invalid|must be no more)"
        r"|failed to connect to \{nfd-master|lookup nfd-master[^\n]*no such host"
        r"|failed to (?:list|watch) \*v1alpha1\.NodeFeature\b"
        r"|\b(?:node|feature) labels (?:got|were) removed"
        # The worker's own log over gRPC, before 0.16; the address on a line of its own since the libraries of 2022.
        r"|(?:nfd|discovery)-master:\d+\W(?:[^\n]*\n){0,4}?[^\n]*(?:connection refused|no such host|i/o timeout"
        r"|context deadline exceeded|no route to host)",
        lines=5,
    ),
    # What discovery wrote of the system, and what the kubelet says of it.
    Message(
        "nfd.system_label",
        ("ostree_version", "kernel-version.full"),
        r"system-os_release\.OSTREE_VERSION\W{1,4}(?P<version>\d[\w.-]*)"
        r"|kernel-version\.full\W{1,4}(?P<kernel>\d[\w.-]*)",
    ),
    Message(
        "node.system",
        ("osimage", "os image", "kernelversion", "kernel version"),
        r"(?:osImage|OS Image)\W{1,6}[^\n]*?CoreOS\s+(?P<version>\d[\w.-]*)"
        r"|(?:kernelVersion|Kernel Version)\W{1,6}(?P<kernel>\d[\w.-]*)",
    ),
    # A label's value is letters, digits, '-', '_' and '.': others are refused.
    Message(
        "gfd.value_invalid",
        ("nvidia.com/gpu.product", "nvidia.com/gpu.machine", "nvidia.com/gpu.family"),
        r"nvidia\.com/gpu\.(?:product|machine|family)['\"]?\s{0,2}[=:]\s{0,2}['\"]?(?P<value>[\w.-]*[()+@&][\w.()+@&-]*)",
    ),
    # Objects of nodes that were taken away: autoscalers leave many of them.
    Message(
        "nfd.node_gone",
        "failed to update node",
        r"nfd-master\S*\]? \W{0,2}failed to update node \W*(?P<node>[\w.-]+)\W+.*not found",
    ),
    # Sharing and partitions put a suffix to the product's name, and selectors that were written before do not fit.
    Message(
        "gfd.product_suffix",
        "gpu.product",
        r"gpu\.product\b[^\n]{0,12}?(?P<product>[\w.-]+-(?:SHARED|MIG-\d\w+\.\d+gb))\b[^\n]{0,120}?\b(?:node ?selector|"
        r"affinity|selector|wants?|expects?|asks? for)\b",
    ),
    # A scheduler that shares GPUs by memory needs the label that says how much there is.
    Message(
        "kai.memory_unknown",
        ("gpu memory count on the node", "not a gpu node", "not gpu nodes"),
        r"(?:is not a gpu node|are not gpu nodes|gpu memory count on the nodes? was not synced)",
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
        ("oomkilled", "oom killed", "oom-killed"),
        r"(?P<who>gpu-operator|node-feature-discovery\S*|nfd(?:-\w+)?|nvidia-[\w-]*|dcgm-exporter)\S*"
        r"\s.*?OOM[- ]?Killed|"
        r"OOMKilled.*?(?P<what>gpu-operator|nfd-\w+|dcgm-exporter)",
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
        "notready",
        r"(?:ClusterPolicy|cluster-policy)\b.{0,60}?\bnotReady\b",
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
