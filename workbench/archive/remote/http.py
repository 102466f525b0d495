"""Files by HTTP, in ranges of bytes, with the standard library alone.

Each answer is compared with the request: the range, the size of the file, and the validator (`ETag`, else the date) that
the first answer carried. So a server that ignores ranges, a proxy that cuts an answer, and a file that was replaced in the
meantime are errors, never wrong bytes. A server that does not know ranges sends the whole file: small ones are kept.
"""

from __future__ import annotations

import http.client
import math
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from workbench.archive.frame import Damaged
from workbench.archive.remote.file import exactly
from workbench.archive.remote.retries import Unavailable, with_retries
from workbench.arguments import number
from workbench.data.readers.address import name_of, plain_address
from workbench.errors import WorkbenchError

PATIENCE = 30.0             # seconds without a byte, and for the head of an answer
SLOWEST = 10_000            # bytes a second: an answer that takes longer is given up
MOST_WHOLE = 2**26          # bytes of a file that is kept if its server ignores ranges
AT_ONCE = 2**20
PASSING = (408, 425, 429, 500, 502, 503, 504)   # states of a server that may pass
OPTIONS = ("headers", "timeout")
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


@dataclass(frozen=True)
class Range:
    """So many bytes from a place on; the last ones where `begin` is None."""

    begin: int | None
    size: int

    def __str__(self) -> str:
        return f"bytes=-{self.size}" if self.begin is None else f"bytes={self.begin}-{self.begin + self.size - 1}"

    def matches(self, begin: int, end: int, whole: int) -> bool:
        """Whether bytes from `begin` to `end` of a file are these; of the last ones, a server may send fewer.

        >>> Range(5, 2).matches(5, 7, 100), Range(5, 2).matches(4, 6, 100), Range(None, 9).matches(95, 100, 100)
        (True, False, True)
        """
        if not 0 <= begin < end <= whole:
            return False
        if self.begin is None:
            return end == whole and end - begin <= self.size
        return (begin, end) == (self.begin, self.begin + self.size)


@dataclass(frozen=True)
class Answer:
    """The bytes of an answer, where they are in the file, and its size."""

    data: bytes
    begin: int
    size: int


