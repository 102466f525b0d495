"""How `make app` serves the panels: to this machine, without their code, and with nothing fetched from elsewhere.

`pages/` has one small notebook for each panel, with text for people who see no cells. Its metadata say what the front page
shows of it, with the drawing of its name in `pictures/`, which `pictures.py` makes. `voila/templates/` is where Voilà finds
the templates of the front page and of the pages.

Voilà's own pages ask other servers for style sheets that they can do without, and load every extension of JupyterLab that
is installed. These pages do neither, and browsers are told to ask nobody but this server. It also answers to any host name,
though a page from elsewhere may reach this machine by a name of its own; here it answers to this machine's only.
"""

import json
import os
import urllib.parse
from pathlib import Path
from typing import Any

APP = Path(__file__).resolve().parent
ONLY_THIS_SERVER = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; frame-ancestors 'self'"


def pages() -> list[dict[str, str]]:
    """The pages in order: their files, names, titles, and what the front page says of them."""
    found = [(path, json.loads(path.read_text(encoding="utf-8"))["metadata"]) for path in (APP / "pages").glob("*.ipynb")]
    found.sort(key=lambda page: page[1]["lossbench"]["place"])
    return [
        {"path": path.name, "name": metadata["title"].split(":")[0], "title": metadata["title"],
         "about": metadata["lossbench"]["about"], "data": metadata["lossbench"]["data"]}
        for path, metadata in found
    ]


def picture(page: str) -> str:
    """The picture of a page as a part of the front page: the server hands out no files."""
    drawing = (APP / "pictures" / page).with_suffix(".svg").read_text(encoding="utf-8")
    return "data:image/svg+xml," + urllib.parse.quote(drawing)


def add_pages(page_config: dict[str, Any], *, notebook_path: str, **about: object) -> dict[str, Any]:
    """Tell each page of all pages, and the front page what they look like."""
    page_config["pages"] = pages()
    if notebook_path == "":
        for page in page_config["pages"]:
            page["picture"] = picture(page["path"])
    return page_config


os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, (str(APP), os.environ.get("JUPYTER_PATH"))))

c = get_config()   # noqa: F821 (Voilà provides it)
c.Voila.ip = "127.0.0.1"
c.Voila.auto_token = True   # in the address that is opened and printed: this machine may have other users
c.Voila.tornado_settings = {"headers": {"Content-Security-Policy": ONLY_THIS_SERVER}, "allow_remote_access": False}
c.VoilaConfiguration.page_config_hook = add_pages
c.VoilaConfiguration.strip_sources = True
c.VoilaConfiguration.template = "lossbench"
c.VoilaConfiguration.classic_tree = True
c.VoilaConfiguration.file_allowlist = []
c.VoilaConfiguration.extension_allowlist = [   # what widgets need
    "anywidget", "@jupyter-widgets/jupyterlab-manager", "@voila-dashboards/widgets-manager8",
]
