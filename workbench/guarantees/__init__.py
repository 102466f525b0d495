"""Guarantees about decoded data: stated, enforced for any codec, and checked to the last bit."""

from workbench.guarantees.bounds import Absolute, Bound, Exact, Limit, PointwiseRelative, Relative, bound_from_dict
from workbench.guarantees.check import Check, check
from workbench.guarantees.enforce import (
    Figures,
    Guarded,
    decode_guarded,
    decoded_permutation,
    encode_guarded,
    encode_guarded_pieces,
)
from workbench.guarantees.guarantee import Guarantee, Replaced
from workbench.guarantees.per_slice import Limits, PerSlice, SliceLimits
from workbench.guarantees.safeguard import Safeguard, safeguards_hold

__all__ = [
    "Absolute",
    "Bound",
    "Check",
    "Exact",
    "Figures",
    "Guarantee",
    "Guarded",
    "Limit",
    "Limits",
    "PerSlice",
    "PointwiseRelative",
    "Relative",
    "Replaced",
    "Safeguard",
    "SliceLimits",
    "bound_from_dict",
    "check",
    "decode_guarded",
    "decoded_permutation",
    "encode_guarded",
    "encode_guarded_pieces",
    "safeguards_hold",
]
