// Blocks of 512 lattice numbers, each coded by itself: the codec `staged`.
//
// A block is a box of the grid whose sides are powers of two. Its numbers are taken relative to its first one (the base) and
// differenced along those axes that make them smallest; nothing from outside the block is used, so any block can be read
// alone. Where a block reaches beyond the grid, the last numbers of the grid are repeated, whose differences are zero. The
// differences are stored in bit planes (planes.cuh).
//
// Sums, squares and extremes of the numbers of a block are stored beside it: they are exact, as all are integers. Numbers
// have 32 bits where a chunk spans less than 2^23 lattice steps, and 64 otherwise.
#include "portable.cuh"

#include "planes.cuh"
#include "staged_grid.cuh"
#include "staged_cells.cuh"

static const i32 PREDICTORS = 9;       // a bit for each differenced axis, the last one lowest; or 8: twice along the last
static const i32 TWICE = 8;
static const i32 ROW = 64;             // numbers whose sum of magnitudes counts once when predictors are compared

namespace {

struct Coded {
    const i64* first;
    const u8* bytes;
    const i64* base;
    const u16* order;
};

}   // namespace

// All bits, or none at the edge of a block. A mask, and no condition, so that a CPU can use vectors.
template <class Number> DEVICE ALWAYS_INLINE Number beside(i32 place) { return 0 - (Number)(place != 0); }

// Differences along the axis with this logarithm of its stride and of its side.
template <class Number>
DEVICE ALWAYS_INLINE void difference(const Number* from, i32 log_stride, i32 log_side, Number* to)
{
    const i32 stride = 1 << log_stride, last = (1 << log_side) - 1;
    for (i32 i = 0; i < stride; ++i) to[i] = from[i];
    for (i32 i = stride; i < VALUES; ++i) to[i] = from[i] - (from[i - stride] & beside<Number>(i >> log_stride & last));
}

// Their inverse, in place: running sums. Short strides are summed by doubling distances, so that vectors can be used.
template <class Number> DEVICE ALWAYS_INLINE void accumulate(Number* number, i32 log_stride, i32 log_side)
{
    const i32 stride = 1 << log_stride, side = 1 << log_side;
    if (log_stride >= 3) {
        for (i32 outer = 0; outer < VALUES; outer += stride * side)
            for (i32 k = 1; k < side; ++k) {
                Number* const here = number + outer + k * stride;
                for (i32 i = 0; i < stride; i += 8) {
                    Number before[8];
                    for (i32 l = 0; l < 8; ++l) before[l] = here[i + l - stride];
                    for (i32 l = 0; l < 8; ++l) here[i + l] += before[l];
                }
            }
        return;
    }
    for (i32 i = stride; i < VALUES; ++i)
        if (i >> log_stride & (side - 1)) number[i] += number[i - stride];
}

// 256 times the logarithm of a number above zero, to base 2, linear between powers.
DEVICE ALWAYS_INLINE i32 log_of(u64 number)
{
    const i32 octave = bit_length(number) - 1;
    return octave << 8 | (i32)((octave < 8 ? number << (8 - octave) : number >> (octave - 8)) & 255);
}

// About the bits that numbers take, or that their differences along the last axis take.
template <class Number> DEVICE ALWAYS_INLINE i32 cost_of(const Number* number, bool differenced, i32 log_side)
{
    const i32 last = (1 << log_side) - 1;
    i32 cost = 0;
    for (i32 row = 0; row < VALUES; row += ROW) {
        Number sum = magnitude_of(number[row] - (differenced && (row & last) ? number[row - 1] : 0));
        if (differenced)
            for (i32 i = row + 1; i < row + ROW; ++i)
                sum += magnitude_of<Number>(number[i] - (number[i - 1] & beside<Number>(i & last)));
        else
            for (i32 i = row + 1; i < row + ROW; ++i) sum += magnitude_of(number[i]);
        cost += log_of((u64)sum + 1);
    }
    return cost;
}

