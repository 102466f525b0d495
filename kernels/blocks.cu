// Blocks of a field as ZFP codes them, cut off at several bit planes: bits and squared errors, without coding anything.
//
// A block has 4 values along each axis, and one exponent. Its values are transformed as integers, which are then negabinary
// numbers. A plane is written as it is up to the last number that was ever significant; the others are found by tests. So
// bits follow from the lengths of the numbers.
// Blocks are columns of a table, and a CPU takes some of them together.
#include "portable.cuh"

static const i32 SIDE = 4, MOST_SIZE = 256;   // values of a block along each axis, and in all
static const i32 GUARD = 2;                   // bits that the transform may need
static const i32 NOTHING = -4096;             // the exponent of a block of zeros: below all others
static const i32 TOGETHER = ON_CPU ? 16 : 1;

template <class Number> struct Whole {
    typedef i32 number;
    typedef u32 code;
    static const i32 exponent_bits = 8;
};
template <> struct Whole<double> {
    typedef i64 number;
    typedef u64 code;
    static const i32 exponent_bits = 11;
};
typedef Whole<real>::number whole;
typedef Whole<real>::code code;
static const i32 PLANES = 8 * sizeof(code);
static const code SIGNS = (code)0xaaaaaaaaaaaaaaaaull;

// 2 to this power; two factors where one would leave the range.
DEVICE ALWAYS_INLINE double scaled(double number, i32 power)
{
    const i32 half = power / 2;
    union {
        u64 bits;
        double number;
    } one, other;
    one.bits = (u64)(half + 1023) << 52;
    other.bits = (u64)(power - half + 1023) << 52;
    return number * one.number * other.number;
}

// The transform of four values, for all blocks that are taken together.
DEVICE ALWAYS_INLINE void lift(whole (*p)[TOGETHER], i32 step)
{
    for (i32 b = 0; b < TOGETHER; ++b) {
        whole x = p[0][b], y = p[step][b], z = p[2 * step][b], w = p[3 * step][b];
        x += w; x >>= 1; w -= x;
        z += y; z >>= 1; y -= z;
        x += z; x >>= 1; z -= x;
        w += y; w >>= 1; y -= w;
        w += y >> 1; y -= w >> 1;
        p[0][b] = x; p[step][b] = y; p[2 * step][b] = z; p[3 * step][b] = w;
    }
}

// From coefficients back to values, in single precision.
DEVICE ALWAYS_INLINE void lift_back(float (*p)[TOGETHER], i32 step)
{
    for (i32 b = 0; b < TOGETHER; ++b) {
        const float x = p[0][b], y = p[step][b], z = p[2 * step][b], w = p[3 * step][b];
        p[0][b] = x + 1.5f * y - z - 0.25f * w;
        p[step][b] = x + 0.5f * y + z + 1.25f * w;
        p[2 * step][b] = x - 0.5f * y + z - 1.25f * w;
        p[3 * step][b] = x - 1.5f * y - z + 0.25f * w;
    }
}

// The place of the first of the values in line `k` along the axis with this step.
DEVICE ALWAYS_INLINE i32 line(i32 k, i32 step) { return k / step * (SIDE * step) + k % step; }

