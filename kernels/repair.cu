// Moving decoded particles, within their bound, until their groups are those of the original.
//
// What has to change is a list of needs: two particles that must be apart, or must touch. Each end of a need is a candidate
// that may move. A move is a small vector of whole steps (a step is an eighth of the bound), so that it is stored as one
// number; it is allowed when the coordinate stays within the bound, when no particle of another group comes within reach,
// and when every friend that is lost is still a friend of a friend. So no move breaks what was right, and candidates that
// do not see each other can move at the same time. All in gather form: a candidate reads its neighbours and writes itself.
#include "portable.cuh"
#include "space.cuh"
#include "moves.cuh"

static const i32 UNASKED = -1;         // in place of a group: among themselves, nothing is asked of such particles

namespace {
// What is known about a candidate and those around it.
struct Scene {
    const i64* list_start;   // of each candidate, its neighbours
    const i64* list_end;
    const i32* list;
    const i64* need_start;
    const i32* need_partner;   // of each need of a candidate: who is at its other end,
    const i32* need_kind;      // and twice the number of its linking length, plus 1 if the two must be apart
    const i32* group;
    i64 lengths, particles;
    const double* near_squared;   // two particles touch when their distance is at most this,
    const double* far_squared;    // and are apart when it is more than this
    const real* current;
    const Space& space;

    DEVICE_METHOD double distance(const real* at, i32 k) const
    {
        return distance_squared<true>(at, current + (i64)k * DIMENSIONS, space);
    }

    DEVICE_METHOD bool met(i64 need, double distance) const
    {
        const i32 kind = need_kind[need];
        return kind & 1 ? distance > far_squared[kind >> 1] : distance <= near_squared[kind >> 1];
    }

    // How many needs of candidate c are met when it is at a place.
    DEVICE_METHOD i32 needs_met(i64 c, const real* at) const
    {
        i32 count = 0;
        for (i64 need = need_start[c]; need < need_start[c + 1]; ++need) count += met(need, distance(at, need_partner[need]));
        return count;
    }

    // How much all needs of candidate c miss, in the unit of the linking lengths.
    DEVICE_METHOD double missing(i64 c, const real* at) const
    {
        double sum = 0;
        for (i64 need = need_start[c]; need < need_start[c + 1]; ++need) {
            const double d = distance(at, need_partner[need]);
            const i32 kind = need_kind[need];
            if (!met(need, d)) sum += kind & 1 ? sqrt(far_squared[kind >> 1]) - sqrt(d) : sqrt(d) - sqrt(near_squared[kind >> 1]);
        }
        return sum;
    }

    // Whether k, a friend that a candidate loses, stays a friend of one of its friends.
    DEVICE_METHOD bool has_witness(i64 c, const real* to, i32 k, i64 l) const
    {
        const i32 own = group[l * particles + k];
        for (i64 e = list_start[c]; e < list_end[c]; ++e) {
            const i32 w = list[e];
            if (w != k && group[l * particles + w] == own && distance(to, w) <= near_squared[l]
                && distance(current + (i64)w * DIMENSIONS, k) <= near_squared[l])
                return true;
        }
        return false;
    }

    // Whether candidate c, particle v, can go from where it is to another place without breaking what is right.
    DEVICE_METHOD bool allowed(i64 c, i32 v, const real* to) const
    {
        const real* from = current + (i64)v * DIMENSIONS;
        for (i64 e = list_start[c]; e < list_end[c]; ++e) {
            const i32 k = list[e];
            const double after = distance(to, k);
            for (i64 l = 0; l < lengths; ++l) {
                const i32 mine = group[l * particles + v], theirs = group[l * particles + k];
                if (mine != theirs) {
                    if (after <= far_squared[l] && distance(from, k) > far_squared[l]) return false;
                } else if (mine != UNASKED && after > near_squared[l] && distance(from, k) <= near_squared[l]
                           && !has_witness(c, to, k, l)) {
                    return false;
                }
            }
        }
        return true;
    }
};
}

namespace {
// The bound of one particle, and where its moves lead.
struct Reachable {
    const real* original;
    const real* decoded;
    const Space& space;
    double bound, step;
    i64 relative;

    DEVICE_METHOD bool place(const i32* move, real* at) const
    {
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            at[axis] = moved(decoded[axis], move[axis], step, space.period[axis]);
            const double period = space.period[axis];
            if (period > 0 && ((double)at[axis] < 0 || (double)at[axis] >= period)) return false;
            // As in bounds.cu: a relative error is not measured through a face of the box.
            const double error = relative ? (double)at[axis] - (double)original[axis]
                                          : difference<true>(at[axis], original[axis], space, axis);
            if ((error < 0 ? -error : error) > most_error(original[axis], bound, relative, space.period[axis])) return false;
        }
        return true;
    }
};
}

DEVICE i32 rank_of(const i32* move, u8 forward, const i32* ranks)
{
    i32 named[DIMENSIONS], number = 0;
    turn_back(move, forward, named);
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        if (named[axis] < -FINE || named[axis] > FINE) return PINNED;
        number = number * (2 * FINE + 1) + named[axis] + FINE;
    }
    return ranks[number];
}

