// Friends of friends: the groups of particles connected by links no longer than b.
//
// Particles are sorted into cells so small that all particles of one cell are friends (side just under b / sqrt(D)).
// So cells are united instead of particles, and at most one link per pair of cells has to be found (`cells.cuh`).
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"
#include "linking.cuh"

// block_bits: how many bits the block coordinate takes along each axis; last_cell: the highest cell coordinate.
KERNEL(cell_keys)(i64 n, const real* position SIZE(n * D), const double* origin SIZE(D),
                  const double* cells_per_length SIZE(D), const i64* last_cell SIZE(D), const i64* block_bits SIZE(D),
                  u64* key SIZE(n))
{
    FOR_EACH(i, n) {
        u64 block = 0, within = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double x = (double)position[i * DIMENSIONS + axis] - origin[axis];
            i64 cell = (i64)(x * cells_per_length[axis]);
            cell = cell > last_cell[axis] ? last_cell[axis] : cell;   // rounding up at the far edge
            block = block << block_bits[axis] | (u64)(cell >> EDGE_BITS);
            within = within << EDGE_BITS | (u64)(cell & EDGE_MASK);
        }
        key[i] = block << 6 | within;
    }
}

// A cell's rank is the smallest particle index in it: the first one, as the sort is stable.
KERNEL(start_cells)(i64 cells, const u64* key SIZE(LAST(first)), const i32* first SIZE(cells + 1),
                    const i32* order SIZE(key), u64* cell_key SIZE(cells), i32* rank SIZE(cells))
{
    FOR_EACH(c, cells) {
        cell_key[c] = key[first[c]];
        rank[c] = order[first[c]];
    }
}

KERNEL(start_blocks)(i64 blocks, const u64* cell_key SIZE(LAST(first_cell)), const i32* first_cell SIZE(blocks + 1),
                     u64* block_key SIZE(blocks), u64* occupied SIZE(blocks))
{
    FOR_EACH(k, blocks) {
        u64 bits = 0;
        for (i32 c = first_cell[k]; c < first_cell[k + 1]; ++c) bits |= 1ull << (cell_key[c] & 63);
        block_key[k] = cell_key[first_cell[k]] >> 6;
        occupied[k] = bits;
    }
}

// Keys that put the particles of each dense cell in the order of a space-filling curve through its own bounding box:
// the number of the dense cell, then `bits` bits an axis, interleaved. `start`: where each dense cell's keys begin.
KERNEL(dense_keys)(i64 count, const i32* dense SIZE(count), const i64* start SIZE(count),
                   const i32* first SIZE(>= count + 1), const real* sorted SIZE(>= particle * D), i64 bits,
                   u64* key SIZE(>= LAST(start)), i32* particle SIZE(key))
{
    FOR_EACH_UNEVEN(d, count) {
        Node cell;
        cell.begin = first[dense[d]];
        cell.end = first[dense[d] + 1];
        bound_particles(sorted, cell);
        double scale[DIMENSIONS];
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double length = (double)cell.high[axis] - (double)cell.low[axis];
            scale[axis] = length > 0 ? ((1ll << bits) - 0.5) / length : 0;
        }
        for (i64 i = cell.begin; i < cell.end; ++i) {
            u64 code = (u64)d;
            u64 at[DIMENSIONS];
            for (i32 axis = 0; axis < DIMENSIONS; ++axis)
                at[axis] = (u64)(((double)sorted[i * DIMENSIONS + axis] - (double)cell.low[axis]) * scale[axis]);
            for (i64 bit = bits - 1; bit >= 0; --bit)
                for (i32 axis = 0; axis < DIMENSIONS; ++axis) code = code << 1 | (at[axis] >> bit & 1);
            key[start[d] + i - cell.begin] = code;
            particle[start[d] + i - cell.begin] = (i32)i;
        }
    }
}

// Writes the particles of dense cells in their new order to the places `to`.
KERNEL(reorder_dense)(i64 n, const i32* to SIZE(n), const real* in_order SIZE(n * D), real* sorted SIZE(>= n * D))
{
    FOR_EACH(i, n)
        for (i32 axis = 0; axis < DIMENSIONS; ++axis)
            sorted[(i64)to[i] * DIMENSIONS + axis] = in_order[i * DIMENSIONS + axis];
}

