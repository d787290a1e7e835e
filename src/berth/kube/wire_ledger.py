"""berth.dev/v1alpha1 NodeLedger as the scheduler reads it: what the agent of a node says of its devices.

One for each node, by the node's name. Every field may be missing: an agent says what it could see.
"""

from __future__ import annotations

from berth.kube.wire import ObjectMeta, Text, Wire


class LedgerPartition(Wire, frozen=True, gc=False):
    uuid: Text = None


class LedgerDevice(Wire, frozen=True, gc=False):
    """`state` is Fit, Suspect, Unfit or Unknown, `code` the finding behind it, `index` its place as NVML counts."""

    uuid: Text = None
    pci: Text = None
    index: int | None = None
    state: Text = None
    code: Text = None
    partitions: tuple[LedgerPartition, ...] | None = None


class PluginOffer(Wire, frozen=True, gc=False):
    """A unit as its plugin lists it to the kubelet; `healthy` is left out where it is."""

    id: Text = None
    healthy: bool | None = None


class LedgerPlugin(Wire, frozen=True, gc=False):
    resource: Text = None
    devices: tuple[PluginOffer, ...] | None = None


class NodeLedgerStatus(Wire, frozen=True, gc=False):
    """`heartbeat` is RFC 3339; `state` and `code` are of the node as a whole."""

    heartbeat: Text = None
    state: Text = None
    code: Text = None
    devices: tuple[LedgerDevice, ...] | None = None
    plugins: tuple[LedgerPlugin, ...] | None = None


class NodeLedger(Wire, frozen=True, gc=False):
    metadata: ObjectMeta | None = None
    status: NodeLedgerStatus | None = None
