// Moves of decoded particles, within their bound, that restore the groups of the original.
//
// The input is a list of needs: must-link and cannot-link constraints between two particles. Each end of a need is a
// candidate that may move. A move is a small vector of whole steps (a step is an eighth of the bound), so that it is stored
// as one number. It is allowed if the coordinate stays within the bound, if no listed particle of another group comes
// within the linking length, and if every lost friend is still a friend of a friend. Candidates outside each other's lists
// may move at the same time. Lists are limited, so a proof for all particles follows. Gather form: a candidate reads neighbours,
// writes itself.
//
// Work is bounded: a candidate evaluates at most `most` distances in a launch, and a few more for the move at hand. What it
// does depends on its neighbours alone, not on the number of other candidates.
#include "portable.cuh"
#include "space.cuh"
#include "moves.cuh"
#include "margin.cuh"

static const i32 UNASKED = -1;         // in place of a group: too small to count, no constraints among such particles

namespace {
// The candidates, their neighbours and their constraints.
struct Vicinity {
    const i64* list_start;   // the neighbours of each candidate
    const i64* list_end;
    const i32* list;
    const i64* need_start;
    const i32* need_partner;   // for each need of a candidate: the particle at the other end,
    const i32* need_kind;      // and twice the number of the linking length, plus 1 for a cannot-link constraint
    const i32* group;
    i64 lengths, particles;
    const double* near_squared;   // kernels/margin.cuh has the rule
    const double* length_squared;
    const double* far_squared;
    const real* original;
    const real* current;
    const Space& space;
    i64 most;
    mutable i64 spent;         // distances evaluated so far
    u8* used;                  // as for the margin; may be null

    DEVICE_METHOD double distance(const real* at, i32 k) const
    {
        ++spent;
        return distance_squared<true>(at, current + (i64)k * DIMENSIONS, space);
    }

    DEVICE_METHOD Margin margin(i64 l) const
    {
        const Margin found = {near_squared[l], length_squared[l], far_squared[l], original, space, false, used};
        return found;
    }

    DEVICE_METHOD bool met(i64 need, i32 v, double distance) const
    {
        const Margin at = margin(need_kind[need] >> 1);
        const i32 k = need_partner[need];
        return need_kind[need] & 1 ? !at.conflict(distance, v, k) : at.linked(distance, v, k);
    }

    // How many needs of candidate c, particle v, are satisfied at a position.
    DEVICE_METHOD i32 needs_met(i64 c, i32 v, const real* at) const
    {
        i32 count = 0;
        for (i64 need = need_start[c]; need < need_start[c + 1]; ++need)
            count += met(need, v, distance(at, need_partner[need]));
        return count;
    }

    // The summed violation of all needs of candidate c, in the unit of the linking lengths.
    DEVICE_METHOD double missing(i64 c, i32 v, const real* at) const
    {
        double sum = 0;
        for (i64 need = need_start[c]; need < need_start[c + 1]; ++need) {
            const double d = distance(at, need_partner[need]);
            const i32 kind = need_kind[need];
            if (!met(need, v, d))
                sum += kind & 1 ? sqrt(far_squared[kind >> 1]) - sqrt(d) : sqrt(d) - sqrt(near_squared[kind >> 1]);
        }
        return sum;
    }

    // Whether k, a friend that candidate c, particle v, loses, remains a friend of one of its friends.
    DEVICE_METHOD bool has_witness(i64 c, i32 v, const real* to, i32 k, i64 l) const
    {
        const i32 own = group[l * particles + k];
        const Margin at = margin(l);
        for (i64 e = list_start[c]; e < list_end[c] && spent < most; ++e) {
            const i32 w = list[e];
            if (w != k && group[l * particles + w] == own && at.linked(distance(to, w), v, w)
                && at.linked(distance(current + (i64)w * DIMENSIONS, k), w, k))
                return true;
        }
        return false;
    }

