// Friends of friends: which particles hang together through links no longer than b.
//
// Particles are sorted into cells so small that all particles of one cell are friends (side just under b / sqrt(D)).
// So cells, not particles, are united, and at most one link per pair of cells has to be found (`cells.cuh`).
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"

// block_bits: how many bits the block coordinate takes along each axis; last_cell: the highest cell coordinate.
KERNEL(cell_keys)(i64 n, const real* position, const double* origin, const double* cells_per_length,
                  const i64* last_cell, const i64* block_bits, u64* key)
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
KERNEL(start_cells)(i64 cells, const u64* key, const i32* first, const i32* order, u64* cell_key, i32* rank)
{
    FOR_EACH(c, cells) {
        cell_key[c] = key[first[c]];
        rank[c] = order[first[c]];
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
// inside the set, never into another one. Halving the path writes an ancestor over a parent, never over a root.
DEVICE i32 find(i32* parent, i32 c)
{
    for (;;) {
        const i32 p = load_shared(parent + c), above = load_shared(parent + p);
        if (above == p) return p;
        store_shared(parent + c, above);
        c = above;
    }
}

// Only a root is ever given a parent, by the swap; if another thread came first, look again. The root of smaller rank
// stays, so the last root of a group is its cell of smallest rank whatever the order of events.
DEVICE i32 unite(i32* parent, const i32* rank, i32 a, i32 b)
{
    while ((a = find(parent, a)) != (b = find(parent, b))) {
        const i32 low = rank[a] < rank[b] ? a : b, high = low == a ? b : a;
        if (compare_and_swap(parent + high, high, low) == high) return low;
    }
    return a;
}

struct Cells {
    const u64* occupied;     // of each block, which of its 64 cells hold particles
    const i32* first_cell;   // of each block
    const i32* first;        // of each cell, its first particle in `sorted`
    const real* sorted;
    const i32* rank;
    i32* parent;
    i32* open;               // of each cell: 0; 1, in a pair that only trees can decide; above, where its tree is
    const real* box;         // of all trees; null before there are any
};

template <bool images>
DEVICE bool any_friends_among(const Cells& cells, const Space& space, i64 i_begin, i64 i_end, i64 j_begin, i64 j_end)
{
    for (i64 i = i_begin; i < i_end; ++i)
        for (i64 j = j_begin; j < j_end; ++j)
            if (friends<images>(cells.sorted + i * DIMENSIONS, cells.sorted + j * DIMENSIONS, space)) return true;
    return false;
}

// Dense cells. Two cells of a million particles each, a little more than b apart, would take 10^12 comparisons to tell
// apart. Where two dense cells do have friends, a few of their particles nearly always show it. Where these do not, the
// pair is left open, and decided in a second run with trees: the particles of an open cell are then kept in the order of
// a space-filling curve, and every half, quarter, ... of that run has a bounding box. The tree needs no pointers: node 1
// is the whole cell, the children of node i are 2i and 2i+1, and the j-th of 2^level nodes holds particles n j / 2^level
// to n (j+1) / 2^level.
static const i64 DENSE = 64, SAMPLE = 32, LEAF = 16;
static const i32 OPEN = 1, TREE = 2;   // the tree of a cell whose entry in `open` is TREE + t begins at box t

DEVICE i32 tree_depth(i64 n)
{
    i32 depth = 0;
    while (n > LEAF << depth) ++depth;
    return depth;
}

struct Node {
    i64 begin, end;
    real low[DIMENSIONS], high[DIMENSIONS];
};

DEVICE void node_range(const i32* first, i32 cell, i32 index, Node& node)
{
    i32 level = 0;
    while (index >> (level + 1)) ++level;
    const i64 j = index - (1 << level), begin = first[cell], n = first[cell + 1] - begin;
    node.begin = begin + (n * j >> level);
    node.end = begin + (n * (j + 1) >> level);
}

DEVICE void bound_particles(const real* sorted, Node& node)
{
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        real low = sorted[node.begin * DIMENSIONS + axis], high = low;
        for (i64 i = node.begin + 1; i < node.end; ++i) {
            const real x = sorted[i * DIMENSIONS + axis];
            low = x < low ? x : low;
            high = x > high ? x : high;
        }
        node.low[axis] = low;
        node.high[axis] = high;
    }
}

DEVICE Node node_of(const Cells& cells, i32 cell, i32 index)
{
    Node node;
    node_range(cells.first, cell, index, node);
    if (cells.open[cell] < TREE) {
        bound_particles(cells.sorted, node);
    } else {
        const real* box = cells.box + ((i64)cells.open[cell] - TREE + index) * 2 * DIMENSIONS;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            node.low[axis] = box[axis];
            node.high[axis] = box[DIMENSIONS + axis];
        }
    }
    return node;
}

// Whether the boxes are so far apart that no two of their particles are friends. Exact: differences, squares and sums
// are those of the predicate, and rounding never reverses an order, so no pair can come out nearer than its boxes do.
template <bool images> DEVICE bool apart(const Node& p, const Node& q, const Space& space)
{
    double sum = 0;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        const double least = (double)p.low[axis] - (double)q.high[axis], most = (double)p.high[axis] - (double)q.low[axis];
        double gap = least > 0 ? least : most < 0 ? -most : 0;
        if (images) {
            const double period = space.period[axis];
            const double down = least - period > 0 ? least - period : period - most > 0 ? period - most : 0;
            const double up = least + period > 0 ? least + period : -(most + period) > 0 ? -(most + period) : 0;
            gap = down < gap ? down : gap;
            gap = up < gap ? up : gap;
        }
        sum += gap * gap;
    }
    return sum > space.length_squared;
}

