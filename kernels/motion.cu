// Numbers of particles in their own order, predicted from their values at earlier times.
//
// The displacement of a particle since the step before is a weighted sum of what is known: its displacement in the step
// before that one, those of the particles beside it in the order, the displacements of its predecessors in this step, and
// its rate (a velocity). The weights belong to the stream. What is left is rounded to multiples of twice the tolerance, as it
// is: particles that move as expected take no bits, where a fixed lattice would still have to say on which side of a wall of
// cells they are. A value is decoded from its prediction, so encoder and decoder compute the same: sums are in a fixed order,
// there is no fused multiply-add, and logarithms are read off the exponent.
//
// The scale of a residual is another weighted sum: of the residuals of the predecessors, of the same particle one step
// earlier, and of differences between neighbours. It names the table with which rANS codes the residual (residuals.cuh). A
// value that is too far from its prediction is stored as it is.
//
// In `value`, two earlier steps come first, NaN where a particle did not exist. A block of particles goes through all steps
// by itself: nothing outside it is used.
#include "portable.cuh"
#include "residuals.cuh"
#include "logarithm.cuh"

static const i32 MOST_COMPONENTS = 3;   // numbers of a particle
static const i32 WEIGHTS = 8;           // of a displacement: see `Known`
static const i32 TERMS = 8;             // of a scale: see `terms_of`
static const double FARTHEST = 1e150;   // values beyond are not predicted from
static const double MOST_STEPS = 4294967296.0;   // residuals are smaller
static const double LEAST_SCALE = 0.0078125;
static const i32 IN_TURNS = 2;          // blocks that a work item decodes in turns

namespace {

// What all blocks have in common. `period` has the lengths of the periodic box, or 0, and `per_period` their inverses; `top`
// is the largest value inside.
struct Series {
    i64 particles, first;   // the first step that is coded
    i32 lowest;
    real* value;
    const real* rate;       // 0 without
    const double *weight, *scale, *period, *per_period, *top;
    double of_rate, step, per_step, bound;
    float* missed;
};

// The values of a step, of the one before, and of the one before that.
struct Place {
    real* now;
    const real *one, *two;
};

// Of one component, around a particle: the displacements before of the particles from two places ahead of it to two behind,
// the displacements in this step of its three predecessors, the latest first, and three rates as displacements.
struct Around {
    double before[5], now[3], rate[3];
};

// What is known of one component: its own displacement before, those of the particles beside it, of those two places away
// (without its own), the displacements of three predecessors in this step, the rate, and the rates beside it.
struct Known {
    double of[WEIGHTS];
};

// How large residuals were: of the last particle, and of those before, in steps.
struct Sizes {
    double last, mean;
};

}  // namespace

DEVICE ALWAYS_INLINE double magnitude(double value) { return fabs(value); }

DEVICE ALWAYS_INLINE bool is_known(double value) { return magnitude(value) < FARTHEST; }

// The short way round.
DEVICE ALWAYS_INLINE double shortest(const Series& all, double way, i32 c)
{
    if (!(magnitude(way) > 0.5 * all.period[c]) || all.period[c] == 0) return way;
    return way - all.period[c] * rint(way * all.per_period[c]);
}

DEVICE ALWAYS_INLINE double displacement(const Series& all, const real* to, const real* from, i64 at, i32 c)
{
    const double way = (double)to[at] - (double)from[at];
    return is_known(way) ? shortest(all, way, c) : 0;
}

// As a displacement.
DEVICE ALWAYS_INLINE double rate_of(const Series& all, i64 at)
{
    if (!all.rate) return 0;
    const double rate = all.of_rate * (double)all.rate[at];
    return is_known(rate) ? rate : 0;
}

// What is around the first particle of a block, if the particle before it were there. Beyond the ends of a block, its first
// and its last particle stand for others.
DEVICE ALWAYS_INLINE Around around_first(const Series& all, const Place& here, i64 begin, i64 end, i32 components, i32 c)
{
    Around around;
    const i64 at = begin * components + c, next = begin + 1 < end ? at + components : at;
    const double first = displacement(all, here.one, here.two, at, c);
    for (i32 k = 0; k < 4; ++k) around.before[k] = first;
    around.before[4] = displacement(all, here.one, here.two, next, c);
    for (i32 k = 0; k < 3; ++k) around.now[k] = 0;
    around.rate[0] = around.rate[1] = around.rate[2] = rate_of(all, at);
    return around;
}

