"""How archives are forged: bytes and objects changed, and then every checksum made anew, as an attacker would.

Each forger takes the parts of an archive and a source of random choices, and returns other parts. A forger may raise
`NoForgery` where its change makes no sense; the case then counts as done.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import struct
import zlib
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from archive import samples
from fuzz.victims import Victim
from workbench.archive import document
from workbench.archive.chunk import checksum_of_table, codec_of, decode_frame, exact_chunk
from workbench.archive.frame import pack, unpack
from workbench.archive.layout import ArrayLayout
from workbench.archive.root import CONSOLIDATED
from workbench.archive.sharding import crc32c, end_bytes
from workbench.clusters.keep.edits import Edits
from workbench.codecs.counts import CodedCounts
from workbench.codecs.entropy import CodedIntegers
from workbench.codecs.interpolation_model import Model, Network, shapes
from workbench.codecs.lattice_stream import CODERS, ORDERS, Stream
from workbench.codecs.molecules import CodedMolecules
from workbench.codecs.packing import PackedIntegers
from workbench.codecs.pieces import join
from workbench.errors import WorkbenchError
from workbench.guarantees.sections import CHECKSUM, CODE, EDIT, FIX, LOGS, MASK, PIN, SAME

Parts = dict[str, bytes]

NUMBERS = [
    0, 1, -1, 2, 3, 5, 7, 63, 64, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**52, 2**53, 2**63 - 1, 2**63, 2**64 - 1,
    0.5, -0.5, 1e-300, 5e-324, 1e150, 1e299, 1e300, 1.7e308, float("inf"), float("nan"),
]
STRANGE = [
    None, True, 0, -1, 1, 2, 3, 0.5, -0.5, 1e308, 5e-324, 2**31, 2**63, 2**64, 10**400, "", "a", "free", "keep", "nan",
    "relative", "float32", "float64", "int16", "bool", [], [0], [1, 1], [3, 3, 3], [0, 0, 0], [[]], {},
    {"kind": "absolute", "eb": 1e-3}, {"id": "lattice"}, {"id": "lattice", "order": "keep"}, {"id": "prequantised"},
    {"id": "pcodec"}, {"id": "bitround"}, {"id": "columns", "codec": {"id": "prequantised"}}, {"id": []},
    [1e300, 1e300, 1e300], [2**52, 2**52, 2**52], "x" * 5000,
]
TAGS = (CODE, LOGS, FIX, SAME, MASK, EDIT, PIN, CHECKSUM)
MODEL_AT, HEADER = 30, 25   # of the checksum of the model, in a code and in what is behind its own checksum
BUILT_IN = ("lattice", "interpolation", "prequantised", "pcodec", "bitround", "columns")


class NoForgery(Exception):
    """This change cannot be made to this archive."""


def forged(victims: list[Victim], random: Random) -> tuple[Victim, str, Parts]:
    """A victim, what was done to it, and the parts of the forgery."""
    victim = random.choice(victims)
    forgers = [raw, documents, sections, streams, edits, arrays, transplants, models, shards]
    forger = random.choices(forgers, weights=[1, 2, 2, 3, 1, 1, 1, 1, 1])[0]
    return victim, forger.__name__, forger(victim.entries, random, victims)


def raw(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """Bytes of any part changed, no checksum made anew; or parts missing and exchanged."""
    key, other = random.choice(sorted(entries)), random.choice(sorted(entries))
    match random.randrange(5):
        case 0:
            return {k: v for k, v in entries.items() if k != key}
        case 1:
            return {**entries, key: entries[other], other: entries[key]}
    return {**entries, key: mutated(entries[key], random)}


def documents(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """One or two values of the documents replaced."""
    for _ in range(random.randint(1, 2)):
        described_by = _documents_of(entries)
        key = random.choice(sorted(described_by))
        described = described_by[key]
        places = [p for p in _places(described) if p]
        if not places:
            break   # the first change has left nothing of it
        path = random.choice(places)
        value, how = copy.deepcopy(random.choice(STRANGE)), random.choice(["set", "set", "nudge", "remove", "repeat"])
        if path[-1] == "id" and value not in BUILT_IN:
            raise NoForgery   # other people's codecs are asked for by name
        entries = resealed(entries, key, lambda node, p=path, v=value, h=how: _replace(node, p, v, h, random))
    return entries


def sections(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """The sections of a chunk changed, dropped or renamed, or its shape."""
    key, shape, found = _chunk(entries, random)
    tag = random.choice(sorted(found))
    match random.randrange(6):
        case 0 if len(found) > 1:
            del found[tag]
        case 1:
            found[random.choice(TAGS)] = found.pop(tag)
        case 2:
            shape = tuple(random.choice([size, size, size + 1, 1, 5, 2 * size]) for size in shape)
        case _:
            found[tag] = mutated(found[tag], random)
    return _with_chunk(entries, key, shape, found, random)


def streams(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """A lattice stream taken apart, its objects changed, and put together with right checksums."""
    key, shape, found = _chunk(entries, random, CODE)
    try:
        stream = Stream.of(found[CODE], shape)
    except WorkbenchError:
        raise NoForgery from None
    for _ in range(random.randint(1, 2)):
        stream = _other_stream(stream, random)
    found[CODE] = _bytes_of(stream)
    return _with_chunk(entries, key, shape, found, random)


def edits(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """The moves of particles changed, or put beside a chunk that has none, of any array."""
    chunks = [unpack(data, key) for v in victims for key, data in samples.chunks(v.entries).items()]
    section = random.choice([bytes(chunk.sections[EDIT]) for chunk in chunks if EDIT in chunk.sections])
    head, body = bytearray(section[:12]), bytearray(section[12:])
    key, shape, found = _chunk(entries, random)
    if random.random() < 0.7:
        head[1] = shape[-1] % 256
    if random.random() < 0.3:
        head[2] = random.choice([0, 1, 2, 64, 65, 255])
    if random.random() < 0.3:
        head[3] = random.choice([0, 1, 2])
    if random.random() < 0.5:
        head[4:12] = struct.pack("<d", float(random.choice(NUMBERS)))
    for at in range(0, min(len(body) - 7, 40), 8):
        if random.random() < 0.2:
            body[at : at + 8] = struct.pack("<d", float(random.choice(NUMBERS)))
    if random.random() < 0.4:   # moves that decode: as many as the chunk has particles, or nearly
        body = bytearray(_made_up_moves(bytes(head), shape, random) or body)
    found[EDIT] = bytes(head) + (mutated(bytes(body), random) if random.random() < 0.3 else bytes(body))
    return _with_chunk(entries, key, shape, found, random)


def models(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """Another model with all checksums right, and a code that names it, of which bytes may be changed."""
    (entries,) = random.sample([each.entries for each in victims if each.name == "model"], 1)
    rng = np.random.default_rng(random.randrange(2**32))
    largest, dimensions = random.choice([1, 40, 3000, 32767]), random.choice([2, 2, 2, 1, 3])
    whole = {odd: [rng.integers(-largest, largest + 1, shape) for shape in shapes(odd)] for odd in range(1, dimensions + 1)}
    networks = {odd: Network(*(part.astype(np.int16) for part in parts)) for odd, parts in whole.items()}
    model = Model(dimensions, (), networks)
    key, shape, found = _chunk(entries, random, CODE)
    name = key.split("/")[0]
    layout = ArrayLayout.from_metadata(name, samples.described(entries, name))
    code = bytearray(found[CODE][MODEL_AT - HEADER :])
    code[HEADER : HEADER + 4] = model.checksum.to_bytes(4, "little")
    if random.random() < 0.5:
        code = bytearray(mutated(bytes(code), random))
    found[CODE] = join("interpolation", [bytes(code)], shape, layout.dtype, 2**28)

    def change(described: dict[str, Any]) -> None:
        described["codecs"][0]["configuration"]["codec"]["model"] = model.text

    return _with_chunk(resealed(entries, f"{name}/zarr.json", change), key, shape, found, random)


def arrays(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """The values of an array that is kept exactly (extents, ids, permutation, masks), made up."""
    found = samples.chunks(entries)
    key = random.choice(sorted(found))
    layout, opened = samples.layout_of(entries, key.split("/")[0]), unpack(found[key], key)
    try:
        values = decode_frame(opened, codec_of(layout.configuration, key), layout.dtype)
    except WorkbenchError:
        raise NoForgery from None
    values = _other_values(np.array(values), random)
    forged_chunk = exact_chunk(values)
    return samples.with_chunk(entries, key, forged_chunk.data, forged_chunk.checksum)


def transplants(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """A section, a chunk or a whole array of another archive."""
    other = random.choice(victims).entries
    match random.randrange(3):
        case 0:
            chunks = samples.chunks(other)
            theirs = random.choice(sorted(chunks))
            key, shape, found = _chunk(entries, random)
            tags = unpack(chunks[theirs], theirs).sections
            tag = random.choice(sorted(tags))
            found[tag] = bytes(tags[tag])
            return _with_chunk(entries, key, shape, found, random)
        case 1:
            array = random.choice(sorted({k.split("/")[0] for k in other if "/" in k}))
            without = {k: v for k, v in entries.items() if k.split("/")[0] != array}
            changed = {**without, **{k: v for k, v in other.items() if k.split("/")[0] == array}}
            theirs = samples.described(other, array)
            return resealed(changed, "zarr.json", lambda root: root[CONSOLIDATED]["metadata"].__setitem__(array, theirs))
    return {**entries, "zarr.json": other["zarr.json"]}


def shards(entries: Parts, random: Random, victims: list[Victim]) -> Parts:
    """The end of a shard made up: its index with a right checksum, and its table as the document states it."""
    (entries,) = random.sample([each.entries for each in victims if each.name.startswith("shards")], 1)
    key = random.choice(sorted(k for k in entries if k.startswith(("positions/c/", "values/c/", "ids/c/", "mask/c/"))))
    layout = samples.layout_of(entries, key.split("/")[0])
    shard = tuple(map(int, key.split("/")[2:]))
    slots = len(layout.slots(shard))
    begin = len(entries[key]) - end_bytes(slots)
    body, end = entries[key][:begin], entries[key][begin:]
    table, numbers = bytearray(end[: 4 * slots]), list(struct.unpack(f"<{2 * slots}Q", end[4 * slots : -4]))
    for _ in range(random.randint(0, 2)):
        place = random.randrange(2 * slots)
        known = [0, 1, 2**32, 2**63, 2**64 - 1, begin, numbers[place] + 1, numbers[place - 1], numbers[place - 2]]
        numbers[place] = random.choice(known) % 2**64
    match random.randrange(4):
        case 0:
            table[random.randrange(len(table))] ^= 1 << random.randrange(8)
        case 1:
            body = mutated(body, random)
        case 2:
            body += bytes(random.choice([1, 20, 2**16]))
    index = struct.pack(f"<{2 * slots}Q", *numbers)
    changed = {**entries, key: body + bytes(table) + index + crc32c(index).to_bytes(4, "little")}
    return samples.with_stated(changed, layout, shard, checksum_of_table(bytes(table)))


def mutated(data: bytes, random: Random) -> bytes:
    """The bytes with some of them flipped, set, deleted, inserted, cut or repeated."""
    spoiled = bytearray(data)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(max(len(spoiled), 1))
        match random.randrange(7):
            case 0 if spoiled:
                spoiled[at] ^= 1 << random.randrange(8)
            case 1 if spoiled:
                spoiled[at] = random.choice([0, 1, 2, 127, 128, 255])
            case 2:
                spoiled[at : at + 8] = random.choice([bytes(8), b"\xff" * 8, b"\x7f" * 4, b"\x00\x00\x80\x7f"])
            case 3:
                del spoiled[at : at + random.randint(1, 9)]
            case 4:
                spoiled[at:at] = random.randbytes(random.randint(1, 9))
            case 5:
                del spoiled[at:]
            case 6:
                spoiled[at:at] = spoiled[: random.randint(1, 40)]
    return bytes(spoiled)


# Objects inside a stream.

def _other_stream(stream: Stream, random: Random) -> Stream:
    """The stream with one of its objects changed."""
    lattice = stream.lattice
    field = random.choice(["order", "in_place", "lattice", "block", "first", "coded", "coded", "coded", "low"])
    if field == "order":
        return dataclasses.replace(stream, order=random.choice(ORDERS))
    if field == "in_place":
        return dataclasses.replace(stream, in_place=not stream.in_place)
    if field == "block":
        return dataclasses.replace(stream, block=random.choice([1, 2, 63, 64, 65, 1023, stream.count, 2**20, 2**32 - 1]))
    if field == "first":
        return dataclasses.replace(stream, first=_other_values(np.array(stream.first), random))
    if field == "low":
        numbers = np.array([random.choice(NUMBERS[:19]) % 2**64 for _ in range(16)], np.uint64)
        count = random.choice([stream.count, stream.count * lattice.dimensions, 0, 1])
        low = PackedIntegers.of(np.resize(numbers, count), stream.block)
        return dataclasses.replace(stream, low=random.choice([None, low]))
    if field == "lattice":
        return dataclasses.replace(stream, lattice=_other_lattice(lattice, random))
    return dataclasses.replace(stream, coded=_other_coded(stream, random))


def _other_lattice(lattice: Any, random: Random) -> Any:
    def of(numbers: tuple[Any, ...], kind: type, choices: list[Any]) -> tuple[Any, ...]:
        return tuple(kind(random.choice(choices)) if random.random() < 0.5 else n for n in numbers)

    cells = [0, 1, 2**20, 2**21 - 1, 2**21, 2**31, 2**32, 2**51, 2**52 - 1, 2**52, 2**62]
    match random.randrange(5):
        case 0:
            return dataclasses.replace(lattice, origin=of(lattice.origin, float, NUMBERS))
        case 1:
            return dataclasses.replace(lattice, step=float(random.choice(NUMBERS)))
        case 2:
            return dataclasses.replace(lattice, last=of(lattice.last, int, cells))
        case 3:
            return dataclasses.replace(lattice, top=of(lattice.top, float, NUMBERS))
    return dataclasses.replace(lattice, periodic=not lattice.periodic)


def _other_coded(stream: Stream, random: Random) -> Any:
    """Other numbers in the same or another coder, or the same with parts of the coder's state made up."""
    coded = stream.coded
    if random.random() < 0.4:
        rows = random.choice([stream.count, stream.count, stream.count, stream.count + 1, 1])
        components = random.choice([1, 2, 3])
        numbers = np.array([random.choice(NUMBERS[:19]) % 2**64 for _ in range(32)], np.uint64)
        numbers = np.resize(numbers, rows) if components == 1 else np.resize(numbers, (rows, components))
        return random.choice(list(CODERS.values())).of(numbers, stream.block, random.random() < 0.5)
    if isinstance(coded, CodedIntegers):
        return _other_entropy(coded, random)
    if isinstance(coded, CodedCounts):
        return _other_counts(coded, random)
    if isinstance(coded, CodedMolecules):
        return _other_words(coded, random.choice(["words", "words", "word_first", "count"]), random)
    if isinstance(coded, PackedIntegers):
        name = random.choice(["count", "block", "components", "widths", "packed"])
        old = getattr(coded, name)
        new = random.choice([0, 1, 2, 3, 64, 2**20]) if isinstance(old, int) else _other_values(np.array(old), random)
        return dataclasses.replace(coded, **{name: new})
    name = random.choice(["count", "block", "components", "coded"])
    old = getattr(coded, name)
    new = mutated(old, random) if isinstance(old, bytes) else random.choice([0, 1, 2, 3, 64])
    return dataclasses.replace(coded, **{name: new})


