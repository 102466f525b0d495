// Blocks of 4096 lattice numbers for smooth fields: the codec `staged`.
//
// Numbers are predicted from coarse to fine inside a block (staged_levels.cuh), and the residuals are coded with fixed tables
// (staged_symbols.cuh). A lattice five times as fine as the bound needs is used: residuals are multiples of five steps, so
// predictions keep what they know beyond the bound, and numbers are still integers whose sums are exact. Only numbers that
// must not change have residuals of single steps. Beyond the grid, no residual is stored, and numbers are as predicted.
//
// Facts, windows and 32 or 64 bits are as in staged.cu. What a run works on is too large for local memory of a GPU.
#include "portable.cuh"

#include "staged_grid.cuh"
#include "staged_cells.cuh"
#include "staged_levels.cuh"
#include "staged_symbols.cuh"

static const i32 MULTIPLE = 5;         // of the step, that residuals are
static const i32 INSIDE = 2;           // flags of a cell: it belongs to the grid; 1: and counts
static const i32 WORK = 15400;         // 64-bit words that a run needs

namespace {

// What a run works on.
template <class Number> struct Work {
    Number *number, *residual, *known, *next;
    u8 *flags, *symbol;
    u16 *word, *order;
    i32* begin;
};

struct CodedLarge {
    const i64* first;
    const u8* bytes;
    const i64* base;
    const u16* place;
    Tables tables;
    i32 exact;             // whether residuals are of single steps
};

// Makes residuals and the numbers that they give.
template <class Number> struct Encode {
    Number *number, *residual;
    const u8* flags;       // null where all cells belong to the grid
    i32 exact;
    DEVICE_METHOD Encode from(i32 begin) const
    {
        const Encode moved = {number + begin, residual + begin, flags ? flags + begin : flags, exact};
        return moved;
    }
    template <i32 COUNT> DEVICE_METHOD ALWAYS_INLINE void piece(i32 place, const Number* predicted, i32 given) const
    {
        const i32 count = COUNT ? COUNT : given;
        for (i32 i = 0; i < count; ++i) {
            const Number off = number[place + i] - predicted[i], sign = 0 - (off >> (8 * sizeof(Number) - 1));
            const Number size = (off ^ sign) - sign, times = exact ? size : (size + MULTIPLE / 2) / MULTIPLE;
            residual[place + i] = (times ^ sign) - sign;
        }
        if (flags)
            for (i32 i = 0; i < count; ++i)
                if (!(flags[place + i] & INSIDE)) residual[place + i] = 0;
        for (i32 i = 0; i < count; ++i)
            number[place + i] = predicted[i] + residual[place + i] * (Number)(exact ? 1 : MULTIPLE);
    }
    DEVICE_METHOD ALWAYS_INLINE void operator()(i32 place, const Number* predicted, i32 count) const
    {
        if (count == PIECE) piece<PIECE>(place, predicted, count);
        else piece<0>(place, predicted, count);
    }
};

template <class Number> struct Decode {
    Number* number;
    const Number* residual;
    i32 exact;
    DEVICE_METHOD Decode from(i32 begin) const
    {
        const Decode moved = {number + begin, residual + begin, exact};
        return moved;
    }
    DEVICE_METHOD ALWAYS_INLINE void operator()(i32 place, const Number* predicted, i32 count) const
    {
        const Number times = exact ? 1 : MULTIPLE;
        if (count == PIECE)
            for (i32 i = 0; i < PIECE; ++i) number[place + i] = predicted[i] + residual[place + i] * times;
        else
            for (i32 i = 0; i < count; ++i) number[place + i] = predicted[i] + residual[place + i] * times;
    }
};

// The numbers of a block, which are stored in another order, where they belong.
template <class Number, class Out> struct Scattered {
    const Number* number;
    const u16* place;
    u64 base;
    double step;
    Out* to;
    DEVICE_METHOD void operator()(i64 at, i64 first, i64 count) const
    {
        typedef typename Signed<Number>::type Integer;
        for (i64 k = 0; k < count; ++k)
            as_output((i64)(base + (u64)(i64)(Integer)number[place[first + k]]), step, to + at + k);
    }
};

}   // namespace

