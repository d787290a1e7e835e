"""DCGM: metrics, counters, MIG layouts."""

from berth.evidence.formats import Format, dcgm_metrics, mig_layout

FORMATS: tuple[Format, ...] = (
    dcgm_metrics.DCGM_METRICS,
    dcgm_metrics.DCGM_COUNTERS,
    mig_layout.MIG_LAYOUT,
)