    // Whether candidate c, particle v, can move without making a false link or losing a link that has no witness.
    DEVICE_METHOD bool allowed(i64 c, i32 v, const real* to) const
    {
        const real* from = current + (i64)v * DIMENSIONS;
        for (i64 e = list_start[c]; e < list_end[c]; ++e) {
            const i32 k = list[e];
            const double after = distance(to, k);
            for (i64 l = 0; l < lengths; ++l) {
                const i32 mine = group[l * particles + v], theirs = group[l * particles + k];
                const Margin at = margin(l);
                if (mine != theirs) {
                    if (at.conflict(after, v, k) && !at.conflict(distance(from, k), v, k)) return false;
                } else if (mine != UNASKED && !at.linked(after, v, k) && at.linked(distance(from, k), v, k)
                           && !has_witness(c, v, to, k, l)) {
                    return false;
                }
            }
        }
        return true;
    }
};
}

namespace {
// The bound of one particle, and the positions that its moves lead to.
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
            // As in bounds.cu: a relative error is not measured across a face of the box.
            const double error = relative ? (double)at[axis] - (double)original[axis]
                                          : difference<true>(at[axis], original[axis], space, axis);
            const double most = most_error(original[axis], bound, relative, space.period[axis]);
            if ((error < 0 ? -error : error) > most) return false;
        }
        return true;
    }
};
}

// A quick estimate of how many needs of a candidate a move satisfies, never too low: most moves are rejected by it, without
// the rounding of positions and the exact test. On a CPU it is made for a tile of moves at a time, in loops for a processor's
// wide registers; a GPU's thread has no registers for that, and takes one move at a time.
static const i32 MOST_NEEDS = 16;   // a candidate with more is not moved
static const i32 WHOLE = 32;        // moves behind the last whole number of these are not estimated, on either machine
static const i32 TILE = ON_CPU ? WHOLE : 1;
static const i64 AHEAD = 8;         // candidates between the one at hand and the one whose positions are fetched

namespace {
struct Estimate {
    double apart[MOST_NEEDS][DIMENSIONS];             // from each partner, along the axes in which moves are named
    double least[MOST_NEEDS], most[MOST_NEEDS];       // the squared distances that satisfy
    double period[DIMENSIONS], step;
    i32 count;

    DEVICE_METHOD void prepare(const Vicinity& near, const Reachable& reachable, i64 c, u8 forward)
    {
        const Space& space = reachable.space;
        double size = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double x = fabs((double)reachable.decoded[axis]) + FINE * reachable.step + space.period[axis];
            size = x > size ? x : size;
            period[axis] = space.period[axis];
        }
        if (forward) {
            period[0] = space.period[(forward - 1) / 2];
            period[(forward - 1) / 2] = space.period[0];
        }
        step = reachable.step;
        const double slack = size * (sizeof(real) == 4 ? 0x1p-20 : 0x1p-48);   // more than the rounding of a coordinate
        count = (i32)(near.need_start[c + 1] - near.need_start[c]);
        for (i32 n = 0; n < count && n < MOST_NEEDS; ++n) {
            const i64 need = near.need_start[c] + n;
            const real* partner = near.current + (i64)near.need_partner[need] * DIMENSIONS;
            const i64 l = near.need_kind[need] >> 1;
            const bool conflicts = near.need_kind[need] & 1;
            const double low = sqrt(near.length_squared[l]) - slack, high = sqrt(near.length_squared[l]) + slack;
            least[n] = !conflicts || low < 0 ? 0 : low * low;
            most[n] = conflicts ? 1e300 : high * high;
            double from[DIMENSIONS];
            for (i32 axis = 0; axis < DIMENSIONS; ++axis)
                from[axis] = difference<true>(reachable.decoded[axis], partner[axis], space, axis);
            turn_back(from, forward, apart[n]);
        }
    }
};
}