template <class Number> DEVICE ALWAYS_INLINE Work<Number> work_of(u64* words)
{
    Number* const numbers = (Number*)words;
    u8* const bytes = (u8*)(numbers + 2 * LARGE + 2 * BEHIND + 2 * KNOWN);
    const Work<Number> work = {numbers + BEHIND, numbers + LARGE + 2 * BEHIND, numbers + 2 * LARGE + 3 * BEHIND,
                               numbers + 2 * LARGE + 3 * BEHIND + KNOWN, bytes, bytes + LARGE, (u16*)(bytes + 2 * LARGE),
                               (u16*)(bytes + 2 * LARGE + WORDS_ROOM), (i32*)(bytes + 4 * LARGE + WORDS_ROOM)};
    return work;
}

// The residuals in the order in which those of the grid are coded.
template <class Number> DEVICE ALWAYS_INLINE Tables inside_grid(const Tables& tables, const Work<Number>& work)
{
    i32 count = 0;
    for (i32 c = 0; c < CONTEXTS; ++c) {
        work.begin[c] = count;
        for (i32 i = tables.begin[c]; i < tables.begin[c + 1]; ++i)
            if (work.flags[tables.order[i]] & INSIDE) work.order[count++] = tables.order[i];
    }
    work.begin[CONTEXTS] = count;
    const Tables inside = {work.order, work.begin, tables.share, tables.slot, tables.least};
    return inside;
}

// The lattice numbers of a block and the flags of its cells, in the order in which they are stored; whether all cells count.
template <class Number>
DEVICE ALWAYS_INLINE bool load(const Grid& grid, const Field& field, const i64* at, const u16* place, const Work<Number>& work)
{
    typedef typename Signed<Number>::type Integer;
    const i32 width = 1 << grid.log[2];
    const bool whole = grid.holds(at);
    KEEP_LOOP for (i32 row = 0; row < LARGE; row += PIECE) {
        real value[PIECE];
        if (whole && width >= PIECE) {
            bool inside;
            const real* const from = field.value + cell_of(grid, at, row, &inside);
            for (i32 i = 0; i < PIECE; ++i) value[i] = from[i];
        } else
            for (i32 i = 0; i < PIECE; ++i) {
                bool inside;
                value[i] = field.value[cell_of(grid, at, row + i, &inside)];
            }
        Number number[PIECE];
        for (i32 i = 0; i < PIECE; ++i) number[i] = (Number)(Integer)(rint((double)value[i] / field.step) - field.offset);
        for (i32 i = 0; i < PIECE; ++i) work.number[place[row + i]] = number[i];
    }
    if (whole && !field.gaps) return true;
    for (i32 i = 0; i < LARGE; ++i) {
        bool inside;
        const i64 cell = cell_of(grid, at, i, &inside);
        work.flags[place[i]] = inside ? (u8)(INSIDE | (!field.gaps || field.valid[cell])) : 0;
    }
    return false;
}

// Codes one block; returns how many bytes. A block without residuals takes none.
template <class Number>
DEVICE ALWAYS_INLINE i64 encode_block(const Grid& grid, const Field& field, const u16* place, const Tables& tables, i32 exact,
                                      i64 block, i64 blocks, i64* facts, u64* words, u8* out)
{
    typedef typename Signed<Number>::type Integer;
    const Work<Number> work = work_of<Number>(words);
    i64 at[AXES];
    grid.corner(block, at);
    const bool all = load(grid, field, at, place, work);
    const Number base = work.number[0];
    for (i32 i = 0; i < LARGE; ++i) work.number[i] -= base;
    work.residual[0] = 0;
    const Encode<Number> encode = {work.number, work.residual, all ? nullptr : work.flags, exact};
    through_levels(grid.log, work.number, work.known, work.next, encode);
    const Tables coded = grid.holds(at) ? tables : inside_grid(tables, work);
    if (!all)
        for (i32 i = 0; i < LARGE; ++i) work.flags[i] &= 1;
    survey<LARGE>(work.number, work.flags, all, (i64)(Integer)base, block, blocks, facts);
    Number any = 0;
    for (i32 i = 0; i < LARGE; ++i) any |= work.residual[i];
    if (!any) return 0;
    return put_symbols(coded, work.residual, work.number, work.symbol, work.word, out);
}

