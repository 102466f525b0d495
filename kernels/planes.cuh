// A block of 512 integers as bit planes of their magnitudes, and the signs of those that are not zero.
//
// A plane has one bit of each integer, 64 bytes. Where few of its bytes are not zero, it is stored as one bit for each byte
// that says so, and these bytes: so a few large integers among small ones cost little, and a block needs no list of them.
// Bytes of eight integers are turned into eight planes at once, as a square of 8 x 8 bits.
#pragma once

static const i32 VALUES = 512;         // in a block
static const i32 OCTETS = 64;          // groups of eight integers; the bytes of a plane
static const i32 DENSE = 56;           // so many bytes that are not zero take as much room as all
static const i32 NARROW_PLANES = 26, WIDE_PLANES = 56;   // the most that integers of 32 and of 64 bits have here
static const i32 NARROW_ROOM = 1736, WIDE_ROOM = 3664;   // the most bytes of a block: head, all planes, signs

namespace {

template <class Number> struct Wide;   // of these unsigned integers
template <> struct Wide<u32> {
    static const i32 PLANES = NARROW_PLANES, ROOM = NARROW_ROOM;
};
template <> struct Wide<u64> {
    static const i32 PLANES = WIDE_PLANES, ROOM = WIDE_ROOM;
};

}   // namespace

// The square of bits whose row r is byte r, with rows and columns exchanged.
DEVICE ALWAYS_INLINE u64 exchanged(u64 x)
{
    u64 t = (x ^ x >> 7) & 0x00aa00aa00aa00aaULL;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000cccc0000ccccULL;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000f0f0f0f0ULL;
    return x ^ t ^ t << 28;
}

DEVICE ALWAYS_INLINE u64 word_of(const u8* from)
{
    u64 word = 0;
    for (i32 k = 0; k < 8; ++k) word |= (u64)from[k] << 8 * k;
    return word;
}

DEVICE ALWAYS_INLINE void put_word(u8* to, u64 word)
{
    for (i32 k = 0; k < 8; ++k) to[k] = (u8)(word >> 8 * k);
}

// The lowest bits of eight bytes that are 0 or 1.
DEVICE ALWAYS_INLINE u64 bits_of(const u8* from) { return word_of(from) * 0x0102040810204080ULL >> 56; }

// The chosen bits of a word, moved to its lower end in their order: each step moves those on by 1, 2, 4 ... places whose number
// of absent bits below them says so.
DEVICE ALWAYS_INLINE u64 compressed(u64 bits, u64 chosen)
{
    bits &= chosen;
    u64 absent = ~chosen << 1;
    for (i32 step = 0; step < 6; ++step) {
        u64 odd = absent;   // whether the number of absent bits below each place is odd
        for (i32 k = 1; k < 64; k *= 2) odd ^= odd << k;
        const u64 moved = odd & chosen, those = bits & moved;
        chosen = (chosen ^ moved) | moved >> (1 << step);
        bits = (bits ^ those) | those >> (1 << step);
        absent &= ~odd;
    }
    return bits;
}

// Its inverse: the lowest bits of a word at the chosen places.
DEVICE ALWAYS_INLINE u64 expanded(u64 bits, u64 chosen)
{
    u64 absent = ~chosen << 1, left = chosen, moves[6];
    for (i32 step = 0; step < 6; ++step) {
        u64 odd = absent;
        for (i32 k = 1; k < 64; k *= 2) odd ^= odd << k;
        moves[step] = odd & left;
        left = (left ^ moves[step]) | moves[step] >> (1 << step);
        absent &= ~odd;
    }
    for (i32 step = 5; step >= 0; --step) bits = (bits & ~moves[step]) | (bits << (1 << step) & moves[step]);
    return bits & chosen;
}

// A bit for each byte of a plane that is not zero.
DEVICE ALWAYS_INLINE u64 bytes_set(const u8* plane)
{
    u64 set = 0;
    for (i32 g = 0; g < OCTETS; ++g) set |= (u64)(plane[g] != 0) << g;
    return set;
}

