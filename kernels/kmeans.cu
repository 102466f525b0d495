// The assignment step of k-means: the nearest centre of every point, from products of points and centres.
//
// With p = x · c, the nearest centre has the least score |c|² / 2 - p. The products take nearly all of the time. Points
// come in blocks of ROWS, centres in tiles of LANES, and the products of one block with one tile stay in the first-level
// cache until the scores have been compared. A tile is stored axis by axis, so that one vector holds products of one point
// with many centres; each product is summed in the order of the axes, so that it is the same number for any length of
// vectors.
//
// Scores are rounded. Where the two best are closer than rounding may have moved them, squared distances decide
// (kmeans.cuh). So labels are those of the plain definition.
//
// The checked variant adds checksums, as algorithm-based fault tolerance does (FT K-means, Wu et al. 2024): the products of
// one block with one centre must add up to the product of the block's sum with that centre. Where they do not, the products
// of that block and centre are computed again, before scores are compared. Faults too small to be seen in a sum can change
// a label only if the two best scores are close, so squared distances decide there, too.
//
// The struck variants are for tests and campaigns. They flip bits of chosen sums; the others contain no trace of it.
#include "portable.cuh"
#include "kmeans.cuh"

static const i32 ROWS_ON_CPU = 64, ROWS_ON_GPU = 8, LANES_ON_CPU = 32, LANES_ON_GPU = 8;
static const i32 TOGETHER = 4;   // points whose products are summed at once: as many sums as fit into registers
static const i32 COUNTED = 4;    // counts per block: what Counts holds

#ifdef __CUDACC__
static const i32 ROWS = ROWS_ON_GPU, LANES = LANES_ON_GPU;
#else
static const i32 ROWS = ROWS_ON_CPU, LANES = LANES_ON_CPU;
#endif

namespace {

// What all blocks share. Tiles are (tiles, axes, LANES); centres beyond the last are far away, with an infinite half
// square.
struct Problem {
    i64 n, axes, clusters;
    const real* point;
    const real* centre;
    const real* tile;
    const real* half_square;
    const real* size;   // of each point: at least its Euclidean norm
    double largest;     // the largest size of a centre
    double rounding;    // a score is off by at most this times (the size of the point + the largest of a centre) squared
    double smallest;    // plus this, where products are too small for their type
};

// For each block, the sum of its points and the root of the sum of their squared sizes; for each centre, its size.
struct Checksums {
    const double* sum;
    const double* spread;
    const double* centre_size;
    double sensitivity;   // the threshold in units of the expected round-off
};

// Bits to flip, sorted by block: in the product of a point and a centre, after so many axes have been added.
struct Flips {
    i64 begin, end;
    const i64* point;
    const i32* centre;
    const i32* axis;
    const i32* bit;
};

struct Counts {
    i32 changed;     // labels that are not those from before
    i32 decided;     // labels that squared distances decided
    i32 detected;    // checksums that differed because of products that were wrong
    i32 corrected;   // products that a second computation changed
};

struct Best {
    real score[ROWS][LANES], runner_up[ROWS][LANES], tile[ROWS][LANES];
};

}

DEVICE ALWAYS_INLINE double largest_of(double a, double b) { return a > b ? a : b; }

union FloatBits {
    float value;
    u32 bits;
};

union DoubleBits {
    double value;
    u64 bits;
};

DEVICE float with_bit_flipped(float value, i32 bit)
{
    FloatBits a;
    a.value = value;
    a.bits ^= 1u << bit;
    return a.value;
}

DEVICE double with_bit_flipped(double value, i32 bit)
{
    DoubleBits a;
    a.value = value;
    a.bits ^= 1ull << bit;
    return a.value;
}

DEVICE ALWAYS_INLINE real infinity()
{
    DoubleBits a;
    a.bits = 0x7ff0000000000000ull;
    return (real)a.value;
}

DEVICE ALWAYS_INLINE void clear(real (*sum)[LANES])
{
    for (i32 t = 0; t < TOGETHER; ++t)
        for (i32 l = 0; l < LANES; ++l) sum[t][l] = 0;
}

// The next axis of the products of a few points with one tile.
DEVICE ALWAYS_INLINE void add_axis(const real* const* point, const real* tile, i64 axis, real (*sum)[LANES])
{
    for (i32 t = 0; t < TOGETHER; ++t) {
        const real x = point[t][axis];
        for (i32 l = 0; l < LANES; ++l) sum[t][l] += x * tile[axis * LANES + l];
    }
}