// Moves on to particle `i`.
DEVICE ALWAYS_INLINE void go_to(const Series& all, const Place& here, i64 i, i64 end, i32 components, i32 c, Around* around)
{
    const i64 at = i * components + c;
    for (i32 k = 0; k < 4; ++k) around->before[k] = around->before[k + 1];
    if (i + 2 < end) around->before[4] = displacement(all, here.one, here.two, at + components + components, c);
    if (!all.rate) return;
    around->rate[0] = around->rate[1];
    around->rate[1] = around->rate[2];
    if (i + 1 < end) around->rate[2] = rate_of(all, at + components);
}

// The displacement of a component in this step, once it is known.
DEVICE ALWAYS_INLINE void add_displacement(double displacement, Around* around)
{
    around->now[2] = around->now[1];
    around->now[1] = around->now[0];
    around->now[0] = displacement;
}

DEVICE ALWAYS_INLINE Known known_of(const Around& around)
{
    const double own = around.before[2];
    return {{own, 0.5 * (around.before[1] + around.before[3]) - own, 0.5 * (around.before[0] + around.before[4]) - own,
             around.now[0], around.now[1], around.now[2], around.rate[1],
             0.5 * (around.rate[0] + around.rate[2]) - around.rate[1]}};
}

DEVICE ALWAYS_INLINE double expected_displacement(const Series& all, const Known& known)
{
    double sum = 0;
    for (i32 k = 0; k < WEIGHTS; ++k) sum += all.weight[k] * known.of[k];
    return sum;
}

// Where a value is expected. A particle that did not exist is expected at its predecessor in the block.
DEVICE ALWAYS_INLINE double expected_value(const Series& all, const Place& here, i64 at, i64 predecessor, double displacement,
                                           i32 c)
{
    const double before = (double)here.one[at], period = all.period[c];
    double place = before + displacement;
    if (!is_known(before)) {
        place = predecessor >= 0 ? (double)here.now[predecessor] : 0;
        if (!is_known(place)) place = 0;
    }
    if (!(place >= 0 && place < period) && period > 0) {
        place -= period * floor(place * all.per_period[c]);
        if (!(place >= 0 && place < period)) place = 0;
    }
    return place;
}

// What the scale of a residual is a sum of, except the sizes of the residuals before in the same particle.
DEVICE ALWAYS_INLINE void terms_of(const Series& all, i32 components, const Known* known, const double* way,
                                   const Sizes& sizes, float missed, double* term)
{
    double apart = 0, speed = 0, change = 0;
    for (i32 c = 0; c < components; ++c) {
        apart += magnitude(known[c].of[1]) + magnitude(known[c].of[7]);
        speed += magnitude(known[c].of[0]);
        change += magnitude(way[c] - known[c].of[0]);
    }
    const double per = components == 1 ? all.per_step : all.per_step * (components == 2 ? 0.5 : 1.0 / 3);
    term[0] = 1;
    term[1] = sizes.last;
    term[2] = sizes.mean;
    term[3] = (double)missed;
    term[4] = apart * per;
    term[5] = speed * per;
    term[6] = change * per;
    term[7] = 0;
}

// The context of component `c`, from the terms of its scale.
DEVICE ALWAYS_INLINE i32 context_of(const Series& all, const double* term, i32 c)
{
    const double* weight = all.scale + (c > 0 ? TERMS : 0);
    double scale = 0;
    for (i32 k = 0; k < TERMS; ++k) scale += weight[k] * term[k];
    if (!(scale > LEAST_SCALE)) scale = LEAST_SCALE;
    if (!(scale < MOST_STEPS)) scale = MOST_STEPS;
    const i32 quarter = quarter_octave_of(scale) - all.lowest;
    return quarter < 0 ? 0 : quarter < CONTEXTS ? quarter : CONTEXTS - 1;
}

// The value that is `steps` from where it is expected. In a periodic box, the steps that lead out of it lead to its face,
// to the opposite face, and then on from there: so every value inside is near one that can be decoded.
DEVICE ALWAYS_INLINE real value_at(const Series& all, double expected, double steps, i32 c)
{
    const double period = all.period[c];
    double place = expected + all.step * steps;
    if (period > 0 && !(place > 0 && place < all.top[c])) {
        if (place >= period) {
            const double one = expected + all.step * (steps - 1), two = expected + all.step * (steps - 2);
            place = one < period ? period : two < period ? 0 : two - period;
        } else if (place < 0) {
            const double one = expected + all.step * (steps + 1), two = expected + all.step * (steps + 2);
            place = one >= 0 ? 0 : two >= 0 ? period : two + period;
        }
        place = place > 0 ? place : 0;
        if (!(place < all.top[c])) place = all.top[c];
    }
    return (real)place;
}

