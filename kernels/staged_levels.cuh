// Large blocks of the codec `staged`, predicted from coarse to fine.
//
// On each level, points lie at every second place of the axes that are long enough (the active ones). Those at even places
// along all of them are known from coarser levels. The others form classes, by the axes along which they are at odd places:
// first those of one axis, then of two and of three. A point is predicted along each axis of its class, by a cubic through
// the four nearest points of the class without this axis, and the mean of these predictions counts. At the far end of a
// block, there is no point behind: such a prediction counts only if all are of this kind.
//
// Points are stored class by class, so that all that is read together lies together: coarse levels first, and in each class
// in the order of their places.
#pragma once

static const i32 LARGE = 4096;         // numbers in a block
static const i32 CLASSES = 7;          // of a level: a bit for each axis, the last one lowest
static const u32 TURNS = 0x7653421;    // the order of the classes, four bits each
static const i32 PIECE = 8;            // points that are predicted at once
static const i32 TAPS = 5;             // the most points along an axis from which one is predicted
static const i32 BEHIND = 2;           // of which so many lie before the point
static const i32 WEIGHTS = 4;          // the sum of the weights of the axes
static const i32 KNOWN = LARGE / 2 + 2 * BEHIND;   // the most points of a coarser level, and room beside them

namespace {

// A level: how many points are known along each axis, and which axes are active (bits as of classes).
struct Level {
    i32 size[3], active;
};

// The weights of predictions along each axis.
struct Shares {
    i32 of[3];
};

}   // namespace

DEVICE ALWAYS_INLINE Level level_at(const i32* log, i32 level)
{
    Level here = {{1, 1, 1}, 0};
    for (i32 a = 0; a < 3; ++a)
        if (log[a] > level) {
            here.size[a] = 1 << (log[a] - level - 1);
            here.active |= 4 >> a;
        }
    return here;
}

// Sixteen times the weight of the known point `m + k - BEHIND` for the one behind point `m` of so many.
DEVICE ALWAYS_INLINE i32 tap_of(i32 m, i32 known, i32 k)
{
    const bool before = m > 0, behind = m + 2 < known;
    if (m + 1 < known) {
        if (k == 1) return before ? behind ? -1 : -2 : 0;
        if (k == 2) return before ? behind ? 9 : 12 : behind ? 6 : 8;
        if (k == 3) return behind ? before ? 9 : 12 : before ? 6 : 8;
        if (k == 4) return behind ? before ? -1 : -2 : 0;
        return 0;
    }
    if (k == 0) return m > 1 ? 6 : 0;
    if (k == 1) return m > 1 ? -20 : m > 0 ? -8 : 0;
    if (k == 2) return m > 1 ? 30 : m > 0 ? 24 : 16;
    return 0;
}

// How much the prediction along each axis of a class counts, given the axes along which there is no point behind.
DEVICE ALWAYS_INLINE Shares shares_of(i32 axes, i32 last)
{
    const i32 used = axes & ~last ? axes & ~last : axes, several = count_bits((u64)used);
    Shares shares;
    for (i32 a = 0; a < 3; ++a) shares.of[a] = !(used & 4 >> a) ? 0 : several < 3 ? WEIGHTS / several : a == 2 ? 2 : 1;
    return shares;
}

// Predicts points in a row. `source` has for each axis of the class the known point before the first of them.
template <i32 COUNT, class Number>
DEVICE ALWAYS_INLINE void predict_piece(const Number* const* source, const i32* stride, i32 axes, const i32 (*taps)[TAPS],
                                        const i32 (*along)[PIECE], const Shares& inner, const Shares& end, i32 last, i32 given,
                                        Number* predicted)
{
    const i32 count = COUNT ? COUNT : given;
    Number sum[PIECE];
    for (i32 i = 0; i < count; ++i) sum[i] = 8 * WEIGHTS;   // so that the result is rounded
    for (i32 a = 0; a < 3; ++a) {
        if (!(axes & 4 >> a)) continue;
        Number own[PIECE];
        for (i32 i = 0; i < count; ++i) own[i] = 0;
        if (a < 2 && taps[a][1] == -1)   // nearly everywhere
            for (i32 i = 0; i < count; ++i) {
                const Number* const from = source[a] + i;
                own[i] = 9 * (from[0] + from[stride[a]]) - (from[-stride[a]] + from[2 * stride[a]]);
            }
        else if (a < 2)
            for (i32 k = 0; k < TAPS; ++k) {
                const i32 weight = taps[a][k];
                if (!weight) continue;
                const Number* const from = source[a] + (k - BEHIND) * stride[a];
                for (i32 i = 0; i < count; ++i) own[i] += (Number)(i64)weight * from[i];
            }
        else
            for (i32 k = 0; k < TAPS; ++k) {
                const Number* const from = source[a] + (k - BEHIND);
                for (i32 i = 0; i < count; ++i) own[i] += (Number)(i64)along[k][i] * from[i];
            }
        for (i32 i = 0; i < count; ++i) sum[i] += own[i] * (Number)(i == last ? end.of[a] : inner.of[a]);
    }
    typedef typename Signed<Number>::type Integer;
    for (i32 i = 0; i < count; ++i) predicted[i] = (Number)((Integer)sum[i] >> 6);   // sixteenths, and the weights
}