// How many needs each move of a tile satisfies. `along` are the moves from the first of the tile on, one axis after the
// other, `moves` apart.
WIDE DEVICE void estimate_met(const Estimate& estimate, const i32* along, i64 moves, bool whole, i32* met)
{
    if (!whole || estimate.count > MOST_NEEDS) {
        for (i32 t = 0; t < TILE; ++t) met[t] = estimate.count;
        return;
    }
    for (i32 t = 0; t < TILE; ++t) met[t] = 0;
    for (i32 n = 0; n < estimate.count; ++n) {
        double sum[TILE];
        for (i32 t = 0; t < TILE; ++t) sum[t] = 0;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double from = estimate.apart[n][axis], period = estimate.period[axis], step = estimate.step;
            for (i32 t = 0; t < TILE; ++t) {   // a period of 0 where space is open
                const double d = fabs(from + along[axis * moves + t] * step), image = fabs(d - period);
                const double least = image < d ? image : d;
                sum[t] += least * least;
            }
        }
        const double least = estimate.least[n], most = estimate.most[n];
        for (i32 t = 0; t < TILE; ++t) met[t] += (sum[t] >= least) & (sum[t] <= most);
    }
}

// The violated constraints among pairs of particles; `kind` as for candidates. `used` as for `find_disturbed`.
KERNEL(find_missed)(i64 n, const i32* pair SIZE(2 * n), const i32* kind SIZE(n), i64 lengths, i64 particles,
                    const double* near_squared SIZE(lengths), const double* length_squared SIZE(lengths),
                    const double* far_squared SIZE(lengths), const double* periods SIZE(D),
                    const real* original SIZE(particles * D), const real* current SIZE(particles * D),
                    u8* used SIZE(particles), u8* missed SIZE(n))
{
    (void)lengths;
    (void)particles;
    const Space space = space_of(periods, 0);
    FOR_EACH(m, n) {
        const i32 i = pair[2 * m], j = pair[2 * m + 1], l = kind[m] >> 1;
        const Margin margin = {near_squared[l], length_squared[l], far_squared[l], original, space, false, used};
        const double d = distance_squared<true>(current + (i64)i * DIMENSIONS, current + (i64)j * DIMENSIONS, space);
        missed[m] = kind[m] & 1 ? margin.conflict(d, i, j) : !margin.linked(d, i, j);
    }
}

// Which of these particles may be in a violated constraint: in a conflict, or, after a move, no longer linked to a particle
// of their group to which they were linked as decoded, and that no neighbour links to them now. Moves of one round can do that
// together where one does not see the other. Particles beyond the lists are not seen here. `used` is set to 1 for particles
// of pairs that an exemption decided about: every thread that writes there writes the same.
KERNEL(find_disturbed)(i64 n, const i32* checked SIZE(n), const i64* list_start SIZE(n), const i64* list_end SIZE(n),
                       const i32* list SIZE(>= 0), const i32* group SIZE(lengths * particles), i64 lengths, i64 particles,
                       const double* near_squared SIZE(lengths), const double* length_squared SIZE(lengths),
                       const double* far_squared SIZE(lengths), const double* periods SIZE(D),
                       const real* original SIZE(particles * D), const real* decoded SIZE(particles * D),
                       const real* current SIZE(particles * D), const i32* rank SIZE(particles), i64 most,
                       u8* used SIZE(particles), u8* disturbed SIZE(n))
{
    const Space space = space_of(periods, 0);
    FOR_EACH(c, n) {
        const Vicinity near = {list_start, list_end, list, 0, 0, 0, group, lengths, particles, near_squared, length_squared,
                               far_squared, original, current, space, most, 0, used};
        const i32 v = checked[c];
        const real* here = current + (i64)v * DIMENSIONS;
        bool found = false;
        for (i64 e = list_start[c]; !found && e < list_end[c]; ++e) {
            const i32 k = list[e];
            const double d = near.distance(here, k);
            for (i64 l = 0; l < lengths && !found; ++l) {
                const i32 mine = group[l * particles + v];
                const Margin at = near.margin(l);
                if (mine != group[l * particles + k]) {
                    found = at.conflict(d, v, k);
                } else if (rank[v] && mine != UNASKED && !at.linked(d, v, k)) {
                    const real *from = decoded + (i64)v * DIMENSIONS, *to = decoded + (i64)k * DIMENSIONS;
                    found = at.linked(distance_squared<true>(from, to, space), v, k) && !near.has_witness(c, v, here, k, l);
                }
            }
        }
        disturbed[c] = found;
    }
}

