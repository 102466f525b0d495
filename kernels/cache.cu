// Products with keys and values that stay packed: the whole numbers of quantised vectors, in few bits each.
//
// A block holds BLOCK tokens of one head. For each channel it has the smallest number, a width, and what each token's number
// is above the smallest in so many bits. The tokens of a channel form LANES streams of bytes, stored byte by byte beside
// each other: the k-th bytes of all streams are LANES successive bytes. So one shift and one mask unpack as many tokens at
// once as a register has bytes. A product unpacks a few channels into a tile, which stays in the nearest cache, and then
// multiplies: adding up while unpacking would take registers from both. The smallest numbers and the steps of quantisation
// are factors of the other side of the product, so no decoded number exists outside the tile.
#include "portable.cuh"

static const i32 BLOCK = 128;         // tokens
static const i32 LANES = 16;          // streams of bytes, each of eight tokens: token t is number t / LANES of stream t % LANES
static const i32 TILE = 8;            // channels that are unpacked at once
static const i32 MOST_WIDTH = 16;     // bits; the upper ones of more than eight are stored apart
static const i32 ZERO = 32768;        // the smallest numbers are stored as distances from -ZERO

// The bytes of a channel: eight numbers of `width` bits in each stream.
DEVICE i64 bytes_of(i32 width) { return (i64)width * LANES; }

// The numbers of one channel whose width the compiler knows, times `factor`, added to the tile or written to it.
template <i32 WIDTH> DEVICE ALWAYS_INLINE void unpack_width(const u8* from, real* to, real factor, bool adding)
{
    for (i32 j = 0; j < 8; ++j) {
        const i32 at = j * WIDTH / 8, shift = j * WIDTH % 8;
        for (i32 lane = 0; lane < LANES; ++lane) {
            u8 number = (u8)(from[at * LANES + lane] >> shift);
            if (shift + WIDTH > 8) number |= (u8)(from[(at + 1) * LANES + lane] << (8 - shift));
            const real value = (real)(i32)(number & ((1 << WIDTH) - 1)) * factor;
            to[j * LANES + lane] = adding ? to[j * LANES + lane] + value : value;
        }
    }
}

DEVICE ALWAYS_INLINE void unpack_part(i32 width, const u8* from, real* to, real factor, bool adding)
{
    switch (width) {
    case 0:
        if (!adding)
            for (i32 t = 0; t < BLOCK; ++t) to[t] = 0;
        break;
    case 1: unpack_width<1>(from, to, factor, adding); break;
    case 2: unpack_width<2>(from, to, factor, adding); break;
    case 3: unpack_width<3>(from, to, factor, adding); break;
    case 4: unpack_width<4>(from, to, factor, adding); break;
    case 5: unpack_width<5>(from, to, factor, adding); break;
    case 6: unpack_width<6>(from, to, factor, adding); break;
    case 7: unpack_width<7>(from, to, factor, adding); break;
    default: unpack_width<8>(from, to, factor, adding);
    }
}

// What the tokens of one channel are above its smallest number.
DEVICE ALWAYS_INLINE void unpack_channel(i32 width, const u8* from, real* to)
{
    unpack_part(width < 8 ? width : 8, from, to, 1, false);
    if (width > 8) unpack_part(width - 8, from + bytes_of(8), to, 256, true);
}

// The next channels, at most TILE; the rest of the tile is left as it is. Returns where the bytes after them begin.
DEVICE ALWAYS_INLINE const u8* unpack_tile(i32 channels, const u8* width, const u8* from, real* tile)
{
    for (i32 c = 0; c < channels; ++c) {
        unpack_channel(width[c], from, tile + c * BLOCK);
        from += bytes_of(width[c]);
    }
    return from;
}

