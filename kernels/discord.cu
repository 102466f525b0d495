// Label conflicts: pairs of friends that are in different groups of another grouping of the same particles.
//
// Two groupings are equal if and only if neither has such a pair, so only these pairs have to be examined to turn one
// grouping into the other. Particles of unchanged groups have no label; cells and blocks without labels are skipped, and so
// are two cells of the same single label.
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"
#include "linking.cuh"
#include "unlike.cuh"

static const i32 UNLABELLED = -1;   // a particle without conflicts

// A group is split when its members have several of the other labels. A group's own label is its smallest particle index.
// Race: all threads that write to the same place write the same value.
KERNEL(find_torn)(i64 n, const i64* label SIZE(n), const i32* other SIZE(n), u8* torn SIZE(n))
{
    FOR_EACH(i, n)
        if (other[i] != other[label[i]]) torn[label[i]] = 1;
}

// The other labels of members of split groups; UNLABELLED for all other particles.
KERNEL(label_torn)(i64 n, const i64* label SIZE(n), const i32* other SIZE(n), const u8* torn SIZE(n), i32* of_torn SIZE(n))
{
    FOR_EACH(i, n) of_torn[i] = torn[label[i]] ? other[i] : UNLABELLED;
}

// The labels in the order of the cells, and for each cell the common label of its particles, or MIXED.
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

// The cells of each block with labelled particles, as bits like `occupied`; and those of which each discord has at least
// one. In a split group, these are the cells that are not only in its main part, which has the label of the group.
KERNEL(label_blocks)(i64 blocks, const i32* first_cell SIZE(blocks + 1), const i32* cell_label SIZE(LAST(first_cell)),
                     const i32* first SIZE(cell_label + 1), const i32* order SIZE(LAST(first)),
                     const u64* occupied SIZE(blocks), i64 split, const i64* group SIZE(order if split else 0),
                     u64* labelled SIZE(blocks), u64* suspect SIZE(blocks))
{
    FOR_EACH(k, blocks) {
        u64 rest = occupied[k], with_label = 0, minor = 0;
        for (i32 c = first_cell[k]; c < first_cell[k + 1]; ++c, rest &= rest - 1) {
            const u64 bit = rest & (0 - rest);
            if (cell_label[c] == UNLABELLED) continue;
            with_label |= bit;
            if (!split || cell_label[c] == MIXED || cell_label[c] != group[order[first[c]]]) minor |= bit;
        }
        labelled[k] = with_label;
        suspect[k] = minor;
    }
}

namespace {
// Friends; of several, the closest is the one of least `cost`, the squared distance in other positions of the same
// particles.
struct UnlikeFriends {
    const real* sorted;
    const i32* order;
    const real* elsewhere;
    const Space& space;
    bool split;   // labels are parts of split groups, to be joined: of pairs of the same two parts, the closest is enough

    template <bool images> DEVICE_METHOD bool holds(i64 i, i64 j) const
    {
        return friends<images>(sorted + i * DIMENSIONS, sorted + j * DIMENSIONS, space);
    }

    template <bool images> DEVICE_METHOD double cost(i64 i, i64 j) const
    {
        const real *one = elsewhere + (i64)order[i] * DIMENSIONS, *other = elsewhere + (i64)order[j] * DIMENSIONS;
        return distance_squared<true>(one, other, space);
    }

    DEVICE_METHOD bool counts(i32 label) const { return label != UNLABELLED; }
    DEVICE_METHOD i64 all_listed() const { return ALL_LOST; }
    DEVICE_METHOD bool closest_alone() const { return split; }
};

// Counts the pairs of each block.
struct CountedDiscords : Unlike<UnlikeFriends> {
    i64* found_in;

    template <bool images> DEVICE_METHOD void blocks(i64 k, u64 active, i64 m, const u64* reach)
    {
        const i64 before = found;
        Unlike<UnlikeFriends>::blocks<images>(k, active, m, reach);
        found_in[k] += found - before;
    }
};
}

// The number of pairs of each block within itself and with later blocks, and of each chunk; lists them as far as there is
// room.
KERNEL(count_discords)(i64 chunks, const i64* first_block SIZE(chunks + 1), i64 count, const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                       const i32* first_cell SIZE(count + 1), const i32* first SIZE(LAST(first_cell) + 1),
                       const real* sorted SIZE(order * D), const double* periods SIZE(D), const i64* blocks_along SIZE(D),
                       const i64* block_bits SIZE(D), const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed,
                       double length_squared, const i32* order SIZE(LAST(first)), const i32* sorted_label SIZE(order),
                       const i32* cell_label SIZE(LAST(first_cell)), const u64* labelled SIZE(count),
                       const u64* suspect SIZE(count), i64 split, const u8* wanted SIZE(count),
                       const real* elsewhere SIZE(order * D), i64* found SIZE(count), i64* listed SIZE(chunks),
                       i32* pair SIZE(2 * (6 * count + 16 * chunks)), u8* crowded SIZE(1),
                       u8* crowd SIZE(LAST(first_cell)))
{
    FOR_EACH_UNEVEN(c, chunks) {
        const Space space = space_of(periods, length_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        const UnlikeFriends pairs = {sorted, order, elsewhere, space, split != 0};
        const i64 begin = first_block[c], end = first_block[c + 1];
        for (i64 k = begin; k < end; ++k) found[k] = 0;
        const i64 start = room_begin(c, first_block), room = room_begin(c + 1, first_block) - start;
        CountedDiscords counted = {{occupied, labelled, suspect, wanted, first_cell, first, sorted, order, sorted_label,
                                    cell_label, pairs, pair + 2 * start, room, 0, crowded, crowd}, found};
        walk(blocks, begin, end, reach, counted);
        listed[c] = counted.found;
    }
}

// Writes the pairs of each block that has any, beginning at `start`.
KERNEL(place_discords)(i64 hits, const i64* hit SIZE(hits), const i64* start SIZE(hits), i64 count,
                       const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                       const i32* first_cell SIZE(count + 1), const i32* first SIZE(LAST(first_cell) + 1),
                       const real* sorted SIZE(order * D), const double* periods SIZE(D), const i64* blocks_along SIZE(D),
                       const i64* block_bits SIZE(D), const u64* reach SIZE(66 * CEIL(3 ** D, 2)), i64 closed,
                       double length_squared, const i32* order SIZE(LAST(first)), const i32* sorted_label SIZE(order),
                       const i32* cell_label SIZE(LAST(first_cell)), const u64* labelled SIZE(count),
                       const u64* suspect SIZE(count), i64 split, const real* elsewhere SIZE(order * D),
                       i32* pair SIZE(>= 2 * LAST(start)))
{
    FOR_EACH(h, hits) {
        const Space space = space_of(periods, length_squared);
        const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
        const UnlikeFriends pairs = {sorted, order, elsewhere, space, split != 0};
        Unlike<UnlikeFriends> placed = {occupied, labelled, suspect, 0, first_cell, first, sorted, order, sorted_label,
                                        cell_label, pairs, pair + 2 * start[h], EVERY, 0, 0, 0};
        walk(blocks, hit[h], hit[h] + 1, reach, placed);
    }
}
