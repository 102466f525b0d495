// Interpolation from coarse grids to finer ones, and the coding of what it misses: the built-in codec for fields.
//
// A pass decodes the points whose coordinates are odd multiples of its spacing along some axes (its odd axes) and even
// multiples along the others; all points that it reads are decoded before. A point's location is interpolated from its
// neighbours, with weights of the pass. Its scale (how far off the location may be) is estimated from their differences and
// from their own deviations from their locations. The scale names the table of frequencies with which rANS codes the
// residual, in steps of twice the bound, or of less in coarse passes. So the decoder repeats this arithmetic: sums are in a
// fixed order, there is no fused multiply-add, and logarithms are read off the exponent.
//
// Targets (the points of all passes) are numbered through, pass after pass, in each with the last axis fastest and frozen axes
// faster than all others. A block is a range of targets that is decoded in order, in one pass or in several small ones. So
// the deviations of earlier targets of the same block and pass are known, too; those of the layer before matter most.
//
// A trained network (network.cuh) may correct both expectations, of the location and of the scale, of targets inside the grid.
#include "portable.cuh"
#include "network.cuh"
#include "residuals.cuh"

static const i32 AXES = 4, PAIRS = 3;
static const i32 DESCRIPTION = 32;     // numbers that describe a pass: see `pass_at`
static const i32 WEIGHTS = 24;         // of a pass: see `locate`, `foreseen` and `context_of`
static const i32 SURVEY = 24;          // what `survey_targets` writes about a target
static const i32 COMMON = 13, FOR_AXIS = 6, FOR_PAIR = 4;   // inputs of a network: see `look_closer`
static const i32 LESSON = 53;          // what `survey_lessons` writes about a target: its inputs, and four numbers
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

DEVICE real magnitude(real x) { return x < 0 ? -x : x; }

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

// The inputs of a network for a target inside the grid, and how many there are. Differences and deviations are in units of
// `scale`, so that the network need not know the unit of the values; `unit` is that scale in the unit of the values. What
// is seen along an odd axis, and of the four neighbours of a pair, is given as differences that vanish where the field is smooth.
DEVICE i32 look_closer(const Pass& pass, const Grid& grid, const Place& place, const Survey& seen, real location,
                       real foreseen, real scale, real unit, float* input)
{
    const real *v = grid.value + place.at, *deviation = grid.deviation + place.at;
    const real per_unit = 1 / unit, per_scale = 2 / scale;
    const auto value = [&](real difference) { return compressed((float)(difference * per_unit)); };
    const auto steps = [&](real deviation) { return compressed((float)(deviation * per_scale)); };
    input[0] = octaves_of((float)scale) * 0.25f;
    input[1] = value(seen.slopes);
    input[2] = value(seen.bends);
    input[3] = value(seen.spread);
    input[4] = steps(seen.near);
    input[5] = steps(seen.diagonal);
    input[6] = steps(seen.beginning);
    input[7] = steps(seen.layers);
    input[8] = value(foreseen);
    for (i32 a = 0; a < AXES; ++a) input[9 + a] = steps(seen.earlier[a]);
    float* next = input + COMMON;
    KEEP_LOOP
    for (i32 k = 0; k < pass.odd; ++k, next += FOR_AXIS) {
        const i64 off = pass.spacing * grid.stride[pass.axis[k]];
        const real slope = v[off] - v[-off];
        next[0] = value(slope);
        next[1] = value(v[3 * off] - v[-3 * off] - 3 * slope);
        next[2] = value(seen.bend[k]);
        next[3] = value(k ? seen.across[k] : location - seen.middle);
        next[4] = steps(deviation[-off]);
        next[5] = steps(deviation[off]);
    }
    KEEP_LOOP
    for (i32 p = 0; p < pass.pairs; ++p, next += FOR_PAIR) {
        const i64 off = pass.spacing * grid.stride[pass.one[p]], aside = pass.aside[p] * grid.stride[pass.other[p]];
        const real down = v[-aside - off], below = v[aside - off], above = v[-aside + off], up = v[aside + off];
        const real first = below - down, second = up - above;
        next[0] = value(down + below - 2 * v[-off]);
        next[1] = value(above + up - 2 * v[off]);
        next[2] = value(first + second);
        next[3] = value(second - first);
    }
    return COMMON + pass.odd * FOR_AXIS + pass.pairs * FOR_PAIR;
}

// The scale that a network starts from: at least that of the first table.
DEVICE real usable(real scale)
{
    const real least = (real)0.0625;
    return scale > least ? scale : least;
}

