"""Trains the experts that come with the package, on synthetic fields, and writes them beside their code in six minutes.

`python -m workbench.bounds.prediction.make_experts` is how `experts.npz` was made. `--count` sets the number of
fields, `--codecs` which experts to train; others in the file stay. Compressing takes nearly all of the time, so
`--measured` names a file that keeps what codecs did: with it, experts with other features are trained in a minute or two.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import astuple
from pathlib import Path

import numpy as np

from workbench import codecs
from workbench.bounds import prediction
from workbench.bounds.prediction.expert import SHIPPED, from_bytes, to_bytes
from workbench.bounds.prediction.survey import Survey
from workbench.bounds.prediction.train import Lesson, Outcome, fitted, lesson_of, outcomes
from workbench.bounds.prediction.training_fields import training_fields
from workbench.codecs.registry import for_fields
from workbench.guarantees import Bound, Relative

TARGET = Path(prediction.__file__).parent / SHIPPED
BOUNDS = 7
DECADES = (-5.3, -1.0)   # of the range of the values

Known = dict[tuple[str, int], list[Outcome]]


def main() -> None:
    """Train, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--codecs", nargs="+", default=for_fields())
    parser.add_argument("--measured", type=Path, help="a file of outcomes, which is read if it is there, and completed")
    options = parser.parse_args()
    chosen = {name: codecs.get(name) for name in options.codecs}
    known = read_outcomes(options.measured)
    lessons: dict[str, list[Lesson]] = {name: [] for name in chosen}
    start = time.perf_counter()
    for number, (kind, field) in enumerate(training_fields(options.count)):
        survey = Survey(field)
        for name, codec in chosen.items():
            if (name, number) not in known:
                known[name, number] = outcomes(field, codec, bounds_of(number))
            lessons[name].append(lesson_of(survey, codec, known[name, number], kind))
        if number % 20 == 0:
            print(f"{number} fields, {time.perf_counter() - start:.0f} s", flush=True)
            write_outcomes(options.measured, known)
    write_outcomes(options.measured, known)
    some = bool(set(for_fields()) - chosen.keys())   # others stay; a file in an older format is replaced as a whole
    kept = {str(expert.codec["id"]): expert for expert in from_bytes(TARGET.read_bytes())} if some else {}
    trained = {name: fitted(found, chosen[name]) for name, found in lessons.items()}
    data = to_bytes(list((kept | trained).values()))
    TARGET.write_bytes(data)
    print(f"{len(data):,} bytes for {', '.join(kept | trained)}")


def bounds_of(number: int) -> list[Bound]:
    """The bounds for the field of this number."""
    rng = np.random.default_rng([1, number])
    return [Relative(float(10**power)) for power in np.sort(rng.uniform(*DECADES, BOUNDS))]


def read_outcomes(path: Path | None) -> Known:
    """What codecs did, by the name of the codec and the number of the field; nothing without a file."""
    if path is None or not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {(name, number): [Outcome(*figures) for figures in found] for name, number, found in lines}


def write_outcomes(path: Path | None, known: Known) -> None:
    """Keep what codecs did, one line for each codec and field."""
    if path is not None:
        lines = (json.dumps([*key, [astuple(each) for each in found]]) for key, found in known.items())
        path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
