"""A GPU's thread estimates one move at a time, the CPU a tile of them: both propose the same moves, at the same cost.

The kernel is compiled once more for the CPU with tiles of one move, and repeats each launch of a repair.
"""

import ctypes
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench import backend, host_library

CHOSEN = "TILE = ON_CPU ? WHOLE : 1;"


@pytest.fixture(scope="module")
def by_one(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("kernels")
    for path in host_library.kernel_folder().iterdir():
        shutil.copy(path, folder)
    text = (folder / "repair.cu").read_text()
    assert CHOSEN in text
    (folder / "repair.cu").write_text(text.replace(CHOSEN, "TILE = 1;"))
    library, flags = folder / "by_one.so", (*host_library.HOST_FLAGS, "-O1", *host_library.definitions("f64", 3))
    sources = ["-x", "c++", str(folder / "repair.cu"), str(folder / "host.cpp"), '-DSOURCE_HASH=""']
    subprocess.run([*host_library.compiler(), *flags, *sources, "-shared", "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize(("solver", "box"), [("auto", True), ("refine", False)])
def test_moves_one_by_one_give_the_same_proposals(
    by_one: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch, solver: str, box: bool
) -> None:
    compared: Counter[str] = Counter()
    plain = backend.kernel

    def kernel(source: str, name: str, *variant: Any) -> Any:
        usual = plain(source, name, *variant)
        if name != "propose":
            return usual
        alone = replace(usual)
        function = by_one.propose_f64_3d
        function.restype, function.argtypes = None, usual._host_function.argtypes
        alone.__dict__["_host_function"] = function

        def both(items: int, *bundles: dict[str, Any], **named: Any) -> None:
            written = {parameter.name for parameter in usual.parameters if parameter.writable}
            given = {name: value for bundle in (*bundles, named) for name, value in bundle.items()}
            copies = {name: given[name].copy() for name in written}
            declared = {parameter.name for parameter in usual.parameters[1:]}
            usual(items, *bundles, **named)
            alone(items, {name: value for name, value in given.items() if name in declared - written}, **copies)
            for name in written:
                np.testing.assert_array_equal(copies[name], given[name], err_msg=name)
            compared["launches"] += 1
            compared["proposals"] += int((given["score"] > 0).sum())

        return both

    monkeypatch.setattr(backend, "kernel", kernel)
    made = wb.synthetic.cosmic_web(n=16)
    particles = wb.Particles(made.positions.astype(np.float64), made.box if box else None)
    bound = 0.3 * 0.2 * made.spacing
    coarse = np.round(particles.positions / (1.9 * bound)) * (1.9 * bound)
    decoded = coarse if not box else np.where(coarse < made.box, coarse, 0.0)
    wb.clusters.correct(particles, decoded, bound, solver=solver)
    assert compared["launches"] > 3
    assert compared["proposals"] > 100
