"""NCCL logs and tests, RDMA ports."""

from berth.evidence.formats import Format, infiniband, nccl_log, nccl_tests

FORMATS: tuple[Format, ...] = (
    nccl_log.FORMAT,
    nccl_tests.FORMAT,
    infiniband.FORMAT,
)
