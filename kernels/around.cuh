// The cells around single particles, in all directions; `cells.cuh` visits pairs of blocks instead, each once.
#pragma once

// The run that holds a place, searched from `hint` on: by galloping, as places nearly always rise.
DEVICE i32 run_of(const i32* first, i64 runs, i32 place, i32 hint)
{
    i64 low = first[hint] <= place ? hint : 0, high = low + 1;
    for (i64 step = 1; high < runs && first[high] <= place; step *= 2) {
        low = high;
        high = low + step < runs ? low + step : runs;
    }
    while (high - low > 1) {
        const i64 middle = (low + high) / 2;
        if (first[middle] <= place) low = middle;
        else high = middle;
    }
    return (i32)low;
}

namespace {
// The blocks around a particle. They are cached: particles come in the order of the cells.
struct BlocksAround {
    const Blocks& blocks;
    const u64* occupied;
    const i32* first_cell;
    const i32* first;
    const u64* reach;   // for each of 3^D offsets, in order, and each cell: the cells within range
    i32 here;           // the block whose neighbours are cached; -1: none yet
    i32 cell;           // the last cell
    i64 near[27], hint[9];   // `hint`: where each row of blocks around the last one begins
    i32 near_offset[27], near_count;

    DEVICE_METHOD i32 cell_at(i32 place, i64 cells) { return cell = run_of(first, cells, place, cell); }

    // Calls `visit.cell(c)` for all cells within range of cell `c`.
    template <class Visitor> DEVICE_METHOD void cells(i32 c, Visitor& visit)
    {
        const i32 k = run_of(first_cell, blocks.count, c, here < 0 ? 0 : here);
        if (k != here) find_blocks(k);
        u64 rest = occupied[k];
        for (i32 before = first_cell[k]; before < c; ++before) rest &= rest - 1;
        const i32 within = lowest_bit(rest);
        for (i32 b = 0; b < near_count; ++b) {
            const i64 m = near[b];
            for (u64 theirs = occupied[m] & reach[64 * near_offset[b] + within]; theirs; theirs &= theirs - 1)
                visit.cell(first_cell[m] + count_bits(occupied[m] & below_lowest_bit(theirs)));
        }
    }

    // The blocks around block k; in a small box, the same block may appear as several periodic images.
    DEVICE_METHOD void find_blocks(i32 k)
    {
        here = k;
        near_count = 0;
        i64 at[DIMENSIONS];
        u64 key = blocks.key[k];
        for (i32 axis = LAST; axis >= 0; --axis) {
            at[axis] = (i64)(key & ((1ull << blocks.bits[axis]) - 1));
            key >>= blocks.bits[axis];
        }
        for (i32 r = 0; r < (DIMENSIONS == 3 ? 9 : 3); ++r) {
            const i32 steps[] = {DIMENSIONS == 3 ? r / 3 - 1 : r - 1, r % 3 - 1};
            u64 base = 0;
            bool exists = true;
            for (i32 axis = 0; axis < LAST; ++axis) {
                i64 x = at[axis] + steps[axis];
                exists = exists && inside(x, blocks.along[axis]);
                base = base << blocks.bits[axis] | (u64)x;
            }
            if (exists) find_in_row(base << blocks.bits[LAST], at[LAST], r);
        }
    }

    DEVICE_METHOD void find_in_row(u64 base, i64 middle, i32 r)
    {
        i64 m = hint[r] = seek(blocks.key, blocks.count, hint[r], base + (u64)(middle > 0 ? middle - 1 : 0));
        for (i32 step = -1; step <= 1; ++step) {
            i64 z = middle + step;
            if (!inside(z, blocks.along[LAST])) continue;
            if (z == middle + step) while (m < blocks.count && blocks.key[m] < base + (u64)z) ++m;
            const i64 hit = z == middle + step ? m : seek(blocks.key, blocks.count, 0, base + (u64)z);
            if (hit == blocks.count || blocks.key[hit] != base + (u64)z) continue;
            near[near_count] = hit;
            near_offset[near_count++] = 3 * r + step + 1;
        }
    }

    // Whether there are blocks at this coordinate, or at its periodic image in a closed grid.
    DEVICE_METHOD bool inside(i64& x, i64 along) const
    {
        if (x >= 0 && x < along) return true;
        x += x < 0 ? along : -along;
        return blocks.closed;
    }
};
}
