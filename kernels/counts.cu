// Sorted keys of a Morton curve as numbers of particles: how many are in each half of a cell, until they are alone.
//
// Each block of keys is a tree of its own. Its root is the smallest cell that holds the first key of the block and a bound on
// its last one, both known. A cell is halved along each axis in turn, into 2^D children, all cells of a level before the
// next; what is coded is the number of particles in one half, given their number in both. The half is that on whose side
// fewer particles are known, so that few is more likely: in the cells beside it, of the same block, and in the halves of
// parts next to it that were halved before. A particle that has no others in its cell and beside it is left to its remaining bits, which nothing predicts: they follow
// behind the coded numbers, particle by particle. The first particle of a block is known, so that it is not coded.
//
// A number k of n is coded by rANS with one of the distributions of `counts.py`: the level of the cell, how uneven its
// neighbours are, and the size of n choose it. Above MOST, numbers stand in ranges of equal width, all but none and all.
#include "portable.cuh"
#include "pieces.cuh"

static const i32 PRECISION = 12;            // frequencies sum to 2^12
static const u32 LEAST_STATE = 1 << 16;
static const i32 MOST = 17;                 // the largest number of particles that has a distribution of its own
static const i32 ROWS = 312, CODES = 170;   // entries of the distributions of 1 to MOST: where symbols begin, how often each is
static const i32 SHORT = 6, SHORT_ROW = 8, LONG_ROW = 24;   // rows of numbers up to SHORT and above, filled up with 2^12
static const i32 UNEVEN = 4, SIZES = 8;     // cells of the model at each level: by the neighbours, by the number of particles
static const i32 CELLS = 32;                // of both
static const i32 NODE = 26;                 // numbers of a cell of the tree, at most
static const i32 EVENTS = 64;               // no particle takes more coded numbers: it is halved once for each bit of its key
static const i64 MOST_IN_BLOCK = 32768;     // counted in 16 bits

static const i32 BRANCH = 1 << DIMENSIONS, FACES = 2 * DIMENSIONS;
static const u32 CHILDREN = (1u << BRANCH) - 1;
static const u32 PLAIN = 1u << 31;   // of an event: bits as they are

// Of a cell of the tree: its first particle, its first child, which children go on and which have particles, the cells beside
// it (low, high, axis by axis; 0 for an empty one, which cell 0 is), and the numbers of particles: in PARTS + 1 of the whole,
// in PARTS + 2p and 2p + 1 of the halves of part p, so from PARTS + BRANCH on of the children.
enum { AT, FIRST, GO_ON, FILLED, BESIDE, PARTS = BESIDE + FACES, SIZE_OF = PARTS + 1, INSIDE = PARTS + BRANCH };

// The first entry of the distribution of n particles, among beginnings and among numbers.
DEVICE i32 row_of(i32 n) { return n <= SHORT ? (n - 1) * SHORT_ROW : SHORT * SHORT_ROW + (n - 1 - SHORT) * LONG_ROW; }
DEVICE i32 code_of(i32 n) { return (n - 1) * (n + 2) / 2; }

// The class of a number of particles.
DEVICE i32 size_class(u32 n) { return n < 4 ? (i32)n : n < 8 ? 4 : n < 17 ? 5 : n < 64 ? 6 : 7; }

// The last symbol that begins at or before a slot; one comparison of many numbers for a CPU.
DEVICE u32 begun(const u16* row, u16 slot, i32 length)
{
    u16 found = 0;
    for (i32 i = 0; i < length; ++i) found = (u16)(found + (row[i] <= slot));
    return (u32)found - 1;
}

// How many low bits of a number of particles are not in its symbol.
DEVICE i32 bits_below(u32 n) { return n > 16 ? bit_length(n - 1) - 4 : 0; }

// The cells of the model for a level: `poor` and `rich` are the numbers of particles on both sides.
DEVICE i32 cell_of_model(i32 level, u32 n, u32 poor, u32 rich)
{
    const u32 more = UNEVEN * (rich - poor), all = rich + poor + n;
    return (level * UNEVEN + (more >= all) + (more >= 2 * all) + (more >= 3 * all)) * SIZES;
}

