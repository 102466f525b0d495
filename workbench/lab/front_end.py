"""The scripts and style sheets for the browser, read from the files beside this one.

Given a path instead of text, anywidget would watch the file and therefore keep every widget and its content alive. A widget
has one script, so modules that it imports are put before it, each once. This is no bundler: modules share their names,
import by name from files beside them, and export only at the beginning of a line.
"""

from __future__ import annotations

import re
from pathlib import Path

from workbench.errors import WorkbenchError

IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)
NAME = re.compile(r"^(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)


def front_end(name: str) -> str:
    """The text of a script, with the modules that it imports, or of a style sheet.

    >>> "export default" in front_end("canvas.js")
    True
    """
    modules = _with_imports(name, {})
    text = "".join(modules.values())
    names = NAME.findall(text) if len(modules) > 1 else []
    if twice := {found for found in names if names.count(found) > 1}:
        raise WorkbenchError(f"modules joined into {name} must not share names; got {', '.join(sorted(twice))} twice")
    return text


def widget_script(*names: str) -> str:
    """The script of a widget, in one or several files, which hears Python even if it loads slowly: see `listening.js`.

    >>> widget_script("chart.js").count("export default")
    1
    """
    return "\n".join(map(front_end, names)).replace("export default", "const widget =") + front_end("listening.js")


def _with_imports(name: str, modules: dict[str, str]) -> dict[str, str]:
    """The module and those that it imports, each after what it imports."""
    if name not in modules:
        text = (Path(__file__).parent / name).read_text(encoding="utf-8")
        imported = IMPORT.findall(text)
        for other in imported:
            _with_imports(other, modules)
        modules[name] = EXPORT.sub("", IMPORT.sub("", text))
    return modules
