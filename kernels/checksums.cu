// Checksums of matrix products, and products computed again where a checksum differs.
//
// For C = A B, the column sums of C must be the column sums of A times B. All sums are in double, so that nearly all of the
// difference is the round-off of C itself.
#include "portable.cuh"

static const i32 TOGETHER = 4;   // rows that are added at once

// sum[j] += w[i] x[i][j] and squares[j] += x[i][j]^2, for rows and columns of a part of a matrix.
WIDE DEVICE void add_rows(i64 rows, i64 width, i64 columns, const real* x, const double* weight, double* sum, double*
squares) {
    i64 i = 0;
    for (; i + TOGETHER <= rows; i += TOGETHER) {
        const double w0 = weight[i], w1 = weight[i + 1], w2 = weight[i + 2], w3 = weight[i + 3];
        const real* row = x + i * columns;
        for (i64 j = 0; j < width; ++j) {
            const double a = row[j], b = row[columns + j], c = row[2 * columns + j], d = row[3 * columns + j];
            sum[j] += (w0 * a + w1 * b) + (w2 * c + w3 * d);
            squares[j] += (a * a + b * b) + (c * c + d * d);
        }
    }
    for (; i < rows; ++i)
        for (i64 j = 0; j < width; ++j) {
            const double a = x[i * columns + j];
            sum[j] += weight[i] * a;
            squares[j] += a * a;
        }
}

// Weighted column sums and sums of squares of each run of `height` rows; a work item takes `width` columns of one run.
KERNEL(column_sums)(i64 items, i64 rows, i64 columns, i64 height, i64 width, const real* matrix SIZE(rows * columns),
                    const double* weight SIZE(rows), double* sum SIZE(CEIL(rows, height) * columns),
                    double* squares SIZE(CEIL(rows, height) * columns))
{
    const i64 across = (columns + width - 1) / width;
    FOR_EACH(item, items) {
        const i64 run = item / across, column = item % across * width, row = run * height;
        const i64 here = columns - column < width ? columns - column : width;
        const i64 high = rows - row < height ? rows - row : height;
        double* sums = sum + run * columns + column;
        double* square = squares + run * columns + column;
        for (i64 j = 0; j < here; ++j) sums[j] = square[j] = 0;
        add_rows(high, here, columns, matrix + row * columns + column, weight + row, sums, square);
    }
}

// Elements of A B in chosen columns, in double, and the sum of the sizes of their products. `columns` holds those columns
// of B as rows; work item i is row i of A.
KERNEL(exact_columns)(i64 rows, i64 terms, i64 chosen, const real* a SIZE(rows * terms), const real* columns SIZE(chosen *
terms),
                      double* value SIZE(rows * chosen), double* size SIZE(rows * chosen))
{
    FOR_EACH(i, rows) {
        for (i64 j = 0; j < chosen; ++j) {
            double sum[8] = {0, 0, 0, 0, 0, 0, 0, 0}, large = 0;
            for (i64 l = 0; l < terms; ++l) {
                const double product = (double)a[i * terms + l] * (double)columns[j * terms + l];
                sum[l & 7] += product;
                large += product < 0 ? -product : product;
            }
            value[j * rows + i] = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
            size[j * rows + i] = large;
        }
    }
}
