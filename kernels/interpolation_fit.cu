// Fits the weights of a pass of an interpolated field to a sample of its targets (`interpolation_fit.py` explains what is fitted).
//
// All sums run side by side in the same number of lanes and are added up in a fixed order, and exponentials and logarithms are
// made of sums and products. So every machine finds the same weights. Samples are stored column by column.
#include "portable.cuh"
#include "logarithm.cuh"

static const i32 TERMS = 8;             // of a scale
static const i32 LANES = 8, TILE = 64;  // sums side by side; rows of a sample that are taken together
static const i32 MOST_COLUMNS = 12;     // of what a location is made of
static const i32 UPDATES = 8;           // of the weights of a scale,
static const i32 LAST_UPDATES = 2;      // the last of them without overshooting: the others go three times as far
static const double LEAST_SCALE = 0.02; // in units of the bound
static const double LEAST_SHARE = 1e-30;
static const double MOST_BITS = 100;    // of a value, also of one that is not finite

// Rows `from` to `from + TILE` of a weighted sum of columns; rows after the last are 0.
DEVICE ALWAYS_INLINE void combine(const double* column, i64 rows, i32 columns, const double* weight, i64 from, double* sum)
{
    const i32 n = rows - from < TILE ? (i32)(rows - from) : TILE;
    for (i32 i = 0; i < TILE; ++i) sum[i] = 0;
    for (i32 c = 0; c < columns; ++c) {
        const double *of = column + c * rows + from, by = weight[c];
        for (i32 i = 0; i < n; ++i) sum[i] += by * of[i];
    }
}

DEVICE ALWAYS_INLINE double joined(const double* lane)
{
    double sum = 0;
    for (i32 i = 0; i < LANES; ++i) sum += lane[i];
    return sum;
}

// The sum of the products of a column and of `by` is added to the lanes.
DEVICE ALWAYS_INLINE void add_products(const double* of, i32 n, const double* by, double* lane)
{
    i32 i = 0;
    for (; i + LANES <= n; i += LANES)
        for (i32 k = 0; k < LANES; ++k) lane[k] += of[i + k] * by[i + k];
    for (; i < n; ++i) lane[i % LANES] += of[i] * by[i];
}

DEVICE ALWAYS_INLINE void scales_of(const double* terms, i64 rows, const double* weight, i64 from, double* scale)
{
    combine(terms, rows, TERMS, weight, from, scale);
    for (i32 i = 0; i < TILE; ++i) scale[i] = scale[i] > LEAST_SCALE ? scale[i] : LEAST_SCALE;
}

// Normal equations of `wanted` as a sum of columns, each row weighted by 1 / scale^2: the lower half, then the right side.
WIDE DEVICE void add_up(i64 rows, i32 columns, const double* column, const double* wanted, const double* terms,
                        const double* scale_weight, double* matrix, double* right)
{
    double lane[(MOST_COLUMNS + 1) * MOST_COLUMNS * LANES];
    for (i32 k = 0; k < (columns + 1) * columns * LANES; ++k) lane[k] = 0;
    for (i64 from = 0; from < rows; from += TILE) {
        const i32 n = rows - from < TILE ? (i32)(rows - from) : TILE;
        double weight[TILE], product[TILE];
        scales_of(terms, rows, scale_weight, from, weight);
        for (i32 i = 0; i < TILE; ++i) weight[i] = 1 / (weight[i] * weight[i]);
        for (i32 a = 0; a < columns; ++a) {
            for (i32 i = 0; i < n; ++i) product[i] = column[a * rows + from + i] * weight[i];
            for (i32 b = 0; b <= a; ++b) add_products(column + b * rows + from, n, product, lane + (a * columns + b) * LANES);
            add_products(wanted + from, n, product, lane + (columns * columns + a) * LANES);
        }
    }
    for (i32 a = 0; a < columns; ++a) {
        for (i32 b = 0; b <= a; ++b) matrix[a * columns + b] = joined(lane + (a * columns + b) * LANES);
        right[a] = joined(lane + (columns * columns + a) * LANES);
    }
}

// Solve normal equations by Cholesky's method, kept near zero where they say nothing; zeros if they are not finite.
DEVICE void solve(i32 columns, double* matrix, double* right)
{
    double trace = 0;
    for (i32 a = 0; a < columns; ++a) trace += matrix[a * columns + a];
    bool sound = true;
    for (i32 a = 0; a < columns; ++a) {
        double* row = matrix + a * columns;
        row[a] = row[a] * (1 + 1e-6) + 1e-9 * trace + 1e-30;
        for (i32 b = 0; b <= a; ++b) {
            for (i32 c = 0; c < b; ++c) row[b] -= row[c] * matrix[b * columns + c];
            row[b] = b < a ? row[b] / matrix[b * columns + b] : sqrt(row[b]);
        }
        for (i32 b = 0; b < a; ++b) right[a] -= row[b] * right[b];
        right[a] /= row[a];
        sound &= row[a] > 0 && row[a] < 1e300 && right[a] > -1e300 && right[a] < 1e300;
    }
    for (i32 a = columns - 1; a >= 0; --a) {
        for (i32 b = a + 1; b < columns; ++b) right[a] -= matrix[b * columns + a] * right[b];
        right[a] /= matrix[a * columns + a];
    }
    for (i32 a = 0; a < columns; ++a) right[a] = sound ? right[a] : 0;
}

