"""Builds the kernels for browsers: the sources of `kernels/`, compiled to WebAssembly by clang.

WebAssembly has IEEE arithmetic without contraction, so a page computes the bits of the other machines
(`tests/test_web_library.py`). A module asks its page for nothing: it has no imports, and one thread. Few users have this
compiler, so the module with the kernels of `workbench/lab/live` is part of the package, with a hash of its sources.

    python -m workbench.web_library     # after a change of these kernels
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workbench.declarations import declared_kernels
from workbench.host_library import PACKAGE, definitions, kernel_folder, variant, with_headers

MODULE = PACKAGE / "lab" / "live" / "kernels.wasm"
COMPILER = "clang++"

# No flag chooses a processor: WebAssembly is one. Contraction is off, as on the other machines.
FLAGS = (
    "--target=wasm32-wasi", "--sysroot=/usr", "-isystem", "/usr/include/wasm32-wasi/c++/v1",
    "-isystem", "/usr/include/wasm32-wasi", "-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-exceptions",
    "-ffunction-sections", "-Wall", "-Wextra", "-Wno-unknown-pragmas",
)
LINKED = (
    "-mexec-model=reactor", "-Wl,--gc-sections", "-Wl,--strip-all", "-Wl,--export=__heap_base", "-Wl,-z,stack-size=1048576",
    "-Wl,--stack-first",   # a stack that overflows stops the program, instead of overwriting data
)
MAIN = 'extern "C" { int host_threads() { return 1; } const char* host_source_hash() { return SOURCE_HASH; } }'

VARIANTS = (("f32", 3), ("f64", 3))   # of the page
# The kernels of the page, by file: what `workbench/lab/live/front` launches.
OF_PAGE = {
    "fof": (
        "cell_keys", "start_cells", "start_blocks", "link", "label_particles", "bound_pieces", "join_pieces", "dense_keys",
        "reorder_dense", "tree_leaves", "bound_branches", "bound_trunks",
    ),
    "ordering": ("count_digits", "place_words", "place_by_digit", "count_nested_runs", "place_runs", "gather_rows"),
    "lattice": ("cells_to_keys", "keys_to_positions", "key_gaps"),
    "entropy": ("take_blocks", "classify", "count_codes", "encode_symbols"),
    "extent": ("extent",),
}
Chosen = dict[str, tuple[str, ...]]   # names of kernels by file


def all_kernels() -> Chosen:
    """Every kernel, by file."""
    return {path.stem: tuple(declared_kernels(path.read_text())) for path in sorted(kernel_folder().glob("*.cu"))}


def declarations(chosen: Chosen = OF_PAGE) -> dict[str, list[tuple[str, bool]]]:
    """The type of each parameter of these kernels, and whether it is an array: what a page checks launches against.

    >>> declarations({"ordering": ("join_words",)})
    {'join_words': [('i64', False), ('i32', False), ('u64', True)]}
    """
    every = {name: declared_kernels((kernel_folder() / f"{name}.cu").read_text()) for name in chosen}
    return {name: [(p.type, p.pointer) for p in every[source][name]] for source in chosen for name in chosen[source]}


def source_hash(chosen: Chosen, variants: Iterable[tuple[str, int]]) -> str:
    """A fingerprint of the flags, the kernels that are exported and the sources that are compiled for them.

    >>> source_hash(OF_PAGE, VARIANTS) == source_hash(OF_PAGE, [("f32", 3)])
    False
    """
    digest = hashlib.sha256(repr([FLAGS, LINKED, MAIN, sorted(chosen.items()), list(variants)]).encode())
    for name in sorted(chosen):
        digest.update(with_headers(kernel_folder() / f"{name}.cu").encode())
    return digest.hexdigest()[:16]


def why_not() -> str | None:
    """What is missing on this machine, as a sentence; None if a module can be built."""
    install = "on Debian and Ubuntu: apt install clang lld wasi-libc libc++-dev-wasm32 libclang-rt-dev-wasm32"
    with tempfile.TemporaryDirectory() as scratch:
        command = [COMPILER, *FLAGS, *LINKED, "-include", "cmath", "-x", "c++", "-", "-o", f"{scratch}/none.wasm"]
        try:
            run = subprocess.run(command, input="", capture_output=True, text=True)
        except FileNotFoundError:
            return f"kernels for browsers need {COMPILER}, which was not found ({install})"
    return f"{COMPILER} cannot link for WebAssembly: {run.stderr.splitlines()[0]} ({install})" if run.returncode else None


def build(module: Path = MODULE, chosen: Chosen = OF_PAGE, variants: Iterable[tuple[str, int]] = VARIANTS) -> Path:
    """Compile these kernels into a module, replacing it only when all of it compiled.

    Each is exported under its name in the host library: `link_f32_3d`.
    """
    if reason := why_not():
        raise SystemExit(reason)
    folder, variants = kernel_folder(), list(variants)
    with tempfile.TemporaryDirectory() as scratch:
        main = Path(scratch, "main.cpp")
        main.write_text(MAIN)
        work = [["-c", str(main), f'-DSOURCE_HASH="{source_hash(chosen, variants)}"', "-o", f"{scratch}/main.o"]]
        for source, (real, dimensions) in itertools.product(sorted(chosen), variants):
            target = f"{scratch}/{source}_{variant(real, dimensions)}.o"
            work.append([*definitions(real, dimensions), "-x", "c++", "-c", str(folder / f"{source}.cu"), "-o", target])
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(_compile, work))
        names = [f"{name}_{variant(*v)}" for v in variants for kernels in chosen.values() for name in kernels]
        exported = [f"-Wl,--export={name}" for name in ("host_source_hash", *names)]
        linked = Path(scratch, module.name)
        _compile([*LINKED, *exported, *sorted(map(str, Path(scratch).glob("*.o"))), "-o", str(linked)])
        module.write_bytes(linked.read_bytes())
    return module


def _compile(arguments: list[str]) -> None:
    command = [COMPILER, *FLAGS, *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"kernels did not compile for WebAssembly.\n{shlex.join(command)}\n{run.stderr.strip()}")


def up_to_date() -> bool:
    """Whether the module of the package was built from the present sources."""
    return source_hash(OF_PAGE, VARIANTS).encode() in MODULE.read_bytes()


if __name__ == "__main__":
    build()
