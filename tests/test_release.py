"""What a release builds and publishes, and how the documentation is hosted, agree with pyproject.toml.

Neither GitHub nor Read the Docs can be asked here, so their files are read as they read them.
"""

import copy
import importlib.util
import platform
import re
import sysconfig
import tomllib
from typing import Any

import pytest
import yaml

import workbench as wb
from conftest import ROOT

PLATFORMS = {"manylinux_x86_64": "ubuntu-24.04", "manylinux_aarch64": "ubuntu-24.04-arm", "macosx_arm64": "macos-15"}
PYPI = "pypa/gh-action-pypi-publish@"


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture
def workflow() -> dict[str, Any]:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())


def pythons(project: dict[str, Any]) -> list[str]:
    """The versions of Python that the classifiers name."""
    found = (re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in project["project"]["classifiers"])
    return [one[1] for one in found if one]


def complaints(workflow: dict[str, Any], project: dict[str, Any]) -> list[str]:
    wheels = project["tool"]["cibuildwheel"]
    wanted = [f"cp{version.replace('.', '')}-*" for version in pythons(project)]
    found = [f"{one} is not built" for one in wanted if one not in wheels["build"]]
    if len(wheels["build"]) != len(pythons(project)) or project["project"]["requires-python"] != f">={pythons(project)[0]}":
        found.append("pyproject.toml names other versions of Python in its classifiers than elsewhere")
    return found + of_jobs(workflow, wheels) + of_publishing(workflow)


def of_jobs(workflow: dict[str, Any], wheels: dict[str, Any]) -> list[str]:
    jobs = workflow["jobs"]
    found, built = [], {one["platform"]: one["runner"] for one in jobs["wheels"]["strategy"]["matrix"]["include"]}
    if built != PLATFORMS:
        found.append(f"wheels for {built}")
    if wheels["macos"]["archs"] != ["arm64"] or not PLATFORMS["macosx_arm64"].endswith(
        wheels["macos"]["environment"]["MACOSX_DEPLOYMENT_TARGET"].removesuffix(".0")
    ):
        found.append("the runner of macOS is not the system that its wheel is for")
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    return found + [f"{one} is of no version" for one in used if not re.search(r"@(v\d+(\.\d+)*|release/v\d+)$", one)]


def of_publishing(workflow: dict[str, Any]) -> list[str]:
    jobs = workflow["jobs"]
    trusted = [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})]
    publishing = [name for name, job in jobs.items() if any(step.get("uses", "").startswith(PYPI) for step in job["steps"])]
    found = []
    if (trusted, publishing) != (["publish"], ["publish"]) or workflow["permissions"] != {"contents": "read"}:
        found.append("only publish may publish, and only it may have a token of identity")
    last = jobs["publish"]
    if set(last["needs"]) != set(jobs) - {"publish"}:
        found.append("publish does not wait for all others")
    if last["if"] != "github.ref_type == 'tag'" or workflow[True]["push"] != {"tags": ["v*"]}:   # YAML takes `on` for true
        found.append("what is published has no tag")
    if any("password" in step.get("with", {}) for step in last["steps"]):
        found.append("publish has a password")
    steps = [step for job in jobs.values() for step in job["steps"]]
    given = [step["with"]["name"] for step in steps if "upload-artifact" in step.get("uses", "")]
    taken = [step["with"]["pattern"] for step in last["steps"] if "download-artifact" in step.get("uses", "")]
    if taken != ["dist-*"] or len(given) != 2 or not all(name.startswith("dist-") for name in given):
        found.append("publish does not take all that the others give")
    return found


