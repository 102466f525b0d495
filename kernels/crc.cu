// CRC-32 as zlib computes it, of many short pieces at once: a GPU's bytes need not go to the host for their checksum.
//
// A CRC is the remainder of a polynomial over the integers modulo 2, so the CRC of two pieces one after the other is that of
// the first, times x to the number of bits of the second, plus that of the second. Sums are exclusive or, so their order is
// free.
#include "portable.cuh"
#include "pieces.cuh"

static const u32 POLYNOMIAL = 0xedb88320u;   // with the lowest bit first
static const i32 AT_ONCE = 16;               // bytes; `table` has a row of 256 for each of them

// The product of two remainders.
DEVICE u32 times(u32 a, u32 b)
{
    u32 product = 0;
    for (u32 bit = 1u << 31; a; bit >>= 1) {
        if (a & bit) {
            product ^= b;
            a ^= bit;
        }
        b = b & 1 ? (b >> 1) ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

// The CRC of some bytes after bytes with the CRC `before`.
DEVICE u32 crc_after(u32 before, const u8* from, const u8* end, const u32* table)
{
    u32 crc = ~before;
    for (; end - from >= AT_ONCE; from += AT_ONCE) {
        u32 next = 0;
        for (i32 k = 4; k < AT_ONCE; ++k) next ^= table[(AT_ONCE - 1 - k) * 256 + from[k]];
        for (i32 k = 0; k < 4; ++k) next ^= table[(AT_ONCE - 1 - k) * 256 + ((crc >> 8 * k ^ from[k]) & 255)];
        crc = next;
    }
    for (; from < end; ++from) crc = table[(crc ^ *from) & 255] ^ crc >> 8;
    return ~crc;
}

// The CRC of chosen blocks; it goes on from what `crc` holds. Block b lies from `first[b]` to `first[b + 1]` units of bytes.
KERNEL(crc_blocks)(i64 blocks, const i64* chosen SIZE(blocks), i64 unit, const i64* first SIZE(>= 1),
                   const u8* bytes SIZE(unit * LAST(first)), const u32* table SIZE(4096), u32* crc SIZE(blocks))
{
    FOR_EACH(b, blocks) {
        const u8 *from = bytes + first[chosen[b]] * unit, *end = bytes + first[chosen[b] + 1] * unit;
        crc[b] = crc_after(crc[b], from, end, table);
    }
}

// The CRC of each piece of an array (`pieces.cuh`), added up over blocks of it. power[k]: x to the 2^k-th power.
KERNEL(crc_pieces)(i64 blocks, i64 n, i64 piece, i64 block, const u8* bytes SIZE(n), const u32* table SIZE(4096),
                   const u32* power SIZE(64), u32* crc SIZE(CEIL(n, piece) if n else 1))
{
    const i64 each = blocks_of_piece(piece, block);
    FOR_EACH(b, blocks) {
        const Span at = block_at(b, n, piece, block, each);
        const i64 end = (at.piece + 1) * piece < n ? (at.piece + 1) * piece : n;
        u32 part = crc_after(0, bytes + at.begin, bytes + at.end, table);
        u64 bits = (u64)(end - at.end) * 8;
        for (i32 k = 0; bits; ++k, bits >>= 1)
            if (bits & 1) part = times(part, power[k]);
        xor_shared(crc + at.piece, part);
    }
}
