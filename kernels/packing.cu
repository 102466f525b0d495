// Integers in as many bits as the largest of each eight needs: cheap, fully parallel, made for a GPU.
#include "portable.cuh"

static const i32 TOGETHER = 8;   // so that a group of width w fills exactly w bytes

KERNEL(group_widths)(i64 groups, i64 n, const u64* value SIZE(n), u8* width SIZE(groups))
{
    FOR_EACH(g, groups) {
        u64 all = 0;
        for (i64 i = g * TOGETHER; i < (g + 1) * TOGETHER && i < n; ++i) all |= value[i];
        width[g] = (u8)bit_length(all);
    }
}

KERNEL(pack_groups)(i64 groups, i64 n, const u64* value SIZE(n), const u8* width SIZE(groups),
                    const i64* first SIZE(groups + 1), u8* out SIZE(LAST(first)))
{
    FOR_EACH(g, groups) {
        u8* to = out + first[g];
        u64 held = 0;
        i32 count = 0;
        for (i64 i = g * TOGETHER; i < (g + 1) * TOGETHER; ++i) {
            u64 rest = i < n ? value[i] : 0;
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

KERNEL(unpack_groups)(i64 n, const u8* width SIZE(CEIL(n, 8)), const i64* first SIZE(width + 1),
                      const u8* bytes SIZE(LAST(first)), u64* value SIZE(n))
{
    FOR_EACH(i, n) {
        const i64 g = i / TOGETHER;
        const i32 bits = width[g], skipped = (i32)(i % TOGETHER) * bits;
        const u8* from = bytes + first[g] + skipped / 8;
        u64 number = 0;
        for (i32 at = -(skipped % 8); at < bits; at += 8, ++from)
            number |= at < 0 ? (u64)*from >> -at : (u64)*from << at;
        value[i] = bits < 64 ? number & ((1ULL << bits) - 1) : number;
    }
}