DEVICE ALWAYS_INLINE void multiply(const real* const* point, const real* tile, i64 axes, real (*product)[LANES])
{
    real sum[TOGETHER][LANES];
    clear(sum);
    for (i64 axis = 0; axis < axes; ++axis) add_axis(point, tile, axis, sum);
    for (i32 t = 0; t < TOGETHER; ++t)
        for (i32 l = 0; l < LANES; ++l) product[t][l] = sum[t][l];
}

// The same, with the flips that meet these points and this tile.
DEVICE void multiply_struck(const real* const* point, const real* tile, i64 axes, i64 first_point, i64 first_centre,
                            Flips flips, real (*product)[LANES])
{
    clear(product);
    for (i64 axis = 0; axis < axes; ++axis) {
        add_axis(point, tile, axis, product);
        for (i64 f = flips.begin; f < flips.end; ++f) {
            const i64 t = flips.point[f] - first_point, l = flips.centre[f] - first_centre;
            if (flips.axis[f] == axis && t >= 0 && t < TOGETHER && l >= 0 && l < LANES)
                product[t][l] = with_bit_flipped(product[t][l], flips.bit[f]);
        }
    }
}

template <bool STRUCK>
DEVICE ALWAYS_INLINE void multiply_block(const Problem& problem, i64 first, i32 rows, i64 tile, Flips flips,
                                         real (*product)[LANES])
{
    const real* centres = problem.tile + tile * problem.axes * LANES;
    KEEP_LOOP
    for (i32 r = 0; r < rows; r += TOGETHER) {
        const real* point[TOGETHER];
        for (i32 t = 0; t < TOGETHER; ++t)   // beyond the last point, the last one again
            point[t] = problem.point + (first + (r + t < rows ? r + t : rows - 1)) * problem.axes;
        if (STRUCK && flips.begin < flips.end)
            multiply_struck(point, centres, problem.axes, first + r, tile * LANES, flips, product + r);
        else
            multiply(point, centres, problem.axes, product + r);
    }
}

// The products of all points of a block with one centre, again: in the same order, so without a fault the same bits.
DEVICE i32 repair(const Problem& problem, i64 first, i32 rows, i64 tile, i32 lane, real (*product)[LANES])
{
    const real* centres = problem.tile + tile * problem.axes * LANES + lane;
    i32 corrected = 0;
    KEEP_LOOP
    for (i32 r = 0; r < rows; ++r) {
        const real* x = problem.point + (first + r) * problem.axes;
        real sum = 0;
        KEEP_LOOP
        for (i64 axis = 0; axis < problem.axes; ++axis) sum += x[axis] * centres[axis * LANES];
        corrected += !(sum == product[r][lane]);
        product[r][lane] = sum;
    }
    return corrected;
}

// Compares the sums of the products over a block with what they must be, and repairs where they differ. The threshold
// depends on checksums alone: with the products in it, a wrong one would raise its own threshold. Returns the largest
// threshold.
DEVICE ALWAYS_INLINE double check(const Problem& problem, const Checksums& known, i64 block, i32 rows, i64 tile,
                                  real (*product)[LANES], Counts* counts)
{
    double actual[LANES], expected[LANES], largest = 0;
    for (i32 l = 0; l < LANES; ++l) actual[l] = expected[l] = 0;
    i32 r = 0;
    KEEP_LOOP
    for (; r + TOGETHER <= rows; r += TOGETHER)
        for (i32 l = 0; l < LANES; ++l)
            actual[l] += (product[r][l] + product[r + 1][l]) + (product[r + 2][l] + product[r + 3][l]);
    KEEP_LOOP
    for (; r < rows; ++r)
        for (i32 l = 0; l < LANES; ++l) actual[l] += product[r][l];
    const real* centres = problem.tile + tile * problem.axes * LANES;
    KEEP_LOOP
    for (i64 axis = 0; axis < problem.axes; ++axis) {
        const double sum = known.sum[block * problem.axes + axis];
        for (i32 l = 0; l < LANES; ++l) expected[l] += sum * centres[axis * LANES + l];
    }
    const double spread = known.sensitivity * known.spread[block];
    const double* size = known.centre_size + tile * LANES;
    i32 doubtful = 0;
    for (i32 l = 0; l < LANES; ++l) {
        const double off = actual[l] - expected[l], threshold = spread * size[l];
        doubtful |= !(off <= threshold) | !(off >= -threshold);   // not a number is doubtful, too
        largest = largest_of(largest, threshold);
    }
    if (doubtful)
        for (i32 l = 0; l < LANES; ++l) {
            const double off = actual[l] - expected[l], threshold = spread * size[l];
            if (off <= threshold && off >= -threshold) continue;
            const i32 replaced = repair(problem, block * ROWS, rows, tile, l, product);
            counts->detected += replaced > 0;   // what is the same again is round-off
            counts->corrected += replaced;
        }
    return largest;
}

