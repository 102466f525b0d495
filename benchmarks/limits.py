"""Limits: the speed and accuracy of the bounds of a field, and the distance of codecs from them.

python benchmarks/limits.py [--repeats 3] [--data FOLDER]

Everything that has a known answer is made on the spot. The folder of real files is not part of the project; without it,
real fields are left out.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import timing

import workbench as wb

REAL: dict[str, tuple[str, dict[str, Any]]] = {
    "temperature (CESM)": ("cesm/cam-fv.T.3months.nc", {"name": "T"}),
    "vorticity 3-D (SPERR)": ("sperr_fields/vorticity.128_128_41", {"shape": (41, 128, 128)}),
    "|vorticity| 91³ (SPERR)": ("sperr_fields/wmag91.float", {"shape": (91, 91, 91)}),
    "baryons 32³ (Nyx)": ("hacc_nyx_toy/z255_32.h5", {"name": "native_fields/baryon_density"}),
}
Region = wb.synthetic.Region


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()
    print(timing.machine())
    speed(asked.repeats)
    recovery()
    known_field()
    if asked.data is not None:
        real_fields(asked.data)


def speed(repeats: int) -> None:
    """`wb.rate_distortion` on homogeneous and piecewise fields, evidence and interval included."""
    print("\n## Time\n")
    heading("field", "model [s]", "with all evidence [s]")
    regions = [Region(1.0, 0.95), Region(4.0, 0.6)]
    for shape, models in itertools.product([(512, 512), (128, 128, 128)], [regions[:1], regions]):
        field = wb.synthetic.piecewise_field(shape, models, seed=1, layout="blocks")
        first, whole = [], []
        for _ in range(repeats):
            start = time.perf_counter()
            limits = wb.rate_distortion(field)
            limits.rate(0.01)
            first.append(time.perf_counter() - start)
            _ = limits.interval(0.01), limits.warnings, limits.tiled(16).rate(0.01), limits.converse(0.01)
            whole.append(time.perf_counter() - start)
        name = " x ".join(map(str, shape)) + (", two regions" if len(models) == 2 else "")
        print(f"| {name} | {statistics.median(first):.2f} | {statistics.median(whole):.2f} |")


def recovery() -> None:
    """Synthetic fields, judged without being told the model or the regions."""
    print("\n## Synthetic fields: judged against exact\n")
    heading("field", "distortion", "exact rate", "estimated", "difference", "interval", "cells right")
    cases = {
        "AR 0.95, 512²": ((512, 512), [Region(1.0, 0.95)], "split"),
        "AR 0.9, 64³": ((64, 64, 64), [Region(2.0, 0.9)], "split"),
        "two halves, sigma 1 and 4, 512²": ((512, 512), [Region(1.0, 0.95), Region(4.0, 0.95)], "split"),
        "blocks, rho 0.95 and 0.5, 512²": ((512, 512), [Region(1.0, 0.95), Region(1.0, 0.5)], "blocks"),
        "discs, sigma 1 and 3, 512²": ((512, 512), [Region(1.0, 0.9), Region(3.0, 0.9)], "discs"),
        "blocks of 32, sigma 1 and 3, 128³": ((128, 128, 128), [Region(1.0, 0.8), Region(3.0, 0.8)], "blocks"),
    }
    for name, (shape, models, layout) in cases.items():
        field = wb.synthetic.piecewise_field(shape, models, seed=5, layout=layout)
        where = field.metadata["regions"]
        known = [wb.limits.Autoregressive(model.sigma**2, (model.rho,) * len(shape)) for model in models]
        exact = wb.rate_distortion(wb.limits.piecewise(where, known))
        limits = wb.rate_distortion(field)
        for distortion in (0.001, 0.1):
            rate, low_high = limits.rate(distortion), limits.interval(distortion)
            right = cells_right(limits.source.regions.labels, where)
            print(
                f"| {name} | {distortion:g} | {exact.rate(distortion):.4f} | {rate:.4f} | "
                f"{rate - exact.rate(distortion):+.4f} | {low_high[0]:.4f} to {low_high[1]:.4f} | {100 * right:.1f}% |"
            )


def cells_right(found: np.ndarray, true: np.ndarray) -> float:
    """The share of cells in the right region, whatever the regions are called."""
    count = max(int(found.max()), int(true.max())) + 1
    together = np.bincount((true * count + found).ravel(), minlength=count * count).reshape(count, count)
    orders = itertools.permutations(range(count))
    return max(sum(int(together[place, name]) for place, name in enumerate(names)) for names in orders) / true.size


def heading(*names: str) -> None:
    """The first two lines of a table."""
    print(f"| {' | '.join(names)} |\n{'|---' * len(names)}|")


def known_field() -> None:
    """Codecs on a field whose bounds are exact: 1024², the recursion with 0.95 along both axes."""
    print("\n## Codecs on AR(1), rho = 0.95, 1024²: exact bounds\n")
    heading(
        "codec", "bound", "bits", "mse / (eb²/3)", "R(mse)", "gap", "R in tiles", "pointwise bound", "gap to it", "lever"
    )
    field = wb.synthetic.piecewise_field((1024, 1024), [Region(1.0, 0.95)], seed=0)
    fitted = wb.rate_distortion(field)
    exact = wb.rate_distortion(wb.limits.separable(0.95, field.shape))
    lorenzo = wb.codecs.get("sz3", algorithm="lorenzo_reg")
    codecs: list[str | wb.codecs.Codec] = [lorenzo, "sz3", "zfp", "sperr", "prequantised"]
    for point in fitted.compare(codecs, [wb.Absolute(eb) for eb in (1e-3, 1e-2, 0.05, 0.2)]):
        eb, mse = float(point.run["limit"]), point.distortion
        rate, pointwise = exact.rate(mse), exact.pointwise(eb)
        print(
            f"| {point.run.label} | {eb:g} | {point.bits:.4f} | {3 * mse / eb**2:.3f} | {rate:.4f} | "
            f"{point.bits - rate:.4f} | {exact.tiled(4).rate(mse):.4f} | {pointwise:.4f} | "
            f"{point.bits - max(pointwise, 0):.4f} | {point.lever} |"
        )
    print(f"\nthe field's own pointwise bound at 1e-3: {fitted.instance(1e-3):.4f}; fitted rate at 1e-6: "
          f"{fitted.rate(1e-6):.4f}, exact {exact.rate(1e-6):.4f}")


def real_fields(folder: Path) -> None:
    """The results for real files."""
    print("\n## Real fields\n")
    heading("field", "regions", "codec", "bound", "bits", "Gaussian-model bound", "gap", "lever")
    for name, (path, options) in REAL.items():
        field = wb.open(folder / path, **options)
        limits = wb.rate_distortion(field)
        spread = limits.variance**0.5
        for point in limits.compare(["sz3", "zfp", "sperr"], [wb.Absolute(0.01 * spread)]):
            print(
                f"| {name} | {len(limits.source.fits)} | {point.run.label} | {point.run['limit']:.3g} | {point.bits:.3f} | "
                f"{point.rate:.3f} | {point.gap:+.3f} | {point.lever} |"
            )
        print("".join(f"| | | | | | | | {warning} |\n" for warning in limits.warnings), end="")


if __name__ == "__main__":
    main()
