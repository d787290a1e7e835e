"""L2. Paths and mounts between host and container."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NOT_SHARED = Code(
    name="MountNotShared",
    layer=Layer.L2,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a mount of the host is not shared",
    meaning="Pods that pass mounts on to the host (driver, toolkit, validator) do not start. Seen on WSL2, in "
    "containers that act as nodes, and where the system does not run systemd.",
    known_by="The runtime refuses the pod's mount propagation and names the mount.",
    disproved_by="findmnt says shared for that mount.",
    counter_check="on NODE: findmnt -o TARGET,PROPAGATION / ; findmnt -o TARGET,PROPAGATION /run : shared",
    fix=Fix(
        steps=(
            "mount --make-rshared /run (or / where it names that) on NODE",
            "make it last: a unit that does so before the container runtime, or MountFlags=shared of its unit",
        ),
        risk="mounts that containers make become visible on the host: that is what is wanted",
        rollback="mount --make-rprivate of the same path",
    ),
    verify=("findmnt -o TARGET,PROPAGATION /run on NODE : shared", "the pods start"),
    sources=("Kubernetes documentation, mount propagation", "Linux, shared subtrees"),
)

HOST_PATH = Code(
    name="HostPathOfWrongType",
    layer=Layer.L2,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a host path that a GPU pod mounts is not there or is something else",
    meaning="The pod stays in ContainerCreating: driver, toolkit or device files are in another place on this host.",
    known_by="The kubelet's check of the hostPath type fails.",
    disproved_by="The path exists with that type on the node that the pod is on.",
    counter_check="on NODE: stat the named path : the type that is wanted",
    fix=Fix(
        steps=(
            "give the pod the path of this system (driver root, toolkit and kubelet directories are chart values)",
            "a device file that is missing: nvidia-modprobe -u -c=0 on NODE",
        ),
        risk="none for what runs",
        rollback="the former value",
    ),
    verify=("the pod starts",),
    sources=("Kubernetes documentation, hostPath types",),
)

SOURCE_MISSING = Code(
    name="DriverFileMissingForMount",
    layer=Layer.L2,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a file that the runtime mounts into GPU containers is not on the host",
    meaning="GPU containers do not start. The file belongs to the driver, to a device that is gone, or to a socket of "
    "a "
    "service that was stopped.",
    known_by="nvidia-container-cli cannot mount a path because it does not exist.",
    disproved_by="The path exists in the root that the toolkit uses.",
    counter_check="on NODE: ls -l the named path ; nvidia-smi -L : there, all GPUs",
    fix=Fix(
        steps=(
            "/proc/driver/nvidia/gpus/...: a GPU has gone or MIG has changed; nvidia-smi -L, restart the plugin",
            "/dev/nvidia...: nvidia-modprobe -u -c=0 ; nvidia-modeset where graphics is asked for",
            "a socket (persistenced, fabric manager): start its service, or remove the stale socket",
            "a library: install the driver's packages again, they are of two versions",
        ),
        risk="none for what runs",
        rollback="nothing to undo",
    ),
    verify=("a GPU container starts",),
    sources=("NVIDIA/libnvidia-container, src/nvc_mount.c",),
)


BLOCKED = Code(
    name="DriverFileBlockedInContainer",
    layer=Layer.L2,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="a file of the driver cannot be put into the container",
    meaning="Where the file should appear something else is: a volume of the host over /run, /dev or /usr/lib, a "
    "read-only root, or a file of that name in the image. The container does not start.",
    known_by="nvidia-container-cli cannot make the file under the container's root.",
    disproved_by="The same image starts with the same GPUs and without its volumes.",
    counter_check="start the image with GPUs and no volume (-v, volumeMounts) over /run, /var/run, /dev or /usr : it "
    "starts",
    fix=Fix(
        steps=(
            "mount less of the host: the socket or file that is wanted in place of all of /var/run, /dev or /usr",
            "image with a link or file in that place: remove it from the image",
            "read-only root file system or store with errors: see dmesg of NODE",
        ),
        risk="none for what runs",
        rollback="put the volume back",
    ),
    verify=("the container starts and nvidia-smi answers in it",),
    sources=("NVIDIA/libnvidia-container, src/nvc_mount.c and src/utils.c: file_create",),
)


MISREADS = Code(
    name="ContainerLibraryMisreadsGpu",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="libnvidia-container takes a word of the GPU's name for a path",
    meaning="The installed libnvidia-container is older than the driver and misreads what it says of its devices: no "
    "GPU container starts.",
    known_by="nvidia-container-cli cannot find a path that is a word such as /GeForce or /Tesla.",
    disproved_by="It is the newest release and the message stays.",
    counter_check="on NODE: nvidia-container-cli --version ; nvidia-smi : a release as new as the driver",
    fix=Fix(
        steps=(
            "install libnvidia-container and nvidia-container-toolkit of one newer release on NODE",
            "restart the container runtime",
        ),
        risk="a restart of the runtime interrupts container starts for seconds",
        rollback="the former packages",
    ),
    verify=("a GPU container starts",),
    sources=("NVIDIA/nvidia-docker issue 957",),
)

FILE_IS_MOUNT = Code(
    name="DriverFileIsMounted",
    layer=Layer.L2,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.RuntimeAbsent,
    title="a package cannot replace a file that is mounted from the host",
    meaning="In a container that acts as a node (kind, nvkind, minikube) or as a workstation the runtime has mounted "
    "files of the driver or toolkit; a package that brings the same file cannot be installed over them.",
    known_by="dpkg, rpm or rm say 'Invalid cross-device link' or 'Device or resource busy' of such a file.",
    disproved_by="findmnt does not list the file: then the file system itself is at fault.",
    counter_check="in that container: findmnt | grep -e nvidia -e libcuda : the named file is not listed",
    fix=Fix(
        steps=(
            "do not install there what the host gives: use the mounted program, or leave out that package",
            "or umount the named file, install the package, and take the mount out of what starts the container",
        ),
        risk="GPU programs of that container fail while the file is away",
        rollback="start the container again",
    ),
    verify=("the package installs", "nvidia-ctk --version answers"),
    sources=("dpkg and rpm: what they print", "NVIDIA/k8s-device-plugin issue 479"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.mount_not_shared")).items():
        mount = first(said, "mount") or "the mount"
        path = first(said, "path")
        yield NOT_SHARED.finding(
            f"{mount} is not a shared mount{', under which ' + path + ' lies' if path else ''}.",
            ESTABLISHED,
            said,
            node=node,
        )
    for node, said in by_node(facts.said("runtime.told_private")).items():
        yield NOT_SHARED.finding("A mount is said not to be shared.", POSSIBLE, said, node=node)
    for node, said in by_node(facts.said("runtime.host_path_wrong")).items():
        path = first(said, "path")
        yield HOST_PATH.finding(
            f"{path} is not a {first(said, 'wanted').strip() or 'path of the wanted type'}.",
            LIKELY,
            said,
            node=node,
            # The kubelet's own directories are where a plugin has to meet it.
            layer=Layer.L3 if "device-plugins" in path or "pod-resources" in path else None,
        )
    for node, said in by_node(facts.said("runtime.cli_source_missing")).items():
        yield SOURCE_MISSING.finding(
            f"{first(said, 'path', *(f'path{n}' for n in range(2, 9)))} is not there.", POSSIBLE, said, node=node
        )
    for node, said in by_node(facts.said("runtime.cli_misreads")).items():
        yield MISREADS.finding(f"{first(said, 'path')} is a word and no path.", LIKELY, said, node=node)
    for node, said in by_node(facts.said("runtime.file_is_mount")).items():
        yield FILE_IS_MOUNT.finding(
            f"{first(said, 'path', 'path2', 'path3')} is a mount and cannot be replaced.", LIKELY, said, node=node
        )
    for node, said in by_node(facts.said("runtime.cli_target_blocked")).items():
        path = first(said, "path", *(f"path{n}" for n in range(2, 8)))
        why = first(said, "why", *(f"why{n}" for n in range(2, 8)))
        yield BLOCKED.finding(f"{path}: {why}.", LIKELY, said, node=node)


RULE = Rule((NOT_SHARED, HOST_PATH, SOURCE_MISSING, BLOCKED, MISREADS, FILE_IS_MOUNT), find)
