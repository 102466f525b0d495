"""Files of object stores and of other file systems that fsspec knows: `s3://`, `gs://`, `abfs://`, `sftp://`, `memory://`.

fsspec and the library of a store are asked for when an address needs them. Credentials are what these libraries
find, or what `storage_options` give them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.archive.remote.file import exactly
from workbench.archive.remote.retries import Unavailable, with_retries
from workbench.data.readers.address import name_of, plain_address, scheme_of
from workbench.errors import WorkbenchError

NEEDS = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs", "sftp": "paramiko", "ssh": "paramiko"}


class ObjectStore:
    """A place in a store, and what is below it."""

    def __init__(self, address: str, options: Mapping[str, Any]) -> None:
        self.address, self.name = address, name_of(address)
        try:
            from fsspec.core import url_to_fs

            self._files, self.path = url_to_fs(address, **options)
            if not self.path.strip("/"):
                raise ValueError("it names no file or folder")
        except ImportError as error:
            needed = NEEDS.get(scheme := scheme_of(address), str(error))
            how = "pip install 'lossbench[remote]'" if scheme == "s3" else "install them"
            raise WorkbenchError(f"{scheme}:// needs fsspec and {needed}: {how}") from None
        except (ValueError, TypeError) as error:
            how = "addresses are as https://example.org/x.zip or s3://bucket/x.zip"
            raise WorkbenchError(f"cannot open {plain_address(address)}: {error}: {how}") from None

    def size(self, key: str = "") -> int | None:
        """How many bytes a file has; None if there is none."""
        try:
            about = self._requested(lambda: self._files.info(self._place(key)), key)
        except FileNotFoundError:
            return None
        return int(about["size"]) if about.get("type") == "file" and about.get("size") is not None else None

    def sizes(self) -> dict[str, int]:
        """The files below this place, by their keys."""
        files = self._requested(lambda: self._files.find(self.path, detail=True))
        begin = f"{self.path.rstrip('/')}/"
        return {place.removeprefix(begin): int(about["size"]) for place, about in files.items() if place.startswith(begin)}

    def read(self, key: str, begin: int, size: int) -> bytes:
        """Exactly so many bytes of a file; a missing one is `FileNotFoundError`."""
        if not size:
            return b""
        data = self._requested(lambda: self._files.cat_file(self._place(key), start=begin, end=begin + size), key)
        return exactly(bytes(data), size, key or self.name)

    def put(self, file: Path) -> None:
        """Put a file here. Stores show an object when it is complete."""
        self._requested(lambda: self._files.put_file(str(file), self.path))

    def _place(self, key: str) -> str:
        return f"{self.path.rstrip('/')}/{key}" if key else self.path

    def _requested(self, request: Callable[[], Any], key: str = "") -> Any:
        """What a library returns; its errors in one sentence, and requests that may pass are repeated."""

        def once() -> Any:
            try:
                return request()
            except FileNotFoundError:
                raise
            except PermissionError as error:
                raise WorkbenchError(
                    f"the store of {self.name} refuses it ({error or 'no permission'}): give storage_options=..., such as "
                    '{"anon": True} for public data'
                ) from None
            except (TimeoutError, ConnectionError) as error:
                raise Unavailable(f"{type(error).__name__}: {error}") from None
            except Exception as error:   # each library has errors of its own
                reason = f"{type(error).__name__}: {error}".splitlines()[0]
                raise WorkbenchError(f"the store of {self.name} reports an error ({reason:.200})") from error

        return with_retries(once, key or self.name)


class ObjectFile:
    """A file in a store; a missing one is `FileNotFoundError`."""

    def __init__(self, store: ObjectStore) -> None:
        self.store, self.name = store, store.name

    def last(self, count: int) -> tuple[bytes, int]:
        """Its last bytes, at most so many, and its size."""
        size = self.store.size()
        if size is None:
            raise FileNotFoundError(self.name)
        count = min(count, size)
        return self.read(size - count, count), size

    def read(self, begin: int, size: int) -> bytes:
        """Exactly so many bytes from this place on."""
        return self.store.read("", begin, size)
