// Friends of friends among particles of equal label, and label conflicts: pairs of neighbours of unequal label.
//
// A single neighbour search of a decoded snapshot finds the connected parts of each original group and the pairs of
// particles of different original groups that are too near. Most cells have one label and are treated as in fof.cu. The
// particles of a mixed cell are sorted by label; each run of equal labels is treated as a cell, and its entry follows those
// of all cells.
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"
#include "linking.cuh"
#include "margin.cuh"
#include "unlike.cuh"

static const i32 END = -3;     // in place of a run's label: no run, but the end of the previous one

// The smallest particle index of each run; particles of mixed cells are sorted by label, no longer by index.
KERNEL(start_runs)(i64 runs, const i32* run SIZE(runs), const i32* first SIZE(>= runs + 1), const i32* order SIZE(>= runs),
                   i32* rank SIZE(first))
{
    FOR_EACH(r, runs) {
        i32 least = order[first[run[r]]];
        for (i32 i = first[run[r]] + 1; i < first[run[r] + 1]; ++i) least = order[i] < least ? order[i] : least;
        rank[run[r]] = least;
    }
}

// Labels in addition to `Cells`; its arrays have one entry for each cell, then one for each run of a mixed cell.
struct Labels {
    const i32* of;      // the label of each cell or run
    const i32* runs;    // the first run of each mixed cell; the others follow up to END
};

namespace {
// Particles of equal label are linked, and particles of unequal label conflict, as the margin says.
struct Pairs {
    const real* sorted;
    const i32* order;
    const Margin& margin;
    const Space& space;   // of the longest distance at which pairs are linked or conflict

    template <bool images> DEVICE_METHOD double cost(i64 i, i64 j) const
    {
        return distance_squared<images>(sorted + i * DIMENSIONS, sorted + j * DIMENSIONS, space);
    }

    template <bool images> DEVICE_METHOD bool linked(i64 i, i64 j) const
    {
        const double squared = cost<images>(i, j);   // most pairs are far apart: their numbers are not read
        return squared <= margin.far_squared && margin.linked(squared, order[i], order[j]);
    }

    template <bool images> DEVICE_METHOD bool holds(i64 i, i64 j) const
    {
        const double squared = cost<images>(i, j);
        return squared <= margin.far_squared && margin.conflict(squared, order[i], order[j]);
    }

    DEVICE_METHOD bool counts(i32) const { return true; }
    DEVICE_METHOD i64 all_listed() const { return ALL_CONFLICTS; }
    DEVICE_METHOD bool closest_alone() const { return false; }
};

struct LinkingAlike {
    const Cells& cells;
    const Labels& labels;
    const Pairs& pairs;
    Unlike<Pairs>& unlike;
    const u64* unsettled;   // of each block, the cells with a label whose particles are not known to be connected
    i64* found_in;          // the number of conflicts of each block; null: do not search for them

    DEVICE_METHOD u64 active_cells(i64 k) const
    {
        if (!cells.box) return unlike.wanted[k] ? cells.occupied[k] : 0;
        for (i32 c = cells.first_cell[k]; c < cells.first_cell[k + 1]; ++c) {
            if (cells.open[c] >= OPEN) return cells.occupied[k];
            for (i32 r = labels.of[c] == MIXED ? labels.runs[c] : -1; r >= 0 && labels.of[r] != END; ++r)
                if (cells.open[r] >= OPEN) return cells.occupied[k];
        }
        return 0;
    }

    template <bool images> DEVICE_METHOD void two_runs(i32 p, i32 q)
    {
        if (labels.of[p] == labels.of[q] && find(cells.parent, p) != find(cells.parent, q)
            && any_linked<images>(cells, pairs, p, q))
            unite(cells.parent, cells.rank, p, q);
    }

    DEVICE_METHOD i32 first_run(i32 c) const { return labels.of[c] == MIXED ? labels.runs[c] : c; }
    DEVICE_METHOD i32 next_run(i32 c, i32 r) const { return labels.of[c] != MIXED || labels.of[r + 1] == END ? -1 : r + 1; }

