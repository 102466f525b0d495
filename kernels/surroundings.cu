// Neighbour lists of the candidates, the particles that may move, from the cells of all particles.
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"
#include "linking.cuh"
#include "around.cuh"

static const i32 UNASKED = -1;         // in place of a group: too small to count, no constraints among such particles

// The place of each particle in sorted order.
KERNEL(invert)(i64 n, const i32* order SIZE(n), i32* place SIZE(n))
{
    FOR_EACH(s, n) place[order[s]] = (i32)s;
}

namespace {
// The neighbours of a candidate that its move may affect: all within a range in the decoded positions, of its own group
// within a shorter one. A list ends at `most` particles.
struct Around {
    const i32* first;
    const real* sorted;
    const i32* order;
    const Space& space;
    const i32* group;   // for each linking length, the group of each particle
    i64 lengths, particles, most;
    double range_squared, own_squared;
    i32* list;
    i64 room, found;
    i32 v;              // the candidate,
    bool unasked;       // whether it has no constraints,
    const real* here;   // and where it is

    DEVICE_METHOD bool same_group(i32 i, i32 j) const
    {
        for (i64 l = 0; l < lengths; ++l)
            if (group[l * particles + i] != group[l * particles + j]) return false;
        return true;
    }

    // Whether a particle has no constraints at any linking length.
    DEVICE_METHOD bool is_unasked(i32 i) const
    {
        for (i64 l = 0; l < lengths; ++l)
            if (group[l * particles + i] != UNASKED) return false;
        return true;
    }

    DEVICE_METHOD void cells(i32 begin, i32 end, bool images)
    {
        if (images) particles_of<true>(begin, end);
        else particles_of<false>(begin, end);
    }

    template <bool images> DEVICE_METHOD void particles_of(i32 begin, i32 end)
    {
        for (i32 s = first[begin]; s < first[end] && found < most; ++s) {
            const double d = distance_squared<images>(here, sorted + (i64)s * DIMENSIONS, space);
            if (d > range_squared) continue;
            const i32 k = order[s];
            if (k == v || (unasked && is_unasked(k)) || (d > own_squared && same_group(v, k))) continue;
            if (found < room) list[found] = k;
            ++found;
        }
    }
};
}

// Each candidate has `room` entries of the list, beginning at `start`. `place` only tells its cell: within a cell, particles
// may have changed places. `found` is its number of neighbours; if it exceeds
// `room`, the list is incomplete and has to be made again with more room.
KERNEL(list_around)(i64 chunks, i64 n, const i32* candidate SIZE(n), const i32* place SIZE(particles), i64 cells, i64 count,
                    const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                    const i32* first_cell SIZE(count + 1), const i32* first SIZE(cells + 1),
                    const real* sorted SIZE(particles * D), const double* periods SIZE(D), const i64* blocks_along SIZE(D),
                    const i64* block_bits SIZE(D), const u64* reach SIZE(64 * 3 ** D), i64 closed,
                    const double* range_squared SIZE(n), const double* own_squared SIZE(n),
                    const real* decoded SIZE(particles * D), const i32* order SIZE(particles), const i32* group SIZE(lengths * particles), i64 lengths,
                    i64 particles, i64 most, const i64* start SIZE(n), const i64* room SIZE(n), i64* found SIZE(n),
                    i32* list SIZE(>= LAST(start) + LAST(room)))
{
    const Space space = space_of(periods, 0);
    const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
    FOR_EACH_UNEVEN(p, chunks) {
        BlocksAround blocks_around = {blocks, occupied, first_cell, first, reach, -1, 0, {0}, {0}, {0}, 0, 0};
        Around around = {first, sorted, order, space, group, lengths, particles, most, 0, 0, 0, 0, 0, 0, false, 0};
        for (i64 c = chunk_begin(p, chunks, n); c < chunk_begin(p + 1, chunks, n); ++c) {
            around.list = list + start[c];
            around.room = room[c];
            around.range_squared = range_squared[c];
            around.own_squared = own_squared[c];
            around.found = 0;
            around.v = candidate[c];
            around.unasked = around.is_unasked(candidate[c]);
            around.here = decoded + (i64)candidate[c] * DIMENSIONS;
            blocks_around.cells(blocks_around.cell_at(place[candidate[c]], cells), around);
            found[c] = around.found;
        }
    }
}

// Marks the blocks with chosen cells (bits, as in `occupied`), and the blocks from which a walk over pairs of blocks comes to
// these cells. Race: all threads that write to the same place write the same value.
KERNEL(mark_before)(i64 chunks, i64 count, const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                    const double* periods SIZE(D), const i64* blocks_along SIZE(D), const i64* block_bits SIZE(D),
                    const u64* reach SIZE(64 * 3 ** D), i64 closed, const u64* chosen SIZE(count), u8* marked SIZE(count))
{
    const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
    FOR_EACH_UNEVEN(p, chunks) {
        BlocksAround around = {blocks, occupied, 0, 0, reach, -1, 0, {0}, {0}, {0}, 0, 0};
        for (i64 k = chunk_begin(p, chunks, count); k < chunk_begin(p + 1, chunks, count); ++k)
            if (chosen[k]) around.mark_before((i32)k, chosen[k], marked);
    }
}

// Unites candidates that have each other in their lists, or a need in common, into components.
// The lists that reach farther are those of one end alone; the other end is united with it all the same.
KERNEL(unite_candidates)(i64 n, const i64* list_start SIZE(n), const i64* list_end SIZE(n), const i32* list SIZE(>= n),
                         const i64* need_start SIZE(n + 1), const i32* need_partner SIZE(LAST(need_start)),
                         const i32* slot SIZE(>= n), const i32* own SIZE(n), i32* parent SIZE(n))
{
    FOR_EACH(c, n) {
        for (i64 need = need_start[c]; need < need_start[c + 1]; ++need)
            if (slot[need_partner[need]] >= 0) unite(parent, own, (i32)c, slot[need_partner[need]]);
        for (i64 e = list_start[c]; e < list_end[c]; ++e)
            if (slot[list[e]] >= 0) unite(parent, own, (i32)c, slot[list[e]]);
    }
}

// The component of each candidate: the smallest candidate in it.
KERNEL(name_components)(i64 n, i32* parent SIZE(n), i32* component SIZE(n))
{
    FOR_EACH(c, n) component[c] = find(parent, (i32)c);
}
