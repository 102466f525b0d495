// The squared distance of k-means, stated once: in double, as eight partial sums over the axes that are then folded.
//
// The fixed order makes it the same number on every machine, whatever the length of the vectors. It decides which centre is
// nearest, how centres are seeded, and the inertia.
#pragma once

static const i32 PARTIAL_SUMS = 8;

DEVICE ALWAYS_INLINE double squared_distance(const real* x, const real* y, i64 axes)
{
    double sum[PARTIAL_SUMS] = {0, 0, 0, 0, 0, 0, 0, 0};
    i64 axis = 0;
    for (; axis + PARTIAL_SUMS <= axes; axis += PARTIAL_SUMS)
        for (i32 p = 0; p < PARTIAL_SUMS; ++p) {
            const double apart = (double)x[axis + p] - (double)y[axis + p];
            sum[p] += apart * apart;
        }
    for (i32 p = 0; axis + p < axes; ++p) {
        const double apart = (double)x[axis + p] - (double)y[axis + p];
        sum[p] += apart * apart;
    }
    for (i32 width = PARTIAL_SUMS / 2; width > 0; width /= 2)
        for (i32 p = 0; p < width; ++p) sum[p] += sum[p + width];
    return sum[0];
}

// The centre nearest to a point; the first among equals. `centre` is (clusters, axes).
DEVICE ALWAYS_INLINE i32 nearest_centre(const real* x, const real* centre, i64 clusters, i64 axes)
{
    double least = squared_distance(x, centre, axes);
    i32 nearest = 0;
    for (i64 k = 1; k < clusters; ++k) {
        const double apart = squared_distance(x, centre + k * axes, axes);
        if (apart < least) {
            least = apart;
            nearest = (i32)k;
        }
    }
    return nearest;
}
