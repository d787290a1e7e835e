"""L3. Sharing by MPS: its daemon, and what the plugin refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.plugin_config import PluginConfig
from berth.evidence.formats.told import Told

_OF_MPS = re.compile("mps|to support device connections", re.IGNORECASE)
MOST_CLIENTS = 48  # an MPS server of compute capability 7.5 and later serves that many

DAEMON_ABSENT = Code(
    name="MpsDaemonAbsent",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin waits for an MPS control daemon that does not run",
    meaning="With sharing.mps the plugin registers only once the daemon of its chart answers on the node; a daemon "
    "that somebody started on the host is not that one.",
    known_by="'error waiting for MPS daemon', retried every 30 seconds.",
    disproved_by="The pod of mps-control-daemon runs on NODE and answers: then only the plugin is older than it.",
    counter_check="kubectl get pod -A -o wide | grep mps-control-daemon: Running on NODE; on NODE: ls /run/nvidia/mps",
    fix=Fix(
        steps=("install through the Helm chart with GPU Feature Discovery: the daemon's DaemonSet runs only on nodes "
               "with nvidia.com/mps.capable=true",
               "label missing: kubectl label node NODE nvidia.com/mps.capable=true (until discovery runs)",
               "mpsRoot and the driver root must be the same in daemon and plugin"),
        risk="the daemon sets the GPUs to exclusive-process: no other program may be on them",
        rollback="take sharing.mps out of the configuration",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'", "ls /run/nvidia/mps/shm on NODE: is there"),
    sources=("k8s-device-plugin internal/plugin/mps.go, deployments/helm", "k8s-device-plugin issues 634, 712, 762"),
)  # fmt: skip

REFUSED = Code(
    name="MpsConfigRefused",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin refuses the MPS configuration",
    meaning="The plugin ends with the configuration that it was given; the node offers nothing.",
    known_by="The plugin names what is missing or not possible: --mps-root, MIG devices, too many clients.",
    disproved_by="A later start with the same file succeeds.",
    counter_check="kubectl logs of the plugin: 'Running with config' after its last start",
    fix=Fix(
        steps=("--mps-root (MPS_ROOT) must be set and mounted: deploy through the chart",
               "no MPS on partitions: migStrategy none, or time-slicing",
               f"replicas at most {MOST_CLIENTS} (16 before compute capability 7.5)"),
        risk="the plugin restarts; running pods keep their share",
        rollback="the former configuration",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'",),
    sources=("k8s-device-plugin internal/plugin/mps.go, cmd/mps-control-daemon/mps/device.go",),
)  # fmt: skip

SERVER_FAILS = Code(
    name="MpsServerFails",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="the MPS server does not start, or ended with a fault",
    meaning="Programs on the shared GPU cannot begin CUDA, or hang.",
    known_by="The control daemon says that its server exited or met a fatal exception.",
    disproved_by="A server of the same user runs now (get_server_list), and clients work.",
    counter_check="in the daemon's pod: echo get_server_list | nvidia-cuda-mps-control: a server",
    fix=Fix(
        steps=("one daemon a GPU: stop a daemon on the host (echo quit | nvidia-cuda-mps-control)",
               "dmesg for an Xid: one client's fault ends all clients of the server; restart the daemon's pod",
               "IOMMU or memory mapping errors in dmesg: see the kernel log, and the driver's release notes on MPS"),
        risk="all clients of that server end",
        rollback="nothing to undo",
    ),
    verify=("a pod with RESOURCE: 1 runs a CUDA sample",),
    sources=("NVIDIA Multi-Process Service documentation", "k8s-device-plugin issue 685"),
)  # fmt: skip


CLIENT_UNREACHED = Code(
    name="MpsClientUnreached",
    layer=Layer.L3,
    cause_class="plugin-config",
    severity=Severity.Error,
    effect=Effect.CudaFails,
    title="a program cannot reach the MPS server of its share",
    meaning="The GPU is in exclusive-process mode and belongs to the MPS server; a program outside its pipe directory "
    "or without its shared memory finds the device busy.",
    known_by="'all CUDA-capable devices are busy or unavailable' or an MPS error of CUDA, where devices are shared by "
    "MPS.",
    disproved_by="The program runs without a share on another GPU with the same message.",
    counter_check="the program without a share on another GPU: the same message",
    fix=Fix(
        steps=(
            "the pod needs what the plugin mounts: no own /dev/shm or /tmp/nvidia-mps over it, no hostIPC tricks",
            "one user: server and clients with the same UID (or a daemon with multi-user)",
            "no client limit passed: fewer replicas; a server in FAULT: restart the daemon's pod",
        ),
        risk="a restart of the daemon ends all its clients",
        rollback="nothing to undo",
    ),
    verify=("a pod with RESOURCE: 1 runs a CUDA sample",),
    sources=("k8s-device-plugin internal/plugin/mps.go", "k8s-device-plugin issue 647"),
)


PROGRAM_MISSING = Code(
    name="MpsProgramMissing",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the MPS daemon's program is not in its container",
    meaning="nvidia-cuda-mps-control comes from the host's driver. The container was started without the NVIDIA "
    "runtime, or the host's driver package leaves the program out.",
    known_by="'nvidia-cuda-mps-control: executable file not found'.",
    disproved_by="which nvidia-cuda-mps-control finds it in a container of the same runtime class.",
    counter_check="in a container of the daemon's runtime class on NODE: which nvidia-cuda-mps-control: a path",
    fix=Fix(
        steps=("on the host: install the driver's compute utilities (nvidia-utils, nvidia-compute-utils)",
               "in the pod: runtimeClassName nvidia, NVIDIA_DRIVER_CAPABILITIES with compute and utility",
               "images of an operating system that carry no MPS (some container systems): time-slicing in its place"),
        risk="the daemon restarts",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs of the daemon: 'Starting MPS daemon' and no error after it",),
    sources=("k8s-device-plugin cmd/mps-control-daemon/mps/daemon.go", "libnvidia-container src/nvc_info.c"),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    missing = by_node(facts.said("sharing.mps_program_missing"))
    for said in missing.values():
        yield PROGRAM_MISSING.finding("The container has no nvidia-cuda-mps-control.", POSSIBLE, said)
    refused = by_node(facts.said("sharing.mps_refused", "reported.mps_refused"))
    for said in refused.values():
        yield REFUSED.finding("The plugin names what stands in the way of MPS.", LIKELY, said)
    for config in facts.of(PluginConfig):
        if config.kind == "mps" and config.replicas > MOST_CLIENTS and not refused:
            yield REFUSED.finding(
                f"{config.replicas} replicas by MPS; a server serves {MOST_CLIENTS} clients at most.", LIKELY, [config]
            )
    came = any(facts.said("sharing.mps_daemon_ready"))  # who waited has gone on
    for node, said in by_node(facts.said("sharing.mps_daemon_absent", "reported.mps_daemon_missing")).items():
        if node not in refused and not came:
            yield DAEMON_ABSENT.finding(
                "The MPS control daemon of the plugin does not answer on the node.", LIKELY, said
            )
    shared = [config for config in facts.of(PluginConfig) if config.kind == "mps"]
    busy = facts.said("reported.busy_mps_client", "reported.mps_unreached", "sharing.mps_client_refused")
    told = any(re.search(r"\bMPS\b", one.origin.text) for one in facts.of(Told))
    unreached = [one for one in busy if shared or told or _OF_MPS.search(one.origin.text)]
    for said in by_node(unreached).values():
        yield CLIENT_UNREACHED.finding(
            "CUDA finds the shared device busy: it does not reach the MPS server.", POSSIBLE, [*said, *shared]
        )
    for said in by_node(facts.said("sharing.mps_label_refused")).values():
        yield SERVER_FAILS.finding(
            "The pipe's directory cannot be labelled: SELinux's file system is not in the daemon's container, or may "
            "not be written there.",
            LIKELY,
            said,
            cause_class="path-mount",
        )
    for said in by_node(facts.said("sharing.mps_server_fails", "reported.mps_daemon_fails")).values():
        is_denied = any("permission denied" in one.origin.text.lower() for one in said)
        yield SERVER_FAILS.finding(
            "The MPS server did not start: it may not write where it must."
            if is_denied
            else "The MPS server did not start or was ended by a fault.",
            LIKELY if any(one.message == "reported.mps_daemon_fails" for one in said) else POSSIBLE,
            said,
            cause_class="permission" if is_denied else None,
        )


RULE = Rule((DAEMON_ABSENT, REFUSED, SERVER_FAILS, CLIENT_UNREACHED, PROGRAM_MISSING), find)
