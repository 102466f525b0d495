// The smallest and largest coordinate along each axis, whether all of them are finite, and which lie in a given space.
#include "portable.cuh"
#include "pieces.cuh"

// Of each of `parts` runs of each piece (`pieces.cuh`). A coordinate that is not finite makes both ends of its axis NaN, so it
// need not be searched for again. An empty run has the extent of the first particle of its piece. The ends are written in
// double precision, since CuPy's own kernels take subnormal numbers in single precision for zero.
KERNEL(extent)(i64 chunks, i64 parts, i64 n, i64 piece, const real* position SIZE(n * D), double* lower SIZE(chunks * D),
               double* upper SIZE(chunks * D))
{
    FOR_EACH(c, chunks) {
        const Span run = run_at(c, n, piece, parts);
        const i64 some = run.begin < run.end ? run.begin : run.piece * piece;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            real low = position[some * DIMENSIONS + axis], high = low, finite = 0;
            for (i64 i = run.begin; i < run.end; ++i) {
                const real x = position[i * DIMENSIONS + axis];
                low = x < low ? x : low;
                high = x > high ? x : high;
                finite += x - x;   // 0, or NaN from the first infinity or NaN on
            }
            lower[c * DIMENSIONS + axis] = low + finite;
            upper[c * DIMENSIONS + axis] = high + finite;
        }
    }
}

// Which positions lie in lower <= x < upper along each axis; earlier marks are kept.
KERNEL(mark_inside)(i64 n, const real* position SIZE(n * D), const double* lower SIZE(D), const double* upper SIZE(D),
                    u8* inside SIZE(n))
{
    FOR_EACH(i, n) {
        bool within = true;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double x = position[i * DIMENSIONS + axis];
            within = within && x >= lower[axis] && x < upper[axis];
        }
        inside[i] |= within;
    }
}
