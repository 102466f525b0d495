"""The parts of `benchmarks/gpu.py`: what is compared, what is measured, and how it is reported.

They run from a bare checkout, so the checkout comes first among the places that Python imports from.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
