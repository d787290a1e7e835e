"""L2. CDI specifications that are stale, in conflict, malformed, empty, incomplete, or could not be made."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import CdiSpec

_AGAIN = Fix(
    steps=(
        "nvidia-smi -L and ls /dev/nvidia* on NODE: driver loaded, device files there (nvidia-modprobe -u -c=0)",
        "nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml, or systemctl restart nvidia-cdi-refresh; with the "
        "operator: delete the toolkit's and then the plugin's pod on NODE",
        "remove older files of the same kind in /etc/cdi",
    ),
    risk="none for what runs; new containers use the new specification",
    rollback="restore the former file",
)
_VERIFY = ("on NODE: nvidia-ctk cdi list : all devices", "a GPU pod starts; nvidia-smi -L in it lists its GPU")
_SOURCES = ("Container Device Interface, pkg/cdi", "NVIDIA container toolkit documentation, CDI support")

STALE = Code(
    name="CdiSpecStale",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.CdiUnresolved,
    title="a CDI specification names files that are not there any more",
    meaning="It was generated before the driver, the cards or the system changed: containers do not start, or get the "
    "wrong device files.",
    known_by="A device file or a driver library that the specification names does not exist.",
    disproved_by="The file exists on the host, and the runtime looks in another root.",
    counter_check="on NODE: ls -l the named file ; cat /proc/driver/nvidia/version : file there, same version",
    fix=_AGAIN,
    verify=_VERIFY,
    sources=_SOURCES,
)

CONFLICT = Code(
    name="CdiSpecConflict",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.CdiUnresolved,
    title="two CDI specifications of one directory define the same device",
    meaning="Neither counts: the device cannot be resolved, and containers that ask for it do not start.",
    known_by="The registry reports a conflicting device, or two files of one directory have the same names.",
    disproved_by="The files lie in different directories: the later one wins then.",
    counter_check="on NODE: grep -l 'kind: nvidia.com/gpu' /etc/cdi/* /var/run/cdi/* : one file per directory",
    fix=Fix(
        steps=("remove the older of the two files", *_AGAIN.steps[1:2]),
        risk=_AGAIN.risk,
        rollback=_AGAIN.rollback,
    ),
    verify=_VERIFY,
    sources=("Container Device Interface, pkg/cdi/cache.go: conflicts of equal priority",),
)

INVALID = Code(
    name="CdiSpecInvalid",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.CdiUnresolved,
    title="the runtime does not accept a CDI specification",
    meaning="The file is left out as a whole: none of its devices can be resolved.",
    known_by="The registry reports that the specification is invalid or of a version that it does not know.",
    disproved_by="`nvidia-ctk cdi list` on the node lists its devices, and the runtime is not older than it.",
    counter_check="on NODE: head -3 of the file ; containerd --version : a version that this runtime knows",
    fix=Fix(
        steps=(
            "an older runtime and a newer generator: bring the runtime up to date, or generate with the toolkit that "
            "belongs to it (minimal versions; --device-name-strategy=type-index for runtimes before CDI 0.5)",
            *_AGAIN.steps[1:],
        ),
        risk=_AGAIN.risk,
        rollback=_AGAIN.rollback,
    ),
    verify=_VERIFY,
    sources=_SOURCES,
)

EDITS_EMPTY = Code(
    name="CdiEditsEmpty",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.ClaimsUnprepared,
    title="a CDI device would add nothing to a container",
    meaning="The specification is refused: claims are not prepared and containers do not start. The writer looked at "
    "the driver while it was being replaced, or finds no device file for the GPU.",
    known_by="Writing or generating the specification fails for empty device edits.",
    disproved_by="`nvidia-ctk cdi generate` on the node prints device nodes for that GPU.",
    counter_check="on NODE: nvidia-ctk cdi generate | grep -c /dev/nvidia : more than 0",
    fix=Fix(
        steps=(
            "delete the DRA kubelet plugin's (or device plugin's) pod on NODE: it keeps what it saw when it started, "
            "and "
            "the toolkit or driver has been replaced since",
            "ls -l /dev/nvidia* on NODE: make missing files with nvidia-modprobe -u -c=0",
            "still empty: nvidia-container-runtime mode legacy until the toolkit is mended",
        ),
        risk="claims that are being prepared wait for the plugin's restart",
        rollback="nothing to undo",
    ),
    verify=("the pod of the claim becomes Running",),
    sources=("Container Device Interface, pkg/cdi/spec.go", "kubernetes-sigs/dra-driver-nvidia-gpu, CDI handler"),
)

NOT_GENERATED = Code(
    name="CdiSpecNotGenerated",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.CdiUnresolved,
    title="the CDI specification could not be generated",
    meaning="The runtime has no names for this node's GPUs, or old ones.",
    known_by="The generator ends with an error, or finds no NVIDIA device.",
    disproved_by="A specification of the present driver lies in /var/run/cdi.",
    counter_check="on NODE: nvidia-ctk --debug cdi generate > /dev/null; echo $? : 0",
    fix=Fix(
        steps=(
            "Driver Not Loaded at boot: it ran before the driver; load it, then systemctl restart nvidia-cdi-refresh",
            "library not found: --driver-root of a driver container (/run/nvidia/driver), --library-search-path "
            "elsewhere",
            "no NVIDIA devices: ls /dev/nvidia* ; on WSL2 the tool has to find libdxcore.so (ldconfig "
            "/usr/lib/wsl/lib), "
            "else cdi.enabled=false",
            "an error of nvsandboxutils: NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=disable-nvsandboxutils, or driver 570 "
            "or newer",
        ),
        risk=_AGAIN.risk,
        rollback=_AGAIN.rollback,
    ),
    verify=_VERIFY,
    sources=("NVIDIA/nvidia-container-toolkit, cmd/nvidia-ctk/cdi/generate and pkg/nvcdi",),
)

INCOMPLETE = Code(
    name="CdiSpecWithoutDeviceNodes",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.DevicesNotInjected,
    title="a CDI specification lacks device files",
    meaning="Containers start and miss files such as /dev/nvidia-uvm: nvidia-smi may work in them and CUDA not.",
    known_by="The specification has no device nodes for its devices, or none for nvidiactl and nvidia-uvm.",
    disproved_by="Another specification of the same kind in a later directory has them.",
    counter_check="on NODE: grep -e nvidiactl -e nvidia-uvm /var/run/cdi/*.yaml ; ls /dev/nvidia* : both listed",
    fix=Fix(
        steps=(
            "make the device files: nvidia-modprobe -u -c=0 (or nvidia-smi) on NODE, and at boot before whoever writes "
            "the specification (udev rule, nvidia-persistenced)",
            *_AGAIN.steps[1:2],
        ),
        risk=_AGAIN.risk,
        rollback=_AGAIN.rollback,
    ),
    verify=("the specification lists /dev/nvidia-uvm", "a CUDA sample runs in a pod"),
    sources=_SOURCES,
)


_REASONS = ("why", *(f"why{number}" for number in range(2, 8)))


def find(facts: Facts) -> Iterator[Answer]:
    caps = [one for one in facts.said("toolkit.driver_root_empty") if "nvidia-cap" in one.get("path")]
    for node, said in by_node((*facts.said("cdi.stale", "cdi.said_stale"), *caps)).items():
        path = first(said, "path", "path2", "path3", "path4").rstrip(":")
        cause = f"{path} does not exist on the host." if path else "The specification is of another state of the host."
        yield STALE.finding(cause, LIKELY if path else POSSIBLE, said, node=node)
    live = {one.get("path"): one for one in facts.said("cdi.live_major")}
    for one in facts.said("cdi.spec_major"):
        path, major = one.get("path"), one.get("major")
        if path in live and live[path].node == one.node and live[path].get("major") != major:
            yield STALE.finding(
                f"{path} has major number {major} in it and {live[path].get('major')} on the host.",
                LIKELY,
                [one, live[path]],
                node=one.node,
            )
    for one in facts.said("cdi.told_other_driver"):
        old, new = one.get("old") or one.get("old2"), one.get("new") or one.get("new2")
        if old and new and not new.startswith(old) and not old.startswith(new):
            yield STALE.finding(f"It is of driver {old}; the driver is {new}.", POSSIBLE, [one], node=one.node)
    for node, said in by_node(facts.said("cdi.conflict")).items():
        specs = _unquoted(first(said, "specs"))
        yield CONFLICT.finding(
            f"{first(said, 'device')} is defined twice{': ' + specs if specs else ''}.", ESTABLISHED, said, node=node
        )
    for node, said in by_node(facts.said("cdi.said_twice")).items():
        yield CONFLICT.finding("Several specifications define one device.", POSSIBLE, said, node=node)
    empty = list(facts.said("cdi.empty_edits"))
    for node, said in by_node(empty).items():
        yield EDITS_EMPTY.finding("The device's edits are empty.", ESTABLISHED, said, node=node)
    for node, said in by_node(facts.said("cdi.invalid")).items():
        why = _unquoted(first(said, "why"))
        why = why or (f"it needs version {first(said, 'version')}" if first(said, "version") else "")
        is_said = any("failed to load CDI Spec" in one.origin.text for one in said)  # by the registry itself
        sure = ESTABLISHED if is_said else LIKELY
        yield INVALID.finding(f"The specification is refused{': ' + why if why else ''}.", sure, said, node=node)
    made: dict[str, list[Fact]] = {}
    for one in facts.said("cdi.not_generated", "toolkit.no_devices"):
        if not any("empty" in one.origin.text and one.node == other.node for other in empty):
            made.setdefault(one.node, []).append(one)
    wsl = list(facts.said("runtime.wsl"))
    for node, evidence in made.items():
        why = first((one for one in facts.said("cdi.not_generated") if one.node == node), *_REASONS)
        where = "on WSL2 the tool does not find the library of the host's driver" if wsl else why
        yield NOT_GENERATED.finding(
            f"The generator found no device that it can describe{': ' + where if where else ''}.",
            LIKELY,
            [*evidence, *wsl],
            node=node,
        )
    yield from _of_specs(facts)


def _unquoted(text: str) -> str:
    """Out of a line of a log that has the message in quotation marks: up to the end of the message, its own marks as
    they were."""
    marks = [found.start() for found in re.finditer(r'(?<!\\)"', text)]
    message = text[: marks[0]] if len(marks) % 2 else text
    return re.sub(r"(?:\\n\s*)+", " ", message.replace('\\"', '"')).strip()


def _of_specs(facts: Facts) -> Iterator[Answer]:
    is_missed = any(facts.said("cdi.unresolvable")) and not any(facts.said("cdi.invalid"))
    for spec in facts.of(CdiSpec):
        if not (is_missed and spec.is_broken):
            continue
        yield INVALID.finding(
            f"{spec.path or spec.origin.source} cannot be read to its end.", ESTABLISHED, [spec], node=spec.node
        )
    absent = list(facts.said("cdi.nodes_absent"))
    for node, said in by_node(facts.said("cdi.without_nodes")).items():
        yield INCOMPLETE.finding(
            "The specification has no device nodes"
            f"{': the files did not exist on the host when it was made' if absent else ''}.",
            LIKELY,
            [*said, *absent],
            node=node,
            layer=Layer.L1 if absent else Layer.L2,  # what has to be mended is that the driver's files are made
        )
    seen: dict[tuple[str, str, str], CdiSpec] = {}
    for spec in facts.of(CdiSpec):
        directory, _, name = spec.path.rpartition("/")
        if spec.kind in ("nvidia.com/gpu", "management.nvidia.com/gpu") and spec.devices:
            missing = [file for file in ("/dev/nvidiactl", "/dev/nvidia-uvm") if file not in spec.all_nodes]
            on_wsl = "/dev/dxg" in spec.all_nodes
            if not spec.all_nodes or (missing and spec.nodes and not on_wsl):
                yield INCOMPLETE.finding(
                    f"{spec.path or spec.kind} has {len(spec.all_nodes)} device nodes and lacks {', '.join(missing)}.",
                    LIKELY if not spec.all_nodes or "/dev/nvidia-uvm" in missing else POSSIBLE,
                    [spec, *absent],
                    node=spec.node,
                    layer=Layer.L1 if absent else Layer.L2,
                )
        if not name:
            continue
        other = seen.setdefault((spec.node, directory, spec.kind), spec)
        common = set(spec.names) & set(other.names)
        if other is not spec and other.path != spec.path and common:
            yield CONFLICT.finding(
                f"{other.path} and {spec.path} both define {sorted(common)[0]}.", LIKELY, [other, spec], node=spec.node
            )


RULE = Rule((STALE, CONFLICT, INVALID, EDITS_EMPTY, NOT_GENERATED, INCOMPLETE), find)
