// What codecs of fields would code of samples within several bounds at once: for predictions, without coding anything.
//
// Entropies are those of numbers counted in tables, corrected for numbers that a sample misses (Miller and Madow). A work
// item counts rows one after the other in its own table, so that one table, which stays in the cache, does for a CPU.
#include "portable.cuh"
#include "logarithm.cuh"

static const i32 KINDS = 2048;            // of numbers that are told apart; others are too rare to matter
static const i32 MOST_NUMBER = 1048576;   // a number beyond it counts as this: a codec stores such values otherwise
static const double MOST_SIZE = 1e15;     // of an error in units of a bound
static const i32 TILE = 64;
static const i32 FIGURES = 6;             // of errors within a bound

// One comparison, and the sign by its bit, so that a CPU clips many at once.
DEVICE ALWAYS_INLINE double between(double number, double most)
{
    const double size = fabs(number), kept = size > most ? most : size;
    return double_of(bits_of_double(kept) | (bits_of_double(number) & 0x8000000000000000ull));
}

DEVICE ALWAYS_INLINE void clear(double* share)
{
    for (i32 i = 0; i < KINDS; ++i) share[i] = 0;
}

// Sums side by side, as many as a tile has places, in a fixed order.
DEVICE ALWAYS_INLINE double sum_of(const double* lane)
{
    double sum = 0;
    for (i32 i = 0; i < TILE; ++i) sum += lane[i];
    return sum;
}

// The entropy of numbers that were counted in `share`, in bits; weights add up to one.
WIDE DEVICE double entropy_of(i64 n, const u16* kind, const double* weight, const double* share)
{
    double sum[TILE], counted[TILE], own[TILE];
    for (i32 i = 0; i < TILE; ++i) sum[i] = 0;
    for (i64 from = 0; from < n; from += TILE) {
        const i32 count = n - from < TILE ? (i32)(n - from) : TILE;
        for (i32 i = 0; i < TILE; ++i) counted[i] = 1, own[i] = 0;
        for (i32 i = 0; i < count; ++i) counted[i] = share[kind[from + i]], own[i] = weight[from + i];
        for (i32 i = 0; i < TILE; ++i) {
            const double missed = own[i] / counted[i] - own[i];
            sum[i] += own[i] * (missed * 0.7213475204444817 - log2_of(counted[i]));   // half a natural unit of information
        }
    }
    return sum_of(sum);
}

// Errors in one row, within one bound: the numbers that are coded, and sums over them.
WIDE DEVICE void count_row(i64 n, const double* error, const float* noise, const double* weight, const double* counted,
                           double bound, double half, u16* kind, double* share, double* found)
{
    double zeros[TILE], squares[TILE], sizes[TILE];
    for (i32 i = 0; i < TILE; ++i) zeros[i] = squares[i] = sizes[i] = 0;
    for (i64 from = 0; from < n; from += TILE) {
        const i32 count = n - from < TILE ? (i32)(n - from) : TILE;
        double size[TILE], own[TILE], valid[TILE];
        float number[TILE], added[TILE];
        for (i32 i = 0; i < TILE; ++i) size[i] = own[i] = valid[i] = added[i] = 0;
        for (i32 i = 0; i < count; ++i) {
            size[i] = error[from + i];
            added[i] = noise[from + i];
            own[i] = weight[from + i];
            valid[i] = counted[from + i];
        }
        for (i32 i = 0; i < TILE; ++i) {
            const float scaled = (float)between(size[i] / bound, MOST_SIZE), seen = scaled + added[i];
            number[i] = (float)between(rintf(seen * (float)half), MOST_NUMBER);
            const double left = seen - 2 * number[i];
            zeros[i] += number[i] == 0 ? own[i] : 0;
            squares[i] += valid[i] * left * left;
            sizes[i] += own[i] * log2_of(1 + fabs((double)scaled));
        }
        for (i32 i = 0; i < count; ++i) {
            const u16 here = (u16)((i32)number[i] & (KINDS - 1));
            kind[from + i] = here;
            share[here] += own[i];
        }
    }
    found[0] = entropy_of(n, kind, weight, share);
    found[1] = sum_of(zeros);
    found[2] = sum_of(squares);
    found[3] = sum_of(sizes);
}

// Bits of a number in each row.
KERNEL(count_rows)(i64 tables, i64 rows, i64 places, const i32* number SIZE(rows * places),
                   const double* weight SIZE(places), u16* kind SIZE(tables * places),
                   double* share SIZE(tables * 2048), double* bits SIZE(rows))
{
    FOR_EACH_LIGHT(t, tables) {
        u16* own = kind + t * places;
        double* counts = share + t * KINDS;
        for (i64 row = t; row < rows; row += tables) {
            clear(counts);
            for (i64 i = 0; i < places; ++i) {
                own[i] = (u16)(number[row * places + i] & (KINDS - 1));
                counts[own[i]] += weight[i];
            }
            bits[row] = entropy_of(places, own, weight, counts);
        }
    }
}

