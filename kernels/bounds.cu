// Where decoded values break the promise, decided exactly, without rounding.
//
// Rounding is monotone: if the rounded difference is less (greater) than the rounded bound, so is the difference itself.
// Only when the two are equal does the comparison need the rounding errors, which are then computed exactly. So the common
// case is one subtraction and one comparison, and the decision is still exact.
#include "portable.cuh"
#include "pieces.cuh"

// A number as the double nearest to it and the rest, which is again a double: an exact pair.
struct Exact {
    double nearest, rest;
};

struct Promise {
    double limit;    // 0: bit-identical
    i32 relative;    // the limit is a share of the size of the original value
    double period;   // 0: not periodic
};

union FloatBits {
    float value;
    u32 bits;
};

union DoubleBits {
    double value;
    u64 bits;
};

DEVICE bool same_bits(float x, float y)
{
    FloatBits a, b;
    a.value = x;
    b.value = y;
    return a.bits == b.bits;
}

DEVICE bool same_bits(double x, double y)
{
    DoubleBits a, b;
    a.value = x;
    b.value = y;
    return a.bits == b.bits;
}

DEVICE double infinity()
{
    DoubleBits a;
    a.bits = 0x7ff0000000000000ull;
    return a.value;
}

DEVICE double size_of(double x) { return x < 0 ? -x : x; }
DEVICE bool is_finite(double x) { return x - x == 0; }
DEVICE bool at_most(Exact a, Exact b) { return a.nearest < b.nearest || (a.nearest == b.nearest && a.rest <= b.rest); }

// |x - y|. When the smaller is added to the larger, only the first step can round, overflow or underflow.
DEVICE Exact distance(double x, double y)
{
    const bool x_is_larger = size_of(x) >= size_of(y);
    const double large = x_is_larger ? x : -y, small = x_is_larger ? -y : x;
    const double sum = large + small, rest = small - (sum - large);
    Exact exact;
    exact.nearest = sum < 0 ? -sum : sum;
    exact.rest = sum < 0 ? -rest : rest;
    return exact;
}

// a * b, each factor cut into halves whose products are exact. Factors and product must be far from the ends of the range.
DEVICE Exact product(double a, double b)
{
    const double cut = 134217729.0;   // 2^27 + 1
    const double a_cut = cut * a, b_cut = cut * b;
    const double a_high = a_cut - (a_cut - a), b_high = b_cut - (b_cut - b);
    const double a_low = a - a_high, b_low = b - b_high;
    Exact exact;
    exact.nearest = a * b;
    exact.rest = ((a_high * b_high - exact.nearest) + a_high * b_low + a_low * b_high) + a_low * b_low;
    return exact;
}

// |x - y| <= share * |x| where both sides round to the same double. Then share is at least 2^-55 and y is between 2^-55 |x|
// and 2 |x|, so that a power of two scales all of them, without loss, into the range where the halves of a product exist.
DEVICE bool near_enough(double x, double y, double share)
{
    const double scale = size_of(x) < 0x1p-500 ? 0x1p500 : size_of(x) > 0x1p500 ? 0x1p-600 : 1.0;
    return at_most(distance(x * scale, y * scale), product(share, size_of(x * scale)));
}

// Whether the distance through the face of the box is within the limit: period - |x - y| <= limit.
DEVICE bool near_around(double x, double y, Promise promise)
{
    if (!(size_of(x - y) < promise.period)) return false;
    return promise.limit >= promise.period || at_most(distance(promise.period, promise.limit), distance(x, y));
}

// period - |x - y|, rounded once where it is the shorter way: the first difference is then exact.
DEVICE double way_around(double x, double y, double period)
{
    const Exact apart = distance(x, y);
    return period - apart.nearest - apart.rest;
}

DEVICE bool inside(double y, double period) { return period == 0 || (y >= 0 && y < period); }

// Whether the promise about one value is kept, where the rounded difference alone does not show it.
DEVICE bool kept_after_all(real x, real y, Promise promise, double apart, double allowed)
{
    if (!is_finite(x)) return same_bits(x, y);
    if (!is_finite(y) || !inside(y, promise.period)) return false;
    if (promise.limit == 0) return same_bits(x, y);
    if (apart == 0) return true;
    if (promise.relative) return apart == allowed && near_enough(x, y, promise.limit);
    if (apart == allowed && distance(x, y).rest <= 0) return true;
    return promise.period != 0 && near_around(x, y, promise);
}

