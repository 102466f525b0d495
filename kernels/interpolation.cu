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
#include "interpolation.cuh"
#include "interpolation_run.cuh"
#include "interpolation_time.cuh"

static const i32 COMMON = 13, FOR_AXIS = 6, FOR_PAIR = 4;   // inputs of a network: see `look_closer`
static const i32 LESSON = 53;          // what `survey_lessons` writes about a target: its inputs, and four numbers

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

// What is seen from a place, and its location with these weights: a processor has straight code for each number of odd axes.
DEVICE Survey survey_at(const Pass& pass, const Grid& grid, const Place& place)
{
    if (!ON_CPU) return survey_of(pass, grid, place, pass.odd);
    if (pass.odd == 1) return survey_of(pass, grid, place, 1);
    if (pass.odd == 2) return survey_of(pass, grid, place, 2);
    return survey_of(pass, grid, place, pass.odd);
}

DEVICE real location_at(const Pass& pass, const Grid& grid, const Place& place, const real* weight)
{
    if (ON_CPU && pass.odd == 1) return locate(survey_of(pass, grid, place, 1), weight, 1, pass.pairs);
    if (ON_CPU && pass.odd == 2) return locate(survey_of(pass, grid, place, 2), weight, 2, pass.pairs);
    return locate(survey_of(pass, grid, place, pass.odd), weight, pass.odd, pass.pairs);
}

// What is seen of chosen targets of a pass, for fitting its weights: a column for each number, in units of the bound. First how
// far the value is from the middle, and the middle from `mean`; then what the location is made of, and the deviations of earlier
// targets, of which none is known yet; in the last columns the terms of the scale. A target with a neighbour outside the grid, or
// with numbers that are not finite, has zeros, which no fit notices. `in_time` says whether there is a forecast; `value` is then
// what is left of the known values, and what is seen is that of what is left.
KERNEL(survey_targets)(i64 n, const i64* target SIZE(n), const i64* description SIZE(32), const i64* shape SIZE(4), double mean,
                       double bound, const real* original SIZE(value), const real* value SIZE(deviation),
                       const real* deviation SIZE(>= 1), double* seen SIZE(n * 24), i32 in_time,
                       const real* multiple SIZE(2), const real* latest SIZE(value), const real* before SIZE(value))
{
    const Forecast forecast = forecast_of(in_time, multiple, latest, before, 0);
    const Grid grid = grid_of(shape, value, deviation);
    const Pass pass = pass_at(description, 0);
    FOR_EACH(i, n) {
        const Place place = place_of(pass, grid, target[i]);
        Survey found = survey_at(pass, grid, place);
        look_back(pass, grid, place, 0, pass.odd, &found);
        double number[SURVEY], size = 0;
        for (i32 k = 0; k < SURVEY; ++k) number[k] = 0;
        number[0] = (forecast.left_of(original, place.at) - (double)found.middle) / bound;
        number[1] = ((double)found.middle - mean) / bound;
        i32 next = 2;
        for (i32 k = 1; k < pass.odd; ++k) number[next++] = (double)found.across[k] / bound;
        for (i32 k = 0; k < pass.odd; ++k) number[next++] = (double)found.bend[k] / bound;
        for (i32 p = 0; p < pass.pairs; ++p) number[next++] = (double)found.beside[p] / bound;
        double* scale = number + OF_SCALE;
        scale[0] = 1;
        scale[1] = (double)found.slopes / bound;
        scale[2] = (double)found.bends / bound;
        scale[3] = (double)found.spread / bound;
        scale[4] = found.near;
        scale[5] = found.diagonal;
        scale[6] = found.beginning;
        scale[7] = found.layers;
        for (i32 k = 0; k < SURVEY; ++k) size += fabs(number[k]);
        const bool usable = found.enclosed && size < 1e300;
        for (i32 k = 0; k < SURVEY; ++k) seen[k * n + i] = usable ? number[k] : 0;
    }
}