def _other_entropy(coded: CodedIntegers, random: Random) -> CodedIntegers:
    match random.choice(["model", "frequency", "words", "bits", "word_first", "bits_first", "count", "block"]):
        case "model":
            name = random.choice(["components", "signs", "octave", "lowest", "highest"])
            model = dataclasses.replace(coded.model, **{name: random.choice([0, 1, 2, 3, 63, 64, 255])})
            return dataclasses.replace(coded, model=model)
        case "frequency":
            frequency = np.array(coded.frequency)
            rows = np.flatnonzero(frequency.any(axis=1))
            for row in rows:
                if random.random() < 0.5:
                    frequency[row] = 0
                    frequency[row, random.choice([0, 1, 127, 128, 254, 255])] = 4096   # one symbol for ever
            return dataclasses.replace(coded, frequency=frequency)
        case "words" | "bits" as name:
            return _summed(dataclasses.replace(coded, **{name: _other_values(np.array(getattr(coded, name)), random)}))
        case "word_first" | "bits_first" as name:
            first = np.array(getattr(coded, name))
            inner = first[1:-1]
            if len(inner):
                inner[random.randrange(len(inner))] = random.choice([0, int(first[-1])])
            return _summed(dataclasses.replace(coded, **{name: np.sort(first)}))
        case name:
            return dataclasses.replace(coded, **{name: random.choice([0, 1, 2, 64, 200, 2**31])})


