"""L4 and L5. More of what somebody tells of queues, claims, autoscalers, policies, figures and labels.

They are asked after those of told.py: what is told there in more words is surer.
"""

from __future__ import annotations

from berth.diagnosis.rules.l2 import not_default
from berth.diagnosis.rules.l3 import admission_before_plugin, slurm_devices
from berth.diagnosis.rules.l4 import (
    autoscaling,
    discovery,
    exporter,
    mig_manager,
    operator_chain,
    operator_pods,
    sharing_config,
)
from berth.diagnosis.rules.l5 import (
    admission,
    autoscaler,
    claims,
    gang,
    node_refuses,
    quota,
    shares,
    slurm_jobs,
    unplaced_affinity,
    unplaced_resource,
    unplaced_taint,
)
from berth.diagnosis.told_row import Row
from berth.diagnosis.words import POSSIBLE

_REFUSED = "A policy of the namespace refuses the pods."
_NO_NODE = "No single node has as many free as one pod asks for."
_NO_COUNT = "Slurm counts no GPU where there is one."
_OTHER_RUNTIME = "The NVIDIA runtime is not the one that pods get."
_UNSCALED = "No node is made for the pods that wait."
_UNSELECTED = "The pod selects what no node has."
_AWAY = "The volume is not where the GPUs are."

_MISPLACED = "Taints and tolerations do not part the nodes as they should."

_ITS_PODS = "operand, plugin, operator, claims"
_OTHERS = "plugin, runtime, driver"
_FIGURES = "Figures do not come, or not those that are looked for."
_TOO_EARLY = "Pods are there before the plugin is."
_NO_ROOM = "The cloud has none free there, or the account may not have more."

# Asked before those of containers: who waits for a pod has none yet.
WAITING = (
    Row("discovery, memory grows", operator_pods.OUT_OF_MEMORY, "Feature discovery outgrows its memory."),
    Row("autoscaler, deletion taint, trouble", unplaced_taint.NOT_TOLERATED, "A taint of the autoscaler stays on it."),
    Row("deletion taint, unplaced", unplaced_taint.NOT_TOLERATED, "A taint of the autoscaler stays on it."),
    Row("before the plugin, crashes", admission_before_plugin.BEFORE_PLUGIN, _TOO_EARLY),
    Row("before the plugin, rejected", admission_before_plugin.BEFORE_PLUGIN, _TOO_EARLY),
    Row("autoscaler, does not register", autoscaler.NOT_JOINED, "The new machine does not join.",
        unless="plugin, claims"),
    Row("autoscaler, too many, gpus", autoscaling.SCALES_TOO_FAR, "More nodes are made than are needed."),
    Row("none available, autoscaler, cloud", autoscaler.CLOUD_EMPTY, _NO_ROOM, unless="gpus none, no scaling"),
    Row("one for many, pending, asks", unplaced_resource.EXHAUSTED, "Every GPU is taken.",
        unless=f"{_OTHERS}, operator, claims, queue, quota, sharing"),
    Row("none available, asks, waits", unplaced_resource.EXHAUSTED, "Every GPU is taken.",
        unless=f"{_OTHERS}, operator, in container, claims, queue, quota"),
)  # fmt: skip
# Asked before all others of the layer.
MISPLACED = (
    Row("security, unplaced", admission.PRIVILEGED, _REFUSED, POSSIBLE, unless="exporter"),
    Row("security, rejected", admission.PRIVILEGED, _REFUSED, POSSIBLE, unless="exporter"),
    *(
        Row(topics, unplaced_taint.NOT_TOLERATED, _MISPLACED, unless=_ITS_PODS)
        for topics in ("misplaced, unplaced", "misplaced, taint", "misplaced, gpus")
    ),
)

