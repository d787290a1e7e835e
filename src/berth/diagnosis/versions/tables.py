"""All rows as Markdown: the section Versions of docs/doctor.md is made of it, and a test compares the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from berth.diagnosis.versions import cards, claims, collectives, cuda, fabric, monitoring, operator, runtimes, toolkit


def markdown() -> str:
    """The tables, each under its heading."""
    parts = (f"#### {heading}\n\n{_table(head, rows)}" for heading, head, rows in _tables())
    return "\n\n".join(parts) + "\n"


def _tables() -> Iterator[tuple[str, tuple[str, ...], Iterable[tuple[str, ...]]]]:
    yield (
        "CUDA and the Linux driver",
        ("CUDA", "driver of its first release"),
        ((one.cuda, one.driver) for one in cuda.TOOLKITS),
    )
    yield (
        "CUDA across versions",
        ("CUDA", "any toolkit of it runs from driver", "with cuda-compat, data centre GPUs from branch", "GPUs from"),
        ((f"{one.major}.x", one.floor, str(one.forward), one.oldest) for one in cuda.MAJORS),
    )
    yield (
        "GPUs and driver branches",
        ("generation", "compute capability", "branches", "kernel modules", "NVLink", "MIG"),
        (
            (
                one.name,
                ", ".join(one.capabilities),
                f"{one.first or '…'} to {one.last or '…'}",
                " or ".join(["open"] * one.open_modules + ["proprietary"] * one.closed_modules),
                str(one.nvlink or "–"),
                ", ".join(one.mig) or "–",
            )
            for one in cards.GENERATIONS
        ),
    )
    yield "Boards", ("board", "needs"), cards.BOARDS
    yield (
        "GPU Operator",
        ("operator", "toolkit", "driver branch", "Kubernetes", "containerd", "CDI by default", "drop-in"),
        (
            (
                one.version, one.toolkit, one.driver, one.kubernetes, one.containerd, _yes(one.is_cdi_default),
                _yes(one.is_drop_in),
            )
            for one in operator.OPERATORS
        ),
    )  # fmt: skip
    yield (
        "NVIDIA Container Toolkit",
        ("from", "does", "source"),
        ((one.since, one.does, one.source) for one in toolkit.RELEASES),
    )
    yield (
        "containerd",
        ("version of the configuration", "containerd from"),
        ((str(one.version), one.containerd) for one in runtimes.CONFIGURATIONS),
    )
    yield (
        "Kubernetes and containerd",
        ("Kubernetes", "containerd from"),
        (
            *((one.kubernetes, ", ".join(one.containerd)) for one in runtimes.RECOMMENDED),
            ("cgroup driver from the runtime", runtimes.RUNTIME_CONFIG_SINCE),
        ),
    )
    yield (
        "Resource claims",
        ("Kubernetes", "resource.k8s.io", "by default"),
        ((one.kubernetes, ", ".join(one.versions), _yes(one.is_default)) for one in claims.SERVED),
    )
    yield (
        "NVIDIA's driver for claims",
        ("for", "Kubernetes", "GPU driver"),
        ((one.what, one.kubernetes, one.driver) for one in claims.NEEDS),
    )
    yield (
        "Feature gates",
        ("gate", "alpha", "beta", "stable"),
        ((one.name, one.alpha, one.beta, one.stable) for one in claims.GATES),
    )
    yield (
        "The driver's own version",
        ("package", "the same"),
        ((one.package, {3: "version", 1: "branch", 0: "–"}[one.parts]) for one in fabric.COMPANIONS),
    )
    yield (
        "DCGM",
        ("GPUs", "DCGM from"),
        (*((one.generation, one.dcgm) for one in monitoring.FLOORS), (f"(driver {monitoring.OLDEST_DRIVER})", "3.0")),
    )
    yield (
        "NCCL",
        ("GPUs", "NCCL from", "compiled with CUDA from"),
        ((one.generation, one.nccl or "–", one.cuda) for one in collectives.FLOORS),
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _yes(does: bool) -> str:
    return "yes" if does else "no"
