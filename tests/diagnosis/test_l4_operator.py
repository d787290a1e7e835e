"""Layer 4: what is no finding, traps, and which of two causes is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from asked import codes, of_text

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.diagnosis.words import Layer
from berth.evidence.piece import Piece, piece
from berth.evidence.read import read

SAMPLES = Path(os.environ.get("BERTH_DATA", "")) / "samples"
NOTES = {"ValidatorPodCompleted"}  # what a healthy list may be explained with


def of(*pieces: tuple[str, str]) -> Diagnosis:
    found = [piece(text, kind, f"{kind} {number}") for number, (kind, text) in enumerate(pieces)]
    return diagnose(read(found))


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="BERTH_DATA has no samples")
@pytest.mark.parametrize(
    "folder", ["kubectl", "gfd-labels", "node-json", "dcgm-metrics", "mig-parted", "pod-events", "gang"]
)
def test_healthy_samples_have_no_finding(folder: str) -> None:
    for path in sorted((SAMPLES / folder).iterdir()):
        assert codes(diagnose(read([Piece(path.read_bytes(), source=path.name)]))) <= NOTES, path.name


HEALTHY_MIG_MANAGER = """\
time="2025-01-01T00:00:00Z" level=info msg="Updating to MIG config: all-1g.10gb"
Current value of 'nvidia.com/gpu.deploy.device-plugin=true'
Selected MIG configuration is valid
Changing the 'nvidia.com/mig.config.state' node label to 'pending'
Shutting down all GPU clients in Kubernetes by disabling their component-specific nodeSelector labels
node/gpu-1 labeled
Waiting for the device-plugin to shutdown
pod/nvidia-device-plugin-daemonset-7xkzt condition met
Applying the MIG mode change from the selected config to the node (and double checking it took effect)
time="2025-01-01T00:00:20Z" level=debug msg="    Asserting MIG mode: Enabled"
time="2025-01-01T00:00:20Z" level=debug msg="    Current MIG mode: Enabled"
MIG configuration applied successfully
Restarting all GPU clients previously shutdown in Kubernetes by reenabling their component-specific nodeSelector labels
Changing the 'nvidia.com/mig.config.state' node label to 'success'
"""

HEALTHY_EXPORTER = """\
time="2024-06-13T00:00:00Z" level=info msg="Starting dcgm-exporter"
time="2024-06-13T00:00:00Z" level=info msg="DCGM successfully initialized!"
time="2024-06-13T00:00:00Z" level=info msg="Collecting DCP Metrics"
time="2024-06-13T00:00:00Z" level=info msg="Falling back to metric file '/etc/dcgm-exporter/dcp-metrics-included.csv'"
time="2024-06-13T00:00:00Z" level=info msg="Initializing system entities of type: GPU"
time="2024-06-13T00:00:01Z" level=info msg="Not collecting NvSwitch metrics; no switches to monitor"
time="2024-06-13T00:00:01Z" level=info msg="Kubernetes metrics collection enabled!"
time="2024-06-13T00:00:01Z" level=info msg="Starting webserver"
"""

HEALTHY_OPERATOR = """\
{"level":"info","logger":"controllers.ClusterPolicy","msg":"Number of nodes with GPU label","NodeCount":2}
{"level":"info","logger":"controllers.ClusterPolicy","msg":"ClusterPolicy step completed","state:":"state-driver","status":"ready"}
{"level":"info","logger":"controllers.ClusterPolicy","msg":"ClusterPolicy is ready."}
"""  # noqa: E501

HEALTHY_LABELS = """\
feature.node.kubernetes.io/pci-10de.present=true
nvidia.com/gpu-driver-upgrade-state=upgrade-done
nvidia.com/gpu.count=8
nvidia.com/gpu.deploy.container-toolkit=true
nvidia.com/gpu.deploy.device-plugin=true
nvidia.com/gpu.deploy.driver=pre-installed
nvidia.com/gpu.present=true
nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
nvidia.com/gpu.workload.config=container
nvidia.com/mig.capable=true
nvidia.com/mig.config=all-disabled
nvidia.com/mig.config.state=success
"""

HEALTHY_SHARING = """\
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 4
---
Capacity:
  nvidia.com/gpu:  32
Allocatable:
  nvidia.com/gpu:  32
