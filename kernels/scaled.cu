// Whole numbers whose scale is known by column and by segment: tables without smooth rows, weights, runs of zeros.
//
// A number is coded as its difference to the offset of its column. The sum of two levels, of its column and of its segment (so
// many numbers in a row), is the scale, in quarters of an octave. It chooses the context, and beyond 2^5 how many bits below
// the symbol follow as they are. Symbols are those of residuals, but have the sign in their lowest bit, since a column is
// not always symmetric about its offset.
#include "portable.cuh"
#include "residuals.cuh"

static const i32 LOWEST = -40;         // the level of the first context: magnitudes of 2^-10 on average
static const i32 PLAIN = 60;           // contexts of their own; beyond, each quarter of an octave has one
static const i32 MOST_SHIFT = 56;
static const i32 MOST_CLASS = 126;     // magnitudes that leave a sign room in a symbol
static const i32 MISSING = 254;        // the symbol of gaps, which are the least of all numbers
static const u64 GAP = 1ULL << 63;

namespace {

// A number's place among columns and segments, and what is known of it there.
struct Place {
    i64 segment, columns, at, column, inside;
    const i32 *of_segment, *of_column;
    const i64* offset;
};

struct Expected {
    i32 context, shift;
};

}   // namespace

DEVICE Place place_at(i64 i, i64 segment, i64 columns, const i32* of_segment, const i32* of_column, const i64* offset)
{
    const Place place = {segment, columns, i / segment, i % columns, i % segment, of_segment, of_column, offset};
    return place;
}

DEVICE void advance(Place* place)
{
    if (++place->column == place->columns) place->column = 0;
    if (++place->inside == place->segment) {
        place->inside = 0;
        ++place->at;
    }
}

DEVICE Expected expected_at(const Place& place)
{
    const i32 level = (i32)place.of_segment[place.at] + place.of_column[place.column] - LOWEST;
    Expected expected = {level < 0 ? 0 : level, 0};
    if (level >= PLAIN) {
        const i32 shift = (level - PLAIN) / 4 + 1;
        expected.shift = shift < MOST_SHIFT ? shift : MOST_SHIFT;
        expected.context = PLAIN - 4 + (level & 3);
    }
    return expected;
}

DEVICE u64 magnitude_of(u64 off) { return off >> 63 ? 0 - off : off; }

DEVICE i32 signed_symbol(u64 number, u64 offset, i32 shift)
{
    if (number == GAP) return MISSING;
    const u64 off = number - offset;
    const u64 high = magnitude_of(off) >> shift;
    const i32 size = high >> 20 ? MOST_CLASS + 1 : symbol_of((i64)high);
    return size > MOST_CLASS ? ESCAPE : 2 * size + (size && off >> 63);
}

// How many bits follow: those below the symbol, those that no symbol sees, and the sign where it is not in the symbol.
DEVICE i32 rest_of(i32 symbol, i32 shift)
{
    return symbol == ESCAPE ? 64 : symbol == MISSING ? 0 : symbol < 2 ? shift + (shift > 0) : bits_below(symbol >> 1) + shift;
}

// code[i] = context * SYMBOLS + symbol, and how many bits follow the symbols of each block.
KERNEL(code_scaled)(i64 blocks, i64 n, i64 block, i64 segment, i64 columns, const i64* number SIZE(n),
                    const i32* of_segment SIZE(CEIL(n, segment)), const i32* of_column SIZE(columns),
                    const i64* offset SIZE(columns), u16* code SIZE(n), i64* bits SIZE(blocks))
{
    FOR_EACH(b, blocks) {
        const i64 end = (b + 1) * block < n ? (b + 1) * block : n;
        Place place = place_at(b * block, segment, columns, of_segment, of_column, offset);
        i64 total = 0;
        for (i64 i = b * block; i < end; ++i, advance(&place)) {
            const Expected expected = expected_at(place);
            const i32 symbol = signed_symbol((u64)number[i], (u64)offset[place.column], expected.shift);
            code[i] = (u16)(expected.context * SYMBOLS + symbol);
            total += rest_of(symbol, expected.shift);
        }
        bits[b] = total;
    }
}

// What follows the symbols of each block, from `first` 32-bit words on.
KERNEL(write_scaled)(i64 blocks, i64 n, i64 block, i64 segment, i64 columns, const i64* number SIZE(n),
                     const i32* of_segment SIZE(CEIL(n, segment)), const i32* of_column SIZE(columns),
                     const i64* offset SIZE(columns), const u16* code SIZE(n), const i64* first SIZE(blocks + 1),
                     u32* out SIZE(LAST(first)))
{
    FOR_EACH(b, blocks) {
        const i64 end = (b + 1) * block < n ? (b + 1) * block : n;
        Place place = place_at(b * block, segment, columns, of_segment, of_column, offset);
        BitWriter writer = {out + first[b], 0, 0};
        for (i64 i = b * block; i < end; ++i, advance(&place)) {
            const u64 off = (u64)number[i] - (u64)offset[place.column];
            const i32 symbol = code[i] % SYMBOLS, shift = expected_at(place).shift;
            const u64 rest = symbol == ESCAPE ? off : symbol < 2 ? magnitude_of(off) << 1 | off >> 63 : magnitude_of(off);
            put_long(&writer, rest, rest_of(symbol, shift));
        }
        if (writer.count > 0) *writer.to = (u32)writer.held;
    }
}

// The numbers. `sound` says of each block whether its code ended where it should. Whatever the input, nothing is read outside
// what `word_first` and `rest_first` delimit.
KERNEL(decode_scaled)(i64 blocks, i64 n, i64 block, i64 segment, i64 columns, const i32* of_segment SIZE(CEIL(n, segment)),
                      const i32* of_column SIZE(columns), const i64* offset SIZE(columns),
                      const i64* word_first SIZE(blocks + 1), const u16* words SIZE(LAST(word_first)),
                      const i64* rest_first SIZE(blocks + 1), const u32* rest SIZE(LAST(rest_first)), const u8* row SIZE(64),
                      const u8* symbol_at SIZE(CEIL(frequency, 256) * 4096), const u32* frequency SIZE(>= 256),
                      const u32* start SIZE(frequency), i64* number SIZE(n), u8* sound SIZE(blocks))
{
    FOR_EACH(b, blocks) {
        Source source = {words + word_first[b], words + word_first[b + 1],
                         {rest + rest_first[b], rest + rest_first[b + 1], 0, 0},
                         0, 0, row, symbol_at, frequency, start};
        open_source(&source);
        const i64 end = (b + 1) * block < n ? (b + 1) * block : n;
        Place place = place_at(b * block, segment, columns, of_segment, of_column, offset);
        for (i64 i = b * block; i < end; ++i, advance(&place)) {
            const Expected expected = expected_at(place);
            const i32 symbol = next_symbol(&source, expected.context), size = symbol >> 1;
            const i32 shift = expected.shift;
            u64 off = take_long(&source.rest, rest_of(symbol, shift));
            if (symbol < 2) {
                off = off & 1 ? 0 - (off >> 1) : off >> 1;
            } else if (symbol < MISSING) {
                const u64 high = (u64)size_with(size, off >> shift) << shift, low = off & ((1ULL << shift) - 1);
                off = symbol & 1 ? 0 - (high | low) : high | low;
            }
            number[i] = (i64)(symbol == MISSING ? GAP : (u64)offset[place.column] + off);
        }
        sound[b] = is_at_end(source);
    }
}