// The steps to a value: those that end nearest to it.
DEVICE ALWAYS_INLINE double steps_to(const Series& all, double expected, real value, i32 c)
{
    const double way = (double)value - expected, period = all.period[c];
    if (!(period > 0)) return rint(way * all.per_step);
    const double around = shortest(all, way, c), steps = rint(around * all.per_step);
    if (around == way) return steps;
    const double beyond = around > way ? 1 : around < way ? -1 : 0;   // through a face of the box
    double best = steps, least = magnitude((double)value_at(all, expected, steps, c) - (double)value);
    for (i32 k = 1; k <= 3 && beyond != 0; ++k) {
        const double off = magnitude((double)value_at(all, expected, steps + beyond * k, c) - (double)value);
        if (off < least) {
            least = off;
            best = steps + beyond * k;
        }
    }
    return best;
}

DEVICE ALWAYS_INLINE Place place_at(const Series& all, i32 components, i64 step)
{
    const i64 size = all.particles * components;
    real* now = all.value + (step + 2) * size;
    return {now, now - size, now - 2 * size};
}

DEVICE ALWAYS_INLINE void follow(Sizes* sizes, double size)
{
    sizes->last = size;
    sizes->mean += 0.125 * (size - sizes->mean);
}

namespace {

struct Recorder {   // the encoder: keeps codes and the bits that follow them
    u16* code;
    BitWriter rest;
};

struct Surveyor {   // looks at a sample: keeps what is known, or the terms of scales, and what should be predicted
    double *seen, *wanted;
    bool of_scales;
};

}  // namespace

// One residual: its size in steps, and the value in its place.
DEVICE ALWAYS_INLINE i64 code_one(const Series& all, Recorder* to, const Known&, const double* term, double expected,
                                  i32 c, real* value)
{
    const real original = *value;
    const double steps = steps_to(all, expected, original, c), size = magnitude(steps);
    const real decoded = value_at(all, expected, steps, c);
    const i32 context = context_of(all, term, c);
    if (size < MOST_STEPS && magnitude((double)decoded - (double)original) <= all.bound) {
        const i32 symbol = symbol_of((i64)size);
        *to->code++ = (u16)(context * SYMBOLS + symbol);
        put(&to->rest, (u64)size << 1 | (steps < 0), bits_after_small(symbol));
        *value = decoded;
        return (i64)size;
    }
    *to->code++ = (u16)(context * SYMBOLS + ESCAPE);
    put_value(&to->rest, bits_of(original));
    return 0;
}

DEVICE ALWAYS_INLINE i64 code_one(const Series& all, Source* from, const Known&, const double* term, double expected,
                                  i32 c, real* value)
{
    const i32 symbol = next_symbol(from, context_of(all, term, c));
    if (symbol == ESCAPE) {
        *value = value_with(take_value(&from->rest));
        return 0;
    }
    const bool small = symbol < DIRECT;
    const u64 below = small ? take(&from->rest, symbol != 0) : take(&from->rest, bits_after(symbol));
    const i64 size = small ? symbol : size_with(symbol, below >> 1), sign = (i64)(below & 1);
    *value = value_at(all, expected, (double)((size ^ -sign) + sign), c);   // a branch would be hard to foresee
    return size;
}

// The original stays in place.
DEVICE ALWAYS_INLINE i64 code_one(const Series& all, Surveyor* to, const Known& known, const double* term,
                                  double expected, i32 c, real* value)
{
    const double way = shortest(all, (double)*value - expected, c) * all.per_step, size = magnitude(rint(way));
    for (i32 k = 0; k < WEIGHTS; ++k) *to->seen++ = to->of_scales ? term[k] : known.of[k] * all.per_step;
    *to->wanted++ = way;
    return size < MOST_STEPS ? (i64)size : 0;
}