template <bool images> DEVICE bool any_friends_in_trees(const Cells& cells, const Space& space, i32 a, i32 b)
{
    // Each step takes one pair off and puts at most two on, one level further down: 2 x 27 levels at the most.
    i32 stack[128], top = 0;
    const i32 depth_a = cells.open[a] < TREE ? 0 : tree_depth(cells.first[a + 1] - cells.first[a]);
    const i32 depth_b = cells.open[b] < TREE ? 0 : tree_depth(cells.first[b + 1] - cells.first[b]);
    stack[top++] = 1;
    stack[top++] = 1;
    while (top) {
        const i32 ib = stack[--top], ia = stack[--top];
        const Node p = node_of(cells, a, ia), q = node_of(cells, b, ib);
        if (apart<images>(p, q, space)) continue;
        const bool leaf_a = ia >> depth_a, leaf_b = ib >> depth_b;
        if (leaf_a && leaf_b) {
            if (any_friends_among<images>(cells, space, p.begin, p.end, q.begin, q.end)) return true;
        } else {
            const bool split_a = leaf_b || (!leaf_a && p.end - p.begin >= q.end - q.begin);
            for (i32 child = 0; child < 2; ++child) {
                stack[top++] = split_a ? 2 * ia + child : ia;
                stack[top++] = split_a ? ib : 2 * ib + child;
            }
        }
    }
    return false;
}

template <bool images> DEVICE bool any_friends(const Cells& cells, const Space& space, i32 a, i32 b)
{
    const i64 i = cells.first[a], j = cells.first[b], n_i = cells.first[a + 1] - i, n_j = cells.first[b + 1] - j;
    if (n_i * n_j <= DENSE * DENSE) return any_friends_among<images>(cells, space, i, i + n_i, j, j + n_j);
    if (cells.box) return any_friends_in_trees<images>(cells, space, a, b);
    const i64 sample_i = n_i < SAMPLE ? n_i : SAMPLE, sample_j = n_j < SAMPLE ? n_j : SAMPLE;
    if (any_friends_among<images>(cells, space, i, i + sample_i, j, j + sample_j)) return true;
    store_shared(cells.open + a, OPEN);   // any thread that writes here writes the same
    store_shared(cells.open + b, OPEN);
    return false;
}

// Keys that put the particles of each dense cell in the order of a space-filling curve through its own bounding box:
// the number of the dense cell, then `bits` bits an axis, interleaved. `start`: where each dense cell's keys begin.
KERNEL(dense_keys)(i64 count, const i32* dense, const i64* start, const i32* first, const real* sorted, i64 bits, u64* key,
                   i32* particle)
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

// Puts the particles of dense cells back in their new order; `to`: the places that they take up.
KERNEL(reorder_dense)(i64 n, const i32* to, const real* in_order, real* sorted)
{
    FOR_EACH(i, n)
        for (i32 axis = 0; axis < DIMENSIONS; ++axis)
            sorted[(i64)to[i] * DIMENSIONS + axis] = in_order[i * DIMENSIONS + axis];
}

KERNEL(bound_dense)(i64 count, const i32* dense, const i32* first, const real* sorted, const i32* open, real* box)
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
DEVICE void link_blocks(const Cells& cells, const Space& space, i64 k, i64 m, const u64* reach)
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
            if (any_friends<images>(cells, space, a, b)) root = unite(cells.parent, cells.rank, a, b);
        }
    }
}

namespace {
struct Linking {
    const Cells& cells;
    const Space& space;

    // With trees, only pairs of open cells are still undecided.
    DEVICE_METHOD bool wants(i64 k) const { return !cells.box || any_open(cells, k); }

    template <bool images> DEVICE_METHOD void blocks(i64 k, i64 m, const u64* reach)
    {
        link_blocks<images>(cells, space, k, m, reach);
    }
};
}

KERNEL(link)(i64 chunks, i64 count, const u64* block_key, const u64* occupied, const i32* first_cell, const i32* first,
             const real* sorted, const double* periods, const i64* blocks_along, const i64* block_bits, const u64* reach,
             i64 closed, double b_squared, i64 with_trees, const real* box, i32* open, const i32* rank, i32* parent)
{
    FOR_EACH_UNEVEN(c, chunks) {
        const Cells cells = {occupied, first_cell, first, sorted, rank, parent, open, with_trees ? box : 0};
        const Space space = space_of(periods, b_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        Linking linking = {cells, space};
        walk(blocks, chunk_begin(c, chunks, count), chunk_begin(c + 1, chunks, count), reach, linking);
    }
}

KERNEL(label_particles)(i64 cells, const i32* first, const i32* order, const i32* rank, i32* parent, i64* label)
{
    FOR_EACH(c, cells) {
        const i64 smallest = rank[find(parent, (i32)c)];
        for (i64 i = first[c]; i < first[c + 1]; ++i) label[order[i]] = smallest;
    }
}
