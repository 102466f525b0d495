"""ASDF files of any kind: the arrays of their tree, by nested names."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.archive.collection import asdf_trees
from workbench.archive.collection.sources import opened_dataset

asdf = pytest.importorskip("asdf", reason="needs the io extra")

IMAGE = np.random.default_rng(0).normal(size=(30, 40)).astype("f4")


def write(path: Path, tree: dict[str, Any], compression: str | None = None) -> Path:
    asdf.AsdfFile(tree).write_to(path, all_array_compression=compression)
    return path


@pytest.mark.few(1)
@pytest.mark.parametrize("compression", [None, "zlib"])
def test_arrays_have_the_names_of_the_tree(tmp_path: Path, compression: str | None) -> None:
    tree = {
        "meta": {"telescope": "a telescope", "exposure": 3.5, "ok": True, "filters": ["J", "H"],
                 "when": datetime.datetime(2026, 1, 2, 3), "nothing": None, "wcs": {"crpix": [1.0, 2.0]}},
        "data": IMAGE, "err": {"sys": IMAGE * 2, "counts": np.arange(6, dtype=">i4")},
        "frames": [IMAGE[:3], IMAGE[::2, 5:]], "name": np.array(["å", "bb"]), "hidden": np.ma.masked_less(IMAGE, 0),
        "phase": 3 + 4j, "short": np.array([1.5, 2.5]),
        "stars": np.array([(1, 2.5), (2, 3.5)], [("id", "i8"), ("flux", "f4")]),
    }
    path = write(tmp_path / "x.dat", tree, compression)
    archive = wb.compress(path, {"data": wb.Absolute(0.01), "*": wb.Exact()}, out=tmp_path / "x.zip")
    assert abs(archive["data"].decompress().values - IMAGE).max() <= 0.01
    for name, wanted in {
        "err/sys": IMAGE * 2, "err/counts": np.arange(6), "frames/0": IMAGE[:3], "frames/1": IMAGE[::2, 5:],
        "name": np.array(["å", "bb"]), "phase": np.array(3 + 4j), "short": np.array([1.5, 2.5]),
        "stars/id": np.array([1, 2]), "stars/flux": np.array([2.5, 3.5]),
    }.items():
        np.testing.assert_array_equal(archive[name].decompress().values, wanted)
    hidden = archive["hidden"].decompress()
    np.testing.assert_array_equal(hidden.mask, IMAGE < 0)
    np.testing.assert_array_equal(hidden.values[IMAGE >= 0], IMAGE[IMAGE >= 0])
    assert archive.groups["meta"]["attributes"] == {
        "telescope": "a telescope", "exposure": 3.5, "ok": True, "filters": ["J", "H"], "when": "2026-01-02T03:00:00",
    }
    assert archive.groups["meta/wcs"]["attributes"] == {"crpix": [1.0, 2.0]}
    assert archive.verify(path).passed
    assert set(wb.compress(path, wb.Relative(1e-3))) == set(archive)   # a single bound does, too


def test_one_array_at_a_time_is_in_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "x.asdf", {f"a{number}": IMAGE + number for number in range(4)}, "zlib")
    with opened_dataset(path) as dataset:
        assert not asdf_trees.OPEN
        for number in (0, 3, 1):
            part = dataset[f"a{number}"].part((slice(3, 5), slice(0, 40)))
            np.testing.assert_array_equal(part.values, IMAGE[3:5] + number)
            assert len(asdf_trees.OPEN) == 1
    assert not asdf_trees.OPEN


def test_trees_that_cannot_be_kept_are_one_sentence(tmp_path: Path) -> None:
    for tree, message in (
        ({"title": "none"}, "must hold arrays; its tree has none"),
        ({"a/b": IMAGE, "a": {"b": IMAGE}}, "'a/b'"),
        ({"": IMAGE}, "the name of a member"),
    ):
        with pytest.raises(wb.WorkbenchError, match=message):
            wb.compress(write(tmp_path / "x.asdf", tree), {"*": wb.Exact()})
    path = write(tmp_path / "x.asdf", {"data": IMAGE})
    whole = path.read_bytes()
    for damaged in (whole[:300], whole[:-2000], b"#ASDF 1.0.0\n" + b"\0" * 50, whole.replace(b"ndarray", b"ndarra\xff")):
        path.write_bytes(damaged)
        with pytest.raises(wb.WorkbenchError) as refused:
            wb.compress(path, {"*": wb.Exact()})
        assert "\n" not in str(refused.value)
