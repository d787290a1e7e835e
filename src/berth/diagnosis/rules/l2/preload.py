"""L2. A library that the loader is to put before all others is not in the container."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.heard import by_place, value
from berth.diagnosis.words import LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts

MISSING = Code(
    name="PreloadLibraryMissing",
    layer=Layer.L2,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.ProgramFails,
    title="a library that is loaded before all others is not where the container looks for it",
    meaning="Schedulers that share a card mount /etc/ld.so.preload and the library that it names into the pod. Where "
    "they lie in different places, or the library's folder was not mounted, the loader complains at each program and "
    "goes on without: the share is not enforced.",
    known_by="ld.so says that an object from /etc/ld.so.preload, or of LD_PRELOAD, cannot be preloaded.",
    disproved_by="ls of the named path in the container shows the file, of the container's architecture.",
    counter_check="kubectl exec POD -- sh -c 'cat /etc/ld.so.preload; ls -l PATH': the file is there",
    fix=Fix(
        steps=(
            "compare the path in /etc/ld.so.preload with where the plugin puts its library on the host (a chart value, "
            "changed on systems whose /usr is read-only)",
            "make both the same, restart the plugin, and make the pod anew",
        ),
        risk="pods keep what they were started with until they are made anew",
        rollback="the former value",
    ),
    verify=("kubectl exec POD -- true: no line of ld.so",),
    sources=("ld.so(8)", "HAMi, device plugin: libvgpu and ld.so.preload"),
)


def find(facts: Facts) -> Iterator[Answer]:
    for node, pod, found in by_place(facts.said("runtime.preload_missing")):
        path = value(found[0], "path")
        yield MISSING.finding(
            f"The loader cannot preload {path or 'what it is told to'}.", LIKELY, found, node=node, pod=pod
        )


RULE = Rule((MISSING,), find)
