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

// Side information that a decoder has, without a neighbour search, on whether and where a particle was moved: whether one
// of the particles beside it in the file is about a linking length away, and how near the nearest of them is.
static const i32 BESIDE = 8;
static const double NOBODY = 1e300;   // the distance to particles that do not exist
static const i32 STEPS = 5;   // of the difference of distance and linking length, in bounds, and of their ratio
static const i32 TILE = ON_CPU ? 32 : 1;   // successive particles treated together, in loops for a processor's wide registers
static const i32 PAIRED = TILE + BESIDE, SEEN = PAIRED + BESIDE;   // with the particles before them, and those behind

namespace {
// A tile of particles, and the pairs of particles beside each other in its chunk of the file. Slot s is particle begin -
// BESIDE + s. A CPU reads the slots of a tile, and computes the distance of a pair, once; on a GPU a tile is one particle
// in registers, and its thread reads the others as it comes to them.
struct Tile {
    double at[DIMENSIONS][ON_CPU ? SEEN : 1];
    double squared[ON_CPU ? BESIDE : 1][PAIRED];   // the distance from slot s to slot s + 1 + o
    double nearest[TILE], off[TILE];  // the least squared distance; the least difference of a distance and a linking length
    double partner[TILE], excess[TILE];   // which particle gave `off`, counted from this one, and its d*d - b*b
    double toward[TILE];              // the direction of a likely move
    i32 far[TILE], near[TILE];        // the numbers of thresholds that `off` and `nearest` reach
    const real* position;
    i64 begin, first, last;           // where the tile begins; its chunk of the file

    DEVICE_METHOD ALWAYS_INLINE bool exists(i32 slot) const
    {
        return begin - BESIDE + slot >= first && begin - BESIDE + slot < last;
    }

    DEVICE_METHOD ALWAYS_INLINE double coordinate(i32 axis, i32 slot) const
    {
        if (ON_CPU) return at[axis][slot];
        return slot == BESIDE ? at[axis][0] : (double)position[(begin - BESIDE + slot) * DIMENSIONS + axis];
    }

    DEVICE_METHOD ALWAYS_INLINE double distance(i32 slot, i32 other, const Space& space) const
    {
        double sum = 0;
        UNROLL for (i32 axis = 0; axis < DIMENSIONS; ++axis) {   // a period of 0 where space is open
            const double d = fabs(coordinate(axis, slot) - coordinate(axis, other)), image = fabs(d - space.period[axis]);
            const double least = image < d ? image : d;   // the same as by `difference`, without branches
            sum += least * least;
        }
        return sum;
    }

    // Squared distances of the tile's particles to those `beside` places behind them, or before; NOBODY where there are none.
    DEVICE_METHOD ALWAYS_INLINE const double* apart(i32 beside, const Space& space)
    {
        if (ON_CPU) return beside < 0 ? squared[-beside - 1] + BESIDE + beside : squared[beside - 1] + BESIDE;
        squared[0][0] = exists(BESIDE + beside) ? distance(BESIDE, BESIDE + beside, space) : NOBODY;
        return squared[0];
    }

    DEVICE_METHOD ALWAYS_INLINE void compare(const Space& space)
    {
        if (!ON_CPU) {
            UNROLL for (i32 axis = 0; axis < DIMENSIONS; ++axis) at[axis][0] = (double)position[begin * DIMENSIONS + axis];
            return;
        }
        const bool inside = exists(0) && exists(SEEN - 1);
        const real* from = position + (begin - BESIDE) * DIMENSIONS;
        for (i32 s = 0; s < SEEN; ++s)
            for (i32 axis = 0; axis < DIMENSIONS; ++axis)
                at[axis][s] = inside || exists(s) ? (double)from[s * DIMENSIONS + axis] : 0;
        for (i32 o = 0; o < BESIDE; ++o)
            for (i32 s = 0; s < PAIRED; ++s) squared[o][s] = distance(s, s + 1 + o, space);
        if (inside) return;
        for (i32 o = 0; o < BESIDE; ++o)
            for (i32 s = 0; s < PAIRED; ++s)
                if (!exists(s) || !exists(s + 1 + o)) squared[o][s] = NOBODY;
    }

