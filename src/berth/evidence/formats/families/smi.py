"""nvidia-smi in all its forms."""

from berth.evidence.formats import (
    Format,
    smi_csv,
    smi_list,
    smi_mig,
    smi_query,
    smi_table,
    smi_topology,
    smi_xml,
)

FORMATS: tuple[Format, ...] = (
    smi_xml.FORMAT,
    smi_query.FORMAT,
    smi_table.FORMAT,
    smi_list.FORMAT,
    smi_csv.FORMAT,
    smi_topology.FORMAT,
    smi_mig.FORMAT,
)
