// Linking only what is alike: friends of friends among particles that carry the same label, and pairs of neighbours that do not.
//
// One walk answers both questions about a decoded snapshot: into which parts each original group has fallen, and which
// particles of several original groups have come too close. The runs of equal labels inside a cell take the part that
// cells have in fof.cu; they are called runs here.
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"
#include "linking.cuh"

// What this adds to `Cells`, whose arrays have an entry for each run here.
struct Runs {
    const i32* of_cell;     // of each cell, its first run
    const i32* label;       // of each run
    const i32* order;       // of each place, the particle
};

namespace {
struct LinkingAlike {
    const Cells& cells;
    const Runs& runs;
    const Space& near;      // alike within this length are linked,
    const Space& far;       // others within this one are found
    i64 most;               // pairs found between a run and a cell; what is left is found the next time
    i64* found_in;          // how many are found of each block; null: not looked for
    i32* pair;              // where they go; null: nothing is linked, and they are only counted
    i64 found;

    DEVICE_METHOD bool wants(i64 k) const
    {
        if (!cells.box) return true;
        for (i32 c = cells.first_cell[k]; c < cells.first_cell[k + 1]; ++c)
            for (i32 r = runs.of_cell[c]; r < runs.of_cell[c + 1]; ++r)
                if (cells.open[r] >= OPEN) return true;
        return false;
    }

    // Returns whether there may be more.
    template <bool images> DEVICE_METHOD bool find_pairs(i32 p, i32 q, i64 until)
    {
        for (i64 i = cells.first[p]; i < cells.first[p + 1]; ++i)
            for (i64 j = cells.first[q]; j < cells.first[q + 1]; ++j) {
                if (!friends<images>(cells.sorted + i * DIMENSIONS, cells.sorted + j * DIMENSIONS, far)) continue;
                if (pair) {
                    const i32 a = runs.order[i], b = runs.order[j];
                    pair[2 * found] = a < b ? a : b;
                    pair[2 * found + 1] = a < b ? b : a;
                }
                if (++found == until) return false;
            }
        return true;
    }

    // The root of run p is known, and given back.
    template <bool images> DEVICE_METHOD i32 two_runs(i32 p, i32 root, i32 q, bool& more, i64 until)
    {
        if (runs.label[p] != runs.label[q]) more = more && find_pairs<images>(p, q, until);
        else if (!pair && find(cells.parent, q) != root && any_friends<images>(cells, near, p, q))
            return unite(cells.parent, cells.rank, p, q);
        return root;
    }

    template <bool images> DEVICE_METHOD void blocks(i64 k, i64 m, const u64* reach)
    {
        const u64 here = cells.occupied[k], there = cells.occupied[m];
        found = pair ? found : 0;
        if (k == m)
            for (i32 c = cells.first_cell[k]; c < cells.first_cell[k + 1]; ++c) within_cell<images>(c);
        if (there & reach[REACHED])
            for (u64 mine = here & reach[REACHING]; mine; mine &= mine - 1) {
                const u64 theirs = there & reach[lowest_bit(mine)];
                if (!theirs) continue;
                const i32 a = cells.first_cell[k] + count_bits(here & below_lowest_bit(mine));
                for (i32 p = runs.of_cell[a]; p < runs.of_cell[a + 1]; ++p) {
                    i32 root = pair ? 0 : find(cells.parent, p);
                    for (u64 rest = theirs; rest; rest &= rest - 1) {
                        const i32 b = cells.first_cell[m] + count_bits(there & below_lowest_bit(rest));
                        bool more = found_in || pair;
                        const i64 until = found + most;
                        for (i32 q = runs.of_cell[b]; q < runs.of_cell[b + 1]; ++q)
                            root = two_runs<images>(p, root, q, more, until);
                    }
                }
            }
        if (found_in) found_in[k] += found;
    }

    // Runs of one cell have different labels.
    template <bool images> DEVICE_METHOD void within_cell(i32 c)
    {
        bool more = found_in || pair;
        const i64 until = found + most;
        for (i32 p = runs.of_cell[c]; p + 1 < runs.of_cell[c + 1]; ++p)
            for (i32 q = p + 1; more && q < runs.of_cell[c + 1]; ++q) more = find_pairs<images>(p, q, until);
    }
};
}