// How far these particles are from their decoded positions.
KERNEL(measure_moves)(i64 n, const i32* index SIZE(n), const real* decoded SIZE(particles * D),
                      const real* current SIZE(particles * D), i64 particles, const double* periods SIZE(D),
                      double* displacement SIZE(n))
{
    (void)particles;
    const Space space = space_of(periods, 0);
    FOR_EACH(m, n) {
        const i64 at = (i64)index[m] * DIMENSIONS;
        displacement[m] = sqrt(distance_squared<true>(decoded + at, current + at, space));
    }
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

DEVICE void consider(const Vicinity& near, const Reachable& reachable, i64 c, i32 v, const i32* move, i32 rank,
                     i64 partial, Choice& best)
{
    real at[DIMENSIONS];
    if (!reachable.place(move, at)) return;
    const i32 met = near.needs_met(c, v, at);
    if (met < best.met || (met == best.met && !partial)) return;
    const double missing = partial ? near.missing(c, v, at) : 0;
    if (met == best.met && missing >= best.missing - 0.05 * reachable.step) return;
    if (!near.allowed(c, v, at)) return;
    best.rank = rank;
    best.met = met;
    best.missing = missing;
}

// For each active candidate with violated needs (`pending`), the move that satisfies most of them, and the simplest of
// these. The moves tried are those up to `last_rank`; with `target` (a displacement for each candidate), those near it;
// with `partial`, also moves that only reduce the violation. `score` is 0 if there is none. `cost` is the storage cost of
// the fact that the candidate moved, and `rank_cost` of the move, both in 1/64 of a bit. `active` may end with -1, for nobody.
KERNEL(propose)(i64 n, const i32* active SIZE(n), const i32* candidate SIZE(>= n),
                const i64* list_start SIZE(candidate), const i64* list_end SIZE(candidate),
                const i32* list SIZE(>= candidate), const i64* need_start SIZE(candidate + 1),
                const i32* need_partner SIZE(LAST(need_start)), const i32* need_kind SIZE(need_partner),
                const i32* group SIZE(lengths * particles), i64 lengths, i64 particles,
                const double* near_squared SIZE(lengths), const double* length_squared SIZE(lengths),
                const double* far_squared SIZE(lengths), const double* periods SIZE(D),
                const real* original SIZE(particles * D), const real* decoded SIZE(particles * D),
                const real* current SIZE(particles * D), double bound, i64 relative, double step,
                const u8* forward SIZE(particles), i64 all_moves, const i32* moves SIZE(all_moves * D),
                const i32* along SIZE(all_moves * D), const i32* ranks SIZE(all_moves), i64 last_rank, i64 refining,
                i64 with_target, const double* target SIZE(candidate * D), i64 partial, const i32* cost SIZE(candidate),
                const i32* rank_cost SIZE(all_moves), const i32* rank SIZE(particles), i64 most,
                i32* proposed SIZE(candidate), i64* score SIZE(candidate), u8* pending SIZE(candidate),
                i64* spent SIZE(candidate), u8* gave_up SIZE(candidate))
{
    const Space space = space_of(periods, 0);
    FOR_EACH(a, n) {
        if (active[a] < 0) continue;
        if (a + AHEAD < n && active[a + AHEAD] >= 0) {   // candidates are neighbours in space, but not in memory
            const i64 later = candidate[active[a + AHEAD]];
            PREFETCH(current + later * DIMENSIONS);
            PREFETCH(decoded + later * DIMENSIONS);
            PREFETCH(original + later * DIMENSIONS);
            PREFETCH(rank + later);
        }
        const Vicinity near = {list_start, list_end, list, need_start, need_partner, need_kind, group, lengths, particles,
                               near_squared, length_squared, far_squared, original, current, space, most, 0, 0};
        const i64 c = active[a];
        const i32 v = candidate[c];
        score[c] = 0;
        pending[c] = 0;
        const i32 all = (i32)(need_start[c + 1] - need_start[c]);
        const real* from = current + (i64)v * DIMENSIONS;
        Choice best = {rank[v], near.needs_met(c, v, from), partial ? near.missing(c, v, from) : 0};
        const i32 met_before = best.met;
        if (met_before == all || rank[v] == PINNED) continue;
        pending[c] = 1;
        const Reachable reachable = {
            original + (i64)v * DIMENSIONS, decoded + (i64)v * DIMENSIONS, space, bound, step, relative};
        Estimate estimate;
        estimate.prepare(near, reachable, c, forward[v]);
        i32 move[DIMENSIONS], likely[TILE];
        for (i64 r = 0; r <= last_rank && best.met < all && near.spent < most; ++r) {
            if (r % TILE == 0) estimate_met(estimate, along + r, all_moves, r < all_moves - all_moves % WHOLE, likely);
            ++near.spent;
            if (!partial && likely[r % TILE] <= best.met) continue;
            turn(moves + r * DIMENSIONS, forward[v], move);
            consider(near, reachable, c, v, move, (i32)r, partial, best);
        }
        // More bits of the residual.
        for (i32 fine = 4; refining && fine > 0 && best.met < all && near.spent < most; fine /= 2) {
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                const double residual = -difference<true>(reachable.decoded[axis], reachable.original[axis], space, axis);
                i32 steps = fine * (2 * (i32)floor(residual / step / (2 * fine)) + 1);
                steps = steps > 8 - fine ? 8 - fine : steps;
                move[axis] = steps < fine - 8 ? fine - 8 : steps;
            }
            ++near.spent;
            consider(near, reachable, c, v, move, rank_of(move, forward[v], ranks), partial, best);
        }
        for (i32 grid = 8; with_target && grid > 0 && best.met < all; grid /= 2)
            for (i32 scale = 1; scale <= 2 && best.met < all && near.spent < most; ++scale) {
                for (i32 axis = 0; axis < DIMENSIONS; ++axis)
                    move[axis] = grid * (i32)floor(scale * target[c * DIMENSIONS + axis] / (step * grid) + 0.5);
                const i32 found = rank_of(move, forward[v], ranks);
                ++near.spent;
                if (found != PINNED) consider(near, reachable, c, v, move, found, partial, best);
            }
        spent[c] += near.spent;
        gave_up[c] |= near.spent >= most;
        if (best.rank == rank[v]) continue;
        proposed[c] = best.rank;
        score[c] = ((i64)(best.met - met_before) << 20) + (1 << 19) - (rank[v] ? 0 : cost[c]) - rank_cost[best.rank];
    }
}

