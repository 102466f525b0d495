"""The cloud on a page: the scene is its content, and the points follow in pieces on request.

The first piece is small, so that a picture appears at once, and nothing is sent to a page that is gone. The browser keeps
the points, turns them, and calls Python only when a halo is picked.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Mapping
from typing import Any

import traitlets

from workbench.lab import cells, colours
from workbench.lab.choices import with_choices
from workbench.lab.cloud_view.fates import STATUS
from workbench.lab.cloud_view.scene import STEPS, Scene
from workbench.lab.cloud_view.state import SHADING, USUAL, CloudState
from workbench.lab.cloud_view.still import still
from workbench.lab.description import STATIC, Picture, Shown
from workbench.lab.glossary import meaning
from workbench.lab.last_picture import LastPicture, images, static_bundle
from workbench.lab.page import Page
from workbench.lab.part import Part
from workbench.lab.turns import in_turn

FIRST_PIECE, LARGEST_PIECE = 2**16, 2**19   # points; each piece is twice the one before
TERMS = "changed members", "colour by", "coloured halos", "depth cue", "opacity", "point size"   # of the controls
HEIGHT = 480   # pixels
KEY = "cloud"  # of the part on a page of its own

_scenes = itertools.count(1)


class CloudPart(Part):
    """A cloud; without a scene, the browser holds nothing. `pick` gets the number of a halo that was clicked, and the side.

    >>> CloudPart(print).content["state"]["colouring"]
    'halo'
    """

    kind = "cloud"

    def __init__(self, pick: Callable[[int, int], object], state: CloudState = USUAL, **content: Any) -> None:
        self.scene: Scene | None = None
        self._pick, self._state = pick, state
        super().__init__(
            shading=SHADING, meanings={term: meaning(term) for term in TERMS}, densities=colours.table("density").tobytes(),
            state=dataclasses.asdict(state), scene={}, **content,
        )

    @property
    def state(self) -> CloudState:
        """What the reader sees."""
        chosen = {} if self.page is None else self.page.settings.get(self.key, {})
        return dataclasses.replace(self._state, **chosen)

    def show(self, scene: Scene | None) -> None:
        """Show another scene; the same object again costs nothing."""
        if scene is not self.scene:
            self.scene = scene
            self.set(scene={} if scene is None else described(scene, next(_scenes)))

    def label_of(self, number: int) -> int:
        """The label of the group of a halo."""
        assert self.scene is not None
        return int(self.scene.fates.halos.labels[number - 1])

    def stills(self) -> tuple[Picture, ...]:
        """The picture of each side as the reader sees it, without a browser."""
        scene, state = self.scene, self.state
        return () if scene is None else tuple(still(scene, side, state) for side in range(len(scene.points)))

    def heard(self, content: Mapping[str, Any]) -> None:
        """A view asks for the next points of its scene, or for a still picture if it cannot draw; or a halo was clicked."""
        identity = self.content["scene"].get("id")
        if self.scene is None or content.get("scene") != identity:
            return   # the view learns of the newer scene by its description
        match content.get("does"):
            case "points":
                start = int(content["from"])
                piece = slice(start, start + min(max(start, FIRST_PIECE), LARGEST_PIECE))
                sides = [side[piece].astype("<u2") for side in self.scene.points]
                self.tell({"scene": identity, "from": start, "count": len(sides[0])}, [side.tobytes() for side in sides])
            case "still":
                self.tell({"scene": identity, "html": images(self.stills())})
            case "pick":
                self._pick(int(content["number"]), int(content["side"]))


class Cloud(Page):
    """A cloud of particles as a widget. `picked` is the halo clicked last: its `number`, its `label`, and the `side`.

    >>> import numpy as np
    >>> from workbench.clusters import friends_of_friends
    >>> from workbench.data import Particles
    >>> from workbench.lab.cloud_view import fates_of, scene_of
    >>> particles = Particles(np.random.default_rng(0).random((500, 3)), box=1.0)
    >>> cloud = Cloud(scene_of(particles, fates_of(particles, friends_of_friends(particles))))
    >>> cloud.change(colouring="density", point_size=2)
    >>> cloud.state.colouring
    'density'
    >>> cloud.close()
    """

    picked = traitlets.Dict()

    def __init__(self, scene: Scene, state: CloudState = USUAL, height: int = HEIGHT) -> None:
        self._last_picture = LastPicture()
        self.part = CloudPart(self._pick, state, height=height, live=self._last_picture.live)
        self.part.show(scene)
        super().__init__({KEY: self.part}, draws="part")
        self.observe(lambda change: self._last_picture.follow(self._static), "settings")

    @property
    def scene(self) -> Scene:
        """What is shown."""
        assert self.part.scene is not None
        return self.part.scene

    @property
    def state(self) -> CloudState:
        """The choices, which the reader may have changed."""
        return self.part.state

    @in_turn
    def change(self, **choices: Any) -> None:
        """Change fields of the state."""
        with_choices(self.state, choices)   # which refuses others
        self.settings = {**self.settings, KEY: {**self.settings.get(KEY, {}), **choices}}

    def close(self) -> None:
        """Remove the cloud from the page, which frees the browser's memory, and release the points."""
        cells.forget(self)
        self._last_picture.close()
        self.part.scene = None
        super().close()

    def _pick(self, number: int, side: int) -> None:
        times = self.picked.get("times", 0) + 1
        self.picked = {"number": number, "label": self.part.label_of(number), "side": side, "times": times}

    def _static(self) -> dict[str, str]:
        return static_bundle("Cloud", self._subject, Shown(self.part.stills()), self._last_picture.key)

    def _ipython_display_(self) -> None:
        self._last_picture.display_beside(self.bundle() | {"text/plain": repr(self)}, self._static)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return self._static() | ({} if os.environ.get(STATIC) else self.bundle()) | {"text/plain": repr(self)}

    @property
    def _subject(self) -> str:
        scene = self.part.scene
        return "closed" if scene is None else f"{scene.total:,} particles, {', '.join(scene.titles)}"

    def __repr__(self) -> str:
        return f"Cloud({self._subject})"


def described(scene: Scene, identity: int) -> dict[str, Any]:
    """A scene without its points, for the browser; places and radii of halos are in lengths of the longest axis."""
    frame, fates, longest = scene.frame, scene.fates, max(scene.frame.lengths)
    halos = {
        "ranks": scene.ranks.astype("<i4"), "members": fates.halos.members.astype("<i4"),
        "centres": (scene.centres / longest).astype("<f4"), "radii": (fates.halos.radii / longest).astype("<f4"),
    }
    if fates.status is not None and fates.sizes is not None:
        halos |= {"status": fates.status, "sizes": fates.sizes.astype("<i4")}
    return {
        "id": identity, "titles": list(scene.titles), "count": len(scene), "total": scene.total, "unit": scene.unit,
        "lower": list(frame.lower), "lengths": list(frame.lengths), "exact": frame.exact, "steps": STEPS,
        "halo": scene.halo or 0, "words": list(STATUS), "halos": {name: column.tobytes() for name, column in halos.items()},
    }
