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

// The difference along an axis at a cell; adds 0 to `finite` if all values are finite, else NaN.
template <i32 OPERATION, bool SIZES>
DEVICE ALWAYS_INLINE double change(const Beside& axis, const real* cell, real* finite)
{
    const real low = cell[axis.low], high = cell[axis.high];
    *finite += (low - low) + (high - high);
    if (OPERATION != LAPLACIAN) return (SIZES ? (double)high + (double)low : (double)high - (double)low) * axis.factor;
    const real middle = cell[axis.middle];
    *finite += middle - middle;
    const double here = (double)middle;
    return (SIZES ? ((double)low + here) + ((double)high + here) : ((double)low - here) + ((double)high - here)) * axis.factor;
}

template <i32 OPERATION, bool SIZES>
DEVICE ALWAYS_INLINE void cells(const Beside* axis, i32 used, const real* from, i64 count, real* out)
{
    const Beside a = axis[0], b = axis[1], c = axis[2], d = axis[3], one = axis[used];
    for (i64 k = 0; k < count; ++k) {
        const real* const cell = from + k;
        real finite = 0;
        double total;
        if (OPERATION == DERIVATIVE) {
            total = change<OPERATION, SIZES>(one, cell, &finite);
        } else {
            const double p = change<OPERATION, SIZES>(a, cell, &finite), q = change<OPERATION, SIZES>(b, cell, &finite);
            const double r = change<OPERATION, SIZES>(c, cell, &finite), s = change<OPERATION, SIZES>(d, cell, &finite);
            total = OPERATION == GRADIENT ? sqrt(((p * p + q * q) + r * r) + s * s) : ((p + q) + r) + s;
        }
        real result = (real)(total == total ? total : infinity());
        if (!(finite == 0)) set_missing(&result);
        out[k] = result;
    }
}

// One run of cells. Along axes without a scale, the neighbours are those along the first one with a scale, and count nothing.
template <i32 OPERATION, bool SIZES>
DEVICE ALWAYS_INLINE void stencil_run(const Area& area, const double* scale, const real* value, i64 item, real* out)
{
    const i64 width = area.width(3), runs = (width + area.run - 1) / area.run, row = item / runs;
    const i64 first = item % runs * area.run, end = first + area.run < width ? first + area.run : width;
    i32 used = 0;
    while (used < AXES - 1 && scale[used] == 0) ++used;
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
    for (i64 k = first; k < end;) {
        place[3] = area.start[3] + k;
        const bool inside = place[3] != 0 && place[3] != last;
        i64 stop = along ? last - area.start[3] : end;   // where the stencil changes
        if (along && !inside) stop = k + 1;
        if (stop > end) stop = end;
        Beside axis[AXES];
        for (i32 a = 0; a < AXES; ++a) {
            const i32 from = scale[a] == 0 ? used : a;
            axis[a] = beside<OPERATION>(place[from], area.size[from], stride[from], scale[a]);
        }
        cells<OPERATION, SIZES>(axis, used, value + at + place[3], stop - k, out + row * width + k);
        k = stop;
    }
}

WIDE DEVICE void derivative_run(const Area& area, const double* scale, const real* value, i64 item, real* out)
{
    stencil_run<DERIVATIVE, false>(area, scale, value, item, out);
}

WIDE DEVICE void gradient_run(const Area& area, const double* scale, const real* value, i64 item, real* out)
{
    stencil_run<GRADIENT, false>(area, scale, value, item, out);
}

WIDE DEVICE void laplacian_run(const Area& area, const double* scale, const real* value, i64 item, real* out)
{
    stencil_run<LAPLACIAN, false>(area, scale, value, item, out);
}

WIDE DEVICE void sizes_run(const Area& area, const double* scale, i32 operation, const real* value, i64 item, real* out)
{
    if (operation == DERIVATIVE) stencil_run<DERIVATIVE, true>(area, scale, value, item, out);
    else if (operation == GRADIENT) stencil_run<GRADIENT, true>(area, scale, value, item, out);
    else stencil_run<LAPLACIAN, true>(area, scale, value, item, out);
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
        else if (operation == DERIVATIVE) derivative_run(wanted, scale, value, item, out);
        else if (operation == GRADIENT) gradient_run(wanted, scale, value, item, out);
        else laplacian_run(wanted, scale, value, item, out);
    }
}
