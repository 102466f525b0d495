// Uniting cells whose particles are linked: union-find, and the test whether two cells hold a link.
//
// The union-find is that of ECL-CC (Jaiganesh and Burtscher, 2018): hooking by compare-and-swap, with path halving. Cells
// in which all particles are friends are the dense boxes of FDBSCAN-DenseBox (Prokopenko et al., 2023).
#pragma once

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

// `Links` says which pairs of places are linked, and has a `space` whose length no linked pair exceeds.
template <bool images, class Links>
DEVICE bool any_linked_among(const Links& links, i64 i_begin, i64 i_end, i64 j_begin, i64 j_end)
{
    for (i64 i = i_begin; i < i_end; ++i)
        for (i64 j = j_begin; j < j_end; ++j)
            if (links.template linked<images>(i, j)) return true;
    return false;
}

namespace {
// The links of friends of friends.
struct Friends {
    const real* sorted;
    const Space& space;

    template <bool images> DEVICE_METHOD bool linked(i64 i, i64 j) const
    {
        return friends<images>(sorted + i * DIMENSIONS, sorted + j * DIMENSIONS, space);
    }
};
}

// Dense cells. Two cells of a million particles each, a little more than b apart, would take 10^12 comparisons. If two
// dense cells hold friends, comparing a few of their particles nearly always finds a pair. If it finds none, the pair is
// left open, and decided in a second run with trees: the particles of an open cell are then kept in the order of
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

// Makes a box (lower ends, then upper ends) contain another one.
DEVICE void widen(real* box, const real* other)
{
    for (i32 axis = 0, high = DIMENSIONS; axis < DIMENSIONS; ++axis, ++high) {
        box[axis] = box[axis] < other[axis] ? box[axis] : other[axis];
        box[high] = box[high] > other[high] ? box[high] : other[high];
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

// The squared distance of two boxes. Exact: differences, squares and sums are those of the predicate, and rounding never
// reverses an order, so no pair of their particles can come out nearer than the boxes do.
template <bool images> DEVICE double gap_squared(const Node& p, const Node& q, const Space& space)
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
    return sum;
}

// Whether the boxes are so far apart that no two of their particles are friends.
template <bool images> DEVICE bool apart(const Node& p, const Node& q, const Space& space)
{
    return gap_squared<images>(p, q, space) > space.length_squared;
}

template <bool images, class Links> DEVICE bool any_linked_in_trees(const Cells& cells, const Links& links, i32 a, i32 b)
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
        if (apart<images>(p, q, links.space)) continue;
        const bool leaf_a = ia >> depth_a, leaf_b = ib >> depth_b;
        if (leaf_a && leaf_b) {
            if (any_linked_among<images>(links, p.begin, p.end, q.begin, q.end)) return true;
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

template <bool images, class Links> DEVICE bool any_linked(const Cells& cells, const Links& links, i32 a, i32 b)
{
    const i64 i = cells.first[a], j = cells.first[b], n_i = cells.first[a + 1] - i, n_j = cells.first[b + 1] - j;
    if (n_i * n_j <= DENSE * DENSE) return any_linked_among<images>(links, i, i + n_i, j, j + n_j);
    if (cells.box) return any_linked_in_trees<images>(cells, links, a, b);
    const i64 sample_i = n_i < SAMPLE ? n_i : SAMPLE, sample_j = n_j < SAMPLE ? n_j : SAMPLE;
    if (any_linked_among<images>(links, i, i + sample_i, j, j + sample_j)) return true;
    store_shared(cells.open + a, OPEN);   // any thread that writes here writes the same
    store_shared(cells.open + b, OPEN);
    return false;
}
