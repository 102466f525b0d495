// Moves of particles, and their limits.
#pragma once

static const i32 FINE = 16;            // a move has at most this many steps along an axis: twice the bound
static const i32 PINNED = -1;          // instead of a move: the particle has its original coordinates

// The bound along one axis, less a margin that exceeds all rounding errors.
DEVICE double most_error(real original, double bound, i64 relative, double period)
{
    const double x = (double)original < 0 ? -(double)original : (double)original;
    const double most = relative ? bound * x : bound;
    const double size = x + most > period ? x + most : period;
    return most - size * 0x1p-50;
}

// A coordinate moved by a number of steps, as in the decoder. In a periodic box it stays inside.
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

// Moves are named in a canonical orientation: `forward` is the axis and direction in which a particle would move to change
// its link with the particle near it in the file whose distance is closest to a linking length. 0: the axes themselves;
// otherwise 1 plus twice the axis, plus 1 if opposite to the axis.
DEVICE void turn(const i32* named, u8 forward, i32* move)
{
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) move[axis] = named[axis];
    if (!forward) return;
    const i32 axis = (forward - 1) / 2, first = named[0];
    move[0] = named[axis];
    move[axis] = (forward - 1) & 1 ? -first : first;
}

template <class Number> DEVICE void turn_back(const Number* move, u8 forward, Number* named)
{
    for (i32 axis = 0; axis < DIMENSIONS; ++axis) named[axis] = move[axis];
    if (!forward) return;
    const i32 axis = (forward - 1) / 2;
    named[axis] = move[0];
    named[0] = (forward - 1) & 1 ? -move[axis] : move[axis];
}
