"""Proof of who we are, as it changes: tokens in files, commands that print credentials, certificates."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from stand_in import Answer, Seen, StandIn, live, refused

from berth.base.errors import UNREADABLE, BadInput
from berth.kube.access import Access, ExecConfig, Impersonate
from berth.kube.client import Client
from berth.kube.credentials import REREAD_S, SOONEST_RERUN_S, Credentials
from berth.kube.errors import ApiError
from berth.kube.tls import tls_context

V1 = "client.authentication.k8s.io/v1"
PATH = "/api/v1/pods"


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def script(folder: Path, text: str) -> str:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def printed(version: str = V1, **status: Any) -> str:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def plugin(folder: Path, text: str, **fields: Any) -> Access:
    config = ExecConfig(command=script(folder, text), where="config: users[u].exec", **fields)
    return Access(server="http://c", exec=config)


async def after_refresh(access: Access, clock: Clock | None = None) -> Credentials:
    credentials = Credentials(access, clock or Clock())
    await credentials.refresh()
    return credentials


def headers(access: Access) -> list[tuple[str, str]]:
    return list(asyncio.run(after_refresh(access)).headers)


# ---- what is sent


def test_a_token() -> None:
    assert headers(Access(server="http://c", token="abc")) == [("Authorization", "Bearer abc")]


def test_a_name_and_a_password() -> None:
    assert headers(Access(server="http://c", username="a", password="b")) == [("Authorization", "Basic YTpi")]


def test_nothing() -> None:
    assert headers(Access(server="http://c")) == []


def test_whom_to_act_as() -> None:
    whom = Impersonate("jane", ("dev", "ops"), "7", (("example.com/why", ("a", "b")),))
    assert headers(Access(server="http://c", impersonate=whom)) == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-example.com%2Fwhy", "a"),
        ("Impersonate-Extra-example.com%2Fwhy", "b"),
    ]


# ---- tokens in files


def test_a_token_file_is_read_again_each_minute(tmp_path: Path) -> None:
    token, clock = tmp_path / "token", Clock()
    token.write_text("one\n")

    async def story() -> None:
        credentials = await after_refresh(Access(server="http://c", token_file=str(token)), clock)
        assert dict(credentials.headers) == {"Authorization": "Bearer one"}
        token.write_text("two")
        clock.now_s += REREAD_S - 1
        assert clock() < credentials.check_at_s
        clock.now_s += 1
        assert clock() >= credentials.check_at_s
        before = credentials.version
        await credentials.refresh()
        assert dict(credentials.headers) == {"Authorization": "Bearer two"}
        assert credentials.version > before
        token.unlink()
        clock.now_s += REREAD_S
        await credentials.refresh()
        assert dict(credentials.headers) == {"Authorization": "Bearer two"}, "the last one may still be good"

    asyncio.run(story())


def test_a_token_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        headers(Access(server="http://c", token_file=str(tmp_path / "token")))
    assert caught.value.where == str(tmp_path / "token")
    assert caught.value.exit_code == UNREADABLE


def test_a_token_file_that_is_not_there_beside_a_token(tmp_path: Path) -> None:
    access = Access(server="http://c", token="abc", token_file=str(tmp_path / "token"))
    assert headers(access) == [("Authorization", "Bearer abc")]
    (tmp_path / "token").write_text("from the file")
    assert headers(access) == [("Authorization", "Bearer from the file")]


def with_token(good: str) -> Any:
    def answer(seen: Seen) -> Answer:
        return (
            Answer({"ok": True}) if seen.headers["Authorization"] == f"Bearer {good}" else refused(401, "Unauthorized")
        )

    return answer


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_a_401_reads_the_token_again(tmp_path: Path, verb: str) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def story(server: StandIn, client: Client) -> None:
        server.on(PATH, with_token("new"))
        token.write_text("new")
        await client.request(verb, PATH, None if verb == "GET" else {})
        assert [each.headers["Authorization"] for each in server.seen] == ["Bearer old", "Bearer new"]

    live(story, token_file=str(token))


def test_a_401_that_stays_is_told_after_one_attempt(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def story(server: StandIn, client: Client) -> None:
        server.on(PATH, with_token("new"))
        with pytest.raises(ApiError) as caught:
            await client.get(PATH)
        assert caught.value.is_unauthorized
        assert len(server.seen) == 1, "nothing else to try with"

    live(story, token_file=str(token))


def test_a_watch_reads_the_token_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def story(server: StandIn, client: Client) -> None:
        server.on(PATH, with_token("new"))
        token.write_text("new")
        async with client.stream(PATH, {"watch": "true"}, silence_s=lambda: 5.0) as pieces:
            assert [piece async for piece in pieces] == [b'{"ok":true}']

    live(story, token_file=str(token))


# ---- commands


def test_a_command_prints_a_token(tmp_path: Path) -> None:
    assert headers(plugin(tmp_path, f"echo '{printed(token='abc')}'")) == [("Authorization", "Bearer abc")]


def test_v1beta1(tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1beta1"
    access = plugin(tmp_path, f"echo '{printed(version, token='abc')}'", api_version=version)
    assert headers(access) == [("Authorization", "Bearer abc")]


def test_what_a_command_is_told(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_text("CA")
    text = f'printf "%s|%s|%s" "$KUBERNETES_EXEC_INFO" "$WHO" "$1" > {tmp_path}/told\necho \'{printed(token="x")}\''
    config = ExecConfig(
        command=script(tmp_path, text),
        args=("get-token",),
        env=(("WHO", "me"),),
        provide_cluster_info=True,
        cluster_config={"audience": "z"},
    )
    access = Access(server="https://c", ca_file=None, ca_data=b"CA", insecure=True, tls_server_name="n", exec=config)
    with pytest.raises(BadInput):  # the CA is none; the command was asked before
        headers(msgspec_replace(access, insecure=False))
    told, who, argument = (tmp_path / "told").read_text().split("|")
    assert (who, argument) == ("me", "get-token")
    assert json.loads(told) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://c",
                "tls-server-name": "n",
                "certificate-authority-data": "Q0E=",
                "config": {"audience": "z"},
            },
        },
    }


def msgspec_replace(access: Access, **changes: Any) -> Access:
    import msgspec

    return msgspec.structs.replace(access, **changes)


def test_a_command_is_run_again_when_its_token_ends(tmp_path: Path) -> None:
    def until(seconds: float) -> str:
        return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    count = tmp_path / "count"
    text = f"echo x >> {count}\n" + "cat <<END\n" + printed(token="abc", expirationTimestamp=until(600)) + "\nEND"
    clock = Clock()

    async def story() -> None:
        credentials = await after_refresh(plugin(tmp_path, text), clock)
        lasts_s = credentials.check_at_s - clock()
        assert 560 < lasts_s <= 570, "thirty seconds early"
        await credentials.refresh()
        assert count.read_text() == "x\n"
        clock.now_s = credentials.check_at_s
        await credentials.refresh()
        assert count.read_text() == "x\nx\n"

    asyncio.run(story())


def test_a_command_is_not_run_for_every_401(tmp_path: Path) -> None:
    count, clock = tmp_path / "count", Clock()

    async def story() -> None:
        access = plugin(tmp_path, f"echo x >> {count}\necho '{printed(token='abc')}'")
        credentials = await after_refresh(access, clock)
        assert not await credentials.renew(credentials.version), "it was run a moment ago"
        clock.now_s += SOONEST_RERUN_S
        version = credentials.version
        both = await asyncio.gather(credentials.renew(version), credentials.renew(version))
        assert both == [True, True]
        assert count.read_text() == "x\nx\n", "once for all who wait"

    asyncio.run(story())


def test_a_token_that_is_written_down_goes_before_the_command(tmp_path: Path) -> None:
    access = plugin(tmp_path, "exit 1")
    assert headers(msgspec_replace(access, token="abc")) == [("Authorization", "Bearer abc")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo broken >&2; exit 3", "ended with 3: broken"),
        ("echo nonsense", "printed no ExecCredential"),
        (f"echo '{printed(V1 + 'beta1', token='x')}'", "answered in 'client.authentication.k8s.io/v1beta1'"),
        (f"echo '{printed()}'", "neither token nor client certificate"),
        (f"echo '{printed(clientCertificateData='x')}'", "not both"),
    ],
)
def test_a_command_that_fails(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        headers(plugin(tmp_path, text))
    assert words in caught.value.problem
    assert caught.value.where == "config: users[u].exec"
    assert caught.value.exit_code == UNREADABLE


def test_a_command_that_is_not_installed() -> None:
    config = ExecConfig(
        command="no-such-plugin", install_hint="Get it from example.com.", where="config: users[u].exec"
    )
    with pytest.raises(BadInput) as caught:
        headers(Access(server="http://c", exec=config))
    assert caught.value.sentence == (
        "config: users[u].exec: the command 'no-such-plugin' was not found. Get it from example.com."
    )


def test_a_command_that_fails_later_is_a_refusal_that_may_pass(tmp_path: Path) -> None:
    working = f"echo '{printed(token='abc')}'"
    access = plugin(tmp_path, working)
    clock = Clock()

    async def story() -> None:
        async with StandIn() as server, Client(msgspec_replace(access, server=server.url), clock=clock) as client:
            server.on(PATH, refused(401, "Unauthorized"), Answer({}))
            script(tmp_path, "exit 1")
            clock.now_s += SOONEST_RERUN_S
            with pytest.raises(ApiError) as caught:
                await client.get(PATH)
            assert caught.value.is_unauthorized
            script(tmp_path, working)
            assert await client.get(PATH) == {}

    asyncio.run(story())


# ---- certificates


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA, a server's certificate, and two clients' with their keys."""
    folder = tmp_path_factory.mktemp("pki")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    usage = "keyUsage=critical,keyCertSign,digitalSignature"
    openssl(
        "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "9", "-subj", "/CN=ca", "-addext", usage
    )
    for name in ("server", "jane", "john"):
        (folder / "ext").write_text("subjectAltName=DNS:api.example,DNS:localhost\n")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "9", "-extfile", "ext")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")
    openssl("ec", "-in", "jane.key", "-aes128", "-passout", "pass:x", "-out", "locked.key")
    return folder


