"""Where the API server is and who we are: kubeconfigs as kubectl merges them, and a pod's own service account."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from berth.base.errors import UNREADABLE, BadInput
from berth.kube.access import Access
from berth.kube.find_access import load_access
from berth.kube.proxies import proxy_from_environment

NOWHERE: dict[str, str] = {"HOME": "/nonexistent"}


def config(folder: Path, name: str = "config", **parts: Any) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    tree = {"apiVersion": "v1", "kind": "Config", **{key.replace("_", "-"): value for key, value in parts.items()}}
    path.write_text(json.dumps(tree))
    return str(path)


def cluster(name: str = "c", **fields: Any) -> dict[str, Any]:
    return {"name": name, "cluster": {"server": f"https://{name}:6443", **fields}}


def user(name: str = "u", **fields: Any) -> dict[str, Any]:
    return {"name": name, "user": {"token": f"token-of-{name}", **fields}}


def context(name: str = "x", cluster: str = "c", user: str = "u", **fields: Any) -> dict[str, Any]:
    return {"name": name, "context": {"cluster": cluster, "user": user, **fields}}


def whole(folder: Path, name: str = "config", **fields: Any) -> str:
    """One context, with these fields on its user or cluster."""
    on_user = fields.pop("user", {})
    return config(
        folder, name, clusters=[cluster(**fields)], users=[user(**on_user)], contexts=[context()], current_context="x"
    )


def refusal(*arguments: Any, **named: Any) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load_access(*arguments, **{"environ": NOWHERE, **named})
    assert caught.value.exit_code == UNREADABLE
    return caught.value


# ---- one file


def test_one_context(tmp_path: Path) -> None:
    path = whole(
        tmp_path, tls_server_name="api", **{"tls-server-name": "api.example", "proxy-url": "http://proxy:3128"}
    )
    access = load_access(path, environ=NOWHERE)
    assert access.server == "https://c:6443"
    assert access.token == "token-of-u"
    assert (access.context, access.cluster, access.user, access.namespace) == ("x", "c", "u", "default")
    assert (access.tls_server_name, access.proxy_url) == ("api.example", "http://proxy:3128")
    assert access.source == path


def test_yaml_with_a_trailing_slash_and_a_namespace(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "clusters: [{name: c, cluster: {server: 'https://c/prefix/'}}]\n"
        "contexts:\n- name: x\n  context: {cluster: c, namespace: team-a}\ncurrent-context: x\n"
    )
    access = load_access(str(tmp_path / "config"), environ=NOWHERE)
    assert (access.server, access.namespace, access.user) == ("https://c/prefix", "team-a", "")


def test_another_context_by_name(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        clusters=[cluster("c"), cluster("d")],
        users=[user()],
        contexts=[context("x"), context("y", "d", namespace="team")],
        current_context="x",
    )
    access = load_access(path, "y", environ=NOWHERE)
    assert (access.server, access.namespace) == ("https://d:6443", "team")


def test_data_is_decoded_and_wins_over_files(tmp_path: Path) -> None:
    def packed(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    path = whole(
        tmp_path,
        user={
            "client-certificate-data": packed("CERT"),
            "client-certificate": "cert.pem",
            "client-key-data": packed("KEY"),
            "client-key": "key.pem",
        },
        **{"certificate-authority-data": packed("CA"), "certificate-authority": "ca.pem"},
    )
    access = load_access(path, environ=NOWHERE)
    assert (access.ca_data, access.client_certificate_data, access.client_key_data) == (b"CA", b"CERT", b"KEY")
    assert (access.ca_file, access.client_certificate_file, access.client_key_file) == (None, None, None)


def test_paths_are_beside_their_file(tmp_path: Path) -> None:
    path = whole(
        tmp_path / "deep",
        user={"client-certificate": "pki/me.crt", "client-key": "/abs/me.key", "tokenFile": "token"},
        **{"certificate-authority": "../ca.crt"},
    )
    access = load_access(path, environ=NOWHERE)
    assert access.ca_file is not None and Path(access.ca_file).resolve() == (tmp_path / "ca.crt").resolve()
    assert access.client_certificate_file == str(tmp_path / "deep/pki/me.crt")
    assert access.client_key_file == "/abs/me.key"
    assert access.token_file == str(tmp_path / "deep/token")


@pytest.mark.parametrize(
    ("command", "becomes"),
    [("aws", "aws"), ("./plugins/aws", "{}/plugins/aws"), ("/usr/bin/aws", "/usr/bin/aws")],
)
def test_a_command_with_a_separator_is_beside_its_file(tmp_path: Path, command: str, becomes: str) -> None:
    entry = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": command,
        "args": ["token"],
        "env": [{"name": "A", "value": "1"}],
        "installHint": "Install it.",
        "provideClusterInfo": True,
    }
    path = whole(
        tmp_path,
        user={"token": None, "exec": entry},
        extensions=[{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "z"}}],
    )
    plugin = load_access(path, environ=NOWHERE).exec
    assert plugin is not None
    assert Path(plugin.command) == Path(becomes.format(tmp_path))
    assert (plugin.args, plugin.env, plugin.provide_cluster_info) == (("token",), (("A", "1"),), True)
    assert plugin.cluster_config == {"audience": "z"}


def test_impersonation(tmp_path: Path) -> None:
    path = whole(
        tmp_path, user={"as": "jane", "as-groups": ["dev"], "as-uid": "7", "as-user-extra": {"reason": ["a", "b"]}}
    )
    acting = load_access(path, environ=NOWHERE).impersonate
    assert acting is not None
    assert (acting.user, acting.groups, acting.uid, acting.extra) == ("jane", ("dev",), "7", (("reason", ("a", "b")),))


def test_a_server_without_a_scheme(tmp_path: Path) -> None:
    plain = config(
        tmp_path, "a", clusters=[cluster(server="host:8080")], contexts=[context(user="")], current_context="x"
    )
    assert load_access(plain, environ=NOWHERE).server == "http://host:8080"
    secure = whole(tmp_path, "b", server="host:6443", **{"insecure-skip-tls-verify": True})
    assert load_access(secure, environ=NOWHERE).server == "https://host:6443"


def test_secrets_are_not_shown() -> None:
    access = Access(server="https://c", token="SECRET", client_key_data=b"SECRET", password="SECRET", user="u")
    assert "SECRET" not in repr(access)
    assert "'u'" in repr(access)


# ---- several files


def test_the_first_file_wins_with_the_whole_entry(tmp_path: Path) -> None:
    first = config(tmp_path, "1/a", clusters=[cluster(**{"certificate-authority": "ca.crt"})], contexts=[context()])
    second = config(
        tmp_path,
        "2/b",
        clusters=[cluster(server="https://other", **{"tls-server-name": "name"}), cluster("d")],
        users=[user(tokenFile="token")],
        contexts=[context("x", "d"), context("y", "d")],
        current_context="x",
    )
    third = config(tmp_path, "c", users=[user(token="late")], current_context="y")
    environ = {"KUBECONFIG": os.pathsep.join([first, "", str(tmp_path / "absent"), second, third])}
    access = load_access(environ=environ)
    assert (access.context, access.server) == ("x", "https://c:6443")
    assert access.tls_server_name is None, "an entry is not filled up from a later file"
    assert access.ca_file == str(tmp_path / "1/ca.crt")
    assert (access.token, access.token_file) == ("token-of-u", str(tmp_path / "2/token"))


def test_a_named_file_stands_alone(tmp_path: Path) -> None:
    other = config(tmp_path, "other", users=[user()], clusters=[cluster()], contexts=[context()], current_context="x")
    alone = config(tmp_path, "alone", current_context="x")
    assert "not defined" in refusal(alone, environ={"KUBECONFIG": other}).problem


def test_home(tmp_path: Path) -> None:
    whole(tmp_path, ".kube/config")
    assert load_access(environ={"HOME": str(tmp_path)}).server == "https://c:6443"


def test_kubeconfig_is_not_filled_up_from_home(tmp_path: Path) -> None:
    whole(tmp_path, ".kube/config")
    missing = str(tmp_path / "missing")
    assert missing in refusal(environ={"HOME": str(tmp_path), "KUBECONFIG": missing}).where


# ---- in a pod


def mounted(folder: Path) -> Path:
    (folder / "token").write_text("t0ken\n")
    (folder / "ca.crt").write_text("CA")
    (folder / "namespace").write_text("team-a\n")
    return folder


def test_in_cluster(tmp_path: Path) -> None:
    environ = {**NOWHERE, "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    access = load_access(environ=environ, service_account=mounted(tmp_path))
    assert access.server == "https://10.0.0.1:443"
    assert (access.token, access.token_file) == (None, str(tmp_path / "token"))
    assert (access.ca_file, access.namespace) == (str(tmp_path / "ca.crt"), "team-a")


def test_in_cluster_with_ipv6(tmp_path: Path) -> None:
    environ = {**NOWHERE, "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert load_access(environ=environ, service_account=mounted(tmp_path)).server == "https://[fd00::1]:6443"


def test_a_kubeconfig_goes_before_the_pod(tmp_path: Path) -> None:
    environ = {"KUBECONFIG": whole(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert load_access(environ=environ, service_account=mounted(tmp_path)).server == "https://c:6443"


def test_a_pod_without_a_token(tmp_path: Path) -> None:
    error = refusal(environ={**NOWHERE, "KUBERNETES_SERVICE_HOST": "10.0.0.1"}, service_account=tmp_path)
    assert "automountServiceAccountToken" in error.remedy


# ---- what is wrong, where, and what to do


def test_nothing_anywhere() -> None:
    error = refusal()
    assert error.where == "/nonexistent/.kube/config"
    assert "--kubeconfig" in error.remedy


def test_a_named_file_that_is_not_there(tmp_path: Path) -> None:
    error = refusal(str(tmp_path / "nope"))
    assert error.where.endswith("nope")
    assert "No such file" in error.problem


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("a: [", ", line", "not a kubeconfig"),
        ("clusters: 3", ": clusters", "Expected `array"),
        ("users: [{name: u, user: {token: 7}}]", ": users[0].user.token", "got `int`"),
        ("contexts: [{context: {}}]", ": contexts[0]", "missing required field `name`"),
        ("just text", "", "Expected `object`"),
        ("\x00", "", "not a kubeconfig"),
    ],
)
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str, where: str, problem: str) -> None:
    (tmp_path / "config").write_text(text)
    error = refusal(str(tmp_path / "config"))
    assert error.where.startswith(str(tmp_path / "config")) and where in error.where
    assert problem in error.problem


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"server": ""}, "clusters[c].server", "missing"),
        ({"server": "ftp://c"}, "clusters[c].server", "not an address"),
        ({"certificate-authority-data": "%%"}, "certificate-authority-data", "not base64"),
        ({"insecure-skip-tls-verify": True, "certificate-authority": "ca"}, "insecure-skip-tls-verify", "authority"),
        ({"proxy-url": "socks5://p:1"}, "proxy-url", "only http and https"),
        ({"user": {"client-certificate": "a"}}, "users[u].client-key", "missing"),
        ({"user": {"token": None, "auth-provider": {"name": "gcp"}}}, "auth-provider", "removed"),
        ({"user": {"exec": {"command": "", "apiVersion": "client.authentication.k8s.io/v1"}}}, "command", "missing"),
        (
            {"user": {"exec": {"command": "a", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}},
            "apiVersion",
            "v1a",
        ),
    ],
)
def test_a_field_that_cannot_be_used(tmp_path: Path, fields: dict[str, Any], where: str, words: str) -> None:
    error = refusal(whole(tmp_path, **fields))
    assert str(tmp_path / "config") in error.where and where in error.where
    assert words in error.problem
    assert error.remedy


def test_contexts_are_listed_where_one_must_be_chosen(tmp_path: Path) -> None:
    path = config(tmp_path, clusters=[cluster()], users=[user()], contexts=[context("x"), context("y")])
    assert "(x, y)" in refusal(path).remedy
    assert "(x, y)" in refusal(path, "z").remedy
    assert "'z'" in refusal(path, "z").problem
    assert "no kubeconfig" in refusal(None, "z").problem


@pytest.mark.parametrize("missing", ["cluster", "user"])
def test_a_context_that_names_nothing(tmp_path: Path, missing: str) -> None:
    path = config(
        tmp_path, clusters=[cluster()], users=[user()], contexts=[context(**{missing: "ghost"})], current_context="x"
    )
    error = refusal(path)
    assert error.where.endswith(f"contexts[x].{missing}")
    assert "'ghost'" in error.problem


# ---- proxies


@pytest.mark.parametrize(
    ("server", "exceptions", "is_proxied"),
    [
        ("https://api.example.com:6443", "", True),
        ("https://api.example.com:6443", "example.com", False),
        ("https://example.com:6443", "example.com", False),
        ("https://example.com:6443", ".example.com", True),
        ("https://api.example.com", ".example.com", False),
        ("https://api.example.com", "*.example.com", False),
        ("https://notexample.com", "example.com", True),
        ("https://api.example.com:6443", "api.example.com:6443", False),
        ("https://api.example.com:6443", "api.example.com:443", True),
        ("https://10.1.2.3", "10.0.0.0/8", False),
        ("https://11.1.2.3", "10.0.0.0/8, 192.168.0.0/16", True),
        ("https://10.1.2.3", "localhost, 10.1.2.3", False),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://api", "*", False),
        ("https://localhost:6443", "", False),
        ("https://127.0.0.1:6443", "", False),
    ],
)
def test_no_proxy(server: str, exceptions: str, is_proxied: bool) -> None:
    environ = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": exceptions}
    assert proxy_from_environment(server, environ) == ("http://proxy:3128" if is_proxied else None)


def test_lower_case_and_plain_http() -> None:
    environ = {"http_proxy": "http://a", "https_proxy": "http://b", "no_proxy": "c"}
    assert proxy_from_environment("http://x", environ) == "http://a"
    assert proxy_from_environment("https://x", environ) == "http://b"
    assert proxy_from_environment("https://c", environ) is None


def test_the_kubeconfig_goes_before_the_environment(tmp_path: Path) -> None:
    path = whole(tmp_path, **{"proxy-url": "http://named:1"})
    assert load_access(path, environ={"HTTPS_PROXY": "http://other:2"}).proxy_url == "http://named:1"
    assert load_access(whole(tmp_path), environ={"HTTPS_PROXY": "http://other:2"}).proxy_url == "http://other:2"