// The expectation as a network corrects it: its answers are a shift in units of the scale, and octaves of the scale.
DEVICE void correct(const Pass& pass, const Grid& grid, const Place& place, const Survey& seen, const float* network,
                    real foreseen, real scale, real bound, Expectation* found)
{
    float input[INPUTS];
    const real size = usable(scale), unit = size * bound;
    const i32 inputs = look_closer(pass, grid, place, seen, found->location, foreseen, size, unit, input);
    const Answer answer = answer_of(network, input, inputs);
    const float quarters = 4 * (octaves_of((float)size) + answer.octaves) + (float)(4 * 127 - QUARTERS);
    found->centre += (real)answer.shift * unit;
    found->context = quarters > 0 ? (i32)(quarters < CONTEXTS - 1 ? quarters : CONTEXTS - 1) : 0;
}

// What is expected of a target, after the deviations of earlier ones.
DEVICE ALWAYS_INLINE Expectation expect(const Pass& pass, const Grid& grid, const Place& place, const Survey& seen,
                                        const real* weight, const float* network, i32 odd, real bound)
{
    Expectation found;
    const real ahead = foreseen(seen, weight), scale = scale_of(seen, weight);
    found.location = locate(seen, weight, odd, pass.pairs);
    found.centre = found.location + ahead;
    found.context = context_of(scale);
    if (network[0] > 0 && seen.whole) correct(pass, grid, place, seen, network, ahead, scale, bound, &found);
    return found;
}

// What is seen of chosen targets of a pass, and how far their values are from the middle, for fitting its weights. With
// these weights, the deviations of earlier targets are about what they will be.
KERNEL(survey_targets)(i64 n, const i64* target SIZE(n), const i64* description SIZE(32), const real* weight SIZE(24),
                       const i64* shape SIZE(4), double step, const real* original SIZE(value),
                       const real* value SIZE(deviation), real* deviation SIZE(>= 1), double* seen SIZE(n * 24))
{
    FOR_EACH(i, n) {
        const Grid grid = grid_of(shape, value, deviation);
        const Pass pass = pass_at(description, 0);
        const Place place = place_of(pass, grid, target[i]);
        const Survey found = survey_of(pass, grid, place, pass.odd);
        double* to = seen + i * SURVEY;
        to[0] = (double)original[place.at] - (double)found.middle;
        to[1] = (double)found.middle;
        for (i32 k = 1; k < AXES; ++k) to[1 + k] = k < pass.odd ? (double)found.across[k] : 0;
        for (i32 k = 0; k < AXES; ++k) to[5 + k] = k < pass.odd ? (double)found.bend[k] : 0;
        for (i32 p = 0; p < PAIRS; ++p) to[9 + p] = p < pass.pairs ? (double)found.beside[p] : 0;
        to[12] = found.slopes;
        to[13] = found.bends;
        to[14] = found.spread;
        to[15] = found.near;
        to[16] = found.diagonal;
        to[17] = to[18] = 0;
        to[19] = found.enclosed;
        for (i32 a = 0; a < AXES; ++a) {
            to[20 + a] = 0;
            if (pass.count[a] < 2) continue;
            Place before = place;
            before.x[a] -= pass.step[a];
            before.at -= pass.step[a] * grid.stride[a];
            const bool there = place.x[a] > pass.first[a];
            if (there) {
                const real location = locate(survey_of(pass, grid, before, pass.odd), weight, pass.odd, pass.pairs);
                to[20 + a] = rint(((double)original[before.at] - (double)location) / step);
            }
            to[pass.step[a] == 1 ? 18 : 17] += there ? fabs(to[20 + a]) : to[15] / (2 * pass.odd);
        }
    }
}

// What a network should learn from chosen targets of a pass whose field is encoded: its inputs, the offset of the value from
// where it is expected and the bound, both in units of the scale; the octaves of the scale, and whether to use it.
KERNEL(survey_lessons)(i64 n, const i64* target SIZE(n), const i64* description SIZE(32), const real* weight SIZE(24),
                       const i64* shape SIZE(4), double step, const real* original SIZE(value),
                       const real* value SIZE(deviation), const real* deviation SIZE(>= 1), float* lesson SIZE(n * 53))
{
    FOR_EACH(i, n) {
        const Grid grid = grid_of(shape, value, deviation);
        const Pass pass = pass_at(description, 0);
        const Place place = place_of(pass, grid, target[i]);
        float* to = lesson + i * LESSON;
        for (i32 k = 0; k < LESSON; ++k) to[k] = 0;
        Survey seen = survey_of(pass, grid, place, pass.odd);
        if (!seen.whole) continue;
        look_back(pass, grid, place, target[i], pass.odd, &seen);
        const real location = locate(seen, weight, pass.odd, pass.pairs), ahead = foreseen(seen, weight);
        const real size = usable(scale_of(seen, weight)), unit = size * (real)(step / 2);
        look_closer(pass, grid, place, seen, location, ahead, size, unit, to);
        to[INPUTS] = (float)(((double)original[place.at] - (double)(location + ahead)) / (double)unit);
        to[INPUTS + 1] = (float)(1 / size);
        to[INPUTS + 2] = octaves_of((float)size);
        to[INPUTS + 3] = 1;
    }
}

