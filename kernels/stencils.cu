// Differences of neighbouring values of a grid of up to four axes: derivatives, the length of the gradient, the Laplacian.
//
// The values are those of a window. Where an output cell lies at an end of the window along an axis, that is an end of the
// grid: elsewhere its neighbours are in the window. At ends, derivatives are differences of two values, and second
// differences are those of the cell beside. All is computed in double precision and rounded once to the type of the values.
//
// A cell has no result (NaN) if a value in its stencil is NaN or infinite; one beyond all numbers is infinite, so that the
// two can be told apart. `sizes` adds magnitudes instead: of bounds of errors of the values, the result bounds its own.
#include "portable.cuh"

static const i32 AXES = 4;
static const i32 DERIVATIVE = 0, GRADIENT = 1, LAPLACIAN = 2;   // along one axis; of all that have a scale

namespace {

union DoubleBits {
    double value;
    u64 bits;
};

union FloatBits {
    float value;
    u32 bits;
};

// The cells of a window that are wanted, as runs of cells along the last axis, which are the items of work.
struct Area {
    const i64 *size, *start, *stop;
    i64 run;

    DEVICE_METHOD i64 width(i32 a) const { return stop[a] - start[a]; }
};

// Where the neighbours of a cell are along an axis, as distances in memory, and the factor of their difference.
struct Beside {
    i64 low, middle, high;
    double factor;
};

}   // namespace

DEVICE ALWAYS_INLINE double infinity()
{
    DoubleBits a;
    a.bits = 0x7ff0000000000000ull;
    return a.value;
}

// The same bits on every machine, which those of an operation on NaN are not.
DEVICE ALWAYS_INLINE void set_missing(float* out)
{
    FloatBits a;
    a.bits = 0x7fc00000u;
    *out = a.value;
}

DEVICE ALWAYS_INLINE void set_missing(double* out)
{
    DoubleBits a;
    a.bits = 0x7ff8000000000000ull;
    *out = a.value;
}

template <i32 OPERATION> DEVICE ALWAYS_INLINE Beside beside(i64 place, i64 size, i64 stride, double scale)
{
    const bool first = place == 0, last = place == size - 1;
    if (OPERATION == LAPLACIAN) {
        const i64 shift = first ? stride : last ? -stride : 0;
        const Beside found = {shift - stride, shift, shift + stride, scale};
        return found;
    }
    const Beside found = {first ? 0 : -stride, 0, last ? 0 : stride, first || last ? scale : 0.5 * scale};
    return found;
}

// The difference along an axis at a cell.
template <i32 OPERATION, bool SIZES> DEVICE ALWAYS_INLINE double change(const Beside& axis, const real* cell, double here)
{
    const double low = (double)cell[axis.low], high = (double)cell[axis.high];
    if (OPERATION != LAPLACIAN) return (SIZES ? high + low : high - low) * axis.factor;
    return (SIZES ? (low + here) + (high + here) : (low - here) + (high - here)) * axis.factor;
}

// The figures of cells along the last axis. `CENTRED`: each cell is the middle one of its second differences.
template <i32 OPERATION, bool SIZES, i32 COUNT, bool CENTRED>
DEVICE ALWAYS_INLINE void figures(const Beside* axis, const real* cell, i64 count, real* __restrict__ out)
{
    const Beside a = axis[0], b = axis[1], c = axis[2], d = axis[3];
    KEEP_LOOP
    for (i64 k = 0; k < count; ++k, ++cell) {
        const double middle = CENTRED ? (double)cell[0] : 0;
        const double p = change<OPERATION, SIZES>(a, cell, CENTRED ? middle : (double)cell[a.middle]);
        double total = p;
        if (OPERATION != DERIVATIVE) {
            const double q = change<OPERATION, SIZES>(b, cell, CENTRED ? middle : (double)cell[b.middle]);
            const double r = change<OPERATION, SIZES>(c, cell, CENTRED ? middle : (double)cell[c.middle]);
            const double s = COUNT < 4 ? 0 : change<OPERATION, SIZES>(d, cell, CENTRED ? middle : (double)cell[d.middle]);
            if (OPERATION == LAPLACIAN) total = COUNT < 4 ? (p + q) + r : ((p + q) + r) + s;
            else total = sqrt(COUNT < 4 ? (p * p + q * q) + r * r : ((p * p + q * q) + r * r) + s * s);
        }
        out[k] = (real)total;
    }
}

DEVICE ALWAYS_INLINE bool is_finite(real x) { return x - x == 0; }

DEVICE ALWAYS_INLINE bool all_finite(const float* value, i64 count)
{
    u32 beyond = 0;
    KEEP_LOOP
    for (i64 k = 0; k < count; ++k) {
        FloatBits a;
        a.value = value[k];
        beyond |= (a.bits & 0x7f800000u) == 0x7f800000u;
    }
    return !beyond;
}

DEVICE ALWAYS_INLINE bool all_finite(const double* value, i64 count)
{
    u64 beyond = 0;
    KEEP_LOOP
    for (i64 k = 0; k < count; ++k) {
        DoubleBits a;
        a.value = value[k];
        beyond |= (a.bits & 0x7ff0000000000000ull) == 0x7ff0000000000000ull;
    }
    return !beyond;
}

