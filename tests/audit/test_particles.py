"""Audits of particles: order, box, halos, promises of archives and of formats, frames of trajectories."""

from pathlib import Path

import numpy as np
import pytest

import workbench as wb


@pytest.fixture(scope="module")
def snapshot() -> wb.Particles:
    return wb.synthetic.cosmic_web(n=16, seed=2)


def with_positions(snapshot: wb.Particles, positions: np.ndarray, order: np.ndarray | slice = np.s_[:]) -> wb.Particles:
    return wb.Particles.wrapped(
        positions[order], snapshot.box, snapshot.velocities[order], snapshot.ids[order], snapshot.metadata
    )


def moved(snapshot: wb.Particles, size: float) -> np.ndarray:
    return snapshot.positions + np.random.default_rng(1).uniform(-size, size, snapshot.positions.shape).astype(np.float32)


def kinds(found: wb.Audit) -> set[tuple[str, str]]:
    return {(one.severity, one.kind) for one in found.findings}


def test_particles_are_compared_by_their_ids(snapshot):
    order = np.random.default_rng(0).permutation(len(snapshot))
    lossy = with_positions(snapshot, moved(snapshot, 0.009), order)
    found = wb.audit(snapshot, lossy, {"positions": wb.Absolute(0.01)})
    assert found.passed, found
    assert kinds(found) == {("note", "another order")}
    row = found["positions"]
    assert (row.outcome, found["velocities"].outcome) == ("holds", "identical")
    assert row.figures["halos_original"] > 0
    aligned = wb.compare(snapshot, with_positions(snapshot, lossy.positions, np.argsort(order)))
    assert row.largest_error == pytest.approx(aligned.max_error)


def test_without_ids_another_order_is_a_defect(snapshot):
    order = np.random.default_rng(0).permutation(len(snapshot))
    found = wb.audit(wb.Particles(snapshot.positions, snapshot.box), wb.Particles(snapshot.positions[order], snapshot.box))
    assert ("failed", "another order") in kinds(found)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda one: wb.Particles(one.positions), ("warning", "box lost")),
        (lambda one: wb.Particles(one.positions - np.float32(8.0)), ("warning", "outside the box")),
        (lambda one: wb.Particles(1000 * one.positions, [16000.0] * 3), ("failed", "box")),
        (lambda one: wb.Particles(one.positions[:, [1, 0, 2]], one.box), ("failed", "axes swapped")),
        (lambda one: wb.Particles(one.positions[:4000], one.box), ("failed", "truncated")),
    ],
)
def test_defects_of_positions(snapshot, change, expected):
    original = wb.Particles(snapshot.positions, snapshot.box)
    assert expected in kinds(wb.audit(original, change(original), wb.Absolute(0.01), quick=True))


@pytest.mark.parametrize(
    ("units", "expected"),
    [("Mpc, km/s", set()), ("1000 kpc, km/s", set()), ("kpc, km/s", {("failed", "units changed")}),
     ("", {("warning", "units lost")})],
)
def test_units_of_lengths(snapshot, units, expected):
    original, lossy = (wb.Particles(snapshot.positions, metadata={"units": one}) for one in ("Mpc, km/s", units))
    assert kinds(wb.audit(original, lossy, quick=True)) == expected


def test_boxes_are_compared_in_any_unit(snapshot):
    original, lossy = (wb.Particles(snapshot.positions * 1e-10, [size] * 3) for size in (5e-9, 1e-8))
    assert ("failed", "box") in kinds(wb.audit(original, lossy, quick=True))


def test_one_mass_for_all_is_a_mass_for_each(snapshot):
    one, each, another = (wb.Particles(snapshot.positions, masses=mass) for mass in (2.0, np.full(len(snapshot), 2.0), 3.0))
    assert wb.audit(one, each, quick=True).passed
    assert wb.audit(each, one, quick=True).passed
    assert not wb.audit(each, another, quick=True).passed


def test_a_column_that_is_missing_is_a_defect_unless_it_is_left_out(snapshot):
    lossy = wb.Particles(snapshot.positions, snapshot.box)
    assert ("failed", "missing member") in kinds(wb.audit(snapshot, lossy))
    assert wb.audit(snapshot, lossy, only="positions").passed
    assert ("failed", "missing member") in kinds(wb.audit(snapshot, lossy, only=["positions", "velocities"]))
    with pytest.raises(wb.WorkbenchError, match="the lossy file lacks velocities: nothing is left to compare"):
        wb.audit(snapshot, lossy, only="velocities")


