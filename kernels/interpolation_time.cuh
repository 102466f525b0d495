// What earlier steps say of a field: a forecast of each value, and what is left of known values when theirs is taken away.
//
// The same values some time before differ from those of now by less than neighbours do where a field hardly changes. So a pass
// may take a multiple of the step before, and one of the step before that, away from all values, and interpolate what is left;
// the forecast is added again. Locations, scales and their weights are then those of what is left. Where a pass has other multiples
// than the pass before, what is left of all known values is computed again.
#pragma once

namespace {

// `used` says whether there is a forecast; without one, nothing else is read.
struct Forecast {
    bool used;
    real of_latest, of_before;     // the multiples,
    const real *latest, *before;   // of the values of the latest step and of the step before that
    real* left;                    // what is left of known values

    // What is left of one of these values.
    DEVICE_METHOD double left_of(const real* value, i64 place) const
    {
        return (double)value[place] - (used ? (double)at(place) : 0);
    }

    DEVICE_METHOD real at(i64 place) const { return of_latest * latest[place] + of_before * before[place]; }
};

}  // namespace

DEVICE Forecast forecast_of(i32 used, const real* multiple, const real* latest, const real* before, real* left)
{
    return {used != 0, multiple[0], multiple[1], latest, before, left};
}

// How far apart the points of a grid with this spacing are along an axis: along frozen ones, all of them are there.
DEVICE i64 pace_along(const Pass& pass, i64 spacing, i32 axis) { return pass.step[axis] == 1 ? 1 : spacing; }

// How many rows along the last axis that grid has.
DEVICE i64 rows_of(const Pass& pass, const Grid& grid, i64 spacing)
{
    i64 rows = 1;
    for (i32 a = 0; a < AXES - 1; ++a) rows *= (grid.shape[a] - 1) / pace_along(pass, spacing, a) + 1;
    return rows;
}

// What is left of `n` values in a row, so far apart.
WIDE DEVICE_ONCE void take_away_along(const Forecast& forecast, const real* value, i64 at, i64 pace, i64 n)
{
    if (pace == 1) {
        for (i64 i = at; i < at + n; ++i) forecast.left[i] = value[i] - forecast.at(i);
    } else {
        for (i64 k = 0; k < n; ++k) forecast.left[at + k * pace] = value[at + k * pace] - forecast.at(at + k * pace);
    }
}

// What is left of the values of one row of that grid.
DEVICE void take_away(const Pass& pass, const Grid& grid, i64 spacing, const Forecast& forecast, const real* value, i64 row)
{
    i64 at = 0;
    for (i32 a = AXES - 2; a >= 0; --a) {
        const i64 pace = pace_along(pass, spacing, a), count = (grid.shape[a] - 1) / pace + 1;
        at += row % count * pace * grid.stride[a];
        row /= count;
    }
    const i64 pace = pace_along(pass, spacing, AXES - 1);
    take_away_along(forecast, value, at, pace, (grid.shape[AXES - 1] - 1) / pace + 1);
}
