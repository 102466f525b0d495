// The closest particle of another label, among cells so crowded that comparing all of their particles takes too long.
//
// Each crowded cell has a tree of bounding boxes over its particles in the order of a space-filling curve, as in
// linking.cuh, and each node the common label of its particles. The search is branch and bound: a node is left out if it
// has no other label, or is farther away than the closest particle found so far. Each particle is a work item.
#include "portable.cuh"
#include "space.cuh"
#include "cells.cuh"
#include "linking.cuh"
#include "margin.cuh"
#include "unlike.cuh"
#include "around.cuh"

namespace {
// Trees over the crowded cells. Their particles are stored cell by cell; node i of crowd d is entry root[d] + i.
struct Crowds {
    const i32* number;   // of each cell: its number among the crowds, or -1
    const i64* start;    // of each crowd, its first particle
    const i64* root;
    const real* at;
    const i32* label;
    const i32* index;
    const real* box;
    const real* other_box;   // lost links: of each node, where its particles are friends
    const i32* common;   // of each node: the label of all its particles, or MIXED,
    const i32* lowest;   // and the least index of a particle

    DEVICE_METHOD i64 size(i32 d) const { return start[d + 1] - start[d]; }

    DEVICE_METHOD Node node(const real* boxes, i32 d, i32 index) const
    {
        const real* from = boxes + (root[d] + index) * 2 * DIMENSIONS;
        Node found;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            found.low[axis] = from[axis];
            found.high[axis] = from[DIMENSIONS + axis];
        }
        return found;
    }
};
}

// The boxes and labels of all nodes of one level; those of the level below are there. `level` counts from 0, the roots.
KERNEL(bound_crowds)(i64 n, i64 crowds, const i32* crowd SIZE(n), const i32* node SIZE(n),
                     const i64* start SIZE(crowds + 1), const i64* root SIZE(crowds), const real* at SIZE(label * D),
                     const i32* label SIZE(LAST(start)), const i32* index SIZE(label), real* box SIZE(common * 2 * D),
                     i32* common SIZE(>= 1), i32* lowest SIZE(common))
{
    (void)crowds;
    FOR_EACH(k, n) {
        const i32 d = crowd[k], here = node[k];
        const i64 size = start[d + 1] - start[d];
        i32 level = 0;
        while (here >> (level + 1)) ++level;
        const i64 j = here - (1ll << level), own = root[d] + here, left = own + here;
        Node bounds;
        if (level == tree_depth(size)) {
            bounds.begin = start[d] + (size * j >> level);
            bounds.end = start[d] + (size * (j + 1) >> level);
            bound_particles(at, bounds);
            common[own] = label[bounds.begin];
            lowest[own] = index[bounds.begin];
            for (i64 i = bounds.begin + 1; i < bounds.end; ++i) {
                if (label[i] != common[own]) common[own] = MIXED;
                lowest[own] = index[i] < lowest[own] ? index[i] : lowest[own];
            }
        } else {
            for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
                const real *one = box + left * 2 * DIMENSIONS + axis, *other = one + 2 * DIMENSIONS;
                bounds.low[axis] = one[0] < other[0] ? one[0] : other[0];
                bounds.high[axis] = one[DIMENSIONS] > other[DIMENSIONS] ? one[DIMENSIONS] : other[DIMENSIONS];
            }
            common[own] = common[left] == common[left + 1] ? common[left] : MIXED;
            lowest[own] = lowest[left] < lowest[left + 1] ? lowest[left] : lowest[left + 1];
        }
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) {
            box[own * 2 * DIMENSIONS + axis] = bounds.low[axis];
            box[own * 2 * DIMENSIONS + DIMENSIONS + axis] = bounds.high[axis];
        }
    }
}

namespace {
// The search for one particle.
struct Closest {
    const Crowds& crowds;
    const i32* first;        // of each cell
    const i32* cell_label;
    const i32* place;        // of each particle of a crowd: where it is in the order of the cells
    const real* sorted;      // lost links: their particles are friends here
    const Margin& margin;    // conflicts: it decides
    bool lost;
    i64 mine;                // the particle, in the order of the crowds
    i32 own;                 // its label,
    i64 together;            // and the number of particles in its cell
    double least;
    i32 best;                // the closest particle so far; -1: none
    i64 spent;               // distances to boxes and particles

    DEVICE_METHOD bool counts(i32 label) const { return label != own && !(lost && label < 0 && label != MIXED); }

    DEVICE_METHOD void cells(i32 begin, i32 end, bool)
    {
        for (i32 c = begin; c < end; ++c) {
            const i32 d = crowds.number[c];
            if (d >= 0 && together * crowds.size(d) > CROWD && counts(cell_label[c])) tree(d);
        }
    }

    DEVICE_METHOD double gap_to(const real* here, const Node& box) const
    {
        Node point;
        for (i32 axis = 0; axis < DIMENSIONS; ++axis) point.low[axis] = point.high[axis] = here[axis];
        return gap_squared<true>(point, box, margin.space);
    }

