"""The public data that figures are measured with: what it is, where it is from, and whether a copy is intact.

Nothing is downloaded. A copy is a folder that holds `traces/<folder>` for each set below; README.md files in
it are notes and are left out of the sums. Hashes are SHA-256.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

NOTES = "README.md"
CHUNK_BYTES = 1 << 20
MAX_FILES = 10_000
MAX_GROWTH = 4

VERIFIED, MISSING, DIFFERENT = "verified", "missing", "different"


@dataclass(frozen=True)
class Dataset:
    """One public data set at one commit.

    `sha256` is the hash of the lines `<file's hash>  <path in the folder>`, sorted by path; `file_sha256`
    names the hash of single files where a difference should be told file by file.
    """

    name: str
    folder: str
    holds: str
    source: str
    commit: str
    licence: str
    cite: str
    files: int
    size_bytes: int
    sha256: str
    file_sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Checked:
    """What one folder's copy is worth: `state` is verified, missing or different; `detail` says how."""

    dataset: Dataset
    state: str
    detail: str


def datasets() -> tuple[Dataset, ...]:
    """All sets that Berth knows, those of the packing experiment first."""
    return DATASETS


def verify(root: Path) -> list[Checked]:
    """Compare the copy under `root` with what each set should hold. Sets that are far too large go unread."""
    return [_check(root / dataset.folder, dataset) for dataset in DATASETS]


def _check(folder: Path, dataset: Dataset) -> Checked:
    if not folder.is_dir():
        return Checked(dataset, MISSING, f"{folder} does not exist")
    try:
        found = _files(folder)
        if found is None:
            return Checked(dataset, DIFFERENT, f"{folder} holds more than {MAX_FILES} files")
        absent = sorted(dataset.file_sha256.keys() - found.keys())
        extra = sorted(found.keys() - dataset.file_sha256.keys()) if dataset.file_sha256 else []
        if absent or extra:
            told = [f"lacks {name}" for name in absent] + [f"has {name} in addition" for name in extra]
            return Checked(dataset, DIFFERENT, _some(told))
        size = sum(found.values())
        counts = f"holds {len(found)} files of {size} bytes, not {dataset.files} of {dataset.size_bytes}"
        if size > MAX_GROWTH * dataset.size_bytes:
            return Checked(dataset, DIFFERENT, counts)
        hashes = {name: _hash(folder / name) for name in sorted(found)}
    except OSError as error:
        return Checked(dataset, DIFFERENT, f"{error.filename or folder} cannot be read: {error.strerror}")
    changed = [f"{name} differs" for name, sha256 in dataset.file_sha256.items() if hashes[name] != sha256]
    if changed:
        return Checked(dataset, DIFFERENT, _some(changed))
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in hashes.items())
    if hashlib.sha256(lines.encode()).hexdigest() != dataset.sha256:
        same_counts = (len(found), size) == (dataset.files, dataset.size_bytes)
        return Checked(dataset, DIFFERENT, "a file differs in content or name" if same_counts else counts)
    return Checked(dataset, VERIFIED, f"{dataset.files} files, {dataset.size_bytes} bytes")


def _files(folder: Path) -> dict[str, int] | None:
    """Size by path in the folder, without notes; None where there are too many. Links are not followed."""
    found: dict[str, int] = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = Path(at) / name
            if name == NOTES or not path.is_file():
                continue
            if len(found) == MAX_FILES:
                return None
            found[path.relative_to(folder).as_posix()] = path.stat().st_size
    return found


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _some(told: list[str]) -> str:
    return "; ".join(told[:5]) + (f"; and {len(told) - 5} more" if len(told) > 5 else "")


