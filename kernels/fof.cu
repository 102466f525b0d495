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

// Dense cells are few but may hold most particles, so no work item goes through a whole one: several pieces or branches of
// a cell are bounded side by side, then joined. `start` always says where the items of each dense cell begin, and the end.
static const i64 PIECE = 1024;   // particles

KERNEL(bound_pieces)(i64 pieces, i64 count, const i64* start SIZE(count + 1), const i32* dense SIZE(count),
                     const i32* first SIZE(>= count + 1), const real* sorted SIZE(>= D), real* box SIZE(2 * D * pieces))
{
    FOR_EACH_UNEVEN(p, pieces) {
        const i64 d = run_of(start, count, p);
        const i32 cell = dense[d];
        Node piece;
        piece.begin = first[cell] + (p - start[d]) * PIECE;
        piece.end = piece.begin + PIECE < first[cell + 1] ? piece.begin + PIECE : first[cell + 1];
        bound_particles(sorted, piece);
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            box[p * 2 * DIMENSIONS + axis] = piece.low[axis];
            box[p * 2 * DIMENSIONS + DIMENSIONS + axis] = piece.high[axis];
        }
    }
}

KERNEL(join_pieces)(i64 count, const i64* start SIZE(count + 1), const real* piece SIZE(2 * D * LAST(start)),
                    real* box SIZE(2 * D * count))
{
    FOR_EACH_UNEVEN(d, count) {
        real* own = box + d * 2 * DIMENSIONS;
        for (i32 side = 0; side < 2 * DIMENSIONS; ++side) own[side] = piece[start[d] * 2 * DIMENSIONS + side];
        for (i64 p = start[d] + 1; p < start[d + 1]; ++p) widen(own, piece + p * 2 * DIMENSIONS);
    }
}