// The best differences of these numbers; returns the predictor. `spare` is overwritten.
template <class Number>
DEVICE ALWAYS_INLINE i32 differenced(const Grid& grid, const Number* number, Number* spare, Number* best)
{
    const i32 columns = grid.log[2], rows = grid.log[1], planes = grid.log[0];
    i32 chosen = 0, least = 0x7fffffff;
    for (i32 of = 0; of < 8; of += 2) {
        if ((of & 2 && !rows) || (of & 4 && !planes)) continue;
        const Number* from = number;
        if (of & 2) {
            difference(from, columns, rows, spare);
            from = spare;
        }
        if (of & 4) {
            difference(from, columns + rows, planes, best);
            from = best;
        }
        const i32 plain = cost_of(from, false, columns), along = columns ? cost_of(from, true, columns) : plain;
        if (plain < least) {
            least = plain;
            chosen = of;
        }
        if (along < least) {
            least = along;
            chosen = of | 1;
        }
    }
    if (columns == 9) {   // second differences are for lines alone
        difference(number, 0, columns, spare);
        if (cost_of(spare, true, columns) < least) chosen = TWICE;
    }
    const Number* from = number;
    if (chosen & 2) {
        difference(from, columns, rows, spare);
        from = spare;
    }
    if (chosen & 4) {
        difference(from, columns + rows, planes, best);
        from = best;
    }
    if (chosen & 1 || chosen == TWICE) {
        Number* const to = from == spare ? best : spare;
        difference(from, 0, columns, to);
        from = to;
    }
    if (chosen == TWICE) {
        difference(from, 0, columns, best);
        from = best;
    }
    if (from != best)
        for (i32 i = 0; i < VALUES; ++i) best[i] = from[i];
    return chosen;
}

template <class Number> DEVICE ALWAYS_INLINE void undo_differences(const Grid& grid, i32 predictor, Number* number)
{
    const i32 columns = grid.log[2], rows = grid.log[1], planes = grid.log[0];
    if (predictor == TWICE) accumulate(number, 0, columns);
    if (predictor & 1 || predictor == TWICE) accumulate(number, 0, columns);
    if (predictor & 2) accumulate(number, columns, rows);
    if (predictor & 4) accumulate(number, columns + rows, planes);
}

// The lattice numbers of a block, and which of its cells count.
template <class Number>
DEVICE ALWAYS_INLINE bool load(const Grid& grid, const Field& field, const i64* at, Number* number, u8* counted)
{
    real value[VALUES];
    const bool whole = grid.holds(at);
    if (whole) {
        const i32 width = 1 << grid.log[2];
        for (i32 row = 0; row < VALUES; row += width) {
            bool inside;
            const real* const from = field.value + cell_of(grid, at, row, &inside);
            for (i32 i = 0; i < width; ++i) value[row + i] = from[i];
        }
    }
    if (!whole || field.gaps)
        for (i32 i = 0; i < VALUES; ++i) {
            bool inside;
            const i64 cell = cell_of(grid, at, i, &inside);
            value[i] = field.value[cell];
            counted[i] = inside && (!field.gaps || field.valid[cell]);
        }
    typedef typename Signed<Number>::type Integer;
    for (i32 i = 0; i < VALUES; ++i) number[i] = (Number)(Integer)(rint((double)value[i] / field.step) - field.offset);
    return whole && !field.gaps;
}

// Codes one block; returns how many bytes. A block of equal numbers takes none.
template <class Number>
DEVICE ALWAYS_INLINE i64 encode_block(const Grid& grid, const Field& field, const u16* order, i64 block, i64 blocks, i64* facts,
                                      u8* out)
{
    typedef typename Signed<Number>::type Integer;
    i64 at[AXES];
    grid.corner(block, at);
    Number number[VALUES], spare[VALUES], best[VALUES];
    u8 flags[VALUES];
    const bool all = load(grid, field, at, number, flags);
    const Number base = number[0];
    Number any = 0;
    for (i32 i = 0; i < VALUES; ++i) {
        number[i] -= base;
        any |= number[i];
    }
    survey<VALUES>(number, flags, all, (i64)(Integer)base, block, blocks, facts);
    if (!any) return 0;
    const i32 predictor = differenced(grid, number, spare, best);
    const u16* const place = order + predictor * VALUES;
    Number most = 0;
    for (i32 i = 0; i < VALUES; ++i) {
        const Number each = best[place[i]];
        flags[i] = (u8)(each >> (8 * sizeof(Number) - 1));
        spare[i] = magnitude_of(each);
        most |= spare[i];
    }
    const i32 planes = bit_length(most);
    out[0] = (u8)predictor;
    out[1] = (u8)planes;
    return 2 + put_planes(spare, flags, planes, out + 2);
}

