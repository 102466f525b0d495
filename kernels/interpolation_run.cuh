// What is expected of targets in a row of a pass, for many of them at once: the same sums in the same order as target by target.
//
// Of a target's neighbours, only the one before it in its row is decoded just before it. So all that does not depend on that one
// is found for a run of targets first, in loops whose steps do not depend on each other; a processor takes several steps at once.
#pragma once

// A function with a long body that several places call: a processor's code has it once.
#ifdef __CUDACC__
#define DEVICE_ONCE DEVICE
#else
#define DEVICE_ONCE static
#endif

static const i32 RUN = 64;        // targets that are looked at together
static const i32 WIDE_STEP = 16, NARROW_STEP = 4;   // targets at a time inside the grid
static const i32 LEAST_ROW = 8;   // targets of a row; in shorter ones, each is looked at by itself

namespace {

// The row along which targets are numbered fastest.
struct Row {
    i32 axis;
    i64 pace;                     // how far apart its targets are in the grid
    real ahead, size;             // the weights of the deviation before in the row: for the centre, for the scale
    bool layered;
};

// What is known of targets in a row. Those along other axes are decoded.
struct Run {
    real location[RUN];
    real scale[RUN];              // the terms of the scale before that of the deviations along the row,
    real size[RUN];               // and the deviations to which that of the target before is added
    real instead[RUN];            // the size of a deviation that is not known
    real ahead[RUN];              // what is foreseen from axes before that of the row, and, one by one, from those after it
    real later[AXES][RUN];
};

}  // namespace

// The axis of rows: the one along which targets are numbered fastest.
DEVICE i32 axis_of_rows(const Pass& pass)
{
    i32 k = AXES - 1;
    while (k > 0 && pass.count[pass.order[k]] < 2) --k;
    return pass.order[k];
}

DEVICE Row row_of(const Pass& pass, const Grid& grid, const real* weight)
{
    const i32 a = axis_of_rows(pass);
    const bool layered = pass.step[a] == 1;
    return {a, pass.step[a] * grid.stride[a], weight[12 + a], weight[layered ? 23 : 22], layered};
}

// The part of a run of `n` targets from `place` on in which all neighbours are inside the grid.
DEVICE void inside_of(const Pass& pass, const Grid& grid, const Row& row, const Place& place, i32 n, i32* begin, i32* end)
{
    const i32 r = row.axis;
    i64 margin = 0;
    for (i32 p = 0; p < pass.pairs; ++p)
        if (pass.other[p] == r && pass.aside[p] > margin) margin = pass.aside[p];
    for (i32 k = 0; k < pass.odd; ++k)
        if (pass.axis[k] == r) margin = 3 * pass.spacing;
    Place within = place;
    within.x[r] = margin;   // as if it were there
    const i64 before = margin - place.x[r], room = grid.shape[r] - margin - place.x[r];
    const i64 first = before > 0 ? (before + pass.step[r] - 1) / pass.step[r] : 0;
    const i64 last = room > 0 ? (room + pass.step[r] - 1) / pass.step[r] : 0;
    const bool any = 2 * margin < grid.shape[r] && is_inside(pass, grid, within);
    *begin = any && first < n ? (i32)first : n;
    *end = any && last < n ? (last > *begin ? (i32)last : *begin) : n;
    if (*end - *begin < NARROW_STEP) *begin = *end = n;
}

