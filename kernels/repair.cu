// Moving decoded particles, within their bound, until their groups are those of the original.
//
// What has to change is a list of needs: two particles that must be apart, or must touch. Each end of a need is a candidate
// that may move. A move is a small vector of whole steps (a step is an eighth of the bound), so that it is stored as one
// number; it is allowed when the coordinate stays within the bound, when no particle of another group comes within reach,
// and when every friend that is lost is still a friend of a friend. So no move breaks what was right, and candidates that
// do not see each other can move at the same time. All in gather form: a candidate reads its neighbours and writes itself.
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"

static const i32 FINE = 16;            // a move has at most this many steps along an axis: twice the bound
static const i32 PINNED = -1;          // instead of a move: the particle has its original coordinates
static const i32 UNASKED = -1;         // in place of a group: among themselves, nothing is asked of such particles

// The bound along one axis. Moves stop short of it by more than what rounding could take away.
DEVICE double most_error(real original, double bound, i64 relative, double period)
{
    const double x = (double)original < 0 ? -(double)original : (double)original;
    const double most = relative ? bound * x : bound;
    const double size = x + most > period ? x + most : period;
    return most - size * 0x1p-50;
}

// Where a number of steps takes a coordinate; the decoder calls this, too. In a periodic box it stays inside.
DEVICE real moved(real decoded, i32 steps, double step, double period)
{
    if (steps == 0) return decoded;
    double x = (double)decoded + steps * step;
    if (period > 0) {
        if (x < 0) x += period;
        if (x >= period) x -= period;
    }
    const real rounded = (real)x;
    return period > 0 && (double)rounded >= period ? (real)0 : rounded;
}

// Moves are named as they look from a particle's own frame: `forward` is the axis and direction in which it would go if the
// particle beside it that is just about a linking length away had to come nearer, or farther. 0: as they are; otherwise 1 plus
// twice the axis, plus 1 against the axis.
DEVICE void turn(const i32* named, u8 forward, i32* move)
{
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) move[axis] = named[axis];
    if (!forward) return;
    const i32 axis = (forward - 1) / 2, first = named[0];
    move[0] = named[axis];
    move[axis] = (forward - 1) & 1 ? -first : first;
}

DEVICE void turn_back(const i32* move, u8 forward, i32* named)
{
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) named[axis] = move[axis];
    if (!forward) return;
    const i32 axis = (forward - 1) / 2;
    named[axis] = move[0];
    named[0] = (forward - 1) & 1 ? -move[axis] : move[axis];
}

KERNEL(move_particles)(i64 n, const i32* index, const u16* rank, const u8* forward, const i32* moves, const double* periods,
                       double step, real* position)
{
    FOR_EACH(e, n) {
        i32 move[DIMENSIONS];
        turn(moves + (i64)rank[e] * DIMENSIONS, forward[e], move);
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            real* x = position + (i64)index[e] * DIMENSIONS + axis;
            *x = moved(*x, move[axis], step, periods[axis]);
        }
    }
}

// Where each particle stands among the sorted ones.
KERNEL(invert)(i64 n, const i32* order, i32* place)
{
    FOR_EACH(s, n) place[order[s]] = (i32)s;
}

DEVICE i32 run_of(const i32* first, i64 runs, i32 place)
{
    i64 low = 0, high = runs;
    while (high - low > 1) {
        const i64 middle = (low + high) / 2;
        if (first[middle] <= place) low = middle;
        else high = middle;
    }
    return (i32)low;
}

namespace {
// The neighbours of a candidate: what a move has to be careful with. All within `range` in the decoded positions, but of its
// own group only `most`, and none farther than the square root of `own_squared`.
struct Around {
    const Blocks& blocks;
    const u64* occupied;
    const i32* first_cell;
    const i32* first;
    const real* sorted;
    const i32* order;
    const Space& space;
    const u64* reach;   // for each of 3^D offsets, in order, and each cell: the cells within range
    const i32* group;   // of each linking length, of each particle
    i64 lengths, particles, most;
    double own_squared;
    i32* list;
    i64 room, found, own;
    i64 here;           // the block whose neighbours are known: candidates come in the order of the cells
    i64 near[27];
    i32 near_offset[27], near_count;

    DEVICE_METHOD bool same_group(i32 i, i32 j) const
    {
        for (i64 l = 0; l < lengths; ++l)
            if (group[l * particles + i] != group[l * particles + j]) return false;
        return true;
    }