DEVICE ALWAYS_INLINE void start(i32 rows, Best* best)
{
    const real far = infinity();
    KEEP_LOOP
    for (i32 r = 0; r < rows; ++r)
        for (i32 l = 0; l < LANES; ++l) {
            best->score[r][l] = best->runner_up[r][l] = far;
            best->tile[r][l] = 0;
        }
}

// Compares the scores of one tile with the best so far, lane by lane. What is not a number is never better.
DEVICE ALWAYS_INLINE void compare(const real* half_square, i64 tile, i32 rows, const real (*product)[LANES], Best* best)
{
    const real number = (real)tile;
    KEEP_LOOP
    for (i32 r = 0; r < rows; ++r)
        for (i32 l = 0; l < LANES; ++l) {   // all is loaded before anything is chosen, or there are no vectors
            const real score = half_square[tile * LANES + l] - product[r][l];
            const real best_before = best->score[r][l], second_before = best->runner_up[r][l], from = best->tile[r][l];
            const bool better = score < best_before;
            const real loser = better ? best_before : score;
            best->runner_up[r][l] = loser < second_before ? loser : second_before;
            best->score[r][l] = better ? score : best_before;
            best->tile[r][l] = better ? number : from;
        }
}

// The best centre of a point among all lanes; `margin` is by how much the second best is worse.
DEVICE ALWAYS_INLINE i32 fold(const Best& best, i32 r, real* margin)
{
    real score[LANES], runner_up[LANES], centre[LANES];   // numbers of centres are below 2^24, exact in any type
    for (i32 l = 0; l < LANES; ++l) {
        score[l] = best.score[r][l];
        runner_up[l] = best.runner_up[r][l];
        centre[l] = best.tile[r][l] * (real)LANES + (real)l;
    }
    for (i32 width = LANES / 2; width > 0; width /= 2)
        for (i32 l = 0; l < width; ++l) {
            const real here = score[l], there = score[l + width], second_here = runner_up[l];
            const real second_there = runner_up[l + width], centre_here = centre[l], centre_there = centre[l + width];
            const bool better = there < here;
            const real loser = better ? here : there;
            const real second = second_there < second_here ? second_there : second_here;
            runner_up[l] = loser < second ? loser : second;
            score[l] = better ? there : here;
            centre[l] = better ? centre_there : centre_here;
        }
    *margin = runner_up[0] - score[0];
    return (i32)centre[0];
}

template <bool STRUCK>
DEVICE ALWAYS_INLINE void assign_block(const Problem& problem, const Checksums& known, Flips flips, bool checked, i64 block,
                                       i32* label, i32* counted)
{
    real product[ROWS][LANES];
    Best best;
    Counts counts = {0, 0, 0, 0};
    const i64 first = block * ROWS;
    const i32 rows = (i32)(problem.n - first < ROWS ? problem.n - first : ROWS);
    double threshold = 0;
    start(rows, &best);
    for (i64 tile = 0; tile * LANES < problem.clusters; ++tile) {
        multiply_block<STRUCK>(problem, first, rows, tile, flips, product);
        if (checked) threshold = largest_of(threshold, check(problem, known, block, rows, tile, product, &counts));
        compare(problem.half_square, tile, rows, product, &best);
    }
    KEEP_LOOP
    for (i32 r = 0; r < rows; ++r) {
        real margin;
        i32 nearest = fold(best, r, &margin);
        const double reach = (double)problem.size[first + r] + problem.largest;
        // A fault that escapes a check is at most two thresholds: one that is allowed, and round-off that hid as much. It
        // may have made the best score worse and another one better.
        if (!(margin > 2 * (problem.rounding * reach * reach + problem.smallest) + 4 * threshold)) {
            const real* x = problem.point + (first + r) * problem.axes;
            nearest = nearest_centre(x, problem.centre, problem.clusters, problem.axes);
            ++counts.decided;
        }
        counts.changed += label[first + r] != nearest;
        label[first + r] = nearest;
    }
    counted[block * COUNTED] = counts.changed;
    counted[block * COUNTED + 1] = counts.decided;
    counted[block * COUNTED + 2] = counts.detected;
    counted[block * COUNTED + 3] = counts.corrected;
}

