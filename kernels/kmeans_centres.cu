// The centre update of k-means, and the distances to centres.
//
// Coordinates are added as whole numbers, multiples of a power of two. So the sums do not depend on the order in which
// threads add, points that stay in their cluster need not be added again, and a checksum of the sums holds exactly.
#include "portable.cuh"
#include "kmeans.cuh"

DEVICE ALWAYS_INLINE i64 whole(double scaled) { return (i64)(scaled < 0 ? scaled - 0.5 : scaled + 0.5); }

WIDE DEVICE void add_point(const real* point, i64 axes, double scale, i64* sum)
{
    for (i64 axis = 0; axis < axes; ++axis) sum[axis] += whole((double)point[axis] * scale);
}

// Moves points whose label changed from one cluster's sum to another's; `old_label` is -1 where a point was in none. With
// as many `copies` of the sums as chunks, each chunk has its own; otherwise all share one.
KERNEL(move_points)(i64 chunks, i64 n, i64 axes, i64 clusters, i64 copies, const real* point SIZE(n * axes), double scale,
                    const i32* old_label SIZE(n), const i32* label SIZE(n), i64* sum SIZE(copies * clusters * axes),
                    i64* count SIZE(copies * clusters))
{
    FOR_EACH(c, chunks) {
        const bool alone = copies == chunks;
        i64* sums = sum + (alone ? c * clusters * axes : 0);
        i64* counts = count + (alone ? c * clusters : 0);
        const i64 end = chunk_begin(c + 1, chunks, n);
        for (i64 i = chunk_begin(c, chunks, n); i < end; ++i) {
            const i64 from = old_label[i], to = label[i];
            if (from == to) continue;
            const real* x = point + i * axes;
            if (alone) {
                add_point(x, axes, scale, sums + to * axes);
                if (from >= 0) add_point(x, axes, -scale, sums + from * axes);
            } else
                for (i64 axis = 0; axis < axes; ++axis) {
                    add_shared(sums + to * axes + axis, whole((double)x[axis] * scale));
                    if (from >= 0) add_shared(sums + from * axes + axis, whole((double)x[axis] * -scale));
                }
            if (alone) {
                ++counts[to];
                if (from >= 0) --counts[from];
            } else {
                add_shared(counts + to, 1);
                if (from >= 0) add_shared(counts + from, -1);
            }
        }
    }
}

// The squared distance of each point from its centre.
KERNEL(own_distances)(i64 n, i64 axes, i64 clusters, const real* point SIZE(n * axes),
                      const real* centre SIZE(clusters * axes), const i32* label SIZE(n), double* distance SIZE(n))
{
    (void)clusters;
    FOR_EACH(i, n) distance[i] = squared_distance(point + i * axes, centre + label[i] * axes, axes);
}

// For seeding: the distance of each point to the nearest centre so far, now that centre `added` exists. `apart` holds the
// squared distances of the earlier centres from the new one. A point whose centre is twice as far from the new one as the
// point is from its centre cannot be nearer to the new one (triangle inequality), and is not looked at; `slack`, a little
// above 1, covers rounding.
KERNEL(approach)(i64 chunks, i64 n, i64 axes, i64 added, const real* point SIZE(n * axes),
                 const real* centre SIZE(>= (added + 1) * axes), const double* apart SIZE(>= added), double slack,
                 double* distance SIZE(n), i32* owner SIZE(n), double* largest SIZE(chunks))
{
    FOR_EACH(c, chunks) {
        double most = 0;
        const i64 end = chunk_begin(c + 1, chunks, n);
        for (i64 i = chunk_begin(c, chunks, n); i < end; ++i) {
            if (added == 0 || apart[owner[i]] < 4 * slack * distance[i]) {
                const double now = squared_distance(point + i * axes, centre + added * axes, axes);
                if (added == 0 || now < distance[i]) {
                    distance[i] = now;
                    owner[i] = (i32)added;
                }
            }
            most = distance[i] > most ? distance[i] : most;
        }
        largest[c] = most;
    }
}

DEVICE i64 weight(double distance, double scale) { return (i64)(distance * scale); }

// The sum of the whole-number weights in each chunk.
KERNEL(weigh)(i64 chunks, i64 n, const double* distance SIZE(n), double scale, i64* total SIZE(chunks))
{
    FOR_EACH(c, chunks) {
        i64 sum = 0;
        const i64 end = chunk_begin(c + 1, chunks, n);
        for (i64 i = chunk_begin(c, chunks, n); i < end; ++i) sum += weight(distance[i], scale);
        total[c] = sum;
    }
}

// The point of one chunk at which the running sum of the weights exceeds `target`.
KERNEL(pick)(i64 one, i64 begin, i64 end, i64 n, const double* distance SIZE(n), double scale, i64 target,
             i64* picked SIZE(one))
{
    (void)n;
    FOR_EACH_LIGHT(once, one) {
        i64 sum = 0, i = begin;
        while (i + 1 < end && (sum += weight(distance[i], scale)) <= target) ++i;
        picked[once] = i;
    }
}
