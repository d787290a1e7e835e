"""Remarks that take the sting out of a line: what a component says of itself, and what somebody says of the whole.

A component that writes `ignoring`, `falling back to` or `this is not an error` tells that it goes on. Somebody who asks
whether he can ignore a warning, and says that everything works, has seen that it did. Neither proves anything: a rule
may answer with it where nothing else was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.evidence.fact import LONGEST_TEXT, Fact, Origin
from berth.evidence.formats import Format
from berth.evidence.piece import Piece

LARGEST = 8 * 1024  # bytes of a piece: what is longer is a log, in which something is ignored in any case
LONGEST = 700  # characters of a line
# Where a text names no component: whose logs are called so.
LAYER_OF_KIND = {
    "lspci": 0, "nvidia-smi": 0, "host": 0, "dmesg": 1, "lsmod": 1, "fabricmanager-log": 1, "runtime-log": 2,
    "containerd": 2, "containerd-log": 2, "containerd-config": 2, "cdi": 2, "kubelet-log": 3, "plugin-log": 3,
    "mps-log": 3, "dcgm": 4, "dcgm-log": 4, "dcgm-metrics": 4, "mig-log": 4, "node-json": 4, "operator-log": 4,
    "scheduler-log": 5, "apiserver-log": 5, "app-log": 6, "nccl-log": 6,
}  # fmt: skip
OF_A_PROGRAM = 6  # whoever is not known is a program in a container


class Remark(Fact, frozen=True, kw_only=True):
    """One line that says that it goes on, or that all is well."""

    is_told: bool  # by somebody, of the whole; else by a component, of its own line
    is_warning: bool = False  # no more than that: a line at that level, in a text without an error
    layer: int  # of the component that the line names, 0 to 6; where it names none, that of programs


class Spoke(Fact, frozen=True, kw_only=True):
    """The first component that a piece names."""

    layer: int


_COMPONENTS = (
    (6, r"torch\w*|vllm\w*|pytorch|tensorflow|jax\w*|nccl|c10d|nvcc|nsys|ncu|ld|"
            r"python|cudnn|cublas|open ?mpi|mpirun|hwloc|ucx|UserWarning|"
        r"keras|deepspeed|sglang|triton|transformers|lightning|ray|xla|rccl|horovod|accelerate"),
    (5, r"kueue|volcano|kube-scheduler|scheduler|autoscaler|karpenter|podgroups?|clusterqueue|localqueue|workload"),
    (4, r"gpu-operator|upgrade controller|upgrade-(?:done|failed|required)|"
        r"clusterpolicy|dcgm\w*|exporter|nfd|node-feature-discovery|gpu-feature-discovery|mig-manager|"
        r"validator|grafana|prometheus"),
    (3, r"kubelet|device[- ]?plugin"),
    (2, r"containerd|docker\w*|cri-?o|podman|nvidia-ctk|container[- ]toolkit|nvidia-container-\w+|runc|cdi|buildkit"),
    (1, r"NVRM|nvidia-(?:drm|modeset|uvm|nvlink|peermem|persistenced|installer|fabricmanager|powerd|gridd)|nvidia-uvm|"
        r"nouveau|dkms|modprobe|kernel module|fabric ?manager|nvlsm|driver|drm|depmod|initramfs"),
    (0, r"pcie|pcieport|pci|ecc|fan|temperature|power|nvlink|clocks?|pstate|AER|EDAC|mlx5_core|link speed|nvidia-smi"),
)  # fmt: skip
_NAMED = re.compile(
    "|".join(rf"(?P<L{layer}>(?<![\w/])(?:{words})(?![a-zA-Z0-9/]))" for layer, words in _COMPONENTS), re.IGNORECASE
)
# What is no way to go on for who has a GPU or a fast network.
_WORSE = r"(?: to)? (?:the )?(?:CPU|sockets?|TCP|NET/Socket|host memory)\b"
GOES_ON = re.compile(
    r"\((?:ignored|ignoring)\)|\bignoring\b(?! unknown)|\b(?:falling back\b|falls? back to\b|fallback to\b)"
    rf"(?!{_WORSE})"
    r"|\b(?:is |are )not an error\b|\b(?:can|may|could|should) (?:be )?(?:safely )?(?:be )?ignored?\b|\bsafely ignore\b"
    r"|\bharmless\b|\bcontinuing (?:without|with|anyway|assuming)\b|\bwill not be used\b|\bskipping\b|\bcosmetic\b"
    r"|\bdeprecat\w+\b|\bfor your information\b|\bwill be (?:retried|ignored|skipped)\b|\bnot critical\b|\bnon-?fatal\b"
    r"|\b(?:only|just) a warning\b|\bretrying\b(?! in vain)",
    re.IGNORECASE,
)
_BUT = r"(?![^\n]*\b(?:but|however|except|only on|until|though not|yet|unless|if|when)\b)"
_WELL = re.compile(
    r"\bis (?:this|that|it) (?:log |message |warning |behaviou?r |value |output )?(?:normal|expected"
    r"|harmless|ok|okay|fine|intended|by design|something to worry)\b"
    r"|\b(?:can|may|should) (?:I|we|this|it|they) (?:be )?(?:safely )?(?:be )?"
    r"ignored?\b|\bsafe(?:ly)? (?:to )?(?:be )?ignored?\b|\bsafe to ignore\b|\b(?:is|are|seems?|looks?) harmless\b"
    rf"|\b(?:everything|all|it|that|GPUs?|training|inference|jobs?|pods?|containers?|cluster"
    rf"|workloads?|tests?"
    rf"|programs?|model|driver|CUDA|node|results?|nvidia-smi)\b(?: (?!(?:not|never|no|hardly)\b)\w+){{0,2}}? (?:still "
    rf"|otherwise "
    rf"|all )?(?:works?|runs?|runs to the end|trains?"
    rf"|finish(?:es)?|pass(?:es)?|complet\w+|is fine|are fine|is ok|are right|are correct|looks? (?:fine|good|ok))\b"
    rf"(?: (?:fine|well|normally|correctly|properly|ok|okay|anyway|regardless"
    rf"|perfectly|as (?:expected|usual)"
    rf"|all the same|without (?:any )?(?:problems?|issues?|errors?)|successfully|great))?"
    rf"(?=\s*(?:$|[.,;!?)]|and\b)){_BUT}"
    r"|\bno (?:functional |visible |real |negative |adverse |other )?(?:impact|effects? on|consequences?|freezes"
    r"|degradation)\b|\bno (?:functional|visible|real|negative|adverse|other) effects?\b"
    r"|\b(?:cannot|can't|do not|don't) (?:observe|see|notice) any (?:abnormal|problem|issue|impact|negative|effect)\w*"
    r"|\bnothing (?:is|seems|appears) (?:broken|wrong)\b|\bfalse[- ](?:alarm|positive)s?\b|\bonly cosmetic\b|\bpurely "
    r"cosmetic\b|\b(?:starts?|runs?|works?) (?:normally|fine|well)\b(?=\s*(?:$|[.,;!)]|and\b))",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"\bis (?:this|that|it) (?:log |message |warning |behaviou?r |value |output )?(?:normal|expected|harmless|ok|okay"
    r"|fine|intended|by design)\b|^\W*(?:expected|normal|intended|harmless)\?",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.?!]) +")
_NOT_WELL = re.compile(
    r"\b(?:not|never|no longer|cannot|unable|fails?|failed|failing|stuck|hangs?|crash\w*|slow\w*|broken|lost|missing"
    r"|evict\w*|pending)\b|n't\b",
    re.IGNORECASE,
)


# One of them is in whatever makes such a remark. Cheap, since every piece is asked.
_WORTH = (
    b"ignor", b"falling back", b"fall back", b"falls back", b"fallback", b"error", b"harmless", b"continuing",
    b"not be used", b"skipping", b"cosmetic", b"deprecat", b"information", b"will be ", b"critical", b"fatal",
    b"a warning", b"retrying", b"normal", b"expected", b"okay", b"fine", b"intended", b"by design", b"worry",
    b"work", b" run", b"train", b"finish", b"pass", b"complet", b"impact", b"effect", b"consequence", b"freezes",
    b"degradation", b"observe", b"nothing", b"false", b"right", b"warn", b"[w", b"w0", b"w1", b"correct", b" ok",
    b"good",
)  # fmt: skip


WARNS = re.compile(
    r"\bWARN(?:ING)?\b|(?:User|Future|Runtime|Deprecation)Warning\b|^\W*\[?W\d{0,4} |\blevel=warn|\"level\": ?\"warn"
    r"|\bwarning ?:",
)
_ERRS = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|Traceback|panic|Segmentation|Aborted)\b|\w*(?:Error|Exception): "
    r"|\blevel=(?:error|fatal)"
    r"|\"level\": ?\"(?:error|fatal)|^[EF]\d{4} |\b(?:[Ff]ailed|fails|[Cc]annot|[Uu]nable to|could not|denied|refused|"
    r"timed out|not found|crash\w*|hang\w*|stuck|Xid)\b",
    re.MULTILINE,
)


def looks_like(head: bytes) -> object:
    if len(head) > LARGEST or head[:1] in b"{<" or head[:2] == b"[{":
        return False
    lower = head.lower()
    return any(word in lower for word in _WORTH)


def read(piece: Piece) -> Iterator[Fact]:
    if piece.pod:  # an event, or a log of many
        return
    text = piece.text
    layer = layer_named(text)
    if layer is None:
        layer = LAYER_OF_KIND.get(piece.kind)
    if layer is not None:
        yield Spoke(origin=Origin(piece.source, piece.kind, node=piece.node, pod=piece.pod), layer=layer)
    has_errors = any(_ERRS.search(line) for line in text.splitlines() if not WARNS.search(line))
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LONGEST:
            continue
        is_told = _is_well(line)
        is_warning = not is_told and not GOES_ON.search(line)
        if is_warning and (has_errors or not WARNS.search(line)):
            continue
        layer = layer_named(line)
        yield Remark(
            origin=Origin(
                piece.source, piece.kind, line.strip()[:LONGEST_TEXT], line=number, node=piece.node, pod=piece.pod
            ),
            is_told=is_told,
            is_warning=is_warning,
            layer=LAYER_OF_KIND.get(piece.kind, OF_A_PROGRAM) if layer is None else layer,
        )


def _is_well(line: str) -> bool:
    """Whether it is said to work with no word against it, or asked whether it is as it should be."""
    if (well := _WELL.search(line)) and not _NOT_WELL.search(line.replace(well[0], "")):
        return True
    return any(_ASKED.search(one) and not _NOT_WELL.search(one) for one in _SENTENCES.split(line))


def layer_named(text: str) -> int | None:
    """The layer of the first component that a text names, 0 to 6."""
    named = _NAMED.search(text)
    return int((named.lastgroup or "L6")[1:]) if named else None


FORMAT = Format("remarks", (), looks_like, read)