_OPENB_FILES = MappingProxyType(
    {
        "LICENSE-Apache-2.0.txt": "c71d239df91726fc519c6eb72d318ec65820627232b2f796219e87dcf35d0ab4",
        "openb_node_list_all_node.csv": "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15",
        "openb_node_list_gpu_node.csv": "2beca64b4d3dfa342036a34b56a495c6cef9225db836c81f541282cb1df320b5",
        "openb_pod_list_cpu037.csv": "8ed554026d041b15ff21ddc104d9a21dbd9a93c496262fa23ef7b5be27e220dc",
        "openb_pod_list_cpu050.csv": "747f43247bffc2b0bb081d7f61f0705ca8d390dafc0b647e642c92f3baf3ba1e",
        "openb_pod_list_cpu072.csv": "f8a2b031461b54d7b9f06d55473c2371eb3357b78a255c646bdca5e0833a8a2f",
        "openb_pod_list_cpu100.csv": "bec1c33fbdde61fd463877534ec79b393aec73e1cbb22d55fab9f166ac480982",
        "openb_pod_list_cpu200.csv": "b7e9d8a1a601da84d6e0b4110b19ef5001be5e4796d33e7b82f166ba95161f87",
        "openb_pod_list_cpu235.csv": "87bebd4d012faa8305ce1fd82737f51cf03361aac28b75d42e34aa656d7f4ee0",
        "openb_pod_list_cpu250.csv": "134c21ff96d57533df8a37b67632972884fec9396e77cd0898ddc370cc8e607d",
        "openb_pod_list_cpu300.csv": "76528825f40ee662cb098b3b6e683c1efd9f87a0c8af7e628df1f32c639636d1",
        "openb_pod_list_default.csv": "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
        "openb_pod_list_gpushare100.csv": "12dbc07d6a49bf8641e2275a2ff5bf7be74b5df7d148d531e135b140b95f9a3d",
        "openb_pod_list_gpushare20.csv": "9be2d0efb52e242c32e23dd184cc5fcc1983478c6c9c02cbb6b4b62925c0ffcd",
        "openb_pod_list_gpushare40.csv": "d83ce79a4eb6987524bedbb0c65e41aed3a36bf6c1b78b86234c3687a07e1d40",
        "openb_pod_list_gpushare60.csv": "d31809628128a1f24491086eda4af3e23882b9213d3ef57a56ee2d1af69492fe",
        "openb_pod_list_gpushare80.csv": "88b6649369ced40d0fde287d2498ea61ff4b05fccba8bdc95daf6042f2f8431e",
        "openb_pod_list_gpuspec05.csv": "8f1c0ef7e4e511e982bd2818898ba22ee6d273bf5fce124b7ace285b5928cf4e",
        "openb_pod_list_gpuspec10.csv": "2dc7e4cb9480484f08539720b433a9ec9ab5d76b396f3f7557c53a2ff78a7611",
        "openb_pod_list_gpuspec20.csv": "6b9b89ab8913c1c074e994e98f548cf1a872fc5f76f2442ca8cd514a478b00a9",
        "openb_pod_list_gpuspec25.csv": "9d030679a2ccd7e27a7ec9ff15baff34480d22a0012515691fc187e3f35ee68c",
        "openb_pod_list_gpuspec33.csv": "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652",
        "openb_pod_list_multigpu20.csv": "d9ec6f6c74fb980cc0b81239470c6353fceea077ea9abd610003b604c7cc2b01",
        "openb_pod_list_multigpu30.csv": "a5e479c6444b1d83eef848159cf00c3cfa13441b2d1e2c113c391b91f1cc5b11",
        "openb_pod_list_multigpu40.csv": "32c9e8731ca07ef96108aa65f2a289bb9aacb47f642ed9e3789f99b242df60eb",
        "openb_pod_list_multigpu50.csv": "206f2f5959db30ecb7c44e7f13197c8ec50b7a35558ad3777cc3662ef0fe5373",
    }
)

_FGD_FILES = MappingProxyType(
    {
        "analysis_allo_discrete.csv": "e00aff5923a52d53e47c16ec9d19190de4e788c15334865a77bd46e1bd006ea1",
        "analysis_frag_discrete.csv": "0d9181864ef9adb2169f232124c6af767579fe2a3c08f940419b4989420c8ce2",
        "published_summary.csv": "3ecfd7ef3c5f0abebf1136b914aafdd55c51c2ef210092f99efe611900829e93",
    }
)

