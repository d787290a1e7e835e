"""What `verify` may run by itself, and how it reads the answer."""

from __future__ import annotations

import pytest

from berth.diagnosis.checks import Check, checks_of, shows
from berth.diagnosis.rules import RULES


@pytest.mark.parametrize(
    ("step", "words", "expected", "place"),
    [
        ("nvidia-smi -L: lists every device", ["nvidia-smi -L"], "lists every device", "node"),
        ("on gpu-7: lsmod | grep ^nvidia: loaded", ["lsmod | grep '^nvidia'"], "loaded", "node"),
        ("on gpu-7: nvidia-ctk cdi list : all devices", ["nvidia-ctk cdi list"], "all devices", "node"),
        ("kubectl get node gpu-7 : Ready", ["kubectl get node gpu-7"], "Ready", "cluster"),
        ("nvidia-smi -q -i 3b:00.0: 0; dcgmi diag -r 3: pass", ["nvidia-smi -q -i 3b:00.0"], "0", "node"),
        ("ls -l /dev/nvidia-uvm", ["ls -l /dev/nvidia-uvm"], "", "node"),
    ],
)  # fmt: skip
def test_a_step_that_only_looks_is_a_check(step: str, words: list[str], expected: str, place: str) -> None:
    checks = checks_of([step])
    assert [one.words for one in checks] == words
    assert (checks[0].expected, checks[0].at) == (expected, place)


@pytest.mark.parametrize(
    "step",
    [
        "nvidia-smi -e 0: ECC is off",
        "nvidia-smi -r",
        "nvidia-smi -pm 1: on",
        "nvidia-smi mig -cgi 9 -C: made",
        "dcgmi diag -r 3: pass",
        "on n1: modprobe nvidia && nvidia-smi -L: the GPUs",
        "on n1: modprobe nvidia; lsmod -x: loaded",
        "kubectl delete pod x -n y: gone",
        "kubectl get secret x -n y -o yaml: there",
        "kubectl get pods,secrets -n y: there",
        "kubectl get pods --kubeconfig=/tmp/x: there",
        "kubectl exec p -n y -- df -h /dev/shm: the new size",
        "kubectl logs of the plugin: 'Registered device plugin'",
        "kubectl get node NODE: Ready",
        "lspci -d 10de: | tee /etc/passwd: same",
        "cat /etc/shadow: there",
        "ls /dev/nvidia0 $(reboot): there",
        "cat /proc/driver/nvidia/version > /etc/x: there",
        "dmesg | grep -f /etc/shadow: nothing",
        "dmesg | grep 'open: nothing",
        "dmesg -C: empty",
        "systemctl restart containerd: active",
        "kubectl get pods -l \\ -l --kubeconfig=/tmp/x",
        "kubectl get pods -l --kubeconfig=/tmp/x",
        "kubectl get pods -l a -f/etc/passwd",
        "kubectl get --raw=/api/v1/nodes",
        "kubectl get pods --field-selector --server=http://x",
        "kubectl get 'sec''rets' -n y",
        "kubectl get pods -n 'a b'",
        "kubectl get nodes | grep -e '' /etc/hostname",
        "kubectl get nodes | grep '' /etc/hostname",
        "kubectl get nodes | grep  -r '' /root",
        "lsmod | grep '-f' /etc/shadow",
        "lsmod | grep -e",
        "lsmod | wc -c",
        "cat /proc/../etc/shadow: there",
        "cat /proc/self/environ: there",
        "cat /proc/kmsg: there",
        "ls /etc/../root: there",
        "ls /usr/**/**/*: there",
        "ls /usr/*/*/*/*: there",
        "lsmod\n| grep x: there",
        "nvidia-smi\u00a0-r: there",
        "the pod starts",
    ],
)
def test_a_step_that_may_change_something_is_none(step: str) -> None:
    assert checks_of([step]) == ()


@pytest.mark.parametrize(
    ("step", "output", "shown"),
    [
        ("kubectl get node n1: Ready", "NAME   STATUS  AGE\nn1   Ready   3d\n", "yes"),
        ("kubectl get node n1: Ready", "NAME   STATUS  AGE\nn1   NotReady   3d\n", "no"),
        ("kubectl get pods -n x -l a=b: Running", "NAME READY\np1 Running\np2 Pending\n", "no"),
        ("kubectl get pods -n x -l a=b: Running", "", "no"),
        ("kubectl get workloads -n x: ADMITTED True", "NAME   ADMITTED\nw   True\n", "yes"),
        ("lsmod | grep -c nouveau: 0", "0\n", "yes"),
        ("lsmod | grep -c nouveau: 0", "10\n", "no"),
        ("lsmod | grep ^nvidia: loaded", "nvidia 1 0\n", "yes"),
        ("lsmod | grep ^nvidia: loaded", "\n", "no"),
        ("systemctl is-active containerd: active", "inactive\n", "no"),
        ("kubectl get pod -n x: no ImagePullBackOff", "p 0/1 ImagePullBackOff", "no"),
        ("kubectl get pod -n x: no ImagePullBackOff", "p 1/1 Running", "yes"),
        ("dmesg: no 'open kernel modules' after the load", "no open kernel modules", "no"),
        ("nvidia-smi: no ERR! in any column", "| 0 ERR! |", "no"),
        ("nvidia-smi -q -d ROW_REMAPPER: Pending No, Failure No", "Pending : No\nFailure : No", "yes"),
        ("nvidia-smi -q -d ROW_REMAPPER: Pending No, Failure No", "Pending : Yes\nFailure : No", "no"),
        ("kubectl get node n1 -o yaml: nvidia.com/gpu is there", '{"nvidia.com/gpu":"8"}', "yes"),
        ("nvidia-smi -L: lists every device", "GPU 0", "read it"),
        ("ls -l /dev/nvidia-uvm", "crw", "read it"),
    ],
)  # fmt: skip
def test_what_it_must_show_is_compared_where_it_stands_for_itself(step: str, output: str, shown: str) -> None:
    (check,) = checks_of([step])
    assert shows(check, output) == shown


def test_many_codes_have_a_check() -> None:
    """A form that stops matching would silently leave everything to people."""
    codes = [code for rule in RULES for code in rule.codes]
    found = [checks_of(code.finding("", 0.5, (), node="n1", pod="x/p", resource="r").verify) for code in codes]
    assert sum(1 for checks in found if checks) > len(codes) / 3
    assert all(isinstance(check, Check) for checks in found for check in checks)
