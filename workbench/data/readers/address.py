"""Addresses: what has a scheme, as `https://` or `s3://`, in place of a path of this machine."""

from __future__ import annotations

import re
from typing import Any, TypeGuard
from urllib.parse import unquote

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://)")


def is_address(given: Any) -> TypeGuard[str]:
    """Whether this names something on another machine, or in a file system of another kind.

    >>> is_address("https://example.org/snapshot.zip"), is_address("snapshot.zip")
    (True, False)
    """
    return isinstance(given, str) and _SCHEME.match(given) is not None


def scheme_of(address: str) -> str:
    """The kind of an address.

    >>> scheme_of("S3://bucket/snapshot.zip")
    's3'
    """
    found = _SCHEME.match(address)
    return found[0].lower() if found else ""


def name_of(address: str) -> str:
    """The last part of its path, for messages: neither a query nor a password.

    >>> name_of("https://user:secret@example.org/files/a%20b.zip?token=5")
    'a b.zip'
    """
    return unquote(plain_address(address).rstrip("/").rpartition("/")[2])


def plain_address(address: str) -> str:
    """The address for messages: without a user, a password and a query, which may hold a token.

    >>> plain_address("sftp://user:secret@example.org/files/a.zip?token=5")
    'sftp://example.org/files/a.zip'
    """
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