    // Two cells, at least one of them mixed.
    template <bool images> DEVICE_METHOD void all_runs(i32 a, i32 b)
    {
        for (i32 p = first_run(a); p >= 0; p = next_run(a, p))
            for (i32 q = first_run(b); q >= 0; q = next_run(b, q)) two_runs<images>(p, q);
    }

    template <bool images> DEVICE_METHOD void blocks(i64 k, u64 active, i64 m, const u64* reach)
    {
        const u64 here = cells.occupied[k], there = cells.occupied[m];
        const i64 before = unlike.found;
        if (k == m && found_in) unlike.template within<images>(k);
        if (there & reach[REACHED])
            for (u64 mine = active & reach[REACHING]; mine; mine &= mine - 1) {
                const u64 bit = mine & (0 - mine);
                const bool suspect = (unlike.suspect[k] & bit) != 0;
                u64 theirs = there & reach[lowest_bit(mine)];
                if (!suspect) theirs &= unsettled[k] & bit ? unsettled[m] | unlike.suspect[m] : unlike.suspect[m];
                if (!theirs) continue;
                const i32 a = cells.first_cell[k] + count_bits(here & below_lowest_bit(mine)), label = labels.of[a];
                i32 root = find(cells.parent, a);
                for (; theirs; theirs &= theirs - 1) {
                    const i32 b = cells.first_cell[m] + count_bits(there & below_lowest_bit(theirs));
                    if (label != MIXED && label == labels.of[b]) {
                        if (find(cells.parent, b) != root && any_linked<images>(cells, pairs, a, b))
                            root = unite(cells.parent, cells.rank, a, b);
                        continue;
                    }
                    if (label == MIXED || labels.of[b] == MIXED) all_runs<images>(a, b);
                    if (found_in && (suspect || (unlike.suspect[m] & theirs & (0 - theirs))))
                        unlike.template cells<images>(a, b);
                }
            }
        if (found_in) found_in[k] += unlike.found - before;
    }
};
}

// Of each block, the cells with a label that is not settled, and those with a particle that may be in a conflict.
KERNEL(mark_doubtful)(i64 count, const u64* occupied SIZE(count), const i32* first_cell SIZE(count + 1),
                      const i32* first SIZE(>= count + 1), const i32* order SIZE(>= count),
                      const i32* sorted_label SIZE(order), const u8* moved SIZE(order), const u8* settled SIZE(order),
                      u64* unsettled SIZE(count), u64* suspect SIZE(count))
{
    FOR_EACH(k, count) {
        u64 rest = occupied[k], loose = 0, doubtful = 0;
        for (i32 c = first_cell[k]; c < first_cell[k + 1]; ++c, rest &= rest - 1) {
            const u64 bit = rest & (0 - rest);
            for (i32 s = first[c]; s < first[c + 1]; ++s) {
                if (!settled[sorted_label[s]]) loose |= bit;
                if (moved[order[s]]) doubtful |= bit;
            }
        }
        unsettled[k] = loose;
        suspect[k] = doubtful;
    }
}