def _other_counts(coded: CodedCounts, random: Random) -> CodedCounts:
    match random.choice(["chosen", "words", "words", "word_first", "count", "block", "dimensions", "key_bits"]):
        case "chosen":
            return dataclasses.replace(coded, chosen=_other_values(np.array(coded.chosen), random))
        case name:
            return _other_words(coded, name, random)


def _other_words(coded: Any, name: str, random: Random) -> Any:
    """The same with other words, other borders between blocks, or another number."""
    match name:
        case "words":
            words = _other_values(np.array(coded.words), random)
            first = np.minimum(coded.word_first, len(words))
            first[-1] = len(words)
        case "word_first":
            words, first = coded.words, np.array(coded.word_first)
            first[1:-1] = random.choice([0, int(first[-1])])
        case name:
            return dataclasses.replace(coded, **{name: random.choice([0, 1, 2, 3, 36, 63, 64, 2**15, 2**31])})
    sums = [zlib.crc32(words[a:b].tobytes()) for a, b in itertools.pairwise(first)]
    return dataclasses.replace(coded, words=words, word_first=first, checksums=np.array(sums, np.uint32))


def _summed(coded: CodedIntegers) -> CodedIntegers:
    """The same with right checksums of its blocks."""
    def crc(b: int) -> int:
        words = coded.words[coded.word_first[b] : coded.word_first[b + 1]]
        bits = coded.bits[coded.bits_first[b] : coded.bits_first[b + 1]]
        return zlib.crc32(bits.tobytes(), zlib.crc32(words.tobytes()))

    blocks = range(len(coded.checksums))
    return dataclasses.replace(coded, checksums=np.array([crc(b) for b in blocks], np.uint32))


