// What is seen from a point of a grid that is interpolated: its neighbours along the odd axes of a pass, those in the planes of a
// pair of axes, and how far these were from their own locations. Weights make a location and a scale of it.
#pragma once

static const i32 AXES = 4, PAIRS = 3;
static const i32 DESCRIPTION = 32;     // numbers that describe a pass: see `pass_at`
static const i32 WEIGHTS = 24;         // of a pass: see `locate`, `foreseen` and `context_of`
static const i32 SURVEY = 24;          // what `survey_targets` writes about a target:
static const i32 OF_SCALE = 16;        // where the terms of its scale begin
static const i32 QUARTERS = (127 - 4) * 4;   // the quarter octave of a float's scale that has context 0: 1/16 of the bound

namespace {

struct Pass {
    i64 count[AXES], first[AXES], step[AXES];   // the targets along each axis
    i64 back[AXES];                             // how many targets earlier the one before along each axis is
    i32 order[AXES];                            // the axes, the one along which targets are numbered slowest first
    i64 spacing;
    i32 odd, axis[AXES];                        // how many odd axes, and which
    i32 pairs, one[PAIRS], other[PAIRS];        // the planes in which diagonal neighbours are looked at
    i64 aside[PAIRS];                           // how far along the other axis these are
};

struct Grid {
    i64 shape[AXES], stride[AXES];
    const real* value;
    const real* deviation;   // of each value from its location, in steps
};

// What is seen of a target's neighbours. Differences are in the unit of the values, deviations in steps.
struct Survey {
    real middle;              // between the nearest two along the first odd axis
    real across[AXES];        // the same along other odd axes, less `middle`
    real bend[AXES];          // along each odd axis: the far two less the near two
    real beside[PAIRS];       // the mean of four diagonal neighbours, less `middle`
    real earlier[AXES];       // the deviations of the targets before along each axis, in this pass
    real slopes, bends, spread;                // sums of absolute differences
    real near, diagonal, beginning, layers;    // sums of absolute deviations; the last two of earlier targets
    bool whole;               // whether all of these neighbours are inside the grid,
    bool enclosed;            // and those next to it along odd axes
};

// A place in a pass.
struct Place {
    i64 x[AXES], at;
};

}  // namespace

DEVICE real magnitude(real x) { return fabs(x); }

DEVICE Pass pass_at(const i64* description, i64 number)
{
    const i64* given = description + number * DESCRIPTION;
    Pass pass;
    for (i32 a = 0; a < AXES; ++a) {
        pass.count[a] = given[a];
        pass.first[a] = given[AXES + a];
        pass.step[a] = given[2 * AXES + a];
        pass.axis[a] = (i32)given[14 + a];
        pass.order[a] = (i32)given[28 + a];
    }
    i64 back = 1;
    for (i32 k = AXES - 1; k >= 0; --k) {
        pass.back[pass.order[k]] = back;
        back *= pass.count[pass.order[k]];
    }
    pass.spacing = given[12];
    pass.odd = (i32)given[13];
    pass.pairs = (i32)given[18];
    for (i32 p = 0; p < PAIRS; ++p) {
        pass.one[p] = (i32)given[19 + p];
        pass.other[p] = (i32)given[22 + p];
        pass.aside[p] = given[25 + p];
    }
    return pass;
}

DEVICE Grid grid_of(const i64* shape, const real* value, const real* deviation)
{
    Grid grid;
    i64 stride = 1;
    for (i32 a = AXES - 1; a >= 0; --a) {
        grid.shape[a] = shape[a];
        grid.stride[a] = stride;
        stride *= shape[a];
    }
    grid.value = value;
    grid.deviation = deviation;
    return grid;
}

// The place of target `t` of a pass.
DEVICE Place place_of(const Pass& pass, const Grid& grid, i64 t)
{
    Place place;
    place.at = 0;
    for (i32 k = AXES - 1; k >= 0; --k) {
        const i32 a = pass.order[k];
        place.x[a] = pass.first[a] + t % pass.count[a] * pass.step[a];
        place.at += place.x[a] * grid.stride[a];
        t /= pass.count[a];
    }
    return place;
}

