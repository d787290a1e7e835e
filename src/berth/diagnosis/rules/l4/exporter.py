"""L4. dcgm-exporter: figures that are refused, not attributed, not fetched, or gone with the process."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, WEAK, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.cluster_facts import PodSeen
from berth.evidence.formats.dcgm_metrics import Sample

FIELDS_REFUSED = Code(
    name="ExporterFieldsRefused",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Error,
    effect=Effect.BlindMonitoring,
    title="the exporter asks for fields that this GPU or this DCGM does not have",
    meaning="The exporter ends at its start, or leaves these fields out.",
    known_by="'Error watching fields: Feature not supported' or 'Bad parameter', an unknown field, a counters file "
    "that cannot be read.",
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
               "Prometheus does not know it: the ServiceMonitor's labels (release) as Prometheus selects them",
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


MIG_UNSEEN = Code(
    name="ExporterMigUnseen",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="the exporter shows no figures of partitions",
    meaning="With MIG NVML gives no utilisation of a partition (GPU_UTIL is 0 or absent); only profiling fields do, "
    "and only of partitions that were there when the exporter started.",
    known_by="No series with GPU_I_ID, or figures that are missing under MIG.",
    disproved_by="Series with GPU_I_ID and DCGM_FI_PROF_GR_ENGINE_ACTIVE are there.",
    counter_check="curl -s NODE:9400/metrics | grep GPU_I_ID: series for each partition",
    fix=Fix(
        steps=(
            "use DCGM_FI_PROF_GR_ENGINE_ACTIVE, PROF_PIPE_TENSOR_ACTIVE, FB_USED in place of GPU_UTIL",
            "NVIDIA_MIG_MONITOR_DEVICES=all and SYS_ADMIN for the exporter; -d f (default) and not g",
            "partitions changed: restart the exporter",
        ),
        risk="the exporter restarts",
        rollback="the former settings",
    ),
    verify=("curl -s NODE:9400/metrics | grep -c GPU_I_ID: more than 0",),
    sources=("dcgm-exporter README: MIG", "dcgm-exporter issues 216, 639"),
)

PROFILING_STUCK = Code(
    name="ProfilingFiguresStuck",
    layer=Layer.L4,
    cause_class="monitoring",
    severity=Severity.Warning,
    effect=Effect.BlindMonitoring,
    title="the profiling figures stand still at 0",
    meaning="The counters are taken by another client or were lost; a busy GPU looks idle to everything that reads "
    "them.",
    known_by="DCGM_FI_PROF figures are 0 while GPU_UTIL of the same GPU is high.",
    disproved_by="The next samples differ from 0.",
    counter_check="dcgmi dmon -e 1001,203 -c 5: 1001 above 0 while 203 is high",
    fix=Fix(
        steps=(
            "who else profiles (Nsight, CUPTI)? dcgmi profile --resume after it",
            "restart the exporter (and hostengine)",
        ),
        risk="a gap in the figures",
        rollback="nothing to undo",
    ),
    verify=("dcgmi dmon -e 1001 -c 5: above 0 under load",),
    sources=("dcgm-exporter issues 662, 635", "DCGM issue 303"),
)

_BUSY_PERCENT = 50.0
_UNFETCHED = (
    "dcgm.scrape_fails", "dcgm.exporter_hangs", "dcgm.collect_fails", "dcgm.cannot_listen", "dcgm.not_selected",
    "dcgm.program_fails",
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    for said in by_node(facts.said("dcgm.fields_refused", "dcgm.counters_unreadable")).values():
        why = said_of(value(one, "why") for one in said)
        yield FIELDS_REFUSED.finding(
            f"The fields are refused{f': {why}' if why else ''}.",
            LIKELY,
            said,
            cause_class="permission" if "non-root" in why or "ROOT" in why else None,
        )
    # A plugin that looks for the same socket while a container starts is no exporter.
    unmapped = (one for one in facts.said("dcgm.pods_unmapped") if "PreStartContainer" not in one.origin.text)
    for said in by_node(unmapped).values():
        yield PODS_UNMAPPED.finding("The exporter cannot ask the kubelet who holds which device.", LIKELY, said)
    yield from _nobodys(facts)
    yield from _stuck(facts)
    by_design = {one.origin for one in facts.said("dcgm.mig_no_utilisation")}
    unseen = (one for one in facts.said("dcgm.mig_unseen") if one.origin not in by_design)
    for said in by_node(unseen).values():
        yield MIG_UNSEEN.finding("The exporter has no figures of partitions.", LIKELY, said)
    zero = list(facts.said("hami.use_is_zero"))
    if zero:
        busy = list(facts.said("hami.host_busy"))
        yield PROFILING_STUCK.finding(
            "The figure of the container is 0" + (", and the card is busy." if busy else "."),
            LIKELY if busy else WEAK,
            [*zero, *busy],
        )
    for said in by_node(facts.said(*_UNFETCHED)).values():
        if next(facts.said("dcgm.hostengine_gone"), None) is None:
            yield SCRAPE_FAILS.finding("Figures do not come, or not in time.", POSSIBLE, said)
    for said in by_node(facts.said("dcgm.exporter_oom")).values():
        yield OUT_OF_MEMORY.finding("The exporter outgrew its memory limit.", LIKELY, said)
    for pod in facts.of(PodSeen):
        if "dcgm" in pod.name and any("OOMKilled" in (one.reason, one.last_reason) for one in pod.states):
            yield OUT_OF_MEMORY.finding(f"{pod.name} was killed for memory.", LIKELY, [pod], pod=pod.key, node=pod.on)


def _nobodys(facts: Facts) -> Iterator[Answer]:
    """GPUs and partitions that work, and whose series name no pod although the mapping is on."""
    nobodys = [
        sample
        for sample in facts.of(Sample)
        if "UTIL" in sample.field.upper()
        and _BUSY_PERCENT <= sample.value <= 100
        and any(name in sample.labels for name in ("pod", "pod_name", "exported_pod"))
        and not sample.pod
    ]
    figures = list(facts.of(Sample))
    # Prometheus puts the scraped pod into `pod`; the exporter's own label would be exported_pod.
    nobodys += [
        sample
        for sample in figures
        if "dcgm-exporter" in sample.labels.get("pod", "")
        and "dcgm-exporter" in sample.pod
        and "exported_pod" not in sample.labels
    ][:1]
    if any(sample.pod for sample in figures):  # the mapping is on, and partitions are left out of it
        nobodys += [
            sample
            for sample in figures
            if sample.field == "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
            and sample.labels.get("GPU_I_ID")
            and not any(name in sample.labels for name in ("pod", "pod_name", "exported_pod"))
            and _BUSY_PERCENT / 100 <= sample.value <= 1
        ]
    for samples in by_node(nobodys).values():
        yield PODS_UNMAPPED.finding(f"{len(samples)} series of busy GPUs name no pod.", POSSIBLE, samples)


def _stuck(facts: Facts) -> Iterator[Answer]:
    by_device: dict[str, dict[str, Sample]] = {}
    for sample in facts.of(Sample):
        by_device.setdefault(f"{sample.node} {sample.uuid or sample.gpu}", {})[sample.field] = sample
    for figures in by_device.values():
        use = figures.get("DCGM_FI_DEV_GPU_UTIL")
        engine = figures.get("DCGM_FI_PROF_GR_ENGINE_ACTIVE") or figures.get("DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO")
        if use and engine and _BUSY_PERCENT <= use.value <= 100 and engine.value == 0:
            yield PROFILING_STUCK.finding(
                f"GPU {use.gpu or use.uuid}: {use.value:.0f} % busy, and the profiling figure is 0.",
                LIKELY,
                [use, engine],
                node=use.node,
                pci=use.pci,
            )


RULE = Rule((FIELDS_REFUSED, PODS_UNMAPPED, MIG_UNSEEN, PROFILING_STUCK, SCRAPE_FAILS, OUT_OF_MEMORY), find)
