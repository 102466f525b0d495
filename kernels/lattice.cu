// Positions as cells of a lattice, cells as keys along a Morton curve, and back.
//
// A cell's number along an axis has up to 52 bits; a key has room for 21 (31 in two dimensions). The `shift` lowest bits
// that do not fit are stored separately: at that depth they are noise. A decoded position is the middle of its cell, in
// float64, rounded once to the type of the positions.
#include "portable.cuh"
#include "pieces.cuh"

#if DIMENSIONS == 3
static const u64 AXIS = 0x1249249249249249ULL;   // the bits of the first axis in a key
#else
static const u64 AXIS = 0x5555555555555555ULL;
#endif

DEVICE u64 spread(u64 x)
{
#if DIMENSIONS == 3
    x = (x | x << 32) & 0x001f00000000ffffULL;
    x = (x | x << 16) & 0x001f0000ff0000ffULL;
    x = (x | x << 8) & 0x100f00f00f00f00fULL;
    x = (x | x << 4) & 0x10c30c30c30c30c3ULL;
    return (x | x << 2) & AXIS;
#else
    x = (x | x << 16) & 0x0000ffff0000ffffULL;
    x = (x | x << 8) & 0x00ff00ff00ff00ffULL;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fULL;
    x = (x | x << 2) & 0x3333333333333333ULL;
    return (x | x << 1) & AXIS;
#endif
}

DEVICE u64 squeeze(u64 x)
{
#if DIMENSIONS == 3
    x &= AXIS;
    x = (x | x >> 2) & 0x10c30c30c30c30c3ULL;
    x = (x | x >> 4) & 0x100f00f00f00f00fULL;
    x = (x | x >> 8) & 0x001f0000ff0000ffULL;
    x = (x | x >> 16) & 0x001f00000000ffffULL;
    return (x | x >> 32) & 0x00000000001fffffULL;
#else
    x &= AXIS;
    x = (x | x >> 1) & 0x3333333333333333ULL;
    x = (x | x >> 2) & 0x0f0f0f0f0f0f0f0fULL;
    x = (x | x >> 4) & 0x00ff00ff00ff00ffULL;
    x = (x | x >> 8) & 0x0000ffff0000ffffULL;
    return (x | x >> 16) & 0x00000000ffffffffULL;
#endif
}

DEVICE i64 cell_of(real position, double origin, double cells_per_length, i64 last)
{
    const double cell = floor(((double)position - origin) * cells_per_length);
    return cell <= 0 ? 0 : cell >= (double)last ? last : (i64)cell;
}

// A coordinate in the middle of a cell, but not above `top`: the largest number of this type that is still in the box.
DEVICE real middle_of(i64 cell, double origin, double step, double top)
{
    const double middle = origin + ((double)cell + 0.5) * step;
    const real rounded = (real)(middle < top ? middle : top);
    return (double)rounded > top ? (real)top : rounded;
}

KERNEL(cells_to_keys)(i64 n, const real* position SIZE(n * D), const double* origin SIZE(D), double cells_per_length,
                      const i64* last SIZE(D), i32 shift, u64* key SIZE(n))
{
    FOR_EACH(i, n) {
        u64 interleaved = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const i64 cell = cell_of(position[i * DIMENSIONS + axis], origin[axis], cells_per_length, last[axis]);
            interleaved |= spread((u64)cell >> shift) << axis;
        }
        key[i] = interleaved;
    }
}

// The lowest `shift` bits of every axis, which do not fit into a key, one number each.
KERNEL(low_bits)(i64 n, const real* position SIZE(n * D), const double* origin SIZE(D), double cells_per_length,
                 const i64* last SIZE(D), i32 shift, u64* low SIZE(n * D))
{
    FOR_EACH(i, n)
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const i64 cell = cell_of(position[i * DIMENSIONS + axis], origin[axis], cells_per_length, last[axis]);
            low[i * DIMENSIONS + axis] = (u64)cell & ((1ULL << shift) - 1);
        }
}

KERNEL(keys_to_positions)(i64 n, const u64* key SIZE(n), const u64* low SIZE(n * D if shift else 0),
                          const double* origin SIZE(D), double step, const double* top SIZE(D), i32 shift,
                          real* position SIZE(n * D))
{
    FOR_EACH(i, n)
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            u64 cell = squeeze(key[i] >> axis) << shift;
            if (shift > 0) cell |= low[i * DIMENSIONS + axis] & ((1ULL << shift) - 1);
            position[i * DIMENSIONS + axis] = middle_of((i64)cell, origin[axis], step, top[axis]);
        }
}

// The number of the cell along each axis, for lattices in which it has 31 bits.
KERNEL(positions_to_cells)(i64 n, const real* position SIZE(n * D), const double* origin SIZE(D), double cells_per_length,
                           const i64* last SIZE(D), i32* cell SIZE(n * D))
{
    FOR_EACH(i, n)
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const i64 at = i * DIMENSIONS + axis;
            cell[at] = (i32)cell_of(position[at], origin[axis], cells_per_length, last[axis]);
        }
}

KERNEL(cells_to_positions)(i64 n, const i32* cell SIZE(n * D), const double* origin SIZE(D), double step,
                           const double* top SIZE(D), real* position SIZE(n * D))
{
    FOR_EACH(i, n)
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const i64 at = i * DIMENSIONS + axis;
            position[at] = middle_of(cell[at], origin[axis], step, top[axis]);
        }
}

