"""L6. Ranks do not find or reach each other, or talk over the wrong network."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, heard, listed, value, values
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.infiniband import RdmaPort
from berth.evidence.formats.nccl_log import (
    NcclChannel,
    NcclHcas,
    NcclInterface,
    NcclNetwork,
    NcclSetting,
    interfaces_of,
)

# Interfaces that lead nowhere but to this machine, and names that only a prefix match can have meant.
LOCAL = re.compile(
    r"^(lo|docker|virbr|cni|flannel|cali|veth|br-|kube-ipvs|dummy|nodelocaldns|tun|podman|lxc|tailscale|cilium_|pod-id-link)"
)
LINK_LOCAL = ("169.254.", "fe80:")
BEYOND_NAME = re.compile(r"^(eth|ens|enp|bond|ib)0\d+$")

_ENV = ("NCCL user guide: environment variables",)
_VERIFY = ("NCCL_DEBUG=INFO: Init COMPLETE on every rank",)
_UNSET = "unset the variable"

INTERFACE = Code(
    name="WrongBootstrapInterface",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="NCCL talks over an interface that was not meant",
    meaning="NCCL_SOCKET_IFNAME is a prefix: eth0 takes eth01 too. Without it a bridge or tunnel may be taken. Ranks "
    "then do not "
    "reach each other, or do so slowly.",
    known_by="The bootstrap uses an interface that only this machine has, or one whose name merely begins like the "
    "wanted one.",
    disproved_by="All ranks reach each other over that interface.",
    counter_check="ip -br a in each pod: the interface with the address that the others can reach",
    fix=Fix(
        steps=("NCCL_SOCKET_IFNAME==eth0: with the second = the name is exact; ^docker,lo excludes",),
        risk="the name must fit every node of the job",
        rollback=_UNSET,
    ),
    verify=("NCCL_DEBUG=INFO: Bootstrap: Using the meant interface", *_VERIFY),
    sources=_ENV,
)
NO_INTERFACE = Code(
    name="NoSocketInterface",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="NCCL or Gloo finds no interface of the given name",
    meaning="NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME names something that the pod does not have: often set for "
    "another kind of machine. Or the container has no interface but lo, or none of the address family (IPv4, IPv6) "
    "that is asked for.",
    known_by="no socket interface found, or address family not supported.",
    disproved_by="ip -br a in the pod lists an interface that begins with the value.",
    counter_check="kubectl exec POD -n NAMESPACE -- ip -br a; env | grep SOCKET_IFNAME: they fit",
    fix=Fix(
        steps=(
            "correct the name, or leave the variable out: in a pod eth0 is found by itself",
            "a container without a network: give it one (pod network, --network host)",
            "address family: NCCL_SOCKET_FAMILY=AF_INET or AF_INET6 as the interface has it; MASTER_ADDR as an address "
            "of that family",
        ),
        risk="none",
        rollback="set it again",
    ),
    verify=_VERIFY,
    sources=_ENV,
)
UNREACHABLE = Code(
    name="RanksDoNotReach",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="ranks cannot connect to each other",
    meaning="A time-out is a closed port or a wrong network; a refusal is a peer that is not there yet or is gone; a "
    "name that does "
    "not resolve is a service that is not ready.",
    known_by="NCCL, the rendezvous or the launcher says that the connection or the name failed.",
    disproved_by="The same address and port answer from that pod.",
    counter_check="kubectl exec POD -n NAMESPACE -- nc -zv <host> <port>: open",
    fix=Fix(
        steps=(
            "NetworkPolicy, security group, firewall: all ports between the pods of a job",
            "a headless service with publishNotReadyAddresses for the first rank, and a rendezvous that waits for all",
            "refused: see why the first rank ended or did not start; MASTER_ADDR and MASTER_PORT equal on all ranks",
        ),
        risk="open ports only within the job's namespace",
        rollback="put the policy back",
    ),
    verify=_VERIFY,
    sources=("NCCL, src/misc/socket.cc", "PyTorch: torchrun rendezvous"),
)
PEER_GONE = Code(
    name="PeerRankEnded",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Warning,
    effect=Effect.CollectiveFails,
    title="another rank ended first, or the network to it broke",
    meaning="The rank that prints this is a victim. The text names the peer: its log has the cause.",
    known_by="ncclRemoteError, or a connection that the peer closed.",
    disproved_by="The peer's process still runs and its host is reachable: then the network broke.",
    counter_check="ps on the named peer's node: its process runs still, and the node answers (then the network broke)",
    fix=Fix(
        steps=("go to the peer that is named and read its last lines; order all ranks by time",),
        risk="none",
        rollback="nothing to undo",
    ),
    verify=("the job passes the point where it ended",),
    sources=("NCCL user guide: ncclRemoteError",),
)
SOCKET = Code(
    name="SocketInsteadOfRdma",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Error,
    effect=Effect.CollectiveSlow,
    title="ranks talk over TCP although the nodes have RDMA",
    meaning="One rank without RDMA devices pulls the whole job down to the speed of sockets, or hangs it where ranks "
    "chose different networks.",
    known_by="Some ranks chose Socket while others chose InfiniBand, or RDMA devices are there and NCCL finds none.",
    disproved_by="The nodes have no RDMA devices at all.",
    counter_check="ls /dev/infiniband and ibv_devinfo on each node: no device",
    fix=Fix(
        steps=(
            "ask for the RDMA resource in every pod of the job; libibverbs in the image",
            "NCCL_IB_DISABLE unset or 0; NCCL_IB_HCA names devices that are there",
        ),
        risk="none",
        rollback=_UNSET,
    ),
    verify=("NCCL_DEBUG=INFO: Using network IB on every rank", *_VERIFY),
    sources=_ENV,
)
SETTING = Code(
    name="NcclTransportSwitchedOff",
    layer=Layer.L6,
    cause_class="network",
    severity=Severity.Warning,
    effect=Effect.CollectiveSlow,
    title="a setting switches a fast transport of NCCL off",
    meaning="Variables that were set to find a fault stay in manifests and images and cost most of the bandwidth.",
    known_by="NCCL prints the setting as in effect.",
    disproved_by="The transport does not work on these machines, and the setting is there for that.",
    counter_check="env | grep NCCL_; cat /etc/nccl.conf in the container: not set",
    fix=Fix(
        steps=("take the variable out of manifest, image and /etc/nccl.conf; then mend what it was set for",),
        risk="a hang that it hid may come back",
        rollback="set it again",
    ),
    verify=("NCCL_DEBUG=INFO: the fast transport is used", "busbw is back at its reference"),
    sources=_ENV,
)
MPI = Code(
    name="MpiLauncherFails",
    layer=Layer.L6,
    cause_class="app",
    severity=Severity.Error,
    effect=Effect.CollectiveFails,
    title="the MPI launcher cannot start its processes on the workers",
    meaning="Workers are not ready, names do not resolve, ssh is refused, or the host file has fewer slots than "
    "processes.",
    known_by="mpirun or its daemon says so.",
    disproved_by="ssh from the launcher to each worker works at that time.",
    counter_check="kubectl exec of the launcher: getent hosts and ssh for each worker: fine",
    fix=Fix(
        steps=(
            "MPIJob: launcherCreationPolicy WaitForWorkersReady",
            "slots per worker equal to its GPUs; sshd and orted in the worker's image",
        ),
        risk="none",
        rollback="put the old policy back",
    ),
    verify=("mpirun hostname prints every worker",),
    sources=("mpi-operator: launcherCreationPolicy", "Open MPI: launching"),
)
_APART = ("nccl.unreachable", "dist.rendezvous", "nccl.bootstrap_mismatch", "mpi.unreachable", "dist.store_lost")
_OFF = {"NCCL_IB_DISABLE": "1", "NCCL_P2P_DISABLE": "1", "NCCL_NET_GDR_LEVEL": "LOC"}


def find(facts: Facts) -> Iterator[Answer]:
    yield from _interfaces(facts)
    for node, pod, found in by_place(facts.said("nccl.no_socket_interface")):
        cause = "No interface of the pod has the name that was given, or none has an address that can be used."
        if any(said.get("family") for said in found):
            cause = "The container has no interface of the address family that is asked for: no IPv4 or IPv6 address."
        yield NO_INTERFACE.finding(cause, LIKELY, found, node=node, pod=pod)
    apart = list(facts.said(*_APART))
    if all("NCCL INFO" in said.origin.text and "retrying" in said.origin.text for said in apart):
        began = {said.origin.source for said in facts.said("nccl.begun")}
        apart = [said for said in apart if said.origin.source not in began]  # it waited for a peer that came
    for node, pod, found in by_place(apart):
        why, peer = value(found[0], "why"), value(found[0], "peer") or value(found[0], "host")
        yield UNREACHABLE.finding(
            f"A rank does not reach {peer or 'another'}{': ' + why if why else ''}.", LIKELY, found, node=node, pod=pod
        )
    yield from heard(
        facts, UNREACHABLE, ("transfer.failed",), "What one server sends another does not arrive.", POSSIBLE
    )
    for node, pod, found in by_place(facts.said("nccl.peer_closed")):
        peers = listed(values(found, "peer"))
        yield PEER_GONE.finding(
            f"The connection was ended by the other side{': ' + peers if peers else ''}.",
            POSSIBLE - 0.1,
            found,
            node=node,
            pod=pod,
        )
    for node, pod, found in by_place(facts.said("mpi.launcher")):
        host = next(iter(values(found, "host")), "")
        yield MPI.finding(
            f"The launcher cannot start processes{' on ' + host if host else ''}.",
            LIKELY,
            found,
            node=node,
            pod=pod,
            cause_class="network" if host else None,  # a name or a port, and not what the program asks for
        )
    if not any(facts.said("mpi.launcher")):
        unreached = "The launcher cannot log in to a worker: it does not answer, or has no program to do so."
        yield from heard(facts, MPI, ("mpi.no_way",), unreached, LIKELY, cause_class="network")
    refused = "A key or a directory that ssh uses has another owner or mode than ssh takes."
    yield from heard(facts, MPI, ("mpi.refused",), refused, LIKELY, cause_class="permission")
    yield from _networks(facts)
    yield from _settings(facts)


def _interfaces(facts: Facts) -> Iterator[Answer]:
    wanted = {
        one.value.lstrip("=")
        for one in facts.of(NcclSetting)
        if one.name == "NCCL_SOCKET_IFNAME" and not one.value.startswith("^")
    }
    odd: dict[str, list[Said]] = {}
    for one in facts.said("nccl.bootstrap_interface"):
        name = one.get("interface")
        begins_like = any(want and name != want and name.startswith(want) and want[-1:].isdigit() for want in wanted)
        if begins_like or LOCAL.match(name) or BEYOND_NAME.match(name):
            odd.setdefault(name, []).append(one)
    several = {one.host for one in facts.of(NcclInterface)}
    for name, found in odd.items():
        if name == "lo" and len(several) <= 1 and not wanted:
            continue  # one machine alone talks to itself
        yield INTERFACE.finding(
            f"The control connection uses {name}{', wanted was ' + listed(sorted(wanted)) if wanted else ''}.",
            POSSIBLE,
            found,
            subject=f"interface {name}",
        )
    for said in facts.said("nccl.sockets_used"):
        interfaces = interfaces_of(said.get("interfaces"))
        if len(interfaces) > 1 and interfaces[0][0] == "lo":  # NCCL takes it only where it is told to, or is old
            yield INTERFACE.finding(
                "Data may go over lo, which no other machine reaches.", POSSIBLE, [said], subject="interface lo"
            )
    if any(facts.said("nccl.unreachable", "nccl.peer_closed")):
        yield from led_astray(facts, LIKELY)
    elif any(facts.said("nccl.unreachable_told")):
        yield from led_astray(facts, POSSIBLE)
    yield from _listed_alone(facts)
    unheard = [said for said in facts.said("nccl.unreachable") if value(said, "peer").startswith(LINK_LOCAL)]
    if unheard:
        peer = value(unheard[0], "peer")
        yield INTERFACE.finding(
            f"A rank is asked for at {peer}, a link-local address that only its own machine has.", LIKELY, unheard,
            subject=f"interface of {peer.partition('<')[0]}",
        )  # fmt: skip


def _listed_alone(facts: Facts) -> Iterator[Answer]:
    """Interfaces in old logs, a line each: one that only its own machine reaches, while several machines take part."""
    listed_by = list(facts.said("nccl.socket_listed"))
    hosts = {said.get("host") for said in listed_by}
    odd = [
        said for said in listed_by if LOCAL.match(said.get("interface")) or said.get("address").startswith(LINK_LOCAL)
    ]
    if odd and len(hosts) > 1 and len({said.get("interface") for said in listed_by}) > 1:
        name = odd[0].get("interface")
        yield INTERFACE.finding(
            f"{name} is among the interfaces of {listed(sorted(hosts))}: no other machine reaches it.",
            POSSIBLE,
            odd[:3],
            subject=f"interface {name}",
        )


def led_astray(facts: Facts, confidence: float) -> Iterator[Answer]:
    """Interfaces in NCCL's list that no other machine reaches: bridges, tunnels, link-local addresses."""
    for said in facts.said("nccl.sockets_used"):
        interfaces = interfaces_of(said.get("interfaces"))
        local = [name for name, address in interfaces if LOCAL.match(name) or address.startswith(LINK_LOCAL)]
        if local and len(local) < len(interfaces):
            yield INTERFACE.finding(
                f"{listed(local)} may be used too, which other machines cannot reach.",
                confidence,
                [said],
                subject=f"interface {local[0]}",
            )