// The best move found so far for one candidate.
struct Choice {
    i32 rank, met;
    double missing;
};

DEVICE void consider(const Scene& scene, const Reachable& reachable, i64 c, i32 v, const i32* move, i32 rank, i64 partial,
                     Choice& best)
{
    real at[DIMENSIONS];
    if (!reachable.place(move, at)) return;
    const i32 met = scene.needs_met(c, at);
    if (met < best.met || (met == best.met && !partial)) return;
    const double missing = partial ? scene.missing(c, at) : 0;
    if (met == best.met && missing >= best.missing - 0.05 * reachable.step) return;
    if (!scene.allowed(c, v, at)) return;
    best.rank = rank;
    best.met = met;
    best.missing = missing;
}

// For each active candidate with needs that are not met (`pending`), the move that meets most of them, the plainest first. Tried are the moves
// up to `last_rank`; with `target` (a displacement for each candidate), those near it; with `partial`, also moves that only
// come nearer to what is needed. `score` is 0 where there is none; `cost` is what it takes to store that the candidate has
// moved, and `rank_cost` where to, both in 1/64 of a bit.
KERNEL(propose)(i64 n, const i32* active SIZE(n), const i32* candidate SIZE(>= n), const i64* list_start SIZE(candidate),
                const i64* list_end SIZE(candidate), const i32* list SIZE(>= candidate),
                const i64* need_start SIZE(candidate + 1), const i32* need_partner SIZE(LAST(need_start)),
                const i32* need_kind SIZE(need_partner), const i32* group SIZE(lengths * particles), i64 lengths,
                i64 particles, const double* near_squared SIZE(lengths), const double* far_squared SIZE(lengths),
                const double* periods SIZE(D), const real* original SIZE(particles * D),
                const real* decoded SIZE(particles * D), const real* current SIZE(particles * D), double bound,
                i64 relative, double step, const u8* forward SIZE(particles), const i32* moves SIZE(33 ** D * D),
                const i32* ranks SIZE(33 ** D), i64 last_rank, i64 refining, i64 with_target,
                const double* target SIZE(candidate * D), i64 partial, const i32* cost SIZE(candidate),
                const i32* rank_cost SIZE(33 ** D), const i32* rank SIZE(particles), i32* proposed SIZE(candidate),
                i64* score SIZE(candidate), u8* pending SIZE(candidate))
{
    const Space space = space_of(periods, 0);
    const Scene scene = {list_start, list_end, list, need_start, need_partner, need_kind, group, lengths, particles,
                         near_squared, far_squared, current, space};
    FOR_EACH(a, n) {
        const i64 c = active[a];
        const i32 v = candidate[c];
        score[c] = 0;
        pending[c] = 0;
        const i32 all = (i32)(need_start[c + 1] - need_start[c]);
        const real* from = current + (i64)v * DIMENSIONS;
        Choice best = {rank[v], scene.needs_met(c, from), partial ? scene.missing(c, from) : 0};
        const i32 met_before = best.met;
        if (met_before == all || rank[v] == PINNED) continue;
        pending[c] = 1;
        const Reachable reachable = {original + (i64)v * DIMENSIONS, decoded + (i64)v * DIMENSIONS, space, bound, step, relative};
        i32 move[DIMENSIONS];
        for (i64 r = 0; r <= last_rank && best.met < all; ++r) {
            turn(moves + r * DIMENSIONS, forward[v], move);
            consider(scene, reachable, c, v, move, (i32)r, partial, best);
        }
        for (i32 fine = 4; refining && fine > 0 && best.met < all; fine /= 2) {   // more bits of the residual
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                const double residual = -difference<true>(reachable.decoded[axis], reachable.original[axis], space, axis) / step;
                i32 steps = fine * (2 * (i32)floor(residual / (2 * fine)) + 1);
                steps = steps > 8 - fine ? 8 - fine : steps;
                move[axis] = steps < fine - 8 ? fine - 8 : steps;
            }
            consider(scene, reachable, c, v, move, rank_of(move, forward[v], ranks), partial, best);
        }
        for (i32 grid = 8; with_target && grid > 0 && best.met < all; grid /= 2)
            for (i32 scale = 1; scale <= 2 && best.met < all; ++scale) {
                for (i32 axis = 0; axis < DIMENSIONS; ++axis)
                    move[axis] = grid * (i32)floor(scale * target[c * DIMENSIONS + axis] / (step * grid) + 0.5);
                const i32 found = rank_of(move, forward[v], ranks);
                if (found != PINNED) consider(scene, reachable, c, v, move, found, partial, best);
            }
        if (best.rank == rank[v]) continue;
        proposed[c] = best.rank;
        score[c] = ((i64)(best.met - met_before) << 20) + (1 << 19) - (rank[v] ? 0 : cost[c]) - rank_cost[best.rank];
    }
}

