// Samples of a field at given places: errors of interpolation there, and variances in windows.
#include "portable.cuh"

// The errors of cubic and of linear interpolation, a row each. The places of a sample are its own, those of two values
// beside it, and of two more where the grid is `wide`.
KERNEL(interpolate_samples)(i64 n, i64 size, const real* value SIZE(size), const i64* place SIZE(5 * n),
                            const u8* wide SIZE(n), double* error SIZE(2 * n))
{
    (void)size;   // states a size
    FOR_EACH_LIGHT(i, n) {
        const double near = (double)value[place[n + i]] + (double)value[place[2 * n + i]];
        const double outer = (double)value[place[3 * n + i]] + (double)value[place[4 * n + i]];
        const double linear = (double)value[place[i]] - 0.5 * near;
        error[i] = linear + (wide[i] ? 0.0625 * (outer - near) : 0);
        error[n + i] = linear;
    }
}

// The variance of so many values in each window.
KERNEL(window_variances)(i64 n, i64 values, i64 size, const real* value SIZE(size), const i64* place SIZE(n * values),
                         double* variance SIZE(n))
{
    (void)size;   // states a size
    FOR_EACH_LIGHT(i, n) {
        const i64* window = place + i * values;
        double sum = 0, squares = 0;
        for (i64 k = 0; k < values; ++k) sum += value[window[k]];
        const double mean = sum / values;
        for (i64 k = 0; k < values; ++k) squares += ((double)value[window[k]] - mean) * ((double)value[window[k]] - mean);
        variance[i] = squares / values;
    }
}
