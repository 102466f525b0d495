// The minimum spanning forest of a graph of parts: the lengths of its edges, and a round of Boruvka's algorithm.
#include "portable.cuh"
#include "space.cuh"

// The squared distance between the ends of each pair, as in the predicate.
KERNEL(measure_pairs)(i64 n, const i32* pair SIZE(2 * n), const real* position SIZE(>= D if n else 0),
                      const double* periods SIZE(D), double* squared SIZE(n))
{
    const Space space = space_of(periods, 0);
    FOR_EACH(p, n) {
        const real *one = position + (i64)pair[2 * p] * DIMENSIONS, *other = position + (i64)pair[2 * p + 1] * DIMENSIONS;
        squared[p] = distance_squared<true>(one, other, space);
    }
}

// The least squared distance from each tree to another one, as the bits of a float64, whose order is that of the numbers.
// Race: a minimum does not depend on the order of events.
KERNEL(shorten)(i64 n, const i32* side SIZE(2 * n), const u64* squared SIZE(n), u64* least SIZE(>= 1))
{
    FOR_EACH(p, n) {
        const i32 a = side[2 * p], b = side[2 * p + 1];
        if (a == b) continue;
        min_shared(least + a, squared[p]);
        min_shared(least + b, squared[p]);
    }
}

// The first pair of this distance. Race: as above.
KERNEL(choose_first)(i64 n, const i32* side SIZE(2 * n), const u64* squared SIZE(n), const u64* least SIZE(first),
                     u64* first SIZE(>= 1))
{
    FOR_EACH(p, n) {
        const i32 a = side[2 * p], b = side[2 * p + 1];
        if (a == b) continue;
        if (squared[p] == least[a]) min_shared(first + a, (u64)p);
        if (squared[p] == least[b]) min_shared(first + b, (u64)p);
    }
}
