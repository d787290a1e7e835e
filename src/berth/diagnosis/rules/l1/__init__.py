"""Rules of layer 1: the kernel driver."""

from berth.diagnosis.finding import Rule
from berth.diagnosis.rules.l1 import (
    after_sleep,
    amd_driver,
    card_versions,
    confidential,
    device_files,
    driver_absent,
    driver_defect,
    driver_in_use,
    fabric_manager_down,
    fabric_not_ready,
    fabric_packages,
    fabric_version,
    foreign_driver,
    harmless,
    imex,
    kernel_headers,
    module_build,
    module_refused,
    module_unfit,
    no_gpu_here,
    nvml_refused,
    other_modules,
    peer_memory,
    version_skew,
    vgpu_license,
    wrong_kind,
)
from berth.diagnosis.rules.l1.each_node import each_node

_RULES = (
    foreign_driver.RULE,
    wrong_kind.RULE,
    version_skew.RULE,
    kernel_headers.RULE,
    module_build.RULE,
    module_refused.RULE,
    module_unfit.RULE,
    driver_defect.RULE,
    after_sleep.RULE,
    driver_absent.RULE,
    driver_in_use.RULE,
    device_files.RULE,
    nvml_refused.RULE,
    fabric_version.RULE,
    fabric_manager_down.RULE,
    fabric_not_ready.RULE,
    imex.RULE,
    peer_memory.RULE,
    vgpu_license.RULE,
    confidential.RULE,
    amd_driver.RULE,
    other_modules.RULE,
)
# These tell nodes apart by themselves.
_OF_VERSIONS = (card_versions.RULE, fabric_packages.RULE)
RULES: tuple[Rule, ...] = (*(each_node(rule) for rule in _RULES), *_OF_VERSIONS, harmless.RULE, no_gpu_here.RULE)
