"""A guarantee that is not friends of friends: one class, here, is all that an archive needs to keep it and to check it."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import workbench as wb
from conftest import ROOT
from workbench.errors import GuaranteeBroken, WorkbenchError
from workbench.guarantees.guarantee import Guarantee, Replaced, known

WEB = wb.Particles(wb.synthetic.cosmic_web(n=12, seed=4).positions + np.float32(0.5))


@dataclass(frozen=True)
class KeepTotals(Guarantee):
    """The sum of all positions along each axis changes by no more than the tolerance."""

    kind: ClassVar[str] = "totals"
    violations: ClassVar[str] = "totals_not_as_certified"
    certified: ClassVar[str] = "its totals"

    tolerance: float

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "tolerance": self.tolerance}

    def attach(self, original, decoded, limit, chunk, progress, allowance):
        """Particles with the largest errors in the direction of the whole get their original coordinates."""
        wanted = decoded.copy()
        errors = decoded.astype(np.float64) - original.positions
        for axis, whole in enumerate(errors.sum(axis=0)):
            order = np.argsort(-np.sign(whole) * errors[:, axis])
            left = np.abs(whole - np.concatenate([[0], np.cumsum(errors[order, axis])]))
            chosen = order[: np.argmax(left <= self.tolerance / 2)]
            wanted[chosen, axis] = original.positions[chosen, axis]
        return Replaced.of(original, decoded, wanted, limit)

    def stated(self, correction, added: int) -> dict[str, Any]:
        totals = correction.positions.sum(axis=0, dtype=np.float64).tolist()
        return {**self.to_dict(), "totals": totals, "bytes": added}

    @classmethod
    def check(cls, stated: Mapping[str, Any], decoded, original) -> dict[str, Any]:
        wanted = stated["totals"] if original is None else original.positions.sum(axis=0, dtype=np.float64)
        away = float(np.abs(decoded.positions.sum(axis=0, dtype=np.float64) - wanted).max())
        if away > (stated["tolerance"] if original is not None else 1e-6):
            raise GuaranteeBroken(f"a total is {away:g} away from the original's: {stated['tolerance']:g} was promised")
        return {"totals_away": away}

    @classmethod
    def describe(cls, stated: Mapping[str, Any]) -> str:
        return f"the totals of all coordinates, within {stated['tolerance']}"


def test_a_kind_stays_that_of_the_class_that_has_introduced_it():
    class Derived(KeepTotals):
        pass

    with pytest.raises(WorkbenchError, match=r"Other\.kind must be a new name; got 'totals', which KeepTotals has"):

        class Other(KeepTotals):
            kind = "totals"

    assert known("totals") is KeepTotals


def totals_away(archive: wb.Archive, order: np.ndarray | slice = slice(None)) -> float:
    errors = archive.decompress().positions.astype(np.float64) - WEB.positions[order]
    return float(np.abs(errors.sum(axis=0)).max())


@pytest.mark.parametrize("order", ["keep", "free"])
def test_another_guarantee_is_kept_stated_and_checked(tmp_path, order):
    bound, keep = wb.Absolute(0.05), KeepTotals(0.01)
    plain = wb.compress(WEB, bound, order=order, chunk_values=900)
    archive = wb.compress(WEB, bound, keep=keep, order=order, chunk_values=900)
    assert totals_away(plain, plain.permutation(WEB)) > 1 > 0.01 >= totals_away(archive, archive.permutation(WEB))
    opened = wb.open(archive.save(tmp_path / "totals.zarr"))
    report = opened.verify(WEB)
    assert report.passed
    assert report["totals_away"] <= 0.01
    assert "totals_not_as_certified" in str(report)
    assert "kept: the totals of all coordinates, within 0.01" in str(opened.certificate)
    (stated,) = opened.certificate["positions"].keep
    assert stated["bytes"] == opened.data.nbytes - plain.data.nbytes > 0
    alone = opened.verify()
    assert alone["totals_away"] < 1e-6
    assert "checksums and its totals only" in str(alone)
    inside = [row for row in opened.decompress().positions.tolist() if all(1 <= place < 5 for place in row)]
    assert sorted(opened.read([(1, 5)] * 3).positions.tolist()) == sorted(inside)


def test_a_guarantee_that_does_not_hold_is_refused(monkeypatch):
    monkeypatch.setattr(
        KeepTotals, "attach", lambda self, original, decoded, limit, *_: Replaced.of(original, decoded, decoded, limit)
    )
    archive = wb.compress(WEB, wb.Absolute(0.05), keep=KeepTotals(0.01))
    with pytest.raises(GuaranteeBroken, match=r"a total is .* away from the original's: 0.01 was promised"):
        archive.verify(WEB)


def test_a_correction_beyond_the_bound_is_refused(monkeypatch):
    monkeypatch.setattr(
        KeepTotals, "attach", lambda self, original, decoded, limit, *_: Replaced.of(original, decoded, decoded + 1, limit)
    )
    with pytest.raises(GuaranteeBroken, match="corrected coordinates break the bound"):
        wb.compress(WEB, wb.Absolute(0.05), keep=KeepTotals(0.01))


def test_who_does_not_know_the_guarantee_reads_the_archive_and_cannot_verify_it(tmp_path):
    path = wb.compress(WEB, wb.Absolute(0.05), keep=KeepTotals(0.01)).save(tmp_path / "totals.zarr")
    program = (
        "import sys, workbench as wb; archive = wb.open(sys.argv[1]); print(len(archive.decompress()));"
        "print('kept: totals' in str(archive.certificate)); archive.verify()"
    )
    found = subprocess.run([sys.executable, "-c", program, path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout.split() == [str(len(WEB)), "True"]
    assert "the archive promises 'totals', which is not known here: import the module that defines it" in found.stderr


def test_where_a_guarantee_cannot_be_kept(tmp_path):
    assert known("totals") is KeepTotals
    with pytest.raises(WorkbenchError, match=r"keep of a field takes wb.Safeguard\(...\); got KeepTotals"):
        wb.compress(np.zeros((8, 8)), wb.Absolute(0.1), keep=KeepTotals(0.01))
    with pytest.raises(WorkbenchError, match=r"takes wb.KeepClusters\(...\); got KeepTotals.*: give wb.Particles"):
        wb.compress(WEB, wb.Absolute(0.1), keep=KeepTotals(0.01), parts=2, out=tmp_path / "a.zarr")
    assert not list(tmp_path.iterdir())
    path = wb.compress(WEB, wb.Absolute(0.05), keep=KeepTotals(0.01)).save(tmp_path / "totals.zarr")
    with pytest.raises(WorkbenchError, match=r"totals can only be checked with all particles in memory: verify without"):
        wb.open(path).verify(parts=2)
    with pytest.raises(WorkbenchError, match=r"Nameless.kind must be the name of the guarantee in archives; got None"):
        type("Nameless", (Guarantee,), {})
