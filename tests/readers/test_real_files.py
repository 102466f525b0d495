"""Every real file with known answers: counts, boxes, types and ranges as its provenance documents them."""

import numpy as np
import pytest

from workbench import Field, Particles, WorkbenchError
from workbench.data.readers import open_file

PARTICLES = [   # file, options, count, type, box, smallest and largest coordinate
    ("corrfunc_mr19/gals_Mr19.ff", {}, 1_235_904, "f4", 420.0, 1e-4, 419.99982),
    ("disperse_32/disperse_simu_32_id.gad", {}, 32_768, "f4", 50_000.0, 0.1953125, 49999.6),
    ("hacc_nyx_toy/m000.full.mpicosmo.50", {}, 32_768, "f4", 256.0, 3.4237e-4, 255.99948),
    ("md_chemfiles/helium.xyz", {}, 125, "f8", None, -0.0910313, 10.3136),
    ("md_chemfiles/helium.xyz", {"frame": 396}, 125, "f8", None, -5.852649, 14.640263),
    ("md_chemfiles/polymer.lammpstrj", {}, 1714, "f8", 58.0937, 0.024, 58.0917),
    ("md_chemfiles/polymer.lammpstrj", {"frame": 41}, 1714, "f8", 58.0937, 0.0157, 58.0917),
    ("md_chemfiles/ubiquitin_d.trr", {}, 20_455, "f8", (5.568, 5.887, 6.257), 2.0933e-4, 6.256977),
    ("md_chemfiles/ubiquitin_d.trr", {"frame": 1}, 20_455, "f8", (5.568, 5.887, 6.257), 5.5e-5, 6.256878),
    ("md_chemfiles/water.nc", {}, 297, "f4", 15.0, 0.02118, 14.976605),
    ("md_chemfiles/water.nc", {"frame": 99}, 297, "f4", 15.0, None, None),
    ("md_chemfiles/scaled_traj.nc", {"box": None}, 1938, "f4", None, 0.0, 59.58),
    ("md_chemfiles/scaled_traj.nc", {"box": None, "scaled": True}, 1938, "f8", None, 0.0, 27.1089),
    ("md_freud/rdf_benchmark.gsd", {}, 15_625, "f4", 27.4946, 0.00169, 27.493202),
    ("md_freud/rdf_benchmark.gsd", {"frame": 4}, 15_625, "f4", 27.4946, None, None),
    ("md_freud/XYZ_positions.npy", {"kind": "particles", "frame": 499}, 500, "f4", None, None, None),
]
FIELDS = [   # file, options, shape, type, smallest and largest value, name
    ("hacc_nyx_toy/z255_32.h5", {"name": "baryon_density"}, (32, 32, 32), 0.07264, 384.904, "baryon_density"),
    ("hacc_nyx_toy/z255_32.h5", {"name": "dark_matter_density"}, (32, 32, 32), 0, 871.586, "dark_matter_density"),
    ("hacc_nyx_toy/z255_32.h5", {"name": "native_fields/temperature"}, (32, 32, 32), 2380.08, 183036.8, "temperature"),
    ("hacc_nyx_toy/z255_32.h5", {"name": "velocity_x"}, (32, 32, 32), -9.739e6, 7.127e6, "velocity_x"),
    ("hacc_nyx_toy/z255_32.h5", {"name": "velocity_y"}, (32, 32, 32), -4.081e6, 6.617e6, "velocity_y"),
    ("hacc_nyx_toy/z255_32.h5", {"name": "velocity_z"}, (32, 32, 32), -8.615e6, 1.298e7, "velocity_z"),
    ("cesm/cam-fv.T.3months.nc", {}, (3, 30, 192, 288), 180.749, 306.125, "T"),
    ("cesm/c.fpzip.cam-fv.T.3months.nc", {}, (3, 30, 192, 288), 180.6875, 306.125, "T"),
    ("cesm/ihesp14.TS.12mon.nc", {}, (12, 48602), 202.335, 318.208, "TS"),
    ("cesm/d.sz1e-1.ihesp14.TS.12mon.nc", {}, (11, 48602), 202.417, 318.151, "TS"),
    ("sperr_fields/wmag91.float", {"shape": (91, 91, 91)}, (91, 91, 91), 0.049705, 265.2955, None),
    ("sperr_fields/vorticity.128_128_41", {"shape": (41, 128, 128)}, (41, 128, 128), -2.0434e-4, 2.2811e-4, None),
    ("sperr_fields/vorticity.512_512", {"shape": (512, 512)}, (512, 512), -5.1587e-4, 8.3519e-4, None),
    ("md_freud/XYZ_positions.npy", {}, (500, 500, 3), -4.09, 4.0907, None),
    ("md_freud/XYZ_boxes.npy", {}, (500, 6), -0.01386, 8.1362, None),
]
REFUSED = [   # file, options, what the message must say
    ("hacc_nyx_toy/z255_32.h5", {}, "choose one by name=.*native_fields/temperature 32x32x32"),
    ("sperr_fields/wmag.bov", {}, "only a header, for 'wmag128.float' beside it"),
    ("sperr_fields/wmag91.float", {}, "no known format.*shape="),
    ("sperr_fields/wmag91.float", {"shape": (128, 128, 128)}, "takes 8,388,608 bytes; wmag91.float has 3,014,284"),
    ("md_chemfiles/scaled_traj.nc", {}, "periodic along some axes only .*box=None"),
    ("md_chemfiles/helium.xyz", {"frame": 397}, "frame must be between 0 and 396; got 397"),
    ("md_chemfiles/polymer.lammpstrj", {"frame": 42}, "frame must be between 0 and 41; got 42"),
    ("md_chemfiles/ubiquitin_d.trr", {"frame": 2}, "frame must be between 0 and 1"),
    ("md_chemfiles/water.nc", {"frame": 100}, "frame must be between 0 and 99; got 100"),
    ("md_freud/rdf_benchmark.gsd", {"frame": 5}, "frame must be between 0 and 4; got 5"),
    ("corrfunc_mr19/mr19_kdcount_fof_b0.2_min20.npz", {}, "choose one by name=.*label 1235904"),
    ("cesm/cam-fv.T.3months.nc", {"name": "wind"}, "no array named 'wind'; it has .*T 3x30x192x288"),
    ("cesm", {}, "folder cesm has no known format"),
    ("README.md", {}, "no known format"),
]