def test_an_unknown_name_in_only_is_answered_by_the_names_of_arrays(snapshot):
    lossy = wb.Particles(snapshot.positions, snapshot.box)
    with pytest.raises(wb.WorkbenchError, match="got velocitie: particles may have 'positions', 'velocities'"):
        wb.audit(snapshot, lossy, only=["positions", "velocitie"])


def test_the_promises_of_archives_hold_in_any_order(snapshot, tmp_path):
    archive = wb.compress(snapshot, wb.Absolute(0.02), order="free", velocities=wb.Absolute(1.0)).save(tmp_path / "a.zip")
    found = wb.audit(snapshot, archive, quick=True)
    assert found.passed, found
    assert [found[name].outcome for name in ("positions", "velocities", "ids")] == ["holds", "holds", "identical"]
    assert not wb.audit(snapshot, archive, {"positions": wb.Absolute(0.01)}, quick=True).passed


def test_every_frame_of_a_trajectory_is_audited(tmp_path):
    xdr = pytest.importorskip("MDAnalysis.lib.formats.libmdaxdr", reason="needs the io extra")
    rng, path = np.random.default_rng(3), tmp_path / "lossy.xtc"
    frames = [rng.random((60, 3), np.float32) * 4 for _ in range(3)]
    with xdr.XTCFile(str(path), "w") as file:
        for number, frame in enumerate(frames):
            file.write(frame, np.diag([4.0, 4.0, 4.0]).astype("f4"), number, float(number), 1000)
    (tmp_path / "original.xyz").write_text("".join(
        f"60\nframe\n{''.join(f'C {x:.9g} {y:.9g} {z:.9g}' + chr(10) for x, y, z in frame)}" for frame in frames
    ))
    found = wb.audit(tmp_path / "original.xyz", path, only="positions", quick=True)
    assert found.passed, found
    assert [row.name for row in found.rows] == [f"frame_{number}/positions" for number in range(3)]
    assert all(row.outcome == "holds" and "xtc" in row.promise for row in found.rows), found
    with xdr.XTCFile(str(tmp_path / "cut.xtc"), "w") as file:
        file.write(frames[0], np.diag([4.0, 4.0, 4.0]).astype("f4"), 0, 0.0, 1000)
    text = (tmp_path / "original.xyz").read_text()
    (tmp_path / "damaged.xyz").write_text(text.replace("60\nframe", "sixty\nframe").replace("sixty", "60", 1))
    with pytest.raises(wb.WorkbenchError, match="expected the number of atoms of frame 1"):
        wb.audit(tmp_path / "damaged.xyz", path, only="positions")
    cut = wb.audit(path, tmp_path / "cut.xtc", quick=True)
    assert [one.member for one in cut.findings if one.kind == "missing member"] == ["frame_1", "frame_2"], cut


def test_swift_states_its_filters(snapshot, tmp_path: Path):
    h5py = pytest.importorskip("h5py", reason="needs the io extra")
    with h5py.File(tmp_path / "snap.hdf5", "w") as file:
        counts = [0, len(snapshot), 0, 0, 0, 0]
        header = {"NumPart_Total": counts, "NumPart_ThisFile": counts, "BoxSize": snapshot.box, "MassTable": [0.0] * 6}
        file.create_group("Header").attrs.update({**header, "NumFilesPerSnapshot": 1, "Time": 1.0, "Redshift": 0.0})
        made = file.create_dataset("PartType1/Coordinates", data=snapshot.positions, chunks=(512, 3), scaleoffset=3)
        made.attrs["Lossy compression filter"] = "DScale3"
    found = wb.audit({"dark_matter": wb.Particles(snapshot.positions, snapshot.box)}, tmp_path / "snap.hdf5", quick=True)
    row = found["dark_matter/positions"]
    assert (row.outcome, row.promise) == ("holds", "Lossy compression filter DScale3"), found


def test_another_number_of_axes_is_named(snapshot):
    original = wb.Particles(snapshot.positions)
    (finding,) = wb.audit(original, wb.Particles(snapshot.positions[:, :2]), wb.Absolute(0.01)).failed
    assert "ends after 2 of 3 along axis" in finding.sentence