DEVICE u32 children_before(u32 mask, i32 child) { return count_bits(mask & ((1u << child) - 1)); }

// The children in the high half along an axis.
DEVICE u32 high_half(i32 axis) { return axis == 0 ? 0xaa & CHILDREN : axis == 1 ? 0xcc & CHILDREN : 0xf0; }

// How many levels the tree of a block has.
DEVICE i32 levels_between(u64 first, u64 bound) { return (bit_length(first ^ bound) + DIMENSIONS - 1) / DIMENSIONS; }

// What is known of the cells of a level: the digits of the first key and of the bound, and where they are.
struct Ends {
    u32 first, bound;
    bool has_first, has_bound;
};

// The cells before a cell along each axis, and how many particles are known on both sides of a part of it.
struct Around {
    const u16* before[DIMENSIONS];   // their PARTS
    u32 beside[FACES];
};

DEVICE Around around(const u16* node, const u16* nodes)
{
    Around known;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        known.before[axis] = nodes + node[BESIDE + 2 * axis] * NODE + PARTS;
        known.beside[2 * axis] = known.before[axis][1];
        known.beside[2 * axis + 1] = nodes[node[BESIDE + 2 * axis + 1] * NODE + SIZE_OF];
    }
    return known;
}

// Beside the cell, and in the halves of the parts before this one along the other axes: of the cell itself where it was halved
// along that axis, of the cell before it at its low end.
DEVICE void known_sides(const Around* known, const u16* own, i32 part, i32 axis, u32* below, u32* above)
{
    *below = known->beside[2 * axis];
    *above = known->beside[2 * axis + 1];
    for (i32 other = 0; other < DIMENSIONS; ++other) {
        if (other == axis) continue;
        const u16* halves = known->before[other] + 2 * part;
        if (other > axis) {
            const i32 bit = 1 << (other - axis - 1);
            halves = (part & bit ? own : known->before[other]) + 2 * (part ^ bit);
        }
        *below += halves[0];
        *above += halves[1];
    }
}

// The numbers of particles in the children of a cell, halved along the last axis first; returns which have particles.
template <class Coder> DEVICE u32 halve(Coder* coder, u16* node, const Around* known, i32 level, Ends ends)
{
    u16* part = node + PARTS;
    coder->enter(node[AT], part[1], level);
    for (i32 axis = DIMENSIONS - 1; axis >= 0; --axis)
        for (i32 p = 1 << (DIMENSIONS - 1 - axis); p < 1 << (DIMENSIONS - axis); ++p) {
            const u32 n = part[p];
            const bool with_first = ends.has_first && p == (i32)((BRANCH | ends.first) >> (axis + 1));
            const bool with_bound = ends.has_bound && p == (i32)((BRANCH | ends.bound) >> (axis + 1));
            u32 low = 0, below, above;
            if (n == 0 || (with_first && (ends.first >> axis & 1))) {
                low = 0;
            } else if (with_bound && !(ends.bound >> axis & 1)) {
                low = n;
            } else if (with_first && n == 1) {
                low = 1;
            } else {
                known_sides(known, part, p, axis, &below, &above);
                low = with_first + coder->low_of(p, n - with_first, with_first, below, above, level);
            }
            part[2 * p] = (u16)low;
            part[2 * p + 1] = (u16)(n - low);
        }
    u32 filled = 0;
    KEEP_LOOP for (i32 c = 0; c < BRANCH; ++c)
        if (part[BRANCH + c] > 0) filled |= 1u << c;
    return filled;
}

