"""The command line of each component. What the flags are for is said where it is not plain."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from devcluster import binaries
from devcluster.options import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    FAKE_KUBELET,
    KWOK,
    SCHEDULER,
    Options,
)

_AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
"""
_STAGES = Path(__file__).parent / "stages"


def command_line(name: str, options: Options, ports: Mapping[str, int], state: Path) -> list[str]:
    """The command that runs a component of the cluster that lives in `state`."""
    if name == FAKE_KUBELET:
        return [sys.executable, "-m", "devcluster", "kubelet", "--kubeconfig", str(state / "kubeconfig")]
    program = str(binaries.program(name, options.kubernetes))
    arguments = {
        ETCD: _etcd,
        API_SERVER: _api_server,
        CONTROLLER_MANAGER: _controller_manager,
        SCHEDULER: _scheduler,
        KWOK: _kwok,
    }[name](options, ports, state)
    if options.verbosity and name not in (ETCD, KWOK):
        arguments = [*arguments, f"-v={options.verbosity}"]
    return [program, *arguments]


def write_files(options: Options, state: Path) -> None:
    """The files that the command lines name, beside certificates and tokens."""
    if options.audit:
        (state / "audit-policy.yaml").write_text(_AUDIT_POLICY)


def feature_gates(options: Options) -> str:
    """Workload-aware scheduling as far as the version has it; the same on every component that reads the gates."""
    if not options.workload_api or options.minor < 35:
        return ""
    gates = ["GenericWorkload=true"]
    if options.minor >= 36:
        gates.append("TopologyAwareWorkloadScheduling=true")
    return ",".join(gates)


def _etcd(options: Options, ports: Mapping[str, int], state: Path) -> list[str]:
    client, peer = (f"http://127.0.0.1:{ports[which]}" for which in ("etcd", "etcd-peer"))
    return [
        f"--data-dir={state / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # a test survives the end of a process, not of the machine
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def _api_server(options: Options, ports: Mapping[str, int], state: Path) -> list[str]:
    pki = state / "pki"
    arguments = [
        f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
        f"--secure-port={ports['api']}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # a loopback address is refused as an endpoint
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'apiserver.crt'}",
        f"--kubelet-client-key={pki / 'apiserver.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--token-auth-file={state / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-accounts.key'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
        "--delete-collection-workers=32",  # with one, as shipped, a test's pods go at 280 a second
    ]
    gates = [gate for gate in feature_gates(options).split(",") if gate]
    apis = []
    if options.workload_api and options.minor >= 37:
        apis += ["scheduling.k8s.io/v1beta1=true", "scheduling.k8s.io/v1alpha3=true"]
    elif options.workload_api and options.minor == 36:
        apis += ["scheduling.k8s.io/v1alpha2=true"]
    elif options.workload_api and options.minor == 35:
        apis += ["scheduling.k8s.io/v1alpha1=true"]
    if options.minor in (34, 35):  # from 1.36 on it is on without asking, as admissionregistration.k8s.io/v1
        gates.append("MutatingAdmissionPolicy=true")
        apis.append("admissionregistration.k8s.io/v1beta1=true")
    if apis:
        arguments.append("--runtime-config=" + ",".join(apis))
    if gates:
        arguments.append("--feature-gates=" + ",".join(gates))
    if not options.node_lifecycle:
        # It taints each new node not-ready; the controller that takes the taint away does not run.
        arguments.append("--disable-admission-plugins=TaintNodesByCondition")
    if options.audit:
        arguments += [
            f"--audit-policy-file={state / 'audit-policy.yaml'}",
            f"--audit-log-path={state / 'logs' / 'audit.log'}",
        ]
    return arguments


def _client(options: Options, state: Path, user: str) -> list[str]:
    gates = feature_gates(options)
    return [
        f"--kubeconfig={state / f'kubeconfig-{user}'}",
        "--authentication-skip-lookup",
        "--leader-elect=false",
        "--kube-api-qps=5000",  # as shipped (20 to 50 a second) the limit would be what is measured
        "--kube-api-burst=5000",
        "--bind-address=127.0.0.1",
        f"--cert-dir={state / 'pki' / user}",
        *([f"--feature-gates={gates}"] if gates else []),
    ]


def _controller_manager(options: Options, ports: Mapping[str, int], state: Path) -> list[str]:
    arguments = [
        *_client(options, state, "kube-controller-manager"),
        f"--secure-port={ports['controller-manager']}",
        "--use-service-account-credentials=true",  # each controller has its own rights; the manager itself has few
        f"--service-account-private-key-file={state / 'pki' / 'service-accounts.key'}",
        f"--root-ca-file={state / 'pki' / 'ca.crt'}",
    ]
    if not options.node_lifecycle:
        # Fake nodes that nobody keeps alive would turn NotReady after 40 s.
        arguments.append("--controllers=*,-node-lifecycle-controller,-pod-garbage-collector-controller")
    return arguments


def _scheduler(options: Options, ports: Mapping[str, int], state: Path) -> list[str]:
    return [*_client(options, state, "kube-scheduler"), f"--secure-port={ports['scheduler']}"]


def _kwok(options: Options, ports: Mapping[str, int], state: Path) -> list[str]:
    stages = ["pod-running", "pod-complete", "pod-delete", "node-ready", "node-heartbeat"]
    return [
        f"--kubeconfig={state / 'kubeconfig'}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        f"--server-address=127.0.0.1:{ports['kwok']}",
        # A lease a node costs a write each ten seconds; it is only kept where somebody would miss it.
        f"--node-lease-duration-seconds={40 if options.node_lifecycle else 0}",
        *[part for stage in stages for part in ("--config", str(_STAGES / f"{stage}.yaml"))],
    ]
