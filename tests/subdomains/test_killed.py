"""Runs that are killed, that find no room on the disk, or that are called twice: nothing is lost, the same bytes come."""

import os

import pytest

from subdomains.killed import Laboratory, Run, moments, require_found_by_clean

MOMENTS = int(os.environ.get("LOSSBENCH_MOMENTS", "14"))   # here, and half as many on workers
SEED = int(os.environ.get("LOSSBENCH_SEED", "1"))


@pytest.mark.long
@pytest.mark.parametrize("on_workers", [False, True])
def test_a_run_disturbed_at_any_moment_loses_nothing(cluster, tmp_path, on_workers):
    pytest.importorskip("distributed")
    laboratory, failed = Laboratory(tmp_path, cluster), []
    for moment in moments(MOMENTS // 2 if on_workers else MOMENTS, SEED, on_workers):
        try:
            print(f"{moment}: {laboratory.try_at(moment)}", flush=True)
        except AssertionError as error:
            failed.append(f"{moment}: {error}")
    assert not failed, "\n".join(failed)


def test_what_clean_would_not_find_is_noticed(tmp_path):
    run = Run("a masked field", tmp_path, "a.zarr")
    for folder in (run.out.parent, run.scratch / "lossbench-0123"):
        folder.mkdir(parents=True)
    require_found_by_clean(run)
    (run.scratch / "lossbench-0123" / "chunk-0").touch()
    with pytest.raises(AssertionError, match=r"not found by clean: .*lossbench-0123"):
        require_found_by_clean(run)
