// A small network between what is seen of a point and what is expected of it: two hidden layers, two answers.
//
// Sums run in a fixed order, side by side for the units of a layer, so that vectors of any length give the same bits; the only
// functions are a leaky ReLU and logarithms that are read off the exponent. Weights are plain floats, made of whole numbers.
#pragma once

static const i32 HIDDEN = 16, SECOND = 8;   // units
static const i32 INPUTS = 49;               // at most
static const i32 NETWORK = 955;             // floats of a network: whether there is one, then the layers; see `answer_of`

namespace {

struct Answer {
    float shift, octaves;
};

}  // namespace

DEVICE u32 bits_of_float(float value)
{
    union {
        float number;
        u32 bits;
    } as;
    as.number = value;
    return as.bits;
}

// The logarithm to base 2, linear between powers of two, of a number that is not negative; within -16 and 16, also of NaN.
DEVICE float octaves_of(float value)
{
    const u32 bits = bits_of_float(value) & 0x7fffffff, least = (127 - 16) << 23, most = (127 + 16) << 23;
    const u32 kept = bits < least ? least : bits < most ? bits : most;
    return (float)((i32)kept - (127 << 23)) * (1.0f / 8388608.0f);
}

// A number as it is up to 1, then by octaves: neither infinite nor NaN.
DEVICE float compressed(float value)
{
    const float size = octaves_of(1.0f + (value < 0 ? -value : value));
    return value < 0 ? -size : size;
}

DEVICE float rectified(float value) { return value > 0 ? value : value * 0.125f; }

// What a network answers to these inputs. Its numbers are: 1, the constant terms of the first layer, its weights input by
// input; the same of the second layer, and of the answers. Even and odd inputs have sums of their own, which is quicker.
WIDE DEVICE Answer answer_of(const float* network, const float* input, i32 inputs)
{
    float even[HIDDEN], odd[HIDDEN];
    const float *constant = network + 1, *weight = constant + HIDDEN;
    for (i32 h = 0; h < HIDDEN; ++h) {
        even[h] = constant[h];
        odd[h] = 0;
    }
    for (i32 i = 0; i + 1 < inputs; i += 2) {
        for (i32 h = 0; h < HIDDEN; ++h) even[h] += input[i] * weight[i * HIDDEN + h];
        for (i32 h = 0; h < HIDDEN; ++h) odd[h] += input[i + 1] * weight[(i + 1) * HIDDEN + h];
    }
    if (inputs & 1) {
        for (i32 h = 0; h < HIDDEN; ++h) even[h] += input[inputs - 1] * weight[(inputs - 1) * HIDDEN + h];
    }
    constant = weight + INPUTS * HIDDEN;
    weight = constant + SECOND;
    float unit[HIDDEN], second[SECOND];
    for (i32 h = 0; h < HIDDEN; ++h) unit[h] = rectified(even[h] + odd[h]);
    for (i32 s = 0; s < SECOND; ++s) second[s] = constant[s];
    for (i32 h = 0; h < HIDDEN; ++h) {
        for (i32 s = 0; s < SECOND; ++s) second[s] += unit[h] * weight[h * SECOND + s];
    }
    constant = weight + HIDDEN * SECOND;
    weight = constant + 2;
    Answer answer = {constant[0], constant[1]};
    for (i32 s = 0; s < SECOND; ++s) {
        const float value = rectified(second[s]);
        answer.shift += value * weight[2 * s];
        answer.octaves += value * weight[2 * s + 1];
    }
    return answer;
}
