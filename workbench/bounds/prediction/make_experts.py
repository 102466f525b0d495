"""Trains the experts that come with the package, on synthetic fields, and writes them beside their code in minutes.

`python -m workbench.bounds.prediction.make_experts` is how `experts.npz` was made. `--count` sets the number of
fields, `--codecs` which experts to train; others in the file stay.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from workbench import codecs
from workbench.bounds import prediction
from workbench.bounds.prediction.expert import SHIPPED, from_bytes, to_bytes
from workbench.bounds.prediction.train import Row, fitted, measured_rows
from workbench.bounds.prediction.training_fields import training_fields
from workbench.guarantees import Bound, Relative

TARGET = Path(prediction.__file__).parent / SHIPPED
CODECS = ("sz3", "zfp", "sperr", "prequantised")
BOUNDS = 7
DECADES = (-5.3, -1.0)   # of the range of the values


def main() -> None:
    """Train, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=180)
    parser.add_argument("--codecs", nargs="+", default=CODECS)
    options = parser.parse_args()
    chosen = {name: codecs.get(name) for name in options.codecs}
    rows: dict[str, list[Row]] = {name: [] for name in chosen}
    start = time.perf_counter()
    for number, (kind, field) in enumerate(training_fields(options.count)):
        rng = np.random.default_rng([1, number])
        bounds: list[Bound] = [Relative(float(10**power)) for power in np.sort(rng.uniform(*DECADES, BOUNDS))]
        for name, codec in chosen.items():
            rows[name] += measured_rows(field, codec, bounds, kind)
        if number % 20 == 0:
            print(f"{number} fields, {time.perf_counter() - start:.0f} s", flush=True)
    kept = {str(expert.codec["id"]): expert for expert in from_bytes(TARGET.read_bytes())} if TARGET.exists() else {}
    trained = {name: fitted(found, chosen[name]) for name, found in rows.items()}
    data = to_bytes(list((kept | trained).values()))
    TARGET.write_bytes(data)
    print(f"{len(data):,} bytes for {', '.join(kept | trained)}")


if __name__ == "__main__":
    main()
