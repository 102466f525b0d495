// Numbers of particles predicted from those of the particles around them: velocities, potentials, temperatures.
//
// The particles are sorted along a Hilbert curve, which has no jumps, so that boxes around successive particles are small.
// In the first step every 2^k-th of them is known, and each step halves this distance: the particles between two known ones
// are predicted from the nearest known ones, by a linear fit with weights that fall with the squared distance. So a
// particle has neighbours on all sides, and the particles of a step do not depend on each other. The scale of a residual is
// expected from how far the neighbours are from the fit, from what the fits have missed at the neighbours themselves, and
// from the distances; it names the table with which rANS codes the residual (residuals.cuh).
//
// The decoder repeats this arithmetic: sums are in a fixed order, there is no fused multiply-add, and logarithms are read
// off the exponent.
//
// The search for neighbours is exact. Particles 16 k to 16 k + 15 are in a box; a box of the next tier encloses two boxes,
// and so on. In a step in which every s-th particle is between known ones, a box of 16 s particles has eight that are
// known: these boxes are the leaves of the search.
#include "portable.cuh"
#include "residuals.cuh"
#include "logarithm.cuh"

static const i32 NEAREST = 12;          // neighbours of a particle
static const i32 LEAF_TIER = 4;         // the boxes of the lowest tier have 2^4 particles
static const i32 MOST_COMPONENTS = 3;   // numbers of a particle
static const i32 LOWEST_QUARTER = -8;   // the quarter octave of a scale that has context 0

namespace {

// What a step knows: all boxes, tier after tier, and the particles.
struct Known {
    i64 particles, spacing;   // every other multiple of `spacing` is known
    i32 leaf, top;            // tiers
    const i64* tier;          // where the boxes of each tier begin
    const double* box;        // the lower corner and the upper one
    const real* position;
};

struct Nearest {
    double square[NEAREST];   // of the distances, rising
    i64 particle[NEAREST];
    i32 count;
};

}  // namespace

// The place of each particle on a Hilbert curve through cells, 2^bits along an axis, by Skilling's method: from the highest
// bit on, the lower bits of the coordinates are reflected and exchanged as the curve turns; then they are a Gray code.
KERNEL(curve_keys)(i64 n, const real* position SIZE(n * D), const double* lower SIZE(D), double cells_per_length, i32 bits,
                   u64* key SIZE(n))
{
    const u32 last = (1u << bits) - 1;
    FOR_EACH(i, n) {
        u32 cell[DIMENSIONS], turned = 0;
        for (i32 a = 0; a < DIMENSIONS; ++a) {
            const double place = ((double)position[i * DIMENSIONS + a] - lower[a]) * cells_per_length;
            cell[a] = !(place > 0) ? 0 : place < (double)last ? (u32)place : last;
        }
        for (u32 bit = 1u << (bits - 1); bit > 1; bit >>= 1)
            for (i32 a = 0; a < DIMENSIONS; ++a) {
                const u32 exchanged = cell[a] & bit ? 0 : (cell[0] ^ cell[a]) & (bit - 1);
                cell[0] ^= cell[a] & bit ? bit - 1 : exchanged;
                cell[a] ^= exchanged;
            }
        for (i32 a = 1; a < DIMENSIONS; ++a) cell[a] ^= cell[a - 1];
        for (u32 bit = 1u << (bits - 1); bit > 1; bit >>= 1)
            if (cell[DIMENSIONS - 1] & bit) turned ^= bit - 1;
        u64 found = 0;
        for (i32 b = bits - 1; b >= 0; --b)
            for (i32 a = 0; a < DIMENSIONS; ++a) found = found << 1 | ((cell[a] ^ turned) >> b & 1);
        key[i] = found;
    }
}

// The boxes of the lowest tier.
KERNEL(enclose_particles)(i64 n, i64 particles, const real* position SIZE(particles * D), double* box SIZE(>= n * 2 * D))
{
    FOR_EACH(b, n) {
        double *lower = box + b * 2 * DIMENSIONS, *upper = lower + DIMENSIONS;
        const i64 first = b << LEAF_TIER, end = first + (1 << LEAF_TIER) < particles ? first + (1 << LEAF_TIER) : particles;
        for (i32 a = 0; a < DIMENSIONS; ++a) {
            lower[a] = upper[a] = (double)position[first * DIMENSIONS + a];
            for (i64 i = first + 1; i < end; ++i) {
                const double x = (double)position[i * DIMENSIONS + a];
                if (x < lower[a]) lower[a] = x;
                if (x > upper[a]) upper[a] = x;
            }
        }
    }
}