"""


@pytest.mark.parametrize(
    "text",
    [HEALTHY_MIG_MANAGER, HEALTHY_EXPORTER, HEALTHY_OPERATOR, HEALTHY_LABELS, HEALTHY_SHARING,
     "$ ls /run/nvidia/validations\ncuda-ready  driver-ready  plugin-ready  toolkit-ready\n",
     "DCGM_FI_DEV_XID_ERRORS{gpu=\"0\",UUID=\"GPU-1\"} 0\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\"} 0\n"],
    ids=["MIG manager", "exporter", "operator", "labels", "sharing", "validations", "figures"],
)  # fmt: skip
def test_what_is_healthy_is_no_finding(text: str) -> None:
    assert of_text(text).findings == ()


def test_a_former_name_at_0_is_a_trap_and_no_finding() -> None:
    diagnosis = of_text("Capacity:\n  nvidia.com/gpu: 0\n  nvidia.com/mig-1g.10gb: 7\nAllocatable:\n"
                        "  nvidia.com/gpu: 0\n  nvidia.com/mig-1g.10gb: 7\n")  # fmt: skip
    assert diagnosis.findings == ()
    assert [one.code for one in diagnosis.traps] == ["OldResourceAtZero"]


def test_with_the_option_that_renames_it_is_a_finding() -> None:
    written = (
        "sharing:\n  timeSlicing:\n    renameByDefault: true\n    resources:\n"
        "    - name: nvidia.com/gpu\n      replicas: 4\n"
    )
    diagnosis = of(("configmap", written), ("kubectl", "capacity nvidia.com/gpu: 0, nvidia.com/gpu.shared: 4"))
    assert [one.code for one in diagnosis.findings] == ["ReplicasRenamed"]
    assert diagnosis.traps == ()


def test_an_xid_that_the_metric_remembers_is_a_trap() -> None:
    diagnosis = of_text('DCGM_FI_DEV_XID_ERRORS{gpu="3",UUID="GPU-4",pci_bus_id="00000000:86:00.0",Hostname="n"} 31')
    assert diagnosis.findings == ()
    assert diagnosis.traps[0].pci == (0, 0x86, 0)


def test_labels_of_other_nodes_do_not_count_for_this_one() -> None:
    diagnosis = of(
        ("kubectl", "NAME   STATUS   ROLES    AGE   VERSION   MIG.CONFIG   MIG.CONFIG.STATE\n"
                    "g1     Ready    <none>   3d    v1.34.1   all-2g.20gb  success\n"
                    "g2     Ready    <none>   3d    v1.34.1   all-2g.20gb  failed\n"),
    )  # fmt: skip
    assert [(one.code, one.node) for one in diagnosis.findings] == [("MigStateFailed", "g2")]


def test_the_first_part_that_is_not_ready_is_named() -> None:
    at = {
        "": "DriverPodFails",
        "driver-ready": "ValidationStopsAtToolkit",
        "driver-ready toolkit-ready": "ValidationStopsAtCuda",
        "driver-ready toolkit-ready cuda-ready": "ValidationStopsAtPlugin",
    }
    for files, code in at.items():
        assert codes(of_text(f"$ ls /run/nvidia/validations\n{files}\n")) == {code}


def test_a_configuration_for_another_node_is_not_expected_here() -> None:
    text = ("data:\n  slow: |-\n    sharing:\n      timeSlicing:\n        resources:\n        - name: nvidia.com/gpu\n"
            "          replicas: 4\n")  # fmt: skip
    node = (
        "Name:               g1\nRoles:              <none>\n"
        "Labels:             nvidia.com/device-plugin.config=whole\nTaints:             <none>\n"
        "Capacity:\n  nvidia.com/gpu:  2\nAllocatable:\n  nvidia.com/gpu:  2\n"
    )
    assert "ReplicasNotInEffect" not in codes(of(("configmap", text), ("describe", node)))
    assert "ReplicasNotInEffect" in codes(of(("configmap", text), ("describe", node.replace("=whole", "=slow"))))


def test_other_resets_than_those_for_mig_are_not_its_affair() -> None:
    assert "MigGpuInUse" not in codes(of_text("GPU 00000000:01:00.0: In use by another client", "nvidia-smi"))
    assert "MigGpuInUse" in codes(of_text("GPU 00000000:01:00.0: In use by another client", "mig-log"))


def test_profiling_is_not_blamed_where_the_hostengine_is_gone() -> None:
    text = (
        'level=info msg="Not collecting DCP metrics: Error getting supported metrics: Host engine connection '
        'invalid/disconnected"'
    )
    assert [one.code for one in of_text(text).findings] == ["HostengineUnreachable"]


VALIDATOR_STOPS = """\
NAMESPACE      NAME                                     READY   STATUS                  RESTARTS   AGE
gpu-operator   nvidia-container-toolkit-daemonset-5vl   1/1     Running                 0          1h
gpu-operator   nvidia-cuda-validator-x                  0/1     Init:CrashLoopBackOff   5          1h
gpu-operator   nvidia-operator-validator-l72z2          0/1     Init:2/4                0          1h
"""


def test_cuda_that_is_not_ready_in_the_validation_is_a_matter_of_the_fabric() -> None:
    said = "Failed to allocate device vector A (error code system not yet initialized)!"
    (found,) = of(("kubectl", VALIDATOR_STOPS), ("validator-log", said)).findings
    assert (found.code, found.layer, found.cause_class) == ("ValidationStopsAtCuda", Layer.L1, "fabric")
    (found,) = of_text(VALIDATOR_STOPS, "kubectl").findings
    assert (found.layer, found.cause_class) == (Layer.L2, "runtime-config")


def test_a_layout_that_failed_is_told_once_with_its_reason() -> None:
    labels = "nvidia.com/mig.config=all-1g.10gb\nnvidia.com/mig.config.state=failed\n"
    reason = (
        'level=fatal msg="error setting MIGConfig: error attempting multiple config orderings: all orderings failed"'
    )
    assert codes(of(("node-json", labels), ("mig-log", reason))) == {"MigLayoutImpossible"}
    assert codes(of_text(labels, "node-json")) == {"MigStateFailed"}


def test_a_policy_is_not_ready_for_a_reason_that_is_told() -> None:
    said = '"error":"no matches for kind "ServiceMonitor" in version "monitoring.coreos.com/v1"", ClusterPolicy'
    assert codes(of(("operator-log", said), ("kubectl", "cluster-policy   notReady"))) == {"OperatorWantsAbsentApi"}


def test_a_log_in_json_is_read_by_its_lines() -> None:
    line = (
        '{"level":"error","kind":"NVIDIADriver.nvidia.com","error":"no matches for kind \\"NVIDIADriver\\" in version '
    )
    assert codes(of_text(line + '\\"nvidia.com/v1alpha1\\""}\n', "operator-log")) == {"OperatorWantsAbsentApi"}
