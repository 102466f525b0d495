// Particles sorted into cells, cells into blocks of 64, and a traversal of every pair of neighbouring blocks once.
//
// Particles are sorted into cells so small that all particles of one cell are friends (side just under b / sqrt(D)).
// So cells are united instead of particles, and at most one link per pair of cells has to be found. Cells form blocks
// of 64 (4 x 4 x 4, or 8 x 8): a block's occupied cells are the bits of one word, and `reach` gives for every cell the
// cells of a neighbouring block can hold a friend. In empty space two words are compared, and nothing is visited.
//
// A block's key holds its coordinates in separate bit fields, x highest. Blocks are sorted by key, so the neighbours
// of successive blocks are found by walking along the same array at a few fixed distances: no hash table, no tree.
#pragma once

#if DIMENSIONS == 3
static const i32 EDGE_BITS = 2;
static const i32 ROWS = 5;   // rows of blocks that lie ahead: (x, y) offsets; the first is the block's own row
#define ROW_OFFSETS {{0, 0}, {0, 1}, {1, -1}, {1, 0}, {1, 1}}
#else
static const i32 EDGE_BITS = 3;
static const i32 ROWS = 2;
#define ROW_OFFSETS {{0}, {1}}
#endif
static const i32 EDGE_MASK = (1 << EDGE_BITS) - 1;
static const i32 LAST = DIMENSIONS - 1;
static const i32 OFFSETS = 1 + 1 + 3 * (ROWS - 1);   // the block itself, its successor, three in each row ahead

// Two blocks at one offset: for each cell of the first, the cells of the second within reach; then all cells of the first
// that reach any, and all cells of the second that are reached by any.
static const i32 REACH_WORDS = 64 + 2, REACHING = 64, REACHED = 65;

DEVICE u64 below_lowest_bit(u64 bits) { return (bits & (0 - bits)) - 1; }

// The first block at or after `target`, searched from `hint` on: it is nearly always a few blocks ahead. Otherwise (at
// the start of a chunk, and where a row wraps around the box) by bisection.
DEVICE i64 seek(const u64* key, i64 n, i64 hint, u64 target)
{
    if (hint == 0 || key[hint - 1] < target) {
        const i64 patience = hint + 8 < n ? hint + 8 : n;
        while (hint < patience && key[hint] < target) ++hint;
        if (hint == n || key[hint] >= target) return hint;
    }
    i64 low = 0, high = n;
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (key[middle] < target) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The neighbours ahead of block k: the existing blocks, their offsets, and whether a pair of particles may be nearer
// through a face of the box.
struct Neighbours {
    i64 block[OFFSETS];
    i32 offset[OFFSETS];
    bool images[OFFSETS];
    i32 count;
};

DEVICE void add_neighbour(Neighbours& found, i64 block, i32 offset, bool images)
{
    found.block[found.count] = block;
    found.offset[found.count] = offset;
    found.images[found.count++] = images;
}

struct Blocks {
    const u64* key;
    i64 count;
    i64 along[DIMENSIONS];
    i32 bits[DIMENSIONS];
    bool closed;   // the last block along an axis is a neighbour of the first
    bool images;   // any pair may be nearer through a face: there are few blocks, or they are not in their places
};

DEVICE Blocks blocks_of(const u64* key, i64 count, const double* periods, const i64* along, const i64* bits, bool closed)
{
    Blocks blocks;
    blocks.key = key;
    blocks.count = count;
    blocks.closed = closed;
    blocks.images = !closed && periods[0] > 0;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        blocks.along[axis] = along[axis];
        blocks.bits[axis] = (i32)bits[axis];
        blocks.images = blocks.images || (closed && along[axis] < 5);
    }
    return blocks;
}

// Whether any of these cells of a block reaches cells of the block at this offset.
DEVICE bool any_reaches(u64 cells, const u64* reach, i32 offset)
{
    return (cells & reach[REACH_WORDS * offset + REACHING]) != 0;
}

