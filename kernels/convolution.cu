// Correlation of a field with a stencil, its checksums, and lines computed again where a checksum differs.
//
// The output has three axes, and so has the input, which is larger by the stencil less one. The unit of work and of
// checking is a line of the output along the last axis. It must add up to the stencil times sums of the input over as long
// a window; from one place of the window to the next, the sum changes by two values. So a check takes two passes over the
// data, whatever the stencil.
#include "portable.cuh"

#ifdef __CUDACC__
static const i32 TILE = 8;
#else
static const i32 TILE = 64;
#endif

namespace {

struct Stencil {
    i64 planes, rows, points;   // of the stencil
    const real* weight;
};

struct Lines {
    i64 height, length;            // lines per plane of the output, and values per line
    i64 input_rows, input_length;  // the same of the input
};

}

// The first of the input lines that take part in an output line.
DEVICE ALWAYS_INLINE i64 first_line(const Lines& lines, i64 line)
{
    return line / lines.height * lines.input_rows + line % lines.height;
}

WIDE DEVICE void correlate_line(const Lines& lines, const Stencil& stencil, const real* input, i64 line, real* output)
{
    const i64 start = first_line(lines, line);
    for (i64 x = 0; x < lines.length; x += TILE) {
        real sum[TILE];
        for (i32 l = 0; l < TILE; ++l) sum[l] = 0;
        const i64 here = lines.length - x < TILE ? lines.length - x : TILE;
        const real* weight = stencil.weight;
        for (i64 plane = 0; plane < stencil.planes; ++plane)
            for (i64 row = 0; row < stencil.rows; ++row) {
                const real* from = input + (start + plane * lines.input_rows + row) * lines.input_length + x;
                for (i64 point = 0; point < stencil.points; ++point, ++weight) {
                    const real w = *weight;
                    if (here == TILE)
                        for (i32 l = 0; l < TILE; ++l) sum[l] += w * from[point + l];
                    else
                        for (i32 l = 0; l < here; ++l) sum[l] += w * from[point + l];
                }
            }
        for (i64 l = 0; l < here; ++l) output[x + l] = sum[l];
    }
}

KERNEL(correlate)(i64 lines, i64 height, i64 length, i64 stencil_planes, i64 stencil_rows, i64 stencil_points,
                  i64 input_planes, i64 input_rows, const real* input SIZE(input_planes * input_rows * (length +
                  stencil_points - 1)), const real* weight SIZE(stencil_planes * stencil_rows * stencil_points), real*
                  output SIZE(lines * length))
{
    (void)input_planes;
    const Stencil stencil = {stencil_planes, stencil_rows, stencil_points, weight};
    const Lines shape = {height, length, input_rows, length + stencil_points - 1};
    FOR_EACH(line, lines) correlate_line(shape, stencil, input, line, output + line * length);
}

// For each line of the input, the sum of its values in each place of a window of `length` values, and of all squares.
WIDE DEVICE void window_line(const real* value, i64 length, i64 places, double* sum, double* squares)
{
    double total[8] = {0, 0, 0, 0, 0, 0, 0, 0}, square[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    i64 x = 0;
    for (; x + 8 <= length; x += 8)
        for (i32 l = 0; l < 8; ++l) {
            const double v = value[x + l];
            total[l] += v;
            square[l] += v * v;
        }
    for (; x < length; ++x) {
        total[0] += (double)value[x];
        square[0] += (double)value[x] * value[x];
    }
    for (i32 l = 1; l < 8; ++l) {
        total[0] += total[l];
        square[0] += square[l];
    }
    sum[0] = total[0];
    for (i64 place = 1; place < places; ++place) {
        const double leaving = value[place - 1], entering = value[place + length - 1];
        sum[place] = sum[place - 1] + (entering - leaving);
        square[0] += entering * entering;
    }
    *squares = square[0];
}

KERNEL(window_sums)(i64 lines, i64 length, i64 places, const real* value SIZE(lines * (length + places - 1)),
                    double* sum SIZE(lines * places), double* squares SIZE(lines))
{
    FOR_EACH(line, lines)
        window_line(value + line * (length + places - 1), length, places, sum + line * places, squares + line);
}

// What each line of the output must add up to, and at most how much the squares of all its products are together.
KERNEL(expected_sums)(i64 lines, i64 height, i64 stencil_planes, i64 stencil_rows, i64 stencil_points, i64 input_planes,
                      i64 input_rows, const double* window SIZE(input_planes * input_rows * stencil_points),
                      const double* squares SIZE(input_planes * input_rows),
                      const real* weight SIZE(stencil_planes * stencil_rows * stencil_points), double* expected SIZE(lines),
                      double* products SIZE(lines))
{
    (void)input_planes;
    const Lines shape = {height, 0, input_rows, 0};
    FOR_EACH(line, lines) {
        const i64 start = first_line(shape, line);
        double sum = 0, square = 0;
        const real* w = weight;
        for (i64 plane = 0; plane < stencil_planes; ++plane)
            for (i64 row = 0; row < stencil_rows; ++row) {
                const i64 from = start + plane * input_rows + row;
                for (i64 point = 0; point < stencil_points; ++point, ++w) {
                    sum += (double)*w * window[from * stencil_points + point];
                    square += (double)*w * (double)*w * squares[from];
                }
            }
        expected[line] = sum;
        products[line] = square;
    }
}

// Chosen lines of the output in double, and the sum of the sizes of their products.
KERNEL(exact_lines)(i64 chosen, i64 height, i64 length, i64 stencil_planes, i64 stencil_rows, i64 stencil_points,
                    i64 input_planes, i64 input_rows,
                    const real* input SIZE(input_planes * input_rows * (length + stencil_points - 1)),
                    const real* weight SIZE(stencil_planes * stencil_rows * stencil_points), const i64* line SIZE(chosen),
                    double* value SIZE(chosen * length), double* size SIZE(chosen * length))
{
    (void)input_planes;
    const i64 input_length = length + stencil_points - 1;
    const Lines shape = {height, length, input_rows, input_length};
    FOR_EACH(c, chosen) {
        const i64 start = first_line(shape, line[c]);
        for (i64 x = 0; x < length; ++x) {
            double sum = 0, large = 0;
            const real* w = weight;
            for (i64 plane = 0; plane < stencil_planes; ++plane)
                for (i64 row = 0; row < stencil_rows; ++row) {
                    const real* from = input + (start + plane * input_rows + row) * input_length + x;
                    for (i64 point = 0; point < stencil_points; ++point, ++w) {
                        const double product = (double)*w * (double)from[point];
                        sum += product;
                        large += product < 0 ? -product : product;
                    }
                }
            value[c * length + x] = sum;
            size[c * length + x] = large;
        }
    }
}