// The same for a cell with one particle.
template <class Coder> DEVICE u32 halve_one(Coder* coder, u16* node, const Around* known, i32 level)
{
    u16* part = node + PARTS;
    for (i32 c = 2; c < 2 * BRANCH; ++c) part[c] = 0;
    i32 p = 1;
    for (i32 axis = DIMENSIONS - 1; axis >= 0; --axis) {
        u32 below, above;
        known_sides(known, part, p, axis, &below, &above);
        const u32 low_is_poor = below < above, change = (below ^ above) & (0 - low_is_poor);
        const i32 cell = cell_of_model(level, 1, above ^ change, below ^ change) + 1;
        p = 2 * p + (i32)coder->high_of_one(node[AT], cell, low_is_poor, axis, level);
        part[p] = 1;
    }
    return 1u << (p - BRANCH);
}

// The numbers of particles in the children of all cells of a level.
template <class Coder> DEVICE void divide_cells(Coder* coder, u16* nodes, u32 count, i32 level, u32 first, u32 bound, bool at_bound)
{
    for (u32 i = 1; i <= count; ++i) {
        u16* node = nodes + i * NODE;
        const Around known = around(node, nodes);
        const Ends ends = {first, bound, node[AT] == 0, at_bound && i == count};
        const bool one = node[SIZE_OF] == 1 && !ends.has_first && !ends.has_bound;
        node[FILLED] = (u16)(one ? halve_one(coder, node, &known, level) : halve(coder, node, &known, level, ends));
    }
}

// The children that go on: those with several particles, and those with others beside them. Returns their number.
template <class Coder> DEVICE u32 add_children(Coder* coder, u16* nodes, u32 count, u16* next, i32 level)
{
    u32 children = 0;
    for (u32 i = 1; i <= count; ++i) {
        u16* node = nodes + i * NODE;
        const u32 filled = node[FILLED];
        u32 near = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const u32 high = high_half(axis), low = CHILDREN ^ high;
            const u32 below = nodes[node[BESIDE + 2 * axis] * NODE + FILLED], above = nodes[node[BESIDE + 2 * axis + 1] * NODE + FILLED];
            const i32 step = 1 << axis;
            near |= ((filled | above) & low) << step | ((filled | below) & high) >> step;
        }
        node[FIRST] = (u16)(children + 1);
        u32 at = node[AT], go_on = 0;
        const u64 known = coder->known(at);
        for (u32 rest = filled; rest; rest &= rest - 1) {
            const i32 c = lowest_bit(rest);
            const u32 size = node[INSIDE + c], goes_on = (near >> c & 1) | (size > 1);
            u16* child = next + (children + 1) * NODE;   // the next one takes its place if it does not go on
            child[AT] = (u16)at;
            child[SIZE_OF] = (u16)size;
            coder->reach(at, known, c, level);
            go_on |= goes_on << c;
            children += goes_on;
            at += size;
        }
        node[GO_ON] = (u16)go_on;
    }
    return children;
}

// The child of a cell that goes on, or 0.
DEVICE u32 child_at(const u16* node, i32 c)
{
    const u32 there = node[GO_ON] >> c & 1;
    return (node[FIRST] + children_before(node[GO_ON], c)) & (0 - there);
}

// Which cells are beside the children.
DEVICE void find_beside(const u16* nodes, u32 count, u16* next)
{
    u16* child = next + NODE;
    for (u32 i = 1; i <= count; ++i) {
        const u16* node = nodes + i * NODE;
        for (u32 rest = node[GO_ON]; rest; rest &= rest - 1, child += NODE) {
            const i32 c = lowest_bit(rest);
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                const i32 mirrored = c ^ (1 << axis), out = 2 * axis + (c >> axis & 1);
                child[BESIDE + out] = (u16)child_at(nodes + node[BESIDE + out] * NODE, mirrored);
                child[BESIDE + (out ^ 1)] = (u16)child_at(node, mirrored);
            }
        }
    }
}

