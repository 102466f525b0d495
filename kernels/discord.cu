// Discords: pairs of friends that another grouping of the same particles puts into different groups.
//
// Two groupings are equal when neither has a friend pair that the other splits. So these pairs are enough to turn one grouping
// into the other. Particles of groups that both groupings agree on have no label. Cells and blocks without labels are skipped,
// and so are pairs of cells that have the same single label.
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"

static const i32 UNLABELLED = -1;   // no pair with such a particle is a discord
static const i32 MIXED = -2;        // of a cell: its particles have several labels

// A group is torn when its members have several of the other labels. A group's own label is its smallest particle index.
// Race: all threads that write to the same place write the same.
KERNEL(find_torn)(i64 n, const i64* label SIZE(n), const i32* other SIZE(n), u8* torn SIZE(n))
{
    FOR_EACH(i, n)
        if (other[i] != other[label[i]]) torn[label[i]] = 1;
}

// The other labels, of torn groups alone.
KERNEL(label_torn)(i64 n, const i64* label SIZE(n), const i32* other SIZE(n), const u8* torn SIZE(n), i32* of_torn SIZE(n))
{
    FOR_EACH(i, n) of_torn[i] = torn[label[i]] ? other[i] : UNLABELLED;
}

// The labels in the order of the cells, and for each cell the label of all its particles, if it is one.
KERNEL(label_cells)(i64 cells, const i32* first SIZE(cells + 1), const i32* order SIZE(LAST(first)),
                    const i32* label SIZE(order), i32* sorted_label SIZE(order), i32* cell_label SIZE(cells))
{
    FOR_EACH(c, cells) {
        const i32 common = label[order[first[c]]];
        bool mixed = false;
        for (i32 i = first[c]; i < first[c + 1]; ++i) {
            sorted_label[i] = label[order[i]];
            mixed = mixed || sorted_label[i] != common;
        }
        cell_label[c] = mixed ? MIXED : common;
    }
}

// Of each block, which of its cells hold labelled particles: bits as in `occupied`.
KERNEL(label_blocks)(i64 blocks, const i32* first_cell SIZE(blocks + 1), const i32* cell_label SIZE(LAST(first_cell)),
                     const u64* occupied SIZE(blocks), u64* labelled SIZE(blocks))
{
    FOR_EACH(k, blocks) {
        u64 rest = occupied[k];
        labelled[k] = 0;
        for (i32 c = first_cell[k]; c < first_cell[k + 1]; ++c, rest &= rest - 1)
            if (cell_label[c] != UNLABELLED) labelled[k] |= 1ull << lowest_bit(rest);
    }
}

namespace {
// Where the pairs of one block go; without `pair` they are only counted.
struct Discords {
    const u64* occupied;
    const u64* labelled;
    const i32* first_cell;
    const i32* first;
    const real* sorted;
    const i32* order;
    const i32* sorted_label;
    const i32* cell_label;
    const Space& space;
    i64 most;        // pairs of one pair of cells; the others are left for the next time
    i32* pair;
    i64 found;

    DEVICE_METHOD bool wants(i64 k) const { return labelled[k]; }

    // Returns whether there may be more.
    DEVICE_METHOD bool add(i32 i, i32 j, i64 until)
    {
        if (pair) {
            const bool in_order = order[i] < order[j];
            pair[2 * found] = order[in_order ? i : j];
            pair[2 * found + 1] = order[in_order ? j : i];
        }
        return ++found < until;
    }

