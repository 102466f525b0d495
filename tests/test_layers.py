"""Imports point down only, and what is heavy or special has one home. The rules stand here; the code must follow."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from conftest import ROOT

# From the bottom up. A module imports what stands below it, and its neighbours as long as that makes no circle.
# `__init__` is `import workbench` itself: it may reach for what stands above it when that is used, not before.
LAYERS = (
    {"errors", "arguments", "children", "declarations", "device_code", "host_library", "backend", "json_values", "memory",
     "ordering", "progress", "rounding", "slabs", "text_files", "web_library"},
    {"data", "charts"},
    {"run"},
    {"codecs"},
    {"guarantees"},
    {"clusters"},
    {"subdomains"},
    {"metrics"},
    {"archive"},
    {"auditing", "bounds", "limits", "propagation"},
    {"distributed", "xarray"},
    {"__init__"},
    {"cli", "lab", "teaching", "__main__"},
)
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}

# Who may import these at all.
HOMES = {
    "cupy": {"backend"},
    "ctypes": {"backend"},
    "dask": {"run"},
    "distributed": {"run"},
    "bokeh": {"charts", "lab"},
    "holoviews": {"charts", "lab"},
    "ipywidgets": {"lab"},
}

# Whoever opens a file by name opens archives, too: then, not before, readers import the layer that registers them.
WHEN_USED = {("data", "archive")}

# What the layers up to clusters may only import inside a function, so that the core starts in well under a second.
HEAVY = {"dask", "h5py", "holoviews", "scipy", "zarr"}
LIGHT_LAYERS = HEIGHT["clusters"]


@dataclass(frozen=True)
class Import:
    """One name that a file imports: `workbench.data.field`, `scipy.spatial`."""

    file: Path
    line: int
    name: str
    when_loaded: bool   # rather than inside a function, or for the type checker only

    @property
    def top(self) -> str:
        return self.name.split(".")[0]

    def __str__(self) -> str:
        return f"{self.file.as_posix()}:{self.line} imports {self.name}"


def imports_of(package: Path) -> Iterator[Import]:
    """Every import in a package, wherever in a file it stands."""
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package.parent)
        tree = ast.parse(path.read_text())
        late = {id(node) for inner in ast.walk(tree) if is_late(inner) for node in ast.walk(inner)}
        for node in ast.walk(tree):
            for name in names_in(node, file, package):
                yield Import(file, node.lineno, name, id(node) not in late)


def is_late(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def names_in(node: ast.AST, file: Path, package: Path) -> Iterator[str]:
    """The absolute names that one statement imports: of `from a import b`, `a.b` when that is a module, else `a`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        start = ".".join(file.parts[: len(file.parts) - node.level]) if node.level else ""
        origin = ".".join(part for part in (start, node.module) if part)
        for alias in node.names:
            module = package.parent.joinpath(*origin.split("."), alias.name)
            yield f"{origin}.{alias.name}" if module.is_dir() or module.with_suffix(".py").is_file() else origin
    elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}:
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


def module_of(file: Path) -> str:
    """The part of the package that a file belongs to: `data` for workbench/data/field.py."""
    return file.parts[1].removesuffix(".py")


def violations(package: Path) -> list[str]:
    found = list(imports_of(package))
    within = [i for i in found if i.top == package.name]
    return [
        *sorted({f"{module_of(i.file)} has no layer: give it one in LAYERS" for i in found if no_layer(i.file)}),
        *filter(None, map(points_up, within)),
        *circles(within),
        *filter(None, map(strays, (i for i in found if i.top != package.name))),
        *filter(None, map(is_heavy, found)),
    ]


def no_layer(file: Path) -> bool:
    return module_of(file) not in HEIGHT


def points_up(found: Import) -> str | None:
    here, there = module_of(found.file), target_of(found)
    if (here == "__init__" or (here, there) in WHEN_USED) and not found.when_loaded:
        return None
    if HEIGHT.get(there, len(LAYERS)) <= HEIGHT.get(here, len(LAYERS)):
        return None
    instead = ": import the module that defines the name" if there == "__init__" else ""
    return f"{found}, which stands above {here}{instead}"


def target_of(found: Import) -> str:
    """The part of the package that is imported; `__init__` for the package itself."""
    return found.name.split(".")[1] if "." in found.name else "__init__"


def circles(within: list[Import]) -> list[str]:
    """Of neighbours in a layer, whenever they import; and of files, while they are loaded."""
    neighbours: dict[str, set[str]] = {}
    files: dict[str, set[str]] = {}
    for found in within:
        here, there = module_of(found.file), target_of(found)
        if here != there and HEIGHT.get(here) == HEIGHT.get(there):
            neighbours.setdefault(here, set()).add(there)
        if found.when_loaded:
            files.setdefault(name_of(found.file), set()).add(found.name)
    return [*circle_in(neighbours), *circle_in(files)]


