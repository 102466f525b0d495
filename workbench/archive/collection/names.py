"""Names of members, and where the arrays of each are stored.

A member's name is that of its variable in the data: any text, with `/` between those of groups. In the Zarr group of the
collection it has that name, too, so that other programs show the dataset as it was: the values of a field `ocean/T` are
the array `ocean/T`, and its mask is `ocean/T_mask`; the arrays of particles `gas` are `gas/positions` and so on. Only a
name that cannot be a key of an archive, or that another array has already, is changed there. The root says which arrays
belong to a member.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from workbench.archive.key import ROOT, is_key
from workbench.errors import UnknownName, WorkbenchError, briefly, some_of

MOST_CHARACTERS = 256
RESERVED = (ROOT, "lossbench")   # the folder of the second copy of the root
BESIDE = ("mask",)               # arrays that a field may have beside its values
_IMPOSSIBLE = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Arrays:
    """Where the arrays of a member are: those of a field beside each other, all others in a folder.

    >>> Arrays("T", flat=True).stored("mask"), Arrays("gas", flat=False).stored("ids")
    ('T_mask', 'gas/ids')
    """

    at: str
    flat: bool

    def stored(self, array: str) -> str:
        """The name in the collection of an array of the member."""
        if not self.flat:
            return f"{self.at}/{array}"
        return self.at if array == "values" else f"{self.at}_{array}"

    def key(self, key: str) -> str:
        """The key in the collection of a part of the member."""
        array, _, rest = key.partition("/")
        return f"{self.stored(array)}/{rest}"


def require_name(name: Any) -> str:
    """The name itself, if members can have it.

    >>> require_name("ocean//T")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: the name of a member must be text, with '/' between names of groups; got 'ocean//T'
    """
    parts = name.split("/") if isinstance(name, str) else []
    if not (isinstance(name, str) and all(part.strip() for part in parts) and name.isprintable()):
        raise WorkbenchError(f"the name of a member must be text, with '/' between names of groups; got {briefly(name)}")
    if len(name) > MOST_CHARACTERS:
        raise WorkbenchError(f"the name of a member must have at most {MOST_CHARACTERS} characters; got {len(name)}")
    return name


def require_no_group(names: Collection[str], groups: Iterable[str] = ()) -> None:
    """Refuse names of which one is a member and a group: a group of members, or one of `groups`.

    >>> require_no_group(["T", "T/mean"])
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: 'T' is the name of a member and of a group, which holds 'T/mean': rename one of them
    """
    for name in names:
        for group in groups_of(name):
            if group in names:
                raise WorkbenchError(
                    f"{group!r} is the name of a member and of a group, which holds {name!r}: rename one of them"
                )
    if both := [group for group in groups if group in names]:
        raise WorkbenchError(f"{both[0]!r} is the name of a member and of a group: rename one of them")


def groups_of(name: str) -> Iterator[str]:
    """The groups around a name, from the outermost.

    >>> list(groups_of("a/b/c"))
    ['a', 'a/b']
    """
    parts = name.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


def places_of(kinds: Mapping[str, bool], groups: Iterable[str] = ()) -> dict[str, Arrays]:
    """Where each member is stored; the values say whether its arrays are flat. The names of groups are theirs.

    >>> {name: place.at for name, place in places_of({"T": True, "T_mask": True, "sea ice": True}).items()}
    {'T': 'T_2', 'T_mask': 'T_mask', 'sea ice': 'sea_ice'}
    """
    places: dict[str, Arrays] = {}
    wanted = {_as_key(name) for name in kinds}
    stored = [group for group in groups if group and has_own_key(group)]
    taken = {*stored, *(group for key in (*wanted, *stored) for group in groups_of(key))}
    for name, flat in kinds.items():
        own = _as_key(name)
        for number in count(1):
            place = Arrays(own if number == 1 else f"{own}_{number}", flat)
            names = {place.at, *(place.stored(array) for array in BESIDE if flat)}
            if not names & taken and not (names - {own}) & wanted:
                break
        taken |= names
        places[name] = place
    return places


def require_known(name: Any, known: Iterable[str], what: str) -> None:
    """Refuse a name that is none of the known ones, with the nearest of them.

    >>> require_known("temprature", ["temperature", "salinity"], "a member")
    Traceback (most recent call last):
    workbench.errors.UnknownName: expected the name of a member; got 'temprature': did you mean 'temperature'? There ...
    """
    names = list(known)
    if name in names:
        return
    near = difflib.get_close_matches(name, names, 1) if isinstance(name, str) else []
    meant = f"did you mean {near[0]!r}? There" if near else "there"
    raise UnknownName(f"expected the name of {what}; got {briefly(name)}: {meant} are {some_of(map(repr, names), 20)}")


def has_own_key(group: str) -> bool:
    """Whether a group is stored under its own name; "" is the whole.

    >>> has_own_key("ocean/deep"), has_own_key("sea ice")
    (True, False)
    """
    return not group or _as_key(group) == group


def _as_key(name: str) -> str:
    """A key like this name."""
    return "/".join(map(_part, name.split("/")))


def _part(part: str) -> str:
    if is_key(part) and part not in RESERVED and not part.startswith("__"):
        return part
    changed = _IMPOSSIBLE.sub("_", part)[:64].lstrip("_.-")
    return changed if changed and changed not in RESERVED else f"v_{changed}"
