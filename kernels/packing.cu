// Integers in as many bits as the largest of each eight needs: cheap, fully parallel, made for a GPU.
//
// The integers are those of several pieces (`pieces.cuh`), each in groups of eight, of which the last may be shorter. The
// bytes of a piece are the widths of its groups, then the groups.
#include "portable.cuh"
#include "pieces.cuh"

static const i32 TOGETHER = 8;   // so that a group of width w fills exactly w bytes

KERNEL(group_widths)(i64 groups, i64 n, i64 piece, const u64* value SIZE(n), u8* width SIZE(groups))
{
    const i64 each = blocks_of_piece(piece, TOGETHER);
    FOR_EACH(g, groups) {
        const Span at = block_at(g, n, piece, TOGETHER, each);
        u64 all = 0;
        for (i64 i = at.begin; i < at.begin + TOGETHER && i < at.end; ++i) all |= value[i];
        width[g] = (u8)bit_length(all);
    }
}

// `first` is where each group would begin if there were no widths between those of successive pieces.
KERNEL(pack_groups)(i64 groups, i64 n, i64 piece, const u64* value SIZE(n), const u8* width SIZE(groups),
                    const i64* first SIZE(groups + 1), u8* out SIZE(LAST(first) + groups))
{
    const i64 each = blocks_of_piece(piece, TOGETHER);
    FOR_EACH(g, groups) {
        const Span at = block_at(g, n, piece, TOGETHER, each);
        const i64 widths_end = (at.piece + 1) * each < groups ? (at.piece + 1) * each : groups;
        out[first[at.piece * each] + g] = width[g];
        u8* to = out + first[g] + widths_end;
        u64 held = 0;
        i32 count = 0;
        for (i64 i = at.begin; i < at.begin + TOGETHER; ++i) {
            u64 rest = i < at.end ? value[i] : 0;
            for (i32 left = width[g]; left > 0;) {
                const i32 taken = left < 32 ? left : 32;
                held |= (rest & ((1ULL << taken) - 1)) << count;
                rest >>= taken;
                left -= taken;
                for (count += taken; count >= 8; count -= 8, held >>= 8) *to++ = (u8)held;
            }
        }
    }
}

// From the widths of all pieces, and from the groups of all pieces.
KERNEL(unpack_groups)(i64 n, i64 piece, i64 groups, const u8* width SIZE(groups), const i64* first SIZE(groups + 1),
                      const u8* bytes SIZE(LAST(first)), u64* value SIZE(n))
{
    (void)groups;   // states a size
    const i64 each = blocks_of_piece(piece, TOGETHER);
    FOR_EACH(i, n) {
        u64 ahead = 0, within = (u64)i;
        if (i >= piece) {   // not the first piece
            ahead = (u64)i / (u64)piece * (u64)each;
            within = (u64)i % (u64)piece;
        }
        const u64 g = ahead + within / TOGETHER;
        const i32 bits = width[g], skipped = (i32)(within % TOGETHER) * bits;
        const u8* from = bytes + first[g] + skipped / 8;
        u64 number = 0;
        for (i32 at = -(skipped % 8); at < bits; at += 8, ++from)
            number |= at < 0 ? (u64)*from >> -at : (u64)*from << at;
        value[i] = bits < 64 ? number & ((1ULL << bits) - 1) : number;
    }
}

// Running sums of the numbers of each block from its own base on: `sum` are those of all numbers. Modulo 2^64.
KERNEL(sums_from_bases)(i64 runs, i64 n, i64 piece, i64 block, const u64* sum SIZE(n), i64 blocks,
                        const u64* base SIZE(blocks), u64* out SIZE(n))
{
    (void)blocks;   // states a size
    const i64 each = blocks_of_piece(piece, block);
    FOR_EACH(r, runs) {
        const i64 end = chunk_begin(r + 1, runs, n);
        i64 i = chunk_begin(r, runs, n);
        while (i < end) {
            const i64 p = piece_of(i, piece), b = p * each + (i - p * piece) / block;
            const Span at = block_at(b, n, piece, block, each);
            const u64 offset = base[b] - (at.begin > 0 ? sum[at.begin - 1] : 0);
            for (; i < at.end && i < end; ++i) out[i] = sum[i] + offset;
        }
    }
}