    DEVICE_METHOD bool unasked(i32 i, i32 j) const
    {
        for (i64 l = 0; l < lengths; ++l)
            if (group[l * particles + i] != UNASKED || group[l * particles + j] != UNASKED) return false;
        return true;
    }

    DEVICE_METHOD void cell(i32 v, i32 place, i32 c)
    {
        for (i32 s = first[c]; s < first[c + 1]; ++s) {
            const double d = distance_squared<true>(sorted + (i64)place * DIMENSIONS, sorted + (i64)s * DIMENSIONS, space);
            if (s == place || d > space.length_squared) continue;
            const i32 k = order[s];
            if (unasked(v, k) || (same_group(v, k) && (d > own_squared || own++ >= most))) continue;
            if (found < room) list[found] = k;
            ++found;
        }
    }

    // Goes through all cells within range of a candidate, which stands at a place among the sorted ones.
    DEVICE_METHOD void search(i32 v, i32 place, i64 cells)
    {
        const i32 c = run_of(first, cells, place), k = run_of(first_cell, blocks.count, c);
        if (k != here) find_blocks(k);
        u64 rest = occupied[k];
        for (i32 before = first_cell[k]; before < c; ++before) rest &= rest - 1;
        const i32 within = lowest_bit(rest);
        found = own = 0;
        for (i32 b = 0; b < near_count; ++b) {
            const i64 m = near[b];
            for (u64 theirs = occupied[m] & reach[64 * near_offset[b] + within]; theirs; theirs &= theirs - 1)
                cell(v, place, first_cell[m] + count_bits(occupied[m] & below_lowest_bit(theirs)));
        }
    }

    // The blocks around block k; in a small box, one of them may be found through several of its images.
    DEVICE_METHOD void find_blocks(i32 k)
    {
        here = k;
        near_count = 0;
        i64 at[DIMENSIONS];
        u64 key = blocks.key[k];
        for (i32 axis = LAST; axis >= 0; --axis) {
            at[axis] = (i64)(key & ((1ull << blocks.bits[axis]) - 1));
            key >>= blocks.bits[axis];
        }
        for (i32 r = 0; r < (DIMENSIONS == 3 ? 9 : 3); ++r) {
            const i32 steps[] = {DIMENSIONS == 3 ? r / 3 - 1 : r - 1, r % 3 - 1};
            u64 base = 0;
            bool exists = true;
            for (i32 axis = 0; axis < LAST; ++axis) {
                i64 x = at[axis] + steps[axis];
                exists = exists && inside(x, blocks.along[axis]);
                base = base << blocks.bits[axis] | (u64)x;
            }
            if (exists) find_in_row(base << blocks.bits[LAST], at[LAST], r);
        }
    }

    DEVICE_METHOD void find_in_row(u64 base, i64 middle, i32 r)
    {
        i64 m = seek(blocks.key, blocks.count, 0, base + (u64)(middle > 0 ? middle - 1 : 0));
        for (i32 step = -1; step <= 1; ++step) {
            i64 z = middle + step;
            if (!inside(z, blocks.along[LAST])) continue;
            if (z == middle + step) while (m < blocks.count && blocks.key[m] < base + (u64)z) ++m;
            const i64 hit = z == middle + step ? m : seek(blocks.key, blocks.count, 0, base + (u64)z);
            if (hit == blocks.count || blocks.key[hit] != base + (u64)z) continue;
            near[near_count] = hit;
            near_offset[near_count++] = 3 * r + step + 1;
        }
    }

    // Whether there are blocks at this coordinate, or at its image in a grid that closes upon itself.
    DEVICE_METHOD bool inside(i64& x, i64 along) const
    {
        if (x >= 0 && x < along) return true;
        x += x < 0 ? along : -along;
        return blocks.closed;
    }
};
}