// One update of the weights of a scale: the sums over what is left of `wanted`, and over the scales.
WIDE DEVICE void weigh(i64 rows, i32 columns, const double* column, const double* wanted, const double* location,
                       const double* terms, const double* weight, double* above, double* below)
{
    double up[TERMS * LANES], down[TERMS * LANES];
    for (i32 k = 0; k < TERMS * LANES; ++k) up[k] = down[k] = 0;
    for (i64 from = 0; from < rows; from += TILE) {
        const i32 n = rows - from < TILE ? (i32)(rows - from) : TILE;
        double scale[TILE], size[TILE];
        scales_of(terms, rows, weight, from, scale);
        combine(column, rows, columns, location, from, size);
        for (i32 i = 0; i < n; ++i) {
            scale[i] = 1 / scale[i];
            size[i] = fabs(wanted[from + i] - size[i]) * (scale[i] * scale[i]);
        }
        for (i32 t = 0; t < TERMS; ++t) {
            add_products(terms + t * rows + from, n, size, up + t * LANES);
            add_products(terms + t * rows + from, n, scale, down + t * LANES);
        }
    }
    for (i32 t = 0; t < TERMS; ++t) {
        above[t] = joined(up + t * LANES);
        below[t] = joined(down + t * LANES);
    }
}

// Weights of columns whose sum is near `wanted` (none for no columns), and then of a scale that suits what is left of it. Each
// work item is a fit.
KERNEL(fit_weights)(i64 fits, i64 rows, i32 columns, const double* column SIZE(fits * columns * rows),
                    const double* wanted SIZE(fits * rows), const double* terms SIZE(fits * rows * 8),
                    double* location SIZE(fits * columns), double* scale SIZE(fits * 8))
{
    FOR_EACH(f, fits) {
        const double *of = column + f * columns * rows, *goal = wanted + f * rows, *own = terms + f * TERMS * rows;
        double *found = location + f * columns, *weight = scale + f * TERMS;
        double matrix[MOST_COLUMNS * MOST_COLUMNS], above[TERMS], below[TERMS];
        if (columns > 0) {
            add_up(rows, columns, of, goal, own, weight, matrix, found);
            solve(columns, matrix, found);
        }
        for (i32 t = 0; t < TERMS; ++t) weight[t] = weight[t] > 1e-4 ? weight[t] : 1e-4;
        for (i32 update = 0; update < UPDATES; ++update) {
            weigh(rows, columns, of, goal, found, own, weight, above, below);
            for (i32 t = 0; t < TERMS; ++t) {
                const double square = (above[t] + LEAST_SHARE) / (below[t] + LEAST_SHARE), factor = sqrt(square);
                weight[t] *= update < UPDATES - LAST_UPDATES ? factor * square : factor;
            }
        }
    }
}

// -log2(1 - 2^-x), within 10^-7, at most 100; x is at least 0.
DEVICE ALWAYS_INLINE double bits_within(double x)
{
    const double y = x < 200 ? x : 200, shifted = 6755399441055744.0 - y, whole = shifted - 6755399441055744.0;
    const double f = (-y - whole) * 0.6931471805599453;   // within half an octave
    const double series = 1 + f * (1 + f * (1.0 / 2 + f * (1.0 / 6 + f * (1.0 / 24 + f * (1.0 / 120 + f * (1.0 / 720))))));
    const double power = series * double_of((bits_of_double(shifted) + 1023) << 52), left = 1 - power;
    return -log2_of(left > LEAST_SHARE ? left : LEAST_SHARE);
}

// The bits of what is left of `wanted`, summed, in steps of 2 and with a Laplace distribution of these scales.
WIDE DEVICE double bits_of_rows(i64 rows, i32 columns, const double* column, const double* wanted, const double* location,
                                const double* terms, const double* weight)
{
    double lane[LANES], one[TILE];
    for (i32 k = 0; k < LANES; ++k) lane[k] = 0;
    for (i32 i = 0; i < TILE; ++i) one[i] = 1;
    for (i64 from = 0; from < rows; from += TILE) {
        const i32 n = rows - from < TILE ? (i32)(rows - from) : TILE;
        double scale[TILE], left[TILE], bits[TILE];
        scales_of(terms, rows, weight, from, scale);
        combine(column, rows, columns, location, from, left);
        for (i32 i = n; i < TILE; ++i) left[i] = 0;
        for (i32 i = 0; i < n; ++i) left[i] = fabs(wanted[from + i] - left[i]);
        for (i32 i = 0; i < TILE; ++i) {
            const double size = 2 * rint(left[i] * 0.5), per = 1.4426950408889634 / scale[i];
            const double within = bits_within(size > 0 ? 2 * per : per), all = size > 0 ? 1 + (size - 1) * per + within : within;
            bits[i] = all < MOST_BITS && size >= 0 ? all : MOST_BITS;
        }
        add_products(bits, n, one, lane);
    }
    return joined(lane);
}

// The mean bits of each fit.
KERNEL(fit_bits)(i64 fits, i64 rows, i32 columns, const double* column SIZE(fits * columns * rows),
                 const double* wanted SIZE(fits * rows), const double* terms SIZE(fits * rows * 8),
                 const double* location SIZE(fits * columns), const double* scale SIZE(fits * 8), double* bits SIZE(fits))
{
    FOR_EACH(f, fits) {
        bits[f] = bits_of_rows(rows, columns, column + f * columns * rows, wanted + f * rows, location + f * columns,
                               terms + f * TERMS * rows, scale + f * TERMS) / (double)rows;
    }
}
