// Residuals as symbols, coded by rANS with a table of frequencies for each scale, and the bits below them.
//
// A residual is the difference between a whole number and its prediction. Small magnitudes are symbols of their own; of larger
// ones, the symbol has the octave and three bits, and the bits below follow as they are. So does the sign: predictions are as
// often too large as too small. Encoder and decoder know the scale (the context) of each residual.
#pragma once

static const i32 CONTEXTS = 64;
static const i32 SYMBOLS = 256;
static const i32 DIRECT = 16;          // magnitudes below have symbols of their own, larger ones eight for each octave
static const i32 ESCAPE = 255;         // the value itself follows
static const i32 PRECISION = 12;       // frequencies of one context sum to 2^12
static const u32 LEAST_STATE = 1 << 16;
static const i32 VALUE_BITS = 8 * sizeof(real);

DEVICE u64 bits_of(real value)
{
    union {
        real number;
        u32 half[sizeof(real) / 4];
    } as;
    as.number = value;
    return sizeof(real) == 8 ? (u64)as.half[sizeof(real) / 4 - 1] << 32 | as.half[0] : as.half[0];
}

DEVICE real value_with(u64 bits)
{
    union {
        real number;
        u32 half[sizeof(real) / 4];
    } as;
    as.half[0] = (u32)bits;
    if (sizeof(real) == 8) as.half[sizeof(real) / 4 - 1] = (u32)(bits >> 32);
    return as.number;
}

// Residuals: the symbol of a magnitude, and how many bits follow a symbol besides.
DEVICE i32 symbol_of(i64 size)
{
    if (size < DIRECT) return (i32)size;
    const i32 length = bit_length((u64)size);
    return DIRECT + (length - 5) * 8 + (i32)(size >> (length - 4) & 7);
}

DEVICE i32 bits_below(i32 symbol) { return symbol < DIRECT ? 0 : (symbol - DIRECT) / 8 + 1; }

// The bits that follow a symbol: the sign and those below the symbol, or the whole value.
DEVICE i32 bits_after(i32 symbol) { return symbol == 0 ? 0 : symbol == ESCAPE ? VALUE_BITS : 1 + bits_below(symbol); }

// The same of a symbol that is not ESCAPE, if small magnitudes are so frequent that only they need no branch.
DEVICE ALWAYS_INLINE i32 bits_after_small(i32 symbol) { return symbol < DIRECT ? symbol != 0 : 1 + bits_below(symbol); }

DEVICE i64 size_with(i32 symbol, u64 below)
{
    return symbol < DIRECT ? symbol : (i64)((u64)(8 | ((symbol - DIRECT) & 7)) << bits_below(symbol) | below);
}

// Bits that follow symbols, in 32-bit words.
struct BitWriter {
    u32* to;
    u64 held;
    i32 count;
};

// At most 32 bits at once.
DEVICE void put(BitWriter* out, u64 bits, i32 count)
{
    out->held |= (bits & ((1ULL << count) - 1)) << out->count;
    out->count += count;
    if (out->count >= 32) {
        *out->to++ = (u32)out->held;
        out->held >>= 32;
        out->count -= 32;
    }
}

// At most 64 bits.
DEVICE void put_long(BitWriter* out, u64 bits, i32 count)
{
    put(out, bits & 0xffffffff, count < 32 ? count : 32);
    if (count > 32) put(out, bits >> 32, count - 32);
}

DEVICE void put_value(BitWriter* out, u64 bits) { put_long(out, bits, VALUE_BITS); }

struct BitReader {
    const u32 *from, *last;
    u64 held;
    i32 count;
};

// At most 32 bits at once.
DEVICE u64 take(BitReader* in, i32 count)
{
    if (in->count < count) {
        in->held |= (u64)(in->from < in->last ? *in->from : 0) << in->count;
        ++in->from;
        in->count += 32;
    }
    const u64 bits = in->held & ((1ULL << count) - 1);
    in->held >>= count;
    in->count -= count;
    return bits;
}

// At most 64 bits.
DEVICE u64 take_long(BitReader* in, i32 count)
{
    const u64 low = take(in, count < 32 ? count : 32);
    return count > 32 ? take(in, count - 32) << 32 | low : low;
}

DEVICE u64 take_value(BitReader* in) { return take_long(in, VALUE_BITS); }

namespace {

// What a block is decoded from. `row` is the table of each context.
struct Source {
    const u16 *word, *last_word;
    BitReader rest;
    u32 state, sum;
    const u8 *row, *symbol_at;
    const u32 *frequency, *start;
};

}  // namespace

// Beyond the last word there are zeros.
DEVICE u32 next_word(Source* from)
{
    const u32 word = from->word < from->last_word ? *from->word : 0;
    ++from->word;
    return word;
}

DEVICE void open_source(Source* from)
{
    from->state = next_word(from);
    from->state = from->state << 16 | next_word(from);
}

DEVICE ALWAYS_INLINE i32 next_symbol(Source* from, i32 context)
{
    const i32 row = from->row[context];
    const u32 slot = from->state & ((1 << PRECISION) - 1);
    const i32 symbol = from->symbol_at[(row << PRECISION) + slot], at = row * SYMBOLS + symbol;
    from->state = from->frequency[at] * (from->state >> PRECISION) + slot - from->start[at];
    const u16 none = 0;   // read where there is no word left, and without a branch, which would be hard to foresee
    const u32 word = *(from->word < from->last_word ? from->word : &none);
    const bool low = from->state < LEAST_STATE;
    from->state = low ? from->state << 16 | word : from->state;
    from->word += low;
    return symbol;
}

// Whether the code ended in the state in which the encoder began, with all bits used.
DEVICE bool is_at_end(const Source& from)
{
    return from.state == LEAST_STATE && from.word == from.last_word && from.rest.from == from.rest.last;
}