def _bytes_of(stream: Stream) -> bytes:
    """The stream with all its checksums; what its own writer cannot write is no forgery."""
    try:
        return stream.to_bytes()
    except (struct.error, OverflowError, ValueError, TypeError, ZeroDivisionError, WorkbenchError):
        raise NoForgery from None


def _made_up_moves(head: bytes, shape: tuple[int, ...], random: Random) -> bytes | None:
    """The rest of an edit section that decodes beside positions of this shape."""
    if len(shape) != 2 or shape[1] not in (2, 3):
        return None
    step = struct.unpack("<d", head[4:12])[0]
    index = np.flatnonzero([random.random() < 0.2 for _ in range(shape[0])]).astype(np.int32)
    rank = np.array([random.choice([1, 2, 24, 25, 300, 1000]) for _ in index], np.uint16)
    positions = np.array([[random.random() for _ in range(shape[1])] for _ in range(shape[0])], np.float32)
    try:
        return Edits(index, rank, step, (0.1,), None).to_bytes(positions)[12:]
    except (WorkbenchError, ValueError, OverflowError):
        return None


# Arrays, documents and frames.

def _other_values(values: np.ndarray, random: Random) -> np.ndarray:
    """Some values replaced; now and then one more or one less."""
    flat = values.reshape(-1)
    with np.errstate(all="ignore"):
        for _ in range(random.randint(1, 4)):
            if flat.size:
                number = random.choice(NUMBERS)
                integers = values.dtype.kind != "f"
                wrapped = int(number) % 2 ** (8 * values.itemsize) if integers and abs(number) < 2**65 else 0
                replacement = np.array([wrapped], f"u{values.itemsize}").view(values.dtype)[0] if integers else number
                flat[random.randrange(flat.size)] = replacement if values.dtype.kind != "b" else bool(wrapped % 2)
        if random.random() < 0.1:
            flat[:] = flat[random.randrange(flat.size)] if flat.size else flat
    if random.random() < 0.1:
        return values[:-1] if random.random() < 0.5 else np.concatenate([values, values[:1]])
    return values