DEVICE void go_on(const Pass& pass, const Grid& grid, Place* place)
{
    for (i32 k = AXES - 1; k >= 0; --k) {
        const i32 a = pass.order[k];
        place->x[a] += pass.step[a];
        place->at += pass.step[a] * grid.stride[a];
        const i64 beyond = pass.first[a] + pass.count[a] * pass.step[a];
        if (place->x[a] < beyond || k == 0) return;
        place->at -= (place->x[a] - pass.first[a]) * grid.stride[a];
        place->x[a] = pass.first[a];
    }
}

DEVICE bool is_inside(const Pass& pass, const Grid& grid, const Place& place)
{
    bool inside = true;
    for (i32 k = 0; k < pass.odd; ++k) {
        const i32 a = pass.axis[k];
        inside &= place.x[a] >= 3 * pass.spacing && place.x[a] + 3 * pass.spacing < grid.shape[a];
    }
    for (i32 p = 0; p < pass.pairs; ++p) {
        const i64 x = place.x[pass.other[p]];
        inside &= x >= pass.aside[p] && x + pass.aside[p] < grid.shape[pass.other[p]];
    }
    return inside;
}

// The near and far neighbours along an axis; those outside the grid are extrapolated, and `both` says if the near two exist.
struct Line {
    real near_left, near_right, far_left, far_right;
    bool both;
};

DEVICE Line line_along(const Grid& grid, const Place& place, i32 a, i64 spacing)
{
    const i64 off = spacing * grid.stride[a], x = place.x[a], n = grid.shape[a];
    const real* v = grid.value + place.at;
    const bool left = x >= 3 * spacing, right = x + spacing < n, far = x + 3 * spacing < n;
    Line line;
    line.both = right;
    line.near_left = v[-off];
    line.near_right = right ? v[off] : left ? 2 * v[-off] - v[-3 * off] : v[-off];
    line.far_right = far ? v[3 * off] : 0;
    line.far_left = left  ? v[-3 * off]
                    : far ? line.far_right + 3 * (line.near_left - line.near_right)
                          : 2 * line.near_left - line.near_right;
    if (!far) {
        line.far_right = left && right ? line.far_left + 3 * (line.near_right - line.near_left)
                                       : 2 * line.near_right - line.near_left;
    }
    return line;
}

// What is seen from a place. It is called with `inside`, `odd` and `pairs` as literals, so that the compiler makes straight
// code of it for each.
DEVICE ALWAYS_INLINE Survey survey_from(const Pass& pass, const Grid& grid, const Place& place, bool inside, i32 odd,
                                        i32 pairs)
{
    const real* v = grid.value + place.at;
    const real* deviation = grid.deviation + place.at;
    Survey seen;
    seen.slopes = seen.bends = seen.spread = 0;
    seen.whole = inside;
    seen.enclosed = true;
    seen.near = seen.diagonal = 0;
    i32 best = -1;
    for (i32 k = 0; k < odd; ++k) {
        const i32 a = pass.axis[k];
        const i64 off = pass.spacing * grid.stride[a];
        Line line;
        if (inside) {
            line.near_left = v[-off];
            line.near_right = v[off];
            line.far_left = v[-3 * off];
            line.far_right = v[3 * off];
            seen.near += magnitude(deviation[-off]) + magnitude(deviation[off]);
        } else {
            line = line_along(grid, place, a, pass.spacing);
            seen.near += magnitude(deviation[-off]) + magnitude(deviation[line.both ? off : -off]);
            if (line.both && best < 0) best = k;
            seen.enclosed &= line.both;
        }
        const real sum = line.near_left + line.near_right, middle = sum * (real)0.5;
        seen.bend[k] = line.far_left + line.far_right - sum;
        seen.slopes += magnitude(line.near_right - line.near_left);
        seen.bends += magnitude(seen.bend[k]);
        if (k == 0) seen.middle = middle;
        seen.across[k] = middle - seen.middle;
        seen.spread += magnitude(seen.across[k]);
    }
    for (i32 p = 0; p < pairs; ++p) {
        const i32 b = pass.other[p];
        const i64 off = pass.spacing * grid.stride[pass.one[p]], aside = pass.aside[p] * grid.stride[b];
        i64 left = -aside, right = aside, up = off;
        if (!inside) {
            if (place.x[b] < pass.aside[p]) left = aside;
            if (place.x[b] + pass.aside[p] >= grid.shape[b]) right = -aside;
            if (place.x[pass.one[p]] + pass.spacing >= grid.shape[pass.one[p]]) up = -off;
        }
        const real four = (v[left - off] + v[right - off]) + (v[left + up] + v[right + up]);
        seen.beside[p] = four * (real)0.25 - seen.middle;
        seen.spread += magnitude(seen.beside[p]);
        if (left == right) seen.beside[p] = 0;   // neighbours on one side tell about a slope, not about the target
        seen.diagonal += (magnitude(deviation[left - off]) + magnitude(deviation[right - off]))
                         + (magnitude(deviation[left + up]) + magnitude(deviation[right + up]));
    }
    if (!seen.enclosed && best > 0) {   // locate from the first axis with neighbours on both sides
        seen.middle += seen.across[best];
        seen.bend[0] = seen.bend[best];
    }
    return seen;
}