ROWS: tuple[Row, ...] = (
    Row("no runner, gpus", unplaced_resource.EXHAUSTED, "Who waits for a machine gets none: all are taken.",
        unless="autoscaler, taint, selector, labels"),
    Row("tolerations asked, gpus", unplaced_taint.NOT_TOLERATED, "The pods do not get the toleration.",
        unless=_ITS_PODS),
    Row("slurm, drained", slurm_devices.HELD, "The controller keeps the node from jobs.", unless="queue"),
    Row("slurm, configuration, apart", slurm_devices.REFUSED, "What is configured of GPUs does not fit together."),
    Row("slurm, gpus none", slurm_devices.FEWER, _NO_COUNT),
    Row("slurm, gpus, missing", slurm_devices.FEWER, _NO_COUNT),
    Row("slurm, pending", slurm_jobs.UNFIT, "No node of the partition has what the job asks for."),
    Row("autoscaler, too many", autoscaling.SCALES_TOO_FAR, "More nodes are made than are needed."),
    Row("autoscaler, disruption, trouble", node_refuses.DISPLACED, "The autoscaler takes nodes from pods that run."),
    Row("autoscaler, evicted", node_refuses.DISPLACED, "The autoscaler takes nodes from pods that run."),
    Row("autoscaler, gpus none", autoscaler.NO_TYPE, "The autoscaler does not know of the GPUs."),
    Row("autoscaler, unplaced", autoscaler.NO_TYPE, _UNSCALED),
    Row("pool, unplaced, gpus", autoscaler.NO_TYPE, _UNSCALED, unless="labels, taint, operand, plugin"),
    Row("claims, unplaced", claims.UNALLOCATED, "The pod waits for its claim."),
    Row("queue, scattered", gang.QUEUE_FULL, "The queue counts GPUs of all nodes together, a pod needs them on one.",
        unless="share scheduler"),
    Row("queue, unplaced", gang.QUEUE_FULL, "The queue or the group does not let the pods begin.",
        unless="plugin, operand, claims"),
    Row("priority, pending", gang.QUEUE_FULL, "Who comes first does not get what others hold.", unless=_OTHERS),
    Row("pending, enough", unplaced_resource.EXHAUSTED, "What is free is not where or not what is asked for.",
        unless=f"{_OTHERS}, operator, autoscaler, claims"),
    Row("volume, zone", unplaced_affinity.VOLUME, _AWAY),
    Row("volume, pending", unplaced_affinity.VOLUME, _AWAY),
    Row("pending, scattered", unplaced_resource.EXHAUSTED, _NO_NODE),
    Row("unplaced, scattered", unplaced_resource.EXHAUSTED, _NO_NODE),
    Row("selector, pending", unplaced_affinity.SELECTOR, _UNSELECTED, unless="operand, plugin"),
    Row("exporter, runtime, missing", not_default.NOT_DEFAULT, _OTHER_RUNTIME),
    Row("exporter, runtime, crashes", not_default.NOT_DEFAULT, _OTHER_RUNTIME),
    Row("exporter, memory grows", exporter.OUT_OF_MEMORY, "The exporter outgrows its memory."),
    Row("exporter, crashes", operator_pods.CRASHES, "The exporter ends.", unless="mig manager"),
    Row("exporter, not begun", operator_pods.CRASHES, "The exporter does not begin."),
    Row("exporter, missing", exporter.SCRAPE_FAILS, _FIGURES),
    Row("exporter, in spite", exporter.SCRAPE_FAILS, _FIGURES),
    Row("figures, gpus none", exporter.SCRAPE_FAILS, _FIGURES, unless=_OTHERS),
    Row("discovery, crashes", discovery.NFD_MISSING, "Labels that others go by are not on the node."),
    Row("figures, whose", exporter.PODS_UNMAPPED, "The figures do not say whose pod it is."),
)  # fmt: skip

# What a complaint is about, where nothing more is understood: asked last, of all that was told together.
LAST: tuple[Row, ...] = (
    Row("claims, trouble", claims.UNALLOCATED, "Somebody tells of trouble with claims."),
    Row("figures, trouble", exporter.SCRAPE_FAILS, _FIGURES, unless=f"{_OTHERS}, queue, autoscaler"),
    Row("quota, cloud, trouble", autoscaler.CLOUD_EMPTY, _NO_ROOM, unless="queue"),
    Row("capacity, cloud", autoscaler.CLOUD_EMPTY, _NO_ROOM, unless="queue"),
    Row("quota, trouble", quota.EXCEEDED, "The quota is said not to do what it should."),
    Row("taint, trouble", unplaced_taint.NOT_TOLERATED, "A taint keeps pods away.", unless="operand, plugin, operator"),
    Row("selector, labels, trouble", unplaced_affinity.SELECTOR, _UNSELECTED,
        unless="operand, plugin, operator, discovery"),
    Row("queue, trouble", gang.QUEUE_FULL, "The queue or the group does not let the pods begin.", unless=_OTHERS),
    Row("gpus, too much", shares.MORE_THAN_NODE, "More is asked for than a node has.", unless=_OTHERS),
    Row("autoscaler, trouble", autoscaler.NO_TYPE, _UNSCALED, unless=_OTHERS),
    Row("pool, gpus none, trouble", autoscaler.NO_TYPE, _UNSCALED, unless=f"{_OTHERS}, operand, operator"),
    Row("pool, trouble, waits", autoscaler.NO_TYPE, _UNSCALED, unless=_OTHERS),
    Row("discovery, trouble", discovery.NFD_MISSING, "Labels that others go by are not on the node."),
    Row("mig manager, trouble", mig_manager.STATE_FAILED, "The layout is not what was asked for.", unless="plugin"),
    Row("sharing, trouble, gpus", sharing_config.NOT_IN_EFFECT, "Shares are configured and do not do what they should.",
        unless="queue, autoscaler"),
    Row("labels, partitions, trouble", discovery.NO_LABELS, "Labels are not what they should be.", unless=_OTHERS),
    Row("partitions, trouble", mig_manager.STATE_FAILED, "The layout is not what was asked for.",
        unless="plugin, claims, share scheduler, figures, in container, nvlink"),
    Row("evicted, share scheduler, trouble", gang.QUEUE_FULL, "Who comes first does not get what others hold.",
        unless=_OTHERS),
    Row("labels, trouble, gpus", discovery.NO_LABELS, "Labels are not what they should be.", unless=_OTHERS),
    Row("gpus, pending, trouble", unplaced_resource.EXHAUSTED, "No node has room.", unless=_OTHERS),
    Row("gpus, unplaced", unplaced_resource.EXHAUSTED, "No node has room.",
        unless=f"{_OTHERS}, operand, operator, labels, taint, configuration, quota"),
    Row("gpus, pending, cloud", unplaced_resource.EXHAUSTED, "No node has room.", unless=_OTHERS),
    Row("pending, view", unplaced_resource.EXHAUSTED, "No node has room.", unless=_OTHERS),
    Row("policy, trouble", operator_chain.NOT_READY, "The operator does not do what its policy says.",
        unless=f"{_OTHERS}, autoscaler, queue"),
    Row("operator, trouble", operator_chain.NOT_READY, "The operator does not do what it should.",
        unless=f"{_OTHERS}, autoscaler, queue, mig manager, discovery, claims, in container"),
)  # fmt: skip