class HTTPFile:
    """A file at an address; a missing one is `FileNotFoundError`. `headers` are sent with each request, as for a login."""

    def __init__(self, address: str, headers: Mapping[str, str] | None = None, timeout: float = PATIENCE) -> None:
        _origin(address)   # refuses what is no address
        self.address, self.name = address, name_of(address)
        self.headers = _checked(headers or {})
        self.timeout = number("timeout", timeout, low=0.01, high=1e5)
        self._validator: str | None = None
        self._whole: bytes | None = None

    def last(self, count: int) -> tuple[bytes, int]:
        """Its last bytes, at most so many, and its size."""
        answer = self._part(Range(None, count))
        return answer.data[-count:], answer.size

    def read(self, begin: int, size: int) -> bytes:
        """Exactly so many bytes from this place on."""
        if not size:
            return b""
        if self._whole is not None:
            return exactly(self._whole[begin : begin + size], size, self.name)
        answer = self._part(Range(begin, size))
        return exactly(answer.data[begin - answer.begin :][:size], size, self.name)

    def all_of_it(self, most: int) -> bytes:
        """All its bytes, at most so many."""
        return with_retries(lambda: self._answered("GET", None, most), self.name).data

    def size(self) -> int:
        """How many bytes it has, without reading them."""
        return with_retries(lambda: self._answered("HEAD", None, MOST_WHOLE), self.name).size

    @property
    def is_kept(self) -> bool:
        """Whether all its bytes are here."""
        return self._whole is not None

    def forget(self) -> None:
        """Keep no bytes of it."""
        self._whole = None

    def _part(self, wanted: Range) -> Answer:
        answer = with_retries(lambda: self._answered("GET", wanted, MOST_WHOLE), self.name)
        if answer.begin == 0 and len(answer.data) == answer.size:
            self._whole = answer.data
        return answer

    def _answered(self, method: str, wanted: Range | None, most: int) -> Answer:
        """One request: for a range, or without one for all; HEAD is for the size alone."""
        headers = {"User-Agent": "lossbench", "Accept-Encoding": "identity", **self.headers}
        if wanted is not None:
            headers["Range"] = str(wanted)
        request = urllib.request.Request(self._encoded, headers=headers, method=method)
        try:
            with _OPENER.open(request, timeout=self.timeout) as response:
                return self._answer(response, method, wanted, most)
        except urllib.error.HTTPError as error:
            raise self._refusal(error) from None
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(_reason(error)) from None

    @property
    def _encoded(self) -> str:
        """The address with spaces and letters beyond ASCII as HTTP has them."""
        return quote(self.address, safe="%/:=&?~#+!$,;'@()*[]")

    def _answer(self, response: Any, method: str, wanted: Range | None, most: int) -> Answer:
        self._require_same(response.headers)
        length = _count(response.headers.get("Content-Length"))
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise WorkbenchError(f"the server of {self.name} sends it compressed, against the request: download it first")
        if response.status == 206:
            begin, end, whole = self._stated_range(response.headers.get("Content-Range"), wanted)
            return Answer(self._body(response, end - begin), begin, whole)
        if length is None:
            raise WorkbenchError(f"the server of {self.name} does not say how long it is: download it first")
        if method == "HEAD":
            return Answer(b"", 0, length)
        if length > most:
            ignores = f"the server of {self.name} ignores ranges of bytes" if wanted else f"{self.name} is too large"
            raise WorkbenchError(f"{ignores}, and all of it takes {length:,} bytes (at most {most:,}): download it first")
        return Answer(self._body(response, length), 0, length)

    def _stated_range(self, stated: str | None, wanted: Range | None) -> tuple[int, int, int]:
        """From where to where an answer is, and the size of the file; another range than the requested one is an error."""
        numbers = _RANGE.fullmatch(stated or "")
        begin, last, whole = map(int, numbers.groups()) if numbers else (0, -1, 0)
        if wanted is None or not wanted.matches(begin, last + 1, whole):
            expected = "all" if wanted is None else "the end" if wanted.begin is None else f"{wanted.size:,} bytes"
            raise WorkbenchError(f"the server of {self.name} must send {expected} of it; it answers {stated!r:.80}")
        return begin, last + 1, whole

    def _body(self, response: Any, size: int) -> bytes:
        """Exactly so many bytes of an answer."""
        until = time.monotonic() + self.timeout + size / SLOWEST
        blocks: list[bytes] = []
        left = size
        while left and (block := response.read1(min(left, AT_ONCE))):   # what is there: a read would wait for all
            blocks.append(block)
            left -= len(block)
            if time.monotonic() > until:
                raise Unavailable(f"{size - left:,} of {size:,} bytes in {self.timeout + size / SLOWEST:.3g} s")
        if left:
            raise Unavailable(f"the answer ended after {size - left:,} of {size:,} bytes")
        return b"".join(blocks)

    def _require_same(self, headers: Any) -> None:
        """An error if the file is another than at the first answer."""
        validator = (headers.get("ETag") or headers.get("Last-Modified") or "").removeprefix("W/")
        with _FIRST_ANSWER:
            if self._validator is None:
                self._validator = validator
        if validator and self._validator and validator != self._validator:
            raise WorkbenchError(f"{self.name} changed since it was opened: open it again")

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        error.close()
        if error.code in PASSING:
            return Unavailable(f"its server answers {error.code} {error.reason}", _count(error.headers.get("Retry-After")))
        if error.code in (404, 410):
            return FileNotFoundError(self.name)
        if error.code == 416:
            return Damaged(self.name, "it has fewer bytes than its directory says")
        advice = {401: 'give storage_options={"headers": ...}', 403: 'give storage_options={"headers": ...}'}
        what = advice.get(error.code, "check the address")
        return WorkbenchError(f"the server of {self.name} refuses it ({error.code} {error.reason}): {what}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_whole": None}


def _reason(error: Exception) -> str:
    """Why a request failed, in a few words."""
    inner = getattr(error, "reason", error)
    if isinstance(inner, TimeoutError):
        return "its server does not answer in time"
    return f"{type(inner).__name__}: {inner}" if str(inner) else type(inner).__name__