// The same targets after the deviations of earlier ones, which with these weights are about what they will be: a column for each
// axis with several targets, and the terms of the scale that these make.
KERNEL(survey_earlier)(i64 n, const i64* target SIZE(n), const i64* description SIZE(32), const real* weight SIZE(24),
                       const i64* shape SIZE(4), double step, const real* original SIZE(value),
                       const real* value SIZE(deviation), const real* deviation SIZE(>= 1), double* seen SIZE(n * 24),
                       i32 in_time, const real* multiple SIZE(2), const real* latest SIZE(value), const real* before SIZE(value))
{
    const Forecast forecast = forecast_of(in_time, multiple, latest, before, 0);
    const Grid grid = grid_of(shape, value, deviation);
    const Pass pass = pass_at(description, 0);
    FOR_EACH(i, n) {
        if (seen[OF_SCALE * n + i] == 0) continue;
        const Place place = place_of(pass, grid, target[i]);
        const double instead = seen[(OF_SCALE + 4) * n + i] / (2 * pass.odd);
        double beginning = 0, layers = 0;
        i64 next = 1 + 2 * (i64)pass.odd + pass.pairs;
        for (i32 a = 0; a < AXES; ++a) {
            if (pass.count[a] < 2) continue;
            Place back = place;
            back.x[a] -= pass.step[a];
            back.at -= pass.step[a] * grid.stride[a];
            const bool there = place.x[a] > pass.first[a];
            double away = 0;
            if (there) {
                const real location = location_at(pass, grid, back, weight);
                away = rint((forecast.left_of(original, back.at) - (double)location) / step);
                if (!(fabs(away) < 1e150)) away = 0;   // not finite
            }
            seen[next++ * n + i] = 2 * away;
            (pass.step[a] == 1 ? layers : beginning) += there ? fabs(away) : instead;
        }
        seen[(OF_SCALE + 6) * n + i] = beginning;
        seen[(OF_SCALE + 7) * n + i] = layers;
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

namespace {

// Codes targets of a pass: each residual, the decoded value, its deviation.
struct Quantiser {
    double bound, step, steps_per_value;
    real steps_per_unit;
    const double* dead;      // by how many steps residuals are drawn to 0, of each context
    const real* original;
    real *value, *deviation;
    u16* code;
    i32* number;
    Forecast forecast;

    // Code target `t` of the pass, whose place is `at`, by what is expected of it; returns its deviation.
    DEVICE_METHOD real go(i32, const Expectation& expected, i64 at, i64 t)
    {
        const real ahead = forecast.used ? forecast.at(at) : 0;
        const double found = (double)expected.centre, wanted = (double)original[at];
        const double centre = forecast.used ? found + (double)ahead : found;
        const double away = (wanted - centre) * steps_per_value, size = fabs(away) - dead[expected.context];
        const double near = rint(size < 0 ? 0 : size), steps = away < 0 ? -near : near;
        const real decoded = (real)(centre + steps * step);
        const double error = (double)decoded - wanted;
        const bool fits = steps > -1073741824.0 && steps < 1073741824.0 && error <= bound && error >= -bound;
        const i32 residual = fits ? (i32)steps : 0;
        const real left = forecast.used ? decoded - ahead : decoded;
        const real moved = fits ? (left - expected.location) * steps_per_unit : 0;
        value[at] = fits ? decoded : original[at];
        if (forecast.used) forecast.left[at] = value[at] - ahead;
        deviation[at] = moved;
        number[t] = residual;
        code[t] = (u16)(expected.context * SYMBOLS + (fits ? symbol_of(residual < 0 ? -(i64)residual : residual) : ESCAPE));
        return moved;
    }
};

}  // namespace

// The targets from `begin` to `end` of a pass, one by one. It is called with `odd` as a literal.
template <class Coder>
DEVICE ALWAYS_INLINE void go_one_by_one(const Pass& pass, const Grid& grid, const real* weight, const float* network, i32 odd,
                                        i32 block, i64 begin, i64 end, Coder* coder)
{
    Place place = place_of(pass, grid, begin);
    Coder own = *coder;   // in registers
    for (i64 t = begin; t < end; ++t, go_on(pass, grid, &place)) {
        Survey seen = survey_of(pass, grid, place, odd);
        look_back(pass, grid, place, t - begin, odd, &seen);
        own.go(block, expect(pass, grid, place, seen, weight, network, odd, (real)(own.step / 2)), place.at, t);
    }
    *coder = own;
}

// The targets of one or two blocks of a pass, none before them in their block being known.
template <class Coder>
DEVICE void go_through(const Pass& pass, const Grid& grid, const real* weight, const float* network, i32 blocks,
                       const i64* begin, Coder* coder)
{
    const Row row = row_of(pass, grid, weight);
    if (in_rows(pass, row, network)) {
        go_in_rows(pass, grid, row, weight, blocks, begin, coder);
        return;
    }
    for (i32 b = 0; b < blocks; ++b) {
        const i64 from = begin[b], to = begin[b + 1];
        if (pass.odd == 1) go_one_by_one(pass, grid, weight, network, 1, b, from, to, coder);
        else if (pass.odd == 2) go_one_by_one(pass, grid, weight, network, 2, b, from, to, coder);
        else if (pass.odd == 3) go_one_by_one(pass, grid, weight, network, 3, b, from, to, coder);
        else go_one_by_one(pass, grid, weight, network, 4, b, from, to, coder);
    }
}

// What is left of values on the grid with this spacing, without the forecast of a pass.
KERNEL(take_away_forecast)(i64 rows, const i64* description SIZE(32), i64 spacing, const i64* shape SIZE(4),
                           const real* multiple SIZE(2), const real* latest SIZE(left), const real* before SIZE(left),
                           const real* value SIZE(left), real* left SIZE(>= 1))
{
    FOR_EACH(row, rows) {
        const Forecast forecast = forecast_of(1, multiple, latest, before, left);
        take_away(pass_at(description, 0), grid_of(shape, value, 0), spacing, forecast, value, row);
    }
}

// One pass of the encoder: the code (context * SYMBOLS + symbol) and the residual of each target, the decoded values, and
// their deviations. `begin` is the range of targets of each block. `dead` is half of how much wider the zero of each context
// is than a step, in steps; the intervals of other residuals are as wide as a step, and shifted. A work item takes so many blocks `together`, one or two. `in_time` says whether there is a
// forecast; `left` is then what is left of the known values.
KERNEL(quantise_targets)(i64 items, i32 together, i64 blocks, const i64* begin SIZE(blocks + 1),
                         const i64* description SIZE(32), const real* weight SIZE(24), const float* network SIZE(955),
                         const i64* shape SIZE(4), double bound, double step, const double* dead SIZE(64),
                         const real* original SIZE(value), real* value SIZE(deviation), real* deviation SIZE(>= 1),
                         u16* code SIZE(LAST(begin)), i32* number SIZE(LAST(begin)), i32 in_time,
                         const real* multiple SIZE(2), const real* latest SIZE(deviation), const real* before SIZE(deviation),
                         real* left SIZE(deviation))
{
    FOR_EACH(i, items) {
        const i64 b = i * together, several = blocks - b < together ? blocks - b : together;
        Quantiser coder = {bound, step, 1 / step, (real)(1 / step), dead, original, value, deviation, code, number,
                           forecast_of(in_time, multiple, latest, before, left)};
        const Grid grid = grid_of(shape, in_time ? left : value, deviation);
        go_through(pass_at(description, 0), grid, weight, network, (i32)several, begin + b, &coder);
    }
}

// The same as `bits_after` without branches: where steps do not wait for each other, that takes less time.
DEVICE ALWAYS_INLINE i32 bits_after_any(i32 symbol)
{
    const i32 octaves = (symbol - DIRECT + 8) >> 3;
    return symbol == ESCAPE ? VALUE_BITS : (octaves > 0 ? octaves : 0) + (symbol > 0);
}

// How many bits follow these symbols.
WIDE DEVICE i64 bits_after_all(const u16* code, i64 n)
{
    i64 sum = 0;
    for (i64 from = 0; from < n; from += RUN) {
        const i32 some = n - from < RUN ? (i32)(n - from) : RUN;
        i32 bits = 0;
        for (i32 i = 0; i < some; ++i) bits += bits_after_any(code[from + i] % SYMBOLS);
        sum += bits;
    }
    return sum;
}

// How many bits follow the symbols of each block.
KERNEL(count_rest)(i64 blocks, const i64* begin SIZE(blocks + 1), const u16* code SIZE(LAST(begin)), i64* bits SIZE(blocks))
{
    FOR_EACH(b, blocks) bits[b] = bits_after_all(code + begin[b], begin[b + 1] - begin[b]);
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
            const i32 axis = axis_of_rows(pass);
            const i64 pace = pass.step[axis] * grid.stride[axis];
            Place place = place_of(pass, grid, from - pass_begin[k]);
            i32 n;
            for (i64 t = from; t < to; t += n, go_along(pass, grid, axis, n, &place)) {
                n = run_length(pass, axis, place, t, to);
                for (i32 i = 0; i < n; ++i) {
                    const u64 bits = bits_of(value[place.at + i * pace]);
                    const i32 symbol = code[t + i] % SYMBOLS, residual = number[t + i];
                    const i64 far = residual < 0 ? -(i64)residual : residual;
                    if (symbol == ESCAPE) put_value(&writer, bits);
                    else put(&writer, (u64)(far << 1 | (residual < 0)), bits_after_any(symbol));
                    sum = mixed(sum, bits);
                }
            }
        }
        if (writer.count > 0) *writer.to = (u32)writer.held;
        checksum[b] = sum;
    }
}