// The error of a value that fails the fast test; infinite where bits must be identical and differ, or where a value is
// missing.
DEVICE double large_error(real x, real y, double apart, bool relative)
{
    if (!is_finite(x)) return same_bits(x, y) ? 0 : infinity();
    if (!is_finite(y)) return infinity();
    return apart == 0 ? 0 : relative ? apart / size_of(x) : apart;
}

// Whether the promise about one value is kept, and its error in the unit of the limit: rounded, but never to more than the
// limit where it is kept.
DEVICE bool kept(real x, real y, Promise promise, double* error)
{
    const double size = size_of(x), apart = size_of((double)x - (double)y);
    const double allowed = promise.relative ? promise.limit * size : promise.limit;
    const bool plain = apart < allowed && inside(y, promise.period);   // no NaN or infinity passes
    const bool good = plain || kept_after_all(x, y, promise, apart, allowed);
    double off = plain ? (promise.relative ? apart / size : apart) : large_error(x, y, apart, promise.relative);
    if (!promise.relative && apart <= promise.period && promise.period - apart < off) off = way_around(x, y, promise.period);
    *error = good && off > promise.limit ? promise.limit : off;
    return good;
}

static const i32 RUN = 96;   // a multiple of 1, 2 and 3 axes

// The fast path: whether the rounded differences alone show that a run of values keeps an absolute promise, as nearly all
// do, and the largest error. There are no branches on values, so that a processor can take several at once.
DEVICE bool plain_run(const real* original, const real* decoded, double limit, const double* lowest, const double* below,
                      double* most)
{
    i32 doubtful = 0;
    double largest[2] = {*most, *most};
    for (i32 i = 0; i < RUN; i += 2)
        for (i32 j = 0; j < 2; ++j) {
            const double y = decoded[i + j], apart = size_of((double)original[i + j] - y);
            doubtful |= !(apart < limit) | !(y >= lowest[i + j]) | !(y < below[i + j]);
            largest[j] = apart > largest[j] ? apart : largest[j];
        }
    if (!doubtful) *most = largest[0] > largest[1] ? largest[0] : largest[1];
    return !doubtful;
}

// How many values of each of `parts` chunks of each piece (`pieces.cuh`) break the promise, and the largest error among all
// of them. A piece is a whole number of rows.
KERNEL(count_broken)(i64 chunks, i64 parts, i64 n, i64 piece, const real* original SIZE(n), const real* decoded SIZE(n), double limit,
                     i32 relative, i32 axes, const double* period SIZE(axes), i64* counts SIZE(chunks),
                     double* largest SIZE(chunks))
{
    FOR_EACH(c, chunks) {
        const Span run = run_at(c, n, piece, parts);
        const i64 begin = run.begin, end = run.end;
        Promise promise = {limit, relative, 0};
        i64 found = 0;
        double most = 0, lowest[RUN], below[RUN];
        bool runs = ON_CPU && !relative && RUN % axes == 0 && end - begin >= RUN;   // a GPU's chunks are shorter
        for (i32 j = 0; runs && j < RUN; ++j) {
            const double length = period[(begin + j) % axes];
            lowest[j] = length > 0 ? 0 : -infinity();
            below[j] = length > 0 ? length : infinity();
            runs = !(length > 0 && 2 * limit >= length);   // or the distance across the face could be shorter
        }
        i32 axis = (i32)(begin % axes);
        for (i64 i = begin; i < end;) {
            while (runs && i + RUN <= end && (i - begin) % RUN == 0
                   && plain_run(original + i, decoded + i, limit, lowest, below, &most))
                i += RUN;
            if (i == end) break;
            promise.period = period[axis];
            axis = axis + 1 == axes ? 0 : axis + 1;
            double error;
            found += !kept(original[i], decoded[i], promise, &error);
            most = error > most ? error : most;
            ++i;
        }
        counts[c] = found;
        largest[c] = most;
    }
}

KERNEL(place_broken)(i64 chunks, i64 n, const real* original SIZE(n), const real* decoded SIZE(n), double limit,
                     i32 relative, i32 axes, const double* period SIZE(axes), const i64* first SIZE(chunks),
                     i64* index SIZE(>= LAST(first)))
{
    FOR_EACH(c, chunks) {
        const i64 begin = chunk_begin(c, chunks, n), end = chunk_begin(c + 1, chunks, n);
        Promise promise = {limit, relative, 0};
        i64 to = first[c];
        i32 axis = (i32)(begin % axes);
        for (i64 i = begin; i < end; ++i) {
            promise.period = period[axis];
            axis = axis + 1 == axes ? 0 : axis + 1;
            double error;
            if (!kept(original[i], decoded[i], promise, &error)) index[to++] = i;
        }
    }
}
