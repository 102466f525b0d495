"""HoloViews and Bokeh, loaded when the first chart is made: they take a second or two, and pictures need neither.

A view has them loaded in a thread of its own when its pictures are on their way, so that the panel answers meanwhile. Who
has imported HoloViews before this package makes charts of their own, which need Bokeh at once.
"""

from __future__ import annotations

import sys
import threading

from workbench.charts.to_holoviews import load

_loading = threading.Lock()


def begin_loading() -> None:
    """Load in a thread, unless that is done or under way.

    >>> begin_loading()
    >>> load().Curve([1, 4, 9]).kdims   # waits
    [Dimension('x')]
    """
    if load.cache_info().currsize == 0 and _loading.acquire(blocking=False):
        threading.Thread(target=_load_in_thread, name="lossbench charts", daemon=True).start()


def loading() -> bool:
    """Whether a thread is loading; a chart that is made now waits for it."""
    return _loading.locked()


def _load_in_thread() -> None:
    try:
        load()
    finally:
        _loading.release()


if "holoviews" in sys.modules:
    load()