// Unites linked particles of equal label. Counts the conflicts of each block within it and with later blocks, and of each
// chunk (`listed`), and lists them as far as there is room for a chunk. With trees, only pairs of open cells are still
// undecided, and all conflicts have been counted.
KERNEL(link_alike)(i64 chunks, const i64* first_block SIZE(chunks + 1), i64 count, const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                   const i32* first_cell SIZE(count + 1), const i32* first SIZE(label), const real* sorted SIZE(order * D),
                   const double* periods SIZE(D), const i64* blocks_along SIZE(D), const i64* block_bits SIZE(D),
                   const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed, double near_squared, double length_squared,
                   double far_squared, i64 exempting, const real* original SIZE(order * D if exempting else 0), i64 loose,
                   const i32* label SIZE(>= count), const i32* runs SIZE(>= count), const i32* order SIZE(>= count),
                   const i32* sorted_label SIZE(order), const u64* unsettled SIZE(count), const u64* suspect SIZE(count),
                   const u8* wanted SIZE(count), i64 with_trees, const real* box SIZE(>= 2 * D if with_trees else 0),
                   i32* open SIZE(label), const i32* rank SIZE(label), i32* parent SIZE(label), i64* found SIZE(count),
                   i64* listed SIZE(chunks), i32* pair SIZE(2 * (6 * count + 16 * chunks)), u8* crowd SIZE(label),
                   u8* used SIZE(order))
{
    FOR_EACH_UNEVEN(c, chunks) {
        const Cells cells = {occupied, first_cell, first, sorted, rank, parent, open, with_trees ? box : 0};
        const Labels labels = {label, runs};
        const Space space = space_of(periods, far_squared);
        const real* exempt = exempting ? original : 0;
        const Margin margin = {near_squared, length_squared, far_squared, exempt, space, loose != 0, used};
        const Pairs pairs = {sorted, order, margin, space};
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        const i64 begin = first_block[c], end = first_block[c + 1];
        for (i64 k = begin; k < end && !with_trees; ++k) found[k] = 0;
        const i64 start = room_begin(c, first_block), room = room_begin(c + 1, first_block) - start;
        Unlike<Pairs> unlike = {occupied, occupied, suspect, wanted, first_cell, first, sorted, order, sorted_label, label,
                                pairs, pair + 2 * start, room, 0, 0, crowd};
        LinkingAlike linking = {cells, labels, pairs, unlike, unsettled, with_trees ? 0 : found};
        walk(blocks, begin, end, reach, linking);
        if (!with_trees) listed[c] = unlike.found;
    }
}

// Writes the counted conflicts of each block that has any, beginning at `start`.
KERNEL(place_unlike)(i64 hits, const i64* hit SIZE(hits), const i64* start SIZE(hits), i64 count,
                     const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                     const i32* first_cell SIZE(count + 1), const i32* first SIZE(label),
                     const real* sorted SIZE(order * D), const double* periods SIZE(D), const i64* blocks_along SIZE(D),
                     const i64* block_bits SIZE(D), const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed,
                     double near_squared, double length_squared, double far_squared, i64 exempting,
                     const real* original SIZE(order * D if exempting else 0), const i32* label SIZE(>= count),
                     const i32* order SIZE(>= count), const i32* sorted_label SIZE(order), const u64* suspect SIZE(count),
                     i32* pair SIZE(>= 2 * LAST(start)))
{
    FOR_EACH(h, hits) {
        const Space space = space_of(periods, far_squared);
        const Margin margin = {near_squared, length_squared, far_squared, exempting ? original : 0, space, false, 0};
        const Pairs pairs = {sorted, order, margin, space};
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        Unlike<Pairs> unlike = {occupied, occupied, suspect, 0, first_cell, first, sorted, order, sorted_label, label,
                                pairs, pair + 2 * start[h], EVERY, 0, 0, 0};
        walk(blocks, hit[h], hit[h] + 1, reach, unlike);
    }
}

// The part of each particle, named by the smallest particle index in it. Of labels that are settled, there is one part; the
// label is then the smallest index itself.
KERNEL(label_parts)(i64 runs, const i32* first SIZE(runs), const i32* order SIZE(part), const i32* label SIZE(runs),
                    i64 doubting, const u8* settled SIZE(order if doubting else 0), const i32* rank SIZE(runs),
                    i32* parent SIZE(runs), i32* part SIZE(order))
{
    FOR_EACH(r, runs) {
        if (label[r] == MIXED || label[r] == END) continue;
        const i32 smallest = doubting && settled[label[r]] ? label[r] : rank[find(parent, (i32)r)];
        for (i32 i = first[r]; i < first[r + 1]; ++i) part[order[i]] = smallest;
    }
}
