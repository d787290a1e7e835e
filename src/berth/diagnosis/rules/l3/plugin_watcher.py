"""L3. The device plugin cannot watch the kubelet's directory."""

from __future__ import annotations

from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node
from berth.diagnosis.words import ESTABLISHED, LIKELY, Effect, Layer, Severity
from berth.evidence.facts import Facts
from berth.evidence.formats.told import Told

INOTIFY_EXHAUSTED = Code(
    name="InotifyExhausted",
    layer=Layer.L3,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the node's inotify instances or watches are used up",
    meaning="Programs that watch files do not start: the device plugin, the kubelet's own watchers, log collectors.",
    known_by="A watcher cannot be made: 'too many open files' or 'no space left on device' from inotify.",
    disproved_by="Fewer instances are in use than fs.inotify.max_user_instances allows, and a new plugin pod starts.",
    counter_check="on NODE: find /proc/*/fd -lname anon_inode:inotify 2>/dev/null | wc -l: far below sysctl "
    "fs.inotify.max_user_instances",
    fix=Fix(
        steps=("sysctl -w fs.inotify.max_user_instances=8192 fs.inotify.max_user_watches=1048576, and in /etc/sysctl.d",
               "delete the plugin's pod so that it starts anew"),
        risk="some kernel memory for each watch",
        rollback="the former values",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'",
            "find /proc/*/fd -lname anon_inode:inotify | wc -l: below the limit"),
    sources=("inotify(7)", "gpu-operator issue 441"),
)  # fmt: skip

OUT_OF_FILES = Code(
    name="PluginOutOfFiles",
    layer=Layer.L3,
    cause_class="host-limits",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin gets no further file or socket",
    meaning="Its server cannot take the kubelet's calls: pods are refused, or the plugin serves an old list.",
    known_by="'too many open files' from the plugin's server at its socket.",
    disproved_by="The table has room (/proc/sys/fs/file-nr) and the plugin's process is far below its limit.",
    counter_check="on NODE: cat /proc/sys/fs/file-nr: the first number far below the third; ls /proc/<pid of the "
    "plugin>/fd | wc -l: far below its limit",
    fix=Fix(
        steps=("'… in system': raise fs.file-max, and find who holds the files (lsof | awk '{print $1}' | sort | uniq "
               "-c | sort -n)",
               "else: raise the limit of the plugin's process (LimitNOFILE of the runtime)",
               "delete the plugin's pod so that it starts anew"),
        risk="no new allocations for some seconds",
        rollback="the former values",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin' and no further line like it",),
    sources=("accept(2): EMFILE, ENFILE", "k8s-device-plugin issue 152"),
)  # fmt: skip

DIRECTORY_MISSING = Code(
    name="PluginDirectoryMissing",
    layer=Layer.L3,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the directory of the kubelet's plugin sockets is not in the plugin's container",
    meaning="The plugin ends at once; the node offers no devices.",
    known_by="The watcher of the device-plugins directory fails, and no limit is named.",
    disproved_by="The directory is there in the container and on the node, and the kubelet's socket lies in it.",
    counter_check="on NODE: ls -ld /var/lib/kubelet/device-plugins: there; ps -o args -C kubelet | grep root-dir: no "
    "other folder",
    fix=Fix(
        steps=("mount the directory that this kubelet uses (its --root-dir + /device-plugins) as hostPath",
               "old K3s: /var/lib/rancher/k3s/agent/kubelet; k0s: /var/lib/k0s/kubelet; MicroK8s: its snap directory"),
        risk="the plugin restarts",
        rollback="the former hostPath",
    ),
    verify=("ls <root-dir>/device-plugins: nvidia-gpu.sock next to kubelet.sock",),
    sources=("k8s-device-plugin cmd/nvidia-device-plugin/main.go", "k3s issues 443, 988"),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    # The watcher's own words are the same for a directory that is not there and for one that it may not read.
    denied = any({"plugin socket", "not allowed"} <= told.topics for told in facts.of(Told))
    limited = by_node(facts.said("plugin.watcher_limit", "reported.watch_limit"))
    for said in limited.values():
        yield INOTIFY_EXHAUSTED.finding("The kernel gives no further inotify instance or watch.", ESTABLISHED, said)
    for node, said in by_node(facts.said("plugin.out_of_files")).items():
        if node not in limited:
            yield OUT_OF_FILES.finding("The plugin's server gets no further file descriptor.", LIKELY, said)
    for node, said in by_node(facts.said("plugin.watcher_no_directory", "reported.directory_absent")).items():
        if node not in limited and not denied:
            yield DIRECTORY_MISSING.finding(
                "The plugin cannot watch the kubelet's device-plugins directory: it is not where it is mounted from.",
                LIKELY,
                said,
            )


RULE = Rule((INOTIFY_EXHAUSTED, OUT_OF_FILES, DIRECTORY_MISSING), find)
