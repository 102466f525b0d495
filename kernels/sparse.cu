// Whole numbers of a table that are mostly zeros, such as pruned weights: coded bit by bit, with chances that adapt.
//
// First, whether a number is zero. Rows and columns differ in density, and what was coded before says how dense they are.
// As if both were independent, the odds of a number that is not zero are
//     odds in its row * odds in its column / odds in all rows before.
// Too often they are not: zeros also come in runs, patches and bands. So the odds only choose a chance, which adapts: one
// for each octave of the odds, and for whether the numbers to the left, above, and above that to the left are zeros, and all
// before in the row. Between octaves, chances are interpolated. Other numbers follow with a sign, the octave of the
// magnitude, which is larger where numbers are dense, and the bits below. Nothing is stored but the bits: the first numbers
// cost more, a few bytes in all.
//
// Blocks of whole rows are independent. All arithmetic is in integers, and both directions run the same code.
#include "portable.cuh"
#include "binary_coder.cuh"

static const i32 EVEN = 12;                // the octave of odds of 1: those of 2^-12 are the least that are told apart
static const i32 OCTAVES = 2 * EVEN + 1;   // of odds
static const i32 BESIDE = 16;              // what is not zero: three numbers beside, and any before in the row
static const i32 LENGTHS = 64;             // of magnitudes
static const i32 MANTISSA = 3;             // bits of a magnitude, below the highest, that have chances
static const i32 AT_SIGN = OCTAVES * BESIDE, AT_LENGTH = AT_SIGN + 1, AT_MANTISSA = AT_LENGTH + (OCTAVES + 1) * LENGTHS;
static const i32 CHANCES = 2577;           // of all these
static const u32 KNOWN = 6;                // numbers that the first chance of an octave counts for
static const u32 PRIOR = 8;                // numbers that the density of all counts for in that of a row or a column
static const u64 WIDER = 8;                // numbers that the length in any octave of odds counts for in one
static const i32 BITS = 20;                // of densities
static const u64 ONE = 1ULL << BITS;

static_assert(CHANCES == AT_MANTISSA + (LENGTHS << MANTISSA), "the chances of zeros, signs, lengths and mantissas");

// The chances at first: of each octave of odds, what it says.
DEVICE void reset(u32* chances)
{
    for (i32 k = 0; k < CHANCES; ++k) chances[k] = HALF;
    for (i32 k = 0; k < OCTAVES; ++k) {
        const u32 odds = 1u << (k < EVEN ? EVEN - k : k - EVEN), less = (1u << 22) / (odds + 1);
        for (i32 beside = 0; beside < BESIDE; ++beside)
            chances[k * BESIDE + beside] = (k < EVEN ? less : (1u << 22) - less) << 10 | KNOWN;
    }
}

// The binary logarithm of a number above 0, in 1/256, linear between powers of 2.
DEVICE i32 octave_of(u64 number)
{
    const i32 length = bit_length(number);
    return (length - 1) << 8 | (i32)(number << (64 - length) >> 55 & 255);
}

// Where a number is among the octaves of odds, in 1/256, by the densities of its row, of its column, and of all.
DEVICE i32 place_of(u64 row, u64 column, u64 all)
{
    const i32 odds = octave_of(row * column * (ONE - all)) - octave_of((ONE - row) * (ONE - column) * all);
    const i32 place = (EVEN << 8) + odds, last = ((OCTAVES - 1) << 8) - 1;
    return place < 0 ? 0 : place < last ? place : last;
}

// The density of so many numbers, of which some are not zero, in 1/2^20: never 0 or 1.
DEVICE u64 density(u64 filled, u64 count, u64 prior, u64 weight)
{
    const u64 found = ((filled << BITS) + prior) / (count + weight);
    return found ? found : 1;
}

// Whether a number is not zero.
template <class Coder> DEVICE i32 code_filled(Coder* coder, u32* chances, i32 place, i32 beside, i32 filled)
{
    u32* low = chances + (place >> 8) * BESIDE + beside;
    u32* high = low + BESIDE;
    const u32 part = (u32)place & 255, between = ((*low >> 10) * (256 - part) + (*high >> 10) * part) >> 8;
    const i32 coded = code_bit(coder, chance(between << 10), filled);
    u32* nearest = part < 128 ? low : high;
    *nearest = adapted(*nearest, coded);
    return coded;
}