// Halves the cells of a block of particles, level by level; `room` is for two levels of `block` + 1 cells each.
template <class Coder> DEVICE void go_through(Coder* coder, u16* room, i64 block, u32 size, u64 first, u64 bound)
{
    u16 *nodes = room, *next = room + (block + 1) * NODE;
    u32 count = 1;
    bool at_bound = true;   // whether the last cell of the level holds the bound
    for (i32 i = 0; i < NODE; ++i) nodes[i] = next[i] = nodes[NODE + i] = 0;
    nodes[NODE + SIZE_OF] = (u16)size;
    for (i32 level = levels_between(first, bound) - 1; level >= 0; --level) {
        const u32 bound_digit = (u32)(bound >> level * DIMENSIONS) & (BRANCH - 1);
        divide_cells(coder, nodes, count, level, (u32)(first >> level * DIMENSIONS) & (BRANCH - 1), bound_digit, at_bound);
        const u32 children = add_children(coder, nodes, count, next, level);
        at_bound = at_bound && count > 0 && (nodes[count * NODE + GO_ON] >> bound_digit & 1);
        find_beside(nodes, count, next);
        u16* done = nodes;
        nodes = next;
        next = done;
        count = children;
    }
    for (u32 i = 1; i <= count; ++i) coder->gather(nodes[i * NODE + AT], nodes[i * NODE + SIZE_OF]);
}

namespace {

// Notes what is to be coded, in the order in which a decoder needs it, from the keys themselves.
struct Notes {
    const u64* key;
    u32* event;    // cell of the model, number of particles, symbol; or PLAIN, how many bits, and these
    u8* left;      // of each particle: how many levels are left, of which all bits follow as they are
    u32 events;
    u32 part[2 * BRANCH];

    DEVICE_METHOD u32 digit_at(u32 at, i32 level) { return (u32)(key[at] >> level * DIMENSIONS) & (BRANCH - 1); }

    DEVICE_METHOD void enter(u32 at, u32 n, i32 level)
    {
        for (i32 c = 0; c < BRANCH; ++c) part[BRANCH + c] = 0;
        for (u32 i = at; i < at + n; ++i) ++part[BRANCH + digit_at(i, level)];
        for (i32 p = BRANCH - 1; p > 0; --p) part[p] = part[2 * p] + part[2 * p + 1];
    }

    DEVICE_METHOD u32 high_of_one(u32 at, i32 cell, u32 low_is_poor, i32 axis, i32 level)
    {
        const u32 high = digit_at(at, level) >> axis & 1;
        event[events++] = (u32)cell << 10 | 1 << 5 | (high ^ low_is_poor);
        return high;
    }

    DEVICE_METHOD u32 low_of(i32 p, u32 n, u32 known, u32 below, u32 above, i32 level)
    {
        const u32 low = part[2 * p] - known, k = below < above ? low : n - low;
        const u32 poor = below < above ? below : above, rich = below < above ? above : below;
        const i32 raw = bits_below(n), cell = cell_of_model(level, n, poor, rich) + size_class(n);
        const u32 size = raw ? ((n - 1) >> raw) + 2 : n;
        const u32 symbol = raw == 0 || k == 0 ? k : k == n ? size : 1 + ((k - 1) >> raw);
        event[events++] = (u32)cell << 10 | size << 5 | symbol;
        if (raw && symbol > 0 && symbol < size) event[events++] = PLAIN | (u32)raw << 16 | ((k - 1) & ((1u << raw) - 1));
        return low;
    }

    DEVICE_METHOD u64 known(u32 at) { return at; }
    DEVICE_METHOD void reach(u32 at, u64, i32, i32 level) { left[at] = (u8)level; }
    DEVICE_METHOD void gather(u32 at, u32 n)
    {
        for (u32 i = at; i < at + n; ++i) left[i] = 0;
    }
};

// Reads coded numbers, and leaves in each key the bits that are known, behind a one.
struct Reader {
    u64* key;
    const u16 *word, *last_word;
    const u16* begin;     // where the symbols of all distributions begin
    const u8* chosen;     // the distribution of each cell of the model
    u32 state;

    DEVICE_METHOD void refill()
    {
        if (state < LEAST_STATE) state = state << 16 | (word < last_word ? *word++ : 0);
    }

