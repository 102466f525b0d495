"""What several tests need: where the real data are, and a GPU when there is one."""

import functools
import gc
import os
import re
import signal
import sys
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from hypothesis import is_hypothesis_test, settings

import fake_cupy
from combinations import evenly_spread, with_each_part
from workbench import backend
from workbench.device_code import CACHE
from workbench.errors import WorkbenchError

# No deadline: a slow machine is not a wrong result. Fewer examples than usual, as there are many tests, and in the ordinary
# run a third of them (share_random_examples). CI tries the same
# examples each time, people try new ones.
settings.register_profile("workbench", deadline=None, max_examples=20, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("workbench")

# Whoever is started in the background ignores Ctrl-C, and so would every program that these tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]
# Folders whose files share a server, results or a cluster, and what only those of their files have that use it.
SHARING = {
    "tests/browser/": "", "tests/lab/limits_panel/": "",
    "tests/subdomains/": r"^def .*\b(client|cluster)\b|getfixturevalue\(.client.\)",
}
SPREAD = ("tests/device_code/test_kernels.py", "tests/test_nvrtc.py")   # whose tests share nothing and take long
collect_ignore = ["fake_card"]   # collected for doctests, it would stay imported as CuPy


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real files with known answers, beside the checkout; it is too large to be part of it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the folder of real data is not there: {folder}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def written_without_waiting() -> Iterator[None]:
    """What tests write need not survive a loss of power, and each wait for the disk takes milliseconds."""
    with mock.patch.object(os, "fsync", os.fstat):
        yield


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The stand-in for CuPy in its place, with nothing compiled or counted yet."""
    fake = fake_cupy.module()
    monkeypatch.setenv(CACHE, str(tmp_path_factory.mktemp("kernel_cache")))
    monkeypatch.setitem(sys.modules, "cupy", fake)
    fake_cupy.copied_to_host.clear()
    fake_cupy.counted.clear()
    fake_cupy.Function.launches.clear()
    forget_compiled()
    yield fake
    forget_compiled()


def forget_compiled() -> None:
    backend._device_function.cache_clear()
    backend._device_module.cache_clear()


@functools.cache
def why_no_gpu() -> str | None:
    try:
        backend.gpu()
    except WorkbenchError as error:
        return str(error)
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
        pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)   # before those that are not asked for are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is long by its parameters or repeats with other random numbers is left to `make test-long`; then the order."""
    mark_long_parameters(items)
    share_random_examples(items, everything="not long" not in config.getoption("markexpr"))
    put_in_order(items)


def mark_long_parameters(items: list[pytest.Item]) -> None:
    """Mark as `long` what `few` and `long_with` leave to it (pyproject.toml says what these mean)."""
    groups: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and not item.get_closest_marker("long"):
            groups.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for group in groups.values():
        if with_ids := group[0].get_closest_marker("long_with"):
            mark_long(item for item in group if item.callspec.id in with_ids.args)
        if few := group[0].get_closest_marker("few"):
            ids = [item.callspec.id for item in group]
            usual = evenly_spread(ids, *few.args) if few.args else with_each_part(ids)
            mark_long(item for item in group if item.callspec.id not in usual)


def mark_long(items: Iterable[pytest.Item]) -> None:
    for item in items:
        item.add_marker("long")


def share_random_examples(items: list[pytest.Item], everything: bool) -> None:
    """A third of the random examples each time; all of them, of all tests that have some, in the long run."""
    for item in items:
        function = getattr(item, "obj", None)
        if is_hypothesis_test(function):
            if everything:
                item.add_marker("long")
            elif not hasattr(function, "all_examples"):
                chosen = function._hypothesis_internal_use_settings
                function.all_examples = chosen.max_examples
                function._hypothesis_internal_use_settings = settings(chosen, max_examples=-(-chosen.max_examples // 3))


def put_in_order(items: list[pytest.Item]) -> None:
    """Folders that stay whole and the longest files first: started last, one would run alone while other cores are idle."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: ([shared_by(item.nodeid) != folder for folder in SHARING], item.path not in slow))


def shared_by(nodeid: str) -> str | None:
    """The folder whose files share what the file of a test uses."""
    return _shared_by(nodeid.partition("::")[0])


@functools.cache
def _shared_by(path: str) -> str | None:
    folder = next((folder for folder in SHARING if path.startswith(folder)), None)
    return folder if folder and re.search(SHARING[folder], (ROOT / path).read_text(), re.MULTILINE) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Leave out of garbage collection what stays to the end: with thousands of tests, each takes a second otherwise."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files stay whole but for a few, and so do those of a folder that share what each process would start."""
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrFolder(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(SPREAD):
                return nodeid
            return shared_by(nodeid) or super()._split_scope(nodeid)

    return ByFileOrFolder(config, log) if config.getvalue("dist") == "loadfile" else None