// The tile's share of the scores of one query.
DEVICE ALWAYS_INLINE void add_scores(const real* tile, const real* w, real* score)
{
    const real a = w[0], b = w[1], c = w[2], d = w[3], e = w[4], f = w[5], g = w[6], h = w[7];
    for (i32 t = 0; t < BLOCK; ++t) {
        const real* x = tile + t;
        score[t] += ((a * x[0] + b * x[BLOCK]) + (c * x[2 * BLOCK] + d * x[3 * BLOCK]))
                    + ((e * x[4 * BLOCK] + f * x[5 * BLOCK]) + (g * x[6 * BLOCK] + h * x[7 * BLOCK]));
    }
}

// The sum of weight times number over the tokens, for one query: LANES sums in parallel, then these.
DEVICE ALWAYS_INLINE real weighted_sum(const real* number, const real* weight)
{
    real sum[LANES] = {};
    for (i32 j = 0; j < 8; ++j)
        for (i32 lane = 0; lane < LANES; ++lane) sum[lane] += number[j * LANES + lane] * weight[j * LANES + lane];
    for (i32 half = LANES / 2; half > 0; half /= 2)
        for (i32 lane = 0; lane < half; ++lane) sum[lane] += sum[lane + half];
    return sum[0];
}

// score[q][t] = the sum over channels of weight[q][c] times the number of channel c and token t, of one block.
WIDE DEVICE void scores_of_block(i64 dimension, i64 queries, const u8* width, const u16* least, const u8* from,
                                 const real* weight, i64 tokens, real* score)
{
    real tile[TILE * BLOCK], w[TILE];
    for (i64 q = 0; q < queries; ++q) {
        real offset = 0;
        for (i64 c = 0; c < dimension; ++c) offset += weight[q * dimension + c] * (real)((i32)least[c] - ZERO);
        for (i32 t = 0; t < BLOCK; ++t) score[q * tokens + t] = offset;
    }
    for (i64 c = 0; c < dimension; c += TILE) {
        const i32 here = dimension - c < TILE ? (i32)(dimension - c) : TILE;
        from = unpack_tile(here, width + c, from, tile);
        for (i32 i = here * BLOCK; i < TILE * BLOCK; ++i) tile[i] = 0;
        for (i64 q = 0; q < queries; ++q) {
            for (i32 i = 0; i < TILE; ++i) w[i] = i < here ? weight[q * dimension + c + i] : 0;
            add_scores(tile, w, score + q * tokens);
        }
    }
}

// out[q][c] = the sum over the block's tokens of weight[q][t] times the number of channel c and token t.
WIDE DEVICE void sums_of_block(i64 dimension, i64 queries, const u8* width, const u16* least, const u8* from,
                               const real* weight, i64 tokens, real* out)
{
    real number[BLOCK];
    for (i32 t = 0; t < BLOCK; ++t) number[t] = 1;
    for (i64 q = 0; q < queries; ++q) {
        const real whole = weighted_sum(number, weight + q * tokens);
        for (i64 c = 0; c < dimension; ++c) out[q * dimension + c] = whole * (real)((i32)least[c] - ZERO);
    }
    for (i64 c = 0; c < dimension; ++c) {
        unpack_channel(width[c], from, number);
        from += bytes_of(width[c]);
        for (i64 q = 0; q < queries; ++q) out[q * dimension + c] += weighted_sum(number, weight + q * tokens);
    }
}

// Work items are the blocks of all heads: item / heads is the block, item % heads the head. Each has its channels' widths and
// smallest numbers, and its bytes from `first` on.

// score[head][query][token] = the sum over channels of weight[head][query][channel] times the packed number.
KERNEL(packed_scores)(i64 items, i64 heads, i64 dimension, i64 queries, const u8* width SIZE(items * dimension),
                      const u16* least SIZE(width), const i64* first SIZE(items + 1), const u8* bytes SIZE(LAST(first)),
                      const real* weight SIZE(heads * queries * dimension),
                      real* score SIZE(items * queries * 128))
{
    FOR_EACH(item, items) {
        const i64 head = item % heads, block = item / heads, tokens = items / heads * BLOCK;
        scores_of_block(dimension, queries, width + item * dimension, least + item * dimension, bytes + first[item],
                        weight + head * queries * dimension, tokens, score + head * queries * tokens + block * BLOCK);
    }
}

