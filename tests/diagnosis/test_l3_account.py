"""Layer 3: what is no finding, which of two causes is named, and what explains what."""

from __future__ import annotations

import pytest
from asked import codes, of_text

from berth.diagnosis.diagnose import Diagnosis, diagnose
from berth.diagnosis.words import Layer
from berth.evidence.piece import piece
from berth.evidence.read import read


def of(*pieces: tuple[str, str]) -> Diagnosis:
    found = [piece(text, kind, f"{kind} {number}") for number, (kind, text) in enumerate(pieces)]
    return diagnose(read(found))


def sureness(diagnosis: Diagnosis, code: str) -> float:
    found = (*diagnosis.findings, *(one.finding for one in diagnosis.consequences))
    return next(one.confidence for one in found if one.code == code)


HEALTHY_PLUGIN = """\
I0601 12:00:00.000001       1 main.go:178] Starting FS watcher.
I0601 12:00:00.000002       1 main.go:185] Starting OS watcher.
I0601 12:00:00.000003       1 main.go:200] Starting Plugins.
I0601 12:00:00.000004       1 main.go:257] Loading configuration.
I0601 12:00:00.000005       1 main.go:265] Updating config with default resource matching patterns.
I0601 12:00:00.000006       1 main.go:276]
Running with config:
{
  "version": "v1",
  "flags": {
    "migStrategy": "none",
    "failOnInitError": true,
    "mpsRoot": "/run/nvidia/mps",
    "nvidiaDriverRoot": "/"
  },
  "sharing": {
    "timeSlicing": {}
  }
}
I0601 12:00:00.000007       1 main.go:279] Retrieving plugins.
I0601 12:00:00.000008       1 factory.go:104] Detected NVML platform: found NVML library
I0601 12:00:00.000009       1 factory.go:104] Detected non-Tegra platform: /sys/devices/soc0/family file not found
I0601 12:00:00.000010       1 server.go:216] Starting GRPC server for 'nvidia.com/gpu'
I0601 12:00:00.000011       1 server.go:147] Starting to serve 'nvidia.com/gpu' on /var/lib/kubelet/device-plugins/nvidia-gpu.sock
I0601 12:00:00.000012       1 server.go:154] Registered device plugin for 'nvidia.com/gpu' with Kubelet
I0601 12:00:00.000013       1 health.go:60] Ignoring the following XIDs for health checks: map[13:true 31:true 43:true]
I0601 13:00:00.000001       1 main.go:220] inotify: /var/lib/kubelet/device-plugins/kubelet.sock created, restarting.
I0601 13:00:00.000002       1 server.go:154] Registered device plugin for 'nvidia.com/gpu' with Kubelet
"""  # noqa: E501

HEALTHY_KUBELET = """\
I0601 12:00:00.000001     900 server.go:153] "Got registration request from device plugin with resource" resourceName="nvidia.com/gpu"
E0601 13:00:00.000001     900 client.go:90] "ListAndWatch ended unexpectedly for device plugin" err="rpc error: code = Unavailable desc = error reading from server: EOF" resource="nvidia.com/gpu"
I0601 13:00:04.000001     900 server.go:153] "Got registration request from device plugin with resource" resourceName="nvidia.com/gpu"
I0601 13:00:05.000001     900 handler.go:95] "Registered client" name="nvidia.com/gpu"
"""  # noqa: E501


@pytest.mark.parametrize(
    "text",
    [
        HEALTHY_PLUGIN,
        HEALTHY_KUBELET,
        "Capacity:\n  nvidia.com/gpu:  8\nAllocatable:\n  nvidia.com/gpu:  8\n",
        "NAME                                   READY   STATUS    RESTARTS      AGE\n"
        "nvidia-device-plugin-daemonset-7xkzt   1/1     Running   2 (9d ago)    30d\n",
        "NAMESPACE     NAME                             DESIRED   CURRENT   READY   UP-TO-DATE   AVAILABLE   AGE\n"
        "kube-system   nvidia-gpu-device-plugin-small-cos    2    2    2    2    2    9d\n"
        "kube-system   nvidia-gpu-device-plugin-large-cos    1    1    1    1    1    9d\n",
        '{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":["GPU-1"]}}',
    ],
    ids=["plugin", "kubelet", "node", "pods", "sets of a cloud", "checkpoint"],
)
def test_what_is_healthy_is_no_finding(text: str) -> None:
    assert of_text(text).findings == ()


def test_an_end_of_the_stream_that_no_registration_follows_is_one() -> None:
    assert codes(of_text("\n".join(HEALTHY_KUBELET.splitlines()[:2]))) == {"PluginEndedUnderKubelet"}


def test_a_signal_from_outside_makes_it_surer() -> None:
    kubelet = ("kubelet-log", "\n".join(HEALTHY_KUBELET.splitlines()[:2]))
    alone = of(kubelet).findings[0]
    both = of(kubelet, ("plugin-log", 'I0601 1 main.go:330] Received signal "terminated", shutting down.')).findings[0]
    assert both.confidence > alone.confidence
    assert (both.code, both.cause_class) == ("PluginEndedUnderKubelet", "cgroup")