// Of each of some predictors within each bound: bits of a number, the share of zeros, the mean of squares of what rounding
// leaves, the mean of log2(1 + size), the share of sizes within the bound, and that of those beside which there is another.
// `half` is half of what errors in units of a bound are multiplied by before they are rounded.
KERNEL(count_errors)(i64 tables, i64 predictors, i64 bounds, i64 places, i64 paired,
                     const double* error SIZE(predictors * places), const float* noise SIZE(error),
                     const double* weight SIZE(places), const double* counted SIZE(places),
                     const double* pair SIZE(2 * predictors * paired), const double* of_pair SIZE(paired),
                     const double* bound SIZE(bounds), const double* half SIZE(predictors * bounds),
                     u16* kind SIZE(tables * places), double* share SIZE(tables * 2048),
                     double* found SIZE(predictors * bounds * 6))
{
    FOR_EACH_LIGHT(t, tables)
        for (i64 row = t; row < predictors * bounds; row += tables) {
            const i64 predictor = row / bounds;
            const double within = bound[row % bounds];
            double* to = found + row * FIGURES;
            clear(share + t * KINDS);
            count_row(places, error + predictor * places, noise + predictor * places, weight, counted, within, half[row],
                      kind + t * places, share + t * KINDS, to);
            const double *here = pair + predictor * paired, *beside = here + predictors * paired;
            double likely = 0, both = 0;
            for (i64 i = 0; i < paired; ++i) {
                const bool small = (float)fabs(here[i] / within) <= 1;
                likely += small ? of_pair[i] : 0;
                both += small && (float)fabs(beside[i] / within) <= 1 ? of_pair[i] : 0;
            }
            to[4] = likely;
            to[5] = both;
        }
}

// Differences of numbers of a lattice in one row, counted.
WIDE DEVICE void count_differences_in(i64 n, i64 corners, const double* corner, const i32* sign, double scale,
                                      const double* weight, u16* kind, double* share)
{
    for (i64 from = 0; from < n; from += TILE) {
        const i32 count = n - from < TILE ? (i32)(n - from) : TILE;
        double number[TILE];
        for (i32 i = 0; i < TILE; ++i) number[i] = 0;
        for (i64 c = 0; c < corners; ++c) {
            if (!sign[c]) continue;
            for (i32 i = 0; i < count; ++i) number[i] += sign[c] * rint(corner[c * n + from + i] * scale);
        }
        for (i32 i = 0; i < TILE; ++i) number[i] = between(number[i], MOST_NUMBER);
        for (i32 i = 0; i < count; ++i) {
            const u16 here = (u16)((i32)number[i] & (KINDS - 1));
            kind[from + i] = here;
            share[here] += weight[from + i];
        }
    }
}

// Numbers of a lattice of step 1 / scale, in differences along one or several axes: sums over corners of cells with these
// signs. Bits of a number for each choice of signs and each step.
KERNEL(count_differences)(i64 tables, i64 choices, i64 steps, i64 corners, i64 places,
                          const double* corner SIZE(corners * places), const i32* sign SIZE(choices * corners),
                          const double* scale SIZE(steps), const double* weight SIZE(places),
                          u16* kind SIZE(tables * places), double* share SIZE(tables * 2048),
                          double* bits SIZE(choices * steps))
{
    FOR_EACH_LIGHT(t, tables) {
        u16* own = kind + t * places;
        double* counts = share + t * KINDS;
        for (i64 row = t; row < choices * steps; row += tables) {
            clear(counts);
            const i32* signs = sign + row / steps * corners;
            count_differences_in(places, corners, corner, signs, scale[row % steps], weight, own, counts);
            bits[row] = entropy_of(places, own, weight, counts);
        }
    }
}

// The sums of ensembles of trees of one depth for rows of features. Nodes come first, and trees second.
KERNEL(sum_trees)(i64 n, i64 rows, i64 columns, i64 trees, i64 sums, i32 depth, const float* features SIZE(rows * columns),
                  const i64* column SIZE((2 ** depth - 1) * trees), const float* threshold SIZE(column),
                  const double* leaf SIZE((2 ** depth) * trees), const i64* first SIZE(sums + 1),
                  const double* start SIZE(sums), double* found SIZE(rows * sums))
{
    (void)sums;   // states a size
    FOR_EACH_LIGHT(item, n) {
        const i64 of = item / rows;
        const float* row = features + item % rows * columns;
        double sum = 0;
        for (i64 tree = first[of]; tree < first[of + 1]; ++tree) {
            i64 node = 0;
            for (i32 level = 0; level < depth; ++level)
                node = 2 * node + 1 + (row[column[node * trees + tree]] > threshold[node * trees + tree]);
            sum += leaf[(node - ((i64)1 << depth) + 1) * trees + tree];
        }
        found[item] = start[of] + sum;
    }
}
