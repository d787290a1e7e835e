"""The GPU Operator's own controllers: leadership, drivers by NVIDIADriver, images, upgrades; its validator as the
kubelet tells it."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # A component that does not reach the API server gives up its lease, or does not even begin.
    Message(
        "operator.api_unreached",
        (
            "leader election lost",
            "leaderelection lost",
            "failed to renew lease",
            "retrieving resource lock",
            "failed to create leader election",
            "/api?timeout=",
            "kubernetes cluster unreachable",
            "failed to list *v1.",
        ),
        r"failed to list \*v1\.\w+: Get [^\n]{0,300}?(?:i/o timeout|no route to host|no such host)"
        r"|leader ?election lost|failed to renew lease (?P<lease>\S+?):? |error retrieving resource lock "
        r"[^\n]{0,400}?(?:deadline exceeded|refused|timeout|timed out|unreachable|EOF|no route)"
        r"|failed to create leader election"
        r"|/api\?timeout=\w+\\?\"?:? [^\n]{0,300}?(?:refused|timeout|no route to host|deadline exceeded|no such host)"
        r"|Kubernetes cluster unreachable",
    ),
    # One driver a node: which NVIDIADriver is a matter of node selectors.
    Message(
        "operator.driver_selectors",
        (
            "nvidiadriver nodeselectors found",
            "conflictingnodeselector",
            "nvidiadrivers match the same node",
            "multiple default nvidiadriver",
            "matching the given node selector",
        ),
        r"conflicting NVIDIADriver NodeSelectors found(?: for node (?P<node>[\w.-]+))?|ConflictingNodeSelector"
        r"|multiple NVIDIADrivers match the same node (?P<node2>[\w.-]+)|multiple default NVIDIADrivers found"
        r"|(?P<none>no nodes matching the given node selector)",
    ),
    # Told in prose, where neither node nor DaemonSet was printed.
    Message(
        "operator.tainted_away",
        ("tolerate ", "toleration for ", "no toleration"),
        r"\bdaemon ?set\b[^\n]{0,80}\bit (?:does not|doesn't) tolerate (?:\w+ ){0,2}taint|"
        r"(?:device[- ]plugin|toolkit|dcgm|driver|operands?|nvidia-\S+?)(?:'s)? (?:daemon ?sets?|pods?) "
        r"(?:(?:does|do|did)(?: not|n't) tolerate|ha(?:s|ve) no toleration for|lacks? (?:a |the )?toleration for) "
        r"(?:\w+ ){0,3}(?:taint )?(?P<taint>[\w.-]+(?:/[\w.-]+)?(?:=[\w.-]+)?:?\w*)",
    ),
    Message(
        "operator.image_unset",
        (
            "building container image path",
            "empty image path provided",
            "invalid values for building",
            ".image: required value",
        ),
        r"\bis invalid: [^\n]*\.image: Required value|Invalid values for building container image path"
        r"|empty image path provided through both[\w ]* ENV "
        r"(?P<variable>\w+)|empty image path provided",
    ),
    # A line of a list of pods without its head.
    Message(
        "operator.image_waited_for",
        ("imagepullbackoff", "errimagepull"),
        r"^[ \t]*(?:\S+[ \t]+)?(?P<pod>(?:nvidia-|gpu-|dcgm-|node-feature-)[\w.-]+)[ \t]+\d+/\d+[ \t]+"
        r"(?:Init:)?(?:ImagePullBackOff|ErrImagePull)",
    ),
    # OpenShift's lifecycle manager takes an operator from an image too.
    Message(
        "operator.bundle_fails",
        ("bundlenotunpacked", "bundle unpacking failed", "bundle contents have not yet been"),
        r"BundleNotUnpacked|Bundle unpacking failed(?:\. Reason: (?P<why>\w+))?"
        r"|bundle contents have not yet been persisted",
    ),
    # A program of an image that does not go with the image's own libraries.
    Message(
        "operator.program_unfit",
        ("not found (required by ",),
        r"version \W?(?P<version>GLIBC\w*_[\d.]+)\W? not found \(required by \S*?(?P<program>"
        r"nvidia-kubevirt-gpu-device-plugin|nvidia-device-plugin|gpu-feature-discovery|config-manager"
        r"|mps-control-daemon|nvidia-mig-\w+|mig-parted"
        r"|nvidia-(?:driver-manager|validator|operator)|driver-manager|gpu-operator|vfio-manage|vgpu-device-manager"
        r"|nvidia-ctk|nvidia-cdi-hook|nvidia-container-runtime[\w.-]*|nvidia-toolkit)\)",
    ),
    # As the kubelet names the init containers of the validator and of the components that wait.
    Message(
        "operator.validation_restarts",
        ("driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation"),
        r"restarting failed container[= ]\W*(?P<part>driver|toolkit|cuda|plugin)-validation"
        r"|\b(?P<part2>driver|toolkit|cuda|plugin)-validation:?\s*\n(?:[^\n]*\n){0,3}?[^\n]*CrashLoopBackOff"
        r"|[Ff]ailed to start container \W*(?P<part3>driver|toolkit|cuda|plugin)-validation",
        lines=5,
    ),
    # Its pod names its node itself, past the scheduler: with every GPU in use the kubelet refuses it.
    Message(
        "operator.validator_refused",
        ("device-plugin-validator",),
        r"device-plugin-validator\S*[^\n]*(?:UnexpectedAdmissionError|requested number of devices unavailable"
        r"|\bfail(?:s|ed|ing)?\b)",
    ),
    # The upgrade controller: k8s-operator-libs.
    Message(
        "operator.upgrade_failed",
        (
            "upgrade-failed",
            "driver upgrade failed",
            "failed to drain the node",
            "gpudriverupgrade",
            "cannot delete all required pods",
            "reported by drain helper",
            "failed to delete pods on the node",
            "failed to delete workload pods on the node",
            "failed to restart driver pod",
            "timeout exceeded for validation",
            "validation timed out",
            "driver pod is failing on node",
            "should not have unscheduled pods",
            "driver pod crash-looping",
            "k8s-driver-manager",
            "has unscheduled pods",
            '"failed to cordon node',
            '"failed to uncordon node',
            "failed to validate driver upgrade",
            "failed to waiting for required jobs",
            "driverautoupgradefailures",
        ),
        r"GPUOperatorDriverAutoUpgradeFailures|Driver DaemonSet has Unscheduled pods"
        r"|\"Failed to (?:un)?cordon nodes?\"|Failed to validate driver upgrade"
        r"|Failed to waiting for required jobs"
        r"|gpu-driver-upgrade-state['\"]?[=:]? ?['\"]?upgrade-failed|[Dd]river upgrade failed"
        r"|GPUDriverUpgrade\b[^\n]*?[Ff]ailed to (?P<step>drain|cordon|uncordon|restart|delete)[^\n,]*,? ?"
        r"(?P<why>[^\n\"]*)|Cannot delete all required pods"
        r"|Error reported by drain helper(?:[^\n]*?\"error\": ?\"(?P<why2>[^\"\n]+))?"
        r"|Failed to delete (?:workload )?pods on the node(?: for the driver upgrade,? ?(?P<why3>[^\n\"]*))?"
        r"|Failed to restart driver pod|Timeout exceeded for validation|Driver pod is failing on node"
        r"|k8s-driver-manager\b[^\n]{0,20}error: (?P<why4>unable to drain node[^\n]*|cannot delete Pods with[^\n]*)"
        r"|[Dd]river pod crash-looping|(?:DaemonSet|DS) should not have [Uu]nscheduled pods"
        r"|Failed to drain the node\b",
    ),
    # Settings of ClusterPolicy and NVIDIADriver that the operator refuses together.
    Message(
        "operator.settings_refused",
        (
            "clusterpolicy validation failed",
            "failed to validate dra",
            "failed to validate the nri",
            "both be enabled in clusterpolicy",
            "when cdi is disabled",
            "is not enabled in clusterpolicy",
            "along with pre-compiled nvidia drivers",
            "only supported with nvidia openrm",
            "dynamic resource allocation is not enabled in the",
            "is an immutable field",
        ),
        r"(?P<why4>(?:usePrecompiled|driverType) is an immutable field)"
        r"|ClusterPolicy validation failed(?:: (?P<why>[^\n\"]+))?|failed to validate (?:DRA|the NRI Plugin)"
        r"(?: configuration)?(?:: (?P<why2>[^\n\"]+))?"
        # From a separator on: else each character of a line would begin a try of its own.
        r"|(?:^|[\":=]) *(?P<why3>[^\n\":]{0,200}(?:cannot both be enabled in ClusterPolicy|(?:cannot|can not) be "
        r"enabled when CDI is disabled|useNvidiaDriverCRD is not enabled in ClusterPolicy| not supported along with "
        r"pre-compiled NVIDIA drivers| only supported with NVIDIA OpenRM drivers))"
        r"|(?P<api>Dynamic Resource Allocation is not enabled in the (?:Kubernetes )?cluster)",
    ),
    # A manifest that it cannot complete: what the policy refers to is not there, or is not allowed.
    Message(
        "operator.operand_unmade",
        (
            "could not get configmap ",
            "configmap volumemounts for ",
            "failed to apply transformation",
            "failed to apply common daemonset transformation",
            "path to runtime config file",
            "path to runtime socket",
            "error creating kata runtimeclass",
            "image digest is not supported when precompiled",
            "driver image path for pre-compiled",
            "trusted ca bundle config map",
        ),
        r"could not get ConfigMap (?P<what>[\w.-]+) from client"
        r"|failed to create ConfigMap VolumeMounts for (?P<what2>[\w ]+)"
        r"|Failed to apply (?:common Daemonset )?transformation\b(?P<why>[^\n]*)"
        r"|error getting path to runtime (?P<what3>config file|socket)|error creating kata runtimeclass (?P<what4>\S+)"
        r"|(?P<why2>specifying image digest is not supported when precompiled is enabled)"
        r"|unable to resolve driver image path for pre-compiled|failed to (?:get|create) trusted CA bundle config map",
    ),
    # A line of a list of pods without its head: what stands beside the chain and ends again and again.
    Message(
        "operator.beside_crashes",
        ("crashloopbackoff", "runcontainererror"),
        r"^[ \t]*(?:\S+[ \t]+)?(?P<pod>(?:nvidia-dcgm|dcgm-exporter|nvidia-mig-manager|gpu-feature-discovery)[\w.-]*)"
        r"[ \t]+\d+/\d+[ \t]+(?:CrashLoopBackOff|RunContainerError)",
    ),
    Message(
        "operator.workload_unknown",
        ("gpu workload config", "is an invalid workload config"),
        r"[Ii]nvalid GPU workload config:? \W*(?P<workload>[\w.-]+)|[Ii]nvalid GPU workload config\b"
        r"|(?P<workload2>[\w.-]+) is an invalid workload config",
    ),
    # The operator's validator on nodes for virtual machines.
    Message(
        "vgpu.manager_not_ready",
        ("vgpu manager installation", "vgpu manager is not ready", "vgpu-manager"),
        r"vgpu-manager\S*\s[^\n]{0,60}\b(?:CrashLoopBackOff|crash(?:es|ing|ed)?)\b"
        r"|error validating vGPU Manager installation|vGPU Manager is not ready",
    ),
    Message(
        "vgpu.config_unread",
        ("vgpu config", "vgpu device type "),
        r"[Ff]ailed to parse vGPU config|[Uu]nable to parse vGPU config|vGPU device type \S+ is invalid",
    ),
    Message(
        "vgpu.functions_not_made",
        ("not all vfs have been created", "no sr-iov capable gpus found", "found 0 mdev parent devices"),
        r"not all VFs have been created\. \d+/\d+ enabled|no SR-IOV capable GPUs found|found 0 mdev parent devices",
    ),
    # What the operator says of the image that OpenShift ships for its kernel.
    Message(
        "openshift.toolkit_missing",
        (
            "openshift dtk image",
            "drivertoolkit was requested",
            "driver toolkit was requested",
            "rhcos_image_missing",
            "openshiftdrivertoolkit",
            "the drivertoolkit is enabled",
            "driver-toolkit imagestream",
            "drivertoolkit image tag missing",
            "driver-toolkit image missing",
        ),
        r"driver-toolkit imagestream (?:is broken|not found)|Couldn't get the driver-toolkit imagestream"
        r"|DriverToolkit image tag missing|driver-toolkit image missing"
        r"|failed to get OpenShift DTK image|Driver ?Toolkit was requested but could not be enabled"
        r"|GPUOperatorOpenshiftDriverToolkit\w+"
        r"|The DriverToolkit is enabled[^\n]*(?:\n[^\n]*)?(?:too old|missing|not found)"
        r"|RHCOS_IMAGE_MISSING\W+true",
        lines=2,
    ),
)