    DEVICE_METHOD u32 plain_bits(i32 bits)
    {
        const u32 found = state & ((1u << bits) - 1);
        state >>= bits;
        refill();
        return found;
    }

    DEVICE_METHOD void enter(u32, u32, i32) {}

    DEVICE_METHOD u32 high_of_one(u32, i32 cell, u32 low_is_poor, i32, i32)
    {
        const u32 rest = begin[chosen[cell] * ROWS + 1], slot = state & ((1u << PRECISION) - 1);
        const u32 k = slot >= rest, whole = 0 - k;
        state = ((rest ^ whole) + (whole & ((1u << PRECISION) + 1))) * (state >> PRECISION) + slot - (whole & rest);
        refill();
        return k ^ low_is_poor;
    }

    DEVICE_METHOD u32 low_of(i32, u32 n, u32, u32 below, u32 above, i32 level)
    {
        const bool low_is_poor = below < above;
        const u32 poor = low_is_poor ? below : above, rich = low_is_poor ? above : below;
        const i32 raw = bits_below(n), cell = cell_of_model(level, n, poor, rich) + size_class(n);
        const u32 size = raw ? ((n - 1) >> raw) + 2 : n;
        const u16* row = begin + chosen[cell] * ROWS + row_of((i32)size);
        const u32 slot = state & ((1u << PRECISION) - 1);
        u32 k = size <= SHORT ? begun(row, (u16)slot, SHORT_ROW) : begun(row, (u16)slot, LONG_ROW);
        state = (row[k + 1] - row[k]) * (state >> PRECISION) + slot - row[k];
        refill();
        if (raw && k > 0) {
            k = k == size ? n : 1 + ((k - 1) << raw) + plain_bits(raw);
            k = k < n ? k : n;   // in damaged bytes
        }
        return low_is_poor ? k : n - k;
    }

    DEVICE_METHOD u64 known(u32 at) { return key[at] << DIMENSIONS; }
    DEVICE_METHOD void reach(u32 at, u64 known, i32 child, i32) { key[at] = known | (u64)child; }
    DEVICE_METHOD void gather(u32 at, u32 n)
    {
        for (u32 i = at + 1; i < at + n; ++i) key[i] = key[at];
    }
};

// The remaining bits of all particles but the first, at the end of a slot of words, and the state that holds the first 16.
// Returns where they begin; nullptr where there is no room.
DEVICE u16* write_rest(Notes notes, u32 size, u16* slot, i64 room, u32* state)
{
    i64 total = 0;
    KEEP_LOOP for (u32 i = 1; i < size; ++i) total += notes.left[i] * DIMENSIONS;
    const i64 whole = total > 16 ? (total - 1) / 16 : 0;
    if (whole > room) return nullptr;
    u16 *const begin = slot + room - whole, *to = begin;
    u64 held = 0;
    i32 count = 0;
    bool in_state = true;
    *state = LEAST_STATE;
    for (u32 i = 1; i < size; ++i) {
        u64 rest = notes.key[i];
        for (i32 bits = notes.left[i] * DIMENSIONS; bits > 0;) {
            const i32 taken = bits < 32 ? bits : 32;
            held |= (rest & ((1ULL << taken) - 1)) << count;
            rest >>= taken;
            bits -= taken;
            for (count += taken; count >= 16; count -= 16, held >>= 16) {
                if (in_state) *state |= (u32)(held & 0xffff);
                else *to++ = (u16)held;
                in_state = false;
            }
        }
    }
    if (count > 0 && in_state) *state |= (u32)held;
    else if (count > 0) *to = (u16)held;
    return begin;
}

// The reverse: the bits behind the known ones of each key.
DEVICE void read_rest(Reader* reader, u32 size, u64 first, i32 bits)
{
    const u64 above = bits < 64 ? first >> bits << bits : 0;
    u64 held = reader->state & 0xffff;
    i32 count = 16;
    reader->key[0] = first;
    for (u32 i = 1; i < size; ++i) {
        const i32 known = bit_length(reader->key[i]) - 1;
        u64 rest = 0;
        for (i32 got = 0, left = bits - known; left > 0;) {
            const i32 taken = left < 32 ? left : 32;
            for (; count < taken; count += 16)
                held |= (u64)(reader->word < reader->last_word ? *reader->word++ : 0) << count;
            rest |= (held & ((1ULL << taken) - 1)) << got;
            held >>= taken;
            count -= taken;
            left -= taken;
            got += taken;
        }
        reader->key[i] = above | (reader->key[i] ^ 1ULL << known) << (bits - known) | rest;
    }
}

}   // namespace

