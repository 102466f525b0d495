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

// The first block at or after `target`, searched from `hint` on: by galloping forwards or backwards.
DEVICE i64 seek_near(const u64* key, i64 n, i64 hint, u64 target)
{
    i64 low = hint, high = hint;   // key[low - 1] < target <= key[high], where these exist
    if (hint > 0 && key[hint - 1] >= target) {
        high = hint - 1;
        for (i64 step = 1; low > 0 && key[low - 1] >= target; step *= 2) {
            high = low - 1;
            low = low > step ? low - step : 0;
        }
    } else {
        for (i64 step = 1; high < n && key[high] < target; step *= 2) {
            low = high + 1;
            high = high + step < n ? high + step : n;
        }
    }
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (key[middle] < target) low = middle + 1;
        else high = middle;
    }
    return low;
}

static const i32 ROWS_AROUND = DIMENSIONS == 3 ? 9 : 3;   // rows of blocks around a block, its own among them

namespace {
// The blocks around a block, row by row as they are needed; those of the last block are kept, as particles come in the
// order of the cells.
struct BlocksAround {
    const Blocks& blocks;
    const u64* occupied;
    const i32* first_cell;
    const i32* first;
    const u64* reach;   // for each of 3^D offsets, in order, and each cell: the cells within range
    i32 here;           // the block whose neighbours are kept; -1: none yet
    i32 cell;           // the last cell
    i64 at[DIMENSIONS], near[27], hint[9];   // near: -1 where there is no block; `hint`: where each row was found last
    u32 known;          // the rows that have been looked for, as bits
    u32 wrapped;        // the blocks of `near` that are found through a face of the box, as bits

    DEVICE_METHOD i32 cell_at(i32 place, i64 cells) { return cell = run_of(first, cells, place, cell); }

    // Calls `visit.cells(begin, end, images)` for runs of cells that are all those within range of cell `c`; without `images`
    // no periodic image is nearer.
    template <class Visitor> DEVICE_METHOD void cells(i32 c, Visitor& visit)
    {
        const i32 k = run_of(first_cell, blocks.count, c, here < 0 ? 0 : here);
        u64 rest = occupied[k];
        for (i32 before = first_cell[k]; before < c; ++before) rest &= rest - 1;
        const u64* within = reach + lowest_bit(rest);
        for (i32 r = 0; r < ROWS_AROUND; ++r) {
            const u64* of_row = within + 3 * 64 * r;
            if (!(of_row[0] | of_row[64] | of_row[128])) continue;
            find_row(k, r);
            for (i32 b = 0; b < 3; ++b) {
                const i64 m = near[3 * r + b];
                const bool images = blocks.images || (wrapped >> (3 * r + b) & 1);
                u64 theirs = m < 0 ? 0 : occupied[m] & of_row[64 * b];
                if (theirs && theirs == occupied[m]) {
                    visit.cells(first_cell[m], first_cell[m + 1], images);
                    continue;
                }
                for (; theirs; theirs &= theirs - 1) {
                    const i32 one = first_cell[m] + count_bits(occupied[m] & below_lowest_bit(theirs));
                    visit.cells(one, one + 1, images);
                }
            }
        }
    }

    // Marks block k, and the blocks from which `walk` comes to it, if they have cells within range of these cells of it.
    DEVICE_METHOD void mark_before(i32 k, u64 cells, u8* marked)
    {
        marked[k] = 1;   // every thread that writes here writes the same
        for (i32 b = 0; b < 3 * ROWS_AROUND / 2; ++b) {
            u64 reached = 0;
            for (u64 mine = cells; mine; mine &= mine - 1) reached |= reach[64 * b + lowest_bit(mine)];
            if (!reached) continue;
            find_row(k, b / 3);
            if (near[b] >= 0 && occupied[near[b]] & reached) marked[near[b]] = 1;
        }
    }

    // The blocks of row r around block k; in a small box, the same block may appear as several periodic images.
    DEVICE_METHOD void find_row(i32 k, i32 r)
    {
        if (k != here) {
            here = k;
            known = wrapped = 0;
            u64 key = blocks.key[k];
            for (i32 axis = LAST; axis >= 0; --axis) {
                at[axis] = (i64)(key & ((1ull << blocks.bits[axis]) - 1));
                key >>= blocks.bits[axis];
            }
        }
        if (known >> r & 1) return;
        known |= 1u << r;
        near[3 * r] = near[3 * r + 1] = near[3 * r + 2] = -1;
        const i32 steps[] = {DIMENSIONS == 3 ? r / 3 - 1 : r - 1, r % 3 - 1};
        u64 base = 0;
        for (i32 axis = 0; axis < LAST; ++axis) {
            i64 x = at[axis] + steps[axis];
            if (x < 0 || x >= blocks.along[axis]) wrapped |= 7u << 3 * r;
            if (!inside(x, blocks.along[axis])) return;
            base = base << blocks.bits[axis] | (u64)x;
        }
        find_in_row(base << blocks.bits[LAST], at[LAST], r);
    }

    DEVICE_METHOD void find_in_row(u64 base, i64 middle, i32 r)
    {
        i64 m = hint[r] = seek_near(blocks.key, blocks.count, hint[r], base + (u64)(middle > 0 ? middle - 1 : 0));
        for (i32 step = -1; step <= 1; ++step) {
            i64 z = middle + step;
            if (z < 0 || z >= blocks.along[LAST]) wrapped |= 1u << (3 * r + step + 1);
            if (!inside(z, blocks.along[LAST])) continue;
            if (z == middle + step) while (m < blocks.count && blocks.key[m] < base + (u64)z) ++m;
            const i64 hit = z == middle + step ? m : seek(blocks.key, blocks.count, 0, base + (u64)z);
            if (hit < blocks.count && blocks.key[hit] == base + (u64)z) near[3 * r + step + 1] = hit;
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
