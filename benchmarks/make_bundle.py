"""A must-gather of a GPU Operator cluster, or one nvidia-bug-report, as large as is asked for: mostly logs in which
nothing is wrong, and a few faults among them.

The layout is the operator's script's and the driver's script's; the sentences are ours, after their formats.
"""

from __future__ import annotations

import argparse
import gzip
import random
from collections.abc import Iterator
from pathlib import Path

MIB = 2**20

KERNEL_LOG = (
    "[{s:12.6f}] usb 1-1.4: new high-speed USB device number {n} using xhci_hcd",
    "[{s:12.6f}] IPv6: ADDRCONF(NETDEV_CHANGE): cali{n:08x}: link becomes ready",
    "[{s:12.6f}] nvidia 0000:{bus:02x}:00.0: enabling device (0140 -> 0142)",
    "[{s:12.6f}] nvidia-nvlink: Nvlink Core is being initialized, major device number {n}",
    "[{s:12.6f}] EXT4-fs (nvme{n}n1): mounted filesystem with ordered data mode. Opts: (null)",
    "[{s:12.6f}] docker0: port {n}(veth{n:07x}) entered blocking state",
)
PLUGIN_LOG = (
    "I1129 {h:02}:{m:02}:{n:02}.120331       1 server.go:{n}] serves ListAndWatch, GPU {n} of 8",
    "I1129 {h:02}:{m:02}:{n:02}.512310       1 server.go:{n}] Allocate: GPU-{n:08x}-aaaa-bbbb-cccc-0123456789ab",
    '{{"level":"info","ts":"2026-11-29T{h:02}:{m:02}:{n:02}Z","msg":"reconciled","controller":"clusterpolicy","name":"gpu-cluster-policy"}}',
    "2026-11-29T{h:02}:{m:02}:{n:02}.000Z INFO  handler labelled node gpu-{n} in {n} ms",
)
_FAULTS = (
    "[{s:12.6f}] NVRM: Xid (PCI:0000:{bus:02x}:00): 79, pid=4242, name=python, GPU has fallen off the bus.",
    "[{s:12.6f}] NVRM: Xid (PCI:0000:{bus:02x}:00): 45, pid=4242, name=python, Ch 00000008",
)


def lines(rng: random.Random, forms: tuple[str, ...], size: int, faults: int = 0) -> Iterator[str]:
    """So many bytes of log lines, at least."""
    written, at = 0, 0.0
    fault_every = size // (faults + 1)
    until_fault = fault_every
    while written < size:
        at += rng.random()
        kind = forms
        if faults and written > until_fault:
            kind, faults, until_fault = _FAULTS, faults - 1, until_fault + fault_every
        line = rng.choice(kind).format(
            s=at, n=rng.randrange(60), h=rng.randrange(24), m=rng.randrange(60), bus=rng.choice((0x1B, 0x43, 0x9C))
        )
        written += len(line) + 1
        yield line


def bug_report(rng: random.Random, size: int, faults: int = 2) -> str:
    """Sections between lines of underscores, the kernel's log the largest of them."""
    rule = "_" * 44
    sections = [
        "Start of NVIDIA bug report log file.  Please include this file.\n\nnvidia-bug-report.sh Version: 39000000",
        "*** /proc/driver/nvidia/version\n*** ls: -r--r--r-- 1 root root 0\n"
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build\n"
        "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)",
        "/usr/bin/dmesg\n" + "\n".join(lines(rng, KERNEL_LOG, size * 3 // 4, faults)),
        "/usr/bin/journalctl -b -0\n" + "\n".join(lines(rng, PLUGIN_LOG, size // 4)),
        "/sbin/lsmod\nModule                  Size  Used by\nnvidia_uvm           4964352  2\n"
        "nvidia              71966720  57 nvidia_uvm",
    ]
    return f"\n{rule}\n\n".join(sections) + f"\n{rule}\n"


def must_gather(folder: Path, size: int, nodes: int = 4, seed: int = 1) -> None:
    """The files that the operator's script leaves, `size` bytes of them in all, bug reports unpacked."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"gpu-{number}" for number in range(nodes)]
    (folder / "cluster_policy.yaml").write_text(
        "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata:\n  name: gpu-cluster-policy\n"
        "spec:\n  driver: {enabled: true, version: 590.48.01}\nstatus:\n  state: ready\n"
    )
    (folder / "gpu_nodes.status").write_text(
        "NAME STATUS ROLES AGE VERSION\n" + "".join(f"{name} Ready <none> 40d v1.34.2\n" for name in names)
    )
    operands = ("nvidia-device-plugin-daemonset", "nvidia-container-toolkit-daemonset", "nvidia-driver-daemonset")
    each = size * 2 // 5 // (len(operands) * nodes)
    for operand in operands:
        for number in range(nodes):
            log = folder / f"gpu_operand_pod_{operand}-{number:05x}.log"
            log.write_text("\n".join(lines(rng, PLUGIN_LOG, each)))
    (folder / "gpu_operator_pod.log").write_text("\n".join(lines(rng, PLUGIN_LOG, size // 5)))
    for number, name in enumerate(names):
        text = bug_report(rng, size * 2 // 5 // nodes, faults=2 if number == 0 else 0)
        with gzip.open(folder / f"nvidia-bug-report_{name}.log.gz", "wb", compresslevel=1) as file:
            file.write(text.encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--mib", type=int, default=50)
    parser.add_argument("--kind", choices=("must-gather", "bug-report"), default="must-gather")
    given = parser.parse_args()
    if given.kind == "must-gather":
        must_gather(given.path, given.mib * MIB)
    else:
        given.path.write_text(bug_report(random.Random(1), given.mib * MIB))


if __name__ == "__main__":
    main()