WIDE DEVICE i64 encode_narrow(const Grid& grid, const Field& field, const u16* place, const Tables& tables, i32 exact, i64 block,
                              i64 blocks, i64* facts, u64* words, u8* out)
{
    return encode_block<u32>(grid, field, place, tables, exact, block, blocks, facts, words, out);
}

DEVICE i64 encode_wide(const Grid& grid, const Field& field, const u16* place, const Tables& tables, i32 exact, i64 block,
                       i64 blocks, i64* facts, u64* words, u8* out)
{
    return encode_block<u64>(grid, field, place, tables, exact, block, blocks, facts, words, out);
}

// Each run codes its blocks one after the other, from where they would begin if all took as much room as they can.
KERNEL(encode_large_blocks)(i64 runs, i64 blocks, const i64* grid SIZE(4), i32 log_planes, i32 log_rows, i32 log_columns, i64 n,
                     const real* value SIZE(n), i32 gaps, const u8* valid SIZE(n if gaps else 0), double step, double offset,
                     i32 wide, i32 exact, const u16* place SIZE(4096), const u16* order SIZE(4096),
                     const i32* begin SIZE(8), const u32* share SIZE(14 * 64), const u32* least SIZE(14), i64* facts SIZE(8 * blocks), i64 room,
                     u64* work SIZE(15400 * runs), u8* out SIZE(room * blocks))
{
    (void)n;   // states a size
    const Grid cells = grid_of(grid, log_planes, log_rows, log_columns);
    const Field field = {value, valid, gaps, step, offset};
    const Tables tables = {order, begin, share, nullptr, least};
    FOR_EACH(r, runs) {
        const i64 start = chunk_begin(r, runs, blocks), end = chunk_begin(r + 1, runs, blocks);
        u8* to = out + start * room;
        for (i64 b = start; b < end; ++b) {
            u64* const words = work + r * WORK;
            const i64 bytes = wide ? encode_wide(cells, field, place, tables, exact, b, blocks, facts, words, to)
                                   : encode_narrow(cells, field, place, tables, exact, b, blocks, facts, words, to);
            facts[SIZE_IN_BYTES * blocks + b] = bytes;
            to += bytes;
        }
    }
}

// The numbers of a block less its base, in the order in which they are stored; false where its bytes are none that were written.
template <class Number>
DEVICE ALWAYS_INLINE bool numbers_of(const Grid& grid, const CodedLarge& coded, i64 block, const Work<Number>& work)
{
    const u8 *const from = coded.bytes + coded.first[block], *const end = coded.bytes + coded.first[block + 1];
    i64 at[AXES];
    grid.corner(block, at);
    const bool whole = grid.holds(at);
    if (!whole || from == end)
        for (i32 i = 0; i < LARGE; ++i) work.residual[i] = 0;
    if (!whole)
        for (i32 i = 0; i < LARGE; ++i) {
            bool inside;
            cell_of(grid, at, i, &inside);
            work.flags[coded.place[i]] = inside ? INSIDE : 0;
        }
    const Tables tables = whole ? coded.tables : inside_grid(coded.tables, work);
    if (from != end && !get_symbols(tables, from, end, work.symbol, work.residual)) return false;
    work.number[0] = 0;
    const Decode<Number> decode = {work.number, work.residual, coded.exact};
    through_levels(grid.log, work.number, work.known, work.next, decode);
    return true;
}