// The delta from the previous key to each key; 0 at the first key of a block. The blocks are those of several pieces
// (`pieces.cuh`), also below.
KERNEL(key_gaps)(i64 n, i64 piece, i64 block, const u64* key SIZE(n), u64* gap SIZE(n))
{
    FOR_EACH(i, n) gap[i] = place_in_piece(i, piece) % (u32)block ? key[i] - key[i - 1] : 0;
}

// Whether a chunk of keys is in order already.
KERNEL(count_descents)(i64 chunks, i64 n, const u64* key SIZE(n), i64* descents SIZE(chunks))
{
    FOR_EACH(c, chunks) {
        i64 found = 0;
        const i64 begin = chunk_begin(c, chunks, n), end = chunk_begin(c + 1, chunks, n);
        for (i64 i = begin > 0 ? begin : 1; i < end; ++i) found += key[i] < key[i - 1];
        descents[c] = found;
    }
}

// Whether a key range of the curve intersects a box of cells, given by the keys of its lowest and highest corner. Finds the
// first key of the box that is not before the range, the BIGMIN of Tropf and Herzog (1981): walks down the bits, narrows
// the box to the half that can still hold it, and stores the first key of the other half if that comes later on the curve.
KERNEL(reaches_box)(i64 n, const u64* first SIZE(n), const u64* final SIZE(n), const u64* corners SIZE(2), i32 bits,
                    u8* reaches SIZE(n))
{
    FOR_EACH_LIGHT(i, n) {
        u64 least = corners[0], most = corners[1], best = ~0ULL;
        const u64 key = first[i];
        bool decided = false;
        for (i32 bit = bits - 1; bit >= 0 && !decided; --bit) {
            const u64 one = 1ULL << bit;
            const u64 below = (AXIS << bit % DIMENSIONS) & (one - 1);   // the lower bits of the same axis
            const bool at_key = key & one, at_least = least & one, at_most = most & one;
            if (!at_least && at_most) {
                if (at_key) {
                    least = (least & ~below) | one;
                } else {
                    best = (least & ~below) | one;
                    most = (most & ~one) | below;
                }
            } else if (at_least && !at_key) {   // the whole box comes later
                best = least;
                decided = true;
            } else if (!at_most && at_key) {    // the whole box came before: the stored key is next
                decided = true;
            }
        }
        reaches[i] = (decided ? best : key) <= final[i] && !(decided && best == ~0ULL);
    }
}

// In the original order: the deltas from cell to cell, the short way round in a periodic box, with the sign in the lowest
// bit. `period` is the number of cells around, or 0; each block starts from its own cells in `first`. A run is walked
// through in order, so that each cell is computed once; a GPU's runs have one particle, for reads beside each other.
KERNEL(cell_steps)(i64 runs, i64 n, i64 piece, i64 block, const real* position SIZE(n * D), const double* origin SIZE(D),
                   double cells_per_length, const i64* last SIZE(D), const i64* period SIZE(D), u64* steps SIZE(n * D),
                   i64 blocks, i64* first SIZE(blocks * D))
{
    (void)blocks;   // states a size
    const i64 each = blocks_of_piece(piece, block);
    FOR_EACH(r, runs) {
        const i64 begin = ON_CPU ? chunk_begin(r, runs, n) : r, end = ON_CPU ? chunk_begin(r + 1, runs, n) : r + 1;
        u32 within = place_in_piece(begin, piece), in_block = within % (u32)block;
        i64 before[DIMENSIONS];
        for (i32 axis = 0; axis < DIMENSIONS && in_block; ++axis)
            before[axis] = cell_of(position[(begin - 1) * DIMENSIONS + axis], origin[axis], cells_per_length, last[axis]);
        for (i64 i = begin; i < end; ++i) {
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                const i64 here = cell_of(position[i * DIMENSIONS + axis], origin[axis], cells_per_length, last[axis]);
                i64 moved = 0;
                if (in_block) {
                    moved = here - before[axis];
                    if (period[axis] && moved > period[axis] / 2) moved -= period[axis];
                    if (period[axis] && moved < -(period[axis] / 2)) moved += period[axis];
                } else {
                    first[(piece_of(i, piece) * each + within / (u32)block) * DIMENSIONS + axis] = here;
                }
                steps[i * DIMENSIONS + axis] = ((u64)moved << 1) ^ (u64)(moved >> 63);
                before[axis] = here;
            }
            in_block = ++in_block == (u32)block ? 0 : in_block;
            if (++within == (u64)piece) within = in_block = 0;
        }
    }
}

KERNEL(walk_cells)(i64 blocks, i64 n, i64 piece, i64 block, const u64* steps SIZE(n * D), const i64* first SIZE(blocks * D),
                   const double* origin SIZE(D), double step, const i64* period SIZE(D), const double* top SIZE(D),
                   real* position SIZE(n * D))
{
    const i64 each = blocks_of_piece(piece, block);
    FOR_EACH(b, blocks) {
        const Span at = block_at(b, n, piece, block, each);
        u64 cell[DIMENSIONS];
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) cell[axis] = (u64)first[b * DIMENSIONS + axis];
        for (i64 i = at.begin; i < at.end; ++i)
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                const u64 folded = steps[i * DIMENSIONS + axis];
                cell[axis] += folded >> 1 ^ (0 - (folded & 1));
                if (period[axis] && (i64)cell[axis] >= period[axis]) cell[axis] -= (u64)period[axis];
                if (period[axis] && (i64)cell[axis] < 0) cell[axis] += (u64)period[axis];
                position[i * DIMENSIONS + axis] = middle_of((i64)cell[axis], origin[axis], step, top[axis]);
            }
    }
}
