"""What somebody tells in his own words, where no component said it: the state, and what usually causes it.

A row fits where a line speaks of all of its topics and of none that it rules out. The first that fits answers. A row
that names the cause itself is possible; one that names what is seen is a hint, and stands behind whatever is known
better.
"""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Rule
from berth.diagnosis.rules.l0 import said_faulty
from berth.diagnosis.rules.l1 import told_rows
from berth.diagnosis.rules.l2 import not_default
from berth.diagnosis.rules.l2 import told_rows as container_rows
from berth.diagnosis.rules.l3 import (
    admission_before_plugin,
    device_holders,
    ghost_allocations,
    kubelet_down,
    plugin_health,
    plugin_pool,
    plugin_refuses_config,
    plugin_stream,
    plugin_trouble,
)
from berth.diagnosis.rules.l4 import (
    deploy_labels,
    discovery,
    exporter,
    mig_change,
    mig_manager,
    operator_absent,
    operator_api,
    operator_chain,
    operator_pods,
    sharing_config,
    unplaced_operands,
)
from berth.diagnosis.rules.l5 import (
    autoscaler,
    claims,
    gang,
    kueue,
    node_refuses,
    quota,
    resource_api,
    shares,
    unplaced_affinity,
    unplaced_resource,
    unplaced_taint,
)
from berth.diagnosis.rules.l5 import told_rows as more_told
from berth.diagnosis.rules.l6 import told as program_told
from berth.diagnosis.rules.l6 import told_rows as program_rows
from berth.diagnosis.told_row import Row
from berth.diagnosis.words import POSSIBLE
from berth.evidence.facts import Facts
from berth.evidence.formats.told import Told

_CONFIGURED = "The plugin's configuration is what differs between the plugin that works and the one that does not."
_KEPT_ACCOUNT = "The count is wrong since something was restarted: kubelet and plugin have not met again."
_UNLABELLED = "Labels that others go by are not on the node."

