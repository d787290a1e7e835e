"""What the Kubernetes under test has, by its version: tests of what came later are left out on an older one."""

from __future__ import annotations

import pytest

from devcluster import Options

MINOR = Options().minor
SERVES_POD_GROUPS = MINOR >= 37

needs_pod_groups = pytest.mark.skipif(
    not SERVES_POD_GROUPS, reason="PodGroups of scheduling.k8s.io/v1beta1 begin with Kubernetes 1.37"
)
needs_claims_for_resources = pytest.mark.skipif(
    MINOR < 36, reason="device classes that stand for a resource are off by default before Kubernetes 1.36"
)
