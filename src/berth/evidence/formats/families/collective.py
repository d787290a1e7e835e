"""NCCL logs and tests, RDMA ports; devices of resource claims; reports in Markdown."""

from berth.evidence.formats import Format, infiniband, markdown, nccl_log, nccl_tests, resource_slices

FORMATS: tuple[Format, ...] = (
    nccl_log.FORMAT,
    nccl_tests.FORMAT,
    infiniband.FORMAT,
    resource_slices.FORMAT,
    markdown.FORMAT,
)