WIDE DEVICE i64 encode_narrow(const Grid& grid, const Field& field, const u16* order, i64 block, i64 blocks, i64* facts, u8* out)
{
    return encode_block<u32>(grid, field, order, block, blocks, facts, out);
}

WIDE DEVICE i64 encode_wide(const Grid& grid, const Field& field, const u16* order, i64 block, i64 blocks, i64* facts, u8* out)
{
    return encode_block<u64>(grid, field, order, block, blocks, facts, out);
}

// Each run codes its blocks one after the other, from where they would begin if all took as much room as they can.
KERNEL(encode_blocks)(i64 runs, i64 blocks, const i64* grid SIZE(4), i32 log_planes, i32 log_rows, i32 log_columns, i64 n,
                      const real* value SIZE(n), i32 gaps, const u8* valid SIZE(n if gaps else 0), double step, double offset,
                      i32 wide, const u16* order SIZE(9 * 512), i64* facts SIZE(8 * blocks), i64 room,
                      u8* out SIZE(room * blocks))
{
    (void)n;   // states a size
    const Grid cells = grid_of(grid, log_planes, log_rows, log_columns);
    const Field field = {value, valid, gaps, step, offset};
    FOR_EACH(r, runs) {
        const i64 begin = chunk_begin(r, runs, blocks), end = chunk_begin(r + 1, runs, blocks);
        u8* to = out + begin * room;
        for (i64 b = begin; b < end; ++b) {
            const i64 bytes = wide ? encode_wide(cells, field, order, b, blocks, facts, to)
                                   : encode_narrow(cells, field, order, b, blocks, facts, to);
            facts[SIZE_IN_BYTES * blocks + b] = bytes;
            to += bytes;
        }
    }
}

// The bytes of all blocks, one behind the other.
KERNEL(gather_blocks)(i64 blocks, i64 runs, i64 room, const u8* coded SIZE(room * blocks), const i64* first SIZE(blocks + 1),
                      u8* out SIZE(LAST(first)))
{
    FOR_EACH(b, blocks) {
        i64 run = (i64)((u64)b * (u64)runs / (u64)blocks);
        while (chunk_begin(run, runs, blocks) > b) --run;
        while (chunk_begin(run + 1, runs, blocks) <= b) ++run;
        const i64 begin = chunk_begin(run, runs, blocks), size = first[b + 1] - first[b];
        const u8* const from = coded + begin * room + first[b] - first[begin];
        u8* const to = out + first[b];
        for (i64 k = 0; k < size; ++k) to[k] = from[k];
    }
}

// The differences of a block in the order of its cells, and its predictor; false where its bytes are none that were written.
template <class Number> DEVICE ALWAYS_INLINE bool unpack(const Coded& coded, i64 block, Number* number, i32* predictor)
{
    const u8 *from = coded.bytes + coded.first[block], *const end = coded.bytes + coded.first[block + 1];
    *predictor = 0;
    if (from == end) {
        for (i32 i = 0; i < VALUES; ++i) number[i] = 0;
        return true;
    }
    if (end - from < 2 || from[0] >= PREDICTORS || from[1] > Wide<Number>::PLANES) return false;
    *predictor = from[0];
    Number ordered[VALUES];
    if (!get_planes(from + 2, end, from[1], ordered)) return false;
    const u16* const place = coded.order + *predictor * VALUES;
    for (i32 i = 0; i < VALUES; ++i) number[place[i]] = ordered[i];
    return true;
}