// Blocks `first` and those after it; places beyond the last block repeat it.
WIDE DEVICE void cut_together(i64 n, i64 first, i32 axes, i64 cuts, const real* value, const u8* known, const i32* lowest,
                              const i32* order, i32* bits, double* squares)
{
    const i32 size = 1 << 2 * axes, held = n - first < TOGETHER ? (i32)(n - first) : TOGETHER;
    whole fixed[MOST_SIZE][TOGETHER];
    float error[MOST_SIZE][TOGETHER], counted[MOST_SIZE][TOGETHER];
    i32 rest[MOST_SIZE][TOGETHER], leading[MOST_SIZE][TOGETHER], exponent[TOGETHER];
    for (i32 b = 0; b < TOGETHER; ++b) {
        const i64 at = first + (b < held ? b : held - 1);
        real largest = 0;
        for (i32 k = 0; k < size; ++k) {
            const real there = fabs(value[k * n + at]);
            largest = there > largest ? there : largest;
        }
        int power = NOTHING;
        if (largest > 0) frexp((double)largest, &power);
        exponent[b] = power;
        const i32 up = largest > 0 ? PLANES - GUARD - power : 0;
        for (i32 k = 0; k < size; ++k) {
            fixed[k][b] = (whole)scaled((double)value[k * n + at], up);
            counted[k][b] = known[k * n + at];
        }
    }
    for (i32 step = 1; step < size; step *= SIDE)
        for (i32 k = 0; k < size / SIDE; ++k) lift(fixed + line(k, size / SIDE / step), size / SIDE / step);
    for (i32 k = size; k-- > 0;)
        for (i32 b = 0; b < TOGETHER; ++b) {
            const i32 own = bit_length(((code)fixed[order[k]][b] + SIGNS) ^ SIGNS);
            const i32 faster = k + 1 < size ? rest[k + 1][b] : 0;
            rest[k][b] = own > faster ? own : faster;
            leading[k][b] = own >= faster ? own : 0;
        }
    for (i64 c = 0; c < cuts; ++c) {
        i32 cut[TOGETHER], spent[TOGETHER];
        code below[TOGETHER];
        float sum[TOGETHER];
        for (i32 b = 0; b < TOGETHER; ++b) {
            const i32 wanted = exponent[b] - lowest[c] + 2 * axes + 2;
            const i32 depth = wanted < 0 ? 0 : wanted < PLANES ? wanted : PLANES;
            const i32 last = rest[size - 1][b];
            cut[b] = PLANES - depth;
            below[b] = cut[b] >= PLANES ? ~(code)0 : ((code)1 << cut[b]) - 1;
            spent[b] = PLANES - (cut[b] > last ? cut[b] : last) - (last > cut[b]);
            sum[b] = 0;
        }
        for (i32 k = 0; k < size; ++k)
            for (i32 b = 0; b < TOGETHER; ++b) {
                const i32 more = rest[k][b] - cut[b];
                spent[b] += (more > 0 ? more : 0) + (leading[k][b] > cut[b]);
            }
        for (i32 k = 0; k < size; ++k)
            for (i32 b = 0; b < TOGETHER; ++b) {
                const code off = (((code)fixed[k][b] + SIGNS) ^ SIGNS) & below[b];
                error[k][b] = (float)(whole)((off ^ SIGNS) - SIGNS) * (PLANES == 32 ? 1.0f / 65536 : 1.0f / 4294967296.0f);
            }
        for (i32 step = 1; step < size; step *= SIDE)
            for (i32 k = 0; k < size / SIDE; ++k) lift_back(error + line(k, step), step);
        for (i32 k = 0; k < size; ++k)
            for (i32 b = 0; b < TOGETHER; ++b) sum[b] += counted[k][b] * error[k][b] * error[k][b];
        for (i32 b = 0; b < held; ++b) {
            bits[c * n + first + b] = cut[b] < PLANES ? spent[b] + 1 + Whole<real>::exponent_bits : 1;
            squares[c * n + first + b] = ldexp((double)sum[b], 2 * (exponent[b] - PLANES + GUARD) + PLANES);
        }
    }
}

// The bits of each block, and the sum of its squared errors at known values, where planes are cut off for each of these
// tolerances, 2 to the power of `lowest`. `order` has the places of coefficients from slow to fast waves.
KERNEL(cut_blocks)(i64 n, i32 axes, i64 cuts, const real* value SIZE((4 ** axes) * n), const u8* known SIZE(value),
                   const i32* lowest SIZE(cuts), const i32* order SIZE(4 ** axes), i32* bits SIZE(cuts * n),
                   double* squares SIZE(bits))
{
    FOR_EACH_UNEVEN(some, (n + TOGETHER - 1) / TOGETHER)
        cut_together(n, some * TOGETHER, axes, cuts, value, known, lowest, order, bits, squares);
}

// Of all blocks at each cut: the mean of bits, their standard deviation, the sum of squared errors, and the standard
// deviation of a block's mean squared error. `count` has the known values of each block.
KERNEL(describe_blocks)(i64 cuts, i64 n, const i32* bits SIZE(cuts * n), const double* squares SIZE(bits),
                        const i64* count SIZE(n), double* found SIZE(4 * cuts))
{
    FOR_EACH_LIGHT(c, cuts) {
        double sum = 0, all = 0, means = 0, of_bits = 0, of_means = 0;
        for (i64 b = 0; b < n; ++b) {
            sum += bits[c * n + b];
            all += squares[c * n + b];
            means += squares[c * n + b] / (count[b] > 0 ? count[b] : 1);
        }
        const double mean = sum / n, usual = means / n;
        for (i64 b = 0; b < n; ++b) {
            const double more = bits[c * n + b] - mean, above = squares[c * n + b] / (count[b] > 0 ? count[b] : 1) - usual;
            of_bits += more * more;
            of_means += above * above;
        }
        found[c] = mean;
        found[cuts + c] = sqrt(of_bits / n);
        found[2 * cuts + c] = all;
        found[3 * cuts + c] = sqrt(of_means / n);
    }
}
