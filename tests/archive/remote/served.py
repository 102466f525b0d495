"""A web server of a folder that counts requests, and breaks as servers do."""

from __future__ import annotations

import http.server
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Served:
    """A folder on the web; `fault` may answer a request instead, and returns whether it did."""

    folder: Path
    address: str = ""
    asked: list[tuple[str, str, int]] = field(default_factory=list)   # method, path, bytes sent
    mark: str = '"first"'
    ranges: bool = True
    fault: Callable[[http.server.BaseHTTPRequestHandler, int], bool] | None = None
    headers: list[dict[str, str]] = field(default_factory=list)

    def at(self, name: str) -> str:
        """The address of a file."""
        return f"{self.address}/{name}"

    @property
    def sent(self) -> int:
        """The bytes of all answers."""
        return sum(count for _, _, count in self.asked)


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """A server of a folder, as long as this lasts."""
    state = Served(folder)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def answer(self) -> None:
            state.headers.append(dict(self.headers))
            number = len(state.asked)
            state.asked.append((self.command, self.path, 0))
            if state.fault is not None and state.fault(self, number):
                return
            place = state.folder / self.path.lstrip("/").partition("?")[0]
            if not place.is_file():
                self.send_error(404)
                return
            data = place.read_bytes()
            begin, end, status = asked_range(self.headers.get("Range"), len(data)) if state.ranges else (0, len(data), 200)
            if begin >= end and status == 206:
                self.send_error(416)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(end - begin))
            self.send_header("ETag", state.mark)
            if status == 206:
                self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data[begin:end])
                state.asked[number] = (self.command, self.path, end - begin)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    state.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def asked_range(header: str | None, size: int) -> tuple[int, int, int]:
    """From where to where bytes are asked for, and the status of the answer."""
    if header is None:
        return 0, size, 200
    found = re.fullmatch(r"bytes=(\d*)-(\d*)", header)
    assert found is not None
    if not found[1]:
        return max(size - int(found[2]), 0), size, 206
    return int(found[1]), min(int(found[2]) + 1, size), 206


# Faults.

def status(code: int, times: int = 10**9, **headers: str) -> Callable[[http.server.BaseHTTPRequestHandler, int], bool]:
    """The first few requests are refused with this status."""

    def answer(request: http.server.BaseHTTPRequestHandler, number: int) -> bool:
        if number >= times:
            return False
        request.send_response(code)
        for name, value in {"Content-Length": "0", **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        return True

    return answer


def stated(content_range: str | None, body: bytes, length: int | None = None, then: str = "close") -> Callable[
    [http.server.BaseHTTPRequestHandler, int], bool
]:
    """Each request is answered by these bytes, with this range stated."""

    def answer(request: http.server.BaseHTTPRequestHandler, number: int) -> bool:
        request.send_response(206 if content_range else 200)
        if content_range:
            request.send_header("Content-Range", content_range)
        if length is not None:
            request.send_header("Content-Length", str(length))
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(body)
        request.close_connection = True
        return True

    return answer


def silent(seconds: float) -> Callable[[http.server.BaseHTTPRequestHandler, int], bool]:
    """No answer comes for so long."""

    def answer(request: http.server.BaseHTTPRequestHandler, number: int) -> bool:
        time.sleep(seconds)
        request.close_connection = True
        return True

    return answer