// Whether a magnitude is longer than this: by chances of its octave of odds, and of all, until the former are known.
template <class Coder> DEVICE i32 code_longer(Coder* coder, u32* lengths, i32 octave, i32 length, i32 longer)
{
    u32 *narrow = lengths + (octave + 1) * LENGTHS + length, *wide = lengths + length;
    const u64 met = *narrow & COUNT;
    const u64 both = ((u64)(*narrow >> 10) * met + (u64)(*wide >> 10) * WIDER) / (met + WIDER);
    const i32 coded = code_bit(coder, chance((u32)both << 10), longer);
    *narrow = adapted(*narrow, coded);
    *wide = adapted(*wide, coded);
    return coded;
}

// A number that is not zero.
template <class Coder> DEVICE i64 code_number(Coder* coder, u32* chances, i32 octave, i64 number)
{
    const i32 negative = code_bit(coder, chances + AT_SIGN, number < 0);
    const u64 size = number < 0 ? 0 - (u64)number : (u64)number;
    i32 below = 0;   // bits below the highest
    while (below < LENGTHS - 1 && code_longer(coder, chances + AT_LENGTH, octave, below, size >> below > 1)) ++below;
    u64 coded = 1;
    for (i32 left = below; left-- > 0;) {
        const i32 bit = (i32)(size >> left & 1);
        const i32 found = below - left <= MANTISSA
                              ? code_bit(coder, chances + AT_MANTISSA + (below << MANTISSA) + (i32)coded, bit)
                              : code_bit(coder, 1u << 15, bit);
        coded = coded << 1 | (u64)found;
    }
    return (i64)(negative ? 0 - coded : coded);
}

// A block of rows. A writer is given the numbers, a reader leaves them there. `filled` is room for a count of each column.
template <class Coder>
DEVICE void code_block(Coder* coder, u32* chances, u32* filled, i64 count, i64 columns, i64* number)
{
    reset(chances);
    for (i64 c = 0; c < columns; ++c) filled[c] = 0;
    u64 before = 0;
    for (i64 begin = 0, row = 0; begin < count; begin += columns, ++row) {
        const i64 end = count - begin < columns ? count - begin : columns;
        const i64* above = row ? number + begin - columns : nullptr;
        const u64 all = density(2 * before + 1, 2 * (u64)begin + 2, 0, 0), prior = PRIOR * all;
        u64 here = 0;
        i32 left = 0, above_left = 0;
        for (i64 c = 0; c < end; ++c) {
            const i32 up = above && above[c], beside = left << 3 | up << 2 | above_left << 1 | (here > 0);
            const u64 in_row = density(here, (u64)c, prior, PRIOR), in_column = density(filled[c], (u64)row, prior, PRIOR);
            const i32 place = place_of(in_row, in_column, all);
            i64* own = number + begin + c;
            left = code_filled(coder, chances, place, beside, *own != 0);
            above_left = up;
            here += (u64)left;
            filled[c] += (u32)left;
            *own = left ? code_number(coder, chances, (place + 128) >> 8, *own) : 0;
        }
        before += here;
    }
}

// Each block of so many numbers in a slot of `room` bytes of `out`; `used` says how many it takes, which may be more.
KERNEL(encode_sparse)(i64 blocks, i64 n, i64 block, i64 columns, i64* number SIZE(n), u32* chances SIZE(blocks * 2577),
                      u32* filled SIZE(blocks * columns), i64 room, u8* out SIZE(blocks * room), i64* used SIZE(blocks))
{
    FOR_EACH_UNEVEN(b, blocks) {
        const i64 begin = b * block, count = n - begin < block ? n - begin : block;
        Writer to = writer_to(out + b * room, room);
        code_block(&to, chances + b * CHANCES, filled + b * columns, count, columns, number + begin);
        put_shortest(&to);
        used[b] = to.used;
    }
}

// Whatever the bytes are, nothing outside a block's own is read: damaged ones give wrong numbers, which checksums catch.
KERNEL(decode_sparse)(i64 blocks, i64 n, i64 block, i64 columns, const i64* first_byte SIZE(blocks + 1),
                      const u8* bytes SIZE(LAST(first_byte)), u32* chances SIZE(blocks * 2577),
                      u32* filled SIZE(blocks * columns), i64* number SIZE(n))
{
    FOR_EACH_UNEVEN(b, blocks) {
        const i64 begin = b * block, count = n - begin < block ? n - begin : block;
        Reader from = reader_of(bytes + first_byte[b], bytes + first_byte[b + 1]);
        code_block(&from, chances + b * CHANCES, filled + b * columns, count, columns, number + begin);
    }
}