// The neighbours in one row that `cells` of block k reach. They are next to each other in the array: at most three.
DEVICE void find_in_row(const Blocks& blocks, i64 k, u64 cells, const u64* reach, i64 z, u64 row, i32 r, bool wrapped,
                        i64& near, Neighbours& found)
{
    const i32 centre = 3 * r;   // the offset straight ahead; the block's own row has only one neighbour, at offset 1
    const bool before = r > 0 && any_reaches(cells, reach, centre - 1), after = any_reaches(cells, reach, centre + 1);
    if (!(before || after || (r > 0 && any_reaches(cells, reach, centre)))) return;
    const i64 last = blocks.along[LAST] - 1;
    const u64 base = row << blocks.bits[LAST], to = base + (u64)(z < last ? z + 1 : z);
    near = r == 0 ? k + 1 : seek(blocks.key, blocks.count, near, base + (u64)(z > 0 ? z - 1 : 0));
    for (i64 m = near; m < blocks.count; ++m) {
        const u64 key = blocks.key[m];
        if (key > to) break;
        const i32 offset = centre + (i32)(key - base) - (i32)z;
        if (any_reaches(cells, reach, offset)) add_neighbour(found, m, offset, wrapped);
    }
    if (!blocks.closed) return;
    if (z == 0 && before) {
        const i64 m = seek(blocks.key, blocks.count, near, base + (u64)last);
        if (m < blocks.count && blocks.key[m] == base + (u64)last) add_neighbour(found, m, centre - 1, true);
    }
    if (z == last && after) {
        const i64 m = seek(blocks.key, blocks.count, near, base);
        if (m < blocks.count && blocks.key[m] == base) add_neighbour(found, m, centre + 1, true);
    }
}

// The neighbours ahead of block k that `cells` of it reach, and the block itself. `near` holds, for each row, where the
// neighbours of a block before were found.
DEVICE void find_ahead(const Blocks& blocks, i64 k, u64 cells, const u64* reach, i64* near, Neighbours& found)
{
    const i32 row_offset[ROWS][LAST] = ROW_OFFSETS;
    i64 at[DIMENSIONS];
    u64 rest = blocks.key[k];
    for (i32 axis = LAST; axis >= 0; --axis) {
        at[axis] = (i64)(rest & ((1ull << blocks.bits[axis]) - 1));
        rest >>= blocks.bits[axis];
    }
    found.count = 0;
    add_neighbour(found, k, 0, blocks.images);
    for (i32 r = 0; r < ROWS; ++r) {
        u64 row = 0;
        bool wrapped = false;
        for (i32 axis = 0; axis < LAST; ++axis) {
            i64 x = at[axis] + row_offset[r][axis];
            if (x < 0 || x >= blocks.along[axis]) {
                wrapped = true;
                x += x < 0 ? blocks.along[axis] : -blocks.along[axis];
            }
            row = row << blocks.bits[axis] | (u64)x;
        }
        if (blocks.closed || !wrapped)
            find_in_row(blocks, k, cells, reach, at[LAST], row, r, wrapped || blocks.images, near[r], found);
    }
}

// Calls `visit.blocks<images>(k, active, m, reach)` for every block k from `begin` to `end`, for itself and every neighbour m
// ahead that the `active` cells of k reach: those that `visit.active_cells(k)` names, as bits. A block without any is skipped.
// reach: REACH_WORDS for each offset, in the order of ROW_OFFSETS and the last axis.
template <class Visitor>
DEVICE void walk(const Blocks& blocks, i64 begin, i64 end, const u64* reach, Visitor& visit)
{
    i64 near[ROWS];
    for (i32 r = 0; r < ROWS; ++r) near[r] = begin;
    Neighbours found;
    for (i64 k = begin; k < end; ++k) {
        const u64 active = visit.active_cells(k);
        if (!active) continue;
        find_ahead(blocks, k, active, reach, near, found);
        for (i32 f = 0; f < found.count; ++f) {
            const u64* of_offset = reach + REACH_WORDS * found.offset[f];
            if (found.images[f]) visit.template blocks<true>(k, active, found.block[f], of_offset);
            else visit.template blocks<false>(k, active, found.block[f], of_offset);
        }
    }
}