// Unites runs that are alike; counts, for each block, its pairs with itself and those ahead that are not. With trees, only
// pairs of open runs are still undecided, and everything is counted already.
KERNEL(link_alike)(i64 chunks, i64 count, const u64* block_key, const u64* occupied, const i32* first_cell, const i32* first,
                   const real* sorted, const double* periods, const i64* blocks_along, const i64* block_bits, const u64* reach,
                   i64 closed, double near_squared, double far_squared, const i32* of_cell, const i32* label, const i32* order,
                   i64 most, i64 with_trees, const real* box, i32* open, const i32* rank, i32* parent, i64* found)
{
    FOR_EACH_UNEVEN(c, chunks) {
        const Cells cells = {occupied, first_cell, first, sorted, rank, parent, open, with_trees ? box : 0};
        const Runs runs = {of_cell, label, order};
        const Space near = space_of(periods, near_squared), far = space_of(periods, far_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        const i64 begin = chunk_begin(c, chunks, count), end = chunk_begin(c + 1, chunks, count);
        for (i64 k = begin; k < end && !with_trees; ++k) found[k] = 0;
        LinkingAlike linking = {cells, runs, near, far, most, with_trees ? 0 : found, 0, 0};
        walk(blocks, begin, end, reach, linking);
    }
}

// The pairs that were counted, for the blocks that have any, each from its own place on.
KERNEL(place_unlike)(i64 hits, const i64* hit, const i64* start, i64 count, const u64* block_key, const u64* occupied,
                     const i32* first_cell, const i32* first, const real* sorted, const double* periods,
                     const i64* blocks_along, const i64* block_bits, const u64* reach, i64 closed, double far_squared,
                     const i32* of_cell, const i32* label, const i32* order, i64 most, i32* pair)
{
    FOR_EACH(h, hits) {
        const Cells cells = {occupied, first_cell, first, sorted, 0, 0, 0, 0};
        const Runs runs = {of_cell, label, order};
        const Space far = space_of(periods, far_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        LinkingAlike linking = {cells, runs, far, far, most, 0, pair + 2 * start[h], 0};
        walk(blocks, hit[h], hit[h] + 1, reach, linking);
    }
}

// The labels in the order of the cells, and which cells have several.
KERNEL(label_places)(i64 cells, const i32* first, const i32* order, const i32* label, i32* sorted_label, u8* mixed)
{
    FOR_EACH(c, cells) {
        const i32 common = label[order[first[c]]];
        mixed[c] = 0;
        for (i32 i = first[c]; i < first[c + 1]; ++i) {
            sorted_label[i] = label[order[i]];
            if (sorted_label[i] != common) mixed[c] = 1;
        }
    }
}

// How many runs of equal labels each cell has, and then where each of them begins.
KERNEL(count_runs_of_cells)(i64 cells, const i32* first, const i32* sorted_label, i32* runs)
{
    FOR_EACH(c, cells) {
        i32 count = 1;
        for (i32 i = first[c] + 1; i < first[c + 1]; ++i) count += sorted_label[i] != sorted_label[i - 1];
        runs[c] = count;
    }
}

KERNEL(place_runs_of_cells)(i64 cells, const i32* first, const i32* sorted_label, const i32* of_cell, i32* first_of_run,
                            i32* label)
{
    FOR_EACH(c, cells) {
        i32 run = of_cell[c];
        for (i32 i = first[c]; i < first[c + 1]; ++i)
            if (i == first[c] || sorted_label[i] != sorted_label[i - 1]) {
                first_of_run[run] = i;
                label[run++] = sorted_label[i];
            }
    }
}

// The smallest particle of each run, and each particle's part: the smallest particle in it.
KERNEL(start_runs)(i64 runs, const i32* first, const i32* order, i32* rank)
{
    FOR_EACH(r, runs) {
        i32 least = order[first[r]];
        for (i32 i = first[r] + 1; i < first[r + 1]; ++i) least = order[i] < least ? order[i] : least;
        rank[r] = least;
    }
}

KERNEL(label_parts)(i64 runs, const i32* first, const i32* order, const i32* rank, i32* parent, i32* part)
{
    FOR_EACH(r, runs) {
        const i32 smallest = rank[find(parent, (i32)r)];
        for (i32 i = first[r]; i < first[r + 1]; ++i) part[order[i]] = smallest;
    }
}