// The same as `survey_from`, for the numbers of axes and pairs that there are.
DEVICE ALWAYS_INLINE Survey survey_of(const Pass& pass, const Grid& grid, const Place& place, i32 odd)
{
    if (!is_inside(pass, grid, place)) return survey_from(pass, grid, place, false, odd, pass.pairs);
    if (pass.pairs == 0) return survey_from(pass, grid, place, true, odd, 0);
    if (pass.pairs == 1) return survey_from(pass, grid, place, true, odd, 1);
    if (pass.pairs == 2) return survey_from(pass, grid, place, true, odd, 2);
    return survey_from(pass, grid, place, true, odd, 3);
}

// Add the deviations of earlier targets. Where there is none, the target is as far off as its nearest neighbours.
DEVICE ALWAYS_INLINE void look_back(const Pass& pass, const Grid& grid, const Place& place, i64 known, i32 odd, Survey* seen)
{
    const real instead = seen->near * ((real)0.5 / (real)odd);
    seen->beginning = seen->layers = 0;
    for (i32 a = 0; a < AXES; ++a) {
        seen->earlier[a] = 0;
        if (pass.count[a] < 2) continue;
        const bool there = pass.back[a] <= known && place.x[a] > pass.first[a];
        if (there) seen->earlier[a] = grid.deviation[place.at - pass.step[a] * grid.stride[a]];
        const real size = there ? magnitude(seen->earlier[a]) : instead;
        if (pass.step[a] == 1) seen->layers += size;
        else seen->beginning += size;
    }
}

// The value interpolated from other passes, from which deviations are counted. At the border, it is cubic along one axis.
DEVICE ALWAYS_INLINE real locate(const Survey& seen, const real* weight, i32 odd, i32 pairs)
{
    real location = seen.middle;
    if (!seen.enclosed) {
        location -= seen.bend[0] * (real)0.0625;
    } else {
        for (i32 k = 0; k < odd; ++k) location += weight[5 + k] * seen.bend[k];
        for (i32 k = 1; k < odd; ++k) location += weight[1 + k] * seen.across[k];
        for (i32 p = 0; p < pairs; ++p) location += weight[9 + p] * seen.beside[p];
    }
    return weight[1] + weight[0] * (location - weight[1]);
}

// How far from its location a value is expected, after the deviations of earlier targets.
DEVICE ALWAYS_INLINE real foreseen(const Survey& seen, const real* weight)
{
    real sum = 0;
    for (i32 a = 0; a < AXES; ++a) sum += weight[12 + a] * seen.earlier[a];
    return sum;
}

// How far off the location may be, in units of the bound.
DEVICE ALWAYS_INLINE real scale_of(const Survey& seen, const real* weight)
{
    return weight[16] + weight[17] * seen.slopes + weight[18] * seen.bends + weight[19] * seen.spread
           + weight[20] * seen.near + weight[21] * seen.diagonal + weight[22] * seen.beginning + weight[23] * seen.layers;
}

// The table for a scale: its quarter octave. A scale that is infinite or NaN has the last.
DEVICE ALWAYS_INLINE i32 context_of(real scale)
{
    const i32 quarter = (i32)((bits_of_float((float)scale) & 0x7fffffff) >> 21) - QUARTERS;
    return quarter < 0 ? 0 : quarter < CONTEXTS ? quarter : CONTEXTS - 1;
}

namespace {

// What is expected of a target.
struct Expectation {
    real location;   // from which its deviation is counted
    real centre;     // where it is most likely
    i32 context;     // its table
};

}  // namespace
