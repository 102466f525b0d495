// Gaps in planes, filled smoothly: pull and push over grids of half the resolution, with a few steps of relaxation on each.
//
// A cell of a coarse grid is the weighted mean of up to four cells that are known; where none is, its weight is 0. From
// the coarsest grid back, gaps are interpolated, then moved towards the mean of their neighbours, which solves Laplace's
// equation nearly. Known cells never change. A work item is a row of a plane.
#include "portable.cuh"

DEVICE i64 inside(i64 k, i64 size) { return k < 0 ? 0 : k < size ? k : size - 1; }

// Means and weights of planes at half the resolution; `n` counts their rows.
KERNEL(halve_planes)(i64 n, i64 planes, i64 rows, i64 columns, const double* mean SIZE(planes * rows * columns),
                     const double* weight SIZE(mean), double* half_mean SIZE(n * CEIL(columns, 2)),
                     double* half_weight SIZE(half_mean))
{
    (void)planes;   // states a size
    const i64 half_rows = (rows + 1) / 2, half_columns = (columns + 1) / 2;
    FOR_EACH(i, n) {
        const i64 row = 2 * (i % half_rows), first = (i / half_rows * rows + row) * columns;
        for (i64 column = 0; column < half_columns; ++column) {
            double sum = 0, weights = 0;
            for (i64 down = 0; down < 2 && row + down < rows; ++down)
                for (i64 right = 0; right < 2 && 2 * column + right < columns; ++right) {
                    const i64 k = first + down * columns + 2 * column + right;
                    sum += 0.25 * weight[k] * mean[k];
                    weights += 0.25 * weight[k];
                }
            half_mean[i * half_columns + column] = weights > 0 ? sum / weights : 0;
            half_weight[i * half_columns + column] = weights;
        }
    }
}

// Gaps get the value that lies there between the four nearest cells of the planes at half the resolution.
KERNEL(interpolate_gaps)(i64 n, i64 planes, i64 rows, i64 columns,
                         const double* half SIZE(planes * CEIL(rows, 2) * CEIL(columns, 2)),
                         const double* weight SIZE(n * columns), double* mean SIZE(weight))
{
    (void)planes;
    const i64 half_rows = (rows + 1) / 2, half_columns = (columns + 1) / 2;
    FOR_EACH(i, n) {
        const i64 row = i % rows, plane = i / rows * half_rows;
        const double* near = half + (plane + row / 2) * half_columns;
        const double* far = half + (plane + inside(row / 2 + (row & 1 ? 1 : -1), half_rows)) * half_columns;
        for (i64 column = 0; column < columns; ++column) {
            if (weight[i * columns + column] > 0) continue;
            const i64 at = column / 2, next = inside(at + (column & 1 ? 1 : -1), half_columns);
            mean[i * columns + column] = 0.75 * (0.75 * near[at] + 0.25 * near[next]) + 0.25 * (0.75 * far[at] + 0.25 * far[next]);
        }
    }
}

// Each gap becomes the mean of its four neighbours, all at once; beyond the border are copies of the cells there.
KERNEL(relax_gaps)(i64 n, i64 rows, i64 columns, const double* weight SIZE(n * columns), const double* from SIZE(weight),
                   double* to SIZE(weight))
{
    FOR_EACH(i, n) {
        const i64 row = i % rows, above = row > 0 ? -columns : 0, below = row + 1 < rows ? columns : 0;
        for (i64 column = 0; column < columns; ++column) {
            const double* at = from + i * columns + column;
            const i64 left = column > 0 ? -1 : 0, right = column + 1 < columns ? 1 : 0;
            to[i * columns + column] = weight[i * columns + column] > 0
                                           ? *at
                                           : (0.25 * at[above] + 0.25 * at[below]) + (0.25 * at[left] + 0.25 * at[right]);
        }
    }
}
