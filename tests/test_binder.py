"""What Binder makes of this repository, as far as that can be known without building it.

repo2docker says which Dockerfile it would build. The two scripts are run here, with stand-ins for what an image has.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from conftest import ROOT

COMPILER = "x86_64-conda-linux-gnu-c++"


def dockerfile(repository: Path) -> str:
    """What Binder would build from a repository. No container engine is within reach of this."""
    pytest.importorskip("repo2docker", reason="needs the test extra")
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(repository)]
    environment = {**os.environ, "PATH": str(Path(sys.executable).parent)}
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert found.returncode == 0, found.stderr
    return found.stdout


def complaints(text: str, python: str) -> list[str]:
    """What is not as it should be in a Dockerfile: each step is there, once, and after the one before."""
    steps = {
        "the version of Python": f"environment-2epy-2d{python.replace('.', '-2e')}",
        "Binder's own environment file": "COPY --chown=0:0 src/binder/environment.yml ${REPO_DIR}/binder/environment.yml",
        "its packages": '--file "binder/environment.yml"',
        "the repository": "COPY --chown=0:0 src/ ${REPO_DIR}/\n",
        "postBuild": "RUN ./binder/postBuild\n",
        "start": 'ENV R2D_ENTRYPOINT="${REPO_DIR}/binder/start"\n',
    }
    found = [f"{name} is missing" for name, line in steps.items() if text.count(line) < 1]
    places = [text.find(line) for line in steps.values()]
    return found or ([] if places == sorted(places) else ["the steps are in another order"])


@pytest.fixture
def python() -> str:
    """The version that binder/environment.yml asks for."""
    packages = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text())["dependencies"]
    (version,) = [package.removeprefix("python=") for package in packages if str(package).startswith("python=")]
    return version


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """What concerns Binder, in a folder where it can be spoilt."""
    folder = tmp_path / "repository"
    shutil.copytree(ROOT / "binder", folder / "binder")
    for name in ("environment.yml", "pyproject.toml", "constraints.txt", "Makefile"):
        shutil.copy(ROOT / name, folder)
    return folder


def test_binder_finds_its_files_and_uses_all_of_them(python: str) -> None:
    assert complaints(dockerfile(ROOT), python) == []


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "edit", "complaint"),
    [
        ("environment.yml", lambda text: text.replace("python=3.12", "python"), "the version of Python is missing"),
        ("environment.yml", None, "Binder's own environment file is missing"),
        ("postBuild", None, "postBuild is missing"),
        ("start", None, "start is missing"),
        ("Dockerfile", lambda _: "FROM scratch\n", "its packages is missing"),
    ],
)
def test_what_is_spoilt_is_noticed(repository: Path, python: str, name: str, edit, complaint: str) -> None:
    assert complaints(dockerfile(repository), python) == []
    file = repository / "binder" / name
    if edit is None:
        file.unlink()
    else:
        file.write_text(edit(file.read_text() if file.exists() else ""))
    assert complaint in complaints(dockerfile(repository), python)


def test_links_to_binder_name_notebooks_that_are_there() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "README.md", ROOT / "docs" / "teaching.md")]
    opened = re.findall(r"https://mybinder\.org/v2/gh/lossbench/lossbench/HEAD\?urlpath=lab/tree/([\w./]+)", "".join(texts))
    assert len(opened) == 2
    assert all((ROOT / path).is_file() for path in opened)


# The scripts.

@pytest.fixture
def image(repository: Path) -> Path:
    """A folder of programs like that of the image: a compiler, and a Python that writes down how it was called."""
    programs = repository / "bin"
    programs.mkdir()
    record = '#!/bin/sh\necho "$CXX|$PIP_CONSTRAINT|$PIP_BUILD_CONSTRAINT|$*"\nexit ${PYTHON_ENDS_WITH:-0}\n'
    for name, text in {"python": record, COMPILER: "#!/bin/sh\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return programs


def script(name: str, image: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{image}:/usr/bin:/bin", **variables}
    command = [f"./binder/{name}", *arguments]
    return subprocess.run(command, cwd=image.parent, env=environment, capture_output=True, text=True, timeout=30)


def test_post_build_installs_lossbench_with_the_compiler_of_conda(image: Path) -> None:
    ran = script("postBuild", image)
    compiler, *constraints, arguments = ran.stdout.strip().split("|")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert compiler == str(image / COMPILER)
    assert all((image.parent / name).is_file() for name in constraints)
    assert re.fullmatch(r"-m pip install .*--no-deps .*--editable \.", arguments)


def test_post_build_stops_when_the_installation_fails(image: Path) -> None:
    assert script("postBuild", image, PYTHON_ENDS_WITH="3").returncode == 3


def test_post_build_stops_when_there_is_no_compiler(image: Path) -> None:
    (image / COMPILER).unlink()
    ran = script("postBuild", image)
    assert ran.returncode != 0
    assert ran.stdout == ""


def test_start_becomes_the_program_that_it_is_given(image: Path) -> None:
    shown = script("start", image, "sh", "-c", 'echo "$OMP_NUM_THREADS, $1"; exit 5', "sh", "two words")
    assert (shown.returncode, shown.stdout) == (5, "2, two words\n")
