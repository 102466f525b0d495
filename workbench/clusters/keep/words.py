"""What a certificate states about kept clusters, in words: the same rows for printed certificates and for the panel.

A certificate is read from a file, so no entry needs to be there or to have the right type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

OLD_HOLDS, OLD_NOT_IMPLIED = "so ", "not implied: "   # the first words of these sentences in archives of earlier versions


def clusters_in_words(kept: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Rows of a short name and what is stated; entries that are missing are left out.

    >>> clusters_in_words({"groups": [4510], "lengths": [0.2], "violations": 0})
    [('groups kept', '4,510 at linking length 0.2'), ('differences left', '0')]
    """
    return [(name, text) for name, text in _rows(kept) if text]


def _rows(kept: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "groups kept", _groups(kept)
    yield "fingerprint of the groups", ", ".join(map(str, listed(kept, "partition")))
    yield "changed by the codec", _said(kept, "groups_opened", "{} groups were split or merged, and are restored")
    yield "particles moved", _said(kept, "edited", "{} within the bound") + _said(
        kept, "exact", "; {} of them back to their original positions"
    )
    yield "size of the moves", _said(kept, "bytes", "{} bytes")
    yield "differences left", _said(kept, "violations", "{}")
    yield "friends", _said(kept, "predicate", "{}")
    yield "precision of positions", _said(kept, "precision", "{}")
    margin = short(kept.get("margin", 0), 3)
    yield "close decisions", _said(kept, "close_calls", f"{{}} decisive pairs are within {margin} of a linking length")
    yield "therefore", str(kept.get("holds", "")).removeprefix(OLD_HOLDS)
    yield "not promised", str(kept.get("not_implied", "")).removeprefix(OLD_NOT_IMPLIED)


def _groups(kept: Mapping[str, Any]) -> str:
    counts, lengths = listed(kept, "groups"), listed(kept, "lengths")
    members = kept.get("min_members", 1)
    least = f" of at least {short(members)} members" if members != 1 else ""
    pairs = zip(counts, lengths, strict=False)
    return ", ".join(f"{short(count)}{least} at linking length {short(length)}" for count, length in pairs)


def _said(kept: Mapping[str, Any], name: str, text: str) -> str:
    return text.format(short(kept[name])) if name in kept else ""


def listed(kept: Mapping[str, Any], name: str) -> list[Any]:
    """An entry that should be a list; empty if it is none.

    >>> listed({"groups": 3}, "groups")
    []
    """
    found = kept.get(name)
    return found if isinstance(found, list) else []


def short(value: Any, digits: int = 6) -> str:
    """A number with so many digits, a whole one with thousands apart; values of other types as they are.

    >>> short(0.123456789), short(145093), short("float32")
    ('0.123457', '145,093', 'float32')
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
