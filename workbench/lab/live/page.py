"""One HTML file with the kernels, data and scripts: it needs no server, and asks none.

Its scripts are plain ES modules, those of `front/` beside this file and the pictures of the panels. An import map names
them, with their texts in it, so that a file that is opened from a disk may import them, too. A Content-Security-Policy
forbids every request.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench import web_library
from workbench.lab import colours, front_end, glossary
from workbench.lab.canvas import WORDS

FRONT = Path(__file__).parent / "front"
TYPES = {"float32": "float", "float64": "double", "int32": "i32"}
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)
FIRST = "live.js"

_IMPORT = re.compile(r'\bfrom "\./([\w.]+)"')
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{title}</title><style>{style}</style>
<script type="importmap">{modules}</script></head><body><main>
<header><h1>{title}</h1><button id="theme" class="wb-tool" type="button">light or dark</button></header><p>{about}</p>
<div id="live"></div><noscript><p>This page computes in the browser, which has scripts switched off.</p></noscript></main>
<script type="application/json" id="given">{given}</script><script type="module">import "{first}";</script></body></html>
"""


def page(examples: Iterable[Mapping[str, Any]], title: str, about: str) -> str:
    """The page that shows these examples, each a mapping with its `kind`; `about` is HTML.

    >>> text = page([], "Nothing", "")
    >>> "https:" in text or "http://" in text.replace("http://www.w3.org/", "")   # names of namespaces are no addresses
    False
    """
    given = {
        "examples": [_sent(example) for example in examples], "declared": web_library.declarations(),
        "kernels": base64.b64encode(web_library.MODULE.read_bytes()).decode(), "common": _common(),
    }
    return _PAGE.format(
        policy=POLICY, title=html.escape(title), about=about, style=_style(), modules=_inline({"imports": _modules()}),
        given=_inline(given), first=f"lossbench/{FIRST}",
    )


def _sent(value: Any) -> Any:
    """A value with its arrays as base64."""
    if isinstance(value, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {"type": TYPES[value.dtype.name], "data": data}
    if isinstance(value, Mapping):
        return {name: _sent(each) for name, each in value.items()}
    return [_sent(each) for each in value] if isinstance(value, list) else value


def _common() -> dict[str, Any]:
    """What every canvas needs: the tables of colours and words; places for pictures are made in the page."""
    tables = {name: list(table) for name, table in colours.tables().items()}
    return {"tables": tables, "words": {word: glossary.meaning(word) for word in WORDS}}


@functools.cache
def _modules() -> dict[str, str]:
    """The modules that the first one imports, directly or not, by name, as addresses that hold their texts."""
    texts = front_end.modules() | {path.name: path.read_text(encoding="utf-8") for path in FRONT.glob("*.js")}
    needed, waiting = {}, [FIRST]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = _IMPORT.sub(r'from "lossbench/\1"', texts[name])
            waiting += _IMPORT.findall(texts[name])
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in sorted(needed.items())}
    return {f"lossbench/{name}": f"data:text/javascript;charset=utf-8;base64,{text}" for name, text in encoded.items()}


def _style() -> str:
    return front_end.style() + (FRONT / "live.css").read_text(encoding="utf-8")


def _inline(value: Any) -> str:
    """JSON that may stand in a script element."""
    return json.dumps(value).replace("<", "\\u003c")
