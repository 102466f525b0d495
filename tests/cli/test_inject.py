"""`workbench inject`: pipelines from scripts and ready-made ones, and what is refused."""

from pathlib import Path

import pytest

import small_language_model as small
from cli.conftest import Run
from workbench.cli.inject import READY

SCRIPT = '''
import numpy as np
import workbench as wb
from neighbour import power

pipeline = wb.propagation.Pipeline([("waves", np.fft.rfftn), ("power", power)])
number = 3


def made(data):
    return wb.propagation.power_spectrum(data)


def analysis(data):
    return data.values.mean()
'''


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("def power(waves):\n    return abs(waves) ** 2\n")
    path = tmp_path / "analysis.py"
    path.write_text(SCRIPT)
    return path


def test_a_pipeline_of_a_script_is_tried(run: Run, script: Path, field: Path) -> None:
    printed = run("inject", f"{script}:pipeline", field, "--bits", "exponent", "--trials", 60, "--json")
    assert (printed.status, printed.err) == (0, "")
    assert printed.json["trials"] == 60
    assert printed.json["complete"] is True
    assert [row["site"] for row in printed.json["strata"]] == ["input", "waves"]
    assert printed.json["tolerance"] == "every output within 0.01 of its size"
    again = run("inject", f"{script}:pipeline", field, "--bits", "exponent", "--trials", 60, "--json", "--workers", 3)
    assert again.json == printed.json


def test_a_function_may_make_the_pipeline(run: Run, script: Path, field: Path) -> None:
    printed = run("inject", f"{script}:made", field, "--sites", "waves,power", "--trials", 30, "--stuck-at", 1)
    assert printed.status == 0
    assert "sign stuck at 1" in printed.out
    assert "tolerance: every value within 0.01 of itself" in printed.out


@pytest.mark.parametrize("name", ["power_spectrum", "derivatives", "histogram"])
def test_ready_made_pipelines_need_no_script(run: Run, name: str, field: Path) -> None:
    printed = run("inject", name, field, "--bits", "12,mantissa", "--trials", 20, "--tolerance", "0.5", "--json", "-q")
    assert printed.json["tolerance"] == "every output within 0.5 of its size"
    assert name in READY


def test_a_script_that_ends_the_process_is_counted(run: Run, tmp_path: Path, field: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "ends.py"
    script.write_text(
        "import workbench as wb\nfrom beside import total\n\npipeline = wb.propagation.Pipeline([('total', total)])\n"
    )
    (tmp_path / "beside.py").write_text(
        "import os\nimport numpy as np\n\n\ndef total(x):\n"
        "    if not np.isfinite(x).all() or abs(x).max() > 1e9:\n        os.abort()\n    return x.sum()\n"
    )
    printed = run(
        "inject", f"{script}:pipeline", field, "--bits", "30", "--trials", 8, "--isolate-trials", 20,
        "--workers", 1, "--json",
    )
    assert printed.status == 0
    assert printed.json["strata"][0]["crash"] > 0
    assert sum(printed.json["reasons"].values()) == printed.json["strata"][0]["crash"]


def test_particles_are_data_too(run: Run, snapshot: Path) -> None:
    printed = run("inject", "halos", snapshot, "--trials", 10, "--bits", "any", "--sites", "input", "--json")
    assert printed.json["trials"] == 10


def test_a_log_is_continued(run: Run, script: Path, field: Path, tmp_path: Path) -> None:
    log = tmp_path / "trials.jsonl"
    first = run("inject", f"{script}:pipeline", field, "--trials", 30, "--log", log, "--json")
    assert len(log.read_text().splitlines()) == 31
    second = run("inject", f"{script}:pipeline", field, "--trials", 60, "--log", log, "--json")
    assert len(log.read_text().splitlines()) == 61
    assert first.json["trials"] == 30
    assert second.json == run("inject", f"{script}:pipeline", field, "--trials", 60, "--json").json


BAD = [
    (("power_spectrm",), "there is no pipeline 'power_spectrm'; the nearest names are: power_spectrum"),
    (("{script}:pipelin",), " named 'pipelin'; the nearest names are: pipeline"),
    (("{script}:number",), "must be a Pipeline, or a function of the data that returns one; got int"),
    (("{script}:analysis",), "got float32: a function of an array becomes one by wb.propagation.from_function"),
    (("nowhere.py:pipeline",), "nowhere.py must be a Python file; there is none"),
    (("{script}:pipeline", "--sites", "wave"), "there is no site 'wave'; the nearest names are: waves"),
    (("{script}:pipeline", "--bits", "99"), "bit must be between 0 and 31 for float32; got 99"),
    (("{script}:pipeline", "--bits", "expnent"), "float32 has the fields sign, exponent"),
    (("{script}:pipeline", "--trials", "3", "--half-width", "0.1"), "exclude each other"),
    (("{script}:pipeline", "--trials", "0"), "a number of trials, must be a whole number"),
]


@pytest.mark.parametrize(("arguments", "complaint"), BAD, ids=range(len(BAD)))
def test_wrong_requests_are_refused_in_a_sentence(
    run: Run, script: Path, field: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    named, *options = (each.format(script=script) for each in arguments)
    printed = run("inject", named, field, *options, "-q")
    assert printed.status == 2
    assert complaint in printed.err
    assert printed.err.count("\n") == 1


def test_an_error_in_the_script_is_told(run: Run, tmp_path: Path, field: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    printed = run("inject", f"{path}:pipeline", field, "-q")
    assert printed.status == 2
    assert "broken.py must run without an error; it raised ZeroDivisionError: division by zero" in printed.err


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small.write_model(tmp_path_factory.mktemp("model") / "small.gguf")


def test_a_language_model_is_tried_and_its_campaign_run_again(run: Run, model: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    options = ["--model", model, "-q", "--json"]
    first = run("inject", *options, "--text", "the other 12 theories", "--trials", 96, "--log", log, "--sites", "down,keys",
                "--number-format", "bfloat16")
    assert (first.status, first.err) == (0, "")
    assert first.json["trials"] == 96
    assert set(first.json["part"]) == {"down", "keys"}
    assert set(first.json["field"]) == {"sign", "exponent", "exponent_top", "mantissa"}
    again = run("inject", *options, "--repeat", log, "--workers", 2)
    assert again.json == first.json
    printed = run("inject", "--model", model, "--text", "the", "--trials", 30, "--bits", "sign,any", "-q")
    assert printed.out.splitlines()[-1] == "tolerance: a divergence of at most 0.01 nats"
    assert [line.split()[0] for line in printed.out.splitlines() if line.startswith(("layer", "part", "0 ", "2 "))] == [
        "layer", "0", "2", "part",
    ]
    few = run("inject", "--model", model, "--text", "the", "--trials", 2, "-q")   # most bits are never tried
    assert (few.status, len([line for line in few.out.splitlines() if line.startswith("all ")])) == (0, 1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "inject needs a pipeline and its data, or a language model"),
        (["--model"], "--model needs --text TEXT, what the model reads, or --repeat FILE"),
        (["--model", "x.gguf", "--text", "a", "--repeat", "b"], "--model needs --text TEXT"),
        (["halos", "--model", "x.gguf", "--text", "a"], "--model excludes SCRIPT.py:NAME"),
        (["--model", "x.gguf", "--text", "a"], "there is no file x.gguf"),
    ],
)
def test_what_a_model_needs(run: Run, options: list[str], complaint: str) -> None:
    printed = run("inject", *options, "-q")
    assert printed.status == 2
    assert complaint in printed.err
