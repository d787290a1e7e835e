"""L1. The kernel module does not compile, with a compiler or against a kernel that do not fit, or none was made."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import value
from berth.diagnosis.words import ESTABLISHED, LIKELY, POSSIBLE, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts

_VERIFY = (
    "kubectl logs -n gpu-operator -l app=nvidia-driver-daemonset: Done, now waiting for signal",
    "on NODE: modinfo -F vermagic nvidia: begins with $(uname -r)",
)
BUILD_FAILS = Code(
    name="DriverBuildFails",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="the driver's kernel module does not build",
    meaning="The node has no driver for the kernel that it runs. Mostly the kernel is newer than what this driver "
    "branch knows.",
    known_by="The installer, DKMS or make stop with an error while they build nvidia.ko or one of its companions.",
    disproved_by="The log ends with the modules built and loaded.",
    counter_check="on NODE: dkms status: installed for what uname -r prints; the make log: no `error:`",
    fix=Fix(
        steps=(
            "look up the first error of the log: it names the kernel interface that changed",
            "take a driver branch that knows this kernel, or go back to the kernel that it was built for",
            "driver container: precompiled drivers (driver.usePrecompiled=true) take the build off the node",
        ),
        risk="another kernel needs a reboot",
        rollback="boot the former kernel",
    ),
    verify=_VERIFY,
    sources=("nvidia-installer, kernel.c", "open-gpu-kernel-modules, issues with the label build-problem", "dkms(8)"),
)
COMPILER = Code(
    name="DriverCompilerDiffers",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="the driver is built with another compiler than the kernel",
    meaning="A kernel made by a newer gcc passes options that an older one does not know, and the build stops.",
    known_by="The compiler refuses an option, or the compilers are said to differ, and no module came of it.",
    disproved_by="The build goes on and the modules load: then the warning about the compiler means nothing.",
    counter_check="on NODE: cat /proc/version; in the driver container: gcc --version: the same major version; or the "
    "build log ends with the modules loaded",
    fix=Fix(
        steps=(
            "take a driver image made for this distribution release: it brings the compiler that fits",
            "or install the kernel's gcc in it and select it: update-alternatives --set gcc /usr/bin/gcc-12",
            "or use precompiled drivers",
        ),
        risk="none for what runs",
        rollback="the former image",
    ),
    verify=_VERIFY,
    sources=("nvidia-installer, kernel.c (compiler check)", "gpu-driver-container, rhel scripts (gcc version)"),
)
NO_PRECOMPILED = Code(
    name="PrecompiledDriverMissing",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Critical,
    effect=Effect.DriverAbsent,
    title="there is no driver image for this kernel or release",
    meaning="Driver images are made for a kernel (precompiled) or for a distribution release; the one that this node "
    "asks for does not exist.",
    known_by="The registry or the installer does not find it.",
    disproved_by="The image can be pulled by the name that the pod asks for.",
    counter_check="kubectl get pod -n gpu-operator -l app=nvidia-driver-daemonset -o jsonpath='{..image}'; pull that "
    "name by hand: it is there",
    fix=Fix(
        steps=(
            "choose a driver version that has an image for this kernel and release",
            "or build it and push it to a registry of one's own (driver.repository)",
            "or usePrecompiled=false, so that the node builds it",
        ),
        risk="none for what runs",
        rollback="the former version in the ClusterPolicy",
    ),
    verify=("kubectl get pods -n gpu-operator -l app=nvidia-driver-daemonset: Running",),
    sources=("GPU Operator, precompiled driver containers", "gpu-driver-container, image tags"),
)


PACKAGES = Code(
    name="DriverPackagesConflict",
    layer=Layer.L1,
    cause_class="driver-build",
    severity=Severity.Error,
    effect=Effect.DriverAbsent,
    title="the driver's packages do not go together",
    meaning="The package manager installs nothing, or leaves a driver whose parts are of two releases or two "
    "repositories.",
    known_by="apt, dnf or dpkg names packages of the driver that depend on, conflict with or overwrite others.",
    disproved_by="The same command installs them now, and nvidia-smi answers.",
    counter_check="on NODE: dpkg -l | grep -i nvidia (rpm -qa | grep -i nvidia): one release, one repository",
    fix=Fix(
        steps=(
            "remove all of the driver: apt-get purge '*nvidia*' 'cuda-drivers*' or dnf remove '*nvidia*'; dnf module "
            "reset nvidia-driver",
            "one source: the distribution's repository or NVIDIA's, never both (pin it); then one branch, with -open "
            "or without for all parts",
            "nodes of the GPU Operator: driver.enabled=true brings it in a container, without packages of the host",
        ),
        risk="no driver until it is installed anew: the GPU pods of the node have to leave",
        rollback="install the former packages",
    ),
    verify=("nvidia-smi: one driver version", "dpkg --audit or dnf check: nothing"),
    sources=("NVIDIA driver installation guide, package managers", "apt and dnf: what they print"),
)


def find(facts: Facts) -> Iterator[Answer]:
    built = any(facts.said("driver.built"))
    failed = list(facts.said("driver.build_failed", "driver.make_failed", "driver.dkms_refused"))
    failed += facts.said("driver.kernel_interface_changed")
    unfit = list(facts.said("driver.compiler_unfit"))
    differs = [said for said in facts.said("driver.compiler_differs", "driver.compilers_shown") if _differ(said)]
    if unfit or (differs and not built):
        pair = next(((said.get("kernel"), said.get("compiler")) for said in differs if said.get("kernel")), None)
        option = next((said.get("option") or said.get("option2") for said in unfit if said.values), "")
        yield COMPILER.finding(
            " ".join(
                (
                    f"The kernel was built by gcc {pair[0]}, the driver is built by {pair[1]}."
                    if pair
                    else "The driver's compiler is not the kernel's.",
                    f"It does not know {option}." if option else "",
                )
            ).strip(),
            ESTABLISHED if unfit else POSSIBLE,
            [*unfit, *differs, *failed],
        )
    elif failed and not (built and not _is_sure(failed)):
        kernel = next((said.get("kernel") for said in failed if said.get("kernel")), "")
        what = next((found for said in failed if (found := value(said, "what"))), "")
        yield BUILD_FAILS.finding(
            f"The module does not build{f' for kernel {kernel}' if kernel else ''}{f': {what}' if what else ''}.",
            LIKELY,
            [*failed, *differs],
        )
    elif installer := [
        # A device that another driver has is no matter of the build, nor is what SELinux keeps out.
        *(
            said
            for said in facts.said("driver.installer_failed")
            if not any(facts.said("driver.nova", "driver.selinux_told"))
        ),
        *facts.said("driver.cos_installer_failed"),
        *facts.said("driver.space_told"),
        *facts.said("driver.node_installer_failed", "driver.node_unit_failed", "driver.target_read_only"),
    ]:
        denied = any(said.get("denied") for said in installer)
        yield BUILD_FAILS.finding(
            "What the installer has to fetch is denied to it."
            if denied
            else "The installer did not get a module into the kernel; its log names the reason above this line.",
            LIKELY if denied else POSSIBLE,
            installer,
            cause_class="permission" if denied else None,
        )
    elif scripts := list(facts.said("driver.script_failed", "driver.entry_missing")):
        what = scripts[0].get("what")
        # A name that nobody set or a word too many is the script's own fault, a program that is not there the image's.
        is_error = any(mark in what for mark in ("unbound variable", "syntax error", "unary operator"))
        is_lacking = scripts[0].message == "driver.entry_missing"
        yield BUILD_FAILS.finding(
            f"The script of the driver image stops: {what}.",
            POSSIBLE,
            scripts,
            cause_class="driver-bug" if is_error else "image" if is_lacking else None,
        )
    # Packages of the container toolkit are no driver.
    elsewhere = {(one.origin.source, one.origin.line) for one in facts.said("runtime.package_unavailable")}
    conflicts = facts.said("driver.packages_conflict")
    if parts := [one for one in conflicts if (one.origin.source, one.origin.line) not in elsewhere]:
        yield PACKAGES.finding("The package manager does not get the driver's packages together.", LIKELY, parts)
    elif gone := list(facts.said("driver.packages_absent")):
        package = next((found for said in gone if (found := value(said, "package"))), "")
        yield PACKAGES.finding(f"The repositories have no {package}.", LIKELY, gone)
    if lacking := list(facts.said("driver.release_missing")):
        version = next((found for said in lacking if (found := value(said, "version"))), "")
        yield NO_PRECOMPILED.finding(
            f"Release {version or 'that was asked for'} of the driver is not there to be downloaded.", LIKELY, lacking
        )
    missing = list(facts.said("driver.precompiled_missing"))
    if missing:
        tag = next((said.get("tag") for said in missing if said.get("tag")), "")
        package = next((said.get("package") for said in missing if said.get("package")), "")
        yield NO_PRECOMPILED.finding(
            f"The package {package} does not exist: nobody made the modules for this kernel."
            if package
            else f"The driver image {tag or 'that was asked for'} does not exist.",
            LIKELY,
            missing,
        )


def _differ(said: Said) -> bool:
    """Of the pair, the versions; the same compiler under two names is no difference."""
    return not said.get("kernel") or said.get("kernel") != said.get("compiler")


def _is_sure(failed: list[Said]) -> bool:
    return any(said.get("what") or said.get("step") for said in failed)


RULE = Rule((BUILD_FAILS, COMPILER, NO_PRECOMPILED, PACKAGES), find)
