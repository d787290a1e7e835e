"""What the agent answers over HTTP: /healthz, /metrics. One thread of the standard library: it is asked twice a
minute.
"""

from __future__ import annotations

import errno
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from berth.app.agent.configuration import Configured
from berth.base.errors import BadInput
from berth.node.metrics import CONTENT_TYPE, Measures

STUCK_LOOKS = 4  # so many looks that did not come are told as sick
SLACK_S = 60.0


class Server:
    """Serves from `start` to `stop`. Sick is an agent that has not looked for a long while."""

    def __init__(self, configured: Configured, measures: Measures) -> None:
        every_s = configured.value.looks.seconds
        began_s = time.time()

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 10

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/metrics":
                    self._answer(200, measures.exposition(), CONTENT_TYPE)
                elif path in ("/healthz", "/livez", "/readyz"):
                    still = time.time() - (measures.last_look_s or began_s)
                    is_stuck = still > STUCK_LOOKS * every_s + SLACK_S
                    text = f"no look for {still:.0f} s\n" if is_stuck else "ok\n"
                    self._answer(503 if is_stuck else 200, text.encode(), "text/plain; charset=utf-8")
                else:
                    self._answer(404, b"there are /healthz and /metrics\n", "text/plain; charset=utf-8")

            def _answer(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """A line for each probe says nothing."""

        settings = configured.value.server
        try:
            self._server = ThreadingHTTPServer((settings.address, settings.port), Answering)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                where = configured.where("server.port")
                problem = f"port {settings.port} is in use."
                raise BadInput(where, problem, "Choose another one, or 0 for any.") from None
            where, problem = configured.where("server.address"), f"{settings.address!r} cannot be listened on."
            raise BadInput(where, problem, "Write 0.0.0.0 for all addresses.") from None
        self._server.daemon_threads = True
        self.address: tuple[str, int] = (str(self._server.server_address[0]), int(self._server.server_address[1]))

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
