"""Containers without their GPU, told in somebody's own words: the usual cause; and what tells of no fault."""

from __future__ import annotations

import pytest
from asked import codes, of_text

from berth.diagnosis.words import POSSIBLE


@pytest.mark.parametrize(
    ("layer", "cause_class", "text"),
    [
        ("L2", "permission", "With SELinux enforcing our podman containers cannot use the GPU unless labels are off"),
        ("L2", "permission", "seccomp on that host makes docker containers fail as soon as they touch the GPU"),
        ("L2", "cgroup", "after some hours the training container loses its GPU, a new container has it again"),
        (
            "L2",
            "cgroup",
            "inside the container nvidia-smi stops with an error after a few days, nobody changed anything",
        ),
        ("L2", "cgroup", "the jobs lose access to the GPUs whenever somebody runs daemon-reload on the node"),
        ("L2", "cgroup", "the GPU becomes unavailable inside our docker containers some days later"),
        ("L2", "cgroup", "access to the GPU is lost in long-running containers, the host still has it"),
        (
            "L2",
            "cgroup",
            "Pods lose the GPU 2 days after they began. Deleting the pod is recommended by our platform team.",
        ),
        ("L2", "cgroup", "some hours later the pod cannot access the GPU, only a new pod makes it work again"),
        ("L2", "runtime-config", "a notebook that requests no GPU still sees all GPUs of the node"),
        ("L2", "runtime-config", "NVIDIA_VISIBLE_DEVICES is ignored, a container of one GPU lists all eight GPUs"),
        ("L2", "runtime-config", "nvidia-container-toolkit keeps crashing since containerd was upgraded"),
        ("L2", "runtime-config", "singularity --nv did not find libcuda although it is installed in /opt/driver"),
        ("L3", "path-mount", "with --root-dir set for the kubelet, device-plugins stays behind under /var/lib"),
        ("L2", "cdi", "podman starts with the CDI name and the GPU is not visible in it"),
        ("L2", "runtime-config", "while the image is built BuildKit finds no GPU, docker run of the result does"),
        ("L2", "runtime-config", "docker-in-docker on our CI machines: the inner containers see no GPU at all"),
        ("L2", "permission", "rootless docker does not find the GPU, as root the same command is fine"),
        ("L2", "runtime-install", "under WSL2 docker does not see the GPU although Windows shows it"),
        ("L2", "runtime-install", "nvidia-docker2 was not installed on the two new machines"),
        ("L2", "runtime-config", "on the host everything works, in the container CUDA is not available"),
        ("L2", "runtime-config", "apptainer with --nv does not detect the GPU of the node"),
        ("L2", "runtime-config", "the GPU service of our docker compose file starts and has no GPU"),
        ("L2", "runtime-config", "our docker does not know the runtime nvidia since we moved to the new image"),
        (
            "L3",
            "plugin-config",
            "the SR-IOV plugin runs, the resource is not listed under allocatable on either worker",
        ),
        ("L3", "plugin-config", "no rdma resource is found on the node although the HCA is up"),
    ],
)
def test_the_usual_cause_is_answered(layer: str, cause_class: str, text: str) -> None:
    top = of_text(text).findings[0]
    assert (top.layer.name, top.cause_class) == (layer, cause_class)
    assert top.confidence <= POSSIBLE


@pytest.mark.parametrize(
    "text",
    [
        "all GPUs of the node are visible in the dashboard of the team",
        "the kubelet keeps its data under --root-dir=/data/kubelet on these nodes",
        "docker was upgraded on all GPU machines this morning",
        "the container toolkit writes a CDI specification for each GPU",
        "SELinux is enforcing on the nodes of the docker pool",
        "we run rootless podman for the builds of the documentation",
        "Swarm counts generic resources for each of its nodes",
        "the SR-IOV plugin offers eight virtual functions of each NIC",
        "SystemdCgroup = true is what kubeadm expects of containerd",
        "apptainer runs the same image on every node of the cluster",
    ],
)
def test_what_tells_of_no_fault_gives_none(text: str) -> None:
    assert [(one.code, one.cause) for one in of_text(text).findings] == []


def test_docker_without_the_runtime_is_not_set_up_for_it() -> None:
    refused = "docker: Error response from daemon: unknown or invalid runtime name: nvidia."
    assert of_text(refused).findings[0].cause_class == "runtime-config"
    written = (
        '{\n "runtimes": {\n  "nvidia": {\n   "path": "/usr/bin/nvidia-container-runtime",\n   "args": []\n  }\n }\n}'
    )
    top = of_text(f"{written}\n{refused}").findings[0]
    assert (top.code, top.cause_class) == ("RuntimeHandlerMissing", "runtime-config")
    by_pod = 'Failed to create pod sandbox: rpc error: no runtime for "nvidia" is configured'
    assert of_text(by_pod).findings[0].cause_class == "runtime-config"


def test_a_plugin_of_amd_that_announces_devices_is_well() -> None:
    starts = "I0301 08:00:01.000001       1 main.go:305] AMD GPU device plugin for Kubernetes\n"
    serves = 'I0301 08:00:02.000001       1 manager.go:110] Adding a new plugin "gpu"\n'
    assert codes(of_text(starts)) == {"OtherMakersDriverAbsent"}
    assert codes(of_text(starts + serves)) == set()


def test_a_file_that_a_specification_names_is_not_a_missing_driver() -> None:
    told = 'failed to inject devices: failed to stat CDI host device "/dev/dri/renderD130": no such file or directory'
    assert "OtherMakersDriverAbsent" not in codes(of_text(f"Error: setting up CDI devices: {told}"))


def test_ldconfig_that_may_not_mount_is_a_matter_of_rights() -> None:
    said = "nvidia-container-cli: ldcache error: process /sbin/ldconfig failed with error code: 1\n"
    log = "E0711 07:13:39.552177 1 nvc_ldcache.c:403] could not start /sbin/ldconfig: mount operation failed: /proc: "
    assert of_text(said).findings[0].cause_class == "runtime-config"
    assert of_text(f"{said}{log}operation not permitted").findings[0].cause_class == "permission"