// Predicts a class and takes each piece of it. `source` has for each of its axes the points of the class without it.
template <class Number, class Take>
DEVICE ALWAYS_INLINE void predict_class(const Level& level, i32 axes, const Number* const* source, const Take& take)
{
    const i32 *const size = level.size, stride[3] = {size[1] * size[2], size[2], 1};
    KEEP_LOOP for (i32 x = 0; x < size[2]; x += PIECE) {
        const i32 count = size[2] - x < PIECE ? size[2] - x : PIECE;
        const i32 last = axes & 1 && x + count == size[2] ? count - 1 : PIECE;
        i32 along[TAPS][PIECE];
        for (i32 k = 0; k < TAPS; ++k)
            for (i32 i = 0; i < PIECE; ++i) along[k][i] = i < count ? tap_of(x + i, size[2], k) : 0;
        i32 taps[2][TAPS];
        KEEP_LOOP for (i32 z = 0; z < size[0]; ++z) {
            for (i32 k = 0; k < TAPS; ++k) taps[0][k] = tap_of(z, size[0], k);
            const i32 last_plane = axes & 4 && z + 1 == size[0] ? 4 : 0;
            KEEP_LOOP for (i32 y = 0; y < size[1]; ++y) {
                const i32 edges = last_plane | (axes & 2 && y + 1 == size[1] ? 2 : 0), place = z * stride[0] + y * stride[1] + x;
                if (axes & 2)
                    for (i32 k = 0; k < TAPS; ++k) taps[1][k] = tap_of(y, size[1], k);
                const Number* const from[3] = {source[0] + place, source[1] + place, source[2] + place};
                const Shares inner = shares_of(axes, edges), end = shares_of(axes, edges | 1);
                Number predicted[PIECE];
                if (count == PIECE)
                    predict_piece<PIECE>(from, stride, axes, taps, along, inner, end, last, count, predicted);
                else
                    predict_piece<0>(from, stride, axes, taps, along, inner, end, last, count, predicted);
                take(place, predicted, count);
            }
        }
    }
}

// The points of a level in the order of their places; `begin` tells where the points of each class are stored.
template <class Number>
DEVICE ALWAYS_INLINE void merge(const Level& level, const Number* known, const Number* number, const i32* begin, Number* to)
{
    i32 shift[3], size[3];
    for (i32 a = 0; a < 3; ++a) {
        shift[a] = level.active & 4 >> a ? 1 : 0;
        size[a] = level.size[a] << shift[a];
    }
    for (i32 axes = 0; axes < 8; ++axes) {
        if (axes & ~level.active) continue;
        const Number* from = axes ? number + begin[axes] : known;
        for (i32 z = 0; z < level.size[0]; ++z)
            for (i32 y = 0; y < level.size[1]; ++y) {
                const i32 plane = (z << shift[0]) + (axes >> 2 & 1), row = (y << shift[1]) + (axes >> 1 & 1);
                Number* const into = to + (plane * size[1] + row) * size[2] + (axes & 1);
                for (i32 x = 0; x < level.size[2]; ++x) into[x << shift[2]] = *from++;
            }
    }
}

// Goes through the points of a block, coarse ones first: `take(place, predicted, count)` must set the numbers of these places
// before it returns. The first number is known. `known` and `next` are overwritten.
template <class Number, class Take>
DEVICE ALWAYS_INLINE void through_levels(const i32* log, Number* number, Number* known, Number* next, const Take& take)
{
    i32 levels = log[0] > log[1] ? log[0] : log[1];
    levels = levels > log[2] ? levels : log[2];
    known[0] = number[0];
    KEEP_LOOP for (i32 each = levels - 1; each >= 0; --each) {
        const Level level = level_at(log, each);
        const i32 points = level.size[0] * level.size[1] * level.size[2];
        i32 begin[CLASSES + 1], rank = 0;
        KEEP_LOOP for (i32 turn = 0; turn < CLASSES; ++turn) {
            const i32 axes = (i32)(TURNS >> 4 * turn & 15);
            if (axes & ~level.active) continue;
            begin[axes] = ++rank * points;
            const Number* source[3];
            for (i32 a = 0; a < 3; ++a) {
                const i32 others = axes & ~(4 >> a);
                source[a] = others && others != axes ? number + begin[others] : known;
            }
            predict_class(level, axes, source, take.from(begin[axes]));
        }
        if (each) {
            merge(level, known, number, begin, next);
            Number* const merged = next;
            next = known;
            known = merged;
        }
    }
}