namespace {

// Decodes targets of one block or two.
struct Decoder {
    double step;
    real steps_per_unit;
    real *value, *deviation;
    Forecast forecast;
    Source source[2];

    // Decode the target of that block whose place is `at`, by what is expected of it; returns its deviation.
    DEVICE_METHOD real go(i32 block, const Expectation& expected, i64 at, i64)
    {
        Source* from = source + block;
        const i32 symbol = next_symbol(from, expected.context);
        real decoded, away;
        const real ahead = forecast.used ? forecast.at(at) : 0;
        if (symbol == ESCAPE) {
            decoded = value_with(take_value(&from->rest));
            away = 0;
        } else if (forecast.used) {
            const u64 rest = take(&from->rest, bits_after(symbol));
            const i64 far = size_with(symbol, rest >> 1);
            const double centre = (double)expected.centre + (double)ahead;
            decoded = (real)(centre + (double)(rest & 1 ? -far : far) * step);
            away = (decoded - ahead - expected.location) * steps_per_unit;
        } else {
            const u64 rest = take(&from->rest, bits_after(symbol));
            const i64 far = size_with(symbol, rest >> 1);
            decoded = (real)((double)expected.centre + (double)(rest & 1 ? -far : far) * step);
            away = (decoded - expected.location) * steps_per_unit;
        }
        value[at] = decoded;
        deviation[at] = away;
        if (forecast.used) forecast.left[at] = decoded - ahead;
        from->sum = mixed(from->sum, bits_of(decoded));
        return away;
    }
};

}  // namespace