WIDE DEVICE bool numbers_narrow(const Grid& grid, const CodedLarge& coded, i64 block, u64* words)
{
    return numbers_of(grid, coded, block, work_of<u32>(words));
}

DEVICE bool numbers_wide(const Grid& grid, const CodedLarge& coded, i64 block, u64* words)
{
    return numbers_of(grid, coded, block, work_of<u64>(words));
}

template <class Number, class Out>
DEVICE ALWAYS_INLINE void place_numbers(const Grid& grid, const Window& window, const CodedLarge& coded, double step, i64 offset,
                                        i64 block, u64* words, Out* out)
{
    i64 at[AXES];
    grid.corner(block, at);
    const u64 base = (u64)coded.base[block] + (u64)offset;
    const Scattered<Number, Out> scattered = {work_of<Number>(words).number, coded.place, base, step, out};
    place_block(grid, window, at, scattered);
}

WIDE DEVICE void place_values(const Grid& grid, const Window& window, const CodedLarge& coded, double step, i64 offset, i32 wide,
                              i64 block, u64* words, real* out)
{
    if (wide) place_numbers<u64>(grid, window, coded, step, offset, block, words, out);
    else place_numbers<u32>(grid, window, coded, step, offset, block, words, out);
}

// One block, decoded into the window; false where its bytes are none that were written.
DEVICE bool decode_block(const Grid& grid, const Window& window, const CodedLarge& coded, double step, i64 offset, i32 wide,
                         i64 block, u64* words, real* out)
{
    if (!(wide ? numbers_wide(grid, coded, block, words) : numbers_narrow(grid, coded, block, words))) return false;
    place_values(grid, window, coded, step, offset, wide, block, words, out);
    return true;
}

// The same as lattice numbers.
DEVICE bool decode_block(const Grid& grid, const Window& window, const CodedLarge& coded, i64 offset, i32 wide, i64 block,
                         u64* words, i64* out)
{
    if (!(wide ? numbers_wide(grid, coded, block, words) : numbers_narrow(grid, coded, block, words))) return false;
    if (wide) place_numbers<u64>(grid, window, coded, 0.0, offset, block, words, out);
    else place_numbers<u32>(grid, window, coded, 0.0, offset, block, words, out);
    return true;
}

// The values of the chosen blocks that lie in the window. Whatever the bytes, nothing is read outside what `first` delimits;
// `sound` says of each block whether it was decoded.
KERNEL(decode_large_values)(i64 runs, i64 wanted, const i64* chosen SIZE(wanted), const i64* grid SIZE(4), i32 log_planes,
                            i32 log_rows, i32 log_columns, const i64* window SIZE(8), double step, i64 offset, i32 wide, i32 exact,
                            const u16* place SIZE(4096), const u16* order SIZE(4096), const i32* begin SIZE(8),
                            const u32* slot SIZE(14 * 2048),
                            const i64* first SIZE(base + 1), const u8* bytes SIZE(LAST(first)), const i64* base SIZE(>= 1),
                            u64* work SIZE(15400 * runs), i64 n, real* value SIZE(n), u8* sound SIZE(wanted))
{
    (void)n;   // states a size
    const Grid cells = grid_of(grid, log_planes, log_rows, log_columns);
    const Window part = window_of(window);
    const CodedLarge coded = {first, bytes, base, place, {order, begin, nullptr, slot, nullptr}, exact};
    FOR_EACH(r, runs) {
        for (i64 w = chunk_begin(r, runs, wanted), end = chunk_begin(r + 1, runs, wanted); w < end; ++w)
            sound[w] = decode_block(cells, part, coded, step, offset, wide, chosen[w], work + r * WORK, value);
    }
}