def _count(given: str | None) -> int | None:
    return int(given) if given is not None and given.isascii() and given.isdigit() else None


def _checked(headers: Any) -> dict[str, str]:
    """Headers as text."""
    if not isinstance(headers, Mapping) or not all(isinstance(one, str) for pair in headers.items() for one in pair):
        raise WorkbenchError('headers must be text by name, as {"Authorization": "Bearer ..."}')   # passwords are not shown
    for name, entry in headers.items():
        if not (name.isascii() and name.isprintable() and " " not in name and ":" not in name and _ENTRY.fullmatch(entry)):
            raise WorkbenchError(f"the header {name!r} must be text of one line, in Latin letters; it cannot be sent")
    return dict(headers)


def _origin(address: str) -> tuple[str, str, int]:
    """The scheme, the machine and the port of an address.

    >>> _origin("https://example.org/x.zip")
    ('https', 'example.org', 443)
    """
    try:
        parts = urlsplit(address)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        raise WorkbenchError(f"an address must be as https://example.org/x.zip; it is no address ({error})") from None
    if parts.username is not None:
        raise WorkbenchError(
            f"the address {plain_address(address)} must be without a user and a password: give "
            'storage_options={"headers": {"Authorization": "Basic ..."}}'
        )
    if not host:
        raise WorkbenchError(f"{name_of(address)} must have an address as https://example.org/x.zip; it names no machine")
    return scheme, host, port or (443 if scheme == "https" else 80)


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows redirections by HTTP; only the same server gets the headers of the user, which may hold a password."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """The request for the new address."""
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise WorkbenchError(f"the server of {name_of(req.full_url)} redirects to an address that is not of HTTP")
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        scheme, host, port = here = _origin(req.full_url)
        secured = ("https", host, 443) if (scheme, port) == ("http", 80) else here
        if request is not None and _origin(newurl) not in (here, secured):
            request.headers = {name: entry for name, entry in request.headers.items() if name in _OWN}
        return request


class _InTime:
    """The lines of an answer's head, all of them within so many seconds, however slowly they come."""

    def __init__(self, file: Any, seconds: float | None) -> None:
        self._file, self._until = file, math.inf if seconds is None else time.monotonic() + seconds

    def readline(self, most: int) -> bytes:
        """A line, or so many bytes of it; what has not come is waited for once at a time."""
        line = b""
        while len(line) < most and not line.endswith(b"\n") and (there := self._file.peek(1)):
            line += self._file.read(min(there.find(b"\n") + 1 or len(there), most - len(line)))
            if time.monotonic() > self._until:
                raise TimeoutError
        return line


class _Response(http.client.HTTPResponse):
    """An answer whose head ends in time: the timeout of a socket begins again with every byte."""

    def __init__(self, sock: Any, *given: Any, **named: Any) -> None:
        super().__init__(sock, *given, **named)
        self._seconds = sock.gettimeout()

    def begin(self) -> None:
        """Read the head."""
        whole, self.fp = self.fp, _InTime(self.fp, self._seconds)   # type: ignore[assignment]
        try:
            super().begin()
        finally:
            self.fp = whole


class _Plain(http.client.HTTPConnection):
    response_class = _Response


class _Secured(http.client.HTTPSConnection):
    response_class = _Response


class _Opening(urllib.request.HTTPHandler):
    def http_open(self, req: Any) -> Any:
        """The answer to a request."""
        return self.do_open(_Plain, req)


class _OpeningSecured(urllib.request.HTTPSHandler):
    def https_open(self, req: Any) -> Any:
        """The answer to a request."""
        return self.do_open(_Secured, req)


_ENTRY = re.compile(r"[\t\x20-\x7e\x80-\xff]*")   # what HTTP takes as the entry of a header
_FIRST_ANSWER = threading.Lock()
_OWN = ("User-agent", "Accept-encoding", "Range")   # headers, as urllib writes them
_OPENER = urllib.request.build_opener(_Redirections, _Opening, _OpeningSecured)   # uses the proxies of the environment
