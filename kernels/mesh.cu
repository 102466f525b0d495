// Particle-mesh gravity: cloud-in-cell (CIC) mass assignment and force interpolation.
//
// Positions are in units of mesh cells, in [0, cells) along every axis; the mesh is a cube in C order. Mass assignment and
// force interpolation use the same CIC weights (each particle a cube of one cell), and the gradient is antisymmetric, so
// forces between two particles are equal and opposite, and the total momentum is conserved.
#include "portable.cuh"

static const i32 CORNERS = 1 << DIMENSIONS;
static const i32 WEIGHT_BITS = 15;   // per axis; in 3-D a particle weighs 2^45, and a cell has room for 2^18 of them

// The cell below a coordinate. Truncation equals floor, because coordinates are never negative.
DEVICE i32 cell_below(real x) { return (i32)x; }

// The 2^DIMENSIONS mesh points around a particle: bit `axis` of the corner says lower or upper.
DEVICE i64 corner_index(i32 corner, const i32* low, const i32* high, i64 cells)
{
    i64 index = 0;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) index = index * cells + (corner >> axis & 1 ? high[axis] : low[axis]);
    return index;
}

// CIC mass assignment. Weights are integers, so the sum does not depend on the order in which threads add, and the weights
// of one particle add up to exactly 2^(DIMENSIONS * WEIGHT_BITS): no mass is lost to rounding.
KERNEL(deposit)(i64 n, i64 cells, const real* position SIZE(n * D), i64* mass SIZE(cells ** D))
{
    FOR_EACH(i, n) {
        i32 low[DIMENSIONS], high[DIMENSIONS];
        i64 share[DIMENSIONS];
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const real x = position[i * DIMENSIONS + axis];
            low[axis] = cell_below(x);
            high[axis] = low[axis] + 1 < cells ? low[axis] + 1 : 0;
            share[axis] = (i64)((x - (real)low[axis]) * (real)(1 << WEIGHT_BITS));
        }
        for (i32 corner = 0; corner < CORNERS; ++corner) {
            i64 weight = 1;
            for (i32 axis = 0; axis < DIMENSIONS; ++axis)
                weight *= corner >> axis & 1 ? share[axis] : (1 << WEIGHT_BITS) - share[axis];
            add_shared(mass + corner_index(corner, low, high, cells), weight);
        }
    }
}

// The fourth-order central difference: 2% too small for waves of seven cells, where the second-order one loses 13%.
DEVICE real difference(real before2, real before1, real after1, real after2)
{
    return ((real)8 * (after1 - before1) - (after2 - before2)) * (real)(1.0 / 12);
}

// The gradient along every axis, interpolated to the particle.
DEVICE void gradient_at(const real* x, const real* potential, i64 cells, real* gradient)
{
    i64 offset[DIMENSIONS][6];   // the six neighbouring mesh points along each axis, as offsets into the mesh
    real upper[DIMENSIONS];
    i64 stride = 1;
    for (i32 axis = DIMENSIONS - 1; axis >= 0; --axis, stride *= cells) {
        const i32 below = cell_below(x[axis]);
        upper[axis] = x[axis] - (real)below;
        for (i32 k = 0; k < 6; ++k) {
            i64 at = below + k - 2;
            at += at < 0 ? cells : at >= cells ? -cells : 0;
            offset[axis][k] = at * stride;
        }
        gradient[axis] = 0;
    }
    for (i32 corner = 0; corner < CORNERS; ++corner) {
        real weight = 1;
        i64 at = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            weight *= corner >> axis & 1 ? upper[axis] : (real)1 - upper[axis];
            at += offset[axis][2 + (corner >> axis & 1)];
        }
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const i32 k = 2 + (corner >> axis & 1);
            const real* line = potential + (at - offset[axis][k]);
            gradient[axis] += weight * difference(line[offset[axis][k - 2]], line[offset[axis][k - 1]],
                                                  line[offset[axis][k + 1]], line[offset[axis][k + 2]]);
        }
    }
}

DEVICE real wrapped(real x, real period)
{
    x -= floor(x / period) * period;
    return x < period ? x : 0;   // x may be rounded up to the period, which is the same as 0
}

// One leapfrog step: the gradient of the potential changes the momentum (kick), then the position follows it (drift).
KERNEL(kick_and_drift)(i64 n, i64 cells, const real* potential SIZE(cells ** D), double kick, double drift,
                       real* position SIZE(n * D), real* momentum SIZE(n * D))
{
    FOR_EACH(i, n) {
        real gradient[DIMENSIONS];
        gradient_at(position + i * DIMENSIONS, potential, cells, gradient);
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const i64 k = i * DIMENSIONS + axis;
            momentum[k] -= (real)kick * gradient[axis];
            position[k] = wrapped(position[k] + (real)drift * momentum[k], (real)cells);
        }
    }
}