WIDE DEVICE void assign_plainly(const Problem& problem, i64 block, i32* label, i32* counted)
{
    assign_block<false>(problem, Checksums(), Flips(), false, block, label, counted);
}

WIDE DEVICE void assign_checked(const Problem& problem, const Checksums& known, i64 block, i32* label, i32* counted)
{
    assign_block<false>(problem, known, Flips(), true, block, label, counted);
}

KERNEL(assign)(i64 blocks, i64 n, i64 axes, i64 clusters, i64 padded, const real* point SIZE(n * axes),
               const real* centre SIZE(clusters * axes), const real* tile SIZE(padded * axes),
               const real* half_square SIZE(padded), const real* size SIZE(n),
               double largest, double rounding, double smallest,
               i32* label SIZE(n), i32* counted SIZE(blocks * 4))
{
    (void)padded;
    const Problem problem = {n, axes, clusters, point, centre, tile, half_square, size, largest, rounding, smallest};
    FOR_EACH(block, blocks) assign_plainly(problem, block, label, counted);
}

KERNEL(assign_and_check)(i64 blocks, i64 n, i64 axes, i64 clusters, i64 padded, const real* point SIZE(n * axes),
                         const real* centre SIZE(clusters * axes), const real* tile SIZE(padded * axes),
                         const real* half_square SIZE(padded), const real* size SIZE(n),
                         double largest, double rounding, double smallest,
                         const double* block_sum SIZE(blocks * axes), const double* block_spread SIZE(blocks),
                         const double* centre_size SIZE(padded), double sensitivity, i32* label SIZE(n),
                         i32* counted SIZE(blocks * 4))
{
    (void)padded;
    const Problem problem = {n, axes, clusters, point, centre, tile, half_square, size, largest, rounding, smallest};
    const Checksums known = {block_sum, block_spread, centre_size, sensitivity};
    FOR_EACH(block, blocks) assign_checked(problem, known, block, label, counted);
}

// Both of the above, with flips: those of block b are flip_first[b] ... flip_first[b + 1] - 1.
KERNEL(assign_struck)(i64 blocks, i64 n, i64 axes, i64 clusters, i64 padded, const real* point SIZE(n * axes),
                      const real* centre SIZE(clusters * axes), const real* tile SIZE(padded * axes),
                      const real* half_square SIZE(padded), const real* size SIZE(n),
                      double largest, double rounding, double smallest,
                      const double* block_sum SIZE(blocks * axes), const double* block_spread SIZE(blocks),
                      const double* centre_size SIZE(padded), double sensitivity, i32 checked, i64 flips,
                      const i64* flip_first SIZE(blocks + 1), const i64* flip_point SIZE(flips),
                      const i32* flip_centre SIZE(flips), const i32* flip_axis SIZE(flips), const i32* flip_bit SIZE(flips),
                      i32* label SIZE(n), i32* counted SIZE(blocks * 4))
{
    (void)padded;
    (void)flips;
    const Problem problem = {n, axes, clusters, point, centre, tile, half_square, size, largest, rounding, smallest};
    const Checksums known = {block_sum, block_spread, centre_size, sensitivity};
    FOR_EACH(block, blocks) {
        const Flips here = {flip_first[block], flip_first[block + 1], flip_point, flip_centre, flip_axis, flip_bit};
        assign_block<true>(problem, known, here, checked, block, label, counted);
    }
}

// The size of each point, rounded up; and for each block, its checksums.
KERNEL(summarise_points)(i64 blocks, i64 n, i64 axes, const real* point SIZE(n * axes), real* size SIZE(n),
                         double* block_sum SIZE(blocks * axes), double* block_spread SIZE(blocks))
{
    FOR_EACH(block, blocks) {
        const i64 first = block * ROWS, end = first + ROWS < n ? first + ROWS : n;
        double* sum = block_sum + block * axes;
        for (i64 axis = 0; axis < axes; ++axis) sum[axis] = 0;
        double total = 0;
        for (i64 i = first; i < end; ++i) {
            double squares = 0;
            for (i64 axis = 0; axis < axes; ++axis) {
                const double x = point[i * axes + axis];
                sum[axis] += x;
                squares += x * x;
            }
            size[i] = (real)(sqrt(squares) * 1.000001);
            total += squares;
        }
        block_spread[block] = sqrt(total);
    }
}
