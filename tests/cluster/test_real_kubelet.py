"""A real kubelet, containerd and a device plugin over the real protocol: what the fakes imitate."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devcluster.options import SCHEDULER
from devcluster.protobuf import decode, encode, encode_map, messages, texts
from gangs import FORMS, create_all, gang, pods_of, replicas, wait_whole
from proxy import BINDS

REPOSITORY = Path(__file__).parent.parent.parent
GPU = "nvidia.com/gpu"


def status_of(admin, namespace, pod):
    return admin.get(f"/api/v1/namespaces/{namespace}/pods/{pod}")["status"]


def wait_phase(admin, namespace, pod, *phases):
    """Patient: a kubelet of 1.37 may write the status of a refused pod only after ten seconds."""
    admin.until(lambda: status_of(admin, namespace, pod).get("phase") in phases, 30, f"{pod} is {phases}")
    return status_of(admin, namespace, pod)


def devices_of(admin, namespace, pod):
    """The devices that the kubelet says the container has; from 1.36 on."""
    found = set()
    for container in status_of(admin, namespace, pod)["containerStatuses"]:
        for resource in container.get("allocatedResourcesStatus", []):
            found |= {device["resourceID"] for device in resource["resources"]}
    return found


def test_a_pod_that_was_bound_by_hand_sees_its_two_devices(cluster, admin, namespace, real_node, device_plugin):
    pod = real_node.pod("two", namespace, "echo $NVIDIA_VISIBLE_DEVICES", gpus=2)
    del pod["spec"]["nodeName"]
    admin.create(pod | {"spec": {**pod["spec"], "schedulerName": "by-hand"}})
    admin.bind(namespace, "two", real_node.name)
    wait_phase(admin, namespace, "two", "Succeeded")
    seen = real_node.output(namespace, "two").split(",")
    assert len(set(seen)) == 2
    assert set(seen) == set(device_plugin.allocations[0].devices)
    if cluster.options.minor >= 36:
        assert set(seen) == devices_of(admin, namespace, "two")


def test_the_real_scheduler_places_on_it(cluster, admin, namespace, real_node, device_plugin):
    cluster.start_component(SCHEDULER)
    pod = real_node.pod("placed", namespace, "sleep 600", gpus=4)
    del pod["spec"]["nodeName"]
    admin.create(pod)
    wait_phase(admin, namespace, "placed", "Running")
    assert [len(each.devices) for each in device_plugin.allocations] == [4]


def test_more_devices_than_are_free_are_refused_and_freed_ones_given_again(admin, namespace, real_node, device_plugin):
    admin.create(real_node.pod("three", namespace, "sleep 600", gpus=3))
    wait_phase(admin, namespace, "three", "Running")
    admin.create(real_node.pod("two", namespace, "sleep 600", gpus=2))
    refused = wait_phase(admin, namespace, "two", "Failed")
    assert refused["reason"] == "UnexpectedAdmissionError"
    assert refused["message"] == (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 2, Available: 1, which is unexpected"
    )
    path = f"/api/v1/namespaces/{namespace}/pods"
    admin.delete(f"{path}/three")
    admin.until(lambda: "three" not in [pod["metadata"]["name"] for pod in admin.items(path)], 20, "three is gone")
    admin.create(real_node.pod("four", namespace, "sleep 600", gpus=4))
    wait_phase(admin, namespace, "four", "Running")


def test_more_cpu_than_the_node_has_is_refused(admin, namespace, real_node):
    pod = real_node.pod("big", namespace, "sleep 600")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    admin.create(pod)
    refused = wait_phase(admin, namespace, "big", "Failed")
    assert refused["reason"] == "OutOfcpu"
    assert "Node didn't have enough resource: cpu, requested: 1000000, used: 0, capacity: " in refused["message"]


def test_a_plugin_that_refuses_to_allocate_fails_the_pod(admin, namespace, real_node, device_plugin):
    device_plugin.refusal = "the driver does not answer"
    admin.create(real_node.pod("p", namespace, "sleep 600", gpus=1))
    refused = wait_phase(admin, namespace, "p", "Failed")
    assert refused["reason"] == "UnexpectedAdmissionError"
    assert "the driver does not answer" in refused["message"]


def test_an_unhealthy_device_is_not_counted(real_node, device_plugin):
    device_plugin.set_health("GPU-00000001", False)
    real_node.wait_allocatable(GPU, 3)
    device_plugin.set_health("GPU-00000001", True)
    real_node.wait_allocatable(GPU, 4)


def test_a_kubelet_that_was_killed_comes_back_with_its_pods_and_devices(admin, namespace, real_node, device_plugin):
    admin.create(real_node.pod("p", namespace, "sleep 600", gpus=2))
    wait_phase(admin, namespace, "p", "Running")
    real_node.signal_kubelet(signal.SIGKILL)
    admin.until(lambda: device_plugin.registrations == 2, 15, "the plugin has registered again")
    real_node.wait_allocatable(GPU, 4)
    admin.create(real_node.pod("q", namespace, "sleep 600", gpus=2))
    wait_phase(admin, namespace, "q", "Running")
    assert status_of(admin, namespace, "p")["phase"] == "Running"
    first, second = (set(each.devices) for each in device_plugin.allocations)
    assert len(first) == len(second) == 2
    assert not first & second


def test_gpus_that_no_plugin_serves_are_refused_by_the_sum(admin, namespace, real_node):
    """An extended resource that somebody wrote into the node's status: the device manager does not look at it."""
    admin.patch(
        f"/api/v1/nodes/{real_node.name}/status", {"status": {"capacity": {GPU: "2"}, "allocatable": {GPU: "2"}}}
    )
    real_node.wait_allocatable(GPU, 2)
    admin.create(real_node.pod("two", namespace, "sleep 600", gpus=2))
    wait_phase(admin, namespace, "two", "Running")
    admin.create(real_node.pod("one", namespace, "sleep 600", gpus=1))
    refused = wait_phase(admin, namespace, "one", "Failed")
    assert refused["reason"] == "OutOfnvidia.com/gpu"
    assert refused["message"] == (
        "Pod was rejected: Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 2, capacity: 2"
    )