// The boxes of a tier, which begin at `to`, from the `halves` boxes of the tier below.
KERNEL(enclose_boxes)(i64 n, i64 halves, i64 from, i64 to, i64 boxes, double* box SIZE(boxes * 2 * D))
{
    (void)boxes;   // states a size
    FOR_EACH(b, n) {
        const double* one = box + (from + 2 * b) * 2 * DIMENSIONS;
        const double* other = 2 * b + 1 < halves ? one + 2 * DIMENSIONS : one;
        double *lower = box + (to + b) * 2 * DIMENSIONS, *upper = lower + DIMENSIONS;
        for (i32 a = 0; a < DIMENSIONS; ++a) {
            lower[a] = one[a] < other[a] ? one[a] : other[a];
            upper[a] = one[DIMENSIONS + a] > other[DIMENSIONS + a] ? one[DIMENSIONS + a] : other[DIMENSIONS + a];
        }
    }
}

DEVICE ALWAYS_INLINE void insert(Nearest* nearest, double square, i64 particle)
{
    i32 at = nearest->count < NEAREST ? nearest->count++ : NEAREST - 1;
    for (; at > 0 && nearest->square[at - 1] > square; --at) {
        nearest->square[at] = nearest->square[at - 1];
        nearest->particle[at] = nearest->particle[at - 1];
    }
    nearest->square[at] = square;
    nearest->particle[at] = particle;
}

DEVICE ALWAYS_INLINE bool is_near(const Nearest& nearest, double square)
{
    return nearest.count < NEAREST || square < nearest.square[NEAREST - 1];
}

// The known particles of a leaf.
DEVICE ALWAYS_INLINE void look_into(const Known& known, i64 leaf, const double* place, Nearest* nearest)
{
    const i64 first = leaf << known.leaf;
    for (i64 k = 0; k < 8; ++k) {
        const i64 i = first + 2 * k * known.spacing;
        if (i >= known.particles) return;
        double square = 0;
        for (i32 a = 0; a < DIMENSIONS; ++a) {
            const double off = (double)known.position[i * DIMENSIONS + a] - place[a];
            square += off * off;
        }
        if (is_near(*nearest, square)) insert(nearest, square, i);
    }
}

// The squared distance of a place from a box: 0 inside.
DEVICE ALWAYS_INLINE double distance_from(const double* box, const double* place)
{
    double square = 0;
    for (i32 a = 0; a < DIMENSIONS; ++a) {
        const double below = box[a] - place[a], above = place[a] - box[DIMENSIONS + a];
        const double off = below > 0 ? below : above > 0 ? above : 0;
        square += off * off;
    }
    return square;
}

DEVICE ALWAYS_INLINE i64 boxes_of(const Known& known, i32 tier)
{
    return known.tier[tier - LEAF_TIER + 1] - known.tier[tier - LEAF_TIER];
}

// The known particles of a box and of all below it, but of those that are too far.
DEVICE ALWAYS_INLINE void search(const Known& known, i32 root, i64 box, const double* place, Nearest* nearest)
{
    i32 tier = root;
    for (i64 k = box;;) {
        const double* here = known.box + (known.tier[tier - LEAF_TIER] + k) * 2 * DIMENSIONS;
        if (is_near(*nearest, distance_from(here, place))) {
            if (tier > known.leaf) {
                --tier;
                k *= 2;
                continue;
            }
            look_into(known, k, place, nearest);
        }
        for (; tier < root && ((k & 1) || k + 1 >= boxes_of(known, tier)); ++tier) k >>= 1;
        if (tier == root) return;
        ++k;
    }
}

// The nearest known particles. The search goes from the leaf of the particle itself, which has most of them, to ever larger
// boxes.
DEVICE Nearest nearest_to(const Known& known, i64 i, const double* place)
{
    Nearest nearest;
    nearest.count = 0;
    i64 own = i >> known.leaf;
    look_into(known, own, place, &nearest);
    for (i32 tier = known.leaf; tier <= known.top; ++tier, own >>= 1)
        if ((own ^ 1) < boxes_of(known, tier)) search(known, tier, own ^ 1, place, &nearest);
    return nearest;
}