// The targets from `begin` to `end` of a pass, none before them being known. It is called with `odd` as a literal.
DEVICE ALWAYS_INLINE void quantise_some(const Pass& pass, const Grid& grid, const real* weight, const float* network,
                                        i32 odd, i64 begin, i64 end, double bound, double step, const real* original,
                                        real* value, real* deviation, u16* code, i32* number)
{
    Place place = place_of(pass, grid, begin);
    const real steps_per_unit = (real)(1 / step), half_step = (real)(step / 2);
    for (i64 t = begin; t < end; ++t, go_on(pass, grid, &place)) {
        Survey seen = survey_of(pass, grid, place, odd);
        look_back(pass, grid, place, t - begin, odd, &seen);
        const Expectation expected = expect(pass, grid, place, seen, weight, network, odd, half_step);
        const double centre = (double)expected.centre, wanted = (double)original[place.at];
        const double steps = rint((wanted - centre) / step);
        const bool fits = steps > -1073741824.0 && steps < 1073741824.0;
        const i32 nearest = fits ? (i32)steps : 0;
        const real decoded = (real)(centre + (double)nearest * step);
        const double error = (double)decoded - wanted;
        const bool exact = !(fits && error <= bound && error >= -bound);
        const i32 residual = exact ? 0 : nearest;
        value[place.at] = exact ? original[place.at] : decoded;
        deviation[place.at] = exact ? 0 : (decoded - expected.location) * steps_per_unit;
        number[t] = residual;
        code[t] = (u16)(expected.context * SYMBOLS
                        + (exact ? ESCAPE : symbol_of(residual < 0 ? -(i64)residual : residual)));
    }
}

// One pass of the encoder: the code (context * SYMBOLS + symbol) and the residual of each target, the decoded values, and
// their deviations. `begin` is the range of targets of each block.
KERNEL(quantise_targets)(i64 blocks, const i64* begin SIZE(blocks + 1), const i64* description SIZE(32),
                         const real* weight SIZE(24), const float* network SIZE(955), const i64* shape SIZE(4),
                         double bound, double step, const real* original SIZE(value), real* value SIZE(deviation),
                         real* deviation SIZE(>= 1), u16* code SIZE(LAST(begin)), i32* number SIZE(LAST(begin)))
{
    FOR_EACH(b, blocks) {
        const Grid grid = grid_of(shape, value, deviation);
        const Pass pass = pass_at(description, 0);
        const i64 from = begin[b], to = begin[b + 1];
        if (pass.odd == 1) {
            quantise_some(pass, grid, weight, network, 1, from, to, bound, step, original, value, deviation, code,
                          number);
        } else if (pass.odd == 2) {
            quantise_some(pass, grid, weight, network, 2, from, to, bound, step, original, value, deviation, code,
                          number);
        } else if (pass.odd == 3) {
            quantise_some(pass, grid, weight, network, 3, from, to, bound, step, original, value, deviation, code,
                          number);
        } else {
            quantise_some(pass, grid, weight, network, 4, from, to, bound, step, original, value, deviation, code,
                          number);
        }
    }
}

// How many bits follow the symbols of each block.
KERNEL(count_rest)(i64 blocks, const i64* begin SIZE(blocks + 1), const u16* code SIZE(LAST(begin)), i64* bits SIZE(blocks))
{
    FOR_EACH(b, blocks) {
        i64 sum = 0;
        for (i64 t = begin[b]; t < begin[b + 1]; ++t) sum += bits_after(code[t] % SYMBOLS);
        bits[b] = sum;
    }
}

DEVICE u32 mixed(u32 sum, u64 bits) { return (sum ^ (u32)(bits >> 32) ^ (u32)bits) * 0x9e3779b1u + (sum >> 15); }

// The bits that follow the symbols of each block, and a checksum of its decoded values.
KERNEL(write_rest)(i64 blocks, const i64* begin SIZE(blocks + 1), i64 passes, const i64* pass_begin SIZE(passes + 1),
                   const i64* description SIZE(passes * 32), const i64* shape SIZE(4), const real* value SIZE(>= 1),
                   const u16* code SIZE(LAST(begin)), const i32* number SIZE(LAST(begin)),
                   const i64* first SIZE(blocks + 1), u32* out SIZE(LAST(first)), u32* checksum SIZE(blocks))
{
    FOR_EACH(b, blocks) {
        const Grid grid = grid_of(shape, value, 0);
        BitWriter writer = {out + first[b], 0, 0};
        u32 sum = 0;
        for (i64 k = 0; k < passes; ++k) {
            const i64 from = begin[b] > pass_begin[k] ? begin[b] : pass_begin[k];
            const i64 to = begin[b + 1] < pass_begin[k + 1] ? begin[b + 1] : pass_begin[k + 1];
            if (from >= to) continue;
            const Pass pass = pass_at(description, k);
            Place place = place_of(pass, grid, from - pass_begin[k]);
            for (i64 t = from; t < to; ++t, go_on(pass, grid, &place)) {
                const u64 bits = bits_of(value[place.at]);
                const i32 symbol = code[t] % SYMBOLS;
                const i64 far = number[t] < 0 ? -(i64)number[t] : number[t];
                const u64 rest = symbol == ESCAPE ? bits : (u64)(far << 1 | (number[t] < 0));
                put(&writer, rest, bits_after(symbol));
                sum = mixed(sum, bits);
            }
        }
        if (writer.count > 0) *writer.to = (u32)writer.held;
        checksum[b] = sum;
    }
}

