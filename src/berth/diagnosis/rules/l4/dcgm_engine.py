"""L4. DCGM itself: its hostengine, its libraries, its profiling module."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts

PROFILING = Code(
    name="DcgmProfilingUnavailable",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="DCGM's profiling module is not available: no DCGM_FI_PROF figures",
    meaning="Real use (SM, tensor, memory bandwidth) is not measured; the other figures are.",
    known_by="Module 8 does not load, profiling is not supported, or DCP metrics are not collected.",
    disproved_by="dcgmi modules -l shows Profiling Loaded, and /metrics has DCGM_FI_PROF.",
    counter_check="dcgmi modules -l: 8 Profiling Loaded; dcgmi dmon -e 1001 -c 1: a value",
    fix=Fix(
        steps=("a DCGM at least as new as the GPU's generation (and datacenter-gpu-manager-4-proprietary up to Ampere)",
               "give the exporter SYS_ADMIN",
               "another profiler (Nsight, CUPTI) on a GPU before Hopper: dcgmi profile --pause while it runs",
               "GeForce, vGPU: not available; take the PROF fields out of the counters"),
        risk="the exporter restarts",
        rollback="the former image",
    ),
    verify=("curl -s NODE:9400/metrics | grep -c DCGM_FI_PROF: more than 0",),
    sources=("DCGM documentation: profiling", "dcgm-exporter issues 22, 707, 328"),
)  # fmt: skip

ENGINE_GONE = Code(
    name="HostengineUnreachable",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Error,
    effect=Effect.BlindMonitoring,
    title="DCGM's hostengine cannot be reached",
    meaning="No figures, or old ones that do not change; faults of GPUs are not seen.",
    known_by="'Host engine connection invalid/disconnected', or a refused connection to nv-hostengine.",
    disproved_by="The exporter serves figures that change.",
    counter_check="dcgmi discovery -l against the address of DCGM_REMOTE_HOSTENGINE_INFO: the GPUs",
    fix=Fix(
        steps=("fit dcgm.enabled to DCGM_REMOTE_HOSTENGINE_INFO: stand-alone hostengine at that address, or neither of "
               "the two (embedded)",
               "hostengine restarted: restart the exporter",
               "it hangs: look for a failing GPU (dmesg, nvidia-smi) on NODE"),
        risk="the exporter restarts",
        rollback="the former setting",
    ),
    verify=("curl -s NODE:9400/metrics | grep -c ^DCGM_: more than 0",),
    sources=("dcgm-exporter README", "gpu-operator issue 414, dcgm-exporter issue 61, gpu-monitoring-tools issue 188"),
)  # fmt: skip

LIBRARY_ABSENT = Code(
    name="DcgmDoesNotStart",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Error,
    effect=Effect.BlindMonitoring,
    title="DCGM does not start in the exporter or agent",
    meaning="No figures of the node's GPUs.",
    known_by="libdcgm is missing, DCGM does not initialise, or exporter and hostengine have different versions.",
    disproved_by="The exporter's log says 'DCGM successfully initialized!' after that.",
    counter_check="kubectl logs of the exporter: 'DCGM successfully initialized!'",
    fix=Fix(
        steps=("one version of DCGM in image, library and hostengine",
               "the exporter's image holds DCGM: take a whole one; on the host install datacenter-gpu-manager",
               "NVML missing: start it with the NVIDIA runtime"),
        risk="the exporter restarts",
        rollback="the former image",
    ),
    verify=("curl -s NODE:9400/metrics | grep -c ^DCGM_: more than 0",),
    sources=("dcgm-exporter README", "DCGM release notes"),
)  # fmt: skip

AGENT_BLIND = Code(
    name="AgentWithoutHostengine",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="a node agent reports healthy GPUs because it sees none of their faults",
    meaning="The agent asks a hostengine that the node image does not have; repair that waits for its verdict never "
    "comes.",
    known_by="AcceleratedHardwareReady stays True although faults are known, or the agent does not reach DCGM.",
    disproved_by="The agent's log says that it is connected, and no fault is in the kernel log.",
    counter_check="kubectl logs of the agent on NODE: connected to DCGM; on NODE: dmesg | grep -i xid: nothing",
    fix=Fix(
        steps=("run a DCGM server on the nodes (the agent's chart has it) or take an image with nv-hostengine",
               "watch the kernel log for Xids beside it"),
        risk="none",
        rollback="remove it",
    ),
    verify=("an injected Xid (dcgmi test --inject) turns the condition False",),
    sources=("AWS containers-roadmap issue 2555", "EKS documentation: node monitoring agent"),
)  # fmt: skip


CORDON_STAYS = Code(
    name="CordonOutlivesFault",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.PodsWait,
    title="a health agent cordoned the node, and nothing uncordons it",
    meaning="An agent lifts its cordon only for events that it sees clear; a restart, a change by hand or an event "
    "without an action leaves the cordon for ever.",
    known_by="A cordon with the agent's label, and conditions of that agent that are healthy.",
    disproved_by="A condition of the agent is still unhealthy: mend that first.",
    counter_check="kubectl describe node NODE | grep -e Gpu -e SysLog: one is still True (mend that first)",
    fix=Fix(
        steps=("kubectl uncordon NODE, once its conditions are healthy and a test job has passed",
               "look at the agent's own log for the event that it did not clear"),
        risk="pods come to the node: test it first",
        rollback="kubectl cordon NODE",
    ),
    verify=("the node takes pods, and the agent does not cordon it anew within an hour",),
    sources=("NVSentinel issues 458, 753, 911",),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    profiling = by_node(facts.said("dcgm.profiling_absent", "dcgm.profiling_module_state", "dcgm.profiling_taken"))
    gone = by_node(facts.said("dcgm.hostengine_gone"))
    for node, said in profiling.items():
        if node not in gone:
            yield PROFILING.finding("The profiling module does not serve this GPU or this client.", LIKELY, said)
    for said in gone.values():
        yield ENGINE_GONE.finding("The hostengine does not answer at the address that is asked.", LIKELY, said)
    for node, said in by_node(facts.said("dcgm.library_absent", "dcgm.versions_differ", "dcgm.nvml_absent")).items():
        if node not in gone:
            yield LIBRARY_ABSENT.finding("DCGM or its library does not begin to work.", LIKELY, said)
    for said in by_node(facts.said("clouds.agent_blind")).values():
        yield AGENT_BLIND.finding("The agent's verdict contradicts the faults: it does not see them.", LIKELY, said)
    idle = list(facts.said("clouds.no_action"))
    for said in by_node(facts.said("clouds.cordoned_by_monitor")).values():
        why = " It recommends no action, so nothing will ever lift it." if idle else ""
        yield CORDON_STAYS.finding(
            f"The agent's cordon is on the node.{why}", LIKELY if idle else WEAK, [*said, *idle]
        )
    for said in by_node(facts.said("clouds.agent_without_dcgm")).values():
        yield AGENT_BLIND.finding("The agent does not reach a DCGM on the node.", POSSIBLE, said)


RULE = Rule((PROFILING, ENGINE_GONE, LIBRARY_ABSENT, AGENT_BLIND, CORDON_STAYS), find)