KERNEL(bound_dense)(i64 count, const i32* dense SIZE(count), const i32* first SIZE(>= count + 1),
                    const real* sorted SIZE(>= D), const i32* open SIZE(>= first - 1), real* box SIZE(>= 4 * D * count))
{
    FOR_EACH_UNEVEN(d, count) {
        const i32 cell = dense[d];
        const i32 leaves = 1 << tree_depth(first[cell + 1] - first[cell]);
        real* root = box + ((i64)open[cell] - TREE) * 2 * DIMENSIONS;
        for (i32 index = 2 * leaves - 1; index > 0; --index) {
            real* own = root + (i64)index * 2 * DIMENSIONS;
            const real *left = root + (i64)index * 4 * DIMENSIONS, *right = left + 2 * DIMENSIONS;
            Node node;
            if (index >= leaves) {
                node_range(first, cell, index, node);
                bound_particles(sorted, node);
            }
            for (i32 axis = 0, high = DIMENSIONS; axis < DIMENSIONS; ++axis, ++high) {
                own[axis] = index >= leaves ? node.low[axis] : left[axis] < right[axis] ? left[axis] : right[axis];
                own[high] = index >= leaves ? node.high[axis] : left[high] > right[high] ? left[high] : right[high];
            }
        }
    }
}

DEVICE bool any_open(const Cells& cells, i64 k)
{
    for (i32 c = cells.first_cell[k]; c < cells.first_cell[k + 1]; ++c)
        if (cells.open[c] >= OPEN) return true;
    return false;
}

// Unites the cells of block k with their friends in block m.
template <bool images>
DEVICE void link_blocks(const Cells& cells, const Friends& links, i64 k, i64 m, const u64* reach)
{
    const u64 here = cells.occupied[k], there = cells.occupied[m];
    if (!(there & reach[REACHED])) return;
    for (u64 mine = here & reach[REACHING]; mine; mine &= mine - 1) {
        u64 theirs = there & reach[lowest_bit(mine)];
        if (!theirs) continue;
        const i32 a = cells.first_cell[k] + count_bits(here & below_lowest_bit(mine));
        i32 root = find(cells.parent, a);
        for (; theirs; theirs &= theirs - 1) {
            const i32 b = cells.first_cell[m] + count_bits(there & below_lowest_bit(theirs));
            if (find(cells.parent, b) == root) continue;
            if (any_linked<images>(cells, links, a, b)) root = unite(cells.parent, cells.rank, a, b);
        }
    }
}

namespace {
struct Linking {
    const Cells& cells;
    const Friends& links;

    // With trees, only pairs of open cells are still undecided.
    DEVICE_METHOD bool wants(i64 k) const { return !cells.box || any_open(cells, k); }

    template <bool images> DEVICE_METHOD void blocks(i64 k, i64 m, const u64* reach)
    {
        link_blocks<images>(cells, links, k, m, reach);
    }
};
}

KERNEL(link)(i64 chunks, i64 count, const u64* block_key SIZE(count), const u64* occupied SIZE(count),
             const i32* first_cell SIZE(count + 1), const i32* first SIZE(LAST(first_cell) + 1),
             const real* sorted SIZE(LAST(first) * D), const double* periods SIZE(D), const i64* blocks_along SIZE(D),
             const i64* block_bits SIZE(D), const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed, double length_squared,
             i64 with_trees, const real* box SIZE(>= 2 * D if with_trees else 0), i32* open SIZE(first - 1),
             const i32* rank SIZE(first - 1), i32* parent SIZE(first - 1))
{
    FOR_EACH_UNEVEN(c, chunks) {
        const Cells cells = {occupied, first_cell, first, sorted, rank, parent, open, with_trees ? box : 0};
        const Space space = space_of(periods, length_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        const Friends links = {sorted, space};
        Linking linking = {cells, links};
        walk(blocks, chunk_begin(c, chunks, count), chunk_begin(c + 1, chunks, count), reach, linking);
    }
}

KERNEL(label_particles)(i64 cells, const i32* first SIZE(cells + 1), const i32* order SIZE(LAST(first)),
                        const i32* rank SIZE(cells), i32* parent SIZE(cells), i64* label SIZE(order))
{
    FOR_EACH(c, cells) {
        const i64 smallest = rank[find(parent, (i32)c)];
        for (i64 i = first[c]; i < first[c + 1]; ++i) label[order[i]] = smallest;
    }
}