// Locations and the first terms of scales of `SIDE` targets of a run from target `start` on, which are inside the grid. `pace` is
// that of the row; it is called with the usual one as a literal.
template <i32 SIDE>
DEVICE ALWAYS_INLINE void look_inside(const Pass& pass, const Grid& grid, i64 at, i64 pace, i32 start, const real* weight,
                                      Run* run)
{
    const real *v = grid.value + at + start * pace, *deviation = grid.deviation + at + start * pace;
    real first[SIDE], across[AXES][SIDE], location[SIDE];
    real slopes[SIDE], bends[SIDE], spread[SIDE], near[SIDE], diagonal[SIDE];
    const i64 next = pass.spacing * grid.stride[pass.axis[0]];
    for (i32 i = 0; i < SIDE; ++i) {
        first[i] = location[i] = (v[i * pace - next] + v[i * pace + next]) * (real)0.5;
        slopes[i] = bends[i] = spread[i] = near[i] = diagonal[i] = 0;
    }
    for (i32 k = 0; k < pass.odd; ++k) {
        const i64 off = pass.spacing * grid.stride[pass.axis[k]];
        const real by = weight[5 + k];
        real* beside = across[k];
        for (i32 i = 0; i < SIDE; ++i) {
            const real near_left = v[i * pace - off], near_right = v[i * pace + off];
            const real sum = near_left + near_right, middle = sum * (real)0.5;
            const real bend = v[i * pace - 3 * off] + v[i * pace + 3 * off] - sum;
            near[i] += magnitude(deviation[i * pace - off]) + magnitude(deviation[i * pace + off]);
            slopes[i] += magnitude(near_right - near_left);
            bends[i] += magnitude(bend);
            beside[i] = middle - first[i];
            spread[i] += magnitude(beside[i]);
            location[i] += by * bend;
        }
    }
    for (i32 k = 1; k < pass.odd; ++k)
        for (i32 i = 0; i < SIDE; ++i) location[i] += weight[1 + k] * across[k][i];
    for (i32 p = 0; p < pass.pairs; ++p) {
        const i64 off = pass.spacing * grid.stride[pass.one[p]], aside = pass.aside[p] * grid.stride[pass.other[p]];
        const i64 a = -aside - off, b = aside - off, c = -aside + off, d = aside + off;
        const real by = weight[9 + p];
        for (i32 i = 0; i < SIDE; ++i) {
            const i64 x = i * pace;
            const real four = (v[x + a] + v[x + b]) + (v[x + c] + v[x + d]);
            const real beside = four * (real)0.25 - first[i];
            spread[i] += magnitude(beside);
            diagonal[i] += (magnitude(deviation[x + a]) + magnitude(deviation[x + b]))
                           + (magnitude(deviation[x + c]) + magnitude(deviation[x + d]));
            location[i] += by * beside;
        }
    }
    const real each = (real)0.5 / (real)pass.odd;
    for (i32 i = 0; i < SIDE; ++i) {
        run->location[start + i] = weight[1] + weight[0] * (location[i] - weight[1]);
        run->scale[start + i] = weight[16] + weight[17] * slopes[i] + weight[18] * bends[i] + weight[19] * spread[i]
                                + weight[20] * near[i] + weight[21] * diagonal[i];
        run->instead[start + i] = near[i] * each;
    }
}

// The same for one target near the border.
DEVICE_ONCE void look_at_border(const Pass& pass, const Grid& grid, const Place& place, const real* weight, i32 i, Run* run)
{
    const Survey seen = survey_from(pass, grid, place, false, pass.odd, pass.pairs);
    run->location[i] = locate(seen, weight, pass.odd, pass.pairs);
    run->scale[i] = weight[16] + weight[17] * seen.slopes + weight[18] * seen.bends + weight[19] * seen.spread
                    + weight[20] * seen.near + weight[21] * seen.diagonal;
    run->instead[i] = seen.near * ((real)0.5 / (real)pass.odd);
}

// Add the deviations of the targets before along the axes other than that of the row. `known` targets of the block are before
// the first of the run.
DEVICE ALWAYS_INLINE void look_beside(const Pass& pass, const Grid& grid, const Row& row, const Place& place, i64 pace,
                                      i64 known, i32 n, const real* weight, Run* run)
{
    real beginning[RUN], layers[RUN];
    for (i32 i = 0; i < n; ++i) run->ahead[i] = beginning[i] = layers[i] = 0;
    for (i32 a = row.axis + 1; a < AXES; ++a)
        for (i32 i = 0; i < n; ++i) run->later[a][i] = 0;
    for (i32 a = 0; a < AXES; ++a) {
        if (a == row.axis || pass.count[a] < 2) continue;
        const i64 wanting = place.x[a] > pass.first[a] ? pass.back[a] - known : n;
        const i32 from = wanting <= 0 ? 0 : wanting < n ? (i32)wanting : n;
        const real* earlier = grid.deviation + place.at - pass.step[a] * grid.stride[a];
        real* sizes = pass.step[a] == 1 ? layers : beginning;
        const real by = weight[12 + a];
        for (i32 i = 0; i < from; ++i) sizes[i] += run->instead[i];
        if (a < row.axis) {
            for (i32 i = from; i < n; ++i) {
                sizes[i] += magnitude(earlier[i * pace]);
                run->ahead[i] += by * earlier[i * pace];
            }
        } else {
            for (i32 i = from; i < n; ++i) {
                sizes[i] += magnitude(earlier[i * pace]);
                run->later[a][i] = by * earlier[i * pace];
            }
        }
    }
    for (i32 i = 0; i < n; ++i) {
        if (row.layered) run->scale[i] += weight[22] * beginning[i];
        run->size[i] = row.layered ? layers[i] : beginning[i];
    }
}

