// Which subdomain owns each position, which positions are so near to a face of it that others may need them; and sending them.
#include "portable.cuh"

// The cuts are a tree (workbench/distributed/decomposition.py): a child that is not negative is another cut, -1 - part a
// subdomain. Positions are compared in double, whatever their type, so that every division of the same cuts agrees.
KERNEL(divide)(i64 n, i64 cuts, const i32* axis SIZE(cuts), const double* place SIZE(cuts), const i32* child SIZE(cuts * 2),
               const double* low SIZE(cuts * D + D), const double* high SIZE(cuts * D + D), const real* position SIZE(n * D),
               i32* owner SIZE(n), u8* near SIZE(n))
{
    FOR_EACH(i, n) {
        const real* x = position + i * DIMENSIONS;
        i32 at = cuts > 0 ? 0 : -1;
        while (at >= 0) at = child[2 * at + !((double)x[axis[at]] < place[at])];
        const i32 part = -1 - at;
        bool is_near = false;
        for (i32 a = 0; a < DIMENSIONS; ++a) {
            const double along = x[a];
            is_near |= (along < low[part * DIMENSIONS + a]) | (along >= high[part * DIMENSIONS + a]);
        }
        owner[i] = part;
        near[i] = is_near;
    }
}

// Particles are sent in the order of their rows: to each subdomain those that it owns and, between them, copies of others
// (ghosts). `copied` has the rows of the copies, rising, and `to` who gets each. Each work item walks one chunk of the rows:
// it counts, and after a sum over the counts it writes at the places that are its own.
DEVICE i64 first_copy(const i32* copied, i64 copies, i64 row)
{
    i64 low = 0, high = copies;
    while (low < high) {
        const i64 middle = (low + high) / 2;
        if (copied[middle] < row) low = middle + 1;
        else high = middle;
    }
    return low;
}

KERNEL(count_sent)(i64 chunks, i64 n, i64 parts, i64 copies, const i32* owner SIZE(n), const i32* copied SIZE(copies),
                   const i32* to SIZE(copies), i64* owned SIZE(chunks * parts), i64* sent SIZE(chunks * parts))
{
    FOR_EACH(c, chunks) {
        const i64 begin = chunk_begin(c, chunks, n), end = chunk_begin(c + 1, chunks, n), last = first_copy(copied, copies, end);
        for (i64 part = 0; part < parts; ++part) owned[c * parts + part] = 0;
        for (i64 i = begin; i < end; ++i) ++owned[c * parts + owner[i]];
        for (i64 part = 0; part < parts; ++part) sent[c * parts + part] = owned[c * parts + part];
        for (i64 k = first_copy(copied, copies, begin); k < last; ++k) ++sent[c * parts + to[k]];
    }
}

// The row of a copy is written as -1 - row. `next` is where each work item writes the next particle for each subdomain.
KERNEL(pack)(i64 chunks, i64 n, i64 parts, i64 copies, const i32* owner SIZE(n), const i32* copied SIZE(copies),
             const i32* to SIZE(copies), const real* position SIZE(n * D), i64* next SIZE(chunks * parts),
             i32* row SIZE(n + copies), real* packed SIZE(n * D + copies * D))
{
    FOR_EACH(c, chunks) {
        i64* const free = next + c * parts;
        const i64 end = chunk_begin(c + 1, chunks, n);
        i64 i = chunk_begin(c, chunks, n), k = first_copy(copied, copies, i);
        for (; i < end; ++i) {
            i64 place = free[owner[i]]++;
            row[place] = (i32)i;
            for (i32 a = 0; a < DIMENSIONS; ++a) packed[place * DIMENSIONS + a] = position[i * DIMENSIONS + a];
            for (; k < copies && copied[k] == i; ++k) {
                place = free[to[k]]++;
                row[place] = -1 - (i32)i;
                for (i32 a = 0; a < DIMENSIONS; ++a) packed[place * DIMENSIONS + a] = position[i * DIMENSIONS + a];
            }
        }
    }
}