// sum[item][query][channel] = the sum over the block's tokens of weight[head][query][token] times the packed number.
KERNEL(packed_sums)(i64 items, i64 heads, i64 dimension, i64 queries, const u8* width SIZE(items * dimension),
                    const u16* least SIZE(width), const i64* first SIZE(items + 1), const u8* bytes SIZE(LAST(first)),
                    const real* weight SIZE(items * queries * 128), real* sum SIZE(items * queries * dimension))
{
    FOR_EACH(item, items) {
        const i64 head = item % heads, block = item / heads, tokens = items / heads * BLOCK;
        sums_of_block(dimension, queries, width + item * dimension, least + item * dimension, bytes + first[item],
                      weight + head * queries * tokens + block * BLOCK, tokens, sum + item * queries * dimension);
    }
}

// The smallest number and the width of every channel of blocks of numbers [item][channel][token].
KERNEL(channel_widths)(i64 channels, const i32* number SIZE(channels * 128), u8* width SIZE(channels), u16* least SIZE(channels))
{
    FOR_EACH(c, channels) {
        i32 low = number[c * BLOCK], high = low;
        for (i32 t = 1; t < BLOCK; ++t) {
            const i32 value = number[c * BLOCK + t];
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        width[c] = (u8)bit_length((u64)((i64)high - low));
        least[c] = (u16)(low + ZERO);
    }
}

// The streams of every channel; `first` says where each begins.
KERNEL(pack_channels)(i64 channels, const i32* number SIZE(channels * 128), const u8* width SIZE(channels),
                      const u16* least SIZE(channels), const i64* first SIZE(channels + 1), u8* bytes SIZE(LAST(first)))
{
    FOR_EACH(c, channels) {
        const i32 low = width[c] < 8 ? width[c] : 8, zero = (i32)least[c] - ZERO;
        for (i32 lane = 0; lane < LANES; ++lane) {
            u64 lower = 0, upper = 0;
            for (i32 j = 0; j < 8; ++j) {
                const u64 above = (u64)(number[c * BLOCK + j * LANES + lane] - zero);
                lower |= (above & ((1 << low) - 1)) << (j * low);
                upper |= (above >> 8) << (j * (width[c] - low));
            }
            u8* to = bytes + first[c] + lane;
            for (i32 k = 0; k < width[c]; ++k, to += LANES) *to = (u8)(k < low ? lower >> (8 * k) : upper >> (8 * (k - low)));
        }
    }
}

// The numbers of blocks, [item][channel][token].
KERNEL(unpack_channels)(i64 channels, const u8* width SIZE(channels), const u16* least SIZE(channels),
                        const i64* first SIZE(channels + 1), const u8* bytes SIZE(LAST(first)), i32* number SIZE(channels * 128))
{
    FOR_EACH(c, channels) {
        const i32 low = width[c] < 8 ? width[c] : 8, zero = (i32)least[c] - ZERO;
        for (i32 lane = 0; lane < LANES; ++lane) {
            const u8* from = bytes + first[c] + lane;
            u64 lower = 0, upper = 0;
            for (i32 k = 0; k < width[c]; ++k, from += LANES) {
                if (k < low) lower |= (u64)*from << (8 * k);
                else upper |= (u64)*from << (8 * (k - low));
            }
            for (i32 j = 0; j < 8; ++j) {
                const i32 high = width[c] - low;
                const u64 above = (lower >> (j * low) & ((1 << low) - 1)) | (upper >> (j * high) & ((1 << high) - 1)) << 8;
                number[c * BLOCK + j * LANES + lane] = zero + (i32)above;
            }
        }
    }
}