    // The squared distance to a node's box; negative if no particle of it counts, or none can be a friend.
    DEVICE_METHOD double far_off(i32 d, i32 index)
    {
        if (!counts(crowds.common[crowds.root[d] + index])) return -1;
        ++spent;
        if (lost) {
            const Node there = crowds.node(crowds.other_box, d, index);
            if (gap_to(sorted + (i64)place[mine] * DIMENSIONS, there) > margin.space.length_squared) return -1;
        }
        return gap_to(crowds.at + mine * DIMENSIONS, crowds.node(crowds.box, d, index));
    }

    DEVICE_METHOD void tree(i32 d)
    {
        i32 stack[64], top = 0;   // at most one node on each level waits
        double gap[64];
        const i64 size = crowds.size(d);
        const i32 depth = tree_depth(size);
        gap[0] = far_off(d, 1);
        stack[top++] = 1;
        while (top) {
            const i32 index = stack[--top];
            if (gap[top] < 0 || gap[top] > least) continue;
            if (best >= 0 && gap[top] == least && crowds.lowest[crowds.root[d] + index] > best) continue;
            if (index >> depth) {
                const i64 j = index - (1ll << depth);
                leaf(crowds.start[d] + (size * j >> depth), crowds.start[d] + (size * (j + 1) >> depth));
                continue;
            }
            const double left = far_off(d, 2 * index), right = far_off(d, 2 * index + 1);
            const i32 nearer = left <= right;   // is visited first
            stack[top] = 2 * index + nearer;
            gap[top++] = nearer ? right : left;
            stack[top] = 2 * index + 1 - nearer;
            gap[top++] = nearer ? left : right;
        }
    }

    DEVICE_METHOD void leaf(i64 begin, i64 end)
    {
        for (i64 i = begin; i < end; ++i) {
            if (!counts(crowds.label[i])) continue;
            ++spent;
            const real *here = crowds.at + mine * DIMENSIONS, *there = crowds.at + i * DIMENSIONS;
            const double d = distance_squared<true>(here, there, margin.space);
            const i32 k = crowds.index[i];
            if (d > least || (d == least && best >= 0 && k > best) || !holds(d, i)) continue;
            least = d;
            best = k;
        }
    }

    DEVICE_METHOD bool holds(double squared, i64 i) const
    {
        if (!lost) return margin.conflict(squared, crowds.index[mine], crowds.index[i]);
        const real *here = sorted + (i64)place[mine] * DIMENSIONS, *there = sorted + (i64)place[i] * DIMENSIONS;
        return friends<true>(here, there, margin.space);
    }
};
}

// For each particle of a crowd, the closest one of another label, or -1, among the crowds around its cell with which there
// are more than CROWD pairs: of those that conflict or, with `lost`, of those that are friends in `sorted`. Of several the
// one of least index. `spent` counts the distances.
KERNEL(find_closest)(i64 chunks, i64 n, i64 crowds, const i32* cell SIZE(n), const i32* place SIZE(n),
                     const real* at SIZE(n * D), const i32* at_label SIZE(n), const i32* at_index SIZE(n),
                     const i32* number SIZE(cells), const i64* start SIZE(crowds + 1), const i64* root SIZE(crowds),
                     const real* box SIZE(common * 2 * D), const real* other_box SIZE(box if lost else 0),
                     const i32* common SIZE(>= 1), const i32* lowest SIZE(common), i64 cells, i64 particles, i64 count,
                     const u64* block_key SIZE(count), const u64* occupied SIZE(count),
                     const i32* first_cell SIZE(count + 1), const i32* first SIZE(>= cells + 1),
                     const real* sorted SIZE(particles * D), const double* periods SIZE(D),
                     const i64* blocks_along SIZE(D), const i64* block_bits SIZE(D),
                     const u64* around SIZE(64 * 3 ** D), i64 closed, const i32* cell_label SIZE(>= cells), i64 lost,
                     double near_squared, double length_squared, double far_squared, i64 exempting,
                     const real* original SIZE(particles * D if exempting else 0), i32* closest SIZE(n),
                     i64* spent SIZE(n), u8* used SIZE(particles))
{
    (void)crowds, (void)cells, (void)particles;
    const Blocks blocks = blocks_of(block_key, count, periods, blocks_along, block_bits, closed);
    const Space space = space_of(periods, lost ? length_squared : far_squared);
    const Margin margin = {near_squared, length_squared, far_squared, exempting ? original : 0, space, false, used};
    const Crowds trees = {number, start, root, at, at_label, at_index, box, other_box, common, lowest};
    FOR_EACH_UNEVEN(p, chunks) {
        BlocksAround near = {blocks, occupied, first_cell, first, around, -1, 0, {0}, {0}, {0}, 0, 0};
        for (i64 i = chunk_begin(p, chunks, n); i < chunk_begin(p + 1, chunks, n); ++i) {
            Closest search = {trees, first, cell_label, place, sorted, margin, lost != 0, i, at_label[i],
                              first[cell[i] + 1] - first[cell[i]], lost ? 1e300 : far_squared, -1, 0};
            const bool takes_part = !(lost && at_label[i] < 0);
            if (takes_part) near.cells(cell[i], search);
            closest[i] = search.best;
            spent[i] = search.spent;
        }
    }
}
