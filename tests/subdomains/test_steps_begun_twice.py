"""Steps that are begun again after a worker died in the middle: whatever it has written, the result is the same."""

import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.data.chunked import ParticlesInMemory, even_sizes
from workbench.run.executors import InProcess
from workbench.subdomains import groups

SNAPSHOT = wb.synthetic.cosmic_web(n=16, seed=5)
WEB = wb.Particles(SNAPSHOT.positions, SNAPSHOT.box)
SOURCE = ParticlesInMemory(WEB, even_sizes(len(WEB), 900))
BOUND = wb.Absolute(0.3 * 0.2 * WEB.spacing)


class Died(Exception):
    """The worker is gone."""


@dataclass(frozen=True)
class Dying(InProcess):
    """Each item is begun by a worker that dies after so many files (None: at the end), and again by one that does not."""

    after: int | None = None
    steps: set[str] = field(default_factory=set)

    def map(self, name, step, items, each="item", on_gpu=False, shared=None, together=False):
        self.steps.add(name)

        def begun_twice(*given):
            with pytest.MonkeyPatch.context() as patched:
                written, replace = [], Path.replace

                def counted(path, target):
                    if len(written) == self.after:
                        raise Died
                    written.append(target)
                    return replace(path, target)

                patched.setattr(Path, "replace", counted)
                with suppress(Died):
                    step(*given)
            return step(*given)

        return super().map(name, begun_twice, items, each, on_gpu, shared)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def kept(out: Path, keep: wb.KeepClusters) -> dict[str, bytes]:
    wb.compress(SOURCE, BOUND, keep=keep, order="free", chunk_values=3000, parts=4, out=out)
    return files(out)


@pytest.mark.parametrize("after", [0, *(pytest.param(after, marks=pytest.mark.long) for after in (None, 1, 2))])
@pytest.mark.parametrize("least", [1, pytest.param(5, marks=pytest.mark.long)])
def test_an_archive_that_keeps_clusters(tmp_path, monkeypatch, after, least):
    keep = wb.KeepClusters(0.2, min_members=least)
    expected, executor = kept(tmp_path / "once.zarr", keep), Dying(after=after)
    module = sys.modules["workbench.archive.compress"]   # of which the name is that of the function
    monkeypatch.setattr(module, "executor_of", lambda *given: executor)
    assert kept(tmp_path / "twice.zarr", keep) == expected
    assert {"repair-inside", "send-surroundings", "repair-across", "apply-moves", "write-chunks"} <= executor.steps
    assert not [path.name for path in tmp_path.rglob(".*")]


@pytest.mark.parametrize("after", [None, 0, 1])
def test_groups_and_their_catalogue(monkeypatch, after):
    expected = wb.friends_of_friends(WEB)
    monkeypatch.setattr(groups, "executor_of", lambda *given: Dying(after=after))
    with wb.friends_of_friends(SOURCE, parts=4) as found:
        np.testing.assert_array_equal(found.gathered().labels, expected.labels)
        np.testing.assert_array_equal(found.catalogue().members, wb.clusters.catalogue(WEB, expected).members)