// A block of keys, and what is known of it: its first key, and a bound on all.
struct Part {
    i64 begin;
    u32 size;
    u64 first, bound;
};

DEVICE Part part_at(i64 b, i64 n, i64 piece, i64 block, i64 each, const u64* key, i32 key_bits)
{
    const Span at = block_at(b, n, piece, block, each);
    const i64 end = (at.piece + 1) * piece < n ? (at.piece + 1) * piece : n;
    const Part part = {at.begin, (u32)(at.end - at.begin), key[at.begin], at.end < end ? key[at.end] : (1ULL << key_bits) - 1};
    return part;
}

// What is to be coded of a block; each run has scratch of its own.
DEVICE Notes notes_of(Part part, const u64* key, i64 run, i64 block, u16* room, u32* event, u8* left)
{
    Notes notes;
    notes.key = key + part.begin;
    notes.event = event + run * block * EVENTS;
    notes.left = left + run * block;
    notes.events = 0;
    go_through(&notes, room + run * (block + 1) * 2 * NODE, block, part.size, part.first, part.bound);
    return notes;
}

// How often each symbol occurs in every `every`-th block of each piece: each piece has so many runs, each run counts for
// itself, in [cell][number][symbol], to be added up. Keys have `key_bits` bits. The scratch arrays are for two levels of
// cells, for what is noted of a particle, and for how many levels are left of it.
KERNEL(count_symbols)(i64 all_runs, i64 runs, i64 n, i64 piece, i64 block, i64 every, const u64* key SIZE(n), i32 key_bits,
                      u16* room SIZE(all_runs * (block + 1) * 52), u32* event SIZE(all_runs * block * 64),
                      u8* left SIZE(all_runs * block), u32* counts SIZE(all_runs * CEIL(key_bits, D) * 5440))
{
    const i64 each = blocks_of_piece(piece, block), cells = (i64)CELLS * ((key_bits + DIMENSIONS - 1) / DIMENSIONS);
    FOR_EACH(r, all_runs) {
        const i64 p = r / runs, size = (p + 1) * piece < n ? piece : n - p * piece;
        const i64 sampled = (blocks_of_piece(size, block) + every - 1) / every;
        u32* own = counts + r * cells * CODES;
        for (i64 i = 0; i < cells * CODES; ++i) own[i] = 0;
        const i64 end = chunk_begin(r % runs + 1, runs, sampled);
        for (i64 s = chunk_begin(r % runs, runs, sampled); s < end; ++s) {
            const Part part = part_at(p * each + s * every, n, piece, block, each, key, key_bits);
            const Notes notes = notes_of(part, key, r, block, room, event, left);
            for (u32 e = 0; e < notes.events; ++e) {
                const u32 noted = notes.event[e];
                if (noted < PLAIN) ++own[(noted >> 10) * CODES + code_of(noted >> 5 & 31) + (noted & 31)];
            }
        }
    }
}