// The numbers of a block less its base; false where its bytes are none that were written.
template <class Number> DEVICE ALWAYS_INLINE bool numbers_of(const Grid& grid, const Coded& coded, i64 block, Number* number)
{
    i32 predictor;
    if (!unpack(coded, block, number, &predictor)) return false;
    undo_differences(grid, predictor, number);
    return true;
}

// One block, decoded into the window; false where its bytes are none that were written.
template <class Number, class Out>
DEVICE ALWAYS_INLINE bool decode_block(const Grid& grid, const Window& window, const Coded& coded, double step, i64 offset,
                                       i64 block, Out* out)
{
    typedef typename Signed<Number>::type Integer;
    Number number[VALUES];
    if (!numbers_of(grid, coded, block, number)) return false;
    i64 at[AXES];
    grid.corner(block, at);
    Out result[VALUES];
    const u64 base = (u64)coded.base[block] + (u64)offset;
    for (i32 i = 0; i < VALUES; ++i) as_output((i64)(base + (u64)(i64)(Integer)number[i]), step, result + i);
    const Row<Out> row = {result, out};
    place_block(grid, window, at, row);
    return true;
}

WIDE DEVICE bool values_narrow(const Grid& grid, const Window& window, const Coded& coded, double step, i64 offset, i64 block, real* out)
{
    return decode_block<u32>(grid, window, coded, step, offset, block, out);
}

WIDE DEVICE bool values_wide(const Grid& grid, const Window& window, const Coded& coded, double step, i64 offset, i64 block, real* out)
{
    return decode_block<u64>(grid, window, coded, step, offset, block, out);
}

WIDE DEVICE bool numbers_narrow(const Grid& grid, const Window& window, const Coded& coded, i64 offset, i64 block, i64* out)
{
    return decode_block<u32>(grid, window, coded, 0.0, offset, block, out);
}

WIDE DEVICE bool numbers_wide(const Grid& grid, const Window& window, const Coded& coded, i64 offset, i64 block, i64* out)
{
    return decode_block<u64>(grid, window, coded, 0.0, offset, block, out);
}

// The values of the chosen blocks that lie in the window (its first cell, and the end along each axis). Whatever the bytes,
// nothing is read outside what `first` delimits; `sound` says of each block whether it was decoded.
KERNEL(decode_values)(i64 wanted, const i64* chosen SIZE(wanted), const i64* grid SIZE(4), i32 log_planes, i32 log_rows,
                      i32 log_columns, const i64* window SIZE(8), double step, i64 offset, i32 wide,
                      const u16* order SIZE(9 * 512), const i64* first SIZE(base + 1), const u8* bytes SIZE(LAST(first)),
                      const i64* base SIZE(>= 1), i64 n, real* value SIZE(n), u8* sound SIZE(wanted))
{
    (void)n;   // states a size
    const Grid cells = grid_of(grid, log_planes, log_rows, log_columns);
    const Window part = window_of(window);
    const Coded coded = {first, bytes, base, order};
    FOR_EACH(w, wanted) {
        sound[w] = wide ? values_wide(cells, part, coded, step, offset, chosen[w], value)
                        : values_narrow(cells, part, coded, step, offset, chosen[w], value);
    }
}

// The same as lattice numbers.
KERNEL(decode_numbers)(i64 wanted, const i64* chosen SIZE(wanted), const i64* grid SIZE(4), i32 log_planes, i32 log_rows,
                       i32 log_columns, const i64* window SIZE(8), i64 offset, i32 wide,
                       const u16* order SIZE(9 * 512), const i64* first SIZE(base + 1), const u8* bytes SIZE(LAST(first)),
                       const i64* base SIZE(>= 1), i64 n, i64* number SIZE(n), u8* sound SIZE(wanted))
{
    (void)n;   // states a size
    const Grid cells = grid_of(grid, log_planes, log_rows, log_columns);
    const Window part = window_of(window);
    const Coded coded = {first, bytes, base, order};
    FOR_EACH(w, wanted) {
        sound[w] = wide ? numbers_wide(cells, part, coded, offset, chosen[w], number)
                        : numbers_narrow(cells, part, coded, offset, chosen[w], number);
    }
}

