"""The cloud: particles in three dimensions that can be turned, with halos in colour, before and after compression.

`scene.py` decides what is shown, in 16 bits per coordinate; `fates.py` what has become of each halo; `part.py` and the
scripts `front/cloud*.js` show the scene with WebGL 2; `still.py` draws the same picture without it.
"""

from workbench.lab.cloud_view.fates import JOINED, LEFT, Fates, fates_of
from workbench.lab.cloud_view.part import Cloud, CloudPart
from workbench.lab.cloud_view.scene import Frame, Scene, scene_of
from workbench.lab.cloud_view.state import CloudState
from workbench.lab.cloud_view.still import still

__all__ = ["JOINED", "LEFT", "Cloud", "CloudPart", "CloudState", "Fates", "Frame", "Scene", "fates_of", "scene_of", "still"]
