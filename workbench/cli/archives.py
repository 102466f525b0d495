"""The description of an archive, as text or as JSON. Nothing is decoded."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.archive import Archive
from workbench.archive.reading import StoredArray
from workbench.cli.notes import show_notes
from workbench.cli.source import print_result
from workbench.cli.visible import visible_lines
from workbench.codecs import Codec, Columns


def describe_archive(archive: Archive) -> dict[str, Any]:
    """Its content, size, bound and certificate."""
    layout = archive.data.layout
    bound = archive.certificate[layout.name].bound
    metadata = archive.attributes.get("metadata")
    return {
        "kind": "archive",
        "holds": archive.kind,
        "shape": list(layout.shape),
        "dtype": str(layout.dtype),
        **{name: archive.attributes.get(name) for name in archive.content.told},
        "codec": _described(archive.codec),
        "bound": bound and bound.to_dict(),
        **sizes(archive),
        "arrays": {name: _describe_array(stored) for name, stored in archive.arrays.items()},
        "certificate": archive.certificate.to_dict(),
        "provenance": archive.provenance,
        **{f"metadata.{name}": value for name, value in (metadata if isinstance(metadata, Mapping) else {}).items()},
    }


def sizes(archive: Archive) -> dict[str, Any]:
    """Its size before and after compression."""
    return {
        "original_bytes": archive.original_nbytes,
        "archive_bytes": archive.nbytes,
        "ratio": archive.ratio,
        "bits_per_value": archive.bits_per_value,
        **archive.content.figures(archive),
    }


def print_archive(described: Mapping[str, Any], archive: Archive, options: argparse.Namespace) -> None:
    """Print a description; as text, with one line per array and the certificate below.

    Notes about the bound go to standard error, where they stay visible if standard output is redirected.
    """
    certificate = archive.certificate
    show_notes(certificate.notes, options.parser)
    if options.json:
        print_result(described, True)
        return
    arrays, provenance = described.get("arrays", {}), described.get("provenance")
    lines = {name: value for name, value in described.items() if name not in ("arrays", "certificate", "provenance")}
    lines |= {f"array {name}": _in_words(array) for name, array in arrays.items()}
    if isinstance(provenance, Mapping):   # the codec is printed above
        lines |= {f"made with {name}": value for name, value in provenance.items() if name != "codec"}
    print_result(lines, False)
    print(visible_lines(str(replace(certificate, notes=()))))


def _describe_array(stored: StoredArray) -> dict[str, Any]:
    layout = stored.layout
    return {
        "shape": list(layout.shape),
        "dtype": str(layout.dtype),
        "chunks": layout.chunk_count,
        "bytes": stored.nbytes,
        "codec": _described(stored.codec),
    }


def _in_words(array: Mapping[str, Any]) -> str:
    shape = " x ".join(f"{size:,}" for size in array["shape"])
    return f"{array['bytes']:,} bytes: {shape} {array['dtype']}, {array['codec']['id']}, chunks: {array['chunks']:,}"


def _described(codec: Codec) -> dict[str, Any]:
    """The codec with its options; for tables, the codec of their columns."""
    return (codec.codec if isinstance(codec, Columns) else codec).to_dict()
