"""The scripts and style sheets for the browser, which are sent once for all widgets of a kernel.

They are plain ES modules in `front/`. The browser links them (`front/loader.js`), so nothing is built, and no module sees
the names of another. Given a path instead of text, anywidget would watch the file and therefore keep every widget and its
content alive.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import ipywidgets as widgets
import traitlets

from workbench.charts.ticks import IN_BROWSER

FOLDER = Path(__file__).parent / "front"
LOADER = "loader.js"


@functools.cache
def loader() -> str:
    """The script of each widget: it loads the modules."""
    return (FOLDER / LOADER).read_text(encoding="utf-8")


@functools.cache
def modules() -> dict[str, str]:
    """The modules by the names of their files.

    >>> "export" in modules()["page.js"]
    True
    """
    paths = [IN_BROWSER, *(path for path in sorted(FOLDER.glob("*.js")) if path.name != LOADER)]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


@functools.cache
def style() -> str:
    """All style sheets as one."""
    return "".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.css")))


class FrontEnd(widgets.Widget):   # type: ignore[misc]
    """Scripts and style sheets in the browser's memory, as an invisible widget; BokehJS once there is a chart."""

    _model_name = traitlets.Unicode("WidgetModel").tag(sync=True)
    _model_module = traitlets.Unicode("@jupyter-widgets/base").tag(sync=True)
    _model_module_version = traitlets.Unicode("2.0.0").tag(sync=True)
    version = traitlets.Unicode().tag(sync=True)   # one page may show the widgets of several kernels
    modules = traitlets.Dict().tag(sync=True)
    style = traitlets.Unicode().tag(sync=True)
    bokeh_version = traitlets.Unicode("").tag(sync=True)
    bokeh = traitlets.Unicode("").tag(sync=True)

    def __init__(self) -> None:
        version = hashlib.sha256("".join([*modules().values(), style()]).encode()).hexdigest()[:16]
        super().__init__(version=version, modules=modules(), style=style())

    def add_bokeh(self) -> None:
        """Send BokehJS, unless that was done."""
        if not self.bokeh:
            import bokeh

            source = Path(bokeh.__file__).parent / "server/static/js/bokeh.min.js"
            with self.hold_sync():
                self.bokeh_version, self.bokeh = bokeh.__version__, source.read_text(encoding="utf-8")


def front_end() -> FrontEnd:
    """What all widgets of a kernel share; a new one if it was closed.

    >>> front_end() is front_end()
    True
    """
    global _shared
    if _shared is None or _shared.comm is None:
        _shared = FrontEnd()
    return _shared


_shared: FrontEnd | None = None