// Writes magnitudes, given in `planes` planes, and signs; returns how many bytes. `plane` has eight planes at a time.
template <class Number> DEVICE ALWAYS_INLINE i64 put_planes(const Number* magnitude, const u8* negative, i32 planes, u8* out)
{
    u8* const modes = out;   // a bit for each plane: whether it is sparse
    u8* to = out + (planes + 7) / 8;
    u8 plane[8 * OCTETS];
    u8 present[OCTETS];
    for (i32 g = 0; g < OCTETS; ++g) present[g] = 0;
    for (i32 low = 0; low < planes; low += 8) {
        const i32 here = planes - low < 8 ? planes - low : 8;
        for (i32 g = 0; g < OCTETS; ++g) {
            u64 bytes = 0;
            for (i32 k = 0; k < 8; ++k) bytes |= (u64)(u8)(magnitude[8 * g + k] >> low) << 8 * k;
            const u64 rows = exchanged(bytes);
            for (i32 p = 0; p < 8; ++p) plane[p * OCTETS + g] = (u8)(rows >> 8 * p);
        }
        u8 sparse = 0;
        for (i32 p = 0; p < here; ++p) {
            const u8* const from = plane + p * OCTETS;
            for (i32 g = 0; g < OCTETS; ++g) present[g] |= from[g];
            u64 set = bytes_set(from);
            if (count_bits(set) >= DENSE) {
                for (i32 g = 0; g < OCTETS; ++g) to[g] = from[g];
                to += OCTETS;
                continue;
            }
            sparse |= (u8)(1 << p);
            put_word(to, set);
            to += 8;
            for (; set; set &= set - 1) *to++ = from[lowest_bit(set)];
        }
        modes[low / 8] = sparse;
    }
    u64 held = 0;
    i32 count = 0;
    for (i32 w = 0; w < OCTETS / 8; ++w) {
        u64 signs = 0;
        for (i32 g = 0; g < 8; ++g) signs |= bits_of(negative + 64 * w + 8 * g) << 8 * g;
        const u64 chosen = word_of(present + 8 * w);
        const u64 word = compressed(signs, chosen);
        const i32 bits = count_bits(chosen), room = 64 - count;
        held |= word << count;
        count += bits;
        if (count >= 64) {
            put_word(to, held);
            to += 8;
            count -= 64;
            held = room < 64 ? word >> room : 0;
        }
    }
    for (; count > 0; count -= 8, held >>= 8) *to++ = (u8)held;
    return to - out;
}

// Reads what `put_planes` wrote between two ends, as integers modulo 2^32 or 2^64; false where it wrote no such bytes.
template <class Number> DEVICE ALWAYS_INLINE bool get_planes(const u8* from, const u8* end, i32 planes, Number* number)
{
    const u8* const modes = from;
    from += (planes + 7) / 8;
    if (end < from) return false;
    u8 plane[8 * OCTETS];
    u8 present[OCTETS];
    for (i32 g = 0; g < OCTETS; ++g) present[g] = 0;
    for (i32 low = 0; low < planes; low += 8) {
        for (i32 p = 0; p < 8; ++p) {
            u8* const to = plane + p * OCTETS;
            if (low + p >= planes) {
                for (i32 g = 0; g < OCTETS; ++g) to[g] = 0;
            } else if (modes[low / 8] >> p & 1) {
                if (end - from < 8) return false;
                u64 set = word_of(from);
                from += 8;
                if (end - from < count_bits(set)) return false;
                for (i32 g = 0; g < OCTETS; ++g) to[g] = 0;
                for (; set; set &= set - 1) to[lowest_bit(set)] = *from++;
            } else {
                if (end - from < OCTETS) return false;
                for (i32 g = 0; g < OCTETS; ++g) to[g] = from[g];
                from += OCTETS;
            }
            for (i32 g = 0; g < OCTETS; ++g) present[g] |= to[g];
        }
        for (i32 g = 0; g < OCTETS; ++g) {
            u64 rows = 0;
            for (i32 p = 0; p < 8; ++p) rows |= (u64)plane[p * OCTETS + g] << 8 * p;
            const u64 bytes = exchanged(rows);
            for (i32 k = 0; k < 8; ++k) {
                const Number byte = (Number)(u8)(bytes >> 8 * k) << low;
                number[8 * g + k] = low ? number[8 * g + k] | byte : byte;
            }
        }
    }
    i64 signs = 0;
    for (i32 g = 0; g < OCTETS; ++g) signs += count_bits(present[g]);
    if (end - from != (signs + 7) / 8) return false;
    i64 at = 0;   // bits that were read
    for (i32 w = 0; w < OCTETS / 8; ++w) {
        const u8* const next = from + at / 8;
        const i32 skipped = (i32)(at % 8);
        u64 held = next < end ? *next >> skipped : 0;
        for (i32 k = 1; 8 * k - skipped < 64 && next + k < end; ++k) held |= (u64)next[k] << (8 * k - skipped);
        const u64 chosen = word_of(present + 8 * w), negative = expanded(held, chosen);
        at += count_bits(chosen);
        for (i32 k = 0; k < 64; ++k) {
            const Number sign = 0 - (Number)(negative >> k & 1);
            number[64 * w + k] = (number[64 * w + k] ^ sign) - sign;
        }
    }
    return true;
}
