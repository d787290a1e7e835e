"""What each value of an agent's configuration means, in a line, for `--help`. docs/agent.md says more."""

from __future__ import annotations

MEANINGS: dict[str, str] = {
    "node": "name of the Node; empty: NODE_NAME, else the host's name",
    "paths.root": "where the machine's root is",
    "paths.kubelet": "the kubelet's --root-dir, below the root; empty: the usual place, so for all paths",
    "paths.devicePlugins": "where device plugins have their sockets",
    "paths.logs": "where the machine's logs are",
    "paths.run": "the machine's /run",
    "paths.proc": "the machine's /proc",
    "looks.seconds": "between two looks",
    "looks.socketSeconds": "how long a plugin or the kubelet may take",
    "looks.containers": "look at what containers reach",
    "looks.listPlugins": "ask plugins for their lists, too",
    "looks.logWindowSeconds": "older sentences of the kernel count only where they latch",
    "writes.ledger": "keep the NodeLedger",
    "writes.condition": "write the condition of the Node",
    "writes.events": "write events",
    "writes.taint": "taint a node that is unfit",
    "writes.cordon": "cordon a node that is unfit",
    "writes.heartbeatSeconds": "one write a node in this time; more than 1,000 GPU nodes: 120",
    "writes.queues": "name the queue of each pod that holds a device",
    "server.address": "of /healthz and /metrics",
    "server.port": "of the same",
    "operandNamespaces": "whose pods reach GPUs by right",
    "logLevel": "debug, info, warning or error",
    "logFormat": "json or text",
}