ROWS: tuple[Row, ...] = (
    *program_rows.NAMED,
    *more_told.WAITING,
    *told_rows.ROWS,
    *container_rows.ROWS,
    *program_rows.SEEN,
    # Where the components of the operator may run, whoever waits for them.
    Row("taint, operand, unplaced", unplaced_operands.TAINT_KEEPS_AWAY, "A taint keeps the components away.", POSSIBLE),
    Row("labels, operand, unplaced", unplaced_operands.WANTED_NOWHERE, "No node has the label.", POSSIBLE),
    # Pods that need no GPU where the GPUs are, and the other way round.
    *more_told.MISPLACED,
    # Layer 5: who scales, queues and shares, and claims. They have words of their own.
    Row("claims, labels, unplaced", unplaced_operands.WANTED_NOWHERE, "No node has the label.", POSSIBLE),
    Row("claims, off", resource_api.API_SKEW, "The cluster does not serve claims as the driver needs them."),
    Row("claims, gpus, removed", claims.UNALLOCATED, "What is published as claims is not what is there."),
    Row("claims, missing", claims.UNALLOCATED, "What a claim needs is not published."),
    Row("claims, gpus none", claims.UNALLOCATED, "What a claim needs is not published."),
    Row("claims, pending", claims.UNALLOCATED, "The pod waits for its claim."),
    Row("claims, in spite", claims.UNALLOCATED, "What is published as claims is not what is there."),
    Row("claims, partitions, trouble", claims.UNALLOCATED, "Partitions and whole devices are published together."),
    Row("claims, crashes", claims.UNALLOCATED, "The driver for claims does not work."),
    Row("autoscaler, node stays", autoscaler.IDLE_STAYS, "Something keeps the node.", unless="unplaced"),
    Row("pool, node stays", autoscaler.IDLE_STAYS, "Something keeps the node.", unless="unplaced, pending"),
    Row("autoscaler, node removed, runs", node_refuses.DISPLACED, "The autoscaler takes nodes from pods that run."),
    Row("autoscaler, no scaling", autoscaler.NO_TYPE, "No node is made for the pods that wait."),
    Row("pool, no scaling", autoscaler.NO_TYPE, "No node is made for the pods that wait."),
    Row("autoscaler, pending", autoscaler.NO_TYPE, "No node is made for the pods that wait."),
    Row("share scheduler, scheduler name, unplaced", node_refuses.NOBODY, "It goes to another scheduler.",
        unless="plugin"),
    Row("scheduler name, pending", node_refuses.NOBODY, "The scheduler that they name does not take them.", POSSIBLE,
        unless="share scheduler"),
    Row("queue, evicted", kueue.NOT_READY, "The queue takes the pods back.", unless="plugin"),
    Row("queue, pending", gang.QUEUE_FULL, "The queue or the group does not let the pods begin."),
    Row("cloud quota, waits", autoscaler.CLOUD_EMPTY, "The account may not have more.", unless="queue"),
    Row("cloud quota, gpus none", autoscaler.CLOUD_EMPTY, "The account may not have more.", unless="queue"),
    Row("cloud quota, unplaced", autoscaler.CLOUD_EMPTY, "The account may not have more.", unless="queue"),
    Row("quota, pending", quota.EXCEEDED, "The quota leaves no room.", unless="queue"),
    Row("quota, unplaced", quota.EXCEEDED, "The quota leaves no room.", unless="queue"),
    Row("quota, missing", quota.EXCEEDED, "The quota leaves no room.", unless="queue"),
    Row("validator, all used", node_refuses.VALIDATOR, "The validator wants a GPU of a node without a free one.",
        POSSIBLE),
    Row("all used, pending", unplaced_resource.EXHAUSTED, "Every GPU is taken.", POSSIBLE),
    Row("share scheduler, reboot, pending", shares.UNREGISTERED, "After the restart nobody tells it of the cards."),
    Row("share scheduler, pending", shares.NO_CARD, "No card has as much free as the pod is counted with."),
    Row("visible devices, twice", device_holders.UNASKED, "The pods name their GPU by themselves.", POSSIBLE),
    Row("twice", ghost_allocations.HELD_TWICE, "One device went to two.", unless="sharing, partitions"),
    Row("selector, pending, missing", unplaced_affinity.SELECTOR, "The pod selects what no node has.", POSSIBLE,
        unless="operand, plugin"),
    Row("taint, pending", unplaced_taint.NOT_TOLERATED, "A taint keeps the pod away.", POSSIBLE,
        unless="operand, plugin, operator"),
    Row("alignment, rejected", node_refuses.TOPOLOGY, "CPUs and GPUs cannot be aligned."),
    # Layer 4: labels that say what is not so, figures, partitions, shares.
    Row("models differ, labels", discovery.MODELS_DIFFER, "Labels of a node name one of its models.", POSSIBLE),
    Row("models differ, gpu label", discovery.MODELS_DIFFER, "Labels of a node name one of its models.", POSSIBLE),
    Row("gpu label, in spite", discovery.STALE, "A label says what is not so.",
        unless="pending, rejected, figures, upgrade, driver"),
    Row("policy, in spite", operator_chain.NOT_READY, "The operator does not do what its policy says.",
        unless="labels, driver"),
    Row("figures, whose, missing", exporter.PODS_UNMAPPED, "The figures do not say whose pod it is.", POSSIBLE),
    Row("mig manager, held", mig_change.GPU_IN_USE, "Somebody holds the GPU that is to be changed.", POSSIBLE),
    Row("partitions, held, crashes", mig_change.GPU_IN_USE, "Somebody holds the GPU that is to be changed.",
        unless="plugin, claims"),
    Row("exporter, sharing, in spite", exporter.PODS_UNMAPPED, "The figures do not tell those apart who share a GPU."),
    Row("exporter, sharing, missing", exporter.PODS_UNMAPPED, "The figures do not tell those apart who share a GPU."),
    Row("exporter, partitions, in spite", exporter.SCRAPE_FAILS, "Figures of partitions are not what is there."),
    Row("exporter, partitions, missing", exporter.SCRAPE_FAILS, "Figures of partitions are not what is there."),
    Row("mig manager, crashes", mig_change.CHANGE_FAILED, "The layout could not be applied."),
    Row("mig manager, unplaced", mig_manager.UNHANDLED, "The manager does not come to the node.", POSSIBLE),
    Row("mig manager, removed", mig_manager.STATE_FAILED, "The layouts are not those that were written.",
        cause_class="mig-state"),
    Row("mig manager, in spite", mig_manager.STATE_FAILED, "The layout is not what was asked for."),
    Row("partitions, reboot", mig_manager.STATE_FAILED, "Partitions do not outlive a restart of the machine.", POSSIBLE,
        unless="plugin, rejected"),
    Row("definitions, operator", operator_api.CRD_OLD, "The definitions are of another version."),
    Row("definitions, upgrade", operator_api.CRD_OLD, "The definitions are of another version."),
    Row("sharing, configuration, in spite", sharing_config.NOT_IN_EFFECT, "Shares are configured and not offered.",
        POSSIBLE),
    Row("sharing, configuration, labels, trouble", sharing_config.NOT_IN_EFFECT, "Shares are set and not offered.",
        unless="crashes, figures, queue, autoscaler"),
    Row("sharing, in spite, gpus", sharing_config.NOT_IN_EFFECT, "Shares are configured and not offered.",
        unless="crashes"),
    Row("sharing, gpus none", sharing_config.NOT_IN_EFFECT, "Shares are configured and not offered.", unless="crashes"),
    # Labels, and who reads them.
    Row("discovery, labels, removed", discovery.NFD_MISSING, "Labels are taken away and come back.", POSSIBLE),
    Row("labels, removed, upgrade", discovery.NFD_MISSING, "Labels went with an upgrade."),
    Row("labels, operand, removed", unplaced_operands.WANTED_NOWHERE, "The labels are gone from the node.", POSSIBLE,
        unless="discovery, upgrade"),
    Row("discovery, labels, missing", discovery.NFD_MISSING, _UNLABELLED, POSSIBLE),
    Row("discovery, missing", discovery.NFD_MISSING, _UNLABELLED),
    Row("gpu discovery, missing", discovery.NO_LABELS, _UNLABELLED, POSSIBLE),
    Row("labels, driver, in spite", deploy_labels.HELD_BACK, "A label says of the driver what is not so."),
    Row("policy, missing", operator_absent.ABSENT, "The operator has no policy to work by.", POSSIBLE, "plugin-config"),
    Row("policy, unplaced, labels", deploy_labels.HELD_BACK, "Labels keep the components away."),
    Row("labels, operand, missing", unplaced_operands.WANTED_NOWHERE, "No node has the label."),
    Row("plugin, not installed", unplaced_resource.NOT_OFFERED, "The plugin is not there.",
        unless="claims, labels, taint"),
    Row("labels, plugin, unplaced", unplaced_operands.WANTED_NOWHERE, "No node has the label.", POSSIBLE),
    Row("taint, operand, missing", unplaced_operands.TAINT_KEEPS_AWAY, "A taint keeps the components away.",
        cause_class="node-labels"),
    Row("operator, image pull", operator_pods.IMAGE_FAILS, "An image of the operator does not come."),
    Row("operand, image pull", operator_pods.IMAGE_FAILS, "An image of the operator does not come."),
    Row("operand, unplaced, operator", unplaced_operands.WANTED_NOWHERE, "The components come to no node."),
    Row("plugin, unplaced", unplaced_operands.WANTED_NOWHERE, "The plugin comes to no node."),
    Row("operator, unplaced", operator_absent.ABSENT, "The operator makes nothing.", cause_class="plugin-config"),
    Row("operator, not begun", operator_chain.NOT_READY, "The components wait for a part that does not come."),
    Row("operand, not begun", operator_chain.NOT_READY, "The components wait for a part that does not come."),
    Row("operand, again and again", unplaced_operands.WANTED_NOWHERE, "A component is made and taken away in turn."),
    Row("labels, gpus, missing", discovery.NO_LABELS, _UNLABELLED, unless="pending, rejected"),
    Row("labels, gpus, in spite", discovery.STALE, "A label says what is not so.",
        unless="pending, rejected, figures"),
    # Layer 2: the runtime, where that is what differs.
    Row("runtime, gpus none, view", not_default.NOT_DEFAULT, "The NVIDIA runtime is not the one that pods get.",
        unless="reboot"),
    # Layer 3: the plugin, and the kubelet's account.
    Row("plugin, configuration, crashes", plugin_refuses_config.CONFIG_REFUSED, _CONFIGURED, POSSIBLE),
    Row("configuration, gpus none, view", plugin_pool.NOT_HANDED_ON, _CONFIGURED, POSSIBLE, unless="claims"),
    Row("plugin, configuration, in spite", plugin_pool.NOT_HANDED_ON, _CONFIGURED),
    Row("kubelet, crashes, policies", kubelet_down.DOWN, "The kubelet ends over its settings.", POSSIBLE),
    Row("kubelet, crashes, configuration", kubelet_down.DOWN, "The kubelet ends over its settings."),
    Row("unhealthy, plugin, gpus", plugin_health.WITHHELD, "The plugin calls a device unhealthy."),
    Row("unhealthy, gpus, view", plugin_health.WITHHELD, "A device is called unhealthy, and not offered."),
    Row("rejected, reboot", admission_before_plugin.BEFORE_PLUGIN, "Pods are admitted before the plugin is back.",
        unless="engine, rootless"),
    Row("plugin, reboot, kubelet", admission_before_plugin.BEFORE_PLUGIN, "Pods begin before the plugin is back."),
    Row("plugin, restart, gpus none", plugin_stream.STREAM_BROKEN, _KEPT_ACCOUNT),
    Row("gpus none, view, reboot", plugin_stream.STREAM_BROKEN, _KEPT_ACCOUNT),
    Row("gpus none, reboot", plugin_stream.STREAM_BROKEN, _KEPT_ACCOUNT, unless="driver"),
    Row("gpus none, view, kubelet", plugin_stream.STREAM_BROKEN, _KEPT_ACCOUNT),
    Row("gpus none, view, upgrade", plugin_stream.AT_ZERO, "The count is 0 since an upgrade."),
    Row("fewer, gpus", plugin_health.WITHHELD, "The node offers fewer devices than it has.", unless="figures"),
    Row("gpus none, view", unplaced_resource.NOT_OFFERED, "The node offers no GPU."),
    *more_told.ROWS,
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    answered = set[tuple[str, int]]()
    said_better = program_told.is_said_better(facts)
    for told in facts.of(Told):
        for row in ROWS:
            if len(told.topics) > 1 and row.fits(told):
                answered.add((told.origin.source, told.origin.line))
                if said_better and row in program_rows.SEEN:
                    break
                yield row.code.finding(row.cause, row.confidence, [told], cause_class=row.cause_class)
                break
    yield from plugin_trouble.trouble(facts, answered)


RULE = Rule((said_faulty.FAULTY, plugin_trouble.TROUBLE), find)