// For each candidate that has moved, a simpler move that satisfies as many needs; no move is the simplest.
KERNEL(relax)(i64 n, const i32* active SIZE(n), const i32* candidate SIZE(>= n), const i64* list_start SIZE(candidate),
              const i64* list_end SIZE(candidate), const i32* list SIZE(>= candidate),
              const i64* need_start SIZE(candidate + 1), const i32* need_partner SIZE(LAST(need_start)),
              const i32* need_kind SIZE(need_partner), const i32* group SIZE(lengths * particles), i64 lengths,
              i64 particles, const double* near_squared SIZE(lengths), const double* length_squared SIZE(lengths),
              const double* far_squared SIZE(lengths),
              const double* periods SIZE(D), const real* original SIZE(particles * D),
              const real* decoded SIZE(particles * D), const real* current SIZE(particles * D), double bound, i64 relative,
              double step, const u8* forward SIZE(particles), const i32* moves SIZE(33 ** D * D), i64 last_rank,
              const i32* rank SIZE(particles), i64 most, i32* proposed SIZE(candidate), i64* score SIZE(candidate),
              i64* spent SIZE(candidate), u8* gave_up SIZE(candidate))
{
    const Space space = space_of(periods, 0);
    FOR_EACH(a, n) {
        if (active[a] < 0) continue;
        const Vicinity near = {list_start, list_end, list, need_start, need_partner, need_kind, group, lengths, particles,
                               near_squared, length_squared, far_squared, original, current, space, most, 0, 0};
        const i64 c = active[a];
        const i32 v = candidate[c];
        score[c] = 0;
        if (rank[v] <= 0) continue;
        const Reachable reachable = {
            original + (i64)v * DIMENSIONS, decoded + (i64)v * DIMENSIONS, space, bound, step, relative};
        const i32 met_before = near.needs_met(c, v, current + (i64)v * DIMENSIONS);
        real at[DIMENSIONS];
        i32 move[DIMENSIONS];
        for (i64 r = 0; r < rank[v] && r <= last_rank && near.spent < most; ++r) {
            turn(moves + r * DIMENSIONS, forward[v], move);
            if (!reachable.place(move, at) || near.needs_met(c, v, at) < met_before || !near.allowed(c, v, at))
                continue;
            proposed[c] = (i32)r;
            score[c] = rank[v] - r + (r ? 0 : 1 << 20);
            break;
        }
        spent[c] += near.spent;
        gave_up[c] |= near.spent >= most;
    }
}

