// Moves that are stored beside decoded positions: applying them, and their contexts, which a decoder can compute.
#include "portable.cuh"
#include "space.cuh"
#include "moves.cuh"

KERNEL(move_particles)(i64 n, const i32* index SIZE(n), const u16* rank SIZE(n), const u8* forward SIZE(n),
                       const i32* moves SIZE(33 ** D * D), const double* periods SIZE(D), double step,
                       real* position SIZE(>= n * D))
{
    FOR_EACH(e, n) {
        i32 move[DIMENSIONS];
        turn(moves + (i64)rank[e] * DIMENSIONS, forward[e], move);
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            real* x = position + (i64)index[e] * DIMENSIONS + axis;
            *x = moved(*x, move[axis], step, periods[axis]);
        }
    }
}

// Side information that a decoder has, without a neighbour search, on whether and where a particle was moved: whether one of
// the particles beside it in the file is about a linking length away, and how near the nearest of them is.
static const i32 BESIDE = 8, RING = 16;
static const double NOBODY = 1e300;   // the distance to particles that do not exist
static const i32 STEPS = 5;   // of the difference of distance and linking length, in bounds, and of their ratio

// Pairs of particles beside each other in a chunk of the file; `off` is how far their distance is from a linking length.
struct Beside {
    double squared[RING][BESIDE], off[RING][BESIDE];   // from particle i to i + 1 + o, at row i & (RING - 1)
};

DEVICE void look_ahead(const real* position, i64 i, i64 last, const Space& space, i64 lengths, const double* length,
                       Beside& beside)
{
    const i64 row = i & (RING - 1);
    for (i32 o = 0; o < BESIDE; ++o) {
        double squared = NOBODY, off = NOBODY;
        if (i + 1 + o < last) {
            const real* here = position + i * DIMENSIONS;
            squared = distance_squared<true>(here, here + (1 + o) * DIMENSIONS, space);
            for (i64 l = 0; l < lengths; ++l) {
                const double apart = fabs(squared - length[l] * length[l]) / length[l];
                off = apart < off ? apart : off;
            }
        }
        beside.squared[row][o] = squared;
        beside.off[row][o] = off;
    }
}

// The direction of a move away from a partner that is nearer than a linking length, or towards one that is not: along the
// axis where the two are farthest apart.
DEVICE u8 direction(const real* here, const real* partner, const Space& space, bool closer)
{
    double longest = 0;
    u8 forward = 0;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        const double d = difference<true>(here[axis], partner[axis], space, axis);
        if (fabs(d) <= longest) continue;
        longest = fabs(d);
        forward = (u8)(1 + 2 * axis + ((d > 0) == closer));
    }
    return forward;
}

DEVICE i32 steps_up_to(double value, const double* thresholds)
{
    i32 count = 0;
    for (i32 s = 0; s < STEPS; ++s) count += value >= thresholds[s];
    return count;
}

// Nearness is the least squared distance, in squares of the largest linking length. The miss is the least difference of
// squared distance and squared linking length b, over 2 b times the bound. Both lists of thresholds increase. Only particles
// of the same chunk of the file are compared.
KERNEL(surmise)(i64 runs, i64 n, i64 chunk, const real* position SIZE(n * D), const double* periods SIZE(D), i64 lengths,
                const double* length SIZE(lengths), double bound, const double* misses SIZE(5),
                const double* shares SIZE(5), u8* context SIZE(n), u8* forward SIZE(n))
{
    const Space space = space_of(periods, 0);
    const double largest = length[lengths - 1];
    FOR_EACH(r, runs) {
        const i64 begin = chunk_begin(r, runs, n), end = chunk_begin(r + 1, runs, n);
        Beside beside;
        for (i64 i = begin - BESIDE < 0 ? 0 : begin - BESIDE; i < end; ++i) {
            const i64 first = i / chunk * chunk, last = first + chunk < n ? first + chunk : n;
            look_ahead(position, i, last, space, lengths, length, beside);
            if (i < begin) continue;
            double squared = NOBODY, off = NOBODY;
            i32 partner = 0;
            for (i32 o = 0; o < BESIDE; ++o) {
                const double d = beside.squared[i & (RING - 1)][o], to = beside.off[i & (RING - 1)][o];
                squared = d < squared ? d : squared;
                off = to < off ? to : off;
            }
            for (i32 o = 0; o < BESIDE && i - 1 - o >= first; ++o) {
                const i64 row = (i - 1 - o) & (RING - 1);
                const double d = beside.squared[row][o], to = beside.off[row][o];
                squared = d < squared ? d : squared;
                off = to < off ? to : off;
            }
            const i32 far = steps_up_to(off / (2 * bound), misses);
            context[i] = (u8)(far * (STEPS + 1) + steps_up_to(squared / (largest * largest), shares));
            forward[i] = 0;
            if (far == STEPS || off == NOBODY) continue;
            for (i32 o = BESIDE - 1; o >= 0 && !partner; --o)
                if (i - 1 - o >= first && beside.off[(i - 1 - o) & (RING - 1)][o] == off) partner = -1 - o;
            for (i32 o = 0; o < BESIDE && !partner; ++o)
                if (beside.off[i & (RING - 1)][o] == off) partner = 1 + o;
            const double d = partner < 0 ? beside.squared[(i + partner) & (RING - 1)][-1 - partner]
                                         : beside.squared[i & (RING - 1)][partner - 1];
            bool closer = true;
            for (i64 l = 0; l < lengths; ++l)
                if (fabs(d - length[l] * length[l]) / length[l] == off) closer = d > length[l] * length[l];
            forward[i] = direction(position + i * DIMENSIONS, position + (i + partner) * DIMENSIONS, space, closer);
        }
    }
}
