"""Archives decode to the same bits with the newest codecs that pyproject.toml allows, whatever is installed here."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from archive.make_golden import FOLDER
from conftest import ROOT

pytestmark = [pytest.mark.long, pytest.mark.slow]

# Each archive is compared with what it decoded to when it was written. No codec is missing.
PROGRAM = """
import sys
from pathlib import Path

import numpy as np
import workbench as wb
from workbench.archive import golden

folder, wrong = Path(sys.argv[1]), []
for path in sorted([*golden.FOLDER.glob("*.zip"), *folder.glob("*.zip")]):
    with np.load(folder / f"{path.stem}.npz") as expected:
        try:
            found = golden.checksums(wb.open(path))
        except wb.WorkbenchError as error:
            wrong.append(f"{path.stem}: {error}")
            continue
        if found != {name: golden.checksum(expected[name]) for name in expected}:
            wrong.append(f"{path.stem}: other values")
sys.exit("\\n".join(wrong) or 0)
"""


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the newest codecs that the resolver allows."""
    folder = tmp_path_factory.mktemp("newest")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["codecs"]]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "environment"], check=True)
    python = folder / "environment" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", "--only-binary", ":all:"]
    done = subprocess.run([*pip, *wanted], capture_output=True, text=True, cwd=folder)
    if done.returncode:
        pytest.skip(f"pip cannot install the newest codecs here: {done.stderr.strip().splitlines()[-1]}")
    return python


def test_all_archives_decode_with_the_newest_codecs(newest, tmp_path):
    run, alone = [newest, "-c", PROGRAM, FOLDER], {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(run, env=alone, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