    // The least of both figures for each particle of the tile, and its partner: the one whose distance gave `off`. Of
    // several, it is the last one before the particle, else the first one behind it.
    DEVICE_METHOD ALWAYS_INLINE void reduce(i64 lengths, const double* length, const Space& space)
    {
        for (i32 t = 0; t < TILE; ++t) {
            nearest[t] = off[t] = NOBODY;
            partner[t] = excess[t] = 0;
        }
        for (i32 turn = 0; turn < 2 * BESIDE; ++turn) {
            const i32 beside = turn < BESIDE ? turn - BESIDE : turn - BESIDE + 1;
            const double* away = apart(beside, space);
            const double number = beside;   // here, as a loop with a conversion is not made wide
            for (i32 t = 0; t < TILE; ++t) nearest[t] = away[t] < nearest[t] ? away[t] : nearest[t];
            for (i64 l = lengths - 1; l >= 0; --l) {
                const double size = length[l] * length[l], per_length = 1 / length[l];
                double beyond[TILE], misses[TILE];   // in loops of their own: a choice of computed values is not made wide
                for (i32 t = 0; t < TILE; ++t) beyond[t] = away[t] - size;
                for (i32 t = 0; t < TILE; ++t) misses[t] = fabs(beyond[t]) * per_length;
                for (i32 t = 0; t < TILE; ++t) {
                    const double miss = away[t] < NOBODY ? misses[t] : NOBODY;
                    partner[t] = miss < off[t] ? number : partner[t];
                    excess[t] = miss < off[t] ? beyond[t] : excess[t];
                    off[t] = miss < off[t] ? miss : off[t];
                }
            }
        }
    }

    // The direction of a move away from a partner that is nearer than a linking length, or towards one that is not: along
    // the axis where the two are farthest apart.
    DEVICE_METHOD ALWAYS_INLINE void point(const Space& space)
    {
        double longest[TILE], beside[TILE];
        for (i32 t = 0; t < TILE; ++t) longest[t] = toward[t] = 0;
        UNROLL for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double period = space.period[axis], half = space.half_period[axis];   // both 0 where space is open
            for (i32 t = 0; t < TILE; ++t) beside[t] = coordinate(axis, t + BESIDE + (i32)partner[t]);
            for (i32 t = 0; t < TILE; ++t) beside[t] = coordinate(axis, t + BESIDE) - beside[t];
            const double one = 1 + 2 * axis, other = 2 + 2 * axis;
            for (i32 t = 0; t < TILE; ++t) {   // as by `difference`, without branches
                const double shift = beside[t] > half ? period : beside[t] < -half ? -period : 0;
                const double d = beside[t] - shift, length = fabs(d);
                const double to = excess[t] > 0 ? other : one, from = excess[t] > 0 ? one : other;
                const double named = d > 0 ? to : from;
                toward[t] = length > longest[t] ? named : toward[t];
                longest[t] = length > longest[t] ? length : longest[t];
            }
        }
    }

    DEVICE_METHOD ALWAYS_INLINE void classify(double bound, double largest, const double* misses, const double* shares)
    {
        for (i32 t = 0; t < TILE; ++t) {
            const double miss = off[t] / (2 * bound), share = nearest[t] / (largest * largest);
            far[t] = near[t] = 0;
            for (i32 s = 0; s < STEPS; ++s) {
                far[t] += miss >= misses[s];
                near[t] += share >= shares[s];
            }
        }
    }
};
}

WIDE DEVICE void fill(Tile& tile, const Space& space, i64 lengths, const double* length, double bound,
                      const double* misses, const double* shares)
{
    tile.compare(space);
    tile.reduce(lengths, length, space);
    tile.point(space);
    tile.classify(bound, length[lengths - 1], misses, shares);
}

// Nearness is the least squared distance, in squares of the largest linking length. The miss is the least difference of
// squared distance and squared linking length b, over 2 b times the bound. Both lists of thresholds increase. Only
// particles of the same chunk of the file are compared.
KERNEL(surmise)(i64 runs, i64 n, i64 chunk, const real* position SIZE(n * D), const double* periods SIZE(D), i64 lengths,
                const double* length SIZE(lengths), double bound, const double* misses SIZE(5),
                const double* shares SIZE(5), u8* context SIZE(n), u8* forward SIZE(n))
{
    const Space space = space_of(periods, 0);
    FOR_EACH(r, runs) {
        const i64 run_end = chunk_begin(r + 1, runs, n);
        Tile tile;
        tile.position = position;
        for (i64 begin = chunk_begin(r, runs, n), end; begin < run_end; begin = end) {
            tile.begin = begin;
            tile.first = begin / chunk * chunk;
            tile.last = tile.first + chunk < n ? tile.first + chunk : n;
            end = begin + TILE < tile.last ? begin + TILE : tile.last;
            end = end < run_end ? end : run_end;
            fill(tile, space, lengths, length, bound, misses, shares);
            for (i64 i = begin; i < end; ++i) {
                const i32 t = (i32)(i - begin);
                context[i] = (u8)(tile.far[t] * (STEPS + 1) + tile.near[t]);
                forward[i] = tile.far[t] == STEPS || tile.off[t] == NOBODY ? 0 : (u8)tile.toward[t];
            }
        }
    }
}
