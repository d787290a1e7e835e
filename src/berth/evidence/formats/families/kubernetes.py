"""Kubernetes: tables and descriptions of kubectl, what people state, plugin configuration, labels, the kubelet's files.

Objects of the API (objects.py) are listed in all.py, since they hold other pieces.
"""

from berth.evidence.formats import (
    Format,
    errors_said,
    gpu_labels,
    kubectl_describe,
    kubectl_tables,
    kubelet_files,
    mig_names,
    plugin_config,
    remarks,
    stated,
    told,
    validations,
)

FORMATS: tuple[Format, ...] = (
    kubectl_tables.KUBECTL_TABLES,
    kubectl_describe.KUBECTL_DESCRIBE,
    stated.STATED,
    told.TOLD,
    remarks.FORMAT,
    errors_said.FORMAT,
    gpu_labels.LABEL_MAP,
    gpu_labels.GFD_EXPECTED,
    gpu_labels.NODE_PROFILE,
    mig_names.FORMAT,
    plugin_config.PLUGIN_CONFIG,
    kubelet_files.KUBELET_CONFIG,
    kubelet_files.KUBELET_CHECKPOINT,
    validations.VALIDATIONS,
)