// The targets from `begin` to `end` of a pass. It is called with `odd` as a literal.
DEVICE ALWAYS_INLINE void decode_some(const Pass& pass, const Grid& grid, const real* weight, const float* network, i32 odd,
                                      i64 begin, i64 end, double step, Source* from, real* value, real* deviation)
{
    Place place = place_of(pass, grid, begin);
    const real steps_per_unit = (real)(1 / step), half_step = (real)(step / 2);
    Source source = *from;
    for (i64 t = begin; t < end; ++t, go_on(pass, grid, &place)) {
        Survey seen = survey_of(pass, grid, place, odd);
        look_back(pass, grid, place, t - begin, odd, &seen);
        const Expectation expected = expect(pass, grid, place, seen, weight, network, odd, half_step);
        const double centre = (double)expected.centre;
        const i32 symbol = next_symbol(&source, expected.context);
        const u64 rest = take(&source.rest, bits_after(symbol));
        const i64 far = symbol == ESCAPE ? 0 : size_with(symbol, rest >> 1);
        const double moved = centre + (double)(rest & 1 ? -far : far) * step;
        const real decoded = symbol == ESCAPE ? value_with(rest) : (real)moved;
        value[place.at] = decoded;
        deviation[place.at] = symbol == ESCAPE ? 0 : (decoded - expected.location) * steps_per_unit;
        source.sum = mixed(source.sum, bits_of(decoded));
    }
    *from = source;
}

// Some blocks that do not depend on each other. `sound` says of each whether its code ended where it should and its checksum
// is right. Whatever the input, nothing is read outside what `word_first` and `rest_first` delimit.
KERNEL(decode_targets)(i64 blocks, i64 block, const i64* begin SIZE(>= blocks + 1), i64 passes,
                       const i64* pass_begin SIZE(passes + 1), const i64* description SIZE(passes * 32),
                       const real* weight SIZE(passes * 24), const float* network SIZE(passes * 955),
                       const i64* shape SIZE(4), const double* step SIZE(passes),
                       const i64* word_first SIZE(begin), const u16* words SIZE(LAST(word_first)),
                       const i64* rest_first SIZE(begin), const u32* rest SIZE(LAST(rest_first)), const u8* row SIZE(64),
                       const u8* symbol_at SIZE(CEIL(frequency, 256) * 4096), const u32* frequency SIZE(>= 256),
                       const u32* start SIZE(frequency), const u32* checksum SIZE(>= blocks), real* value SIZE(deviation),
                       real* deviation SIZE(>= 1), u8* sound SIZE(checksum))
{
    FOR_EACH(i, blocks) {
        const i64 b = block + i;
        const Grid grid = grid_of(shape, value, deviation);
        Source source = {words + word_first[b], words + word_first[b + 1],
                         {rest + rest_first[b], rest + rest_first[b + 1], 0, 0},
                         0, 0, row, symbol_at, frequency, start};
        open_source(&source);
        for (i64 k = 0; k < passes; ++k) {
            const i64 from = (begin[b] > pass_begin[k] ? begin[b] : pass_begin[k]) - pass_begin[k];
            const i64 to = (begin[b + 1] < pass_begin[k + 1] ? begin[b + 1] : pass_begin[k + 1]) - pass_begin[k];
            if (from >= to) continue;
            const Pass pass = pass_at(description, k);
            const real* own = weight + k * WEIGHTS;
            const float* net = network + k * NETWORK;
            if (pass.odd == 1) decode_some(pass, grid, own, net, 1, from, to, step[k], &source, value, deviation);
            else if (pass.odd == 2) decode_some(pass, grid, own, net, 2, from, to, step[k], &source, value, deviation);
            else if (pass.odd == 3) decode_some(pass, grid, own, net, 3, from, to, step[k], &source, value, deviation);
            else decode_some(pass, grid, own, net, 4, from, to, step[k], &source, value, deviation);
        }
        sound[b] = is_at_end(source) && source.sum == checksum[b];
    }
}
