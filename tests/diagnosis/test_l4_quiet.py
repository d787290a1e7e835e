"""Ordinary texts of plugins, kubelets, operators and exporters give no finding."""

from __future__ import annotations

import pytest
from asked import codes, of_text

QUIET = {
    "a plugin that is rolled out anew": (
        "plugin-log",
        """
I0101 10:00:00.100001       1 main.go:238] Starting FS watcher for /var/lib/kubelet/device-plugins
I0101 10:00:00.100002       1 main.go:245] Starting OS watcher.
I0101 10:00:00.100003       1 main.go:260] Starting Plugins.
I0101 10:00:00.200001       1 server.go:197] Starting GRPC server for 'nvidia.com/gpu'
I0101 10:00:00.200002       1 server.go:141] Starting to serve 'nvidia.com/gpu' on /var/lib/kubelet/device-plugins/nvidia-gpu.sock
I0101 10:00:00.200003       1 server.go:148] Registered device plugin for 'nvidia.com/gpu' with Kubelet
I0101 18:00:00.200001       1 main.go:293] Received signal "terminated", shutting down.
I0101 18:00:00.200002       1 main.go:391] Stopping plugins.
""",  # noqa: E501
    ),
    "a kubelet that starts": (
        "kubelet-log",
        """
I0101 10:00:00.1 1 manager.go:133] "Creating Device Plugin manager" path="/var/lib/kubelet/device-plugins/kubelet.sock"
I0101 10:00:01.1 1 server.go:144] "Starting device plugin registration server"
I0101 10:00:02.1 1 manager.go:420] "Got registration request from device plugin with resource" resourceName="nvidia.com/gpu"
I0101 10:00:02.2 1 plugin_watcher.go:194] "Adding socket path" path="/var/lib/kubelet/plugins_registry/gpu.nvidia.com-reg.sock"
""",  # noqa: E501
    ),
    "all pods of an operator": (
        "kubectl",
        """
NAMESPACE      NAME                                       READY   STATUS      RESTARTS        AGE
gpu-operator   gpu-feature-discovery-8g4pc                1/1     Running     0               30d
gpu-operator   gpu-operator-7bbf8bb6b7-9tw4v              1/1     Running     2 (10d ago)     30d
gpu-operator   nvidia-container-toolkit-daemonset-5vlk2   1/1     Running     0               30d
gpu-operator   nvidia-cuda-validator-6hbzq                0/1     Completed   0               30d
gpu-operator   nvidia-dcgm-exporter-wjgff                 1/1     Running     0               30d
gpu-operator   nvidia-device-plugin-daemonset-9m6sz       1/1     Running     0               30d
gpu-operator   nvidia-mig-manager-x4kkd                   1/1     Running     0               30d
""",
    ),
    "labels of a node that is well": (
        "node-json",
        """
nvidia.com/gpu.count=8
nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3
nvidia.com/gpu.replicas=1
nvidia.com/mig.capable=true
nvidia.com/mig.config=all-disabled
nvidia.com/mig.config.state=success
nvidia.com/mig.strategy=single
nvidia.com/gpu.deploy.driver=pre-installed
nvidia.com/gpu-driver-upgrade-state=upgrade-done
feature.node.kubernetes.io/pci-10de.present=true
""",
    ),
    "a change of partitions that succeeds": (
        "mig-log",
        """
time="2023-01-10T10:00:00Z" level=debug msg="Selecting specific MIG config..."
time="2023-01-10T10:00:00Z" level=fatal msg="Assertion failure: selected configuration not currently applied"
Changing the 'nvidia.com/mig.config.state' node label to 'pending'
Waiting for the device-plugin to shutdown
time="2023-01-10T10:00:09Z" level=debug msg="    Asserting MIG mode: Enabled"
time="2023-01-10T10:00:09Z" level=debug msg="    Current MIG mode: Enabled"
MIG configuration applied successfully
Changing the 'nvidia.com/mig.config.state' node label to 'success'
""",
    ),
    "figures of busy and idle GPUs": (
        "dcgm-metrics",
        """
# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-1",Hostname="n"} 0
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="n",container="c",namespace="d",pod="train-0"} 98
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-2",Hostname="n",container="",namespace="",pod=""} 0
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-1",Hostname="n"} 0.97
""",
    ),
    "an exporter that starts": (
        "dcgm-log",
        """
time="2024-07-01T11:53:44Z" level=info msg="Starting dcgm-exporter"
time="2024-07-01T11:53:44Z" level=info msg="DCGM successfully initialized!"
time="2024-07-01T11:53:44Z" level=info msg="Collecting DCP Metrics"
time="2024-07-01T11:53:44Z" level=info msg="Not collecting NvSwitch metrics; no switches to monitor"
time="2024-07-01T11:53:44Z" level=info msg="Listening on" address="[::]:9400"
""",
    ),
    "an operator that is ready": (
        "operator-log",
        """
{"level":"info","ts":1,"logger":"controllers.ClusterPolicy","msg":"Number of nodes with GPU label","NodeCount":4}
{"level":"info","msg":"ClusterPolicy step completed","state:":"state-driver","status":"ready"}
{"level":"info","msg":"ClusterPolicy is ready."}
{"level":"info","logger":"controllers.Upgrade","msg":"Node States:","upgradesDone":4,"upgradesFailed":0}
""",
    ),
    "an MPS server that ends with its clients": (
        "app-log",
        """
[2024-06-10 15:16:40.777 Control 111377] Starting control daemon using socket /mps/nvidia.com/gpu/pipe/control
[2024-06-10 15:16:41.000 Control 111377] Starting new server 123 for user 0
[2024-06-10 15:20:41.000 Other 123] Server 123 exited with status 0
""",
    ),
    "a program that says still, keeps and capacity": (
        "app-log",
        "Epoch 3: loss 1.23, memory still 70 GiB\n"
        "the loader keeps 8 workers; capacity unchanged\nno metrics for epoch 0\n",
    ),
    "somebody who tells how things are": (
        "report",
        "We run MPS with 4 replicas and MIG on two nodes. dcgm-exporter exports metrics. The kubelet restarted "
        "yesterday and the plugin registered again.",
    ),
}


# Traps that explain a line of a healthy component to whoever wonders about it.
MAY_BE_NOTED = {"ValidatorPodCompleted", "MetricsNotOnThisMachine"}


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_found_in(name: str) -> None:
    kind, text = QUIET[name]
    found = of_text(text.lstrip("\n"), kind)
    assert codes(found) <= MAY_BE_NOTED
