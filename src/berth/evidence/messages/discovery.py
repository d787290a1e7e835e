"""Node Feature Discovery and GPU Feature Discovery: what they label, and what they cannot."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    # The type of a flag changed between releases of plugin and discovery, which read one file.
    Message(
        "plugin.config_of_other_release",
        "into go struct field ",
        r"cannot unmarshal (?P<has>\w+) into Go struct field \w*(?:CommandLineFlags|Sharing|Replicated\w*|Resources?"
        r"|Config)"
        r"\.(?P<field>[\w.]+) of type",
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
        r"nvidia\.com/gpu\.(?:product|machine"
        r"|family)['\"]?\s{0,2}[=:]\s{0,2}['\"]?(?P<value>[\w.-]*[()+@&][\w.()+@&-]*)",
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
        r"(?:(?<!if this )(?<!if it )is not a gpu node|are not gpu nodes"
        r"|gpu memory count on the nodes? was not synced)",
    ),
)