// Whether a pass has other multiples of earlier steps than the pass before.
DEVICE bool changes(const real* multiple, i64 k)
{
    return multiple[2 * k] != multiple[2 * k - 2] || multiple[2 * k + 1] != multiple[2 * k - 1];
}

// Some blocks that do not depend on each other. `sound` says of each whether its code ended where it should and its checksum
// is right. A work item takes so many blocks `together`: one, or two that are parts of one pass. A pass that begins inside a block
// and has another forecast than the pass before takes it away; the caller does so for passes that begin with a block. Whatever the input, nothing is read outside what `word_first` and `rest_first` delimit.
KERNEL(decode_targets)(i64 items, i32 together, i64 block, i64 end, const i64* begin SIZE(>= end + 1), i64 passes,
                       const i64* pass_begin SIZE(passes + 1), const i64* description SIZE(passes * 32),
                       const real* weight SIZE(passes * 24), const float* network SIZE(passes * 955),
                       const i64* shape SIZE(4), const double* step SIZE(passes),
                       const i64* word_first SIZE(begin), const u16* words SIZE(LAST(word_first)),
                       const i64* rest_first SIZE(begin), const u32* rest SIZE(LAST(rest_first)), const u8* row SIZE(64),
                       const u8* symbol_at SIZE(CEIL(frequency, 256) * 4096), const u32* frequency SIZE(>= 256),
                       const u32* start SIZE(frequency), const u32* checksum SIZE(>= end), real* value SIZE(deviation),
                       real* deviation SIZE(>= 1), u8* sound SIZE(checksum), i32 in_time,
                       const real* multiple SIZE(passes * 2), const real* latest SIZE(deviation),
                       const real* before SIZE(deviation), real* left SIZE(deviation))
{
    FOR_EACH(i, items) {
        const i64 b = block + i * together;
        const i32 several = (i32)(end - b < together ? end - b : together);
        Grid grid = grid_of(shape, value, deviation);
        Decoder coder;
        coder.value = value;
        coder.deviation = deviation;
        for (i32 k = 0; k < several; ++k) {
            coder.source[k] = {words + word_first[b + k], words + word_first[b + k + 1],
                               {rest + rest_first[b + k], rest + rest_first[b + k + 1], 0, 0},
                               0, 0, row, symbol_at, frequency, start};
            open_source(coder.source + k);
        }
        for (i64 k = 0; k < passes; ++k) {
            i64 inside[3];
            for (i32 edge = 0; edge <= several; ++edge) {
                const i64 at = begin[b + edge] > pass_begin[k] ? begin[b + edge] : pass_begin[k];
                inside[edge] = (at < pass_begin[k + 1] ? at : pass_begin[k + 1]) - pass_begin[k];
            }
            if (inside[0] == inside[several]) continue;
            coder.step = step[k];
            coder.steps_per_unit = (real)(1 / step[k]);
            const Pass pass = pass_at(description, k);
            const bool used = in_time && (multiple[2 * k] != 0 || multiple[2 * k + 1] != 0);
            coder.forecast = forecast_of(used, multiple + 2 * k, latest, before, left);
            grid.value = used ? left : value;
            if (used && pass_begin[k] > begin[b] && changes(multiple, k)) {
                const i64 spacing = description[(k - 1) * DESCRIPTION + 12], rows = rows_of(pass, grid, spacing);
                for (i64 row = 0; row < rows; ++row) take_away(pass, grid, spacing, coder.forecast, value, row);
            }
            go_through(pass, grid, weight + k * WEIGHTS, network + k * NETWORK, several, inside, &coder);
        }
        for (i32 k = 0; k < several; ++k)
            sound[b + k] = is_at_end(coder.source[k]) && coder.source[k].sum == checksum[b + k];
    }
}
