"""Berth beside the real kube-scheduler on the same control plane, nodes and machine: seconds, CPU, writes, ratios."""
