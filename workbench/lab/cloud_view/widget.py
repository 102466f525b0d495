"""The widget of a cloud: the scene as a description, its points in pieces on request, and what the reader does with it.

Points are asked for by the browser, one piece at a time: the first is small, so that a picture appears at once, and nothing
is sent to a page that is gone. The browser keeps them, turns them, and calls Python only when a halo is picked.
"""

from __future__ import annotations

import html
import itertools
import os
import secrets
from typing import Any

import anywidget
import ipywidgets as widgets
import numpy as np
import traitlets

from workbench.lab import cells, colours
from workbench.lab.cloud_view.fates import STATUS
from workbench.lab.cloud_view.look import Colouring, look
from workbench.lab.cloud_view.scene import STEPS, Scene
from workbench.lab.cloud_view.still import data_url, png, still
from workbench.lab.description import STATIC
from workbench.lab.front_end import FrontEnd, front_end, loader
from workbench.lab.glossary import meaning

FIRST_PIECE, LARGEST_PIECE = 2**16, 2**19   # points; each piece is twice the one before
STILL = 420, 560                            # pixels
TERMS = "changed members", "colour by", "coloured halos", "depth cue", "opacity", "point size"   # of the controls

_scenes = itertools.count(1)


class Cloud(anywidget.AnyWidget):
    """A cloud of particles. `picked` is the halo clicked last: its `number`, its `label`, and the `side`.

    >>> from workbench.clusters import friends_of_friends
    >>> from workbench.data import Particles
    >>> from workbench.lab.cloud_view import fates_of, scene_of
    >>> particles = Particles(np.random.default_rng(0).random((500, 3)), box=1.0)
    >>> cloud = Cloud(scene_of(particles, fates_of(particles, friends_of_friends(particles))))
    >>> cloud.colouring, cloud.scene["count"]
    ('halo', 500)
    >>> cloud.close()
    """

    _esm = loader()
    draws = traitlets.Unicode("cloud").tag(sync=True)
    own_id = traitlets.Unicode().tag(sync=True)
    front = traitlets.Instance(FrontEnd).tag(sync=True, **widgets.widget_serialization)
    look = traitlets.Dict().tag(sync=True)
    meanings = traitlets.Dict().tag(sync=True)     # the tooltips
    densities = traitlets.Bytes().tag(sync=True)   # the colour map of densities
    scene = traitlets.Dict({}).tag(sync=True)
    colouring = traitlets.Enum(["halo", "status", "density"], "halo").tag(sync=True)
    coloured = traitlets.Int(49).tag(sync=True)   # so many of the largest halos have a hue
    point_size = traitlets.Float(1.0).tag(sync=True)   # relative to what suits the number of points
    opacity = traitlets.Float(1.0).tag(sync=True)      # of a point, likewise
    box = traitlets.Bool(True).tag(sync=True)
    depth_cue = traitlets.Bool(True).tag(sync=True)
    changes = traitlets.Bool(True).tag(sync=True)      # members that left or joined a halo are marked
    rotating = traitlets.Bool(False).tag(sync=True)
    tall = traitlets.Int(480).tag(sync=True)           # pixels
    camera: traitlets.List = traitlets.List([]).tag(sync=True)   # yaw, pitch, distance, target x y z; empty: the beginning
    picked = traitlets.Dict({}).tag(sync=True)

    def __init__(self, scene: Scene | None = None, **traits: Any) -> None:
        meanings = {term: meaning(term) for term in TERMS}
        identity = secrets.token_hex(16)
        super().__init__(
            model_id=identity, own_id=identity, front=front_end(), look=look(), meanings=meanings,
            densities=colours.table("density").tobytes(), **traits,
        )
        self._scene: Scene | None = None
        self.on_msg(self._asked)
        if scene is not None:
            self.show(scene)

    def show(self, scene: Scene) -> None:
        """Show another scene; the same object again costs nothing."""
        if scene is not self._scene:
            self._scene = scene
            self.set_trait("scene", described(scene, next(_scenes)))

    def close(self) -> None:
        """Remove the cloud from the page, which frees the browser's memory, and release the points."""
        cells.forget(self)
        self._scene = None
        self.layout.close()
        super().close()

    def stills(self) -> list[np.ndarray]:
        """The picture of each side at the beginning, without a browser: (height, width, 3) bytes."""
        if self._scene is None:
            return []
        sides = range(len(self._scene.points))
        colouring: Colouring = self.colouring   # type: ignore[assignment]   # the trait allows no others
        return [still(self._scene, side, STILL, colouring, self.coloured) for side in sides]

    def _asked(self, _: Any, content: dict[str, Any], buffers: list[Any]) -> None:
        """A view asks for the next points of the scene that it shows, or for still pictures if it cannot draw."""
        if self._scene is None or content.get("scene") != self.scene["id"]:
            return   # the view learns of the newer scene by its description
        if content.get("ask") == "points":
            start = int(content["from"])
            piece = slice(start, start + min(max(start, FIRST_PIECE), LARGEST_PIECE))
            sides = [side[piece].astype("<u2") for side in self._scene.points]
            self.send({"scene": self.scene["id"], "from": start, "count": len(sides[0])}, [side.data for side in sides])
        elif content.get("ask") == "stills":
            self.send({"scene": self.scene["id"], "stills": True}, [png(picture) for picture in self.stills()])

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if os.environ.get(STATIC):
            return {"text/html": self._html(), "text/plain": repr(self)}
        return super()._repr_mimebundle_(**kwargs)

    def _html(self) -> str:
        titles = self._scene.titles if self._scene is not None else ()
        figures = "".join(
            f"<figure style='margin: 0; flex: 1 1 240px'><figcaption>{html.escape(title)}</figcaption>"
            f"<img style='width: 100%' alt='cloud of particles: {html.escape(title)}' src='{data_url(picture)}'></figure>"
            for title, picture in zip(titles, self.stills(), strict=True)
        )
        return f"<div style='display: flex; flex-wrap: wrap; gap: 10px'>{figures}</div>"

    def __repr__(self) -> str:
        scene = self._scene
        return "Cloud()" if scene is None else f"Cloud({scene.total:,} particles, {', '.join(scene.titles)})"


def described(scene: Scene, identity: int) -> dict[str, Any]:
    """A scene without its points, for the browser."""
    frame = scene.frame
    return {
        "id": identity, "titles": list(scene.titles), "count": len(scene), "total": scene.total, "unit": scene.unit,
        "lower": list(frame.lower), "lengths": list(frame.lengths), "exact": frame.exact, "steps": STEPS,
        "halo": scene.halo or 0, "words": list(STATUS), "halos": _halos(scene),
    }


def _halos(scene: Scene) -> dict[str, bytes]:
    """The columns of the table of halos; centres and radii are in lengths of the longest axis of the frame."""
    fates, longest = scene.fates, max(scene.frame.lengths)
    columns = {
        "ranks": scene.ranks.astype("<i4"), "labels": fates.halos.labels.astype("<i4"),
        "members": fates.halos.members.astype("<i4"), "centres": (scene.centres / longest).astype("<f4"),
        "radii": (fates.halos.radii / longest).astype("<f4"),
    }
    if fates.status is not None and fates.sizes is not None:
        columns |= {"status": fates.status, "sizes": fates.sizes.astype("<i4")}
    return {name: column.tobytes() for name, column in columns.items()}
