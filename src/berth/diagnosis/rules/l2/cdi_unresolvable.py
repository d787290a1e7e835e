"""L2. A CDI device name leads nowhere: no specification, another name, another directory, or a name for operands."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule, Unconfirmed
from berth.diagnosis.rules.l2.places import by_node, first, values
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Fact
from berth.evidence.facts import Facts
from berth.evidence.formats.container_facts import CdiListed, CdiSpec, RuntimeConfig

# Whoever of these says something in the same text has the reason why an injection fails.
_NAMED = ("cdi.unresolvable", "cdi.stale", "cdi.invalid", "cdi.conflict", "cdi.empty_edits", "cdi.not_generated")
DEFAULT_DIRS = ("/etc/cdi", "/var/run/cdi")
_RESTART = "container starts pause for seconds where the runtime is restarted"

UNRESOLVABLE = Code(
    name="CdiDeviceUnresolvable",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.CdiUnresolved,
    title="a CDI device name leads nowhere",
    meaning="Containers that are to get this device do not start. Where the name is the operator's own "
    "(management.nvidia.com/gpu=all), its operands do not start either and the node advertises no GPU.",
    known_by="The runtime names devices that no specification in its directories defines.",
    disproved_by="`nvidia-ctk cdi list` has the name, and the runtime reads the same directories.",
    counter_check="on NODE: nvidia-ctk cdi list ; ls -l /etc/cdi /var/run/cdi : the name is listed",
    fix=Fix(
        steps=(
            "ls /etc/cdi /var/run/cdi on NODE: is there a specification of that vendor, and of today",
            "nvidia.com/gpu: nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml (or systemctl restart "
            "nvidia-cdi-refresh) after the driver is loaded; again after a change of driver, MIG or cards",
            "management.nvidia.com, runtime.nvidia.com: the toolkit writes it; look at the toolkit pod, then delete "
            "it so "
            "that it writes again after the driver is ready",
            "k8s.device-plugin.nvidia.com, k8s.gpu.nvidia.com: the plugin or DRA driver writes it; its directory must "
            "be "
            "a hostPath of /var/run/cdi that the runtime reads",
            "rootless or nested: the runtime reads the directories of its own system; give it the specification there",
        ),
        risk=_RESTART,
        rollback="remove the file that was generated",
    ),
    verify=("on NODE: nvidia-ctk cdi list : the name that was missing", "the pod starts"),
    sources=("Container Device Interface, pkg/cdi/cache.go", "NVIDIA container toolkit documentation, CDI support"),
)

MANAGEMENT_NAME = Code(
    name="CdiManagementNameForWorkload",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.CdiUnresolved,
    title="a workload is started with the operator's own CDI class",
    meaning="The class management.nvidia.com has one device, all, for the operator's pods. A workload that asks for "
    "one GPU by its UUID under that class does not start.",
    known_by="A UUID or an index is looked for under management.nvidia.com.",
    disproved_by="The pod names no RuntimeClass, and its device list is not handed over by environment or mounts.",
    counter_check="kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.runtimeClassName}' : empty or nvidia",
    fix=Fix(
        steps=(
            "take runtimeClassName nvidia-cdi out of the pod: since 25.10 the runtime injects CDI devices itself",
            "the plugin's DEVICE_LIST_STRATEGY in the ClusterPolicy: cdi-cri (and cdi-annotations), without "
            "volume-mounts "
            "or envvar",
        ),
        risk="none for what runs",
        rollback="the former manifest",
    ),
    verify=("the pod starts; nvidia-smi -L in it lists one GPU",),
    sources=("GPU Operator release notes 25.10: CDI by default", "NVIDIA/nvidia-container-toolkit, default CDI kind"),
)

DIRECTORY_NOT_SEARCHED = Code(
    name="CdiDirectoryNotSearched",
    layer=Layer.L2,
    cause_class="cdi",
    severity=Severity.Error,
    effect=Effect.CdiUnresolved,
    title="a CDI specification lies where the runtime does not look",
    meaning="The device names are defined and not found: containers that ask for them do not start.",
    known_by="The directory of the specification is not among the runtime's CDI directories.",
    disproved_by="The directory is a link to one that is searched (/run/cdi and /var/run/cdi mostly are the same).",
    counter_check="on NODE: containerd config dump | grep cdi_spec_dirs ; readlink -f /var/run/cdi : they meet",
    fix=Fix(
        steps=(
            "write the specification to /var/run/cdi or /etc/cdi (nvidia-ctk cdi generate --output=...)",
            'or add its directory: cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"] (containerd, CRI-O), '
            "cdi-spec-dirs (Docker)",
            "restart the runtime on NODE",
        ),
        risk=_RESTART,
        rollback="restore the saved configuration",
    ),
    verify=("the pod starts",),
    sources=("Container Device Interface, specification directories", "containerd, docs/cri/config.md: cdi_spec_dirs"),
)


_INJECTION_REASONS = ("why", *(f"why{number}" for number in range(2, 8)))


def find(facts: Facts) -> Iterator[Answer]:
    specs, listed = facts.of(CdiSpec), facts.of(CdiListed)
    for node, said in by_node(facts.said("cdi.unresolvable")).items():
        names = values(said, "device", "device2", "device3", "device4")
        management = [
            one for one in said if any(map(_is_misnamed, values([one], "device", "device2", "device3", "device4")))
        ]
        if management:
            yield MANAGEMENT_NAME.finding(
                f"{names[0]} is looked for; the class management.nvidia.com/gpu has only the device all.",
                ESTABLISHED,
                management,
                node=node,
            )
        other = [one for one in said if one not in management]
        if not other:
            continue
        names = values(other, "device", "device2", "device3", "device4")
        known: list[Fact] = [one for one in (*specs, *listed) if not node or not one.node or one.node == node]
        there = {name for one in known if isinstance(one, CdiSpec | CdiListed) for name in one.names}
        asked = ", ".join(names[:4]) or "a device"
        lacking = [one for one in known if isinstance(one, CdiSpec) and not one.is_broken and _lacks(one, names)]
        if not lacking and _refused(facts, node):
            yield UNRESOLVABLE.finding(
                f"The runtime refuses a specification, and no other defines {asked}.",
                LIKELY,  # what the registry says of the file goes before
                [*other, *known],
                node=node,
                effect=Effect.ContainersDoNotStart,
            )
            continue
        if set(names) & there:
            why = ". What was listed has it: another directory or another system is read"
        elif lacking:
            one = lacking[0]
            why = f": {one.path or one.origin.source} has {_counted(len(one.devices))} of that kind"
        else:
            why = _reading(names)
        yield UNRESOLVABLE.finding(
            f"No specification that the runtime reads defines {asked}{why}.",
            ESTABLISHED if known else LIKELY,  # else the kubelet may have asked for what is gone
            [*other, *known],
            node=node,
        )
        if not known:
            yield Unconfirmed(
                what=f"the CDI specifications on {node or 'the node'}",
                how="ls -l /etc/cdi /var/run/cdi; nvidia-ctk cdi list",
                wanted_for=UNRESOLVABLE.name,
                layer=Layer.L2,
                node=node,
            )
    for node, said in by_node(facts.said("cdi.none_found", "cdi.said_missing", "cdi.told_file_missing")).items():
        yield UNRESOLVABLE.finding("There is no specification that defines a device.", POSSIBLE, said, node=node)
    named = {one.origin.source for one in facts.said(*_NAMED)}
    for node, said in by_node(
        one for one in facts.said("cdi.injection_failed") if one.origin.source not in named
    ).items():
        yield UNRESOLVABLE.finding(
            f"A device could not be added: {first(said, *_INJECTION_REASONS).strip()}",
            POSSIBLE,
            said,
            node=node,
        )
    yield from _directories(facts)


def _directories(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("cdi.dir_not_searched")).items():
        yield DIRECTORY_NOT_SEARCHED.finding(
            "The directory of the specification is not one of the runtime's.", LIKELY, said, node=node
        )
    for config in facts.of(RuntimeConfig):
        if not config.cdi_dirs:
            continue
        searched = {_canonical(one) for one in config.cdi_dirs}
        for spec in facts.of(CdiSpec):
            directory = _canonical(spec.path.rpartition("/")[0])
            if directory and directory.endswith("cdi") and directory not in searched and spec.node == config.node:
                yield DIRECTORY_NOT_SEARCHED.finding(
                    f"{spec.path} is not in {', '.join(config.cdi_dirs)}.", LIKELY, [config, spec], node=config.node
                )


def _canonical(directory: str) -> str:
    return directory.replace("/var/run/", "/run/").rstrip("/")


def _lacks(spec: CdiSpec, names: tuple[str, ...]) -> bool:
    """A specification of the kind that is asked for, without the device."""
    return any(name.partition("=")[0] == spec.kind and name not in spec.names for name in names)


def _counted(devices: int) -> str:
    return f"{devices} devices" if devices != 1 else "one device"


def _refused(facts: Facts, node: str) -> bool:
    """Whether the registry says that it does not take a specification or a device of one, or a file is broken."""
    said = facts.said("cdi.invalid", "cdi.conflict", "cdi.empty_edits")
    broken = (one for one in facts.of(CdiSpec) if one.is_broken)
    return any(not node or not one.node or one.node == node for one in (*said, *broken))


def _is_misnamed(device: str) -> bool:
    kind, _, name = device.partition("=")
    return kind.startswith("management.") and name not in ("", "all")


def _reading(names: tuple[str, ...]) -> str:
    kinds = {name.partition("=")[0] for name in names}
    if any(kind.startswith("management.") for kind in kinds):
        return ": the toolkit has not written the operator's own specification, or does not run on this node"
    if any(kind.startswith("runtime.") for kind in kinds):
        return ": the NVIDIA runtime could not generate one itself"
    if any(kind.startswith("k8s.") for kind in kinds):
        return ": what the plugin or DRA driver wrote is not where the runtime looks"
    return ""


RULE = Rule((UNRESOLVABLE, MANAGEMENT_NAME, DIRECTORY_NOT_SEARCHED), find)
