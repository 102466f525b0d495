// Projected gradient descent on a squared hinge loss: joint target positions where no move of a single particle suffices.
#include "portable.cuh"
#include "space.cuh"
#include "moves.cuh"

namespace {
// The loss is half the sum of squared violations of all needs, and of all listed pairs of different groups that would come
// within the linking length. `displaced` are the candidates' displacements so far; other particles stay. A step shares each
// violation between its two ends and averages over the violations of a candidate, so it needs no tuning and no unit of
// length; it is then projected onto the bound. Two coincident particles are pushed along the first axis.
struct Descent {
    const i32* candidate;
    const i64* list_start;
    const i64* list_end;
    const i32* list;
    const i64* need_start;
    const i32* need_partner;
    const i32* need_kind;
    const i32* group;
    i64 lengths, particles;
    const double* near_squared;
    const double* far_squared;
    const real* original;
    const real* decoded;
    double bound;
    i64 relative;
    const i32* slot;
    double margin;
    const Space& space;
    double* displaced;
    double* next;

    // The next displacement of candidate c, and its loss; returns how many of its needs are violated.
    DEVICE_METHOD i32 step(i64 c, double& loss) const
    {
        const i32 v = candidate[c];
        double push[DIMENSIONS], here[DIMENSIONS], total = 0;
        i32 active = 0, unmet = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            push[axis] = 0;
            here[axis] = displaced[c * DIMENSIONS + axis];
        }
        const i64 needs = need_start[c + 1] - need_start[c], pairs = list_end[c] - list_start[c];
        for (i64 e = 0; e < needs + pairs; ++e) {
            const i32 k = e < needs ? need_partner[need_start[c] + e] : list[list_start[c] + e - needs];
            double apart[DIMENSIONS], sum = 0;
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                const i64 of_v = (i64)v * DIMENSIONS + axis, of_k = (i64)k * DIMENSIONS + axis;
                apart[axis] = difference<true>(decoded[of_v], decoded[of_k], space, axis)
                            + here[axis] - (slot[k] < 0 ? 0 : displaced[(i64)slot[k] * DIMENSIONS + axis]);
                sum += apart[axis] * apart[axis];
            }
            for (i64 l = 0; l < lengths; ++l) {
                const i32 kind = e < needs ? need_kind[need_start[c] + e] : 2 * (i32)l + 1;
                if (kind >> 1 != l) continue;
                if (e >= needs && group[l * particles + v] == group[l * particles + k]) continue;
                const double wanted = kind & 1 ? sqrt(far_squared[l]) + margin : sqrt(near_squared[l]) - margin;
                const double d = sqrt(sum), miss = kind & 1 ? wanted - d : d - wanted;
                if (miss <= 0) continue;
                if (e < needs && miss > margin) ++unmet;
                ++active;
                total += miss * miss;
                const double size = (kind & 1 ? miss : -miss) / 2;
                if (d > 0)
                    for (i32 axis = 0; axis < DIMENSIONS; ++axis) push[axis] += size * apart[axis] / d;
                else
                    push[0] += v < k ? size : -size;
            }
        }
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const i64 of_v = (i64)v * DIMENSIONS + axis;
            const double residual = -difference<true>(decoded[of_v], original[of_v], space, axis);
            const double most = most_error(original[of_v], bound, relative, space.period[axis]);
            double to = here[axis] + (active ? push[axis] / active : 0);
            to = to > residual + most ? residual + most : to;
            next[c * DIMENSIONS + axis] = to < residual - most ? residual - most : to;
        }
        loss = total / 2;
        return unmet;
    }
};
}

// Some steps of bodies of candidates: their numbers are `member`, body by body. A body that takes several steps is a whole
// component, so it affects no other; it stops when none of its needs is violated. After the last step, `next` still has to
// replace `displaced`. Loss and violated needs are written for each step and candidate.
KERNEL(descend)(i64 n, const i64* start SIZE(n + 1), const i32* member SIZE(LAST(start)), i64 steps,
                const i32* candidate SIZE(>= 0), const i64* list_start SIZE(candidate), const i64* list_end SIZE(candidate),
                const i32* list SIZE(>= candidate), const i64* need_start SIZE(candidate + 1),
                const i32* need_partner SIZE(LAST(need_start)), const i32* need_kind SIZE(need_partner),
                const i32* group SIZE(lengths * particles), i64 lengths, i64 particles,
                const double* near_squared SIZE(lengths), const double* far_squared SIZE(lengths),
                const double* periods SIZE(D), const real* original SIZE(particles * D),
                const real* decoded SIZE(particles * D), double bound, i64 relative, const i32* slot SIZE(particles),
                double margin, i64 candidates, double* displaced SIZE(candidates * D), double* next SIZE(candidates * D),
                double* loss SIZE(steps * candidates), i32* missed SIZE(steps * candidates))
{
    const Space space = space_of(periods, 0);
    const Descent descent = {candidate, list_start, list_end, list, need_start, need_partner, need_kind, group, lengths,
                             particles, near_squared, far_squared, original, decoded, bound, relative, slot, margin, space,
                             displaced, next};
    FOR_EACH(b, n) {
        i64 left = 1;
        for (i64 s = 0; s < steps; ++s) {
            const i64 row = s * candidates;
            if (left) {
                left = 0;
                for (i64 m = start[b]; s && m < start[b + 1]; ++m)
                    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                        const i64 at = (i64)member[m] * DIMENSIONS + axis;
                        displaced[at] = next[at];
                    }
                for (i64 m = start[b]; m < start[b + 1]; ++m)
                    left += missed[row + member[m]] = descent.step(member[m], loss[row + member[m]]);
            } else {
                for (i64 m = start[b]; m < start[b + 1]; ++m) {
                    loss[row + member[m]] = loss[row - candidates + member[m]];
                    missed[row + member[m]] = 0;
                }
            }
        }
    }
}