// The share of each neighbour in the fit at the place itself: a weight, corrected for the neighbours' being on one side.
// Slopes are damped, so that few neighbours, or neighbours on a plane, do no harm. `offset` is in units of the spacing.
DEVICE ALWAYS_INLINE void shares_of(i32 count, const double* weight, double offset[][DIMENSIONS], double size,
                                    double* share)
{
    double centre[DIMENSIONS], matrix[DIMENSIONS][DIMENSIONS], slope[DIMENSIONS];
    for (i32 a = 0; a < DIMENSIONS; ++a) {
        centre[a] = 0;
        for (i32 k = 0; k < count; ++k) centre[a] += weight[k] * offset[k][a];
        slope[a] = centre[a];
    }
    for (i32 a = 0; a < DIMENSIONS; ++a)
        for (i32 b = a; b < DIMENSIONS; ++b) {
            double sum = a == b ? 0.3 * size : 0;
            for (i32 k = 0; k < count; ++k) sum += weight[k] * (offset[k][a] - centre[a]) * (offset[k][b] - centre[b]);
            matrix[a][b] = matrix[b][a] = sum;
        }
    for (i32 a = 0; a < DIMENSIONS; ++a)   // Gaussian elimination; the matrix is positive definite
        for (i32 b = a + 1; b < DIMENSIONS; ++b) {
            const double factor = matrix[b][a] / matrix[a][a];
            for (i32 c = a; c < DIMENSIONS; ++c) matrix[b][c] -= factor * matrix[a][c];
            slope[b] -= factor * slope[a];
        }
    for (i32 a = DIMENSIONS - 1; a >= 0; --a) {
        for (i32 b = a + 1; b < DIMENSIONS; ++b) slope[a] -= matrix[a][b] * slope[b];
        slope[a] /= matrix[a][a];
    }
    for (i32 k = 0; k < count; ++k) {
        double lever = 0;
        for (i32 a = 0; a < DIMENSIONS; ++a) lever += (offset[k][a] - centre[a]) * slope[a];
        share[k] = weight[k] * (1 - lever);
    }
}

// A whole number near `value`, within what residuals can have; 0 for NaN.
DEVICE i32 whole(double value)
{
    if (value != value) return 0;
    return !(value > -1073741824.0) ? -1073741824 : value < 1073741824.0 ? (i32)rint(value) : 1073741824;
}

// The context of component `c` of a particle. `quarters` is the scale of its residual in quarters of an octave, expected
// without the sizes of the residuals of the components before, whose sum is `before`.
DEVICE i32 context_of(float quarters, i32 c, i64 before)
{
    const double moved = c == 0 ? 0 : 0.376 * octave_of((double)before / (double)c + 0.5);
    const i32 quarter = whole(floor((double)quarters + moved)) - LOWEST_QUARTER;
    return quarter < 0 ? 0 : quarter < CONTEXTS ? quarter : CONTEXTS - 1;
}

// The particles at the odd multiples of `spacing`: what their numbers are expected to be, and the scale of each residual.
// `missed` is by how much the expectations of known particles were wrong. `begin` and `tiers` describe the boxes.
KERNEL(expect)(i64 n, i64 particles, i64 spacing, i32 leaf, i32 tiers, const i64* tier SIZE(tiers + 1),
               const double* box SIZE(LAST(tier) * 2 * D), const real* position SIZE(particles * D), double per_spacing,
               i32 components, const i32* number SIZE(particles * components), const float* missed SIZE(particles),
               i32* expected SIZE(n * components), float* scale SIZE(expected))
{
    const Known known = {particles, spacing, leaf, tiers - 1 + LEAF_TIER, tier, box, position};
    FOR_EACH(j, n) {
        const i64 i = (2 * j + 1) * spacing;
        double place[DIMENSIONS];
        for (i32 a = 0; a < DIMENSIONS; ++a) place[a] = (double)position[i * DIMENSIONS + a];
        const Nearest nearest = nearest_to(known, i, place);
        double weight[NEAREST], distance[NEAREST], share[NEAREST], offset[NEAREST][DIMENSIONS], total = 0;
        for (i32 k = 0; k < nearest.count; ++k) {
            distance[k] = sqrt(nearest.square[k]) * per_spacing;
            const double softened = distance[k] + 0.2;
            weight[k] = 1 / (softened * softened);
            total += weight[k];
        }
        double size = 1e-3, far = 0, before = 0;
        for (i32 k = 0; k < nearest.count; ++k) {
            weight[k] /= total;
            far += weight[k] * distance[k];
            size += weight[k] * (distance[k] * distance[k]);
            before += weight[k] * (double)missed[nearest.particle[k]];
            for (i32 a = 0; a < DIMENSIONS; ++a)
                offset[k][a] = ((double)position[nearest.particle[k] * DIMENSIONS + a] - place[a]) * per_spacing;
        }
        shares_of(nearest.count, weight, offset, size, share);
        const double miss = octave_of(before + 0.5), gap = octave_of(far + 0.05), close = octave_of(distance[0] + 0.05);
        const double first = 0.614 * miss - 0.111 * gap - 0.067 * close - 0.823;   // fitted to simulations
        const double later = 0.56 * miss - 0.072 * gap - 0.083 * close - 0.816;
        for (i32 c = 0; c < components; ++c) {
            double sum = 0, spread = 0;
            for (i32 k = 0; k < nearest.count; ++k)
                sum += share[k] * (double)number[nearest.particle[k] * components + c];
            for (i32 k = 0; k < nearest.count; ++k) {
                const double off = (double)number[nearest.particle[k] * components + c] - sum;
                spread += weight[k] * (off < 0 ? -off : off);
            }
            expected[j * components + c] = whole(sum);
            const double wide = octave_of(spread + 0.5);
            scale[j * components + c] = (float)(4 * (c == 0 ? first + 0.351 * wide : later + 0.324 * wide));
        }
    }
}

