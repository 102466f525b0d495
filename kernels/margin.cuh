// Links and conflicts with a margin around the linking length b.
//
// A pair that decides about groups keeps away from b, so that finders which round differently find the same groups: a link
// is at most `near` long (b less the margin), and particles of different groups are more than `far` apart (b plus the
// margin). There is no room for a margin where the original pair itself lies between near and far; such a pair is exempt,
// and b alone decides. So the original satisfies every constraint. The original distance is looked up only if the current
// one is in that window.
#pragma once

namespace {
struct Margin {
    double near_squared, length_squared, far_squared;
    const real* original;   // of each particle; null: no pair is exempt
    const Space& space;
    bool loose;             // pairs are linked unless they are safely apart: for groups that must not grow
    u8* used;               // of each particle: set to 1 if an exemption decided about a pair with it; may be null

    DEVICE_METHOD bool exempt(i32 i, i32 j) const
    {
        if (!original) return false;
        const double d = distance_squared<true>(original + (i64)i * DIMENSIONS, original + (i64)j * DIMENSIONS, space);
        if (d <= near_squared || d > far_squared) return false;
        if (used) used[i] = used[j] = 1;   // every thread that writes here writes the same
        return true;
    }

    // Whether two particles of different groups are too near each other.
    DEVICE_METHOD bool conflict(double squared, i32 i, i32 j) const
    {
        return squared <= far_squared && ((original && squared <= length_squared) || !exempt(i, j));
    }

    DEVICE_METHOD bool linked(double squared, i32 i, i32 j) const
    {
        if (squared <= near_squared) return true;
        return loose ? conflict(squared, i, j) : original && squared <= length_squared && exempt(i, j);
    }
};
}