DEVICE bool beats(i64 c, i32 other, const i32* candidate, const i64* score)
{
    return other < 0 || score[other] < score[c] || (score[other] == score[c] && candidate[other] >= candidate[c]);
}

// A Luby-style independent set: a proposal is accepted if no listed candidate has a better one; ties go to the smaller
// index. `slot` is each particle's number among the candidates, or -1. Needs are symmetric, so both ends of a need never
// move in one round. Lists are symmetric unless own-group neighbours are cut, or a neighbour's interaction radius is
// larger. One end of a pair may therefore miss the other, and both may move. Such a round can break a link, but every
// broken pair is found by the proof in the end. The result is deterministic in any case. A round in which no candidate was
// evaluated (not `going`) accepts nothing.
KERNEL(accept)(i64 n, const i32* candidate SIZE(n),
               const i64* list_start SIZE(candidate), const i64* list_end SIZE(candidate),
               const i32* list SIZE(>= candidate), const i64* need_start SIZE(candidate + 1),
               const i32* need_partner SIZE(LAST(need_start)), const i32* slot SIZE(>= candidate),
               const i64* score SIZE(candidate), const u8* going SIZE(1), u8* accepted SIZE(candidate))
{
    FOR_EACH(c, n) {
        bool best = going[0] && score[c] > 0;
        for (i64 need = need_start[c]; best && need < need_start[c + 1]; ++need)
            best = beats(c, slot[need_partner[need]], candidate, score);
        for (i64 e = list_start[c]; best && e < list_end[c]; ++e) best = beats(c, slot[list[e]], candidate, score);
        accepted[c] = best;
    }
}

// Carries out the accepted proposals, and marks the candidates to evaluate again: those that move, and all that they have in
// their lists or in a need. Race: all threads that write to the same place write the same value.
KERNEL(carry_out)(i64 n, const u8* accepted SIZE(n), const i32* candidate SIZE(n),
                  const i64* list_start SIZE(candidate), const i64* list_end SIZE(candidate),
                  const i32* list SIZE(>= candidate), const i64* need_start SIZE(candidate + 1),
                  const i32* need_partner SIZE(LAST(need_start)), const i32* slot SIZE(rank),
                  const i32* proposed SIZE(candidate), const u8* forward SIZE(rank), const i32* moves SIZE(33 ** D * D),
                  const real* decoded SIZE(rank * D), const double* periods SIZE(D), double step,
                  real* current SIZE(rank * D), i32* rank SIZE(>= n), i64* score SIZE(candidate), u8* awake SIZE(candidate))
{
    FOR_EACH(c, n) {
        if (!accepted[c]) continue;
        const i64 v = candidate[c];
        i32 move[DIMENSIONS];
        rank[v] = proposed[c];
        score[c] = 0;
        turn(moves + (i64)proposed[c] * DIMENSIONS, forward[v], move);
        for (i32 axis = 0; axis < DIMENSIONS; ++axis)
            current[v * DIMENSIONS + axis] = moved(decoded[v * DIMENSIONS + axis], move[axis], step, periods[axis]);
        awake[c] = 1;
        for (i64 need = need_start[c]; need < need_start[c + 1]; ++need)
            if (slot[need_partner[need]] >= 0) awake[slot[need_partner[need]]] = 1;
        for (i64 e = list_start[c]; e < list_end[c]; ++e)
            if (slot[list[e]] >= 0) awake[slot[list[e]]] = 1;
    }
}