// All that can be said of a run of `n` targets from `place` on, of which those from `begin` to `end` are inside the grid; the others
// have their locations. The last targets inside are looked at twice where that makes a full step.
DEVICE ALWAYS_INLINE void look_with_pace(const Pass& pass, const Grid& grid, const Row& row, const Place& place, i64 pace,
                                         i64 known, i32 n, i32 begin, i32 end, const real* weight, Run* run)
{
    if (end - begin >= WIDE_STEP) {
        for (i32 i = begin; i < end; i += WIDE_STEP)
            look_inside<WIDE_STEP>(pass, grid, place.at, pace, i + WIDE_STEP <= end ? i : end - WIDE_STEP, weight, run);
    } else {
        for (i32 i = begin; i < end; i += NARROW_STEP)
            look_inside<NARROW_STEP>(pass, grid, place.at, pace, i + NARROW_STEP <= end ? i : end - NARROW_STEP, weight, run);
    }
    look_beside(pass, grid, row, place, pace, known, n, weight, run);
}

WIDE DEVICE_ONCE void look_along(const Pass& pass, const Grid& grid, const Row& row, const Place& place, i64 known, i32 n,
                            i32 begin, i32 end, const real* weight, Run* run)
{
    if (row.pace == 2) look_with_pace(pass, grid, row, place, 2, known, n, begin, end, weight, run);
    else look_with_pace(pass, grid, row, place, row.pace, known, n, begin, end, weight, run);
}

// The targets from `t` to `end` that stand in a row, at most `RUN`.
DEVICE i32 run_length(const Pass& pass, i32 axis, const Place& place, i64 t, i64 end)
{
    const i64 left = pass.count[axis] - (place.x[axis] - pass.first[axis]) / pass.step[axis];
    const i64 n = left < end - t ? left : end - t;
    return (i32)(n < RUN ? n : RUN);
}

// Go on by `n` targets in a row, to the next one where it ends.
DEVICE void go_along(const Pass& pass, const Grid& grid, i32 axis, i32 n, Place* place)
{
    place->x[axis] += (n - 1) * pass.step[axis];
    place->at += (n - 1) * pass.step[axis] * grid.stride[axis];
    go_on(pass, grid, place);
}

// Whether the targets of a pass are looked at in runs: no network corrects them, and rows are not too short. A thread of a GPU
// takes one step at a time anyway, and a run would fill its registers.
DEVICE bool in_rows(const Pass& pass, const Row& row, const float* network)
{
    return ON_CPU && !(network[0] > 0) && pass.count[row.axis] >= LEAST_ROW;
}

DEVICE void look_at_run(const Pass& pass, const Grid& grid, const Row& row, const Place& place, i64 known, i32 n,
                        const real* weight, Run* run)
{
    i32 begin, end;
    inside_of(pass, grid, row, place, n, &begin, &end);
    Place border = place;
    for (i32 i = 0; i < n; ++i) {
        if (i == begin) {
            border.x[row.axis] += (end - begin) * pass.step[row.axis];
            border.at += (end - begin) * row.pace;
            i = end;
            if (i == n) break;
        }
        look_at_border(pass, grid, border, weight, i, run);
        border.x[row.axis] += pass.step[row.axis];
        border.at += row.pace;
    }
    look_along(pass, grid, row, place, known, n, begin, end, weight, run);
}

