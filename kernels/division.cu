// Which subdomain owns each position, and which positions are so near to a face of it that others may need them.
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
            is_near = is_near || along < low[part * DIMENSIONS + a] || along >= high[part * DIMENSIONS + a];
        }
        owner[i] = part;
        near[i] = is_near;
    }
}
