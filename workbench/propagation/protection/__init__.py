"""Protection against silent faults: checksums, learned ranges, guards, repetition.

Every protection returns what it found beside its result, as `Findings`.
"""

from workbench.propagation.protection.convolutions import protected_convolve
from workbench.propagation.protection.findings import Findings
from workbench.propagation.protection.guards import Finite, Guard, Range, learn_ranges
from workbench.propagation.protection.matrices import protected_matmul
from workbench.propagation.protection.shield import Shielded, Twice, protect

__all__ = [
    "Findings",
    "Finite",
    "Guard",
    "Range",
    "Shielded",
    "Twice",
    "learn_ranges",
    "protect",
    "protected_convolve",
    "protected_matmul",
]
