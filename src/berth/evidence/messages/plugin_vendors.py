"""Device plugins of other vendors, and those that share GPUs by the scheduler's annotations: HAMi, Volcano, Aliyun."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # They read the scheduler's decision from annotations of the pod.
    Message(
        "plugin.annotation_race",
        (
            "device number not matched",
            "no binding pod found",
            "empty id from pod annotation",
            "node lock not set",
            "no pending pod",
            "device request not found",
            "node mismatch for pod",
            "no assume timestamp for pod",
            "unknown device id: no-gpu-has",
            "candidate pod not found for request",
            "invalid allocation requst: request gpu memory",
            "invalid allocation request: request gpu memory",
            "selected wrong pod",
            "not get valid pod",
            "nonpuaffinity",
            "parse pod annotation",
            "unknown uuid:",
            "smaller than requested allocation size",
            "device found for annotated gpu",
            "erase annotation failed",
            "device from annotation failed",
            "no pod has predicate time",
            "not write timestamp, pod name",
            "get valid pod",
            "find candidate pods due to",
            "able to find dev with index",
            "find predicate idx",
            "allocation request mismatch for pod",
            "desc = no free node",
        ),
        r"device number not matched|no binding pod found|empty id from pod annotation|[Nn]ode lock not set|"
        r"no pending pod found|device request not found|[Nn]ode mismatch for pod \S+ pick up|"
        r"[Nn]o assume timestamp for pod|unknown device id: no-gpu-has-|candidate pod not found for request|"
        r"invalid allocation reque?st: request GPU memory \d+ can't be satisfied|selected wrong pod\b|"
        r"\b(?:not|cannot) get valid pod\b|desc = NoNPUAffinity|parse pod annotation error|unknown uuid: ?(?:,|$)|"
        r"annotated devices \d+ smaller than requested allocation size|"
        r"no available slice device found for annotated GPU|Erase annotation failed|get device from annotation failed|"
        r"Failed to find candidate pods due to|not able to find dev with index|failed to find predicate idx|"
        r"allocation request mismatch for pod|desc = no free node|no pod has predicate time|"
        r"not write timestamp, pod Name",
    ),
    # The library that they put under a program, beside a driver or a C library that it was not built for.
    Message(
        "sharing.library_unfit",
        "libvgpu.so",
        r"symbol lookup error: \S*libvgpu\.so\S*: undefined symbol: (?P<symbol>\w+)(?:, version (?P<version>\w+))?",
    ),
    # In people's words: a plugin that starts anew writes its library into the folder that running pods have mounted.
    Message(
        "sharing.library_replaced",
        "vgpu",
        r"device[- ]?plugin\b[^\n.]{0,40}?\brestart\w*[^\n.]{0,80}?\b(?:pods?|containers?|workloads?)\b[^\n.]{0,30}?"
        r"\bvGPUs?\b[^\n.]{0,40}?\b(?:errors?|fail\w*|crash\w*)"
        r"|libvgpu\.so\b[^\n.]{0,40}?\b(?:replaced|overwritten|rewritten|copied (?:again|anew))\b",
    ),
    # The network plugin of a pod finds no device that the kubelet would have given.
    Message(
        "plugin.network_without_device",
        ("failed to load netconf", "vf pci addr is required", "device id is required"),
        r"SRIOV-CNI failed to load netconf: LoadConf\(\)(?:: (?P<why>[^\n]+))?|VF pci addr is required",
    ),
    # What they write down of their devices, for their scheduler.
    Message(
        "plugin.reports_unhealthy",
        ("node-nvidia-register", "start working on the devices"),
        r"node-nvidia-register\W[^\n]*?(?P<device>GPU-[0-9a-f-]+),\d+,\d+,\d+,[^,\n]+,\d+,false\b|"
        r"start working on the devices\b[^\n]*?\"id\":\"(?P<device2>GPU-[0-9a-f-]+)\"[^{}\n]*\"health\":false",
    ),
    Message(
        "plugin.share_not_offered",
        ("gpumem", "gpucores", "vgpu-memory", "vgpu-cores"),
        r"\b(?:gpumem|gpucores|vgpu-memory|vgpu-cores)\b.{0,80}?\b(?:not (?:shown?|listed|displayed|included|in|there)|"
        r"missing|absent|should be shown)\b|"
        r"\bno (?:nvidia\.com/|volcano\.sh/)?(?:gpumem|gpucores|vgpu-memory|vgpu-cores)\b.{0,40}?"
        r"\b(?:allocatable|capacity|node)\b|"
        r"\b(?:does not|doesn't|not) (?:show|list|include|have)\b.{0,40}?"
        r"\b(?:gpumem|gpucores|vgpu-memory|vgpu-cores)\b",
    ),
    # SR-IOV, shared RDMA and kin: what the selectors of the configuration find.
    Message(
        "plugin.pool_empty",
        (
            "no devices in device pool",
            "no rdma devices were found",
            "devices:[]*device{}",
            "devices:[]*v1beta1.device{}",
            "no resource pool created",
            "error adding devices to resource pool",
            "exposing devices:  []",
            "exposing devices: []",
            "fail to configure sriov",
            "missing rdma device spec",
            "no devices found for resource",
        ),
        r"no devices in device pool,? (?:skipping creating|creating empty) resource server for (?P<resource>\S+)|"
        r"no Rdma Devices were found for resource (?P<resource2>\S+)|"
        r"ListAndWatch\(?(?P<resource3>[\w./-]+)?\)?.{0,40}?Devices:\[\]\*(?:v1beta1\.)?Device\{\}|"
        r"no devices in device pool|exposing devices:  ?\[\]|Fail to configure sriov; error|"
        r"no resource pool created|error adding devices to resource pool|"
        r"(?:missing RDMA device spec for device \S+|no devices found for resource \S+)",
    ),
)
