"""pyproject.toml, constraints.txt, environment.yml, binder/environment.yml and conda/recipe.yaml ask for the same packages.

They are five files because pip, conda, Binder and the builders of conda packages each read their own. Nothing generates one
from another, so that each stays readable; this test is what keeps them together.
"""

import copy
import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import workbench as wb
from conftest import ROOT

PYTHONS = ["3.11.9", "3.12.4", "3.13.0"]

CONDA_EXTRAS = {"lab", "limits", "io", "codecs", "dask", "gpu"}   # not llm (PyTorch is larger than all this), test, peers
GPU_ONLY = {"cupy", "cuda-nvrtc", "cuda-version"}
WITHOUT_EXTRA = {"python", "pip", "cxx-compiler", "make", "cuda-version"}
ONLY_ROOT = {"make"} | GPU_ONLY

# conda-forge's name, where it is not PyPI's.
CONDA_NAMES = {"blosc": "python-blosc", "cupy-cuda12x": "cupy", "dask": "dask-core", "nvidia-cuda-nvrtc-cu12": "cuda-nvrtc"}


@dataclass
class Files:
    """What the five files say, as far as it concerns packages."""

    root: dict[str, Any]
    binder: dict[str, Any]
    recipe: dict[str, Any]
    project: dict[str, Any]
    constraints: list[str]


@pytest.fixture
def files() -> Files:
    return Files(
        yaml.safe_load((ROOT / "environment.yml").read_text()),
        yaml.safe_load((ROOT / "binder" / "environment.yml").read_text()),
        yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text()),
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"],
        (ROOT / "constraints.txt").read_text().splitlines(),
    )


def by_conda(environment: dict[str, Any]) -> dict[str, SpecifierSet]:
    """Package and allowed versions of what conda installs."""
    found = {}
    for entry in environment["dependencies"]:
        if isinstance(entry, str):
            name, versions = re.fullmatch(r"([\w-]+)(.*)", entry).groups()
            found[name] = SpecifierSet(re.sub(r"^=(\d[\d.]*)$", r"==\1.*", versions))
    return found


def by_pip(environment: dict[str, Any]) -> list[str]:
    return next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))


def requirements(project: dict[str, Any], extras: set[str]) -> list[Requirement]:
    texts = [*project["dependencies"], *(text for name in extras for text in project["optional-dependencies"][name])]
    return [r for r in map(Requirement, texts) if r.name != project["name"]]


def locked(constraints: list[str], python: str) -> dict[str, Version]:
    """What constraints.txt installs on Linux with this Python."""
    place = {"python_full_version": python, "python_version": python.rpartition(".")[0], "sys_platform": "linux"}
    found = {}
    for requirement in map(Requirement, constraints):
        if requirement.marker is None or requirement.marker.evaluate(place):
            (pin,) = requirement.specifier
            found[canonicalize_name(requirement.name)] = Version(pin.version)
    return found


def lower_ends(versions: SpecifierSet) -> set[Version]:
    return {Version(v.version) for v in versions if v.operator == ">="}


def disagreements(files: Files) -> list[str]:
    return lock_disagrees(files) or [   # what is not locked cannot be compared with the rest
        *conda_disagrees("environment.yml", files.root, files, CONDA_EXTRAS),
        *conda_disagrees("binder/environment.yml", files.binder, files, CONDA_EXTRAS - {"gpu"}),
        *environments_disagree(files),
        *recipe_disagrees(files),
    ]


def lock_disagrees(files: Files) -> list[str]:
    found = [f"constraints.txt: not `name==version`: {line}" for line in files.constraints if not is_pin(line)]
    if found:
        return found
    for python in PYTHONS:
        versions = locked(files.constraints, python)
        for requirement in requirements(files.project, set(files.project["optional-dependencies"])):
            version = versions.get(canonicalize_name(requirement.name))
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                got = f"{requirement.name} {version}"
                found.append(f"constraints.txt: Python {python} gets {got}, not {requirement.specifier}")
    return found


