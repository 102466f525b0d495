"""`import workbench` is light, and offers exactly the names that it says."""

import json
import subprocess
import sys
from types import ModuleType

import pytest

import workbench
from conftest import ROOT

HEAVY = "cupy dask distributed h5py holoviews matplotlib MDAnalysis netCDF4 pandas scipy torch zarr".split()


def loaded_by(program: str) -> set[str]:
    """The names of all modules that a new process has imported after a program."""
    program += "; import json, sys; print(json.dumps(list(sys.modules)))"
    return set(json.loads(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout))


def test_all_names_together_load_nothing_heavy():
    loaded = loaded_by("from workbench import *; compress, rate_distortion, propagation.Pipeline")
    assert {"numpy", "workbench.archive.compress", "workbench.limits.result"} <= loaded
    assert [name for name in HEAVY if name in loaded] == []


@pytest.mark.parametrize(("program", "most"), [
    ("import workbench", []),
    ("import workbench.codecs.isolation.process", ["charts", "codecs"]),
    ("import workbench.data.readers.other_process", ["data"]),
    ("import workbench as wb; wb.friends_of_friends", "charts clusters codecs data guarantees run subdomains".split()),
])
def test_a_process_loads_the_layers_that_it_uses(program, most):
    layers = {name.split(".")[1] for name in loaded_by(program) if name.startswith("workbench.")}
    assert sorted(layers & {path.name for path in (ROOT / "workbench").iterdir() if path.is_dir()}) == most


def test_panels_open_before_the_library_for_charts_is_there():
    program = "import sys, workbench.lab; print(sorted({'holoviews', 'bokeh', 'pandas'} & set(sys.modules)))"
    fresh = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == "[]"


def test_all_commands_have_their_help_where_panels_cannot_run(tmp_path):
    program = "import sys; sys.modules['ipywidgets'] = None; from workbench.cli import main; sys.exit(main({!r}))"

    def run(*arguments):
        command = [sys.executable, "-c", program.format(list(arguments))]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert run("completion", "bash").returncode == 0
    refused = run("page")
    assert (refused.returncode, refused.stderr) == (2, "workbench: pages need ipywidgets: pip install 'lossbench[lab]'\n")


@pytest.mark.long
def test_who_imports_holoviews_first_makes_charts_at_once():
    program = "import holoviews, workbench.lab; print(holoviews.Ellipse(0, 0, 1).opts(line_width=2).label or 'made')"
    fresh = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == "made"


def test_public_names_are_what_is_defined():
    listed = set(workbench.__all__)
    assert len(listed) == len(workbench.__all__), "a name stands twice in __all__"
    assert [name for name in sorted(listed) if not hasattr(workbench, name)] == [], "missing: named in __all__, not defined"
    public = {name: getattr(workbench, name) for name in dir(workbench) if not name.startswith("_")}
    defined = {name for name, value in public.items() if not isinstance(value, ModuleType)}
    assert sorted(defined - listed - {"Any", "TYPE_CHECKING"}) == [], "extra: defined, not named in __all__"


def test_a_missing_name_is_named():
    with pytest.raises(AttributeError, match="module 'workbench' has no attribute 'compres'"):
        _ = workbench.compres
