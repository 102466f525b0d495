"""The words of the panels, each with one explanation: the source of all tooltips, and of the documentation's glossary.

One word has one meaning in all panels, notebooks and pages.
"""

from __future__ import annotations

from collections.abc import Mapping

GLOSSARY: Mapping[str, str] = {
    "95% interval": "where the bound of fields of this kind lies with 95% confidence, estimated from this one field",
    "achievable rate": (
        "bits per value that suffice: some code of fixed length needs no more, and fails with probability ε at most"
    ),
    "archive": "the compressed data with their certificate and checksums: one zip file, or a folder that Zarr reads too",
    "bits per particle": (
        "bits of the archive for the position of one particle; uncompressed it takes 96 in float32 and three "
        "dimensions"
    ),
    "bits per value": (
        "size of the archive in bits, divided by the number of finite, unmasked values; float32 takes 32 uncompressed"
    ),
    "broken": "halos that lost or gained members: split ones and merged ones",
    "cannot-link": (
        "two particles of different groups that would be friends and have to be separated, so that both groups are "
        "kept"
    ),
    "certificate": "the part of an archive that states what is promised, how it was checked, and the figures of the check",
    "chunk": "the part of an array that is encoded, checked and decoded by itself",
    "close call": (
        "a pair whose distance in the original equals the linking length so closely that rounding decides whether "
        "they are friends"
    ),
    "codec": "a method that turns numbers into bytes and back, such as SZ3 or ZFP; alone it promises nothing",
    "converse": (
        "bits per value that are necessary: no code of fixed length that fails with probability ε at most needs fewer"
    ),
    "corrected": (
        "values that the codec left outside the error bound; the archive stores the difference, which brings them "
        "back inside"
    ),
    "descent": (
        "projected gradient descent: particles move step by step within their error bounds until no pair is violated"
    ),
    "dispersion": (
        "the variance of the information in a value; it determines how many bits above the bound a finite field needs"
    ),
    "documents": "the descriptions inside an archive (shape, codec, certificate), which matter for small data only",
    "error bound": "the largest allowed error of any value, in the unit of the data; of a coordinate it is written ξ",
    "false link": "a pair of particles from different groups that are friends in the decoded particles",
    "fingerprint": "a checksum of the groups, by which a reader verifies them without the original",
    "free order": (
        "the particles may come back in another order, which saves up to log₂N - 1.44 bits for each of N particles"
    ),
    "friends": "two particles at most a linking length apart",
    "friends of friends": "the method that finds groups: friends, their friends, and so on, belong to one group",
    "gap": "bits per value that a codec needs above the rate-distortion bound at the mean square error that it made",
    "Gaussian-model bound": (
        "the rate-distortion bound of the Gaussian model that was fitted to the field, in bits per value"
    ),
    "group": "particles connected by chains of friends; a particle without friends is a group of one",
    "halo": "a group with at least so many members, 20 unless another number is chosen",
    "kept": "groups that have exactly the same members in the decoded particles as in the original",
    "lattice": (
        "the built-in codec for particles: positions are rounded to a lattice whose spacing is twice the error bound"
    ),
    "linking length": "particles at most this far apart are friends; it is written b, and often given in mean spacings",
    "loss": "the sum of the squared amounts by which pairs violate their constraint; the descent reduces it to zero",
    "mass function": "the number of halos by their number of members",
    "mean spacing": "the side of the cube, in two dimensions of the square, that holds one particle on average",
    "mean square error": "the mean of the squared differences between decoded and original values",
    "merged": "halos that lost no member but are joined by particles of other groups",
    "missing link": (
        "a pair of friends that is no longer connected; the fewest that would rejoin every split group are counted"
    ),
    "moved particles": (
        "particles that are shifted within their error bound so that groups are kept; the shifts are part of the "
        "archive"
    ),
    "must-link": (
        "two particles of a split group that have to be friends again; the fewest and shortest that reconnect its "
        "parts"
    ),
    "new information": "the bits of each value that its neighbours do not predict, at an error bound of 1",
    "normal approximation": "an estimate, from the dispersion, of the bits that the best code of fixed length needs",
    "order": "whether decoded particles are in the order of the original (kept) or may be in any other (free)",
    "overhead": "the additional bits per particle that keeping the groups costs",
    "pointwise bound": "the error bound holds for every single value, not only on average",
    "pointwise relative": "an error bound that is a share of each value's own size; zeros stay zeros",
    "prequantised": (
        "the built-in codec for fields: values are rounded to multiples of twice the error bound, and differences are "
        "coded"
    ),
    "price of one variance": "additional bits per value if a codec assumes the same variance in all regions",
    "price of tiles": (
        "additional bits per value if a codec codes each tile by itself and so ignores correlation across borders"
    ),
    "probability of failure": "how often a code of fixed length may exceed the mean square error; it is written ε",
    "PSNR": "peak signal-to-noise ratio in dB: range of the values (longest side of the box) over root mean square error",
    "rate": "bits per value",
    "rate-distortion bound": (
        "the fewest bits per value that any codec needs on average for data of this kind at a given mean square error"
    ),
    "ratio": "how many times smaller the archive is than the data in their own type",
    "region": "a part of a field with its own variance and correlation; the model treats regions as independent",
    "relative": "an error bound that is a share of the range (largest less smallest value) of the whole array",
    "rms distance": "the root mean square of the distances that particles moved",
    "spectrum ratio": "power of the decoded data divided by power of the original at each wave number k, P'/P; 1 is equal",
    "split": "halos that lost members; some of these may also have gained others",
    "SSIM": "structural similarity of two fields, in windows of 7 points a side; 1 is equal",
    "tile": "a block of values that a codec codes independently of all others, such as 4 values a side in ZFP",
    "verified": (
        "the decoded data were compared with the original, or groups were found again and compared, and everything "
        "agreed"
    ),
    "violation": "a pair of particles that must be friends and are not, or are friends and must not be",
    "water level": "the largest error that a wave may keep: waves weaker than this level are left out and cost no bits",
}


def meaning(term: str) -> str:
    """The explanation of a term.

    >>> meaning("friends")
    'two particles at most a linking length apart'
    """
    return GLOSSARY[term]