// Each candidate has `room` entries of the list, from `start` on. `found` is how many neighbours it has: those that have no
// room are left out, and it has to be asked about again.
KERNEL(list_around)(i64 chunks, i64 n, const i32* candidate, const i32* place, i64 cells, i64 count, const u64* block_key,
                    const u64* occupied, const i32* first_cell, const i32* first, const real* sorted, const double* periods,
                    const i64* blocks_along, const i64* block_bits, const u64* reach, i64 closed, double range_squared,
                    double own_squared, const i32* order, const i32* group, i64 lengths, i64 particles, i64 most,
                    const i64* start, const i64* room, i64* found, i32* list)
{
    const Space space = space_of(periods, range_squared);
    const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
    FOR_EACH_UNEVEN(p, chunks) {
        Around around = {blocks, occupied, first_cell, first, sorted, order, space, reach, group, lengths, particles, most,
                         own_squared, 0, 0, 0, 0, -1, {0}, {0}, 0};
        for (i64 c = chunk_begin(p, chunks, n); c < chunk_begin(p + 1, chunks, n); ++c) {
            around.list = list + start[c];
            around.room = room[c];
            around.search(candidate[c], place[candidate[c]], cells);
            found[c] = around.found;
        }
    }
}

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
            const double error = difference<true>(at[axis], original[axis], space, axis);
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
KERNEL(propose)(i64 n, const i32* active, const i32* candidate, const i64* list_start, const i64* list_end, const i32* list, const i64* need_start,
                const i32* need_partner, const i32* need_kind, const i32* group, i64 lengths, i64 particles,
                const double* near_squared, const double* far_squared, const double* periods, const real* original,
                const real* decoded, const real* current, double bound, i64 relative, double step, const u8* forward,
                const i32* moves, const i32* ranks, i64 last_rank, i64 refining, i64 with_target, const double* target, i64 partial,
                const i32* cost, const i32* rank_cost, const i32* rank, i32* proposed, i64* score, u8* pending)
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
KERNEL(relax)(i64 n, const i32* active, const i32* candidate, const i64* list_start, const i64* list_end, const i32* list, const i64* need_start,
              const i32* need_partner, const i32* need_kind, const i32* group, i64 lengths, i64 particles,
              const double* near_squared, const double* far_squared, const double* periods, const real* original,
              const real* decoded, const real* current, double bound, i64 relative, double step, const u8* forward,
              const i32* moves, i64 last_rank, const i32* rank, i32* proposed, i64* score)
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

// Which proposals are carried out: those that no candidate in sight beats. `slot` is each particle's number among the
// candidates, or -1. Two candidates see each other or neither does, so no two moves of one round touch the same pair.
KERNEL(accept)(i64 n, const i32* candidate, const i64* list_start, const i64* list_end, const i32* list, const i64* need_start,
               const i32* need_partner, const i32* slot, const i64* score, u8* accepted)
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
KERNEL(wake)(i64 n, const i64* list_start, const i64* list_end, const i32* list, const i64* need_start,
             const i32* need_partner, const i32* slot, const u8* accepted, const u8* pending, u8* awake)
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

KERNEL(carry_out)(i64 n, const i32* candidate, const u8* accepted, const i32* proposed, const u8* forward, const i32* moves,
                  const real* decoded, const double* periods, double step, real* current, i32* rank)
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

// One step of projected gradient descent on half the squared misses of all needs, and of every pair of particles of several
// groups that would come within reach. `displaced` are the candidates' displacements so far; particles that are no
// candidates stay. A step shares each miss between its two ends and averages over a candidate's misses, so it needs no
// tuning and no unit of length; it is then cut to the bound. Two particles in one place are pushed along the first axis.
KERNEL(descend)(i64 n, const i32* candidate, const i64* list_start, const i64* list_end, const i32* list, const i64* need_start,
                const i32* need_partner, const i32* need_kind, const i32* group, i64 lengths, i64 particles,
                const double* near_squared, const double* far_squared, const double* periods, const real* original,
                const real* decoded, double bound, i64 relative, const i32* slot, double margin, const double* displaced,
                double* next, double* loss, i32* missed)
{
    const Space space = space_of(periods, 0);
    FOR_EACH(c, n) {
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
                apart[axis] = difference<true>(decoded[(i64)v * DIMENSIONS + axis], decoded[(i64)k * DIMENSIONS + axis], space, axis)
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
        loss[c] = total / 2;
        missed[c] = unmet;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            const double residual = -difference<true>(decoded[(i64)v * DIMENSIONS + axis], original[(i64)v * DIMENSIONS + axis], space, axis);
            const double most = most_error(original[(i64)v * DIMENSIONS + axis], bound, relative, space.period[axis]);
            double to = here[axis] + (active ? push[axis] / active : 0);
            to = to > residual + most ? residual + most : to;
            next[c * DIMENSIONS + axis] = to < residual - most ? residual - most : to;
        }
    }
}

// What a decoder can tell, without searching, about how likely a particle has been moved, and where to: whether one of the
// particles beside it in the file is just about a linking length away, and how near the nearest of them is.
static const i32 BESIDE = 8, RING = 16;
static const i32 STEPS = 5;   // of how far a distance is from a linking length, in bounds, and of its share of the length