// The particles of so many blocks of `count` particles, one after the other from `begin` on, in all steps. The blocks take
// turns: a processor works on one while it waits for the others. `components` and `lanes` are literals, so that what is
// around a particle stays in registers.
template <i32 components, i32 lanes, class Coder>
DEVICE ALWAYS_INLINE void code_steps(const Series& all, Coder* coder, i64 begin, i64 count, i64 steps)
{
    Sizes sizes[lanes] = {};
    for (i64 t = all.first; t < steps; ++t) {
        const Place here = place_at(all, components, t);
        Around around[lanes][components];
        UNROLL for (i32 n = 0; n < lanes; ++n) {
            const i64 first = begin + n * count;
            UNROLL for (i32 c = 0; c < components; ++c)
                around[n][c] = around_first(all, here, first, first + count, components, c);
        }
        for (i64 k = 0; k < count; ++k) {
            Known known[lanes][components];
            double way[lanes][components], term[lanes][TERMS];
            i64 sum[lanes] = {};
            UNROLL for (i32 n = 0; n < lanes; ++n) {
                const i64 first = begin + n * count, i = first + k;
                UNROLL for (i32 c = 0; c < components; ++c) {
                    go_to(all, here, i, first + count, components, c, around[n] + c);
                    known[n][c] = known_of(around[n][c]);
                    way[n][c] = expected_displacement(all, known[n][c]);
                }
                terms_of(all, components, known[n], way[n], sizes[n], all.missed[i], term[n]);
            }
            UNROLL for (i32 c = 0; c < components; ++c)
                UNROLL for (i32 n = 0; n < lanes; ++n) {
                    const i64 at = (begin + n * count + k) * components + c;
                    if (c > 0) term[n][7] = c == 1 ? (double)sum[n] : 0.5 * (double)sum[n];
                    const double expected = expected_value(all, here, at, k > 0 ? at - components : -1, way[n][c], c);
                    sum[n] += code_one(all, coder + n, known[n][c], term[n], expected, c, here.now + at);
                    add_displacement(displacement(all, here.now, here.one, at, c), around[n] + c);
                }
            UNROLL for (i32 n = 0; n < lanes; ++n) {
                const double size = (double)sum[n] * (components == 1 ? 1 : components == 2 ? 0.5 : 1.0 / 3);
                follow(sizes + n, size);
                float* missed = all.missed + begin + n * count + k;
                *missed = t == all.first ? (float)size : (float)((double)*missed + 0.4 * (size - (double)*missed));
            }
        }
    }
}

template <class Coder>
DEVICE ALWAYS_INLINE void code_block(i32 components, const Series& all, Coder* coder, i64 begin, i64 end, i64 steps)
{
    if (components == 3) code_steps<3, 1>(all, coder, begin, end - begin, steps);
    else if (components == 2) code_steps<2, 1>(all, coder, begin, end - begin, steps);
    else code_steps<1, 1>(all, coder, begin, end - begin, steps);
}

DEVICE ALWAYS_INLINE Series series_of(i64 particles, i64 first, i32 lowest, real* value, const real* rate,
                                      const double* weight, const double* scale, const double* period,
                                      const double* per_period, const double* top, double of_rate, double step,
                                      double bound, float* missed)
{
    return {particles, first, lowest, value, rate, weight, scale, period, per_period, top, of_rate, step, 1 / step, bound,
            missed};
}

// What is known of each component of a sample (its first weights are 0), or the terms of its scale; and how far it is from
// where it is expected, in steps.
KERNEL(survey_motion)(i64 blocks, i64 block, i64 particles, i64 steps, i64 first, i32 components, i32 of_scales,
                      real* value SIZE((steps + 2) * particles * components), i32 rates,
                      const real* rate SIZE(particles * components if rates else 0), const double* weight SIZE(8),
                      const double* scale SIZE(16), const double* period SIZE(components),
                      const double* per_period SIZE(components), const double* top SIZE(components),
                      double of_rate, double step, double bound, i32 lowest, float* missed SIZE(particles),
                      double* seen SIZE((steps - first) * particles * components * 8),
                      double* wanted SIZE((steps - first) * particles * components))
{
    const Series all = series_of(particles, first, lowest, value, rates ? rate : 0, weight, scale, period,
                                 per_period, top, of_rate, step, bound, missed);
    FOR_EACH(b, blocks) {
        const i64 begin = b * block, end = begin + block < particles ? begin + block : particles;
        const i64 at = begin * (steps - first) * components;
        Surveyor coder = {seen + at * WEIGHTS, wanted + at, of_scales != 0};
        code_block(components, all, &coder, begin, end, steps);
    }
}