// For each candidate that has moved, a plainer move that does as well; none is the plainest.
KERNEL(relax)(i64 n, const i32* active SIZE(n), const i32* candidate SIZE(>= n), const i64* list_start SIZE(candidate),
              const i64* list_end SIZE(candidate), const i32* list SIZE(>= candidate),
              const i64* need_start SIZE(candidate + 1), const i32* need_partner SIZE(LAST(need_start)),
              const i32* need_kind SIZE(need_partner), const i32* group SIZE(lengths * particles), i64 lengths,
              i64 particles, const double* near_squared SIZE(lengths), const double* far_squared SIZE(lengths),
              const double* periods SIZE(D), const real* original SIZE(particles * D),
              const real* decoded SIZE(particles * D), const real* current SIZE(particles * D), double bound, i64 relative,
              double step, const u8* forward SIZE(particles), const i32* moves SIZE(33 ** D * D), i64 last_rank,
              const i32* rank SIZE(particles), i32* proposed SIZE(candidate), i64* score SIZE(candidate))
{
    const Space space = space_of(periods, 0);
    const Scene scene = {list_start, list_end, list, need_start, need_partner, need_kind, group, lengths, particles,
                         near_squared, far_squared, current, space};
    FOR_EACH(a, n) {
        const i64 c = active[a];
        const i32 v = candidate[c];
        score[c] = 0;
        if (rank[v] <= 0) continue;
        const Reachable reachable = {original + (i64)v * DIMENSIONS, decoded + (i64)v * DIMENSIONS, space, bound, step, relative};
        const i32 met_before = scene.needs_met(c, current + (i64)v * DIMENSIONS);
        real at[DIMENSIONS];
        i32 move[DIMENSIONS];
        for (i64 r = 0; r < rank[v] && r <= last_rank; ++r) {
            turn(moves + r * DIMENSIONS, forward[v], move);
            if (!reachable.place(move, at) || scene.needs_met(c, at) < met_before || !scene.allowed(c, v, at))
                continue;
            proposed[c] = (i32)r;
            score[c] = rank[v] - r + (r ? 0 : 1 << 20);
            break;
        }
    }
}

DEVICE bool beats(i64 c, i32 other, const i32* candidate, const i64* score)
{
    return other < 0 || score[other] < score[c] || (score[other] == score[c] && candidate[other] >= candidate[c]);
}

// Which proposals are carried out: those that no candidate in sight beats, an independent set as in Luby's algorithm. `slot` is
// each particle's number among the candidates, or -1. Where two candidates see each other, they never move in the same round.
// Lists of neighbours have a greatest length, so in dense places sight can be one-sided; what two such moves break together is
// found when all particles are looked at again.
KERNEL(accept)(i64 n, const i32* candidate SIZE(n), const i64* list_start SIZE(n), const i64* list_end SIZE(n),
               const i32* list SIZE(>= n), const i64* need_start SIZE(n + 1),
               const i32* need_partner SIZE(LAST(need_start)), const i32* slot SIZE(>= n), const i64* score SIZE(n),
               u8* accepted SIZE(n))
{
    FOR_EACH(c, n) {
        bool best = score[c] > 0;
        for (i64 need = need_start[c]; best && need < need_start[c + 1]; ++need)
            best = beats(c, slot[need_partner[need]], candidate, score);
        for (i64 e = list_start[c]; best && e < list_end[c]; ++e) best = beats(c, slot[list[e]], candidate, score);
        accepted[c] = best;
    }
}

// Which pending candidates have to think again: those that moved, or have seen someone move.
KERNEL(wake)(i64 n, const i64* list_start SIZE(n), const i64* list_end SIZE(n), const i32* list SIZE(>= n),
             const i64* need_start SIZE(n + 1), const i32* need_partner SIZE(LAST(need_start)), const i32* slot SIZE(>= n),
             const u8* accepted SIZE(n), const u8* pending SIZE(n), u8* awake SIZE(n))
{
    FOR_EACH(c, n) {
        bool seen = accepted[c];
        for (i64 need = need_start[c]; pending[c] && !seen && need < need_start[c + 1]; ++need)
            seen = slot[need_partner[need]] >= 0 && accepted[slot[need_partner[need]]];
        for (i64 e = list_start[c]; pending[c] && !seen && e < list_end[c]; ++e)
            seen = slot[list[e]] >= 0 && accepted[slot[list[e]]];
        awake[c] = pending[c] && seen;
    }
}

KERNEL(carry_out)(i64 n, const i32* candidate SIZE(n), const u8* accepted SIZE(n), const i32* proposed SIZE(n),
                  const u8* forward SIZE(rank), const i32* moves SIZE(33 ** D * D), const real* decoded SIZE(rank * D),
                  const double* periods SIZE(D), double step, real* current SIZE(rank * D), i32* rank SIZE(>= n))
{
    FOR_EACH(c, n) {
        if (!accepted[c]) continue;
        const i64 v = candidate[c];
        i32 move[DIMENSIONS];
        rank[v] = proposed[c];
        turn(moves + (i64)proposed[c] * DIMENSIONS, forward[v], move);
        for (i32 axis = 0; axis < DIMENSIONS; ++axis)
            current[v * DIMENSIONS + axis] = moved(decoded[v * DIMENSIONS + axis], move[axis], step, periods[axis]);
    }
}
