// Wavelet coefficients of patches of a field, as SPERR makes them: the biorthogonal 9/7 transform by lifting (Daubechies
// and Sweldens), mirrored at both ends of a line.
//
// A patch has margins, of which differences at its ends are made; they are halved with it, and left out once they are odd.
// One work item transforms one patch, in place, several lines side by side.
#include "portable.cuh"

static const i32 AXES = 3, TOGETHER = 16;   // lines side by side

// A part of a patch: where it begins, its extent with margins, without them, and one margin along each axis.
struct Part {
    i64 origin;
    i32 extent[AXES], side[AXES], margin[AXES];
};

// One step of lifting: the places of one kind change by those of the other on both sides.
DEVICE ALWAYS_INLINE void lift(real* to, const real* from, i32 half, i32 end, i32 beside, real factor)
{
    for (i32 k = 0; k < half; ++k) {
        const real* other = from + (k == end ? k : k + beside) * TOGETHER;
        for (i32 l = 0; l < TOGETHER; ++l) to[k * TOGETHER + l] += factor * (from[k * TOGETHER + l] + other[l]);
    }
}

// Lines that begin `apart` from each other become means, and differences behind them.
DEVICE ALWAYS_INLINE void divide(real* first, i64 step, i64 apart, i32 lines, i32 half, real* room)
{
    real *even = room, *odd = room + (i64)half * TOGETHER;
    for (i32 k = 0; k < half; ++k)
        for (i32 l = 0; l < TOGETHER; ++l) {
            const real* at = first + 2 * k * step + (l < lines ? l : 0) * apart;
            even[k * TOGETHER + l] = at[0];
            odd[k * TOGETHER + l] = at[step];
        }
    lift(odd, even, half, half - 1, 1, (real)-1.586134342059924);
    lift(even, odd, half, 0, -1, (real)-0.052980118572961);
    lift(odd, even, half, half - 1, 1, (real)0.882911075530934);
    lift(even, odd, half, 0, -1, (real)0.443506852043971);
    for (i32 k = 0; k < half; ++k)
        for (i32 l = 0; l < lines; ++l) {
            first[k * step + l * apart] = even[k * TOGETHER + l] * (real)1.149604398860241;
            first[(half + k) * step + l * apart] = odd[k * TOGETHER + l] * (real)(1 / 1.149604398860241);
        }
}

// Where the coefficient `i` of a part is along an axis: means first, then differences, both without margins.
DEVICE ALWAYS_INLINE i32 within(const Part& part, i32 axis, bool divided, i32 i)
{
    const i32 first = part.margin[axis] / 2, half = part.side[axis] / 2;
    if (!divided) return part.margin[axis] + i;
    return i < half ? first + i : part.extent[axis] / 2 + first + i - half;
}

// One patch, divided along each axis so many `times`; coefficients go to the places that three tables add up to.
WIDE DEVICE void divide_patch(real* patch, const i32* extent, const i32* margin, const i32* times, const i64* place,
                              real* room, real* found)
{
    const i64 step[AXES] = {(i64)extent[1] * extent[2], extent[2], 1};
    Part part;
    part.origin = 0;
    i32 left[AXES];
    for (i32 a = 0; a < AXES; ++a) {
        part.extent[a] = extent[a];
        part.margin[a] = margin[a];
        part.side[a] = extent[a] - 2 * margin[a];
        left[a] = times[a];
    }
    const i64 *place1 = place + part.side[0], *place2 = place1 + part.side[1];
    for (;;) {
        bool divided[AXES];
        for (i32 a = 0; a < AXES; ++a) {
            divided[a] = left[a] > 0 && part.side[a] > 1;
            if (!divided[a]) continue;
            const i32 along = a == 2 ? 1 : 2, other = AXES - a - along;   // lines side by side, and the axis that is left
            for (i32 i = 0; i < part.extent[other]; ++i)
                for (i32 j = 0; j < part.extent[along]; j += TOGETHER) {
                    const i32 rest = part.extent[along] - j;
                    divide(patch + part.origin + i * step[other] + j * step[along], step[a], step[along],
                           rest < TOGETHER ? rest : TOGETHER, part.extent[a] / 2, room);
                }
        }
        for (i32 i = 0; i < part.side[0]; ++i)
            for (i32 j = 0; j < part.side[1]; ++j) {
                const real* line = patch + part.origin + within(part, 0, divided[0], i) * step[0]
                                   + within(part, 1, divided[1], j) * step[1];
                real* to = found + place[i] + place1[j];
                for (i32 k = 0; k < part.side[2]; ++k) to[place2[k]] = line[within(part, 2, divided[2], k)];
            }
        if (!divided[0] && !divided[1] && !divided[2]) return;
        for (i32 a = 0; a < AXES; ++a) {
            if (!divided[a]) continue;
            const i32 half = part.margin[a] / 2, kept = part.margin[a] > 2 ? half : 0;   // an odd one cannot be divided
            part.origin += (half - kept) * step[a];
            part.extent[a] = part.extent[a] / 2 - 2 * (half - kept);
            part.side[a] /= 2;
            part.margin[a] = kept;
            --left[a];
        }
    }
}

// The coefficients of patches, each so far behind that of the one before.
KERNEL(divide_patches)(i64 n, i64 values, i64 longest, i64 behind, i64 kept, real* patch SIZE(n * values),
                       const i32* extent SIZE(3), const i32* margin SIZE(3), const i32* times SIZE(3),
                       const i64* place SIZE(>= 3), real* room SIZE(n * longest * 16), real* found SIZE(n * kept))
{
    (void)kept;   // states a size
    FOR_EACH(p, n)
        divide_patch(patch + p * values, extent, margin, times, place, room + p * longest * TOGETHER, found + p * behind);
}