def _chunk(entries: Parts, random: Random, tag: str | None = None) -> tuple[str, tuple[int, ...], dict[str, bytes]]:
    """The key, shape and sections of a chunk that has a section of this name."""
    chunks = samples.chunks(entries)
    keys = sorted(chunks)
    random.shuffle(keys)
    for key in sorted(keys, key=lambda k: not k.startswith(("positions", "data"))) if random.random() < 0.6 else keys:
        opened = unpack(chunks[key], key)
        if tag is None or tag in opened.sections:
            return key, opened.shape, {name: bytes(part) for name, part in opened.sections.items()}
    raise NoForgery


def _with_chunk(entries: Parts, key: str, shape: tuple[int, ...], found: dict[str, bytes], random: Random) -> Parts:
    """The archive with this chunk: mostly with the checksum of what it decodes to, wherever that stands."""
    try:
        data = pack(shape, found)
    except WorkbenchError:
        raise NoForgery from None
    layout = samples.layout_of(entries, key.split("/")[0])
    try:
        if random.random() < 0.2:
            return samples.with_chunk(entries, key, data)
        values = decode_frame(unpack(data, key), codec_of(layout.configuration, key), layout.dtype)
    except WorkbenchError:
        return samples.with_chunk(entries, key, data)
    found[CHECKSUM] = zlib.crc32(np.ascontiguousarray(values).data).to_bytes(4, "little")
    return samples.with_chunk(entries, key, pack(shape, found), found[CHECKSUM])