// The same as lattice numbers.
KERNEL(decode_large_numbers)(i64 runs, i64 wanted, const i64* chosen SIZE(wanted), const i64* grid SIZE(4), i32 log_planes,
                             i32 log_rows, i32 log_columns, const i64* window SIZE(8), i64 offset, i32 wide, i32 exact,
                             const u16* place SIZE(4096), const u16* order SIZE(4096), const i32* begin SIZE(8),
                            const u32* slot SIZE(14 * 2048),
                             const i64* first SIZE(base + 1), const u8* bytes SIZE(LAST(first)), const i64* base SIZE(>= 1),
                             u64* work SIZE(15400 * runs), i64 n, i64* number SIZE(n), u8* sound SIZE(wanted))
{
    (void)n;   // states a size
    const Grid cells = grid_of(grid, log_planes, log_rows, log_columns);
    const Window part = window_of(window);
    const CodedLarge coded = {first, bytes, base, place, {order, begin, nullptr, slot, nullptr}, exact};
    FOR_EACH(r, runs) {
        for (i64 w = chunk_begin(r, runs, wanted), end = chunk_begin(r + 1, runs, wanted); w < end; ++w)
            sound[w] = decode_block(cells, part, coded, offset, wide, chosen[w], work + r * WORK, number);
    }
}

// Counts the numbers of a block from `lowest` on; false where its bytes are none that were written, or a number is not among
// the `span` that are counted.
template <class Number>
DEVICE ALWAYS_INLINE bool count_block(const Grid& grid, const CodedLarge& coded, const u8* valid, i64 lowest, i64 span, i64 block,
                                      u64* words, i64* count)
{
    typedef typename Signed<Number>::type Integer;
    const Number* const number = work_of<Number>(words).number;
    const CountedCells cells = cells_of(grid, block, valid);
    const u64 base = (u64)coded.base[block];
    bool counted = true;
    for (i32 i = 0; i < LARGE; ++i)
        if (cells.count(i))
            counted &= count_number(base + (u64)(i64)(Integer)number[coded.place[i]], (u64)lowest, span, count);
    return counted;
}

// How often each of `span` lattice numbers occurs in the chosen blocks, less the offset, from `lowest` on: a row for each run
// of blocks.
KERNEL(count_large_numbers)(i64 runs, i64 wanted, const i64* chosen SIZE(wanted), const i64* grid SIZE(4), i32 log_planes,
                            i32 log_rows, i32 log_columns, i32 wide, i32 exact, const u16* place SIZE(4096),
                            const u16* order SIZE(4096), const i32* begin SIZE(8), const u32* slot SIZE(14 * 2048), const i64* first SIZE(base + 1),
                            const u8* bytes SIZE(LAST(first)), const i64* base SIZE(>= 1), i32 gaps, i64 n,
                            const u8* valid SIZE(n if gaps else 0), i64 lowest, i64 span, u64* work SIZE(15400 * runs),
                            i64* count SIZE(runs * span), u8* sound SIZE(wanted))
{
    (void)n;   // states a size
    const Grid cells = grid_of(grid, log_planes, log_rows, log_columns);
    const CodedLarge coded = {first, bytes, base, place, {order, begin, nullptr, slot, nullptr}, exact};
    FOR_EACH(r, runs) {
        const u8* const known = gaps ? valid : nullptr;
        u64* const words = work + r * WORK;
        i64* const row = count + r * span;
        for (i64 at = 0; at < span; ++at) row[at] = 0;
        for (i64 w = chunk_begin(r, runs, wanted), end = chunk_begin(r + 1, runs, wanted); w < end; ++w)
            sound[w] = wide ? numbers_wide(cells, coded, chosen[w], words) &&
                                  count_block<u64>(cells, coded, known, lowest, span, chosen[w], words, row)
                            : numbers_narrow(cells, coded, chosen[w], words) &&
                                  count_block<u32>(cells, coded, known, lowest, span, chosen[w], words, row);
    }
}