// The differences of the chosen blocks, block by block, and along which axes they were taken.
KERNEL(decode_differences)(i64 wanted, const i64* chosen SIZE(wanted), i32 wide, const u16* order SIZE(9 * 512),
                           const i64* first SIZE(base + 1), const u8* bytes SIZE(LAST(first)), const i64* base SIZE(>= 1),
                           i64* number SIZE(512 * wanted), u8* predictor SIZE(wanted), u8* sound SIZE(wanted))
{
    const Coded coded = {first, bytes, base, order};
    FOR_EACH(w, wanted) {
        i32 used = 0;
        bool found;
        if (wide) {
            u64 differences[VALUES];
            found = unpack(coded, chosen[w], differences, &used);
            for (i32 i = 0; i < VALUES; ++i) number[w * VALUES + i] = found ? (i64)differences[i] : 0;
        } else {
            u32 differences[VALUES];
            found = unpack(coded, chosen[w], differences, &used);
            for (i32 i = 0; i < VALUES; ++i) number[w * VALUES + i] = found ? (i64)(i32)differences[i] : 0;
        }
        predictor[w] = (u8)used;
        sound[w] = found;
    }
}

// Counts the numbers of a block from `lowest` on; false where its bytes are none that were written, or a number is not among
// the `span` that are counted.
template <class Number>
DEVICE ALWAYS_INLINE bool count_block(const Grid& grid, const Coded& coded, const u8* valid, i64 lowest, i64 span, i64 block,
                                      i64* count)
{
    typedef typename Signed<Number>::type Integer;
    Number number[VALUES];
    if (!numbers_of(grid, coded, block, number)) return false;
    const CountedCells cells = cells_of(grid, block, valid);
    const u64 base = (u64)coded.base[block];
    bool counted = true;
    for (i32 i = 0; i < VALUES; ++i)
        if (cells.count(i)) counted &= count_number(base + (u64)(i64)(Integer)number[i], (u64)lowest, span, count);
    return counted;
}

WIDE DEVICE bool count_narrow(const Grid& grid, const Coded& coded, const u8* valid, i64 lowest, i64 span, i64 block, i64* count)
{
    return count_block<u32>(grid, coded, valid, lowest, span, block, count);
}

WIDE DEVICE bool count_wide(const Grid& grid, const Coded& coded, const u8* valid, i64 lowest, i64 span, i64 block, i64* count)
{
    return count_block<u64>(grid, coded, valid, lowest, span, block, count);
}

// How often each of `span` lattice numbers occurs in the chosen blocks, less the offset, from `lowest` on: a row for each run
// of blocks. As a value never falls with its number, this gives all counts and ranks of values.
KERNEL(count_numbers)(i64 runs, i64 wanted, const i64* chosen SIZE(wanted), const i64* grid SIZE(4), i32 log_planes,
                      i32 log_rows, i32 log_columns, i32 wide, const u16* order SIZE(9 * 512), const i64* first SIZE(base + 1),
                      const u8* bytes SIZE(LAST(first)), const i64* base SIZE(>= 1), i32 gaps, i64 n,
                      const u8* valid SIZE(n if gaps else 0), i64 lowest, i64 span, i64* count SIZE(runs * span),
                      u8* sound SIZE(wanted))
{
    (void)n;   // states a size
    const Grid cells = grid_of(grid, log_planes, log_rows, log_columns);
    const Coded coded = {first, bytes, base, order};
    FOR_EACH(r, runs) {
        i64* const row = count + r * span;
        for (i64 place = 0; place < span; ++place) row[place] = 0;
        for (i64 w = chunk_begin(r, runs, wanted), end = chunk_begin(r + 1, runs, wanted); w < end; ++w)
            sound[w] = wide ? count_wide(cells, coded, gaps ? valid : nullptr, lowest, span, chosen[w], row)
                            : count_narrow(cells, coded, gaps ? valid : nullptr, lowest, span, chosen[w], row);
    }
}