def _documents_of(entries: Parts) -> dict[str, Any]:
    """The documents that another change can be made to, by key: the root, and those of the arrays while it lists them."""
    root = document.unsealed(document.from_bytes(entries["zarr.json"], "zarr.json"), "zarr.json")
    consolidated = root.get(CONSOLIDATED)
    arrays = consolidated.get("metadata") if isinstance(consolidated, dict) else None
    return {"zarr.json": root, **(arrays if isinstance(arrays, dict) else {})}


def resealed(entries: Parts, key: str, change: Any) -> Parts:
    try:
        return samples.resealed(entries, key, change)
    except (AttributeError, KeyError, TypeError, IndexError, ValueError, WorkbenchError):
        raise NoForgery from None   # no document any more in which a checksum could stand


def _places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every value in a document."""
    yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from _places(child, (*path, key))


def _replace(root: Any, path: tuple[Any, ...], value: Any, how: str, random: Random) -> None:
    """Change a document in place: one value replaced, nudged, removed or repeated."""
    node = root
    for key in path[:-1]:
        node = node[key]
    old = node[path[-1]]
    if how == "remove":
        del node[path[-1]]
    elif how == "repeat" and isinstance(old, list):
        node[path[-1]] = old * 2
    elif how == "nudge" and isinstance(old, int | float):
        node[path[-1]] = old + random.choice([-1, 1, 0.5, 2**31])
    elif how == "nudge" and isinstance(old, str) and old:
        node[path[-1]] = old[:-1] + random.choice("0f9")
    else:
        node[path[-1]] = value