def _networks(facts: Facts) -> Iterator[Answer]:
    if any(facts.said("image.verbs_missing")):
        return  # the image is what has to be mended
    yield from heard(
        facts,
        SOCKET,
        ("nccl.uneven_nics", "nccl.mixed_networks"),
        "Ranks have different networks or numbers of network devices.",
        LIKELY,
    )
    unopened = [said for said in facts.said("nccl.no_ib") if "libibverbs" in said.origin.text.lower()]
    if unopened and (wanted := list(facts.said("nccl.rdma_wanted"))):
        cause = "The verbs library is not in the container, so NCCL finds no RDMA device and uses sockets."
        yield SOCKET.finding(cause, POSSIBLE, [*unopened, *wanted])
    absent_on = {_host(said) for said in facts.said("harmless.nccl_plugin_absent")}
    loaded_on = {_host(said) for said in facts.said("nccl.plugin_loaded")}
    if absent_on and loaded_on and not absent_on & loaded_on:
        some = list(facts.said("nccl.plugin_loaded", "harmless.nccl_plugin_absent"))
        cause = f"{listed(sorted(loaded_on))} load a network plugin, {listed(sorted(absent_on))} do not."
        yield SOCKET.finding(cause, LIKELY, some)
    chosen = facts.of(NcclNetwork)
    sockets = [one for one in chosen if one.network.startswith("Socket")]
    fast = [one for one in chosen if not one.network.startswith("Socket")]
    absent = list(facts.said("nccl.no_ib"))
    has_rdma = (
        any(layer in ("IB", "RoCE") for one in facts.of(NcclHcas) for _, _, layer in one.devices)
        or bool(facts.of(RdmaPort))
        or any(facts.said("host.rdma_present"))
    )
    slow = [one for one in facts.of(NcclChannel) if one.transport == "NET" and one.way.startswith("Socket")]
    quick = [one for one in facts.of(NcclChannel) if one.transport == "NET" and not one.way.startswith("Socket")]
    if (sockets and fast) or (slow and quick) or ((absent or sockets) and has_rdma):
        hosts = listed(sorted({one.host for one in (*sockets, *slow) if one.host}))
        yield SOCKET.finding(
            f"{hosts or 'Some ranks'} use sockets while RDMA devices are there.",
            LIKELY,
            [*sockets[:2], *slow[:2], *absent[:1], *fast[:1]],
        )


def _host(said: Said) -> str:
    return said.origin.text.strip().partition(":")[0]


def _settings(facts: Facts) -> Iterator[Answer]:
    as_remedy = {said.origin.text for said in facts.said("nccl.works_without")}
    found = [
        said
        for said in facts.said("nccl.setting")
        if _OFF.get(value(said, "name")) == value(said, "value").strip('"') and said.origin.text not in as_remedy
    ]
    if found:
        names = listed(f"{value(said, 'name')}={value(said, 'value')}" for said in found)
        yield SETTING.finding(f"{names} is in effect.", POSSIBLE, found, subject=names)


RULE = Rule((INTERFACE, NO_INTERFACE, UNREACHABLE, PEER_GONE, SOCKET, SETTING, MPI), find)