class Greeter:
    """A TLS server that says who it sees: the common name of the client's certificate."""

    def __init__(self, pki: Path) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(pki / "server.crt", pki / "server.key")
        self.context.load_verify_locations(pki / "ca.crt")
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.resumed: list[bool] = []

    async def greet(self, request: web.BaseRequest) -> web.Response:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert") or {}
        self.resumed.append(request.transport.get_extra_info("ssl_object").session_reused)
        subject = dict(pair[0] for pair in certificate.get("subject", ()))
        return web.json_response({"name": subject.get("commonName", "nobody")})

    async def __aenter__(self) -> str:
        self.runner = web.ServerRunner(web.Server(self.greet, access_log=None), shutdown_timeout=0.01)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0, ssl_context=self.context).start()
        return f"https://127.0.0.1:{self.runner.addresses[0][1]}"

    async def __aexit__(self, *_: object) -> None:
        await self.runner.cleanup()


def met(pki: Path, verb: str = "GET", **fields: Any) -> Any:
    async def story() -> Any:
        async with Greeter(pki) as url:
            access = Access(
                **{"server": url, "ca_file": str(pki / "ca.crt"), "tls_server_name": "api.example", **fields}
            )
            async with Client(access) as client:
                return json.loads(await client.request(verb, PATH, b"{}" if verb == "POST" else None, most_attempts=1))

    return asyncio.run(story())["name"]


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_a_client_certificate(pki: Path, verb: str) -> None:
    files = {"client_certificate_file": str(pki / "jane.crt"), "client_key_file": str(pki / "jane.key")}
    assert met(pki, verb, **files) == "jane"
    data = {
        "client_certificate_data": (pki / "john.crt").read_bytes(),
        "client_key_data": (pki / "john.key").read_bytes(),
        "ca_data": (pki / "ca.crt").read_bytes(),
    }
    assert met(pki, verb, **data) == "john"
    assert met(pki, verb) == "nobody"


