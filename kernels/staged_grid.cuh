// The grid of a field of the codec `staged`, its blocks, and the columns of their metadata.
#pragma once

static const i32 AXES = 4;             // the first counts boxes of the other three

namespace {

// The columns of the metadata. Numbers are relative to the base, and counted where cells are valid.
enum Fact { BASE, LOW, HIGH, SUM, SQUARES, SQUARES_ABOVE, COUNT, SIZE_IN_BYTES };

struct Grid {
    i64 size[AXES];
    i32 log[3];      // of the sides of a block, the last axis last

    // The first cell of a block.
    DEVICE_METHOD void corner(i64 block, i64* at) const
    {
        for (i32 a = 3; a > 0; --a) {
            const i64 blocks = (size[a] + (1LL << log[a - 1]) - 1) >> log[a - 1];
            at[a] = block % blocks << log[a - 1];
            block /= blocks;
        }
        at[0] = block;
    }

    DEVICE_METHOD bool holds(const i64* at) const
    {
        for (i32 a = 1; a < AXES; ++a)
            if (at[a] + (1LL << log[a - 1]) > size[a]) return false;
        return true;
    }
};

}   // namespace

DEVICE ALWAYS_INLINE Grid grid_of(const i64* size, i32 log_planes, i32 log_rows, i32 log_columns)
{
    const Grid grid = {{size[0], size[1], size[2], size[3]}, {log_planes, log_rows, log_columns}};
    return grid;
}
