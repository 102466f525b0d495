// Friends of friends: which particles hang together through links no longer than b.
//
// Particles are sorted into cells so small that all particles of one cell are friends (side just under b / sqrt(D)).
// So cells, not particles, are united, and at most one link per pair of cells has to be found. Cells come in blocks
// of 64 (4 x 4 x 4, or 8 x 8): a block's occupied cells are the bits of one word, and `reach` tells for every cell which
// cells of a neighbouring block can hold a friend. In empty space two words are compared, and nothing is visited.
//
// A block's key holds its coordinates in separate bit fields, x highest. Blocks are sorted by key, so the neighbours
// of successive blocks are found by walking along the same array at a few fixed distances: no hash table, no tree.
#include "portable.cuh"

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

// The geometry, as doubles, one entry an axis: where cells start, cells per length, period (0: open), half of it
// (infinite: open).
DEVICE double origin(const double* geometry, i32 axis) { return geometry[axis]; }
DEVICE double cells_per_length(const double* geometry, i32 axis) { return geometry[DIMENSIONS + axis]; }
DEVICE double period(const double* geometry, i32 axis) { return geometry[2 * DIMENSIONS + axis]; }
DEVICE double half_period(const double* geometry, i32 axis) { return geometry[3 * DIMENSIONS + axis]; }

// THE PREDICATE, stated once: two particles are friends when d*d <= b*b, each operation in double precision, the
// squares added axis by axis, the nearest periodic image taken. Cells only save work: they never decide.
DEVICE bool friends(const real* p, const real* q, const double* geometry, double b_squared)
{
    double sum = 0;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        double d = (double)p[axis] - (double)q[axis];
        const double half = half_period(geometry, axis);
        if (d > half) d -= period(geometry, axis);
        else if (d < -half) d += period(geometry, axis);
        sum += d * d;
    }
    return sum <= b_squared;
}

// block_bits: how many bits the block coordinate takes along each axis; last_cell: the highest cell coordinate.
KERNEL(cell_keys)(i64 n, const real* position, const double* geometry, const i64* last_cell, const i64* block_bits,
                  u64* key)
{
    FOR_EACH(i, n) {
        u64 block = 0, within = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double x = (double)position[i * DIMENSIONS + axis] - origin(geometry, axis);
            i64 cell = (i64)(x * cells_per_length(geometry, axis));
            cell = cell > last_cell[axis] ? last_cell[axis] : cell;   // rounding up at the far edge
            block = block << block_bits[axis] | (u64)(cell >> EDGE_BITS);
            within = within << EDGE_BITS | (u64)(cell & EDGE_MASK);
        }
        key[i] = block << 6 | within;
    }
}

KERNEL(gather_positions)(i64 n, const real* position, const i32* order, real* sorted)
{
    FOR_EACH(i, n)
        for (i32 axis = 0; axis < DIMENSIONS; ++axis)
            sorted[i * DIMENSIONS + axis] = position[(i64)order[i] * DIMENSIONS + axis];
}

// A cell's rank is the smallest particle index in it: the first one, as the sort is stable.
KERNEL(start_cells)(i64 cells, const u64* key, const i32* first, const i32* order, u64* cell_key, i32* rank, i32* parent)
{
    FOR_EACH(c, cells) {
        cell_key[c] = key[first[c]];
        rank[c] = order[first[c]];
        parent[c] = (i32)c;
    }
}

KERNEL(start_blocks)(i64 blocks, const u64* cell_key, const i32* first_cell, u64* block_key, u64* occupied)
{
    FOR_EACH(k, blocks) {
        u64 bits = 0;
        for (i32 c = first_cell[k]; c < first_cell[k + 1]; ++c) bits |= 1ull << (cell_key[c] & 63);
        block_key[k] = cell_key[first_cell[k]] >> 6;
        occupied[k] = bits;
    }
}

// Race: parent[] is read while other threads unite. A parent always has a smaller rank than its child, so there is no
// cycle, and it only ever changes to another member of the same set. A stale read makes find() stop early or walk on
// inside the set, never into another one; halving the path writes an ancestor over an ancestor.
DEVICE i32 find(i32* parent, i32 c)
{
    i32 p = load_shared(parent + c);
    while (p != c) {
        const i32 above = load_shared(parent + p);
        if (above != p) store_shared(parent + c, above);
        c = p;
        p = above;
    }
    return c;
}

// Only a root is ever given a parent, by the swap; if another thread came first, look again. The root of smaller rank
// stays, so the last root of a group is its cell of smallest rank whatever the order of events.
DEVICE void unite(i32* parent, const i32* rank, i32 a, i32 b)
{
    while ((a = find(parent, a)) != (b = find(parent, b))) {
        const i32 low = rank[a] < rank[b] ? a : b, high = low == a ? b : a;
        if (compare_and_swap(parent + high, high, low) == high) return;
    }
}