// Tells figures beyond all numbers from those that have a value without a number in their stencil.
template <i32 OPERATION> DEVICE ALWAYS_INLINE void mark(const Beside* axis, i32 count, const real* cell, real* out)
{
    bool finite = true;
    KEEP_LOOP
    for (i32 a = 0; a < count; ++a) {
        finite = finite && is_finite(cell[axis[a].low]) && is_finite(cell[axis[a].high]);
        if (OPERATION == LAPLACIAN) finite = finite && is_finite(cell[axis[a].middle]);
    }
    if (!finite) set_missing(out);
    else if (*out != *out) *out = (real)infinity();
}

template <i32 OPERATION, bool SIZES>
DEVICE ALWAYS_INLINE void cells(const Beside* axis, i32 count, const real* from, i64 wanted, real* out)
{
    bool centred = true;
    for (i32 a = 0; a < AXES; ++a) centred = centred && axis[a].middle == 0;
    if (OPERATION != LAPLACIAN || centred) {
        if (count < 4) figures<OPERATION, SIZES, 3, true>(axis, from, wanted, out);
        else figures<OPERATION, SIZES, 4, true>(axis, from, wanted, out);
    } else {
        figures<OPERATION, SIZES, 4, false>(axis, from, wanted, out);
    }
    if (all_finite(out, wanted)) return;
    KEEP_LOOP
    for (i64 k = 0; k < wanted; ++k)
        if (!is_finite(out[k])) mark<OPERATION>(axis, count, from + k, out + k);
}

// One run of cells. Axes without a scale are left out; what lacks to as many as are always read is the first one, and counts
// nothing.
template <i32 OPERATION, bool SIZES>
DEVICE ALWAYS_INLINE void stencil_run(const Area& area, const double* scale, const real* value, i64 item, real* out)
{
    const i64 width = area.width(3), runs = (width + area.run - 1) / area.run, row = item / runs;
    const i64 first = item % runs * area.run, end = first + area.run < width ? first + area.run : width;
    i32 used[AXES] = {0, 0, 0, 0}, count = 0;
    for (i32 a = 0; a < AXES; ++a)
        if (scale[a] != 0) used[count++] = a;
    i64 place[AXES], stride[AXES], rest = row, at = 0;
    for (i32 a = 2; a >= 0; --a) {
        place[a] = area.start[a] + rest % area.width(a);
        rest /= area.width(a);
    }
    stride[3] = 1;
    for (i32 a = 2; a >= 0; --a) {
        stride[a] = stride[a + 1] * area.size[a + 1];
        at += place[a] * stride[a];
    }
    const bool along = scale[3] != 0;
    const i64 last = area.size[3] - 1;
    KEEP_LOOP
    for (i64 k = first; k < end;) {
        place[3] = area.start[3] + k;
        const bool inside = place[3] != 0 && place[3] != last;
        i64 stop = along ? last - area.start[3] : end;   // where the stencil changes
        if (along && !inside) stop = k + 1;
        if (stop > end) stop = end;
        Beside axis[AXES];
        for (i32 n = 0; n < AXES; ++n) {
            const i32 a = n < count ? used[n] : used[0];
            axis[n] = beside<OPERATION>(place[a], area.size[a], stride[a], n < count ? scale[a] : 0);
        }
        cells<OPERATION, SIZES>(axis, count, value + at + place[3], stop - k, out + row * width + k);
        k = stop;
    }
}

template <bool SIZES>
DEVICE ALWAYS_INLINE void any_run(const Area& area, const double* scale, i32 operation, const real* value, i64 item,
                                  real* out)
{
    if (operation == DERIVATIVE) stencil_run<DERIVATIVE, SIZES>(area, scale, value, item, out);
    else if (operation == GRADIENT) stencil_run<GRADIENT, SIZES>(area, scale, value, item, out);
    else stencil_run<LAPLACIAN, SIZES>(area, scale, value, item, out);
}

WIDE DEVICE void figures_run(const Area& area, const double* scale, i32 operation, const real* value, i64 item, real* out)
{
    any_run<false>(area, scale, operation, value, item, out);
}

WIDE DEVICE void sizes_run(const Area& area, const double* scale, i32 operation, const real* value, i64 item, real* out)
{
    any_run<true>(area, scale, operation, value, item, out);
}

// `area` has the size of the window, the first wanted cell, and the end of the wanted ones along each axis; a scale of zero
// leaves an axis out. Each item is a run of at most `run` cells.
KERNEL(apply_stencil)(i64 items, i64 run, const i64* area SIZE(12), const double* scale SIZE(4), i32 operation, i32 sizes,
                      i64 n, const real* value SIZE(n), i64 m, real* out SIZE(m))
{
    (void)n, (void)m;   // state sizes
    const Area wanted = {area, area + AXES, area + 2 * AXES, run};
    FOR_EACH(item, items) {
        if (sizes) sizes_run(wanted, scale, operation, value, item, out);
        else figures_run(wanted, scale, operation, value, item, out);
    }
}
