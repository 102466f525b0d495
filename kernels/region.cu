// The particles that are now within a distance of some moved ones, and the groups of these.
//
// Space is divided into blocks, a little wider than the distance. A hash table tells which hold moved particles, and which
// are beside these. So a particle is compared with the moved ones in the blocks around its own, and most with none.
// Several blocks may share a slot of the table; this costs comparisons, and changes nothing.
#include "portable.cuh"
#include "space.cuh"

static const i32 MOST_BLOCKS = 1073741824;   // along an axis, on each side of 0; particles farther out share the last one
static const i32 MOST_COMPARED = 256;   // moved particles with one; where more are near, it is chosen unseen
static const u8 BESIDE = 1, HOLDS_MOVED = 2;   // what a slot of the table says of its blocks; 0: neither

namespace {
struct Blocks {
    const double* per_length;   // blocks per unit of length, along each axis
    const i64* along;           // 0: space is open
    i64 slot_bits;              // of the table

    // Two coordinates at most 4/5 of a block apart are in the same block or in blocks side by side, rounding included.
    DEVICE_METHOD void of(const real* position, i64* block) const
    {
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double number = (double)position[axis] * per_length[axis];
            const double first = along[axis] ? 0 : -MOST_BLOCKS;
            const double last = along[axis] ? (double)(along[axis] - 1) : MOST_BLOCKS;
            const double inside = number > first ? number : first;
            block[axis] = (i64)(inside < last ? inside : last);
        }
    }

    DEVICE_METHOD i64 slot(const i64* block) const
    {
        const u64 odd[] = {0x9e3779b97f4a7c15ull, 0xc2b2ae3d27d4eb4full, 0x165667b19e3779f9ull};
        u64 mixed = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) mixed += (u64)block[axis] * odd[axis];
        return (i64)(mixed >> (64 - slot_bits));
    }

    // Calls `visit.slot(s)` for the block and all blocks beside it, until it returns true; whether it did.
    template <class Visitor> DEVICE_METHOD bool around(const i64* block, const Visitor& visit) const
    {
        KEEP_LOOP for (i32 offset = 0; offset < (DIMENSIONS == 3 ? 27 : 9); ++offset) {
            i64 beside[DIMENSIONS];
            for (i32 axis = 0, rest = offset; axis < DIMENSIONS; ++axis, rest /= 3) {
                beside[axis] = block[axis] + rest % 3 - 1;
                if (!along[axis]) continue;
                if (beside[axis] < 0) beside[axis] += along[axis];
                else if (beside[axis] >= along[axis]) beside[axis] -= along[axis];
            }
            if (visit.slot(slot(beside))) return true;
        }
        return false;
    }
};

struct Marking {
    u8* table;

    DEVICE_METHOD bool slot(i64 s) const
    {
        table[s] = BESIDE;
        return false;
    }
};

struct Searching {
    const u8* table;
    const i32* begin;
    i64 moved;
    const u64* slot_of;
    const real* place;
    const Space& space;   // its length is the distance
    const real* here;
    mutable i32 compared;

    DEVICE_METHOD bool slot(i64 s) const
    {
        if (table[s] != HOLDS_MOVED) return false;
        for (i64 m = begin[s]; m < moved && slot_of[m] == (u64)s; ++m)
            if (++compared > MOST_COMPARED || friends<true>(here, place + m * DIMENSIONS, space)) return true;
        return false;
    }
};
}

// The slot of each of these positions; marks the slots of all blocks around. The table is 0 before.
// Race: all threads that write to the same place write the same value.
KERNEL(mark_blocks)(i64 n, const real* place SIZE(n * D), const double* per_length SIZE(D), const i64* blocks_along SIZE(D),
                    i64 slot_bits, u64* slot_of SIZE(n), u8* table SIZE(2 ** slot_bits))
{
    const Blocks blocks = {per_length, blocks_along, slot_bits};
    const Marking marking = {table};
    FOR_EACH(m, n) {
        i64 block[DIMENSIONS];
        blocks.of(place + m * DIMENSIONS, block);
        slot_of[m] = (u64)blocks.slot(block);
        blocks.around(block, marking);
    }
}

// Where the positions of each slot begin, once they are sorted by slot; `begin` is undefined for the other slots.
KERNEL(begin_slots)(i64 n, const u64* slot_of SIZE(n), i64 slot_bits, i32* begin SIZE(2 ** slot_bits),
                    u8* table SIZE(2 ** slot_bits))
{
    (void)slot_bits;   // states a size
    FOR_EACH(m, n) {
        if (m && slot_of[m] == slot_of[m - 1]) continue;
        begin[slot_of[m]] = (i32)m;
        table[slot_of[m]] = HOLDS_MOVED;
    }
}

// Chooses the particles of touched groups and those within a distance of a moved one (`place`, sorted by slot); where very
// many have moved, also some of the others around these.
KERNEL(choose_region)(i64 particles, const real* current SIZE(particles * D), const i32* group SIZE(lengths * particles),
                      i64 lengths, const u8* touched SIZE(lengths * particles), const double* periods SIZE(D),
                      double reach_squared, const double* per_length SIZE(D), const i64* blocks_along SIZE(D),
                      i64 slot_bits, const u8* table SIZE(2 ** slot_bits), const i32* begin SIZE(2 ** slot_bits), i64 moved,
                      const u64* slot_of SIZE(moved), const real* place SIZE(moved * D), u8* chosen SIZE(particles))
{
    const Blocks blocks = {per_length, blocks_along, slot_bits};
    const Space space = space_of(periods, reach_squared);
    FOR_EACH(i, particles) {   // in the order of the file, where groups lie together
        const real* here = current + i * DIMENSIONS;
        bool inside = false;
        for (i64 l = 0; l < lengths; ++l) inside |= touched[l * particles + group[l * particles + i]] != 0;
        if (!inside) {
            i64 block[DIMENSIONS];
            blocks.of(here, block);
            const Searching search = {table, begin, moved, slot_of, place, space, here, 0};
            inside = table[blocks.slot(block)] && blocks.around(block, search);
        }
        chosen[i] = inside;
    }
}
