"""Trains the experts that come with the package, and writes them beside their code.

`python -m workbench.bounds.prediction.make_experts --fields FOLDER ...` is how `experts.npz` was made: trees learn from
synthetic fields and from the real ones in these folders whose families are not tested (`real_fields.py` says where these
come from), and the mistakes on real families alone set the intervals, each family left out of the trees that are judged on
it. `--count` sets the number of synthetic fields, `--codecs` which experts to train; others in the file stay. Compressing
takes nearly all of the time, about 10 minutes, so `--measured` names a file that keeps what codecs did: with it, experts
with other features are trained in two or three.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path

import numpy as np

from workbench import codecs
from workbench.bounds import prediction
from workbench.bounds.prediction.expert import SHIPPED, from_bytes, to_bytes
from workbench.bounds.prediction.real_fields import real_fields
from workbench.bounds.prediction.survey import Survey
from workbench.bounds.prediction.train import Lesson, Outcome, fitted, lesson_of, outcomes
from workbench.bounds.prediction.training_fields import training_fields
from workbench.codecs.registry import for_fields
from workbench.data import Field
from workbench.guarantees import Bound, Relative

TARGET = Path(prediction.__file__).parent / SHIPPED
SYNTHETIC = 40           # fields, two of each kind
FIRST_REAL = 1000        # is the number of the first real one
BOUNDS = 7
DECADES = (-5.3, -1.0)   # of the range of the values


Known = dict[tuple[str, int], list[Outcome]]


def main() -> None:
    """Train, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=SYNTHETIC)
    parser.add_argument("--codecs", nargs="+", default=for_fields())
    parser.add_argument("--fields", nargs="+", type=Path, required=True, help="folders of the files with real fields")
    parser.add_argument("--measured", type=Path, help="a file of outcomes, which is read if it is there, and completed")
    options = parser.parse_args()
    chosen = {name: codecs.get(name) for name in options.codecs}
    known = read_outcomes(options.measured)
    lessons: dict[str, list[Lesson]] = {name: [] for name in chosen}
    start = time.perf_counter()
    for kind, number, field in lesson_fields(options.count, options.fields):
        survey = Survey(field)
        for codec in chosen.values():
            if (codec.id, number) not in known:
                known[codec.id, number] = outcomes(field, codec, bounds_of(number))
            lessons[codec.id].append(lesson_of(survey, codec, known[codec.id, number], kind))
        if number % 20 == 0:
            print(f"{number} fields, {time.perf_counter() - start:.0f} s", flush=True)
            write_outcomes(options.measured, known)
    write_outcomes(options.measured, known)
    some = bool(set(for_fields()) - chosen.keys())   # others stay; a file in an older format is replaced as a whole
    kept = {str(expert.codec["id"]): expert for expert in from_bytes(TARGET.read_bytes())} if some else {}
    calibrating = {each.family for each in real_fields()}
    trained = {name: fitted(found, chosen[name], calibrating) for name, found in lessons.items()}
    data = to_bytes(list((kept | trained).values()))
    TARGET.write_bytes(data)
    print(f"{len(data):,} bytes for {', '.join(kept | trained)}")


def lesson_fields(count: int, folders: Sequence[Path]) -> Iterator[tuple[str, int, Field]]:
    """The fields of the training with kinds and numbers: so many synthetic ones, and real ones that are not tested."""
    for number, (kind, field) in enumerate(training_fields(count)):
        yield kind, number, field
    for number, each in enumerate(real_fields(), FIRST_REAL):
        if not each.is_test:
            yield each.family, number, each.read(folders)


def bounds_of(number: int) -> list[Bound]:
    """The bounds for the field of this number."""
    rng = np.random.default_rng([1, number])
    return [Relative(float(10**power)) for power in np.sort(rng.uniform(*DECADES, BOUNDS))]


def read_outcomes(path: Path | None) -> Known:
    """What codecs did, by the name of the codec and the number of the field; nothing without a file."""
    if path is None or not path.exists():
        return {}
    lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {(codec, number): [Outcome(*figures) for figures in found] for codec, number, found in lines}


def write_outcomes(path: Path | None, known: Known) -> None:
    """Keep what codecs did, one line for each codec and field."""
    if path is not None:
        lines = (json.dumps([*key, [astuple(each) for each in found]]) for key, found in known.items())
        path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
