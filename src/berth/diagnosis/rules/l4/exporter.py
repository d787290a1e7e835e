"""L4. dcgm-exporter: figures that are refused, not attributed, not fetched, or gone with the process."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen

FIELDS_REFUSED = Code(
    name="ExporterFieldsRefused",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Error,
    effect=Effect.BlindMonitoring,
    title="the exporter asks for fields that this GPU or this DCGM does not have",
    meaning="The exporter ends at its start, or leaves these fields out.",
    known_by="'Error watching fields: Feature not supported' or 'Bad parameter', an unknown field, a counters file "
    "that "
    "cannot be read.",
    disproved_by="The same counters work on another node with the same GPU and image.",
    counter_check="dcgmi dmon -e <field ids> -c 1 on NODE: values",
    fix=Fix(
        steps=("take out the fields that this GPU lacks (A10, L4, T4: no PROF_PIPE_FP64; GeForce: no PROF at all)",
               "each line of the counters: field, type, help; names of this DCGM version (renamed in 4.6)",
               "an exporter and DCGM as new as the GPU"),
        risk="the exporter restarts",
        rollback="the former counters",
    ),
    verify=("curl -s NODE:9400/metrics | grep -c ^DCGM_: more than 0",),
    sources=("dcgm-exporter etc/default-counters.csv", "dcgm-exporter pull request 86, issues 431, 148; go-dcgm issue "
             "15"),
)  # fmt: skip

PODS_UNMAPPED = Code(
    name="ExporterPodsUnmapped",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="the exporter cannot tell which pod holds which GPU",
    meaning="Figures come without namespace, pod and container; use looks like nobody's.",
    known_by="It cannot ask the kubelet's pod-resources socket, or its series have no pod labels.",
    disproved_by="No pod holds a GPU through a resource on that node (privileged pods never have a name there).",
    counter_check="ls -l /var/lib/kubelet/pod-resources/kubelet.sock in the exporter: is there",
    fix=Fix(
        steps=("mount /var/lib/kubelet/pod-resources (or <root-dir>/pod-resources) into the exporter, "
               "DCGM_EXPORTER_KUBERNETES=true",
               "renamed or other resources: NVIDIA_RESOURCE_NAMES; device names instead of UUIDs (GKE): "
               "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE=device-name; shares: KUBERNETES_VIRTUAL_GPUS=true",
               "Prometheus: exported_pod without honorLabels, pod with it"),
        risk="the exporter restarts",
        rollback="the former settings",
    ),
    verify=("curl -s NODE:9400/metrics | grep 'pod=\"': the pods that hold GPUs",),
    sources=("dcgm-exporter README", "dcgm-exporter issues 342, 138, 85, 349"),
)  # fmt: skip

SCRAPE_FAILS = Code(
    name="ExporterScrapeFails",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="the exporter is not fetched in time",
    meaning="Series have gaps or vanish; alerts that look at them resolve although nothing is mended.",
    known_by="Time-outs or refused connections on port 9400, or an exporter that hangs.",
    disproved_by="curl on the node answers within the scrape time-out.",
    counter_check="time curl -s NODE:9400/metrics | wc -l: within the time-out",
    fix=Fix(
        steps=("scrape time-out of 15 s and more; fewer fields; collect interval of 30 s",
               "a network policy or port that is taken: open 9400 to Prometheus",
               "it hangs only on this node: look for a failing GPU there (dmesg, nvidia-smi)"),
        risk="none",
        rollback="the former settings",
    ),
    verify=("up{job=~\".*dcgm.*\"} is 1 for an hour",),
    sources=("dcgm-exporter issues 372, 607, 625", "go-dcgm issue 38"),
)  # fmt: skip

OUT_OF_MEMORY = Code(
    name="ExporterOutOfMemory",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="the exporter is killed for memory",
    meaning="Figures have gaps each time it restarts; nothing of the GPUs is at fault.",
    known_by="OOMKilled of dcgm-exporter or nv-hostengine.",
    disproved_by="The whole node ran out of memory.",
    counter_check="kubectl top pod of the exporter: far below its limit",
    fix=Fix(
        steps=("a limit of 1Gi (nodes with eight GPUs use 500 MiB in rest)", "a collect interval of 30 s and more, "
               "fewer "
               "fields", "a newer exporter where it grows without end"),
        risk="none",
        rollback="the former limit",
    ),
    verify=("kubectl get pod of the exporter: no restart within two days",),
    sources=("dcgm-exporter issues 702, 609, 536, 292",),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("dcgm.fields_refused", "dcgm.counters_unreadable")).values():
        why = said_of(one.get("why") for one in said)
        yield FIELDS_REFUSED.finding(f"The fields are refused{f': {why}' if why else ''}.", LIKELY, said)
    for said in by_node(facts.said("dcgm.pods_unmapped")).values():
        yield PODS_UNMAPPED.finding("The exporter cannot ask the kubelet who holds which device.", LIKELY, said)
    for said in by_node(facts.said("dcgm.scrape_fails", "dcgm.exporter_hangs", "dcgm.collect_fails")).values():
        if next(facts.said("dcgm.hostengine_gone"), None) is None:
            yield SCRAPE_FAILS.finding("Figures do not come, or not in time.", POSSIBLE, said)
    for said in by_node(facts.said("dcgm.exporter_oom")).values():
        yield OUT_OF_MEMORY.finding("The exporter outgrew its memory limit.", LIKELY, said)
    for pod in facts.of(PodSeen):
        if "dcgm" in pod.name and any("OOMKilled" in (one.reason, one.last_reason) for one in pod.states):
            yield OUT_OF_MEMORY.finding(f"{pod.name} was killed for memory.", LIKELY, [pod], pod=pod.key, node=pod.on)


RULE = Rule((FIELDS_REFUSED, PODS_UNMAPPED, SCRAPE_FAILS, OUT_OF_MEMORY), find)
