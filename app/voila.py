"""How `make app` serves the panels: to this machine, without their code, and with nothing fetched from elsewhere.

`pages/` has one small notebook for each panel, with text for people who see no cells. Its metadata say what the front page
shows of it. `voila/templates/` is where Voilà finds the templates of the front page and of the pages.

Voilà's pages, and the plots in them, ask other servers for style sheets that they can do without. So browsers are told to
ask nobody but this one. It also answers to any host name, though a page from elsewhere may reach this machine by a name of
its own; here it answers to this machine's only.
"""

import base64
import json
import os
from pathlib import Path
from typing import Any

APP = Path(__file__).resolve().parent
PICTURES = APP.parent / "docs" / "images"
ONLY_THIS_SERVER = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'self'"


def cards() -> list[dict[str, str]]:
    """What the front page shows of each page, in order."""
    pages = [(path, json.loads(path.read_text(encoding="utf-8"))["metadata"]) for path in (APP / "pages").glob("*.ipynb")]
    pages.sort(key=lambda page: page[1]["lossbench"]["place"])
    return [
        {"path": path.name, "title": metadata["title"], "about": metadata["lossbench"]["about"],
         "data": metadata["lossbench"]["data"], "picture": picture(metadata["lossbench"]["picture"])}
        for path, metadata in pages
    ]


def picture(name: str) -> str:
    """A picture of the documentation as a part of the page: the server hands out no files."""
    return "data:image/png;base64," + base64.b64encode((PICTURES / name).read_bytes()).decode()


def add_cards(page_config: dict[str, Any], *, notebook_path: str, **about: object) -> dict[str, Any]:
    """Give the cards to the front page."""
    if notebook_path == "":
        page_config["cards"] = cards()
    return page_config


os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, (str(APP), os.environ.get("JUPYTER_PATH"))))

c = get_config()   # noqa: F821 (Voilà provides it)
c.Voila.ip = "127.0.0.1"
c.Voila.auto_token = True   # in the address that is opened and printed: this machine may have other users
c.Voila.tornado_settings = {"headers": {"Content-Security-Policy": ONLY_THIS_SERVER}, "allow_remote_access": False}
c.VoilaConfiguration.page_config_hook = add_cards
c.VoilaConfiguration.strip_sources = True
c.VoilaConfiguration.template = "lossbench"
c.VoilaConfiguration.classic_tree = True
c.VoilaConfiguration.file_allowlist = []
