"""How `make app` serves the panels: to this machine, without their code, and with nothing fetched from elsewhere.

Voilà's pages, and the plots in them, ask other servers for style sheets that they can do without. So browsers are told to
ask nobody but this one. It also answers to any host name, though a page from elsewhere may reach this machine by a name of
its own; here it answers to this machine's only.
"""

import json
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[1]
ONLY_THIS_SERVER = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'self'"


def opens_a_panel(cell: dict[str, Any]) -> bool:
    """Whether this is code that calls a panel."""
    return cell["cell_type"] == "code" and "wb.lab." in "".join(cell["source"])


def has_a_panel(notebook: Path) -> bool:
    """Whether it is worth showing: other notebooks make no sense without their code."""
    return any(map(opens_a_panel, json.loads(notebook.read_text(encoding="utf-8"))["cells"]))


def up_to_the_panel(request: object, notebook: Any, cwd: str) -> Any:
    """The notebook without what follows its first panel: code that moves the panel about, and in the end closes it."""
    first = next((place for place, cell in enumerate(notebook.cells) if opens_a_panel(cell)), len(notebook.cells))
    notebook.cells = notebook.cells[: first + 1]
    return notebook


c = get_config()   # noqa: F821 (Voilà provides it)
c.Voila.ip = "127.0.0.1"
c.Voila.tornado_settings = {"headers": {"Content-Security-Policy": ONLY_THIS_SERVER}, "allow_remote_access": False}
c.VoilaConfiguration.prelaunch_hook = up_to_the_panel
c.VoilaConfiguration.strip_sources = True
c.VoilaConfiguration.show_margins = True
c.VoilaConfiguration.classic_tree = True
c.ContentsManager.hide_globs = [".*", *(path.name for path in NOTEBOOKS.glob("*.ipynb") if not has_a_panel(path))]