def test_through_a_proxy(pki: Path) -> None:
    """The proxy is asked for a tunnel, and sees neither the token nor what is asked."""
    lines: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines.append(head)
        port = int(head.split(b" ")[1].rpartition(b":")[2])
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while piece := await source.read(4096):
                target.write(piece)
            target.close()

        await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)

    async def story() -> None:
        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        async with Greeter(pki) as url:
            port = url.rpartition(":")[2]
            access = Access(
                # A name that only the proxy can reach.
                server=f"https://api.example:{port}",
                ca_file=str(pki / "ca.crt"),
                token="SECRET",
                proxy_url=f"http://me:pass@127.0.0.1:{proxy.sockets[0].getsockname()[1]}",
                client_certificate_file=str(pki / "jane.crt"),
                client_key_file=str(pki / "jane.key"),
            )
            async with Client(access) as client:
                for verb, body in (("GET", None), ("POST", b"{}")):
                    assert json.loads(await client.request(verb, PATH, body)) == {"name": "jane"}
        proxy.close()
        (head,) = set(lines)
        assert head.startswith(b"CONNECT api.example:%d HTTP/1.1\r\n" % int(port))
        assert b"Proxy-Authorization: Basic bWU6cGFzcw==" in head and b"SECRET" not in head

    asyncio.run(story())


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_a_server_that_is_not_who_it_should_be(pki: Path, verb: str) -> None:
    with pytest.raises(ApiError, match="its certificate cannot be trusted: Hostname mismatch"):
        met(pki, verb, tls_server_name="other.example")
    with pytest.raises(ApiError, match="its certificate cannot be trusted: self-signed certificate"):
        met(pki, verb, ca_file=None)
    assert met(pki, verb, ca_file=None, insecure=True, tls_server_name=None) == "nobody"


