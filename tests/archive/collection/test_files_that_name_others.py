"""HDF5 files that keep their data in other files of the machine."""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb

h5py = pytest.importorskip("h5py")


def test_data_elsewhere_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"nobody should get this.." * 10)
    (tmp_path / "in").mkdir()
    with h5py.File(tmp_path / "in" / "a.nc", "w") as file:
        file.create_dataset("x", (60,), "f4", external=[(str(tmp_path / "secret"), 0, 240)])
        file["y"] = np.zeros(60, "f4")
    with pytest.raises(wb.WorkbenchError, match="secret"):
        wb.compress(tmp_path / "in" / "a.nc", {"*": wb.Exact()})
    with h5py.File(tmp_path / "in" / "b.nc", "w") as file:
        file["x"] = np.zeros(60, "f4")
    assert set(wb.compress(tmp_path / "in" / "b.nc", {"*": wb.Exact()})) == {"x"}
