// Logarithms to base 2 that have the same bits on all machines, unlike those of their libraries.
#pragma once

DEVICE ALWAYS_INLINE double double_of(u64 bits)
{
    union {
        double number;
        u64 bits;
    } as;
    as.bits = bits;
    return as.number;
}

DEVICE ALWAYS_INLINE u64 bits_of_double(double number)
{
    union {
        double number;
        u64 bits;
    } as;
    as.number = number;
    return as.bits;
}

// The logarithm of a normal number above 0, within 10^-8: the exponent, and a series for a rest near 1.
DEVICE ALWAYS_INLINE double log2_of(double number)
{
    const u64 up = bits_of_double(number) + (0x3ff0000000000000ull - 0x3fe6a09e667f3bcdull);   // so that the rest is near 1
    const double octave = double_of((up >> 52) | 0x4330000000000000ull) - 4503599627371519.0;   // less 2^52 and 1023
    const double rest = double_of((up & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    const double z = (rest - 1) / (rest + 1), square = z * z;
    const double series = 1 + square * (1.0 / 3 + square * (1.0 / 5 + square * (1.0 / 7 + square * (1.0 / 9))));
    return octave + 2.8853900817779268 * z * series;
}

// The same, but linear between powers of two: it is fast, and as good for classes of sizes.
DEVICE double scaled_octave_of(double value) { return (double)((i64)bits_of_double(value) - (1023LL << 52)); }   // by 2^52
DEVICE double octave_of(double value) { return scaled_octave_of(value) * (1.0 / 4503599627370496.0); }

// floor(4 * octave_of(value)), exactly, in fewer steps.
DEVICE ALWAYS_INLINE i32 quarter_octave_of(double value) { return (i32)((i64)scaled_octave_of(value) >> 50); }
