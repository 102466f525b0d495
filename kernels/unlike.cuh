// Pairs of neighbours whose labels differ, cell by cell.
//
// Two cells may have quadratically many of them. Up to so many (`all_listed`) are all listed; of more, for each particle of
// either cell the closest one in the other cell: a list that is linear in the particles, depends on no order, and leaves no
// particle out. Where labels are parts that are to be joined, the closest pair of two cells with one label each is enough.
// Two cells with more than CROWD pairs of particles are only marked here, and searched by crowds.cu.
#pragma once

static const i32 MIXED = -2;        // in place of a cell's label: the cell has several labels
static const i64 ALL_CONFLICTS = 64, ALL_LOST = 256;   // label conflicts and lost links of two cells that are all listed
static const i64 CROWD = 32768;     // pairs of particles of two cells that are compared one by one
static const i64 EVERY = 1ll << 62;  // room for pairs that were counted before
static const i64 ROOM = 6, SPARE = 16;   // room for pairs of each block, and of each chunk of blocks

// Where the pairs of a chunk begin in a list with room for all chunks; chunk c begins at block `first_block[c]`.
DEVICE i64 room_begin(i64 c, const i64* first_block) { return ROOM * first_block[c] + SPARE * c; }

namespace {
// `Pairs` says which pairs are listed (`holds`), how far apart they count (`cost`), whether a label takes part (`counts`),
// how many pairs of two cells are all listed, and whether of those between the same two labels the closest is enough
// (`closest_alone`). The first `room` of them are written, and all are counted.
template <class Pairs> struct Unlike {
    const u64* occupied;
    const u64* labelled;      // of each block, the cells with labels that take part,
    const u64* suspect;       // and those of which every pair that holds has at least one
    const u8* wanted;         // blocks to search: those with such cells, and before them; null: all
    const i32* first_cell;
    const i32* first;
    const real* sorted;
    const i32* order;
    const i32* sorted_label;
    const i32* cell_label;
    const Pairs& pairs;
    i32* pair;
    i64 room, found;
    u8* crowded;              // set to 1 where not all pairs are listed; may be null
    u8* crowd;                // of each cell: set to 1 if it is in a pair for crowds.cu; may be null

    DEVICE_METHOD u64 active_cells(i64 k) const { return !wanted || wanted[k] ? labelled[k] : 0; }

    DEVICE_METHOD void add(i64 i, i64 j)
    {
        if (found < room) {
            const bool in_order = order[i] < order[j];
            pair[2 * found] = order[in_order ? i : j];
            pair[2 * found + 1] = order[in_order ? j : i];
        }
        ++found;
    }

    template <bool images> DEVICE_METHOD bool unlike(i64 i, i64 j) const
    {
        return sorted_label[i] != sorted_label[j] && pairs.counts(sorted_label[j]) && pairs.template holds<images>(i, j);
    }

    // The box of a cell's particles if comparing all pairs would be much work: most are then far from it.
    DEVICE_METHOD bool box_of(i32 a, i32 b, Node& box) const
    {
        box.begin = first[b];
        box.end = first[b + 1];
        const bool dense = (i64)(first[a + 1] - first[a]) * (box.end - box.begin) > DENSE * DENSE;
        if (dense) bound_particles(sorted, box);
        return dense;
    }

    template <bool images> DEVICE_METHOD bool is_apart(i64 i, const Node& box) const
    {
        Node one;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) one.low[axis] = one.high[axis] = sorted[i * DIMENSIONS + axis];
        return apart<images>(one, box, pairs.space);
    }

    // The particle of cell b that is closest to particle i and unlike it, or -1; of several the one of least index.
    template <bool images> DEVICE_METHOD i64 closest(i64 i, i32 b) const
    {
        i64 best = -1;
        double least = 0;
        if (!pairs.counts(sorted_label[i]) || sorted_label[i] == cell_label[b]) return best;
        for (i64 j = first[b]; j < first[b + 1]; ++j) {
            if (!unlike<images>(i, j)) continue;
            const double cost = pairs.template cost<images>(i, j);
            if (best >= 0 && (cost > least || (cost == least && order[j] > order[best]))) continue;
            best = j;
            least = cost;
        }
        return best;
    }

    template <bool images> DEVICE_METHOD void add_closest(i32 a, i32 b)
    {
        Node box;
        const bool dense = box_of(a, b, box);
        for (i64 i = first[a]; i < first[a + 1]; ++i) {
            if (dense && is_apart<images>(i, box)) continue;
            const i64 j = closest<images>(i, b);
            if (j >= 0 && (a != b || i < j || closest<images>(j, a) != i)) add(i, j);
        }
        const bool dense_back = a != b && box_of(b, a, box);
        for (i64 j = a == b ? first[b + 1] : first[b]; j < first[b + 1]; ++j) {
            if (dense_back && is_apart<images>(j, box)) continue;
            const i64 i = closest<images>(j, a);
            if (i >= 0 && closest<images>(i, b) != j) add(i, j);
        }
        if (crowded) *crowded = 1;   // every thread that writes here writes the same
    }