def name_of(file: Path) -> str:
    """The name by which a file is imported."""
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [f"imports go in a circle: {' -> '.join(reversed(error.args[1]))}"]
    return []


def strays(found: Import) -> str | None:
    homes = HOMES.get(found.top, {module_of(found.file)})
    return None if module_of(found.file) in homes else f"{found}, which only {' and '.join(sorted(homes))} may import"


def is_heavy(found: Import) -> str | None:
    light = module_of(found.file) == "__init__" or HEIGHT.get(module_of(found.file), 0) <= LIGHT_LAYERS
    if light and found.when_loaded and found.top in HEAVY:
        return f"{found} when it is loaded: move the import into the function"
    return None


def test_imports_point_down_and_stay_at_home():
    assert violations(ROOT / "workbench") == []


WRONG = [
    ("data/field.py", "from bench.codecs import get", "data/field.py:1 imports bench.codecs, which stands above data"),
    ("data/field.py", "from bench import codecs", "imports bench.codecs, which stands above data"),
    ("data/field.py", "import bench.archive", "imports bench.archive, which stands above data"),
    ("data/field.py", "def f():\n    import bench.lab.panel", "field.py:2 imports bench.lab.panel, which stands"),
    ("data/deep/er.py", "from ... import lab", "imports bench.lab, which stands above data"),
    ("data/deep/er.py", "from ...lab import panel", "imports bench.lab.panel, which stands above data"),
    ("clusters/__init__.py", "from ..archive import Archive", "imports bench.archive, which stands above clusters"),
    ("ordering.py", "from .data import Field", "imports bench.data, which stands above ordering"),
    ("data/field.py", "import bench as wb", "imports bench, which stands above data: import the module"),
    ("data/field.py", "from bench import Particles", "imports bench, which stands above data: import the module"),
    ("__init__.py", "from bench.lab import panel", "imports bench.lab.panel, which stands above __init__"),
    ("data/field.py", "if TYPE_CHECKING:\n    from bench.bounds import A", "bench.bounds, which stands above data"),
    ("data/field.py", "importlib.import_module('bench.lab')", "imports bench.lab, which stands above data"),
    ("extras.py", "import numpy", "extras has no layer"),
    ("backend.py", "from bench.ordering import sort", "circle: backend -> ordering -> backend"),
    ("lab/state.py", "from bench.lab import panel", "circle: bench.lab.panel -> bench.lab.state -> bench.lab.panel"),
    ("data/field.py", "class A:\n    from bench.data import B", "circle: bench.data -> bench.data.field -> bench.data"),
    ("ordering.py", "import cupy", "imports cupy, which only backend may import"),
    ("metrics.py", "def f():\n    from ctypes import c_int", "imports ctypes, which only backend may import"),
    ("archive.py", "import dask.array as da", "imports dask.array, which only run may import"),
    ("bounds.py", "import holoviews as hv", "imports holoviews, which only charts and lab may import"),
    ("data/field.py", "import scipy.fft", "imports scipy.fft when it is loaded"),
    ("data/field.py", "try:\n    import h5py\nexcept ImportError:\n    pass", "imports h5py when it is loaded"),
    ("__init__.py", "from scipy import fft", "imports scipy when it is loaded"),
]


@pytest.mark.parametrize(("file", "text", "complaint"), WRONG)
def test_a_wrong_import_is_named(tmp_path, file, text, complaint):
    package = small_package(tmp_path / "bench")
    path = package / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert [v for v in violations(package) if complaint in v], violations(package)


def test_a_right_package_has_no_violations(tmp_path):
    assert violations(small_package(tmp_path / "bench")) == []


def small_package(package: Path) -> Path:
    files = {
        "__init__.py": "from bench.data import Field\ndef __getattr__(name):\n    from bench import lab",
        "errors.py": "",
        "backend.py": "import ctypes\nfrom bench import errors\ndef gpu():\n    import cupy",
        "ordering.py": "from bench import backend",
        "data/__init__.py": "from bench.data.field import Field",
        "data/field.py": "def read():\n    import h5py, bench.archive\n    from ..errors import WorkbenchError",
        "clusters/__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import scipy",
        "codecs.py": "from bench import data",
        "guarantees.py": "from bench import codecs",
        "metrics.py": "import scipy",
        "archive.py": "from bench import codecs",
        "bounds.py": "",
        "run/__init__.py": "def f():\n    import dask\n    from distributed import Client",
        "lab/__init__.py": "import holoviews",
        "lab/panel.py": "import bench as wb\nfrom bench.lab import state",
        "lab/state.py": "if TYPE_CHECKING:\n    from bench.lab.panel import A\ndef f():\n    from bench.lab import panel",
    }
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return package
