"""L1. The driver cannot be built because what it is built against is not there."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.facts import Facts

NO_HEADERS = Code(
    name="KernelHeadersMissing",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the driver cannot be built: no headers for the running kernel",
    meaning="The node has no driver. The container that builds it finds no kernel headers in its repositories: the "
    "kernel is older than what they keep, or it is no kernel of the distribution.",
    known_by="The driver container cannot resolve the kernel's version, the package of its headers is not found, or "
    "the directory that the build needs is missing or was never configured.",
    disproved_by="The package of the headers for `uname -r` can be installed from the repositories of the container.",
    counter_check="on NODE: uname -r; in the driver container: apt-cache policy linux-headers-$(uname -r) or dnf list "
    "kernel-devel-$(uname -r): a candidate",
    fix=Fix(
        steps=(
            "bring the node to a kernel that the distribution's repositories have, and reboot",
            "or give the driver container a repository with the old headers (driver.repoConfig)",
            "or use precompiled drivers (driver.usePrecompiled=true) for this kernel",
            "a kernel of one's own or of elrepo: install the driver on the host, driver.enabled=false",
        ),
        risk="a reboot ends everything on the node",
        rollback="boot the former kernel",
    ),
    verify=(
        "kubectl logs -n gpu-operator -l app=nvidia-driver-daemonset: Done, now waiting for signal",
        "on NODE: lsmod | grep ^nvidia: loaded",
    ),
    sources=("gpu-driver-container, nvidia-driver scripts of ubuntu and rhel", "nvidia-installer, kernel.c"),
)
NO_REPOSITORY = Code(
    name="DriverRepositoryUnreachable",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the driver cannot be built: package repositories are not reached",
    meaning="The driver container has to install headers and a compiler, and has no repository for them: no network, "
    "no proxy, or no entitlement of the distribution.",
    known_by="The container says that the package cache could not be updated, or that an entitlement is missing.",
    disproved_by="The same command succeeds in a pod on that node.",
    counter_check="kubectl debug node/NODE -it --image=ubuntu -- apt-get update: succeeds, with the proxy settings of "
    "the ClusterPolicy",
    fix=Fix(
        steps=(
            "give the driver container proxy and certificates (driver.env, driver.certConfig)",
            "mirror the repositories and name them in driver.repoConfig; on RHEL add the entitlement secret",
            "or use precompiled drivers: nothing has to be installed then",
        ),
        risk="none for what runs",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs -n gpu-operator -l app=nvidia-driver-daemonset: Installing Linux kernel headers... and on",),
    sources=("gpu-driver-container, _update_package_cache", "GPU Operator, install in air-gapped environments"),
)
NO_BUILD_PACKAGE = Code(
    name="DriverBuildPackageMissing",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="the driver cannot be built: a package that the build needs is not in the repositories",
    meaning="Beside the headers a build needs a compiler, libelf and, on hosts, DKMS. The repositories that are "
    "enabled do not have it: a subscription, EPEL or universe is missing, or a mirror is incomplete.",
    known_by="The package manager does not find such a package.",
    disproved_by="The same command succeeds in a pod on that node.",
    counter_check="dnf repolist; dnf provides elfutils-libelf-devel, or apt-cache policy dkms libelf-dev: a version",
    fix=Fix(
        steps=(
            "RHEL: subscribe the node, or give the driver container the entitlement; CodeReady Builder and EPEL on",
            "Ubuntu and Debian: apt-get update, and universe or contrib among the sources; mirrors: add the package",
            "or use precompiled drivers (driver.usePrecompiled=true): nothing has to be built",
        ),
        risk="none for what runs",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs -n gpu-operator -l app=nvidia-driver-daemonset: Done, now waiting for signal",),
    sources=("gpu-driver-container, rhel and ubuntu scripts", "NVIDIA driver installation guide, prerequisites"),
)


_OF_CONTAINER = ("plugin-log", "operator-log")


def find(facts: Facts) -> Iterator[Answer]:
    headers = [*facts.said("driver.headers_missing"), *facts.said("driver.toolkit_stale")]
    headers += [*facts.said("driver.source_unconfigured", "driver.headers_step_fails")]
    if headers:
        custom = list(facts.said("driver.custom_kernel"))
        package = next((said.get("package") or said.get("package2") for said in headers if said.values), "")
        kernel = next((said.get("kernel") for said in custom), "")
        why = (
            f"The kernel {kernel} is none of the distribution's, whose repositories have no headers for it."
            if custom
            else f"The repositories have no {package}."
            if package
            else "The driver toolkit, from which OpenShift takes the headers, is not used or is of another kernel."
            if not any(
                True
                for _ in facts.said("driver.headers_missing", "driver.source_unconfigured", "driver.headers_step_fails")
            )
            else "The repositories have no headers for the running kernel: mostly it is older than what they keep."
        )
        yield NO_HEADERS.finding(why, ESTABLISHED, [*headers, *custom])
    unreachable = list(facts.said("driver.repositories_unreachable", "driver.packages_unreachable"))
    # Of the components that run on a node the driver container alone installs packages.
    unreachable += [one for one in facts.said("driver.package_gone") if one.origin.kind in _OF_CONTAINER]
    if unreachable and not headers:
        yield NO_REPOSITORY.finding("The driver container reaches no package repository.", LIKELY, unreachable)
    lacking = list(facts.said("driver.build_package_missing"))
    if lacking and not headers and not unreachable:
        names = ("package", "package2", "package3", "package4", "package5", "package6")
        package = next((said.get(name) for said in lacking for name in names if said.get(name)), "")
        only_for_drivers = "elf" in package or package == "dkms"
        yield NO_BUILD_PACKAGE.finding(
            f"The repositories have no {package}.", LIKELY if only_for_drivers else POSSIBLE, lacking
        )


RULE = Rule((NO_HEADERS, NO_REPOSITORY, NO_BUILD_PACKAGE), find)