def test_a_verdict_that_a_new_start_has_forgotten_is_a_hint_only() -> None:
    marked = "XidCriticalError: Xid=69 on Device=GPU-1a, the device will go unhealthy.\n"
    again = "Registered device plugin for 'nvidia.com/gpu' with Kubelet\n"
    assert sureness(of_text(marked), "XidMarkedUnhealthy") > 0.9
    assert sureness(of_text(marked + again), "XidMarkedUnhealthy") < 0.5
    assert sureness(of_text(again + marked), "XidMarkedUnhealthy") > 0.9


def test_what_the_bus_lost_explains_what_the_kubelet_says() -> None:
    diagnosis = of(
        ("dmesg", "NVRM: Xid (PCI:0000:b3:00): 79, pid=1, name=x, GPU has fallen off the bus."),
        ("pod-events", "Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error"),
        ("kubectl", "allocatable nvidia.com/gpu: 7 (capacity 8)"),
    )
    assert [one.code for one in diagnosis.findings] == ["GpuFellOffBus"]
    assert {one.finding.code for one in diagnosis.consequences} == {"PreferredAllocationFails", "DevicesWithheld"}


def test_a_refused_configuration_explains_a_crash_loop() -> None:
    pods = (
        "NAME                                   READY   STATUS             RESTARTS   AGE\n"
        "nvidia-device-plugin-daemonset-7xkzt   0/1     CrashLoopBackOff   9          1h\n"
    )
    refused = "error starting plugins: More than one MIG device type present on node"
    diagnosis = of(("plugin-log", refused), ("kubectl", pods))
    assert diagnosis.findings[0].code == "MigProfilesDifferUnderSingle"
    assert all(one.confidence < 0.5 for one in diagnosis.findings[1:])
    assert "DevicePluginCrashes" not in codes(diagnosis)


def test_limits_of_inotify_are_no_missing_directory() -> None:
    assert codes(of_text("failed to create FS watcher: too many open files")) == {"InotifyExhausted"}


def test_two_nodes_are_two_findings() -> None:
    text = "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu"
    found = diagnose(read([piece(text, kind="pod-events", node=node) for node in ("a", "b")])).findings
    assert {(one.code, one.node) for one in found} == {("AdmittedBeforePlugin", "a"), ("AdmittedBeforePlugin", "b")}


def test_commands_name_what_is_known() -> None:
    text = (
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0"
    )
    found = diagnose(read([piece(text, kind="pod-events", node="gpu-7", pod="ml/train-0")])).findings[0]
    assert found.layer == Layer.L3
    assert "kubectl describe node gpu-7: nvidia.com/gpu" in found.counter_check


AT_ZERO = "Capacity:\n  nvidia.com/gpu: 0\nAllocatable:\n  nvidia.com/gpu: 0\n"


def test_a_resource_at_0_is_a_hint_until_something_says_why() -> None:
    assert sureness(of(("kubectl", AT_ZERO)), "ResourceAtZero") < 0.5
    refused = "error starting plugins: unable to load config: unable to validate flags: using MPS requires --mps-root"
    assert [one.code for one in of(("kubectl", AT_ZERO), ("plugin-log", refused)).findings] == ["MpsConfigRefused"]
    paused = "nvidia.com/gpu.deploy.device-plugin=paused-for-mig-change\nnvidia.com/mig.config.state=pending\n"
    assert codes(of(("kubectl", AT_ZERO), ("node-json", paused))) == {"MigManagerWedged"}


def test_a_plugin_that_runs_and_offers_nothing_is_not_heard() -> None:
    pods = (
        "NAME                                   READY   STATUS    RESTARTS   AGE\n"
        "nvidia-device-plugin-daemonset-abcde   1/1     Running   0          30d\n"
    )
    assert codes(of(("kubectl", AT_ZERO), ("kubectl", pods))) == {"PluginStreamBroken"}


def test_the_offer_may_stand_before_the_word_that_says_what_it_is() -> None:
    said = of_text("nvidia.com/gpu.shared: 0 beside nvidia.com/gpu: 8 in capacity", "node-json")
    assert (said.findings, [one.code for one in said.traps]) == ((), ["OldResourceAtZero"])
    asked_for = of_text("the pod has nvidia.com/gpu: 1 requested, capacity nvidia.com/gpu: 8", "kubectl")
    assert not asked_for.findings


def test_plugins_of_two_namespaces_are_two() -> None:
    pods = """\
NAMESPACE      NAME                                   READY   STATUS    RESTARTS   AGE   IP         NODE
kube-system    nvidia-device-plugin-daemonset-aaaaa   1/1     Running   0          5d    10.0.0.1   gpu-1
gpu-operator   nvidia-device-plugin-daemonset-bbbbb   1/1     Running   0          5d    10.0.0.2   gpu-1
"""
    assert codes(of_text(pods, "kubectl")) == {"PluginsSideBySide"}
    assert codes(of_text(pods.replace("kube-system ", "gpu-operator"), "kubectl")) == set()
