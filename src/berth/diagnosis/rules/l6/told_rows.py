"""L6. What somebody tells of a program, its image and a job over several GPUs, and what causes it.

NAMED are rows whose line names the cause: they are asked before all others. SEEN tell of a state, and come after those
of the machine and of the container engine.
"""

from __future__ import annotations

from berth.diagnosis.rules.l6 import (
    collective,
    connections,
    device_error,
    fabric,
    gpudirect,
    host_limits,
    image,
    memory,
    no_device,
    peer_access,
    rdma_errors,
)
from berth.diagnosis.told_row import Row
from berth.diagnosis.words import POSSIBLE

# Components of the cluster, which have words of their own.
_CLUSTER = "plugin, operand, operator, claims, kubelet, queue, autoscaler, figures, exporter, slurm, labels, taint"
_APART = "Machines of a job are said not to reach each other on the way that it uses."
_BLOCKED = "GPUs of one machine are said not to reach each other: mostly ACS or the IOMMU stands between them."
_SHM = "Shared memory of the container is said not to do."
_LOCKED = "The limit of locked memory is said to be too low."
_NO_CODE = "The program is said to have no code for the card."
_UNFIT = "Parts of the image are said not to go together, or to be missing."
_NOT_USED = "The fast network is said not to be used, or not to be seen in the container."
_WRONG_WAY = "A job is said to take a way that was not meant, or that is not there."
_SLOW = "The way between GPUs is said to be slower than it should be."
_NO_DIRECT = "GPUDirect is said not to be used: mostly its module is not loaded."
_NO_GPU = "The program is said to see no GPU."