// The words of each block, at the end of its slot: the coded numbers, then the remaining bits of each particle but the first.
// 16 of these are in the state that the coder begins with. `used` is -1 where the slot is too short. `chosen` says which
// distribution each cell of the model has, for each piece; `symbols` is where those of each distribution begin.
KERNEL(encode_counts)(i64 runs, i64 blocks, i64 n, i64 piece, i64 block, const u64* key SIZE(n), i32 key_bits,
                      const u8* chosen SIZE(CEIL(n, piece) * CEIL(key_bits, D) * 32), const u16* symbols SIZE(256 * 312),
                      u16* room SIZE(runs * (block + 1) * 52), u32* event SIZE(runs * block * 64), u8* left SIZE(runs * block),
                      i64 slot, u16* words SIZE(blocks * slot), i64* used SIZE(blocks))
{
    const i64 each = blocks_of_piece(piece, block), cells = (i64)CELLS * ((key_bits + DIMENSIONS - 1) / DIMENSIONS);
    FOR_EACH(r, runs) {
        const i64 end = chunk_begin(r + 1, runs, blocks);
        for (i64 b = chunk_begin(r, runs, blocks); b < end; ++b) {
            const Part part = part_at(b, n, piece, block, each, key, key_bits);
            const Notes notes = notes_of(part, key, r, block, room, event, left);
            const u8* choice = chosen + b / each * cells;
            u16* const begin = words + b * slot;
            u32 state;
            u16* out = write_rest(notes, part.size, begin, slot, &state);
            bool fits = out != nullptr;
            for (u32 e = notes.events; e-- > 0 && fits;) {
                const u32 noted = notes.event[e];
                if (out - begin < 3) {   // a number takes a word at most, and the last state two
                    fits = false;
                } else if (noted >= PLAIN) {
                    const u32 bits = noted >> 16 & 31;
                    if (state >> (32 - bits)) {
                        *--out = (u16)state;
                        state >>= 16;
                    }
                    state = state << bits | (noted & 0xffff);
                } else {
                    const u16* at = symbols + choice[noted >> 10] * ROWS + row_of(noted >> 5 & 31) + (noted & 31);
                    const u32 from = at[0], share = at[1] - from;
                    if (state >= (u64)share << (32 - PRECISION)) {
                        *--out = (u16)state;
                        state >>= 16;
                    }
                    state = (state / share << PRECISION) + state % share + from;
                }
            }
            fits = fits && out - begin >= 2;
            if (fits) {
                *--out = (u16)state;
                *--out = (u16)(state >> 16);
            }
            used[b] = fits ? begin + slot - out : -1;
        }
    }
}

// The keys of some blocks, each with its first key and a bound on all. As many blocks as `sharing` says, one after the other,
// are of one piece. Keys have at most `key_bits` bits, those of `first` and `bound`, too. Whatever the words, nothing else is
// read or written outside the arrays: damaged words only give wrong keys, which checksums catch.
KERNEL(decode_counts)(i64 runs, i64 blocks, i64 block, const i64* number SIZE(blocks), const i64* begin SIZE(blocks + 1),
                      const u64* first SIZE(blocks), const u64* bound SIZE(blocks), i64 sharing, i32 key_bits,
                      const i64* word_first SIZE(>= 1), const u16* words SIZE(LAST(word_first)),
                      const u8* chosen SIZE(CEIL(word_first - 1, sharing) * CEIL(key_bits, D) * 32),
                      const u16* symbols SIZE(256 * 312), u16* room SIZE(runs * (block + 1) * 52), u64* key SIZE(LAST(begin)))
{
    const i64 cells = (i64)CELLS * ((key_bits + DIMENSIONS - 1) / DIMENSIONS);
    FOR_EACH(r, runs) {
        const i64 end = chunk_begin(r + 1, runs, blocks);
        for (i64 b = chunk_begin(r, runs, blocks); b < end; ++b) {
            const i64 at = number[b];
            const u32 size = (u32)(begin[b + 1] - begin[b]);
            Reader reader;
            reader.key = key + begin[b];
            reader.word = words + word_first[at];
            reader.last_word = words + word_first[at + 1];
            reader.begin = symbols;
            reader.chosen = chosen + at / sharing * cells;
            reader.state = 0;
            reader.refill();
            reader.refill();
            reader.key[0] = 1;
            go_through(&reader, room + r * (block + 1) * 2 * NODE, block, size, first[b], bound[b]);
            read_rest(&reader, size, first[b], levels_between(first[b], bound[b]) * DIMENSIONS);
        }
    }
}
