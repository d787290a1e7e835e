"""Published figures that the built-in day is calibrated to, written down so that no file is needed.

Sources, each measured from the public files with the percentiles of NumPy (linear):

openb   Alibaba cluster-trace-gpu-v2023, pod list `default`, 8,152 pods (Weng et al., "Beware of
        Fragmentation", USENIX ATC 2023; Apache-2.0): shares of kinds, requests, model-constrained pods.
Philly  Microsoft Philly, 82,247 jobs of 2017 in the tidy form of the Pollux authors (Jeon et al., USENIX ATC
        2019; CC BY 4.0): sizes, durations, arrivals by hour.
ITP     Microsoft ITP, 69,351 jobs of 10 clusters of 2021 (Gu et al., "ElasticFlow", ASPLOS 2023; MIT): sizes,
        durations, arrivals by hour.
"""

from __future__ import annotations

from typing import NamedTuple

# openb: share of all pods, by what they ask for.
CPU_ONLY_SHARE = 0.1335
FRACTION_SHARE = 0.3776
ONE_GPU_SHARE = 0.4798
SEVERAL_GPUS_SHARE = 0.0092


# Share of jobs by number of GPUs. Philly's 12, 24 and 128 GPUs (0.02 % together) are left out.
GPUS_PHILLY: dict[int, float] = {
    1: 0.9317, 2: 0.0221, 4: 0.0227, 8: 0.0200, 16: 0.0024, 32: 0.0008, 64: 0.0001,
}  # fmt: skip
GPUS_ITP: dict[int, float] = {
    1: 0.8317, 2: 0.0214, 4: 0.0342, 8: 0.1011, 16: 0.0055, 32: 0.0051, 64: 0.0010,
}  # fmt: skip

PERCENTILES = (10, 25, 50, 75, 90, 95, 99)


class Durations(NamedTuple):
    """Seconds at PERCENTILES of the jobs that ask for at most `gpus` GPUs and more than the row before."""

    gpus: int
    philly: tuple[int, ...]
    itp: tuple[int, ...]


DURATIONS: tuple[Durations, ...] = (
    Durations(1, (62, 122, 1117, 2716, 8512, 19137, 135399), (1288, 3909, 10132, 14368, 25322, 28837, 84626)),
    Durations(4, (15, 21, 367, 45388, 166120, 233082, 747317), (1282, 2981, 4260, 16971, 73510, 151328, 646894)),
    Durations(
        8,
        (216, 1876, 23683, 173248, 351982, 525618, 1060498),
        (1975, 7216, 18320, 49419, 130125, 207475, 507811),
    ),
    Durations(
        16,
        (62, 393, 37188, 162017, 338082, 505394, 1139333),
        (928, 3225, 31780, 74582, 180777, 311900, 443025),
    ),
    Durations(
        1024,
        (330, 874, 3718, 50800, 59596, 77355, 144112),
        (1875, 5417, 75042, 118687, 198126, 281503, 550029),
    ),
)

# openb: seconds at PERCENTILES between scheduled and deleted, of pods that share a GPU (class BE) and of
# CPU-only pods (class LS).
FRACTION_DURATIONS = (53, 131, 367, 1486, 9919, 21256, 74629)
CPU_ONLY_DURATIONS = (100, 251, 605, 1416, 3589, 6012, 18498)

# Arrivals in the busiest hour of the day over those in the quietest: Philly 3.3, ITP 2.0. Which hour is the
# busiest cannot be told from the files (their time zone is not stated): here it is the afternoon.
PEAK_OVER_TROUGH = 2.6
BUSIEST_HOUR = 15.0


class Ask(NamedTuple):
    """A request of openb: CPU in milli-cores, memory in MiB, GPU milli, pods of the list that ask for it."""

    cpu: int
    memory_mib: int
    gpu_milli: int
    pods: int


# The commonest requests of each kind; in brackets the share of the kind's pods that they cover.
FRACTIONS: tuple[Ask, ...] = (  # 77 %
    Ask(3152, 5600, 810, 1047),
    Ask(11908, 47104, 470, 388),
    Ask(8000, 30517, 470, 360),
    Ask(11908, 47104, 650, 237),
    Ask(4000, 22888, 320, 111),
    Ask(4000, 30517, 230, 84),
    Ask(4000, 15258, 320, 78),
    Ask(3152, 5600, 590, 75),
)
ONE_GPU: tuple[Ask, ...] = (  # 71 %
    Ask(11300, 49152, 1000, 857),
    Ask(11400, 48128, 1000, 534),
    Ask(3152, 5600, 1000, 470),
    Ask(18708, 64512, 1000, 255),
    Ask(9810, 41560, 1000, 195),
    Ask(12000, 24576, 1000, 158),
    Ask(15700, 58368, 1000, 158),
    Ask(11908, 47104, 1000, 153),
)
CPU_ONLY: tuple[Ask, ...] = (  # 94 %
    Ask(12500, 57344, 0, 364),
    Ask(32000, 49152, 0, 284),
    Ask(8000, 30517, 0, 163),
    Ask(15400, 51200, 0, 120),
    Ask(16500, 51200, 0, 95),
)
# CPU milli and memory MiB of the commonest pods with several GPUs (variant multigpu50, where they are many).
SEVERAL: dict[int, tuple[int, int]] = {2: (16200, 66560), 4: (32200, 132096), 8: (64200, 263168)}
