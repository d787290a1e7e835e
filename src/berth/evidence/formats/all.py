"""The formats that are read, by who knows them. Nothing registers itself."""

from berth.evidence.formats import Format, bug_report, markdown, nvml_mock, objects
from berth.evidence.formats.families import collective, container, kernel, kubernetes, monitoring, smi

FORMATS: tuple[Format, ...] = (
    bug_report.BUG_REPORT,
    markdown.FORMAT,  # before what stands in its blocks
    *smi.FORMATS,
    nvml_mock.NVML_MOCK,
    *kernel.FORMATS,
    *container.FORMATS,
    objects.OBJECTS,
    *kubernetes.FORMATS,
    *monitoring.FORMATS,
    *collective.FORMATS,
)