def is_pin(line: str) -> bool:
    return re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[0-9][0-9a-z.]*( ; [\w .'<>=!()*]+)?", line) is not None


def conda_disagrees(file: str, environment: dict[str, Any], files: Files, extras: set[str]) -> list[str]:
    """Every package of these extras is there and no other, and the locked version is among those allowed."""
    conda = by_conda(environment)
    python = next(version for version in PYTHONS if conda["python"].contains(version))
    versions = locked(files.constraints, python)
    pip = {Requirement(text).name: Requirement(text).specifier for text in by_pip(environment) if not text.startswith("-e")}
    found, wanted = [], set(WITHOUT_EXTRA)
    for requirement in requirements(files.project, extras):
        name = CONDA_NAMES.get(requirement.name, requirement.name.lower())
        version = versions[canonicalize_name(requirement.name)]
        wanted |= {name, requirement.name}
        if requirement.name in pip:
            if pip[requirement.name] != SpecifierSet(f"=={version}"):
                found.append(f"{file}: pip installs {requirement.name}{pip[requirement.name]}; locked is {version}")
        elif name not in conda:
            found.append(f"{file}: {name} is missing")
        else:
            found += [f"{file}: {name} {fault}" for fault in range_faults(conda[name], requirement.specifier, version)]
    return found + [f"{file}: {name} belongs to no extra" for name in sorted({*conda, *pip} - wanted)]


def range_faults(allowed: SpecifierSet, asked_for: SpecifierSet, version: Version) -> list[str]:
    faults = []
    if version not in allowed:
        faults.append(f"{allowed} does not admit the locked {version}")
    if lower_ends(allowed) != lower_ends(asked_for):
        faults.append(f"{allowed} does not begin where pyproject.toml does: {asked_for}")
    if Version(f"{version.major + 1}.0") in allowed:
        faults.append(f"{allowed} admits the next major version, which was never tried")
    return faults


def environments_disagree(files: Files) -> list[str]:
    root, binder = by_conda(files.root), by_conda(files.binder)
    found = [f"binder/environment.yml: {name} needs a GPU" for name in sorted(GPU_ONLY & set(binder))]
    found += [
        f"{name}: environment.yml says {root.get(name)}, binder/environment.yml {binder.get(name)}"
        for name in sorted({*root, *binder} - ONLY_ROOT)
        if root.get(name) != binder.get(name)
    ]
    if by_pip(files.root) != [*by_pip(files.binder), "-e ."]:
        found.append("pip: environment.yml and binder/environment.yml differ by more than `-e .`")
    if files.root["channels"] != files.binder["channels"]:
        found.append("channels differ")
    return found


def recipe_disagrees(files: Files) -> list[str]:
    """The conda package needs what the package of PyPI needs, and is described by the same words."""
    recipe, project = files.recipe, files.project
    wanted = [Requirement(text) for text in (f"python{project['requires-python']}", *project["dependencies"])]
    run = {r.name: r.specifier for r in map(Requirement, recipe["requirements"]["run"])}
    host = {r.name: r.specifier for r in map(Requirement, filter(is_text, recipe["requirements"]["host"]))}
    (backend,) = map(Requirement, tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    found = []
    if run != {r.name: r.specifier for r in wanted}:
        found.append(f"conda/recipe.yaml: it runs with {run}")
    if host != {"pip": SpecifierSet(), "python": run.get("python"), backend.name: backend.specifier}:
        found.append(f"conda/recipe.yaml: it is built with {host}")
    if recipe["context"]["version"] != wb.__version__:
        found.append(f"conda/recipe.yaml: version {recipe['context']['version']}, not {wb.__version__}")
    about, urls = recipe["about"], project["urls"]
    if (about["license"], about["summary"]) != (project["license"], project["description"]):
        found.append("conda/recipe.yaml: another licence or summary")
    if [about[name] for name in ("homepage", "repository", "documentation")] != [
        urls[name] for name in ("Homepage", "Source", "Documentation")
    ]:
        found.append("conda/recipe.yaml: other addresses")
    return found


def is_text(entry: object) -> bool:
    return isinstance(entry, str)


def test_the_recipe_of_a_dependency_builds_a_version_that_is_allowed(files):
    # conda-forge does not have it, so that its recipe is beside ours.
    recipe = yaml.safe_load((ROOT / "conda" / "pcodec" / "recipe.yaml").read_text())
    version = Version(recipe["context"]["version"])
    assert version in Requirement(next(text for text in files.project["dependencies"] if "pcodec" in text)).specifier
    assert version == locked(files.constraints, PYTHONS[0])["pcodec"]
    assert re.fullmatch("[0-9a-f]{64}", recipe["source"]["sha256"])


def test_the_files_agree(files):
    assert disagreements(files) == []


def test_zfpy_is_pinned_everywhere(files):
    """zfpy 1.0.1.post0 breaks `import numcodecs` merely by being installed."""
    assert "zfpy==1.0.1" in files.constraints
    assert "zfpy==1.0.1" in files.project["optional-dependencies"]["codecs"]
    for environment in (files.root, files.binder):
        assert "zfpy==1.0.1" in environment["dependencies"]


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("root", "zarr>=3.1,<4", None, "environment.yml: zarr is missing"),
        ("root", "zarr>=3.1,<4", "zarr>=2.0,<4", "does not begin where pyproject.toml does"),
        ("root", "zarr>=3.1,<4", "zarr>=3.1", "admits the next major version"),
        ("root", "zarr>=3.1,<4", "zarr>=3.1,<3.1", "does not admit the locked 3."),
        ("root", "cupy>=14.0,<15", "cupy>=13.0,<15", "environment.yml: cupy"),
        ("root", "make", "cmake", "cmake belongs to no extra"),
        ("binder", "make", "cupy>=14.0,<15", "cupy needs a GPU"),
        ("binder", "make", "pytorch>=2", "pytorch belongs to no extra"),
        ("binder", "python=3.12", "python=3.11", "python: environment.yml says"),
        ("binder", "h5py>=3.12,<4", "h5py>=3.12,<3.99", "h5py: environment.yml says"),
        ("pip", "pysz==1.1.0", "pysz==1.0.0", "pip installs pysz==1.0.0; locked is 1.1.0"),
        ("pip", "pysz==1.1.0", None, "environment.yml: pysz is missing"),
        ("extra", "zarr>=3.1", "zarr>=3.1.2", "environment.yml: zarr"),
        ("extra", "zarr>=3.1", "zarr>=99", "constraints.txt: Python 3.11.9 gets zarr 3."),
        ("extra", "zarr>=3.1", "sgrid>=1", "constraints.txt: Python 3.11.9 gets sgrid None"),
        ("lock", "zfpy==1.0.1", "zfpy==1.0.1.post0", "gets zfpy 1.0.1.post0"),
        ("lock", "zfpy==1.0.1", "zfpy @ file:///wheels/zfpy.whl", "not `name==version`: zfpy @ file"),
        ("lock", "zfpy==1.0.1", "--extra-index-url https://example.org", "not `name==version`: --extra"),
        ("lock", "zfpy==1.0.1", "# comment", "not `name==version`"),
        ("recipe", "pcodec >=1.1", None, "conda/recipe.yaml: it runs with"),
        ("recipe", "numpy >=2.0", "numpy >=1.26", "conda/recipe.yaml: it runs with"),
        ("recipe", "python >=3.11", "python >=3.12", "conda/recipe.yaml: it runs with"),
    ],
)
def test_a_drift_is_named(files, file, old, new, complaint):
    drifted = copy.deepcopy(files)
    place = {
        "root": drifted.root["dependencies"],
        "binder": drifted.binder["dependencies"],
        "pip": by_pip(drifted.root),
        "extra": drifted.project["optional-dependencies"]["io"],
        "lock": drifted.constraints,
        "recipe": drifted.recipe["requirements"]["run"],
    }[file]
    if old in place:
        place.remove(old)
    if new is not None:
        place.append(new)
    found = disagreements(drifted)
    assert any(complaint in line for line in found), found


@pytest.mark.parametrize("script", ["binder/postBuild", "binder/start", ".ci/run"])
def test_scripts_can_run_and_stop_at_an_error(script):
    path = ROOT / script
    lines = path.read_text().splitlines()
    assert os.access(path, os.X_OK), f"{script} is not executable: chmod +x {script}"
    assert lines[0] == "#!/usr/bin/env bash"
    assert any(re.match(r"set -\w*e", line) for line in lines[1:]), f"{script} does not stop at an error: set -e"


def test_binder_hands_over_to_jupyter():
    assert (ROOT / "binder" / "start").read_text().splitlines()[-1] == 'exec "$@"'


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", ["demo", "lab", "app", "test"])
def test_make_says_how_long_it_sets_up_before_it_does(target):
    asked = ["make", "--dry-run", "--always-make", target]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    before, found, _ = told.partition("pip install")
    assert found
    assert re.search(r"Setting up .* (about 1 minute|\d to \d minutes) in which (JupyterLab|NumPy).* are fetched", before)
