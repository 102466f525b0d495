"""The named sections of a chunk. A tag has four ASCII letters; `docs/archive-format.md` describes the bytes of each.

Several layers add sections of their own to one chunk. All tags stand here, so that no two of them can be equal.
"""

CODE = "code"       # what the codec made of the values, or of their logarithms
LOGS = "logs"       # signs and zeros beside the logarithms
FIX = "fix_"        # corrections of single values
SAME = "same"       # all values, lossless, instead of the above
BYTES = "byte"      # all bytes, deflated, instead of the above: masks, and integers of eight bits
EDIT = "edit"       # moves of particles, which keep their clusters
PIN = "pin_"        # corrections of particles that get their original coordinates
CHECKSUM = "dcrc"   # CRC-32 of the decoded values: tells when a codec decodes to something else than it once did

INFORMATIVE = frozenset({CHECKSUM})   # sections on which no value depends: a part of a chunk can be decoded beside them
