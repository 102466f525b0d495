"""A repair with what is near makes the moves of one with all particles of the subdomain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.archive.keeping import settling
from workbench.archive.keeping.moved import STATE, Moved

WEB = wb.synthetic.cosmic_web(n=20, seed=3)


def written(out, share, parts):
    """The files of an archive that keeps clusters, and how many repairs needed a wider patch."""
    wider, real = [], settling._wider

    def counted(*given):
        wider.append(given)
        return real(*given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(settling, "_wider", counted)
        bound = wb.Absolute(share * 0.2 * WEB.spacing)
        archive = wb.compress(WEB, bound, keep=wb.KeepClusters(0.2), parts=parts, out=out)
    assert archive.verify(WEB).passed
    files = {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    return files, len(wider)


@pytest.mark.parametrize(("share", "parts"), [(0.2, 3), (0.5, 2)])
def test_what_is_near_is_enough(tmp_path, monkeypatch, share, parts):
    found, wider = written(tmp_path / "near.zarr", share, parts)
    everything = np.arange
    monkeypatch.setattr(
        settling.Place, "around", lambda place, rows: everything(len(place.table.take("index", slice(None))))
    )
    expected, _ = written(tmp_path / "all.zarr", share, parts)
    assert found == expected
    assert wider > 0 or share < 0.4


@settings(deadline=None)
@given(data=st.data())
def test_moves_after_changes_are_those_of_all_particles(data):
    random = np.random.default_rng(data.draw(st.integers(0, 999)))
    index = np.unique(random.integers(0, 60, data.draw(st.integers(0, 40))))
    dense = {"current": np.zeros((len(index), 3), np.float32), "rank": np.zeros(len(index), np.int32)}
    dense["tries"] = dense["rank"].copy()
    moved = Moved(np.empty(0, np.int32), {name: array[:0] for name, array in dense.items()})
    for _ in range(data.draw(st.integers(1, 3))):
        changes = []
        for _ in range(data.draw(st.integers(0, 3))):
            given = random.permutation(60)[: random.integers(0, 20)]
            size = len(given)
            state = random.random((size, 3), np.float32), *random.integers(1, 9, (2, size)).astype(np.int32)
            changes.append({"index": given, **dict(zip(STATE, state, strict=True))})
        moved, any_here = moved.after(changes, index)
        for one in changes:
            for row, particle in enumerate(one["index"].tolist()):
                for name in STATE:
                    dense[name][index == particle] = one[name][row]
        assert any_here == any(np.isin(one["index"], index).any() for one in changes)
        rows = random.permutation(len(index))[: random.integers(0, len(index) + 1)]
        for name, array in dense.items():
            assert np.array_equal(moved.among(name, slice(None), np.zeros_like(array)), array)
            assert np.array_equal(moved.among(name, rows, np.zeros_like(array[rows])), array[rows])
