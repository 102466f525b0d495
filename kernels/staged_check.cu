// Whether the metadata of blocks of the codec `staged` are those of their values. Proven intervals rest on these sums, so they
// are computed again here, in another way than staged.cu has computed them, and from the values that were compared with the
// original: a lattice number is the value divided by the step and rounded, and is right if it gives that value.
#include "portable.cuh"

#include "staged_grid.cuh"

static const i32 PART = 64;            // cells that are taken at a time
static const i32 LOWER = 27;           // bits of the lower part of a magnitude; the upper one has fewer
static const i64 FURTHEST = 1LL << 53; // no lattice number is so far from another, or from zero

namespace {

struct Cells {
    const real* value;
    const i64* number;     // read where values do not tell them
    const u8* valid;
    const u8* sound;
    bool given;            // whether numbers are
    double step;
};

// Some cells in a row.
struct Part {
    real value[PART];
    i64 number[PART];
    u8 valid[PART], sound[PART];
};

// What the metadata should state; squares are above · 2^64 + squares.
struct Sums {
    i64 count, sum, low, high;
    u64 squares, above;
    bool wrong;
};

}   // namespace

// The cells of a block from place `first` on; beyond the grid, none is valid.
DEVICE ALWAYS_INLINE void take(const Grid& grid, const Cells& cells, const i64* at, i32 first, Part* part)
{
    const i32 width = 1 << grid.log[2], run = width < PART ? width : PART;
    KEEP_LOOP for (i32 row = 0; row < PART; row += run) {
        const i32 place = first + row;
        const i64 plane = at[1] + (place >> (grid.log[1] + grid.log[2]));
        const i64 line = at[2] + (place >> grid.log[2] & ((1 << grid.log[1]) - 1)), column = at[3] + (place & (width - 1));
        const i64 cell = ((at[0] * grid.size[1] + plane) * grid.size[2] + line) * grid.size[3] + column;
        i64 there = plane < grid.size[1] && line < grid.size[2] ? grid.size[3] - column : 0;
        there = there < 0 ? 0 : there < run ? there : run;
        const i32 eights = (i32)there & ~7;   // whose number the compiler knows, so that a CPU copies them at once
        for (i32 k = 0; k < eights; k += 8) {
            for (i32 l = 0; l < 8; ++l) part->value[row + k + l] = cells.value[cell + k + l];
            for (i32 l = 0; l < 8; ++l) part->valid[row + k + l] = cells.valid[cell + k + l];
            for (i32 l = 0; l < 8; ++l) part->sound[row + k + l] = cells.sound[cell + k + l];
        }
        for (i32 k = eights; k < there; ++k) {
            part->value[row + k] = cells.value[cell + k];
            part->valid[row + k] = cells.valid[cell + k];
            part->sound[row + k] = cells.sound[cell + k];
        }
        if (cells.given)
            for (i32 k = 0; k < there; ++k) part->number[row + k] = cells.number[cell + k];
        for (i32 k = (i32)there; k < run; ++k) {
            part->value[row + k] = 0;
            part->number[row + k] = 0;
            part->valid[row + k] = 0;
        }
    }
}

