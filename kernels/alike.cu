// Linking only what is alike: friends of friends among particles that carry the same label, and pairs of neighbours that do not.
//
// One walk answers both questions about a decoded snapshot: into which parts each original group has split, and which pairs of
// particles from different original groups are too close. Most cells have one label and are linked as in fof.cu. In a cell with
// several labels, the particles are sorted by label, and each label's run of particles is linked as if it were a cell of its
// own. Arrays of cells hold these runs after all cells.
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"
#include "linking.cuh"

static const i32 MIXED = -2;   // in place of a cell's label: it has several
static const i32 END = -3;     // in place of a run's label: no run, but the place where the one before ends

// The label of each cell.
KERNEL(name_cells)(i64 cells, const i32* first SIZE(cells + 1), const i32* order SIZE(LAST(first)),
                   const i32* label SIZE(order), i32* of_cell SIZE(cells))
{
    FOR_EACH(c, cells) {
        i32 common = label[order[first[c]]];
        for (i32 i = first[c] + 1; i < first[c + 1] && common != MIXED; ++i)
            if (label[order[i]] != common) common = MIXED;
        of_cell[c] = common;
    }
}

// The smallest particle of each cell or run; particles of mixed cells are sorted by label, no longer by index.
KERNEL(start_runs)(i64 runs, const i32* run SIZE(runs), const i32* first SIZE(>= runs + 1), const i32* order SIZE(>= runs),
                   i32* rank SIZE(first))
{
    FOR_EACH(r, runs) {
        i32 least = order[first[run[r]]];
        for (i32 i = first[run[r]] + 1; i < first[run[r] + 1]; ++i) least = order[i] < least ? order[i] : least;
        rank[run[r]] = least;
    }
}

// What this adds to `Cells`, whose arrays have an entry for each cell and then for each run of a mixed cell.
struct Labels {
    const i32* of;      // of each cell, or run
    const i32* runs;    // of each mixed cell, its first run; the others follow up to END
    const i32* order;   // of each place, the particle
};

namespace {
struct LinkingAlike {
    const Cells& cells;
    const Labels& labels;
    const Space& near;      // alike within this length are linked,
    const Space& far;       // others within this one are found
    i64 most;               // pairs found between two cells; what is left is found the next time
    i64* found_in;          // how many are found of each block; null: not looked for
    i32* pair;              // where they go; null: nothing is linked, and they are only counted
    i64 found;

    DEVICE_METHOD bool wants(i64 k) const
    {
        if (!cells.box) return true;
        for (i32 c = cells.first_cell[k]; c < cells.first_cell[k + 1]; ++c) {
            if (cells.open[c] >= OPEN) return true;
            for (i32 r = labels.of[c] == MIXED ? labels.runs[c] : -1; r >= 0 && labels.of[r] != END; ++r)
                if (cells.open[r] >= OPEN) return true;
        }
        return false;
    }

    template <bool images> DEVICE_METHOD void find_pairs(i32 p, i32 q, i64 until)
    {
        if (!found_in && !pair) return;
        const i64 n_p = cells.first[p + 1] - cells.first[p], n_q = cells.first[q + 1] - cells.first[q];
        const bool dense = n_p * n_q > DENSE * DENSE;
        Node all;   // of q; where both are dense, most particles of p are far from all of them
        if (dense) {
            all.begin = cells.first[q];
            all.end = cells.first[q + 1];
            bound_particles(cells.sorted, all);
        }
        for (i64 i = cells.first[p]; i < cells.first[p + 1]; ++i) {
            if (dense && found < until && is_apart<images>(i, all)) continue;
            for (i64 j = cells.first[q]; j < cells.first[q + 1]; ++j) {
                if (!friends<images>(cells.sorted + i * DIMENSIONS, cells.sorted + j * DIMENSIONS, far)) continue;
                if (found >= until) return;
                if (pair) {
                    const i32 a = labels.order[i], b = labels.order[j];
                    pair[2 * found] = a < b ? a : b;
                    pair[2 * found + 1] = a < b ? b : a;
                }
                ++found;
            }
        }
    }

    template <bool images> DEVICE_METHOD bool is_apart(i64 i, const Node& all) const
    {
        Node one;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) one.low[axis] = one.high[axis] = cells.sorted[i * DIMENSIONS + axis];
        return apart<images>(one, all, far);
    }

    template <bool images> DEVICE_METHOD void two_runs(i32 p, i32 q, i64 until)
    {
        if (labels.of[p] != labels.of[q]) find_pairs<images>(p, q, until);
        else if (!pair && find(cells.parent, p) != find(cells.parent, q) && any_friends<images>(cells, near, p, q))
            unite(cells.parent, cells.rank, p, q);
    }

    DEVICE_METHOD i32 first_run(i32 c) const { return labels.of[c] == MIXED ? labels.runs[c] : c; }
    DEVICE_METHOD i32 next_run(i32 c, i32 r) const { return labels.of[c] != MIXED || labels.of[r + 1] == END ? -1 : r + 1; }