def test_a_command_prints_a_certificate(pki: Path, tmp_path: Path) -> None:
    status = {
        "clientCertificateData": (pki / "jane.crt").read_text(),
        "clientKeyData": (pki / "jane.key").read_text(),
    }
    (tmp_path / "printed").write_text(printed(**status))
    config = ExecConfig(command=script(tmp_path, f"cat {tmp_path}/printed"))
    assert met(pki, exec=config) == "jane"
    assert met(pki, "POST", exec=config) == "jane"


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"ca_data": b"no pem"}, "config: clusters[c].certificate-authority-data", "no usable CA"),
        ({"ca_file": "/nonexistent"}, "/nonexistent", "No such file"),
        (
            {"client_certificate_file": "{}/jane.crt", "client_key_file": "{}/john.key"},
            "{}/jane.crt",
            "key values mismatch",
        ),
        ({"client_certificate_file": "{}/jane.crt", "client_key_file": "{}/locked.key"}, "{}/jane.crt", "no usable"),
        (
            {"client_certificate_data": b"x", "client_key_data": b"y"},
            "config: users[u].client-certificate-data",
            "usable",
        ),
    ],
)
def test_certificates_that_cannot_be_used(pki: Path, fields: dict[str, Any], where: str, words: str) -> None:
    filled = {key: value.format(pki) if isinstance(value, str) else value for key, value in fields.items()}
    access = Access(server="https://c", source="config", cluster="c", user="u", **filled)
    with pytest.raises(BadInput) as caught:
        tls_context(access)
    assert caught.value.where == where.format(pki)
    assert words in caught.value.problem
    assert caught.value.exit_code == UNREADABLE


def test_a_certificate_that_is_replaced_on_disk(pki: Path, tmp_path: Path) -> None:
    certificate, key, clock = tmp_path / "me.crt", tmp_path / "me.key", Clock()

    def become(name: str, moment: int) -> None:
        for target, suffix in ((certificate, "crt"), (key, "key")):
            target.write_bytes((pki / f"{name}.{suffix}").read_bytes())
            os.utime(target, (moment, moment))

    async def story() -> None:
        async with Greeter(pki) as url:
            access = Access(
                server=url,
                ca_file=str(pki / "ca.crt"),
                tls_server_name="localhost",
                client_certificate_file=str(certificate),
                client_key_file=str(key),
            )
            async with Client(access, clock=clock) as client:
                for name, verb in (("jane", "GET"), ("jane", "POST"), ("john", "GET"), ("john", "POST")):
                    if name == "john" and verb == "GET":
                        become("john", 2)
                        clock.now_s += REREAD_S
                    answer = await client.request(verb, PATH, b"{}" if verb == "POST" else None)
                    assert json.loads(answer)["name"] == name

    become("jane", 1)
    asyncio.run(story())


def test_new_connections_skip_the_full_handshake(pki: Path) -> None:
    async def story() -> None:
        greeter = Greeter(pki)
        async with greeter as url:
            access = Access(server=url, ca_file=str(pki / "ca.crt"), tls_server_name="localhost")
            async with Client(access) as client:
                await client.post(PATH, b"{}")
                assert greeter.resumed == [False]
                await asyncio.gather(*(client.post(PATH, b"{}") for _ in range(8)))
                # One went over the connection that was open already.
                assert sorted(greeter.resumed[1:]) == [False] + [True] * 7

    asyncio.run(story())
