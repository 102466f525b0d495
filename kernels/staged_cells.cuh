// The cells of a block of the codec `staged`: where they are in the field, what is stated of them, and where they go.
// Include staged_grid.cuh before.
#pragma once

namespace {

template <class Number> struct Signed;
template <> struct Signed<u32> {
    typedef i32 type;
};
template <> struct Signed<u64> {
    typedef i64 type;
};

// The cells of a grid that are wanted.
struct Window {
    i64 start[AXES], stop[AXES];
};

struct Field {
    const real* value;
    const u8* valid;   // read only with gaps
    i32 gaps;
    double step, offset;
};

}   // namespace

template <class Number> DEVICE ALWAYS_INLINE Number magnitude_of(Number number)
{
    const Number sign = 0 - (number >> (8 * sizeof(Number) - 1));
    return (number ^ sign) - sign;
}

// The cell of the grid at place `i` of a block; the last one along each axis that it leaves.
DEVICE ALWAYS_INLINE i64 cell_of(const Grid& grid, const i64* at, i32 i, bool* inside)
{
    i64 place[3] = {at[1] + (i >> (grid.log[1] + grid.log[2])), at[2] + (i >> grid.log[2] & ((1 << grid.log[1]) - 1)),
                    at[3] + (i & ((1 << grid.log[2]) - 1))};
    *inside = true;
    for (i32 a = 0; a < 3; ++a)
        if (place[a] >= grid.size[a + 1]) {
            place[a] = grid.size[a + 1] - 1;
            *inside = false;
        }
    return ((at[0] * grid.size[1] + place[0]) * grid.size[2] + place[1]) * grid.size[3] + place[2];
}

// Adds the square of a number below 2^54 to a number of 128 bits.
DEVICE ALWAYS_INLINE void add_square(u64 number, u64* low, u64* high)
{
    const u64 above = number >> 27, below = number & ((1 << 27) - 1), middle = 2 * above * below;
    const u64 parts[2] = {below * below, middle << 27};
    *high += (above * above >> 10) + (middle >> 37);
    const u64 third = above * above << 54;
    for (i32 k = 0; k < 2; ++k) {
        *low += parts[k];
        *high += *low < parts[k];
    }
    *low += third;
    *high += *low < third;
}

// The facts of a block of so many numbers. `all`: every cell counts.
template <i32 COUNTED, class Number>
DEVICE ALWAYS_INLINE void survey(const Number* number, const u8* counted, bool all, i64 base, i64 block, i64 blocks, i64* facts)
{
    typedef typename Signed<Number>::type Integer;
    Integer low = 0, high = 0;
    i64 sum = 0, count = COUNTED;
    u64 squares = 0, above = 0;
    if (all) {
        for (i32 i = 0; i < COUNTED; ++i) {
            const Integer each = (Integer)number[i];
            low = each < low ? each : low;
            high = each > high ? each : high;
        }
        const i32 shortest = COUNTED > 512 ? 1 << 10 : 1 << 11;   // squares of less can be added in 32 bits
        if (low > -shortest && high < shortest) {
            i32 short_sum = 0;
            u32 short_squares = 0;
            for (i32 i = 0; i < COUNTED; ++i) {
                const i32 each = (i32)number[i];
                short_sum += each;
                short_squares += (u32)(each * each);
            }
            sum = short_sum;
            squares = short_squares;
        } else {
            for (i32 i = 0; i < COUNTED; ++i) sum += (Integer)number[i];
            if (sizeof(Number) == 4)
                for (i32 i = 0; i < COUNTED; ++i) squares += (u64)((i64)(Integer)number[i] * (i64)(Integer)number[i]);
            else
                for (i32 i = 0; i < COUNTED; ++i) add_square(magnitude_of(number[i]), &squares, &above);
        }
    } else {
        count = 0;
        for (i32 i = 0; i < COUNTED; ++i) {
            if (!counted[i]) continue;
            const Integer each = (Integer)number[i];
            low = !count || each < low ? each : low;
            high = !count || each > high ? each : high;
            ++count;
            sum += each;
            add_square(magnitude_of(number[i]), &squares, &above);
        }
    }
    facts[BASE * blocks + block] = base;
    facts[LOW * blocks + block] = low;
    facts[HIGH * blocks + block] = high;
    facts[SUM * blocks + block] = sum;
    facts[SQUARES * blocks + block] = (i64)squares;
    facts[SQUARES_ABOVE * blocks + block] = (i64)above;
    facts[COUNT * blocks + block] = count;
}

// Writes the wanted cells of a block where they belong in the window.
template <class Write> DEVICE ALWAYS_INLINE void place_block(const Grid& grid, const Window& window, const i64* at, const Write& put)
{
    const i64 sides[3] = {1LL << grid.log[0], 1LL << grid.log[1], 1LL << grid.log[2]};
    i64 low[3], high[3], width[3];
    for (i32 a = 0; a < 3; ++a) {
        const i64 stop = window.stop[a + 1] - at[a + 1];
        low[a] = window.start[a + 1] > at[a + 1] ? window.start[a + 1] - at[a + 1] : 0;
        high[a] = stop < sides[a] ? stop : sides[a];
        width[a] = window.stop[a + 1] - window.start[a + 1];
    }
    for (i64 i = low[0]; i < high[0]; ++i)
        for (i64 j = low[1]; j < high[1]; ++j) {
            const i64 plane = (at[0] - window.start[0]) * width[0] + at[1] + i - window.start[1];
            const i64 row = plane * width[1] + at[2] + j - window.start[2];
            const i64 from = (((i << grid.log[1]) + j) << grid.log[2]) + low[2];
            put(row * width[2] + at[3] + low[2] - window.start[3], from, high[2] - low[2]);
        }
}

namespace {

// The values of lattice numbers, or the numbers themselves.
template <class Out> struct Row {
    const Out* from;
    Out* to;
    DEVICE_METHOD void operator()(i64 place, i64 first, i64 count) const
    {
        for (i64 k = 0; k < count; ++k) to[place + k] = from[first + k];
    }
};

}   // namespace

DEVICE ALWAYS_INLINE void as_output(i64 number, double step, real* out) { *out = (real)((double)number * step); }
DEVICE ALWAYS_INLINE void as_output(i64 number, double step, i64* out)
{
    (void)step;
    *out = number;
}

namespace {

// Which cells of a block count: those of the grid that are valid.
struct CountedCells {
    const Grid& grid;
    i64 at[AXES];
    const u8* valid;       // null where all are
    bool all;
    DEVICE_METHOD bool count(i32 i) const
    {
        if (all) return true;
        bool inside;
        const i64 cell = cell_of(grid, at, i, &inside);
        return inside && (!valid || valid[cell]);
    }
};

}   // namespace

DEVICE ALWAYS_INLINE CountedCells cells_of(const Grid& grid, i64 block, const u8* valid)
{
    CountedCells cells = {grid, {0, 0, 0, 0}, valid, false};
    grid.corner(block, cells.at);
    cells.all = !valid && grid.holds(cells.at);
    return cells;
}

// Counts a number if it is among the `span` from `lowest` on.
DEVICE ALWAYS_INLINE bool count_number(u64 number, u64 lowest, i64 span, i64* count)
{
    const bool there = number - lowest < (u64)span;
    if (there) ++count[number - lowest];
    return there;
}

DEVICE ALWAYS_INLINE Window window_of(const i64* ends)
{
    const Window window = {{ends[0], ends[1], ends[2], ends[3]}, {ends[4], ends[5], ends[6], ends[7]}};
    return window;
}

