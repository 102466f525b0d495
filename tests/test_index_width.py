"""No kernel multiplies two numbers of 32 bits where an index is needed: 3 times 10^9 coordinates would not fit.

The compiler's own listing of each kernel is read, before anything is optimised. Every product or shift of 32 bits that is
then widened to 64 bits is named, whatever lies between, unless both factors are known to be small.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench import host_library

NARROW = {"int", "unsigned int", "i32", "u32", "short int", "short unsigned int", "unsigned char", "u8", "u16"}
WIDE = {"long int", "long unsigned int", "long long int", "long long unsigned int", "i64", "u64", "sizetype", "ssizetype"}
SMALL = {   # the functions whose products stay small, and why
    "walk": "offsets of neighbouring blocks", "any_reaches": "offsets of neighbouring blocks",
    "BlocksAround::cells": "offsets of neighbouring blocks",
    "BlocksAround::mark_before": "offsets of neighbouring blocks", "crc_after": "rows of a table of 16",
    "divide_f32_3d": "cuts and parts of a division", "Tile::compare": "slots of a tile", "decode_block": "rows of a table",
    "next_symbol": "rows of a table", "answer_of": "a network's inputs", "rank_of": "steps of a move",
    **dict.fromkeys(("unpack_width", "unpack_tile", "add_sums", "each_byte", "pack_channels_f32_3d"), "numbers of a tile"),
    **dict.fromkeys(("add_up", "solve", "weigh"), "columns, terms and lanes of a fit"),
    "encode_symbols_f32_3d": "the state of the coder", "cut_together": "values of a block", "divide": "values of a patch",
    "lift": "values of a block or a patch", "lift_back": "values of a block", "node_range": "nodes of a tree, 2^27 at most",
    **dict.fromkeys(
        (
            "accumulate", "difference", "put_planes", "get_planes", "survey", "unpack", "encode_block", "merge",
            "get_symbols", "put_symbols", "predict_piece", "predict_class",
        ), "numbers of one block",
    ),
    **dict.fromkeys(
        ("Reader::high_of_one", "Reader::low_of", "add_children", "around", "divide_cells", "go_through", "halve",
         "find_beside", "halve_one", "known_sides", "write_rest", "encode_counts_f32_3d", "count_symbols_f32_3d"),
        "cells of a block of 2^15 particles, and rows of a table",
    ),
    **dict.fromkeys(
        ("attach", "between", "chances_of_dihedral", "chances_of_length", "chances_of_offset", "choose_frame", "detach",
         "hash_situation", "means_in_frame", "means_in_shell", "number_near", "size_from_one", "symbol",
         "encode_molecules_f32_3d", "decode_molecules_f32_3d"),
        "atoms of a block of 2^13, and rows of a table",
    ),
    **dict.fromkeys(("reset", "code_filled", "code_longer", "code_number"), "rows of the chances of zeros and lengths"),
}
SOURCES = sorted(path.stem for path in host_library.kernel_folder().glob("*.cu"))


def listing(source: Path, folder: Path) -> str:
    """What the compiler makes of a source before it optimises: one operation in each line, with the types of all names."""
    listed, flags = folder / "listing", ("-std=c++17", "-O0", "-fwrapv", *host_library.definitions("f32", 3))
    command = [*host_library.compiler(), *flags, "-x", "c++", "-S", str(source), "-o", "/dev/null"]
    ended = subprocess.run([*command, f"-fdump-tree-ssa={listed}"], capture_output=True, text=True)
    if not listed.exists():
        pytest.skip(f"this compiler lists no operations: {ended.stderr[:100]}")
    return listed.read_text()


def widened_products(text: str) -> Iterator[tuple[str, str]]:
    """Functions, and products of 32 bits in them that are widened."""
    for part in text.split(";; Function ")[1:]:
        name = part.split(" (")[0].replace("{anonymous}::", "").split("<")[0]
        yield from ((name, product) for product in Operations(part).widened())


class Operations:
    """The operations of one function: how each name is made, and its type."""

    def __init__(self, text: str) -> None:
        kinds = re.findall(r"^\s+(?:const )?((?:long |unsigned |short )*\w+) ([\w.]+);$", text, re.M)
        self.kinds = {name: kind for kind, name in [*kinds, *re.findall(r"(\w+) (\w+)(?=[,)])", text.partition("{")[0])]}
        self.made = dict(re.findall(r"^\s+([\w.]+) = (.*);$", text, re.M))
        self.made |= {name: f"PHI {those}" for name, those in re.findall(r"^\s+# ([\w.]+) = PHI <(.*)>", text, re.M)}

    def narrow(self, name: str) -> bool:
        return self.kinds.get(name, self.kinds.get(re.sub(r"_\d+$", "", name), "")) in NARROW

    def widened(self) -> Iterator[str]:
        for made in self.made.values():
            cast = re.fullmatch(r"\((?:const )?([\w ]+)\) ([\w.]+)(?:\(D\))?", made)
            if cast and cast[1] in WIDE and self.narrow(cast[2]) and (product := self.product_in(cast[2], ())):
                yield product

    def product_in(self, name: str, seen: tuple[str, ...]) -> str | None:
        """The product or shift that a name of 32 bits has in it, if any."""
        made = self.made.get(name)
        if made is None or name in seen:
            return None
        if re.fullmatch(r"\S+ (\*|<<) \S+", made):
            return made
        parts = re.fullmatch(r"(?:PHI .*|\((?:const )?(?:int|unsigned int|i32|u32)\) \S+|\S+ [+-] \S+|[\w.]+)", made)
        names = re.findall(r"[\w.]+(?=\(|$|,|\s)", made) if parts else []
        narrow = (self.product_in(each, (*seen, name)) for each in names if self.narrow(each))
        return next(filter(None, narrow), None)


@pytest.mark.few(13)
@pytest.mark.parametrize("source", SOURCES)
def test_no_index_is_a_product_of_32_bits(tmp_path: Path, source: str) -> None:
    path = host_library.kernel_folder() / f"{source}.cu"
    assert [each for each in widened_products(listing(path, tmp_path)) if each[0] not in SMALL] == []


@pytest.mark.parametrize(("source", "right", "wrong", "function"), [
    ("repair", "(i64)index[m] * DIMENSIONS", "index[m] * DIMENSIONS", "measure_moves"),
    ("ordering", "(i64)order[i] * DIMENSIONS + axis", "order[i] * DIMENSIONS + axis", "gather_rows"),
    ("surroundings", "(i64)s * DIMENSIONS", "s * DIMENSIONS", "Around::particles_of"),
    ("packing", "const i64 each = blocks_of_piece(piece, TOGETHER);", "const i32 each = (i32)piece * 2;", "group_widths"),
])
def test_a_product_of_32_bits_would_be_seen(tmp_path: Path, source: str, right: str, wrong: str, function: str) -> None:
    for path in host_library.kernel_folder().iterdir():
        (tmp_path / path.name).write_text(path.read_text())
    text = (tmp_path / f"{source}.cu").read_text()
    assert right in text
    (tmp_path / f"{source}.cu").write_text(text.replace(right, wrong, 1))
    found = {name for name, _ in widened_products(listing(tmp_path / f"{source}.cu", tmp_path))} - set(SMALL)
    assert {name.removesuffix("_f32_3d") for name in found} == {function}