// Keys that put the particles of each dense cell in the order of a space-filling curve through its own bounding box:
// the number of the dense cell, then `bits` bits an axis, interleaved.
KERNEL(dense_keys)(i64 chunks, i64 n, i64 count, const i64* start SIZE(count + 1), const i32* dense SIZE(count),
                   const i32* first SIZE(>= count + 1), const real* sorted SIZE(>= n * D), const real* box SIZE(2 * D * count),
                   i64 bits, u64* key SIZE(n), i32* particle SIZE(n))
{
    FOR_EACH(c, chunks) {
        const i64 end = chunk_begin(c + 1, chunks, n);
        i64 i = chunk_begin(c, chunks, n);
        for (i64 d = run_of(start, count, i); i < end; ++d) {
            const real* low = box + d * 2 * DIMENSIONS;
            const i64 stop = start[d + 1] < end ? start[d + 1] : end, ahead = first[dense[d]] - start[d];
            double lowest[DIMENSIONS], scale[DIMENSIONS];
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                const double length = (double)low[DIMENSIONS + axis] - (double)low[axis];
                lowest[axis] = low[axis];
                scale[axis] = length > 0 ? ((1ll << bits) - 0.5) / length : 0;
            }
            for (; i < stop; ++i) {
                const i64 place = ahead + i;
                u64 code = (u64)d;
                u64 at[DIMENSIONS];
                for (i32 axis = 0; axis < DIMENSIONS; ++axis)
                    at[axis] = (u64)(((double)sorted[place * DIMENSIONS + axis] - lowest[axis]) * scale[axis]);
                for (i64 bit = bits - 1; bit >= 0; --bit)
                    for (i32 axis = 0; axis < DIMENSIONS; ++axis) code = code << 1 | (at[axis] >> bit & 1);
                key[i] = code;
                particle[i] = (i32)place;
            }
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

// The boxes of trees: of the leaves and nodes below each branch, then of the nodes above the branches. A small tree is one
// branch. `leaves` is the number of leaves of a tree, a power of two.
static const i64 BRANCH = 64;   // leaves

DEVICE void bound_node(real* root, i64 index)
{
    real* own = root + index * 2 * DIMENSIONS;
    for (i32 side = 0; side < 2 * DIMENSIONS; ++side) own[side] = root[index * 4 * DIMENSIONS + side];
    widen(own, root + (2 * index + 1) * 2 * DIMENSIONS);
}

KERNEL(tree_leaves)(i64 count, const i64* size SIZE(count), i64* leaves SIZE(count))
{
    FOR_EACH(d, count) leaves[d] = 1ll << tree_depth(size[d]);
}

KERNEL(bound_branches)(i64 branches, i64 count, const i64* start SIZE(count + 1), const i64* leaves SIZE(count),
                       const i32* dense SIZE(count), const i32* first SIZE(>= count + 1), const real* sorted SIZE(>= D),
                       const i32* open SIZE(>= first - 1), real* box SIZE(>= 4 * D * count))
{
    FOR_EACH_UNEVEN(b, branches) {
        const i64 d = run_of(start, count, b), below = leaves[d] < BRANCH ? leaves[d] : BRANCH;
        const i32 cell = dense[d];
        real* root = box + ((i64)open[cell] - TREE) * 2 * DIMENSIONS;
        i64 from = leaves[d] + (b - start[d]) * below;
        for (i64 index = from; index < from + below; ++index) {
            Node leaf;
            node_range(first, cell, (i32)index, leaf);
            bound_particles(sorted, leaf);
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                root[index * 2 * DIMENSIONS + axis] = leaf.low[axis];
                root[index * 2 * DIMENSIONS + DIMENSIONS + axis] = leaf.high[axis];
            }
        }
        for (i64 level = below / 2; level > 0; level /= 2) {
            from /= 2;
            for (i64 index = from; index < from + level; ++index) bound_node(root, index);
        }
    }
}

KERNEL(bound_trunks)(i64 count, const i64* leaves SIZE(count), const i32* dense SIZE(count),
                     const i32* open SIZE(>= count), real* box SIZE(>= 4 * D * count))
{
    FOR_EACH_UNEVEN(d, count)
        for (i64 index = leaves[d] / BRANCH - 1; index > 0; --index)
            bound_node(box + ((i64)open[dense[d]] - TREE) * 2 * DIMENSIONS, index);
}

DEVICE bool any_open(const Cells& cells, i64 k)
{
    for (i32 c = cells.first_cell[k]; c < cells.first_cell[k + 1]; ++c)
        if (cells.open[c] >= OPEN) return true;
    return false;
}

namespace {
// Unites cells with their friends; of all pairs of cells those whose earlier cell is in a range.
struct Linking {
    const Cells& cells;
    const Friends& links;
    i64 from, to;   // the range

    // With trees, only pairs of open cells are still undecided.
    DEVICE_METHOD u64 active_cells(i64 k) const
    {
        const i64 first = cells.first_cell[k], last = cells.first_cell[k + 1];
        if (cells.box && !any_open(cells, k)) return 0;
        u64 own = cells.occupied[k];
        for (i64 c = first; c < from; ++c) own &= own - 1;
        for (i64 c = to; c < last; ++c) own ^= 1ull << (63 - leading_zeros(own));
        return own;
    }

    template <bool images> DEVICE_METHOD void blocks(i64 k, u64 active, i64 m, const u64* reach)
    {
        const u64 here = cells.occupied[k], there = cells.occupied[m];
        if (!(there & reach[REACHED])) return;
        for (u64 mine = active & reach[REACHING]; mine; mine &= mine - 1) {
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
};
}

// A chunk is a run of cells: those of a block that is full of particles are most of the work, so several chunks share it.
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
        const i64 n = first_cell[count], from = chunk_begin(c, chunks, n), to = chunk_begin(c + 1, chunks, n);
        Linking linking = {cells, links, from, to};
        if (from < to)
            walk(blocks, run_of(first_cell, count, from), run_of(first_cell, count, to - 1) + 1, reach, linking);
    }
}

KERNEL(label_particles)(i64 chunks, i64 n, i64 cells, const i32* first SIZE(cells + 1), const i32* order SIZE(n),
                        const i32* rank SIZE(cells), i32* parent SIZE(cells), i64* label SIZE(n))
{
    FOR_EACH(c, chunks) {
        const i64 end = chunk_begin(c + 1, chunks, n);
        i64 i = chunk_begin(c, chunks, n);
        for (i64 cell = run_of(first, cells, i); i < end; ++cell) {
            const i64 smallest = rank[find(parent, (i32)cell)], stop = first[cell + 1] < end ? first[cell + 1] : end;
            for (; i < stop; ++i) label[order[i]] = smallest;
        }
    }
}