NAMED: tuple[Row, ...] = (
    Row("shared memory, full", host_limits.SHM, _SHM, POSSIBLE, unless="sharing"),
    Row("shared memory, does not do, program", host_limits.SHM, _SHM, POSSIBLE, unless="sharing, plugin"),
    Row("shared memory, collective, trouble", host_limits.SHM, _SHM, POSSIBLE, unless="sharing, plugin"),
    Row("shared memory, crashes", host_limits.SHM, _SHM, POSSIBLE, unless="sharing, plugin"),
    Row("locked memory, rdma, trouble", host_limits.LOCKED, _LOCKED, POSSIBLE),
    Row("locked memory, collective, trouble", host_limits.LOCKED, _LOCKED, POSSIBLE),
    Row("locked memory, full", host_limits.LOCKED, _LOCKED, POSSIBLE),
    Row("killed for memory, program", memory.HOST, "The container is said to run out of the host's memory.", POSSIBLE,
        unless=_CLUSTER),
    Row("built without, program", no_device.CPU_BUILD, "The framework is said to be one without CUDA.", POSSIBLE),
    Row("imex, does not do", fabric.CHANNEL, "Nodes are said not to share memory over NVLink.", POSSIBLE,
        unless="claims, operator, operand, plugin"),
    Row("multicast, does not do", fabric.NVLS, "Multicast over NVLink is said not to work.", POSSIBLE),
    Row("multicast, stands still", fabric.NVLS, "Multicast over NVLink is said not to work.", POSSIBLE),
    Row("direct, unused, gid", rdma_errors.GID, "The address that RDMA uses is said to be the wrong one.", POSSIBLE),
    Row("direct, unused", gpudirect.NOT_LOADED, _NO_DIRECT, POSSIBLE, unless="operator, operand, claims"),
    Row("direct, slow", gpudirect.NOT_LOADED, _NO_DIRECT, unless="operator, operand, claims"),
    Row("gid, does not join", rdma_errors.GID, "The address that RDMA uses is said to be the wrong one.", POSSIBLE),
    Row("gid, several machines", rdma_errors.GID, "The address that RDMA uses is said to be the wrong one."),
    Row("gid, collective, trouble", rdma_errors.GID, "The address that RDMA uses is said to be the wrong one."),
    Row("rights, rdma", rdma_errors.DEVICE, "The container is said to lack rights for the network card.", POSSIBLE,
        unless="plugin, operator"),
    Row("rights, collective", rdma_errors.DEVICE, "The container is said to lack rights that NCCL needs.", POSSIBLE,
        unless="plugin, operator"),
    Row("rdma, unused, collective", connections.SOCKET, _NOT_USED, POSSIBLE, unless="plugin, operator"),
    Row("task limit, trouble", host_limits.FILES, "A limit of tasks or files is said to be reached.", POSSIBLE,
        unless=_CLUSTER),
    Row("ranks on one card, collective", collective.DUPLICATE, "Ranks are said to share a GPU.", POSSIBLE),
    Row("ranks differ, collective", collective.MISMATCH, "Ranks are said not to call the same.", POSSIBLE,
        unless=f"{_CLUSTER}, way, rdma, libraries, stands still"),
    Row("processor, image, trouble", image.ARCHITECTURE, "The image is said to be for another processor.", POSSIBLE,
        unless=_CLUSTER),
    Row("built plan, card, does not do", image.LIBRARY, "The plan is said to be of another card.", POSSIBLE),
    Row("number format, not for it, card", no_device.CAPABILITY, "The card is said not to have the number format.",
        POSSIBLE, unless=_CLUSTER),
    Row("image, too old, rdma", image.LIBRARY, _UNFIT, POSSIBLE, unless=_CLUSTER),
    Row("way is wrong, collective", connections.INTERFACE, _WRONG_WAY, POSSIBLE, unless=_CLUSTER),
    Row("way is wrong, rdma", connections.INTERFACE, _WRONG_WAY, POSSIBLE, unless=_CLUSTER),
    Row("way, way is barred, several machines", connections.UNREACHABLE, _APART, POSSIBLE, unless=f"{_CLUSTER}, view"),
    Row("way, way is barred, collective", connections.UNREACHABLE, _APART, POSSIBLE, unless=_CLUSTER),
    Row("way, rdma, way is barred", connections.UNREACHABLE, _APART, POSSIBLE, unless=_CLUSTER),
    Row("rdma, unasked", connections.SOCKET, _NOT_USED, POSSIBLE, unless="plugin, operator"),
    Row("rdma, way, stands still", connections.UNREACHABLE, _APART, POSSIBLE, unless=_CLUSTER),
    Row("way is set, does not join", connections.UNREACHABLE, _APART, POSSIBLE, unless=_CLUSTER),
    Row("way is set, trouble", connections.INTERFACE, _WRONG_WAY, POSSIBLE, unless=_CLUSTER),
    Row("way, several machines, stands still", connections.UNREACHABLE, _APART, POSSIBLE,
        unless=f"{_CLUSTER}, view, module"),
    Row("way, launcher, refused", connections.UNREACHABLE, _APART, POSSIBLE, unless="plugin, operator"),
    Row("iommu, stands still", peer_access.BLOCKED, _BLOCKED, POSSIBLE,
        unless=f"{_CLUSTER}, vm, passthrough, kernel dies, a driver, reboot"),
    Row("unasked, gpus none, cuda", no_device.NOT_ASKED, "The pod is said to ask for no GPU.", POSSIBLE,
        unless=_CLUSTER),
    Row("imex, not for it", fabric.CHANNEL, "Nodes are said not to share memory over NVLink.",
        unless="claims, operator, operand, plugin"),
    Row("compute level, not for it, libraries", image.NO_KERNEL, _NO_CODE, POSSIBLE, unless=_CLUSTER),
    Row("compute level, not for it, program", image.NO_KERNEL, _NO_CODE, POSSIBLE, unless=_CLUSTER),
    Row("compute level, not for it, image", image.NO_KERNEL, _NO_CODE, POSSIBLE, unless=_CLUSTER),
    Row("compute level, not for it, cuda release", image.NO_KERNEL, _NO_CODE, POSSIBLE, unless=_CLUSTER),
    Row("young card, not for it, program", image.NO_KERNEL, _NO_CODE, POSSIBLE, unless=f"{_CLUSTER}, a driver"),
    Row("young card, not for it, image", image.NO_KERNEL, _NO_CODE, POSSIBLE, unless=f"{_CLUSTER}, a driver"),
    Row("cuda release, a driver, too old", image.TOO_OLD, "The CUDA at hand is said to want a newer driver.", POSSIBLE,
        unless=f"{_CLUSTER}, module"),
    Row("program, collective, libraries, unfit", image.LIBRARY, _UNFIT, POSSIBLE, unless=f"{_CLUSTER}, way"),
)  # fmt: skip

