"""Kubernetes: objects as JSON or YAML, tables and descriptions of kubectl, plugin configuration, labels."""

from berth.evidence.formats import Format

FORMATS: tuple[Format, ...] = ()