    // Of the pairs of cell b, which has a single label, and each run of equal labels in cell a, at least the closest: with a
    // single label in a, that one alone; otherwise the closest of each particle. Of equally close ones the first by index.
    template <bool images> DEVICE_METHOD void add_closest_of_labels(i32 a, i32 b)
    {
        Node box;
        const bool dense = box_of(a, b, box), each = cell_label[a] == MIXED;
        i64 best_i = -1, best_j = -1;
        double least = 0;
        for (i64 i = first[a]; i < first[a + 1]; ++i) {
            if (dense && is_apart<images>(i, box)) continue;
            const i64 j = closest<images>(i, b);
            if (j < 0) continue;
            if (each) {
                add(i, j);
                continue;
            }
            const double cost = pairs.template cost<images>(i, j);
            if (best_i >= 0 && (cost > least || (cost == least && !comes_before(i, j, best_i, best_j)))) continue;
            best_i = i;
            best_j = j;
            least = cost;
        }
        if (best_i >= 0) add(best_i, best_j);
    }

    // Whether the pair (i, j) comes before the pair (p, q) in a sorted list of pairs.
    DEVICE_METHOD bool comes_before(i64 i, i64 j, i64 p, i64 q) const
    {
        const i32 low = order[i] < order[j] ? order[i] : order[j], high = order[i] < order[j] ? order[j] : order[i];
        const i32 other_low = order[p] < order[q] ? order[p] : order[q];
        const i32 other_high = order[p] < order[q] ? order[q] : order[p];
        return low < other_low || (low == other_low && high < other_high);
    }

    // How many pairs there are between two cells, up to one more than `most`; with `listing`, they are listed.
    template <bool images, bool listing> DEVICE_METHOD i64 compare(i32 a, i32 b, i64 most)
    {
        Node box;
        const bool dense = box_of(a, b, box);
        i64 count = 0;
        for (i64 i = first[a]; i < first[a + 1]; ++i) {
            if (sorted_label[i] == cell_label[b] || !pairs.counts(sorted_label[i])) continue;
            if (dense && is_apart<images>(i, box)) continue;
            for (i64 j = a == b ? i + 1 : first[b]; j < first[b + 1]; ++j) {
                if (!unlike<images>(i, j)) continue;
                if (listing) add(i, j);
                else if (++count > most) return count;
            }
        }
        return count;
    }

    template <bool images> DEVICE_METHOD void cells(i32 a, i32 b)
    {
        if (cell_label[a] == cell_label[b] && cell_label[a] != MIXED) return;
        if (first[a + 1] - first[a] == 1 && first[b + 1] - first[b] == 1) {   // most pairs of cells
            if (unlike<images>(first[a], first[b]) && pairs.counts(cell_label[a])) add(first[a], first[b]);
            return;
        }
        // The outer loop takes the mixed cell: most of its particles agree with the other cell.
        if (cell_label[a] != MIXED) {
            const i32 swapped = a;
            a = b;
            b = swapped;
        }
        const i64 between = (i64)(first[a + 1] - first[a]) * (first[b + 1] - first[b]);
        if (between > CROWD) {
            if (crowd) crowd[a] = crowd[b] = 1;   // every thread that writes here writes the same
            return;
        }
        if (pairs.closest_alone() && cell_label[b] != MIXED)
            add_closest_of_labels<images>(a, b);
        else if (between > pairs.all_listed() && compare<images, false>(a, b, pairs.all_listed()) > pairs.all_listed())
            add_closest<images>(a, b);
        else
            compare<images, true>(a, b, 0);
    }

    template <bool images> DEVICE_METHOD void blocks(i64 k, u64 active, i64 m, const u64* reach)
    {
        const u64 there = labelled[m];
        if (k == m) within<images>(k);
        if (!(there & reach[REACHED]) || !(suspect[k] | suspect[m])) return;
        for (u64 mine = active & reach[REACHING]; mine; mine &= mine - 1) {
            const u64 sought = suspect[k] & mine & (0 - mine) ? there : there & suspect[m];
            const i32 a = first_cell[k] + count_bits(occupied[k] & below_lowest_bit(mine));
            for (u64 theirs = sought & reach[lowest_bit(mine)]; theirs; theirs &= theirs - 1)
                cells<images>(a, first_cell[m] + count_bits(occupied[m] & below_lowest_bit(theirs)));
        }
    }

    // The pairs within cells of several labels; all particles of a cell are near each other.
    template <bool images> DEVICE_METHOD void within(i64 k)
    {
        for (u64 mine = labelled[k] & suspect[k]; mine; mine &= mine - 1) {
            const i32 c = first_cell[k] + count_bits(occupied[k] & below_lowest_bit(mine));
            if (cell_label[c] == MIXED) cells<images>(c, c);
        }
    }
};
}
