"""L2. ldconfig and its cache, through which the runtime finds libraries and makes them known in a container."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l2.places import by_node, first
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

LDCONFIG_FAILS = Code(
    name="LdconfigFails",
    layer=Layer.L2,
    cause_class="runtime-config",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the runtime cannot run ldconfig for the container",
    meaning="GPU containers do not start: the step that makes the driver's libraries known in the container fails.",
    known_by="nvidia-container-cli reports an ldcache error.",
    disproved_by="The ldconfig that config.toml names exists on the host and runs.",
    counter_check="on NODE: grep ldconfig /etc/nvidia-container-runtime/config.toml ; ls -l that path : exists",
    fix=Fix(
        steps=(
            'set ldconfig = "@/sbin/ldconfig.real" on Ubuntu and Debian, "@/sbin/ldconfig" elsewhere; the @ means the '
            "host's",
            "file not found although it is right: the driver root is wrong; see root in the same file",
            "exit code 1 with the right path: seccomp, SELinux, an old kernel or another architecture of the image; "
            "try a plain image of the host's architecture",
        ),
        risk="none for what runs",
        rollback="restore the file",
    ),
    verify=("a GPU container starts",),
    sources=("NVIDIA/libnvidia-container, src/nvc_ldcache.c", "NVIDIA container toolkit documentation, config.toml"),
)

CACHE_UNUSABLE = Code(
    name="LoaderCacheUnusable",
    layer=Layer.L2,
    cause_class="runtime-install",
    severity=Severity.Error,
    effect=Effect.ContainersDoNotStart,
    title="the loader's cache that the toolkit reads is missing or knows no NVIDIA library",
    meaning="The toolkit finds no driver libraries, or crashes while it looks for them: GPU containers do not start. "
    "Seen where the system image is built without the cache (Talos, NixOS, minimal images).",
    known_by="The cache cannot be loaded, holds no NVIDIA library, or the sandbox library crashes in its "
    "initialisation.",
    disproved_by="ldconfig -p lists libnvidia-ml.so.1 in the root that the toolkit uses.",
    counter_check="on NODE: ldconfig -p | grep libnvidia-ml : listed",
    fix=Fix(
        steps=(
            "run ldconfig where the root is writable; else take a build of the extension or image with a correct cache",
            "until then: NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=disable-nvsandboxutils, or legacy mode",
        ),
        risk="none for what runs",
        rollback="the former image",
    ),
    verify=("ldconfig -p | grep libnvidia-ml on NODE : listed", "a GPU container starts"),
    sources=("NVIDIA/nvidia-container-toolkit, internal/ldcache", "siderolabs/extensions, nvidia-container-toolkit"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, said in by_node(facts.said("runtime.cli_ldcache")).items():
        # What the tool's own log names as the reason.
        denied = [one for one in facts.said("runtime.cli_denied") if one.get("what18")]
        yield LDCONFIG_FAILS.finding(
            f"ldconfig: {first(denied, 'what18') or first(said, 'why', 'why2')}.",
            LIKELY,
            [*said, *denied],
            node=node,
            cause_class="permission" if denied else None,
        )
    for node, said in by_node(facts.said("runtime.ldcache_unusable")).items():
        of_specification = any(True for _ in facts.said("cdi.not_generated"))
        yield CACHE_UNUSABLE.finding(
            "The toolkit has no usable loader cache.",
            ESTABLISHED,
            said,
            node=node,
            cause_class="cdi" if of_specification else None,
        )
    for node, said in by_node(facts.said("runtime.ldcache_stale")).items():
        yield CACHE_UNUSABLE.finding(
            f"It names {first(said, 'path')}, which is not there any more.", LIKELY, said, node=node
        )


RULE = Rule((LDCONFIG_FAILS, CACHE_UNUSABLE), find)