// Adds the valid cells of a part, whose numbers are relative to `reference` in the metadata.
DEVICE ALWAYS_INLINE void add(const Cells& cells, i64 reference, Part* part, Sums* sums)
{
    const double most = (double)FURTHEST;
    u64 wrong = 0;
    if (!cells.given)
        KEEP_LOOP for (i32 i = 0; i < PART; ++i) {
            const double nearest = rint((double)part->value[i] / cells.step);
            const bool fits = nearest > -most && nearest < most;   // so not NaN
            part->number[i] = (i64)(fits ? nearest : 0.0);
            wrong |= fits ? 0 : (u64)part->valid[i];
        }
    KEEP_LOOP for (i32 i = 0; i < PART; ++i)
        wrong |= (u64)(((real)((double)part->number[i] * cells.step) != part->value[i]) & part->valid[i] & part->sound[i]);
    i64 count = 0, sum = 0, low = sums->low, high = sums->high;
    u64 lower = 0, mixed = 0, upper = 0;
    KEEP_LOOP for (i32 i = 0; i < PART; ++i) {
        const u64 counted = 0 - (u64)part->valid[i];
        const i64 number = (i64)(((u64)part->number[i] - (u64)reference) & counted);
        const u64 sign = 0 - ((u64)number >> 63), magnitude = ((u64)number ^ sign) - sign;
        wrong |= (u64)(magnitude >= (u64)FURTHEST);
        const u64 below = magnitude & ((1 << LOWER) - 1), above = (magnitude >> LOWER) & 0xffffffffULL;
        count += part->valid[i];
        sum = (i64)((u64)sum + (u64)number);
        lower += below * below;
        mixed += below * above;
        upper += above * above;
        const i64 lowest = counted ? number : low, highest = counted ? number : high;
        low = lowest < low ? lowest : low;
        high = highest > high ? highest : high;
    }
    sums->count += count;
    sums->sum = (i64)((u64)sums->sum + (u64)sum);
    sums->low = low;
    sums->high = high;
    // Σ lower² + 2^28 Σ lower · upper + 2^54 Σ upper²
    const u64 parts[3] = {lower, mixed << (1 + LOWER), upper << 2 * LOWER};
    sums->above += (mixed >> (63 - LOWER)) + (upper >> (64 - 2 * LOWER));
    for (i32 k = 0; k < 3; ++k) {
        sums->squares += parts[k];
        sums->above += sums->squares < parts[k];
    }
    sums->wrong |= wrong != 0;
}

// Whether these are the sums that the metadata of a block state; without valid cells, they state nothing but that.
DEVICE ALWAYS_INLINE bool as_stated(const Sums& sums, const i64* facts, i64 block, i64 blocks)
{
    if (sums.wrong || sums.count != facts[COUNT * blocks + block]) return false;
    if (sums.count == 0) return true;
    return sums.sum == facts[SUM * blocks + block] && sums.low == facts[LOW * blocks + block] &&
           sums.high == facts[HIGH * blocks + block] && sums.squares == (u64)facts[SQUARES * blocks + block] &&
           sums.above == (u64)facts[SQUARES_ABOVE * blocks + block];
}

WIDE DEVICE bool block_agrees(const Grid& grid, const Cells& cells, i64 offset, const i64* facts, i64 block, i64 blocks)
{
    i64 at[AXES];
    grid.corner(block, at);
    const i64 reference = (i64)((u64)offset + (u64)facts[BASE * blocks + block]);
    Sums sums = {0, 0, 0x7fffffffffffffffLL, -0x7fffffffffffffffLL, 0, 0, false};
    const i32 size = 1 << (grid.log[0] + grid.log[1] + grid.log[2]);
    KEEP_LOOP for (i32 first = 0; first < size; first += PART) {
        Part part;
        take(grid, cells, at, first, &part);
        add(cells, reference, &part, &sums);
    }
    return as_stated(sums, facts, block, blocks);
}

// Says of each block whether its metadata are true. Numbers are given where values do not tell them: where the lattice is
// finer than the type of the values, or single values were corrected, which are not `sound`.
KERNEL(compare_sums)(i64 blocks, const i64* grid SIZE(4), i32 log_planes, i32 log_rows, i32 log_columns, i64 n,
                     const real* value SIZE(n), i32 given, const i64* number SIZE(n if given else 0), const u8* valid SIZE(n),
                     const u8* sound SIZE(n), double step, i64 offset, const i64* facts SIZE(8 * blocks),
                     u8* agrees SIZE(blocks))
{
    (void)n;   // states a size
    const Grid all = grid_of(grid, log_planes, log_rows, log_columns);
    const Cells cells = {value, number, valid, sound, given != 0, step};
    FOR_EACH(b, blocks) agrees[b] = block_agrees(all, cells, offset, facts, b, blocks);
}
