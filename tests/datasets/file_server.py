"""A small HTTP server on this machine that can resume, break off, and change its mind."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Server:
    """What the server has and does; tests change it while it runs."""

    files: dict[str, bytes]
    url: str = ""
    cut_after: int | None = None  # bytes of a body after which the connection is closed
    ranges: bool = True  # whether parts are served
    wrong_part: bool = False  # whether the part served is another than the one asked for
    date: str = "Sat, 01 Jan 2022 00:00:00 GMT"
    status: int | None = None
    content_type: str = "application/octet-stream"
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    sent: int = 0


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            server.requests.append((self.path, asked))
            content = server.files.get(self.path.removeprefix("/"))
            if server.status or content is None:
                self.send_error(server.status or 404)
                return
            start = 0
            unchanged = self.headers.get("If-Range") in (None, server.date)
            if asked and server.ranges and unchanged:
                start = int(asked.removeprefix("bytes=").rstrip("-"))
                if start >= len(content):
                    self.send_error(416)
                    return
                if server.wrong_part:
                    start = 0
                self.send_response(206)
                span = f"bytes {start}-{len(content) - 1}/{len(content)}"
                self.send_header("Content-Range", span)
            else:
                self.send_response(200)
            if server.date:
                self.send_header("Last-Modified", server.date)
            self.send_header("Content-Type", server.content_type)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            body = content[start:]
            if server.cut_after is not None:
                body = body[: server.cut_after]
            server.sent += len(body)
            self.wfile.write(body)
            self.close_connection = True

    return Handler


@contextmanager
def serving(files: dict[str, bytes]) -> Iterator[Server]:
    """Serve files on a free port of this machine."""
    server = Server(files)
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    listening.daemon_threads = True
    server.url = f"http://127.0.0.1:{listening.server_address[1]}/"
    thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