DEVICE bool any_friends(const real* sorted, const i32* first, i32 a, i32 b, const double* geometry, double b_squared)
{
    for (i64 i = first[a]; i < first[a + 1]; ++i)
        for (i64 j = first[b]; j < first[b + 1]; ++j)
            if (friends(sorted + i * DIMENSIONS, sorted + j * DIMENSIONS, geometry, b_squared)) return true;
    return false;
}

// The first block at or after `target`, looked for from `hint` outwards: the answer is nearly always a step away.
DEVICE i64 seek(const u64* key, i64 n, i64 hint, u64 target)
{
    i64 low = hint, high = hint, step = 1;
    if (hint < n && key[hint] < target) {
        while (high < n && key[high] < target) { low = high + 1; high += step; step *= 2; }
        high = high < n ? high : n;
    } else {
        while (low > 0 && key[low - 1] >= target) { high = low - 1; low -= step; step *= 2; if (low < 0) low = 0; }
    }
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (key[middle] < target) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Unites the cells of block k with their friends in block m; reach: one word per cell of k, its reachable cells of m.
DEVICE void link_blocks(i64 k, i64 m, const u64* reach, const u64* occupied, const i32* first_cell, const i32* first,
                        const real* sorted, const double* geometry, double b_squared, const i32* rank, i32* parent)
{
    i32 a = first_cell[k];
    for (u64 mine = occupied[k]; mine; mine &= mine - 1, ++a) {
        for (u64 theirs = occupied[m] & reach[lowest_bit(mine)]; theirs; theirs &= theirs - 1) {
            const u64 before = (theirs & (0 - theirs)) - 1;
            const i32 b = first_cell[m] + count_bits(occupied[m] & before);
            if (find(parent, a) == find(parent, b)) continue;
            if (any_friends(sorted, first, a, b, geometry, b_squared)) unite(parent, rank, a, b);
        }
    }
}

// reach: 64 words for the block itself, then 64 for each neighbour ahead, in the order of ROW_OFFSETS and the last axis.
// blocks_along: the number of blocks along each axis.
KERNEL(link)(i64 chunks, i64 blocks, const u64* block_key, const u64* occupied, const i32* first_cell, const i32* first,
             const real* sorted, const double* geometry, const i64* blocks_along, const i64* block_bits, const u64* reach,
             double b_squared, const i32* rank, i32* parent)
{
    FOR_EACH_UNEVEN(c, chunks) {
        const i32 row_offset[ROWS][LAST] = ROW_OFFSETS;
        const i64 begin = chunk_begin(c, chunks, blocks), end = chunk_begin(c + 1, chunks, blocks);
        i64 near[ROWS];
        for (i32 r = 0; r < ROWS; ++r) near[r] = begin;
        for (i64 k = begin; k < end; ++k) {
            i64 at[DIMENSIONS];
            u64 rest = block_key[k];
            for (i32 axis = LAST; axis >= 0; --axis) {
                at[axis] = (i64)(rest & ((1ull << block_bits[axis]) - 1));
                rest >>= block_bits[axis];
            }
            link_blocks(k, k, reach, occupied, first_cell, first, sorted, geometry, b_squared, rank, parent);
            const u64* ahead = reach + 64;
            for (i32 r = 0; r < ROWS; ++r) {
                const u64* of_row = ahead;
                ahead += 64 * (r == 0 ? 1 : 3);
                u64 row = 0;
                bool exists = true;
                for (i32 axis = 0; axis < LAST; ++axis) {
                    i64 x = at[axis] + row_offset[r][axis];
                    if (x < 0 || x >= blocks_along[axis]) {
                        exists = exists && period(geometry, axis) > 0;
                        x += x < 0 ? blocks_along[axis] : -blocks_along[axis];
                    }
                    row = row << block_bits[axis] | (u64)x;
                }
                if (!exists) continue;
                row <<= block_bits[LAST];
                for (i64 z = at[LAST] + (r == 0 ? 1 : -1); z <= at[LAST] + 1; ++z, of_row += 64) {
                    i64 to = z;
                    if (z < 0 || z >= blocks_along[LAST]) {
                        if (!(period(geometry, LAST) > 0)) continue;
                        to += z < 0 ? blocks_along[LAST] : -blocks_along[LAST];
                    }
                    const u64 target = row | (u64)to;
                    near[r] = seek(block_key, blocks, near[r], target);
                    if (near[r] < blocks && block_key[near[r]] == target)
                        link_blocks(k, near[r], of_row, occupied, first_cell, first, sorted, geometry, b_squared, rank,
                                    parent);
                }
            }
        }
    }
}

KERNEL(label_particles)(i64 cells, const i32* first, const i32* order, const i32* rank, i32* parent, i64* label)
{
    FOR_EACH(c, cells) {
        const i64 smallest = rank[find(parent, (i32)c)];
        for (i64 i = first[c]; i < first[c + 1]; ++i) label[order[i]] = smallest;
    }
}
