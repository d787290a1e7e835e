"""CUDA and the Linux driver."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from berth.diagnosis.versions.number import is_below, number

RELEASE_NOTES = "CUDA Toolkit release notes, table of toolkits and driver versions"
COMPATIBILITY = "CUDA Compatibility, minor version compatibility"


class Toolkit(Struct, frozen=True):
    """A toolkit and the Linux driver that came with its first release: with it nothing is left out."""

    cuda: str
    driver: str


class Major(Struct, frozen=True):
    """All toolkits of one major version run on a driver from `floor` on, some new functions excepted. With the
    libraries of a cuda-compat package in the image, data centre GPUs (no GeForce, no TITAN) run it on the branches from
    `forward` on that NVIDIA maintains."""

    major: int
    floor: str
    forward: int  # branch; the oldest that NVIDIA_REQUIRE_CUDA of the nvidia/cuda images lets through
    oldest: str  # compute capability that its libraries and compiler know


# Source: RELEASE_NOTES, of 13.2. CUDA 9.1 is left out (two floors are documented), 12.7 was not released.
TOOLKITS: tuple[Toolkit, ...] = (
    Toolkit("8.0", "367.48"),
    Toolkit("9.0", "384.81"),
    Toolkit("9.2", "396.26"),
    Toolkit("10.0", "410.48"),
    Toolkit("10.1", "418.39"),
    Toolkit("10.2", "440.33"),
    Toolkit("11.0", "450.51.05"),
    Toolkit("11.1", "455.23"),
    Toolkit("11.2", "460.27.03"),
    Toolkit("11.3", "465.19.01"),
    Toolkit("11.4", "470.42.01"),
    Toolkit("11.5", "495.29.05"),
    Toolkit("11.6", "510.39.01"),
    Toolkit("11.7", "515.43.04"),
    Toolkit("11.8", "520.61.05"),
    Toolkit("12.0", "525.60.13"),
    Toolkit("12.1", "530.30.02"),
    Toolkit("12.2", "535.54.03"),
    Toolkit("12.3", "545.23.06"),
    Toolkit("12.4", "550.54.14"),
    Toolkit("12.5", "555.42.02"),
    Toolkit("12.6", "560.28.03"),
    Toolkit("12.8", "570.26"),
    Toolkit("12.9", "575.51.03"),
    Toolkit("13.0", "580.65.06"),
    Toolkit("13.1", "590.44.01"),
    Toolkit("13.2", "595.45.04"),
)

# Source: COMPATIBILITY for the floors; NVIDIA_REQUIRE_CUDA of nvidia/cuda 12.0 and 13.2 for `forward`; RELEASE_NOTES,
# deprecated architectures, for `oldest` (12.0 left Kepler out, 13.0 Maxwell, Pascal and Volta).
MAJORS: tuple[Major, ...] = (
    Major(12, "525.60.13", 450, "5.0"),
    Major(13, "580", 535, "7.5"),
)

_CONSUMER = re.compile(r"geforce|\btitan\b", re.IGNORECASE)
_CONDITION = re.compile(r"(?P<what>cuda|driver|brand|arch)(?P<how>>=|<=|!=|>|<|=)(?P<value>[\w.]+)")
# An image says its toolkit in its tag: nvidia/cuda:13.0.1-base-ubuntu24.04, pytorch:2.9.1-cuda13.0-cudnn9, vllm:cu130
_CUDA_IMAGE = re.compile(r"(?:^|/)nvidia/cuda(?:-arm64)?:(?P<cuda>\d{2}\.\d)")
_IN_TAG = re.compile(r"(?:^|[-_.])cu(?:da)?-?(?P<major>\d{2})\.?(?P<minor>\d)(?!\d)")


def major_of(cuda: str) -> Major | None:
    return next((one for one in MAJORS if number(cuda)[:1] == (one.major,)), None)


def is_consumer(product: str) -> bool:
    """A GPU that forward compatibility is not made for."""
    return _CONSUMER.search(product) is not None


def floor_missed(cuda: str, driver: str, product: str) -> str:
    """The oldest driver that runs a toolkit of this version, where the given one is certainly older and no rule of
    compatibility helps; "" otherwise. `product` is the GPU's name, "" where it is not known."""
    major = major_of(cuda)
    if major is None or not is_below(driver, major.floor):
        return ""
    helped = not is_consumer(product) and not is_below(driver, str(major.forward))
    return "" if helped else major.floor


@lru_cache(maxsize=1024)  # many pods have one image
def cuda_of(image: str) -> str:
    """The toolkit that an image's name says: "13.0"; "" where it does not."""
    name = image.partition("@")[0]
    if found := _CUDA_IMAGE.search(name):
        return found["cuda"]
    found = _IN_TAG.search(name.rpartition("/")[2].partition(":")[2])
    return f"{found['major']}.{found['minor']}" if found else ""


def cuda_required(requirement: str) -> str:
    """The version that NVIDIA_REQUIRE_CUDA begins with: `cuda>=13.0 brand=tesla,driver>=535,driver<536` → "13.0"."""
    found = re.match(r"\s*cuda>=(\d+\.\d+)", requirement)
    return found[1] if found else ""


def is_refused(requirement: str, driver: str, product: str) -> bool:
    """Is every alternative of NVIDIA_REQUIRE_CUDA but the first certainly not met? The first (`cuda>=…`) is what
    floor_missed() answers. Alternatives stand between blanks, their conditions between commas."""
    return not any(_may_hold(clause, driver, product) for clause in requirement.split() if "driver" in clause)


def _may_hold(clause: str, driver: str, product: str) -> bool:
    for condition in clause.split(","):
        found = _CONDITION.match(condition)
        if found is None:
            continue
        if found["what"] == "brand":
            # Which brand NVML gives a card of the data centre depends on its generation; GeForce and TITAN are plain.
            if is_consumer(product) and found["value"] not in ("geforce", "titan"):
                return False
        elif found["what"] == "driver" and not _holds(number(driver), found["how"], number(found["value"])):
            return False
    return True


def _holds(have: tuple[int, ...], how: str, need: tuple[int, ...]) -> bool:
    if not have:
        return True
    return {
        ">=": have >= need,
        ">": have > need,
        "<=": have <= need,
        "<": have < need,
        "=": have == need,
        "!=": have != need,
    }[how]