def test_the_release_builds_what_pyproject_names(workflow, project):
    assert complaints(workflow, project) == []
    assert pythons(project) == ["3.11", "3.12", "3.13"]


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("project.tool.cibuildwheel.build", ["cp311-*", "cp312-*"], "cp313-* is not built"),
        ("project.tool.cibuildwheel.build", ["cp311-*", "cp312-*", "cp313-*", "cp314-*"], "other versions of Python"),
        ("project.project.requires-python", ">=3.12", "other versions of Python"),
        ("project.tool.cibuildwheel.macos.environment.MACOSX_DEPLOYMENT_TARGET", "14.0", "the runner of macOS"),
        ("workflow.jobs.wheels.strategy.matrix.include", [{"platform": "manylinux_x86_64", "runner": "x"}], "wheels for"),
        ("workflow.jobs.publish.needs", ["wheels"], "publish does not wait for all others"),
        ("workflow.jobs.wheels.permissions", {"id-token": "write"}, "only publish may publish"),
        ("workflow.permissions", {"contents": "write"}, "only publish may publish"),
        ("workflow.jobs.publish.if", "always()", "what is published has no tag"),
        ("workflow.jobs.publish.steps.0.uses", "actions/download-artifact@main", "is of no version"),
        ("workflow.jobs.publish.steps.0.with.pattern", "wheel-*", "does not take all that the others give"),
        ("workflow.jobs.publish.steps.1.with", {"password": "x"}, "publish has a password"),
    ],
)
def test_a_drift_is_named(workflow, project, path, value, complaint):
    drifted = copy.deepcopy({"workflow": workflow, "project": project})
    *folders, last = [int(name) if name.isdigit() else name for name in path.split(".")]
    place: Any = drifted
    for name in folders:
        place = place[name]
    place[last] = value
    found = complaints(drifted["workflow"], drifted["project"])
    assert any(complaint in one for one in found), found


def test_only_the_tag_of_this_version_is_released(workflow):
    (step,) = [step for step in workflow["jobs"]["source"]["steps"] if "GITHUB_REF_NAME" in step.get("run", "")]
    assert step["if"] == "github.ref_type == 'tag'"
    pattern = re.search(r'grep -qxF "(.*)" workbench/__init__.py', step["run"])[1].replace("\\", "")
    tag = f"v{wb.__version__}"
    assert pattern.replace("${GITHUB_REF_NAME#v}", tag[1:]) in (ROOT / "workbench" / "__init__.py").read_text().splitlines()


def test_the_documentation_is_built_from_the_lock(project):
    hosted = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())
    assert hosted["version"] == 2
    assert hosted["build"]["tools"]["python"] in pythons(project)
    (install,) = hosted["build"]["jobs"]["install"]
    assert install.startswith("PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt python -m pip install ")
    assert re.search(r'--editable "\.\[(\w+)\]"$', install)[1] in project["project"]["optional-dependencies"]
    assert hosted["sphinx"] == {"configuration": "docs/conf.py", "fail_on_warning": True}   # as `make docs`


# The platform in the name of a wheel.

@pytest.mark.parametrize(
    ("python", "system", "target", "machine", "expected"),
    [
        ("linux-x86_64", "", None, "x86_64", "linux_x86_64"),
        ("linux-aarch64", "", None, "aarch64", "linux_aarch64"),
        ("macosx-11.0-arm64", "15.6.1", "15.0", "arm64", "macosx_15_0_arm64"),
        ("macosx-10.9-universal2", "14.2", None, "arm64", "macosx_14_0_arm64"),
        ("macosx-10.9-universal2", "14.2", "11", "arm64", "macosx_11_0_arm64"),
        ("macosx-10.9-universal2", "13.1", "10.13", "x86_64", "macosx_10_13_x86_64"),
    ],
)
def test_a_wheel_is_named_for_what_the_compiler_builds(monkeypatch, python, system, target, machine, expected):
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    monkeypatch.setattr(sysconfig, "get_platform", lambda: python)
    monkeypatch.setattr(platform, "mac_ver", lambda: (system, ("", "", ""), machine))
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.delenv("MACOSX_DEPLOYMENT_TARGET", raising=False)
    if target:
        monkeypatch.setenv("MACOSX_DEPLOYMENT_TARGET", target)
    assert hook.wheel_platform() == expected