def test_a_kubelet_that_lost_plugin_and_checkpoint_runs_a_gpu_pod_without_a_gpu(
    admin, namespace, real_node, device_plugin
):
    """It goes on advertising what the node object says, and lets through what it does not know."""
    device_plugin.stop()
    real_node.wait_allocatable(GPU, 0)
    real_node.signal_kubelet(signal.SIGSTOP)
    (real_node.device_plugins / "kubelet_internal_checkpoint").unlink()
    before = real_node.signal_kubelet(signal.SIGKILL)
    admin.until(lambda: real_node.kubelet_pid() not in (None, before), 10, "the kubelet is back")
    real_node.wait_allocatable(GPU, 4)
    admin.create(real_node.pod("p", namespace, "echo has: $NVIDIA_VISIBLE_DEVICES.", gpus=1))
    wait_phase(admin, namespace, "p", "Succeeded")
    assert real_node.output(namespace, "p") == "has: ."


def test_a_plugin_that_stands_still_goes_on_being_advertised(real_node):
    command = [sys.executable, "-m", "devcluster", "device-plugin", "--folder", str(real_node.device_plugins)]
    plugin = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert plugin.stdout.readline() == "registered\n"
        real_node.wait_allocatable(GPU, 8)
        plugin.send_signal(signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            real_node.wait_allocatable(GPU, 0, timeout_s=4)
        plugin.kill()
        real_node.wait_allocatable(GPU, 0)
    finally:
        plugin.kill()
        plugin.wait()


def test_messages_of_the_protocol_go_both_ways():
    allocate = encode([(1, encode([(1, "GPU-a"), (1, "GPU-b")])), (1, encode([(1, "GPU-c")]))])
    assert allocate == b"\n\x0e\n\x05GPU-a\n\x05GPU-b\n\x07\n\x05GPU-c"
    assert [texts(container[1]) for container in messages(decode(allocate)[1])] == [["GPU-a", "GPU-b"], ["GPU-c"]]
    numbers = decode(encode([(1, 300), (2, True), (3, False), (4, -1)]))
    assert numbers == {1: [300], 2: [1], 4: [2**64 - 1]}
    assert decode(encode(encode_map(1, [("k", "v")])))[1] == [encode([(1, "k"), (2, "v")])]
    for broken in (b"\x0a\x05abc", b"\xff", b"\x0b"):
        with pytest.raises(ValueError):
            decode(broken)


# ---- placed by Berth


def runs_here(real_node, namespace, gpus, command="sleep 600"):
    """What a pod's spec has to be on this node, for the makers of gangs."""
    spec = real_node.pod("any", namespace, command, gpus=gpus)["spec"]
    return {key: value for key, value in spec.items() if key not in ("nodeName", "restartPolicy")}


def reasons_of(admin, namespace):
    """Why pods have failed, by name."""
    pods = admin.items(f"/api/v1/namespaces/{namespace}/pods")
    return {p["metadata"]["name"]: p["status"].get("reason") for p in pods if p["status"].get("phase") == "Failed"}


@pytest.mark.parametrize("form", FORMS)
def test_a_gang_that_berth_placed_runs_and_sees_devices_of_its_own(
    admin, namespace, real_node, device_plugin, run_scheduler, invariants, form
):
    run_scheduler()
    command = "echo $NVIDIA_VISIBLE_DEVICES; sleep 600"
    placed = gang(form, "train", namespace, 2, 2, **runs_here(real_node, namespace, 2, command))
    create_all(admin, [placed])
    wait_whole(admin, [placed], 15)
    names = [pod["metadata"]["name"] for pod in pods_of(admin, namespace)]
    for name in names:
        wait_phase(admin, namespace, name, "Running")
    admin.until(lambda: all(real_node.output(namespace, name) for name in names), 15, "both have written")
    seen = [real_node.output(namespace, name).split(",") for name in names]
    assert sorted(len(devices) for devices in seen) == [2, 2]
    assert len({device for devices in seen for device in devices}) == 4


def test_a_node_whose_plugin_refuses_is_left_alone_for_a_while(
    admin, namespace, real_node, device_plugin, run_scheduler, make_nodes, kubelet
):
    """UnexpectedAdmissionError: the owner makes the pod again at once; the node is not filled with failed pods."""
    run_scheduler()
    device_plugin.refusal = "the driver does not answer"
    wanted = replicas("serve", namespace, 1, 2, **runs_here(real_node, namespace, 2))
    create_all(admin, [wanted])
    admin.until(lambda: "UnexpectedAdmissionError" in reasons_of(admin, namespace).values(), 30, "it is refused")
    time.sleep(15)
    assert len(reasons_of(admin, namespace)) <= 4, "each time the pause is twice as long"
    make_nodes(1)

    def is_elsewhere() -> bool:  # its pause may end just now: then it is tried once more before
        alive = [pod for pod in pods_of(admin, namespace) if pod["status"].get("phase") != "Failed"]
        return [pod["spec"].get("nodeName") for pod in alive] == ["n00000"]

    admin.until(is_elsewhere, 40, "another node has it")
    wait_whole(admin, [wanted], 15)


def test_a_node_that_admits_again_is_used_again(admin, namespace, real_node, device_plugin, run_scheduler):
    run_scheduler()
    device_plugin.refusal = "the driver does not answer"
    wanted = replicas("serve", namespace, 1, 2, **runs_here(real_node, namespace, 2))
    create_all(admin, [wanted])
    admin.until(lambda: "UnexpectedAdmissionError" in reasons_of(admin, namespace).values(), 30, "it is refused")
    device_plugin.refusal = ""

    def runs():
        return any(pod["status"].get("phase") == "Running" for pod in pods_of(admin, namespace))

    admin.until(runs, 40, "it runs")


def test_a_pod_that_came_second_is_refused_by_the_sum_and_goes_elsewhere(
    admin, namespace, real_node, run_scheduler, make_nodes, kubelet, proxy
):
    """OutOfnvidia.com/gpu: another scheduler was there between Berth's decision and its bind."""
    admin.patch(
        f"/api/v1/nodes/{real_node.name}/status", {"status": {"capacity": {GPU: "2"}, "allocatable": {GPU: "2"}}}
    )
    real_node.wait_allocatable(GPU, 2)
    run_scheduler(kubeconfig=proxy.kubeconfig())
    wanted = replicas("serve", namespace, 1, 2, **runs_here(real_node, namespace, 2))
    with proxy.hold(BINDS) as held:
        create_all(admin, [wanted])
        admin.until(lambda: held.met, 15, "the bind is on its way")
        admin.create(real_node.pod("foreign", namespace, "sleep 600", gpus=2))
        wait_phase(admin, namespace, "foreign", "Running")
        make_nodes(1)
    admin.until(lambda: "OutOfnvidia.com/gpu" in reasons_of(admin, namespace).values(), 30, "it is refused")
    wait_whole(admin, [wanted], 15)
    (pod,) = [p for p in pods_of(admin, namespace, "serve") if p["status"].get("phase") != "Failed"]
    assert pod["spec"]["nodeName"] == "n00000"
