"""L3. What plugins give to a container does not fit it: a library of theirs, or no device where one was meant."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

LIBRARY_UNFIT = Code(
    name="ShareLibraryUnfit",
    layer=Layer.L3,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the library that the sharing plugin puts under the program does not fit driver or image",
    meaning="HAMi and its kin load libvgpu.so into each program. It uses functions of a CUDA driver, and of a C "
    "library, that the node or the image does not have: every program in the container ends at once.",
    known_by="'symbol lookup error' that names libvgpu.so.",
    disproved_by="The same program fails with CUDA_DISABLE_CONTROL=true (no library is loaded then).",
    counter_check="the program with CUDA_DISABLE_CONTROL=true: it fails in the same way",
    fix=Fix(
        steps=(
            "a release of the plugin whose library is built for this driver branch and for old C libraries",
            "a symbol of CUDA (cu…): a newer driver helps as well; a private symbol of glibc: another image, or the "
            "newer plugin",
            "for one pod: CUDA_DISABLE_CONTROL=true, without limits then",
        ),
        risk="plugin and scheduler are to be of one release",
        rollback="the former release",
    ),
    verify=("nvidia-smi in a pod with a share: a table",),
    sources=("HAMi issue 27, HAMi-core issue 174",),
)

LIBRARY_REPLACED = Code(
    name="ShareLibraryReplaced",
    layer=Layer.L3,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="the sharing plugin writes its library anew under running programs",
    meaning="HAMi and its kin mount libvgpu.so and its folders from the host into each pod. A plugin that starts anew "
    "copies the library and clears folders there: programs that run have the old file mapped, and those that start "
    "find neither the one nor the other whole.",
    known_by="Somebody reports that pods with a share fail as soon as the plugin's pod restarts, or that the library "
    "was replaced.",
    disproved_by="nvidia-smi of the host fails at the same time: then it is the driver.",
    counter_check="on NODE: ls -l /usr/local/vgpu: older than the pods; or nvidia-smi on NODE: fails at the same time",
    fix=Fix(
        steps=(
            "start the pods with a share again, after the plugin is ready",
            "a release of the plugin that copies the library only where it differs, and puts it in place by a rename",
            "update the plugin only on nodes without pods that have a share",
        ),
        risk="programs of those pods end",
        rollback="the former release of the plugin",
    ),
    verify=("restart the plugin's pod: nvidia-smi in a pod with a share still works",),
    sources=("HAMi docker/vgpu-init.sh",),
)

NETWORK = Code(
    name="NetworkPodWithoutDevice",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the network plugin of a pod got no device from the device plugin",
    meaning="The SR-IOV plugin needs the PCI address of a virtual function that the kubelet has given to the pod. "
    "There is none: the pod does not ask for the resource, its network does not name it, or the kubelet admitted it "
    "without.",
    known_by="SRIOV-CNI cannot load its configuration, or misses a device's address.",
    disproved_by="The pod's containers have PCIDEVICE_… in their environment.",
    counter_check="kubectl get net-attach-def -o yaml | grep resourceName; kubectl get pod POD -n NAMESPACE -o yaml | "
    "grep -A4 limits: the same resource",
    fix=Fix(
        steps=(
            "annotate the network with k8s.v1.cni.cncf.io/resourceName and let the pod ask for that resource",
            "after a reboot: delete the pod, so that it is admitted anew with a device",
        ),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the pod is Running and has its interface",),
    sources=("sriov-cni pkg/config", "kubernetes issue 104581"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("sharing.library_unfit")).values():
        symbol = said_of(one.get("symbol") for one in said)
        of_libc = any(one.get("version").startswith("GLIBC") for one in said)
        where = "the image's C library" if of_libc else "the node's driver"
        yield LIBRARY_UNFIT.finding(f"libvgpu.so asks for {symbol}, which {where} does not have.", LIKELY, said)
    for said in by_node(facts.said("sharing.library_replaced")).values():
        yield LIBRARY_REPLACED.finding("Pods with a share fail where the plugin starts anew.", POSSIBLE, said)
    absent = list(facts.said("kubelet.checkpoint_absent"))
    for said in by_node(facts.said("plugin.network_without_device")).values():
        yield NETWORK.finding(
            "The kubelet started without its account of devices, and the pod has none."
            if absent
            else "The pod's network wants a device, and the pod has none.",
            POSSIBLE,
            [*said, *absent],
            cause_class="kubelet-state" if absent else None,
        )


RULE = Rule((LIBRARY_UNFIT, LIBRARY_REPLACED, NETWORK), find)