// The code of each residual (context * SYMBOLS + symbol), and the residual.
KERNEL(code_residuals)(i64 n, i64 particles, i64 spacing, i32 components, const i32* number SIZE(particles * components),
                       const i32* expected SIZE(n * components), const float* scale SIZE(expected),
                       u16* code SIZE(expected), i64* residual SIZE(expected), float* missed SIZE(particles))
{
    (void)particles;   // states a size
    FOR_EACH(j, n) {
        const i64 i = (2 * j + 1) * spacing;
        i64 sizes = 0;
        for (i32 c = 0; c < components; ++c) {
            const i64 at = j * components + c, off = (i64)number[i * components + c] - expected[at];
            const i64 size = off < 0 ? -off : off;
            residual[at] = off;
            code[at] = (u16)(context_of(scale[at], c, sizes) * SYMBOLS + symbol_of(size));
            sizes += size;
        }
        missed[i] = (float)sizes / (float)components;
    }
}

// The signs of the residuals of each block, and the bits below their symbols.
KERNEL(write_signs)(i64 blocks, const i64* begin SIZE(blocks + 1), const u16* code SIZE(LAST(begin)),
                    const i64* residual SIZE(LAST(begin)), const i64* first SIZE(blocks + 1), u32* out SIZE(LAST(first)))
{
    FOR_EACH(b, blocks) {
        BitWriter writer = {out + first[b], 0, 0};
        for (i64 t = begin[b]; t < begin[b + 1]; ++t) {
            const bool negative = residual[t] < 0;
            const i64 size = negative ? -residual[t] : residual[t];
            put(&writer, (u64)size << 1 | negative, bits_after(code[t] % SYMBOLS));
        }
        if (writer.count > 0) *writer.to = (u32)writer.held;
    }
}

// The numbers of the particles of one step, in blocks from `block` on, each of `length` residuals. `sound` says of each
// block whether its code ended where it should. Whatever the input, nothing is read outside what `word_first` and
// `rest_first` delimit.
KERNEL(decode_residuals)(i64 blocks, i64 block, i64 length, i64 n, i64 particles, i64 spacing, i32 components,
                         const i32* expected SIZE(n * components), const float* scale SIZE(expected),
                         const i64* word_first SIZE(rest_first), const u16* words SIZE(LAST(word_first)),
                         const i64* rest_first SIZE(>= block + blocks + 1), const u32* rest SIZE(LAST(rest_first)),
                         const u8* row SIZE(64), const u8* symbol_at SIZE(CEIL(frequency, 256) * 4096),
                         const u32* frequency SIZE(>= 256), const u32* start SIZE(frequency),
                         i32* number SIZE(particles * components), float* missed SIZE(particles),
                         u8* sound SIZE(>= block + blocks))
{
    (void)particles;
    FOR_EACH(k, blocks) {
        const i64 b = block + k;
        Source source = {words + word_first[b], words + word_first[b + 1],
                         {rest + rest_first[b], rest + rest_first[b + 1], 0, 0},
                         0, 0, row, symbol_at, frequency, start};
        open_source(&source);
        const i64 end = (k + 1) * length < n ? (k + 1) * length : n;
        for (i64 j = k * length; j < end; ++j) {
            const i64 i = (2 * j + 1) * spacing;
            i64 sizes = 0;
            for (i32 c = 0; c < components; ++c) {
                const i64 at = j * components + c;
                const i32 symbol = next_symbol(&source, context_of(scale[at], c, sizes));
                const u64 below = symbol == ESCAPE ? 0 : take(&source.rest, bits_after(symbol));
                const i64 size = symbol == ESCAPE ? 0 : size_with(symbol, below >> 1);
                const u64 sum = (u64)expected[at] + (u64)(below & 1 ? -size : size);
                number[i * components + c] = (i32)(u32)sum;
                sizes += size;
            }
            missed[i] = (float)sizes / (float)components;
        }
        sound[b] = is_at_end(source);
    }
}