@pytest.mark.parametrize(("name", "options", "count", "dtype", "box", "low", "high"), PARTICLES)
def test_particles(shared_data, name, options, count, dtype, box, low, high):
    particles = open_file(shared_data / name, **options)
    assert isinstance(particles, Particles)
    assert len(particles) == count
    assert particles.positions.dtype == dtype
    if box is None:
        assert particles.box is None
    else:
        np.testing.assert_allclose(particles.box, np.broadcast_to(box, 3), rtol=1e-6)
    if low is not None:
        assert particles.lower.min() == pytest.approx(low, rel=0.02, abs=1e-9)
        assert particles.upper.max() == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize(("name", "options", "shape", "low", "high", "title"), FIELDS)
def test_fields(shared_data, name, options, shape, low, high, title):
    field = open_file(shared_data / name, **options)
    assert isinstance(field, Field)
    assert field.shape == shape
    assert field.values.dtype == np.float32
    assert field.name == title
    assert field.mask is None
    assert field.values.min() == pytest.approx(low, rel=2e-3)
    assert field.values.max() == pytest.approx(high, rel=1e-3)


@pytest.mark.parametrize(("name", "options", "message"), REFUSED)
def test_refusals(shared_data, name, options, message):
    with pytest.raises(WorkbenchError, match=message):
        open_file(shared_data / name, **options)


def test_gadget_header_and_group_labels(shared_data):
    particles = open_file(shared_data / "disperse_32/disperse_simu_32_id.gad")
    metadata = particles.metadata
    assert (metadata["omega_m"], metadata["omega_lambda"], metadata["hubble"], metadata["redshift"]) == (0.3, 0.7, 0.7, 0.0)
    assert particles.velocities.min() == pytest.approx(-2114.9, abs=0.1)
    assert particles.velocities.max() == pytest.approx(2203.8, abs=0.1)
    assert np.count_nonzero(particles.ids == 0) == 22_528
    assert len(np.unique(particles.ids)) == 137


def test_genericio_ids_are_each_there_once(shared_data):
    particles = open_file(shared_data / "hacc_nyx_toy/m000.full.mpicosmo.50")
    assert np.array_equal(np.sort(particles.ids), np.arange(32_768))
    assert particles.ids.dtype == np.int64
    assert particles.metadata["ranks"] == 32
    assert particles.velocities.min() == pytest.approx(-3910, abs=1)
    assert particles.velocities.max() == pytest.approx(3051, abs=1)


def test_nyx_cosmology_and_spacing(shared_data):
    field = open_file(shared_data / "hacc_nyx_toy/z255_32.h5", name="dark_matter_density")
    assert np.count_nonzero(field.values == 0) == 3335
    assert field.spacing == (10 / 32,) * 3
    assert field.metadata["file_attributes"]["universe"]["redshift"] == 4.2


def test_the_compressed_cesm_fields_are_as_far_off_as_documented(shared_data):
    T, T_fpzip = (open_file(shared_data / f"cesm/{name}cam-fv.T.3months.nc").values for name in ("", "c.fpzip."))
    TS, TS_sz = (open_file(shared_data / f"cesm/{name}ihesp14.TS.12mon.nc").values for name in ("", "d.sz1e-1."))
    assert np.abs(T.astype("f8") - T_fpzip).max() == 0.124969482421875
    assert np.abs(TS[:11].astype("f8") - TS_sz).max() == 0.0999908447265625


def test_kdcount_labels_by_name(shared_data):
    field = open_file(shared_data / "corrfunc_mr19/mr19_kdcount_fof_b0.2_min20.npz", name="label")
    assert field.shape == (1_235_904,)
    assert field.values.max() == 2600


def test_polymer_is_sorted_by_id_whatever_the_order_of_rows(shared_data):
    path = shared_data / "md_chemfiles/polymer.lammpstrj"
    for frame in (0, 7):
        assert np.array_equal(open_file(path, frame=frame).ids, np.arange(1, 1715))


def test_scaled_amber_is_the_raw_one_times_its_factor(shared_data):
    path = shared_data / "md_chemfiles/scaled_traj.nc"
    raw, scaled = (open_file(path, frame=25, box=None, scaled=wanted) for wanted in (None, True))
    np.testing.assert_array_equal(scaled.positions, raw.positions.astype("f8") * 0.455)
    np.testing.assert_array_equal(scaled.velocities, raw.velocities.astype("f8") * -0.856)


def test_trr_positions_agree_with_another_reader(shared_data):
    formats = pytest.importorskip("MDAnalysis.lib.formats.libmdaxdr")
    path = shared_data / "md_chemfiles/ubiquitin_d.trr"
    with formats.TRRFile(str(path)) as frames:
        for number, frame in enumerate(frames):
            np.testing.assert_array_equal(open_file(path, frame=number, box=None).positions.astype("f4"), frame.x)


def test_reading_leaves_nothing_beside_the_data(shared_data):
    before = sorted((shared_data / "md_chemfiles").iterdir())
    open_file(shared_data / "md_chemfiles/ubiquitin_d.trr", frame=1)
    assert sorted((shared_data / "md_chemfiles").iterdir()) == before