// Particles of a chunk of the file, from the first on; `off` is how far from a linking length their distance is.
struct Beside {
    double squared[RING][BESIDE], off[RING][BESIDE];   // from particle i to i + 1 + o, at row i & (RING - 1)
};

DEVICE void look_ahead(const real* position, i64 i, i64 last, const Space& space, i64 lengths, const double* length,
                       Beside& beside)
{
    const i64 row = i & (RING - 1);
    for (i32 o = 0; o < BESIDE; ++o) {
        double squared = 1e300, off = 1e300;
        if (i + 1 + o < last) {
            const real* here = position + i * DIMENSIONS;
            squared = distance_squared<true>(here, here + (1 + o) * DIMENSIONS, space);
            for (i64 l = 0; l < lengths; ++l) {
                const double apart = fabs(squared - length[l] * length[l]) / length[l];
                off = apart < off ? apart : off;
            }
        }
        beside.squared[row][o] = squared;
        beside.off[row][o] = off;
    }
}

// The direction in which a particle would go if it had to be farther from a partner that is nearer than a linking length, or
// nearer to one that is not: along the axis where the two are farthest apart.
DEVICE u8 direction(const real* here, const real* partner, const Space& space, bool closer)
{
    double longest = 0;
    u8 forward = 0;
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
        const double d = difference<true>(here[axis], partner[axis], space, axis);
        if (fabs(d) <= longest) continue;
        longest = fabs(d);
        forward = (u8)(1 + 2 * axis + ((d > 0) == closer));
    }
    return forward;
}

DEVICE i32 steps_up_to(double value, const double* thresholds)
{
    i32 count = 0;
    for (i32 s = 0; s < STEPS; ++s) count += value >= thresholds[s];
    return count;
}

// How near: the least squared distance, in squares of the largest linking length. How far from one: the least difference of
// squared distance and squared linking length b, over 2 b times the bound. Both thresholds rise. Particles of several chunks
// of the file do not see each other.
KERNEL(surmise)(i64 runs, i64 n, i64 chunk, const real* position, const double* periods, i64 lengths, const double* length,
                double bound, const double* misses, const double* shares, u8* context, u8* forward)
{
    const Space space = space_of(periods, 0);
    const double largest = length[lengths - 1];
    FOR_EACH(r, runs) {
        const i64 begin = chunk_begin(r, runs, n), end = chunk_begin(r + 1, runs, n);
        Beside beside;
        for (i64 i = begin - BESIDE < 0 ? 0 : begin - BESIDE; i < end; ++i) {
            const i64 first = i / chunk * chunk, last = first + chunk < n ? first + chunk : n;
            look_ahead(position, i, last, space, lengths, length, beside);
            if (i < begin) continue;
            double squared = 1e300, off = 1e300;
            i32 partner = 0;
            for (i32 o = 0; o < BESIDE; ++o) {
                const double d = beside.squared[i & (RING - 1)][o], to = beside.off[i & (RING - 1)][o];
                squared = d < squared ? d : squared;
                off = to < off ? to : off;
            }
            for (i32 o = 0; o < BESIDE && i - 1 - o >= first; ++o) {
                const i64 row = (i - 1 - o) & (RING - 1);
                const double d = beside.squared[row][o], to = beside.off[row][o];
                squared = d < squared ? d : squared;
                off = to < off ? to : off;
            }
            const i32 far = steps_up_to(off / (2 * bound), misses);
            context[i] = (u8)(far * (STEPS + 1) + steps_up_to(squared / (largest * largest), shares));
            forward[i] = 0;
            if (far == STEPS) continue;
            for (i32 o = BESIDE - 1; o >= 0 && !partner; --o)
                if (i - 1 - o >= first && beside.off[(i - 1 - o) & (RING - 1)][o] == off) partner = -1 - o;
            for (i32 o = 0; o < BESIDE && !partner; ++o)
                if (beside.off[i & (RING - 1)][o] == off) partner = 1 + o;
            const double d = partner < 0 ? beside.squared[(i + partner) & (RING - 1)][-1 - partner]
                                         : beside.squared[i & (RING - 1)][partner - 1];
            bool closer = true;
            for (i64 l = 0; l < lengths; ++l)
                if (fabs(d - length[l] * length[l]) / length[l] == off) closer = d > length[l] * length[l];
            forward[i] = direction(position + i * DIMENSIONS, position + (i + partner) * DIMENSIONS, space, closer);
        }
    }
}
