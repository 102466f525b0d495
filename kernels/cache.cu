// Products with keys and values that stay packed: the whole numbers of quantised vectors, in few bits each.
//
// A block holds BLOCK tokens of one head. For each channel it has the smallest number, a width, and what each token's
// number is above the smallest in so many bits. The tokens of a channel form LANES streams of bytes, stored byte by byte
// beside each other, eight streams in a word of 64 bits: one shift and one mask unpack eight tokens. A product unpacks a
// few channels into a tile, which stays in the nearest cache, and then multiplies: adding up while unpacking would take
// registers from both. The smallest numbers and the steps of quantisation are factors of the other side of the product,
// so no decoded number exists outside the tile.
#include "portable.cuh"

static const i32 BLOCK = 128;         // tokens
static const i32 LANES = 16;          // streams of eight tokens each: token t is number t / LANES of stream t % LANES
static const i32 TILE = 8;            // channels that are unpacked at once for scores
static const i32 FEW = 4;             // the same for sums over tokens, which need more registers
static const i32 WORDS = LANES / 8;   // that hold a byte of each stream
static const i32 MOST_WIDTH = 16;     // bits; the upper ones of more than eight are stored apart
static const i32 ZERO = 32768;        // the smallest numbers are stored as distances from -ZERO

// The words of a channel: eight numbers of `width` bits in each stream.
DEVICE ALWAYS_INLINE i64 words_of(i32 width) { return (i64)width * WORDS; }

// Every byte of a word holds `bits` lowest ones.
DEVICE ALWAYS_INLINE u64 each_byte(i32 bits) { return 0x0101010101010101ULL * (u64)((1 << bits) - 1); }

// The numbers of one channel whose width the compiler knows, at most eight bits: a word holds those of eight streams.
template <i32 WIDTH> DEVICE ALWAYS_INLINE void unpack_width(const u64* from, u64* to)
{
    for (i32 j = 0; j < 8; ++j) {
        const i32 at = j * WIDTH / 8 * WORDS, shift = j * WIDTH % 8, rest = shift + WIDTH - 8;   // bits in the next byte
        for (i32 half = 0; half < WORDS; ++half) {
            u64 number = from[at + half] >> shift & each_byte(rest > 0 ? WIDTH - rest : WIDTH);
            if (rest > 0) number |= (from[at + WORDS + half] & each_byte(rest)) << (WIDTH - rest);
            to[j * WORDS + half] = number;
        }
    }
}

DEVICE ALWAYS_INLINE void unpack_part(i32 width, const u64* from, u64* to)
{
    switch (width) {
    case 0:
        for (i32 i = 0; i < 8 * WORDS; ++i) to[i] = 0;
        break;
    case 1: unpack_width<1>(from, to); break;
    case 2: unpack_width<2>(from, to); break;
    case 3: unpack_width<3>(from, to); break;
    case 4: unpack_width<4>(from, to); break;
    case 5: unpack_width<5>(from, to); break;
    case 6: unpack_width<6>(from, to); break;
    case 7: unpack_width<7>(from, to); break;
    default: unpack_width<8>(from, to);
    }
}

// What the tokens of one channel are above its smallest number.
DEVICE ALWAYS_INLINE void unpack_channel(i32 width, const u64* from, real* to)
{
    u64 word[8 * WORDS];
    const u8* number = (const u8*)word;
    unpack_part(width < 8 ? width : 8, from, word);
    for (i32 t = 0; t < BLOCK; ++t) to[t] = (real)(i32)number[t];
    if (width <= 8) return;
    unpack_part(width - 8, from + words_of(8), word);
    for (i32 t = 0; t < BLOCK; ++t) to[t] += (real)(256 * (i32)number[t]);
}

// The next channels, and zeros in the rest of the tile. Returns where the words after them begin.
DEVICE ALWAYS_INLINE const u64* unpack_tile(i32 channels, i32 all, const u8* width, const u64* from, real* tile)
{
    for (i32 c = 0; c < channels; ++c) {
        unpack_channel(width[c], from, tile + c * BLOCK);
        from += words_of(width[c]);
    }
    for (i32 i = channels * BLOCK; i < all * BLOCK; ++i) tile[i] = 0;
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

// sum[c] += the sum over tokens of weight times number, for the channels of a tile: LANES sums in parallel, then these.
DEVICE ALWAYS_INLINE void add_sums(i32 channels, const real* tile, const real* weight, real* sum)
{
    real part[FEW][LANES];
    for (i32 c = 0; c < FEW; ++c)
        for (i32 lane = 0; lane < LANES; ++lane) part[c][lane] = 0;
    for (i32 j = 0; j < 8; ++j)
        for (i32 c = 0; c < FEW; ++c)
            for (i32 lane = 0; lane < LANES; ++lane)
                part[c][lane] += tile[c * BLOCK + j * LANES + lane] * weight[j * LANES + lane];
    for (i32 c = 0; c < FEW; ++c) {
        const real* p = part[c];
        real eight[8], four[4];
        for (i32 lane = 0; lane < 8; ++lane) eight[lane] = p[lane] + p[lane + 8];
        for (i32 lane = 0; lane < 4; ++lane) four[lane] = eight[lane] + eight[lane + 4];
        if (c < channels) sum[c] += (four[0] + four[2]) + (four[1] + four[3]);
    }
}

// score[q][t] = the sum over channels of weight[q][c] times the number of channel c and token t, of one block.
WIDE DEVICE void scores_of_block(i64 dimension, i64 queries, const u8* width, const u16* least, const u64* from,
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
        from = unpack_tile(here, TILE, width + c, from, tile);
        for (i64 q = 0; q < queries; ++q) {
            for (i32 i = 0; i < TILE; ++i) w[i] = i < here ? weight[q * dimension + c + i] : 0;
            add_scores(tile, w, score + q * tokens);
        }
    }
}