// The code of each residual (context * SYMBOLS + symbol), block after block; the decoded values take the place of the original
// ones. The bits that follow the symbols of a block fill `used` words from the place on that its first residual has if each
// takes `room` words.
KERNEL(encode_motion)(i64 blocks, i64 block, i64 particles, i64 steps, i64 first, i32 components,
                      real* value SIZE((steps + 2) * particles * components), i32 rates,
                      const real* rate SIZE(particles * components if rates else 0), const double* weight SIZE(8),
                      const double* scale SIZE(16), const double* period SIZE(components),
                      const double* per_period SIZE(components), const double* top SIZE(components),
                      double of_rate, double step, double bound, i32 lowest, float* missed SIZE(particles),
                      i32 room, u16* code SIZE((steps - first) * particles * components), u32* rest SIZE(code * room),
                      i64* used SIZE(blocks))
{
    const Series all = series_of(particles, first, lowest, value, rates ? rate : 0, weight, scale, period,
                                 per_period, top, of_rate, step, bound, missed);
    FOR_EACH(b, blocks) {
        const i64 begin = b * block, end = begin + block < particles ? begin + block : particles;
        const i64 at = begin * (steps - first) * components;
        Recorder coder = {code + at, {rest + at * room, 0, 0}};
        code_block(components, all, &coder, begin, end, steps);
        if (coder.rest.count > 0) *coder.rest.to++ = (u32)coder.rest.held;
        used[b] = coder.rest.to - (rest + at * room);
    }
}

namespace {

// The words of all blocks, where those of each begin, and the tables.
struct Coded {
    const i64* word_first;
    const u16* words;
    const i64* rest_first;
    const u32* rest;
    const u8 *row, *symbol_at;
    const u32 *frequency, *start;
};

}  // namespace

DEVICE ALWAYS_INLINE Source source_of(const Coded& coded, i64 b)
{
    Source source = {coded.words + coded.word_first[b], coded.words + coded.word_first[b + 1],
                     {coded.rest + coded.rest_first[b], coded.rest + coded.rest_first[b + 1], 0, 0},
                     0, 0, coded.row, coded.symbol_at, coded.frequency, coded.start};
    open_source(&source);
    return source;
}

// The reverse of `encode_motion`. `sound` says of each block whether its code ended where it should. Whatever the input,
// nothing is read outside what `word_first` and `rest_first` delimit. A work item takes so many blocks `together`.
KERNEL(decode_motion)(i64 items, i32 together, i64 blocks, i64 block, i64 particles, i64 steps, i64 first, i32 components,
                      real* value SIZE((steps + 2) * particles * components), i32 rates,
                      const real* rate SIZE(particles * components if rates else 0), const double* weight SIZE(8),
                      const double* scale SIZE(16), const double* period SIZE(components),
                      const double* per_period SIZE(components), const double* top SIZE(components),
                      double of_rate, double step, double bound, i32 lowest, float* missed SIZE(particles),
                      const i64* word_first SIZE(blocks + 1), const u16* words SIZE(LAST(word_first)),
                      const i64* rest_first SIZE(blocks + 1), const u32* rest SIZE(LAST(rest_first)), const u8* row SIZE(64),
                      const u8* symbol_at SIZE(CEIL(frequency, 256) * 4096), const u32* frequency SIZE(>= 256),
                      const u32* start SIZE(frequency), u8* sound SIZE(blocks))
{
    const Series all = series_of(particles, first, lowest, value, rates ? rate : 0, weight, scale, period,
                                 per_period, top, of_rate, step, bound, missed);
    const Coded coded = {word_first, words, rest_first, rest, row, symbol_at, frequency, start};
    FOR_EACH(item, items) {
        const i64 first_block = item * together, end = first_block + together < blocks ? first_block + together : blocks;
        if (ON_CPU && components == 3 && together == IN_TURNS && (first_block + IN_TURNS) * block <= particles) {
            Source both[IN_TURNS] = {source_of(coded, first_block), source_of(coded, first_block + 1)};
            code_steps<3, IN_TURNS>(all, both, first_block * block, block, steps);
            sound[first_block] = is_at_end(both[0]);
            sound[first_block + 1] = is_at_end(both[1]);
        } else for (i64 b = first_block; b < end; ++b) {
            Source source = source_of(coded, b);
            code_block(components, all, &source, b * block, (b + 1) * block < particles ? (b + 1) * block : particles, steps);
            sound[b] = is_at_end(source);
        }
    }
}
