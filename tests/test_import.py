"""`import workbench` is light, and offers exactly the names that it says."""

import json
import subprocess
import sys
from types import ModuleType

import workbench

HEAVY = "cupy dask distributed h5py holoviews matplotlib MDAnalysis netCDF4 pandas scipy torch zarr".split()


def test_importing_loads_nothing_heavy():
    program = "import json, sys, workbench; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    fresh = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = json.loads(fresh.stdout)
    assert "numpy" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_panels_open_before_the_library_for_charts_is_there():
    program = "import sys, workbench.lab; print(sorted({'holoviews', 'bokeh', 'pandas'} & set(sys.modules)))"
    fresh = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == "[]"


def test_who_imports_holoviews_first_makes_charts_at_once():
    program = "import holoviews, workbench.lab; print(holoviews.Ellipse(0, 0, 1).opts(line_width=2).label or 'made')"
    fresh = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert fresh.stdout.strip() == "made"


def test_public_names_are_what_is_defined():
    listed = set(workbench.__all__)
    public = {name: value for name, value in vars(workbench).items() if not name.startswith("_")}
    defined = {name for name, value in public.items() if not isinstance(value, ModuleType)}
    assert len(listed) == len(workbench.__all__), "a name stands twice in __all__"
    assert [name for name in sorted(listed) if not hasattr(workbench, name)] == [], "missing: named in __all__, not defined"
    assert sorted(defined - listed) == [], "extra: defined, not named in __all__"
