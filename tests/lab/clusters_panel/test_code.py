"""The code that a panel hands out is run, and does what the panel showed."""

import contextlib
import io
from typing import Any

import pytest

from lab.clusters_panel import samples
from workbench.lab.clusters_panel.code import code


def run(source: str, **names: Any) -> tuple[dict[str, Any], str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "panel", "exec"), names)
    return names, printed.getvalue()


@pytest.mark.parametrize("order", ["free", "keep"])
@pytest.mark.parametrize("name", samples.SETS)
def test_the_code_finds_what_was_shown(name, order):
    shown = samples.case(name)
    case = shown if order == "free" else samples.Case.of(shown.particles, bound=shown.state.bound, order=order)
    found, printed = run(code(case.state, "snapshot"), snapshot=case.particles)
    assert found["archive"].nbytes == case.breakage.archive.nbytes
    assert len(found["broken"].missing) == len(case.breakage.outcome.missing)
    assert len(found["broken"].false) == len(case.breakage.outcome.false)
    assert found["after"].count(2) == case.breakage.outcome.groups.count(2)
    assert f"{len(case.breakage.outcome.missing):,} missing links" in printed
    assert f"{case.breakage.bits_per_particle:.3f} bits per particle" in printed


@pytest.mark.parametrize("order", ["free", "keep"])
@pytest.mark.parametrize("name", samples.SETS)
def test_the_code_keeps_what_was_kept(name, order):
    shown = samples.case(name)
    case = shown if order == "free" else samples.Case.of(shown.particles, bound=shown.state.bound, order=order)
    found, printed = run(code(case.state, "snapshot", kept=True), snapshot=case.particles)
    assert found["archive"].nbytes == case.kept.archive.nbytes
    assert found["after"].equals(found["before"])
    assert "friends-of-friends groups" in printed


def test_a_promise_about_large_groups_is_in_the_code_and_so_is_the_solver():
    case = samples.Case.of(samples.SETS["open 2-D"](), keep_members=20, solver="refine", codec="prequantised")
    source = code(case.state, "data", kept=True)
    assert "min_members=20" in source
    assert 'solver="refine"' in source
    found, _ = run(source, data=case.particles)
    assert found["archive"].nbytes == case.kept.archive.nbytes
    assert found["archive"].certificate["positions"].keep[0]["min_members"] == 20


def test_numpy_numbers_read_as_numbers():
    import numpy as np

    case = samples.case("one halo")
    source = code(case.changed(bound=np.float64(0.01), linking_length=np.float32(0.5)), "data")
    assert "wb.Absolute(0.01)" in source
    assert "(original, 0.5, " in source