// What is expected of target `i` of a run, after a deviation in the row if there is one.
DEVICE ALWAYS_INLINE Expectation expect_in(const Run& run, const Row& row, i32 i, bool there, real before)
{
    Expectation found;
    found.location = run.location[i];
    real ahead = run.ahead[i] + row.ahead * before;
    for (i32 a = row.axis + 1; a < AXES; ++a) ahead += run.later[a][i];
    found.centre = found.location + ahead;
    found.context = context_of(run.scale[i] + row.size * (run.size[i] + (there ? magnitude(before) : run.instead[i])));
    return found;
}

namespace {

// How far one block of a pass has been gone through.
struct Walk {
    Place place;
    i64 t, begin, end;
    Run run;
    i32 i, n;         // the target of the run that is next, and how many there are
    real deviation;   // of the target before in the row,
    bool there;       // if it is in the same block
};

}  // namespace

// Look at the run that is next.
DEVICE_ONCE void open_run(const Pass& pass, const Grid& grid, const Row& row, const real* weight, Walk* walk)
{
    walk->i = 0;
    walk->n = run_length(pass, row.axis, walk->place, walk->t, walk->end);
    walk->there = walk->t > walk->begin && walk->place.x[row.axis] > pass.first[row.axis];
    if (!walk->there) walk->deviation = 0;
    look_at_run(pass, grid, row, walk->place, walk->t - walk->begin, walk->n, weight, &walk->run);
}

// Code so many targets of each of the blocks, which take turns: a processor works on one while it waits for the other.
template <class Coder>
DEVICE ALWAYS_INLINE void take_turns(const Row& row, i32 first, i32 blocks, i32 n, Walk* walk, Coder* coder)
{
    Coder own = *coder;   // in registers
    real before[2];
    bool there[2];
    for (i32 b = first; b < first + blocks; ++b) {
        before[b] = walk[b].deviation;
        there[b] = walk[b].there;
    }
    for (i32 k = 0; k < n; ++k)
        UNROLL for (i32 b = first; b < first + blocks; ++b) {
            const i32 i = walk[b].i + k;
            const Expectation expected = expect_in(walk[b].run, row, i, there[b], before[b]);
            before[b] = own.go(b, expected, walk[b].place.at + i * row.pace, walk[b].t + i);
            there[b] = true;
        }
    *coder = own;
    for (i32 b = first; b < first + blocks; ++b) {
        walk[b].deviation = before[b];
        walk[b].there = true;
        walk[b].i += n;
    }
}

// Go on to the next run of a block where one has ended.
DEVICE void close_run(const Pass& pass, const Grid& grid, const Row& row, const real* weight, Walk* walk)
{
    if (walk->i < walk->n) return;
    walk->t += walk->n;
    go_along(pass, grid, row.axis, walk->n, &walk->place);
    if (walk->t < walk->end) open_run(pass, grid, row, weight, walk);
}

// The targets of one or two blocks of a pass, row by row.
template <class Coder>
DEVICE void go_in_rows(const Pass& pass, const Grid& grid, const Row& row, const real* weight, i32 blocks, const i64* begin,
                       Coder* coder)
{
    Walk walk[2];
    for (i32 b = 0; b < blocks; ++b) {
        walk[b].place = place_of(pass, grid, begin[b]);
        walk[b].t = walk[b].begin = begin[b];
        walk[b].end = begin[b + 1];
        walk[b].deviation = 0;
        if (begin[b] < begin[b + 1]) open_run(pass, grid, row, weight, walk + b);
    }
    while (blocks == 2 && walk[0].t < walk[0].end && walk[1].t < walk[1].end) {
        const i32 one = walk[0].n - walk[0].i, other = walk[1].n - walk[1].i;
        take_turns(row, 0, 2, one < other ? one : other, walk, coder);
        for (i32 b = 0; b < 2; ++b) close_run(pass, grid, row, weight, walk + b);
    }
    if (walk[0].t < walk[0].end) {
        for (; walk[0].t < walk[0].end; close_run(pass, grid, row, weight, walk))
            take_turns(row, 0, 1, walk[0].n - walk[0].i, walk, coder);
    }
    if (blocks == 2) {
        for (; walk[1].t < walk[1].end; close_run(pass, grid, row, weight, walk + 1))
            take_turns(row, 1, 1, walk[1].n - walk[1].i, walk, coder);
    }
}