DATASETS = (
    Dataset(
        name="openb",
        folder="traces/openb-v2023",
        holds=(
            "The packing experiment's cluster (1,213 GPU nodes, 6,212 GPUs) and 23 lists of pods; a "
            "list's name says which share of it was raised."
        ),
        source="github.com/hkust-adsl/kubernetes-scheduler-simulator, data/csv",
        commit="8f3d6417353c5083c6d56617f255fadd8dc306bc",
        licence="Apache-2.0",
        cite="Weng et al., Beware of Fragmentation, USENIX ATC 2023",
        files=26,
        size_bytes=12_349_616,
        sha256="60b26e89701828a247a636439b91bc45fe5ab99453312658e78f32072c86b40d",
        file_sha256=_OPENB_FILES,
    ),
    Dataset(
        name="fgd",
        folder="traces/fgd-atc23-results",
        holds=("Published results of the packing experiment: 6 policies, 17 traces, 10 seeds, and their summary."),
        source=("github.com/hkust-adsl/kubernetes-scheduler-simulator, experiments/analysis/expected_results"),
        commit="8f3d6417353c5083c6d56617f255fadd8dc306bc",
        licence="Apache-2.0",
        cite="Weng et al., Beware of Fragmentation, USENIX ATC 2023",
        files=3,
        size_bytes=1_769_126,
        sha256="8d5c3b4eeb011729cd7ab29c32c57a77835e76ca7d59e4b74937bed45ec9e946",
        file_sha256=_FGD_FILES,
    ),
    Dataset(
        name="muri",
        folder="traces/muri-philly",
        holds=(
            "Four virtual clusters of Philly as job lists for 8 nodes of 8 GPUs, and published "
            "completion times of seven policies."
        ),
        source="github.com/Rivendile/Muri",
        commit="4e69a78ce75f629a5a00abd48150a1860b341ce6",
        licence="Apache-2.0; derives from Philly, CC BY 4.0",
        cite="Zhao et al., Multi-Resource Interleaving for Deep Learning Training, SIGCOMM 2022",
        files=16,
        size_bytes=1_605_259,
        sha256="e924e6c514316afe0595b17fc1de38cc368e3c8b5be06fcca687b03437b1f22c",
    ),
    Dataset(
        name="philly",
        folder="traces/philly-pollux",
        holds="82,247 jobs of Microsoft's Philly clusters, September to December 2017, tidied.",
        source="github.com/petuum/adaptdl, branch osdi21-artifact, simulator/traces",
        commit="c793c7089bd307462686339d29707925c461f9a9",
        licence="CC BY 4.0 (Philly); Apache-2.0 (repository)",
        cite="Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters, USENIX ATC 2019",
        files=2,
        size_bytes=3_463_149,
        sha256="7ac0d96d32ff5d84c9df4e1191032dd01b28f37b3367dfb62309bae0ac19964d",
    ),
    Dataset(
        name="itp",
        folder="traces/elasticflow-itp",
        holds="69,351 jobs of ten Microsoft clusters, March to May 2021.",
        source="github.com/microsoft/elasticflow-traces",
        commit="277ed24d0e908c31a1c98145819e2e3853d8ac00",
        licence="MIT",
        cite="Gu et al., ElasticFlow, ASPLOS 2023",
        files=12,
        size_bytes=3_644_601,
        sha256="f709af0d882a08368758ff14eab657e9eaf5b427eb01b222e18b8b1fc4bd527e",
    ),
    Dataset(
        name="pollux",
        folder="traces/pollux-osdi21",
        holds=("Elastic training workloads at four loads, measured step times, and results of three policies."),
        source="github.com/petuum/adaptdl, branch osdi21-artifact, simulator",
        commit="c793c7089bd307462686339d29707925c461f9a9",
        licence="Apache-2.0",
        cite="Qiao et al., Pollux, OSDI 2021",
        files=105,
        size_bytes=1_334_141,
        sha256="493676dfe86e7e33a8f19a42c4d22c016b44f1ac7ee35bfca1b699021eeda6ce",
    ),
    Dataset(
        name="gavel",
        folder="traces/gavel-osdi20",
        holds=("Throughputs of 26 kinds of jobs on three GPU models, alone and sharing, and small job lists."),
        source="github.com/stanford-futuredata/gavel",
        commit="c4fa40097339e9608ab71fd64c8bdea96a5e4a4c",
        licence="MIT",
        cite="Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies, OSDI 2020",
        files=10,
        size_bytes=1_282_642,
        sha256="4afdddc54540a8c0a6df8bbc533b19a8a67c29d4c6db347710cf28a5fc2cd8e8",
    ),
    Dataset(
        name="pai",
        folder="traces/pai-v2020-machines",
        holds="The machines of Alibaba's PAI cluster: 1,897 with 6,742 GPUs. No jobs.",
        source="github.com/qzweng/clusterdata-cluster-trace-gpu-v2020-data",
        commit="e60d925fec479a526f4fb99379dfadefeab30c8e",
        licence="CC BY 4.0",
        cite="Weng et al., MLaaS in the Wild, NSDI 2022",
        files=2,
        size_bytes=92_005,
        sha256="6151d10d7986431a2277011d6d2a7ad2b75b3fe55f3c49ebd0e74d1b0a4f52d7",
    ),
)
