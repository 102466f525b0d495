// Distances, and the one predicate that decides whether two particles are friends, shared by all kernels.
#pragma once

// The period along each axis (0: open), half of it, and a length squared.
struct Space {
    double period[DIMENSIONS], half_period[DIMENSIONS], length_squared;
};

DEVICE Space space_of(const double* periods, double length_squared)
{
    Space space;
    space.length_squared = length_squared;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        space.period[axis] = periods[axis];
        space.half_period[axis] = periods[axis] / 2;
    }
    return space;
}

// The difference of two coordinates, to the nearest periodic image. With `images` false the caller knows that no
// difference exceeds half a period, so that the nearest image is this one.
template <bool images> DEVICE double difference(real p, real q, const Space& space, i32 axis)
{
    double d = (double)p - (double)q;
    if (images && space.period[axis] > 0) {
        if (d > space.half_period[axis]) d -= space.period[axis];
        else if (d < -space.half_period[axis]) d += space.period[axis];
    }
    return d;
}

// THE PREDICATE, stated once: two particles are friends when d*d <= b*b, each operation in double precision, the
// squares added axis by axis, the nearest periodic image taken. Cells only save work: they never decide.
template <bool images> DEVICE double distance_squared(const real* p, const real* q, const Space& space)
{
    double sum = 0;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        const double d = difference<images>(p[axis], q[axis], space, axis);
        sum += d * d;
    }
    return sum;
}

template <bool images> DEVICE bool friends(const real* p, const real* q, const Space& space)
{
    return distance_squared<images>(p, q, space) <= space.length_squared;
}