// out[q][c] = the sum over the block's tokens of weight[q][t] times the number of channel c and token t.
WIDE DEVICE void sums_of_block(i64 dimension, i64 queries, const u8* width, const u16* least, const u64* from,
                               const real* weight, i64 tokens, real* out)
{
    real tile[FEW * BLOCK];
    for (i64 q = 0; q < queries; ++q) {
        real whole = 0;
        for (i32 t = 0; t < BLOCK; ++t) whole += weight[q * tokens + t];
        for (i64 c = 0; c < dimension; ++c) out[q * dimension + c] = whole * (real)((i32)least[c] - ZERO);
    }
    for (i64 c = 0; c < dimension; c += FEW) {
        const i32 here = dimension - c < FEW ? (i32)(dimension - c) : FEW;
        from = unpack_tile(here, FEW, width + c, from, tile);
        for (i64 q = 0; q < queries; ++q) add_sums(here, tile, weight + q * tokens, out + q * dimension + c);
    }
}

// Work items are the blocks of all heads: item / heads is the block, item % heads the head. Each has its channels' widths
// and smallest numbers, and its words from `first` on.

// score[head][query][token] = the sum over channels of weight[head][query][channel] times the packed number.
KERNEL(packed_scores)(i64 items, i64 heads, i64 dimension, i64 queries, const u8* width SIZE(items * dimension),
                      const u16* least SIZE(width), const i64* first SIZE(items + 1), const u64* words SIZE(LAST(first)),
                      const real* weight SIZE(heads * queries * dimension),
                      real* score SIZE(items * queries * 128))
{
    FOR_EACH(item, items) {
        const i64 head = item % heads, block = item / heads, tokens = items / heads * BLOCK;
        scores_of_block(dimension, queries, width + item * dimension, least + item * dimension, words + first[item],
                        weight + head * queries * dimension, tokens, score + head * queries * tokens + block * BLOCK);
    }
}

// sum[item][query][channel] = the sum over the block's tokens of weight[head][query][token] times the packed number.
KERNEL(packed_sums)(i64 items, i64 heads, i64 dimension, i64 queries, const u8* width SIZE(items * dimension),
                    const u16* least SIZE(width), const i64* first SIZE(items + 1), const u64* words SIZE(LAST(first)),
                    const real* weight SIZE(items * queries * 128), real* sum SIZE(items * queries * dimension))
{
    FOR_EACH(item, items) {
        const i64 head = item % heads, block = item / heads, tokens = items / heads * BLOCK;
        sums_of_block(dimension, queries, width + item * dimension, least + item * dimension, words + first[item],
                      weight + head * queries * tokens + block * BLOCK, tokens, sum + item * queries * dimension);
    }
}

// The sums of all blocks, one after the other: the same on all machines.
KERNEL(add_blocks)(i64 columns, i64 blocks, const real* part SIZE(blocks * columns), real* sum SIZE(columns))
{
    FOR_EACH(i, columns) {
        double whole = 0;
        for (i64 b = 0; b < blocks; ++b) whole += part[b * columns + i];
        sum[i] = (real)whole;
    }
}

// The smallest number and the width of every channel of blocks of numbers [item][channel][token].
KERNEL(channel_widths)(i64 channels, const i32* number SIZE(channels * 128), u8* width SIZE(channels),
                       u16* least SIZE(channels))
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

// The streams of every channel; `first` says where the words of each begin.
KERNEL(pack_channels)(i64 channels, const i32* number SIZE(channels * 128), const u8* width SIZE(channels),
                      const u16* least SIZE(channels), const i64* first SIZE(channels + 1), u64* words SIZE(LAST(first)))
{
    FOR_EACH(c, channels) {
        const i32 low = width[c] < 8 ? width[c] : 8, zero = (i32)least[c] - ZERO;
        u64* to = words + first[c];
        for (i64 i = 0; i < words_of(width[c]); ++i) to[i] = 0;
        for (i32 lane = 0; lane < LANES; ++lane) {
            u64 lower = 0, upper = 0;
            for (i32 j = 0; j < 8; ++j) {
                const u64 above = (u64)(number[c * BLOCK + j * LANES + lane] - zero);
                lower |= (above & ((1 << low) - 1)) << (j * low);
                upper |= (above >> 8) << (j * (width[c] - low));
            }
            for (i32 k = 0; k < width[c]; ++k) {
                const u64 byte = (k < low ? lower >> (8 * k) : upper >> (8 * (k - low))) & 255;
                to[k * WORDS + lane / 8] |= byte << (lane % 8 * 8);
            }
        }
    }
}

WIDE DEVICE void decode_channel(i32 width, i32 least, const u64* from, real* to)
{
    unpack_channel(width, from, to);
    for (i32 t = 0; t < BLOCK; ++t) to[t] += (real)least;
}

// The numbers of blocks, [item][channel][token].
KERNEL(unpack_channels)(i64 channels, const u8* width SIZE(channels), const u16* least SIZE(channels),
                        const i64* first SIZE(channels + 1), const u64* words SIZE(LAST(first)),
                        real* number SIZE(channels * 128))
{
    FOR_EACH(c, channels) decode_channel(width[c], (i32)least[c] - ZERO, words + first[c], number + c * BLOCK);
}