SEEN: tuple[Row, ...] = (
    Row("ray, no gpu inside", no_device.TASK, "Ray shows a task the GPUs that it asked for.", unless=_CLUSTER),
    Row("launcher, does not join", connections.MPI, "The launcher is said not to start the ranks.",
        unless=f"{_CLUSTER}, gpus none"),
    Row("launcher, way, crashes", connections.UNREACHABLE, _APART, unless=_CLUSTER),
    Row("launcher, way, stands still", connections.UNREACHABLE, _APART, unless=_CLUSTER),
    Row("collective, way, does not join", connections.UNREACHABLE, _APART, POSSIBLE, unless=_CLUSTER),
    Row("collective, way, stands still", connections.UNREACHABLE, _APART, POSSIBLE, unless=_CLUSTER),
    Row("several machines, collective, stands still", connections.UNREACHABLE, _APART, POSSIBLE, unless=_CLUSTER),
    Row("several machines, collective, does not join", connections.UNREACHABLE, _APART, unless=_CLUSTER),
    Row("several machines, program, stands still", connections.UNREACHABLE, _APART, unless=_CLUSTER),
    Row("several machines, ray, does not join", connections.UNREACHABLE, _APART, unless=_CLUSTER),
    Row("several machines, rdma, trouble", rdma_errors.RETRIED, "RDMA between machines is said not to work.",
        unless=_CLUSTER),
    Row("rdma, slow", peer_access.SLOW, _SLOW, unless=_CLUSTER),
    Row("several machines, collective, slow", peer_access.SLOW, _SLOW, unless=_CLUSTER),
    Row("rdma, way, does not join", connections.UNREACHABLE, _APART, unless=_CLUSTER),
    Row("peer path, unused", peer_access.BLOCKED, _BLOCKED, unless=_CLUSTER),
    Row("device memory, held", memory.ORPHANS, "Memory of the GPU is said to be held.", unless=_CLUSTER),
    Row("peer path, stands still", peer_access.BLOCKED, _BLOCKED, POSSIBLE, unless=_CLUSTER),
    Row("peer path, does not do, of a card", peer_access.BLOCKED, _BLOCKED, unless=_CLUSTER),
    Row("several cards, program, stands still", peer_access.BLOCKED, _BLOCKED,
        unless=f"{_CLUSTER}, module, storage"),
    Row("several cards, collective, stands still", peer_access.BLOCKED, _BLOCKED, unless=f"{_CLUSTER}, storage"),
    Row("several cards, collective, slow", peer_access.BLOCKED, _BLOCKED, unless=_CLUSTER),
    Row("device memory, not given back", memory.ORPHANS, "Memory of the GPU is said to be held by nobody.", POSSIBLE,
        unless=_CLUSTER),
    Row("device memory, full", memory.FULL, "Memory of the GPU is said not to do.", POSSIBLE,
        unless=f"{_CLUSTER}, share scheduler, sharing, memory ill"),
    Row("libraries, unfit, program", image.LIBRARY, _UNFIT, unless=f"{_CLUSTER}, module, no gpu inside"),
    Row("libraries, unfit, image", image.LIBRARY, _UNFIT, unless=f"{_CLUSTER}, module, no gpu inside"),
    Row("libraries, unfit, in container", image.LIBRARY, _UNFIT,
        unless=f"{_CLUSTER}, module, no gpu inside, gpu toolkit"),
    Row("cuda release, image, unfit", image.LIBRARY, _UNFIT, unless=f"{_CLUSTER}, module, a driver"),
    Row("program, no gpu inside", no_device.NOT_GIVEN, _NO_GPU,
        unless=f"{_CLUSTER}, module, engine, gpu toolkit, a driver, reboot, loses it, view, vm"),
    Row("rdma, unused, in container", rdma_errors.DEVICE, "The container is said not to see the network card.",
        unless=_CLUSTER),
    Row("fault of code, program", device_error.KERNEL, "The program is said to fail in its own code.",
        unless=f"{_CLUSTER}, module, a driver, no gpu inside, one machine"),
    Row("rdma, does not do", rdma_errors.RETRIED, "RDMA between machines is said not to work.",
        unless=f"{_CLUSTER}, resource none, a driver, module, vm"),
    Row("peer path, trouble", peer_access.BLOCKED, _BLOCKED, unless=f"{_CLUSTER}, module, a driver"),
    Row("program, unfit", image.LIBRARY, _UNFIT,
        unless=f"{_CLUSTER}, module, a driver, no gpu inside, way, rdma, several machines, storage, engine, gpus none"),
    Row("collective, stands still", collective.WATCHDOG, "Ranks are said to wait in vain for one.", unless=_CLUSTER),
    Row("collective, does not join", connections.UNREACHABLE, _APART, unless=_CLUSTER),
)  # fmt: skip

