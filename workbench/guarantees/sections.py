"""The named sections of a chunk. A tag has four ASCII letters; `docs/archive-format.md` describes the bytes of each.

Several layers add sections of their own to one chunk. All tags are defined here, so that no two of them are equal.
"""

CODE = "code"       # the codec's encoding of the values, or of their logarithms
LOGS = "logs"       # signs and zeros beside the logarithms
FIX = "fix_"        # corrections of single values
SAME = "same"       # all values, lossless, instead of the above
MASK = "mask"       # truth values, instead of the above
STAY = "stay"       # nothing, instead of all these: the values are those of the step before, of a series in time
EDIT = "edit"       # moves of particles, which keep their clusters
PIN = "pin_"        # corrections of particles that get their original coordinates
CHECKSUM = "dcrc"   # CRC-32 of the decoded values: detects a codec that decodes differently than before

INFORMATIVE = frozenset({CHECKSUM})   # sections on which no value depends: they allow decoding part of a chunk
