"""The words of the panels, each with one explanation: the source of all tooltips, and of the documentation's glossary.

One word has one meaning in all panels, notebooks and pages. Codecs explain themselves.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.codecs import registry

_WORDS: Mapping[str, str] = {
    "95% interval of the bound": "contains the bound of such fields with a probability of 95%",
    "achievability": (
        "bits per value that suffice: some code of fixed length needs no more, and fails with probability ε at most"
    ),
    "amplitude": "the largest size of the noise that is added to a value, in the unit of the values",
    "archive": "the compressed data with their certificate and checksums: one zip file, or a folder that Zarr reads too",
    "archive description": "names, checksums and certificate in an archive; it matters for small fields",
    "beside the pictures": "what stands at their right: the trace of the error, or what was counted or measured for many errors",
    "bins": "the bars of a histogram: equal intervals of values",
    "bits above the bound": "draw operating points as bits above the theoretical bound instead of bits",
    "bits per particle": (
        "bits of the archive for the position of one particle; uncompressed it takes 96 in float32 and three "
        "dimensions"
    ),
    "bits per value": (
        "size of the archive in bits, divided by the number of finite, unmasked values; float32 takes 32 uncompressed"
    ),
    "blink": "two pictures in one place by turns, which shows their differences",
    "bound in tiles": "a bound of the Gaussian model: the fewest bits for codes that code one tile at a time",
    "broken": "halos that lost or gained members: split ones and merged ones",
    "budget of weights": (
        "the divergence of the next tokens, mean over a text, that the bounds of all blocks may make together, if those of "
        "each block alone add up"
    ),
    "campaign over": (
        "the strata of a campaign: sign, exponent and mantissa of the numbers at each site, or "
        "each single bit"
    ),
    "cannot-link": (
        "two particles of different groups that would be friends and have to be separated, so that both groups are "
        "kept"
    ),
    "certificate": "the part of an archive that states what is promised, how it was checked, and the figures of the check",
    "chance of failure": (
        "the largest probability, written ε, with which a code of fixed length may exceed the mean square error"
    ),
    "changed members": "particles that left their halo (a cross) or joined one (a ring); up to 20,000 are marked",
    "checksums": "protection: results of products, convolutions, Fourier transforms and k-means must add up, or are repaired",
    "chunk": "the part of an array that is encoded, checked and decoded by itself",
    "close call": (
        "a pair whose distance in the original equals the linking length so closely that rounding decides whether "
        "they are friends"
    ),
    "cloud in 3-D": "the particles as a cloud that can be turned: all of them, or the halo of the close-up",
    "codec": "a method that turns numbers into bytes and back, such as SZ3 or ZFP; alone it promises nothing",
    "colour by": "halo: the largest in colour; status: intact, split or merged; density: particles along the line of sight",
    "colour limits": "the values at the ends of the colours; a percentile leaves out that share of the pixels at each end",
    "colour map": "the colours of the values; differences keep theirs, with white at zero",
    "coloured halos": "so many of the largest halos have a hue; the hues repeat after the seventh",
    "component": "the number of the visible component, such as one of the three of a vector, from 0",
    "compute twice": "protection: each stage is computed again where its result differs, bit by bit, from a second one",
    "converse": (
        "a lower bound on the bits per value of codes of fixed length that fail with probability ε at most"
    ),
    "corrected": (
        "values that the codec left outside the error bound; the archive stores the difference, which brings them "
        "back inside"
    ),
    "cost of keeping": "the difference in size, per particle, between the archive with halos kept and the one without",
    "damage": "how far the results are from the right ones, in units of what is tolerated; up to 1 is tolerated",
    "density": "particles per area of the picture; no size of the window and no zooming changes it",
    "depth cue": "particles far away are dimmer",
    "descent": (
        "projected gradient descent: particles move step by step within their error bounds until no pair is violated"
    ),
    "difference": (
        "the change of each value: its size on a logarithmic scale, where unchanged values are empty, or with its "
        "sign"
    ),
    "dispersion": (
        "the variance of the information in a value; it determines how many bits above the bound a finite field needs"
    ),
    "displacement": "how far a particle moved; the error bound ξ holds along each axis, so the distance may be up to √3 ξ",
    "distance": "of the two particles, by nearest image; friends are at most the linking length b apart",
    "each value bounded": "the fewest bits on average that keep each value within the error bound, if the Gaussian model holds",
    "error at the end": "the relative error of the results; of several results, the largest",
    "error bound": "the largest allowed error of any value, in the unit of the data; of a coordinate it is written ξ",
    "false link": "a pair of particles from different groups that are friends in the decoded particles",
    "faults found": "how many checks of the protection have failed, and brought values back",
    "fingerprint": "a checksum of the groups, by which a reader verifies them without the original",
    "fixed length ≈": "the normal approximation of what the best code needs if all fields get as many bits",
    "fixed length ≤": "achievability: so many bits are enough under the Gaussian model, for the field or for each tile; sampled",
    "fixed length ≥": "converse: at least so many bits are needed under the Gaussian model, for the field or for each tile",
    "free order": (
        "the particles may come back in another order, which saves up to log₂N - 1.44 bits for each of N particles"
    ),
    "friends": "two particles at most a linking length apart",
    "friends of friends": "the method that finds groups: friends, their friends, and so on, belong to one group",
    "gap": "bits per value that a codec needs above the rate-distortion bound at the mean square error that it made",
    "Gaussian-model bound": (
        "the rate-distortion function of the Gaussian model that was fitted to the field, in bits per value: an estimate, "
        "and no bound for a field that the model does not describe"
    ),
    "Gaussian?": "whether the new information in the values is distributed as in a Gaussian field",
    "group": "particles connected by chains of friends; a particle without friends is a group of one",
    "growth": "the relative error at the end divided by that where the error was put in",
    "guaranteed limit": (
        "no value can change by more than this, whatever the error within its bound; known for "
        "some stages only"
    ),
    "halo": "a group with at least so many members, 20 unless another number is chosen",
    "halo: at least": "groups with at least so many members are shown as halos",
    "heat map of": "the outcome whose share of the trials is shown for each site and bit",
    "in 3-D": "the particles as a cloud that can be turned: all of them, or the halo of the close-up",
    "keep exactly": "every value of this variable comes back bit for bit, whatever the error bound beside it says",
    "keep groups of": "groups with at least so many members are kept: none of them is split or merged",
    "kept": "groups that have exactly the same members in the decoded particles as in the original",
    "kind of bound": (
        "absolute: in the unit of the data; relative: a share of the range of all values; pointwise relative: of each "
        "value's own size"
    ),
    "kind of error": (
        "a bit that flips or is stuck, noise, or the error of a codec that really compresses and decompresses the "
        "array"
    ),
    "largest error": "the largest change of a value by compression; at most the error bound",
    "layer": "all marks of one kind over the pictures, such as halos or missing links",
    "limit ranges": "protection: values beyond the range of the run without the error, a fifth wider, are brought back",
    "line of sight": "the axis along which particles are seen",
    "links pass over": (
        "so many steps, at most, at which a halo is not found: its descendant is looked for in those after them"
    ),
    "linking length": "particles at most this far apart are friends; it is written b, and often given in mean spacings",
    "locked limits": "original and decoded have the same colours for the same values",
    "log colours": "colours follow the logarithm of the value",
    "loss": "the sum of the squared amounts by which pairs violate their constraint; the descent reduces it to zero",
    "mass function": "the number of halos by their number of members",
    "mean spacing": "the side of the cube, in two dimensions of the square, that holds one particle on average",
    "mean square error": (
        "the mean of the squared errors; in the limits panel of errors uniform within the error bound, a third of its "
        "square"
    ),
    "members after": "the size of the decoded group that has most members of this halo",
    "merged": "halos that lost no member but are joined by particles of other groups",
    "missing link": "a pair of friends that is no longer connected; the fewest that rejoin all split groups are counted",
    "model": "a trained model (wb.codecs.train), with which the codec interpolation may need fewer bits; or none",
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
    "number format": "the format in which numbers are held when a bit flips: float32, or 16 bits to which the number is rounded first",
    "number of the second target": "as for the first: decibels, a ratio, an SSIM, percent or a linking length",
    "number of the target": "decibels, a ratio, an SSIM, percent or a linking length, as the target says",
    "one variance adds": "the additional bits if one variance is assumed for all regions",
    "opacity": "how much of the picture the marks over it cover; in a cloud, the light of each particle",
    "order": (
        "kept: the order of the particles is restored; free: particles are stored in any order, which takes fewer "
        "bits"
    ),
    "outcome": (
        "masked: rounding only; benign: tolerated; silent: wrong but plausible; detected: not finite or refused; "
        "crash: a stage raised, or ended its process"
    ),
    "part of a block": "an array inside each block of a language model, such as keys, values, or the residual stream after the block",
    "place": "the index of the hit value in the array, from 0 along each axis",
    "point size": "the size of each particle, relative to what suits their number",
    "pointwise bound": "the error bound holds for every single value, not only on average",
    "pointwise relative": "an error bound that is a share of each value's own size; zeros stay zeros",
    "predicted error": (
        "the relative error to first order, computed from stage to stage without running the analysis "
        "with the error"
    ),
    "price of one variance": "additional bits per value if a codec assumes the same variance in all regions",
    "price of tiles": (
        "additional bits per value if a codec codes each tile by itself and so ignores correlation across borders"
    ),
    "protected sites": "the arrays that are protected: all, or those where a campaign has found the most harm",
    "PSNR": "peak signal-to-noise ratio in dB: range of the values (longest side of the box) over root mean square error",
    "radius": "the root mean square distance of the members from the centre, in the unit of the positions",
    "rate": "bits per value",
    "rate-distortion bound": (
        "the fewest bits per value that any codec needs on average for data of this kind at a given mean square error"
    ),
    "ratio": (
        "how many times smaller the archive is than the data in their own type; in the clusters panel, of the "
        "positions alone"
    ),
    "region borders add": "the part of the bound that is due to the borders of regions, which count as independent",
    "regions": (
        "parts of the field with their own variance and correlation; each gets its own model, and they count as "
        "independent"
    ),
    "relative": "an error bound that is a share of the range (largest less smallest value) of the whole array",
    "relative error": "the root mean square of the changes over that of the values; for labels, the share that changed",
    "replace NaN": "protection: values that are not finite become 0",
    "rms distance": "the root mean square of the distances that particles moved",
    "round of moves": (
        "a step in which particles move one by one by fractions of the error bound; it may follow other constraints than "
        "the descent before it"
    ),
    "round-off floor": (
        "the relative error that rounding alone makes, measured by moving every value by one unit in "
        "the last place"
    ),
    "step of scores": (
        "the step of keys in a cache of a language model: a score gets noise of 0.29 of it; what that guarantees "
        "says something below 0.1 only"
    ),
    "second picture": "decoded: particles as the codec returns them; halos kept: after the halos were preserved",
    "second target": "what must hold, too: find searches for the largest error bound with which both do",
    "seed": "the number that all random choices follow from, together with the number of the trial",
    "share of the range": (
        "the error bound as a share of the range (largest less smallest value) of the array "
        "that is changed"
    ),
    "site of the error": (
        "the array that the error is put into: an input of the analysis, or what one of "
        "its stages returns"
    ),
    "site shown": "the array in the pictures: an input of the analysis, or what one of its stages returns",
    "sites of a budget": "the sites whose bounds share what is tolerated: the inputs, or all but the results",
    "slice": "the number of the visible slice, from 0",
    "slice across axis": "the axis of the array that is perpendicular to the visible slice",
    "solver": (
        "how particles are moved to keep halos: by descent, by the smallest sufficient moves, or by more bits of "
        "their errors"
    ),
    "spectrum ratio": "power of the decoded data divided by power of the original at each wave number k, P'/P; 1 is equal",
    "split": "halos that lost members; some of these may also have gained others",
    "SSIM": "structural similarity of two fields, in windows of 7 points a side; 1 is equal",
    "statistics of": "the part of the field that the figures and the histogram belong to",
    "target": "what must hold of the decoded data: find searches for the error bound with which it does",
    "the model itself adds": (
        "what the map of the regions and the parameters of the model would cost a decoder; no bound counts it"
    ),
    "step of a series": "the visible step of a series in time; ▶ plays the steps one after the other",
    "this field alone": "a bound of the Gaussian model: the fewest bits that keep this field within it, except by chance",
    "tile": "a block of values that a codec codes independently of all others, such as 4 values a side in ZFP",
    "tiles add": "the additional bits if tiles are coded independently",
    "tiles of": "the side of the tiles that a codec codes independently, in values; larger tiles take fewer bits",
    "time": "the number of the visible time step, from 0",
    "tokens written": "the most tokens that the model writes after the text, unless it ends before",
    "tolerated": "the limit up to which a changed result is as good as the right one; an empty entry is that of the pipeline itself",
    "trial": "another trial hits another value, or adds other noise; the same number always gives the same",
    "trials of each": "the number of faults that a campaign tries for each site and bit or field of bits",
    "unit of the linking length": "mean spacings, or the unit of the positions",
    "value after": "the hit value with the error",
    "value before": "the hit value without the error",
    "values hit": "the number of values in which the bit is changed, each once",
    "step of values": "the step of values in a cache of a language model, as a share of the root mean square of each token's values",
    "verified": (
        "the decoded data were compared with the original, or groups were found again and compared, and everything "
        "agreed"
    ),
    "violation": "a pair of particles that must be friends and are not, or are friends and must not be",
    "water level": "the largest error that a wave may keep: waves weaker than this level are left out and cost no bits",
}
_CODECS = {name: codec.explanation for name, codec in registry.own().items() if codec.explanation}
GLOSSARY: Mapping[str, str] = dict(sorted({**_WORDS, **_CODECS}.items(), key=lambda entry: entry[0].casefold()))


def meaning(term: str) -> str:
    """The explanation of a term.

    >>> meaning("friends")
    'two particles at most a linking length apart'
    """
    return GLOSSARY[term]