# What a complaint is about, where nothing more is understood: asked last, of all that was told together.
LAST: tuple[Row, ...] = (
    Row("imex, trouble", fabric.CHANNEL, "Nodes are said not to share memory over NVLink.", unless=_CLUSTER),
    Row("multicast, trouble", fabric.NVLS, "Multicast over NVLink is said not to work.", unless=_CLUSTER),
    Row("shared memory, trouble", host_limits.SHM, _SHM, unless=_CLUSTER),
    Row("locked memory, trouble", host_limits.LOCKED, _LOCKED, unless=_CLUSTER),
    Row("killed for memory, trouble", memory.HOST, "The container is said to run out of the host's memory.",
        unless=_CLUSTER),
    Row("gid, trouble", rdma_errors.GID, "The address that RDMA uses is said to be the wrong one.", unless=_CLUSTER),
    Row("direct, trouble", gpudirect.NOT_LOADED, _NO_DIRECT, unless=_CLUSTER),
    Row("launcher, trouble, program", connections.MPI, "The launcher is said not to start the ranks.",
        unless=_CLUSTER),
    Row("several machines, collective, trouble", connections.UNREACHABLE, _APART, unless=_CLUSTER),
    Row("rdma, collective, trouble", connections.SOCKET, _NOT_USED, unless=_CLUSTER),
    Row("ray, trouble, gpus", no_device.TASK, "Ray shows a task the GPUs that it asked for.", unless=_CLUSTER),
    Row("compute level, trouble, program", image.NO_KERNEL, _NO_CODE, unless=_CLUSTER),
    Row("cuda release, a driver, trouble", image.TOO_OLD, "The CUDA at hand is said to want a newer driver.",
        unless=f"{_CLUSTER}, module"),
    Row("cuda release, image, trouble", image.LIBRARY, _UNFIT, unless=f"{_CLUSTER}, module"),
    Row("libraries, program, trouble", image.LIBRARY, _UNFIT, unless=f"{_CLUSTER}, module, a driver"),
    Row("device memory, program, trouble", memory.FULL, "Memory of the GPU is said not to do.", unless=_CLUSTER),
    Row("peer path, trouble, of a card", peer_access.BLOCKED, _BLOCKED, unless=_CLUSTER),
    Row("several cards, program, trouble", peer_access.BLOCKED, _BLOCKED, unless=f"{_CLUSTER}, module, a driver"),
    Row("collective, trouble", connections.UNREACHABLE, _APART, unless=_CLUSTER),
)  # fmt: skip