    template <bool images> DEVICE_METHOD void cells(i32 a, i32 b)
    {
        if (cell_label[a] == cell_label[b] && cell_label[a] != MIXED) return;
        if (cell_label[a] != MIXED) {   // rows of the mixed cell, most of which agree with the other cell
            const i32 swapped = a;
            a = b;
            b = swapped;
        }
        const i64 until = found + most;
        for (i32 i = first[a]; i < first[a + 1]; ++i) {
            if (sorted_label[i] == cell_label[b] || sorted_label[i] == UNLABELLED) continue;
            for (i32 j = a == b ? i + 1 : first[b]; j < first[b + 1]; ++j)
                if (sorted_label[i] != sorted_label[j] && sorted_label[j] != UNLABELLED
                    && friends<images>(sorted + (i64)i * DIMENSIONS, sorted + (i64)j * DIMENSIONS, space)
                    && !add(i, j, until))
                    return;
        }
    }

    template <bool images> DEVICE_METHOD void blocks(i64 k, i64 m, const u64* reach)
    {
        const u64 here = labelled[k], there = labelled[m];
        if (k == m)
            for (i32 c = first_cell[k]; c < first_cell[k + 1]; ++c)
                if (cell_label[c] == MIXED) cells<images>(c, c);
        if (!(there & reach[REACHED])) return;
        for (u64 mine = here & reach[REACHING]; mine; mine &= mine - 1) {
            const i32 a = first_cell[k] + count_bits(occupied[k] & below_lowest_bit(mine));
            for (u64 theirs = there & reach[lowest_bit(mine)]; theirs; theirs &= theirs - 1)
                cells<images>(a, first_cell[m] + count_bits(occupied[m] & below_lowest_bit(theirs)));
        }
    }
};
}

namespace {
// The same, counted block by block.
struct CountedDiscords : Discords {
    i64* found_in;

    template <bool images> DEVICE_METHOD void blocks(i64 k, i64 m, const u64* reach)
    {
        found = 0;
        Discords::blocks<images>(k, m, reach);
        found_in[k] += found;
    }
};
}

// How many pairs each block has with itself and those ahead.
KERNEL(count_discords)(i64 chunks, i64 count, const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                       const i32* first_cell SIZE(count + 1), const i32* first SIZE(LAST(first_cell) + 1),
                       const real* sorted SIZE(order * D), const double* periods SIZE(D), const i64* blocks_along SIZE(D),
                       const i64* block_bits SIZE(D), const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed,
                       double length_squared, const i32* order SIZE(LAST(first)), const i32* sorted_label SIZE(order),
                       const i32* cell_label SIZE(LAST(first_cell)), const u64* labelled SIZE(count), i64 most,
                       i64* found SIZE(count))
{
    FOR_EACH_UNEVEN(c, chunks) {
        const Space space = space_of(periods, length_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        const i64 begin = chunk_begin(c, chunks, count), end = chunk_begin(c + 1, chunks, count);
        for (i64 k = begin; k < end; ++k) found[k] = 0;
        CountedDiscords counted = {{occupied, labelled, first_cell, first, sorted, order, sorted_label, cell_label, space, most, 0, 0},
                                   found};
        walk(blocks, begin, end, reach, counted);
    }
}

// The pairs of the blocks that have any, each from its own place on.
KERNEL(place_discords)(i64 hits, const i64* hit SIZE(hits), const i64* start SIZE(hits), i64 count,
                       const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                       const i32* first_cell SIZE(count + 1), const i32* first SIZE(LAST(first_cell) + 1),
                       const real* sorted SIZE(order * D), const double* periods SIZE(D), const i64* blocks_along SIZE(D),
                       const i64* block_bits SIZE(D), const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed,
                       double length_squared, const i32* order SIZE(LAST(first)), const i32* sorted_label SIZE(order),
                       const i32* cell_label SIZE(LAST(first_cell)), const u64* labelled SIZE(count), i64 most,
                       i32* pair SIZE(>= 2 * LAST(start)))
{
    FOR_EACH(h, hits) {
        const Space space = space_of(periods, length_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        Discords placed = {occupied, labelled, first_cell, first, sorted, order, sorted_label, cell_label, space, most,
                           pair + 2 * start[h], 0};
        walk(blocks, hit[h], hit[h] + 1, reach, placed);
    }
}
