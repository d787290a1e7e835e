"""L3. The device plugin and the kubelet do not find each other at their sockets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from berth.diagnosis.finding import Answer, Code, Fix, Rule
from berth.diagnosis.rules.l3.places import by_node, said_of
from berth.diagnosis.words import LIKELY, POSSIBLE, CauseClass, Effect, Layer, Severity
from berth.evidence.fact import Said
from berth.evidence.facts import Facts
from berth.evidence.formats.kubelet_files import KubeletConfig

SOCKET_DENIED = Code(
    name="KubeletSocketDenied",
    layer=Layer.L3,
    cause_class="permission",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin may not use the kubelet's socket",
    meaning="The plugin runs, but it cannot register; the node offers no devices of it.",
    known_by="A socket in the kubelet's directories is refused with 'permission denied', or SELinux denies it.",
    disproved_by="The same pod registers when it runs privileged: then only its rights were missing; if not, look at "
    "the path.",
    counter_check="ausearch -m avc -ts recent | grep -i device-plugin (or dmesg | grep avc): no denial at that time",
    fix=Fix(
        steps=("SELinux: run the plugin as spc_t or container_device_plugin_t, or set privileged: true",
               "else: run it as root and mount /var/lib/kubelet/device-plugins writable"),
        risk="the plugin's pod gets more rights on the node",
        rollback="take the rights away again",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin for RESOURCE with Kubelet'",
            "ausearch -m avc -ts recent: no denial"),
    sources=("intel-device-plugins-for-kubernetes issue 1628", "container-selinux container_device_plugin_t"),
)  # fmt: skip

SOCKET_ABSENT = Code(
    name="KubeletSocketAbsent",
    layer=Layer.L3,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the kubelet's socket is not where the device plugin looks for it",
    meaning="The plugin cannot register; the node offers no devices of it.",
    known_by="kubelet.sock is absent at the path that the plugin has mounted, or refuses and the kubelet has another.",
    disproved_by="The kubelet was down at that moment, and the plugin registers since.",
    counter_check="on NODE: ps -o args -C kubelet | grep root-dir: no other folder; ls -l "
    "/var/lib/kubelet/device-plugins/kubelet.sock: there",
    fix=Fix(
        steps=("mount <kubelet's --root-dir>/device-plugins into the plugin at /var/lib/kubelet/device-plugins",
               "distributions with a path of their own (k0s: /var/lib/k0s/kubelet, MicroK8s: "
               "/var/snap/microk8s/common/var/lib/kubelet): set it in the chart, or link it"),
        risk="the plugin restarts; no new allocations for some seconds",
        rollback="put the former hostPath back",
    ),
    verify=("ls <root-dir>/device-plugins: the plugin's socket next to kubelet.sock",
            "kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE is there"),
    sources=("kubernetes device plugin API: /var/lib/kubelet/device-plugins", "k8s-device-plugin "
             "cmd/nvidia-device-plugin"),
)  # fmt: skip

NOT_SERVED = Code(
    name="KubeletSocketRefuses",
    layer=Layer.L3,
    cause_class="kubelet-state",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the kubelet's socket is there and the kubelet does not serve it",
    meaning="The plugin cannot register as long as that lasts; the node offers no devices of it. The path is right.",
    known_by="A connection to kubelet.sock is refused: a file of a kubelet that ended, or one that is still starting.",
    disproved_by="A later line says that the plugin is registered: the kubelet was restarting.",
    counter_check="on NODE: systemctl status kubelet; ss -xlp | grep device-plugins/kubelet.sock: the kubelet listens",
    fix=Fix(
        steps=("on NODE: journalctl -u kubelet -n 100: why it does not run, or does not come to its device manager",
               "it runs and still refuses: systemctl restart kubelet, then delete the plugin's pod",
               "the plugin came first at boot: let it try again (failOnInitError), or delete its pod"),
        risk="a restart of the kubelet: pods go on, new ones wait for seconds",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin for RESOURCE with Kubelet'",),
    sources=("kubernetes pkg/kubelet/cm/devicemanager: registration server", "kubernetes issue 125506"),
)  # fmt: skip

PLUGIN_UNREACHABLE = Code(
    name="PluginSocketUnreachable",
    layer=Layer.L3,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the kubelet cannot reach the device plugin's socket",
    meaning="The plugin announced a socket that the kubelet cannot dial: the resource never appears, although the "
    "plugin's log looks well.",
    known_by="The kubelet fails to dial the socket that the plugin registered with or put into plugins_registry.",
    disproved_by="The path exists on the node, and a process listens there.",
    counter_check="on NODE: ls -l <the path of the message>: there; ss -xlp | grep <its name>: a process listens",
    fix=Fix(
        steps=("give the plugin the same path inside the container as on the host: the kubelet dials it on the host",
               "kubelet with another --root-dir: set the chart's kubelet directory (plugins, plugins_registry, pods)",
               "remove sockets that nobody listens to any more from plugins_registry, restart the plugin"),
        risk="the plugin restarts",
        rollback="put the former paths back",
    ),
    verify=("kubelet log: 'Device plugin connected' or a registration without an error after it",
            "kubectl get node NODE -o jsonpath={.status.allocatable}: RESOURCE is there"),
    sources=("kubernetes pkg/kubelet/pluginmanager", "sriov-network-device-plugin issue 586"),
)  # fmt: skip

API_NOT_SERVED = Code(
    name="DevicePluginApiNotServed",
    layer=Layer.L3,
    cause_class="version-mismatch",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="kubelet and device plugin speak different versions of the plugin interface",
    meaning="The registration is refused; the node offers no devices of that plugin.",
    known_by="'Unimplemented' or 'unknown service' on registration, or the kubelet names the versions that it "
    "supports.",
    disproved_by="The registration succeeds with the same two versions: then the socket belonged to something else.",
    counter_check="kubectl get node NODE -o jsonpath={.status.nodeInfo.kubeletVersion}; the plugin's image tag: "
    "versions that register with each other on another node",
    fix=Fix(
        steps=("take a plugin that speaks v1beta1 with Kubernetes 1.10 and later",
               "Kubernetes before 1.10: --feature-gates=DevicePlugins=true, or upgrade"),
        risk="the plugin restarts",
        rollback="the former image",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin'",),
    sources=("kubernetes pkg/kubelet/apis/deviceplugin", "k8s-device-plugin issue 10"),
)  # fmt: skip

NOT_REGISTERED = Code(
    name="PluginRegistrationFails",
    layer=Layer.L3,
    cause_class="path-mount",
    severity=Severity.Error,
    effect=Effect.PluginDown,
    title="the device plugin does not get registered",
    meaning="Without a registration the node offers no devices of that plugin.",
    known_by="The plugin says that it could not register, start its server, or bind its socket.",
    disproved_by="A later line says that it is registered.",
    counter_check="kubectl logs of the plugin: 'Registered device plugin' after the message",
    fix=Fix(
        steps=("is the kubelet up, and is its socket at the path that is mounted? ls -l "
               "/var/lib/kubelet/device-plugins",
               "a stale socket of a former plugin: remove it, restart the plugin",
               "two plugins of one name: keep one"),
        risk="the plugin restarts",
        rollback="nothing to undo",
    ),
    verify=("kubectl logs of the plugin: 'Registered device plugin for RESOURCE with Kubelet'",),
    sources=("k8s-device-plugin internal/plugin/server.go",),
)  # fmt: skip


_UNREGISTERED = (
    "plugin.cannot_register", "plugin.cannot_bind", "plugin.bad_name", "reported.registration_rejected",
)  # fmt: skip
_OF_VERSIONS = (
    "plugin.api_not_served", "kubelet.plugin_api_unsupported", "reported.api_versions", "reported.gate_missing",
)  # fmt: skip


def find(facts: Facts) -> Iterator[Answer]:
    explained: set[str] = set()
    for node, said in by_node(facts.said("plugin.socket_denied")).items():
        explained.add(node)
        yield SOCKET_DENIED.finding("The kubelet's socket refuses the plugin: permission denied.", LIKELY, said)
    denied = [
        one for one in facts.said("selinux.kubelet_socket", "reported.selinux_socket") if one.get("permissive") != "1"
    ]
    for node, said in by_node(denied).items():
        if node not in explained:
            explained.add(node)
            path = said_of(one.get("path") or one.get("path2") for one in said)
            yield SOCKET_DENIED.finding(
                f"SELinux keeps a container away from {path or 'the kubelet socket'}.", LIKELY, said
            )
    for node, said in by_node(facts.said(*_OF_VERSIONS)).items():
        explained.add(node)
        yield API_NOT_SERVED.finding(
            "The other side does not serve the version of the interface that is spoken.", LIKELY, said
        )
    roots = {config.root_dir for config in facts.of(KubeletConfig) if config.root_dir not in ("", "/var/lib/kubelet")}
    for node, said in by_node(facts.said("plugin.socket_absent")).items():
        if node not in explained:
            explained.add(node)
            if not roots and all(one.get("refused") or one.get("refused2") for one in said):
                yield NOT_SERVED.finding("Nobody listens at the kubelet's socket: connection refused.", LIKELY, said)
                continue
            where = f" The kubelet runs with --root-dir {next(iter(roots))}." if roots else ""
            yield SOCKET_ABSENT.finding(
                f"The plugin finds no kubelet at its path.{where}", LIKELY if roots else POSSIBLE, said
            )
    for node, said in by_node(
        facts.said("reported.other_root", "reported.other_directory", "reported.socket_absent")
    ).items():
        if node not in explained:
            explained.add(node)
            yield SOCKET_ABSENT.finding(
                "The plugin does not see the kubelet's directory: another root, or no mount.", LIKELY, said
            )
    for node, said in by_node(facts.said("kubelet.registry_fails")).items():
        explained.add(node)
        yield NOT_SERVED.finding("The kubelet's server for registrations does not run.", LIKELY, said)
    other_version = {one.origin for one in facts.said("kubelet.plugin_api_unsupported")}
    undialled = facts.said("kubelet.cannot_dial_plugin", "reported.registry_dial")
    unreached = [one for one in undialled if one.origin not in other_version]
    for node, said in by_node(unreached).items():
        explained.add(node)
        path = said_of(one.get("path") or one.get("socket") for one in said)
        asked = any(facts.said("kubelet.registration_request"))
        if asked and "/device-plugins/" in path and all(_is_late(one.origin.text) for one in said):
            # It asked through the kubelet's socket in the same directory: the path is right.
            yield PLUGIN_UNREACHABLE.finding(
                f"The plugin registered and does not answer at {path}: it announces its socket before it serves it, "
                "and the kubelet dials once, at once.",
                LIKELY,
                said,
                cause_class="plugin-health",
            )
            continue
        yield PLUGIN_UNREACHABLE.finding(
            f"The kubelet cannot dial {path or 'the socket that the plugin announced'}: on the host it is not there, "
            "or nobody listens.",
            LIKELY,
            said,
        )
    for node, said in by_node(facts.said(*_UNREGISTERED)).items():
        if node not in explained:
            of_name = all(one.message == "plugin.bad_name" for one in said)
            yield NOT_REGISTERED.finding(
                "The kubelet takes no such resource name."
                if of_name
                else "The plugin says that it was not registered.",
                POSSIBLE,
                said,
                cause_class=_class_of(said, of_name),
            )


_DENIED = re.compile("permission denied|operation not permitted|read-only file system", re.IGNORECASE)


def _is_late(text: str) -> bool:
    return any(words in text.lower() for words in ("deadline exceeded", "connection refused", "i/o timeout"))


def _class_of(said: list[Said], of_name: bool) -> CauseClass | None:
    # A plugin whose library takes the socket's path for a name to look up was built wrong: another image mends it.
    if any("produced zero addresses" in one.origin.text for one in said):
        return "plugin-config"
    if any(_DENIED.search(one.origin.text) for one in said):
        return "permission"
    if of_name or any("already in use" in one.origin.text.lower() for one in said):
        return "plugin-config"
    return "version-mismatch" if _asks_for_gate(said) else None


def _asks_for_gate(said: list[Said]) -> bool:
    """Plugins of the first years ask for the feature gate when nobody serves them; the kubelet then had none."""
    texts = [one.origin.text.lower() for one in said]
    return any("feature gate" in text for text in texts) and any("deadline exceeded" in text for text in texts)


RULE = Rule((SOCKET_DENIED, SOCKET_ABSENT, NOT_SERVED, PLUGIN_UNREACHABLE, API_NOT_SERVED, NOT_REGISTERED), find)