    // Two cells of which one is mixed.
    template <bool images> DEVICE_METHOD void all_runs(i32 a, i32 b)
    {
        const i64 until = found + most;
        for (i32 p = first_run(a); p >= 0; p = next_run(a, p))
            for (i32 q = first_run(b); q >= 0; q = next_run(b, q)) two_runs<images>(p, q, until);
    }

    template <bool images> DEVICE_METHOD void within_cell(i32 c)
    {
        const i64 until = found + most;
        for (i32 p = labels.runs[c]; labels.of[p] != END; ++p)
            for (i32 q = p + 1; labels.of[q] != END; ++q) find_pairs<images>(p, q, until);
    }

    template <bool images> DEVICE_METHOD void blocks(i64 k, i64 m, const u64* reach)
    {
        const u64 here = cells.occupied[k], there = cells.occupied[m];
        found = pair ? found : 0;
        if (k == m)
            for (i32 c = cells.first_cell[k]; c < cells.first_cell[k + 1]; ++c)
                if (labels.of[c] == MIXED) within_cell<images>(c);
        if (there & reach[REACHED])
            for (u64 mine = here & reach[REACHING]; mine; mine &= mine - 1) {
                u64 theirs = there & reach[lowest_bit(mine)];
                if (!theirs) continue;
                const i32 a = cells.first_cell[k] + count_bits(here & below_lowest_bit(mine)), label = labels.of[a];
                i32 root = pair ? 0 : find(cells.parent, a);
                for (; theirs; theirs &= theirs - 1) {
                    const i32 b = cells.first_cell[m] + count_bits(there & below_lowest_bit(theirs));
                    if (label == MIXED || labels.of[b] == MIXED) all_runs<images>(a, b);
                    else if (label != labels.of[b]) find_pairs<images>(a, b, found + most);
                    else if (!pair && find(cells.parent, b) != root && any_friends<images>(cells, near, a, b))
                        root = unite(cells.parent, cells.rank, a, b);
                }
            }
        if (found_in) found_in[k] += found;
    }
};
}

// Unites what is alike; counts, for each block, its pairs with itself and those ahead that are not. With trees, only pairs of
// open cells are still undecided, and everything is counted already.
KERNEL(link_alike)(i64 chunks, i64 count, const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                   const i32* first_cell SIZE(count + 1), const i32* first SIZE(label), const real* sorted SIZE(order * D),
                   const double* periods SIZE(D), const i64* blocks_along SIZE(D), const i64* block_bits SIZE(D),
                   const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed, double near_squared, double far_squared,
                   const i32* label SIZE(>= count), const i32* runs SIZE(>= count), const i32* order SIZE(>= count),
                   i64 most, i64 with_trees, const real* box SIZE(>= 2 * D if with_trees else 0), i32* open SIZE(label),
                   const i32* rank SIZE(label), i32* parent SIZE(label), i64* found SIZE(count))
{
    FOR_EACH_UNEVEN(c, chunks) {
        const Cells cells = {occupied, first_cell, first, sorted, rank, parent, open, with_trees ? box : 0};
        const Labels labels = {label, runs, order};
        const Space near = space_of(periods, near_squared), far = space_of(periods, far_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        const i64 begin = chunk_begin(c, chunks, count), end = chunk_begin(c + 1, chunks, count);
        for (i64 k = begin; k < end && !with_trees; ++k) found[k] = 0;
        LinkingAlike linking = {cells, labels, near, far, most, with_trees ? 0 : found, 0, 0};
        walk(blocks, begin, end, reach, linking);
    }
}

// The pairs that were counted, for the blocks that have any, each from its own place on.
KERNEL(place_unlike)(i64 hits, const i64* hit SIZE(hits), const i64* start SIZE(hits), i64 count,
                     const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                     const i32* first_cell SIZE(count + 1), const i32* first SIZE(label),
                     const real* sorted SIZE(order * D), const double* periods SIZE(D), const i64* blocks_along SIZE(D),
                     const i64* block_bits SIZE(D), const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed,
                     double far_squared, const i32* label SIZE(>= count), const i32* runs SIZE(>= count),
                     const i32* order SIZE(>= count), i64 most, i32* pair SIZE(>= 2 * LAST(start)))
{
    FOR_EACH(h, hits) {
        const Cells cells = {occupied, first_cell, first, sorted, 0, 0, 0, 0};
        const Labels labels = {label, runs, order};
        const Space far = space_of(periods, far_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        LinkingAlike linking = {cells, labels, far, far, most, 0, pair + 2 * start[h], 0};
        walk(blocks, hit[h], hit[h] + 1, reach, linking);
    }
}

// Each particle's part: the smallest particle in it.
KERNEL(label_parts)(i64 runs, const i32* first SIZE(runs), const i32* order SIZE(part), const i32* label SIZE(runs),
                    const i32* rank SIZE(runs), i32* parent SIZE(runs), i32* part SIZE(order))
{
    FOR_EACH(r, runs) {
        if (label[r] == MIXED || label[r] == END) continue;
        const i32 smallest = rank[find(parent, (i32)r)];
        for (i32 i = first[r]; i < first[r + 1]; ++i) part[order[i]] = smallest;
    }
}
