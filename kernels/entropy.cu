// An entropy coder for integers whose sizes change slowly: deltas along a curve or along a path.
//
// The size of a number (its bit length and the bits after the leading one, with its sign) is a symbol, coded by range
// asymmetric numeral systems (rANS) with a table of frequencies; the bits below are stored as they are. The choice of table
// (the context) depends on the sizes of the numbers before: a fast and a slow moving average of log2 and, where an item has
// several components, the sizes of its earlier components. Blocks are independent, so they are coded in parallel and any of
// them can be read alone. All arithmetic is in integers.
#include "portable.cuh"
#include "pieces.cuh"

static const i32 SYMBOLS = 256;
static const i32 CONTEXTS = 64;        // for each component
static const i32 PRECISION = 12;       // frequencies of one context sum to 2^12
static const u32 LEAST_STATE = 1 << 16;
static const i32 MOST_COMPONENTS = 3;

// With `signs`, the lowest bit of a number is its sign and becomes the lowest bit of its symbol.
DEVICE u64 magnitude_of(u64 value, i32 signs) { return signs ? (value >> 1) + (value & 1) : value; }

DEVICE i32 symbol_of(u64 value, i32 signs)
{
    const u64 size = magnitude_of(value, signs);
    const i32 length = bit_length(size);
    if (signs) return 2 * (length < 2 ? (i32)size : 2 * (length - 1) + (i32)(size >> (length - 2) & 1)) + (i32)(value & 1);
    return length < 3 ? (i32)size : 4 * (length - 2) + (i32)(size >> (length - 3) & 3);
}

// The number of bits of a magnitude below its symbol.
DEVICE i32 bits_below(i32 symbol) { return symbol < 8 ? 0 : symbol / 4 - 1; }

DEVICE u64 value_of(i32 symbol, i32 signs, u64 below)
{
    if (!signs) return symbol < 8 ? symbol : (u64)(4 | (symbol & 3)) << bits_below(symbol) | below;
    const i32 half = symbol >> 1;
    const u64 size = half < 4 ? half : (u64)(2 | (half & 1)) << bits_below(symbol) | below;
    return 2 * size - (symbol & 1);
}

// The moving averages of log2(magnitude + 1) of one component, in 1/256 of an octave.
struct Level {
    i32 fast, slow;
};

struct Levels {
    Level of[MOST_COMPONENTS];
    i32 before;   // the sum of the sizes of this item's components so far
};

DEVICE Levels levels_at(i32 octave)
{
    Levels levels;
    for (i32 c = 0; c < MOST_COMPONENTS; ++c) levels.of[c].fast = levels.of[c].slow = octave << 8;
    levels.before = 0;
    return levels;
}

// The row of the table for component `c`: the averages of its own past, averaged with the earlier components of the item.
DEVICE i32 context_of(const Levels* levels, i32 c, i32 lowest, i32 highest)
{
    const i32 own = (levels->of[c].fast + levels->of[c].slow) >> 1;
    const i32 sum = own + levels->before;
    // A division by c + 1 would take as long as all else.
    const i32 octave = (c == 0 ? sum : c == 1 ? sum / 2 : sum / 3) >> 8;
    return c * CONTEXTS + (octave < lowest ? lowest : octave > highest ? highest : octave);
}

DEVICE void follow(Levels* levels, i32 c, i32 components, u64 magnitude)
{
    const u64 above = magnitude + (magnitude != ~0ULL);
    const i32 octave = bit_length(above) - 1;
    const i32 fraction = (i32)((octave < 8 ? above << (8 - octave) : above >> (octave - 8)) & 255);
    const i32 size = octave << 8 | fraction;
    levels->of[c].fast += (size - levels->of[c].fast) >> 1;
    levels->of[c].slow += (size - levels->of[c].slow) >> 3;
    levels->before = c + 1 < components ? levels->before + size : 0;
}

// In all kernels `n` counts numbers, and a block is a whole number of items of `components` numbers each. The numbers are
// those of several pieces (`pieces.cuh`), each with its own levels and tables.

// The codes of the numbers from `begin` to `end`, and the number of bits below their symbols. It is called with
// `components` as a literal and goes through whole items, so that the levels stay in registers.
DEVICE i64 classify_block(i32 components, i64 begin, i64 end, i32 signs, const u64* value, i32 octave, i32 lowest,
                          i32 highest, u16* code)
{
    Levels levels = levels_at(octave);
    i64 below = 0;
    for (i64 item = begin; item < end; item += components)
        UNROLL for (i32 c = 0; c < components; ++c) {
            const i64 i = item + c;
            const i32 symbol = symbol_of(value[i], signs);
            code[i] = (u16)(context_of(&levels, c, lowest, highest) * SYMBOLS + symbol);
            below += bits_below(symbol);
            follow(&levels, c, components, magnitude_of(value[i], signs));
        }
    return below;
}

// The first blocks of each piece, every `every`-th of them, one after the other: `taken` numbers of a whole piece.
KERNEL(take_blocks)(i64 blocks, i64 n, i64 piece, i64 block, i64 every, const u64* value SIZE(n), i64 taken, i64 m,
                    u64* sample SIZE(m))
{
    (void)n;   // states a size
    const i64 each = blocks_of_piece(taken, block);
    FOR_EACH(b, blocks) {
        const Span to = block_at(b, m, taken, block, each);
        const i64 from = to.piece * piece + (b - to.piece * each) * every * block;
        for (i64 i = to.begin; i < to.end; ++i) sample[i] = value[from + i - to.begin];
    }
}

// code[i] = context * SYMBOLS + symbol, and the number of bits below the symbols in each block.
KERNEL(classify)(i64 blocks, i64 n, i64 piece, i64 block, i32 components, i32 signs, const u64* value SIZE(n),
                 const i32* octave SIZE(CEIL(n, piece)), const i32* lowest SIZE(octave), const i32* highest SIZE(octave),
                 u16* code SIZE(n), i64* bits SIZE(blocks))
{
    const i64 each = blocks_of_piece(piece, block);
    FOR_EACH(b, blocks) {
        const Span at = block_at(b, n, piece, block, each);
        const i32 start = octave[at.piece], low = lowest[at.piece], high = highest[at.piece];
        bits[b] = components == 1   ? classify_block(1, at.begin, at.end, signs, value, start, low, high, code)
                  : components == 2 ? classify_block(2, at.begin, at.end, signs, value, start, low, high, code)
                                    : classify_block(3, at.begin, at.end, signs, value, start, low, high, code);
    }
}

// counts[(p * histograms + h) * codes + code]: several histograms of each piece, to be added up; each of its `parts` counts
// in one of them. Where each part has its own, no other thread writes to it.
KERNEL(count_codes)(i64 all_parts, i64 parts, i64 n, i64 piece, const u16* code SIZE(n), i64 codes, i64 histograms,
                    u32* counts SIZE(CEIL(n, piece) * histograms * codes))
{
    const bool alone = parts <= histograms;
    FOR_EACH(c, all_parts) {
        const Span part = run_at(c, n, piece, parts);
        u32* seen = counts + (part.piece * histograms + c % parts % histograms) * codes;
        for (i64 i = part.begin; i < part.end; ++i) {
            if (alone) ++seen[code[i]];
            else count_shared(seen + code[i]);
        }
    }
}

static const i32 IN_TURNS = 3;   // blocks that a work item codes in turns, at most

// The state of rANS after one more symbol, which has this share and is the first of these slots.
DEVICE ALWAYS_INLINE u32 pushed(u32 state, u32 share, u32 first, u16** out)
{
    const bool full = state >= (u64)share << (32 - PRECISION);
    (*out)[-1] = (u16)state;   // kept if it is full: a branch would be hard to foresee
    *out -= full;
    state = full ? state >> 16 : state;
    return (state / share << PRECISION) + state % share + first;
}

// Where the symbols of all blocks are, their tables, and where words go: see `encode_symbols`.
struct Symbols {
    const i64* begin;
    const u16* code;
    i64 sharing, codes;
    const u32 *frequency, *start;
    u32 from;
    i64 room;
    u16* words;
    i64* used;
};

// The symbols of so many blocks from `b` on, which take turns: a processor works on one while it waits for the others. It is
// called with `blocks` as a literal.
DEVICE ALWAYS_INLINE void encode_in_turns(const Symbols& all, i32 blocks, i64 b)
{
    u32 state[IN_TURNS];
    const u32 *share[IN_TURNS], *first[IN_TURNS];
    u16* out[IN_TURNS];
    const i64* begin = all.begin + b;
    i64 common = begin[1] - begin[0];
    UNROLL for (i32 k = 0; k < blocks; ++k) {
        const i64 table = (b + k) / all.sharing * all.codes;
        state[k] = all.from;
        share[k] = all.frequency + table;
        first[k] = all.start + table;
        out[k] = all.words + (b + k + 1) * all.room;
        common = begin[k + 1] - begin[k] < common ? begin[k + 1] - begin[k] : common;
    }
    for (i64 i = 1; i <= common; ++i)
        UNROLL for (i32 k = 0; k < blocks; ++k) {
            const u16 next = all.code[begin[k + 1] - i];
            state[k] = pushed(state[k], share[k][next], first[k][next], out + k);
        }
    UNROLL for (i32 k = 0; k < blocks; ++k) {
        for (i64 i = begin[k + 1] - common - 1; i >= begin[k]; --i)
            state[k] = pushed(state[k], share[k][all.code[i]], first[k][all.code[i]], out + k);
        *--out[k] = (u16)state[k];
        *--out[k] = (u16)(state[k] >> 16);
        all.used[b + k] = all.words + (b + k + 1) * all.room - out[k];
    }
}

// rANS works like a stack: the last symbol goes in first. Each block fills its slot of `room` words from the end. As many
// blocks as `sharing` says, one after the other, share a table of `codes` entries. `from` is the state at first, which the
// decoder is left with: LEAST_STATE, or 0 to save 16 bits. From 0 on, nothing is written before the state has reached
// LEAST_STATE; so the decoder finds no words left where its state falls below that. A work item takes so many blocks `together`.
KERNEL(encode_symbols)(i64 items, i32 together, i64 blocks, const i64* begin SIZE(blocks + 1), const u16* code SIZE(LAST(begin)),
                       i64 sharing, i64 codes, const u32* frequency SIZE(CEIL(blocks, sharing) * codes),
                       const u32* start SIZE(frequency), i32 from, i64 room, u16* words SIZE(blocks * room),
                       i64* used SIZE(blocks))
{
    FOR_EACH(item, items) {
        const Symbols all = {begin, code, sharing, codes, frequency, start, (u32)from, room, words, used};
        const i64 b = item * together, end = b + together < blocks ? b + together : blocks;
        if (ON_CPU && end - b == 3) encode_in_turns(all, 3, b);
        else if (ON_CPU && end - b == 2) encode_in_turns(all, 2, b);
        else for (i64 k = b; k < end; ++k) encode_in_turns(all, 1, k);
    }
}

// The words of each block, moved from the end of its slot to their final place.
KERNEL(gather_words)(i64 blocks, i64 room, const u16* words SIZE(blocks * room), const i64* used SIZE(blocks),
                     const i64* first SIZE(blocks + 1), u16* out SIZE(LAST(first)))
{
    FOR_EACH(b, blocks) {
        const u16* from = words + (b + 1) * room - used[b];
        for (i64 i = 0; i < used[b]; ++i) out[first[b] + i] = from[i];
    }
}

// The bits below the symbols, one after the other, from `first` 32-bit words on.
KERNEL(write_bits)(i64 blocks, i64 n, i64 piece, i64 block, i32 signs, const u64* value SIZE(n),
                   const i64* first SIZE(blocks + 1), u32* out SIZE(LAST(first)))
{
    const i64 each = blocks_of_piece(piece, block);
    FOR_EACH(b, blocks) {
        const Span at = block_at(b, n, piece, block, each);
        u32* to = out + first[b];
        u64 held = 0;
        i32 count = 0;
        for (i64 i = at.begin; i < at.end; ++i) {
            u64 rest = magnitude_of(value[i], signs);
            i32 left = bits_below(symbol_of(value[i], signs));
            while (left > 0) {
                const i32 taken = left < 32 ? left : 32;
                held |= (rest & ((1ULL << taken) - 1)) << count;
                rest >>= taken;
                left -= taken;
                count += taken;
                if (count >= 32) {
                    *to++ = (u32)held;
                    held >>= 32;
                    count -= 32;
                }
            }
        }
        if (count > 0) *to = (u32)held;
    }
}

// What a block is decoded from: its words, and the bits below the symbols.
struct Coded {
    const u16 *word, *last_word;
    const u32 *below, *last_below;
};

struct Tables {
    const u8* symbol_at;
    const u32 *frequency, *start;
};

// The numbers of one block. As in `classify_block`, `components` is a literal.
DEVICE void decode_block(i32 components, i64 count, i32 signs, Coded from, Tables tables, Levels levels, i32 lowest,
                         i32 highest, bool sums, u64 total, u64* value)
{
    u32 state = from.word < from.last_word ? *from.word++ : 0;
    state = state << 16 | (from.word < from.last_word ? *from.word++ : 0);
    u64 held = 0;
    i32 bits = 0;
    for (i64 item = 0; item < count; item += components)
        UNROLL for (i32 c = 0; c < components; ++c) {
            const i32 context = context_of(&levels, c, lowest, highest);
            const u32 slot = state & ((1 << PRECISION) - 1);
            const i32 symbol = tables.symbol_at[(context << PRECISION) + slot];
            const i32 code = context * SYMBOLS + symbol;
            state = tables.frequency[code] * (state >> PRECISION) + slot - tables.start[code];
            if (state < LEAST_STATE && from.word < from.last_word) state = state << 16 | *from.word++;
            u64 rest = 0;
            i32 got = 0, left = bits_below(symbol);
            do {
                const i32 taken = left < 32 ? left : 32;
                if (bits < taken) {
                    held |= (u64)(from.below < from.last_below ? *from.below++ : 0) << bits;
                    bits += 32;
                }
                rest |= (held & ((1ULL << taken) - 1)) << got;
                held >>= taken;
                bits -= taken;
                left -= taken;
                got += taken;
            } while (left > 0);
            const u64 number = value_of(symbol, signs, rest);
            follow(&levels, c, components, magnitude_of(number, signs));
            total += number;
            value[item + c] = sums ? total : number;
        }
}

// The first slot of each symbol in each row of a table, and the symbol of each slot.
KERNEL(fill_slots)(i64 rows, const u32* frequency SIZE(rows * 256), u32* start SIZE(frequency), u8* symbol_at SIZE(rows * 4096))
{
    FOR_EACH(r, rows) {
        u32 slot = 0;
        for (i32 s = 0; s < SYMBOLS; ++s) {
            start[r * SYMBOLS + s] = slot;
            for (u32 k = 0; k < frequency[r * SYMBOLS + s]; ++k) symbol_at[(r << PRECISION) + slot++] = (u8)s;
        }
    }
}

// The numbers of the chosen blocks; with `sums`, running sums of each one's numbers from `base` on. Whatever the input,
// nothing is read outside what `word_first` and `bits_first` delimit: a damaged stream gives wrong numbers, which checksums
// catch. As many blocks as `sharing` says, one after the other, share levels and tables.
KERNEL(decode_symbols)(i64 blocks, i32 components, i32 signs, const i64* chosen SIZE(blocks),
                       const i64* begin SIZE(blocks + 1), const i64* word_first SIZE(bits_first),
                       const u16* words SIZE(LAST(word_first)), const i64* bits_first SIZE(>= 1),
                       const u32* bits SIZE(LAST(bits_first)), i64 sharing,
                       const u8* symbol_at SIZE(octave * components * 64 * 4096),
                       const u32* frequency SIZE(octave * components * 64 * 256), const u32* start SIZE(frequency),
                       const i32* octave SIZE(CEIL(bits_first - 1, sharing)), const i32* lowest SIZE(octave),
                       const i32* highest SIZE(octave), i32 sums, const u64* base SIZE(blocks), u64* value SIZE(LAST(begin)))
{
    FOR_EACH(b, blocks) {
        const i64 at = chosen[b], count = begin[b + 1] - begin[b], of = at / sharing;
        const Coded from = {
            words + word_first[at], words + word_first[at + 1], bits + bits_first[at], bits + bits_first[at + 1]};
        const i64 rows = of * components * CONTEXTS;
        const Tables tables = {symbol_at + (rows << PRECISION), frequency + rows * SYMBOLS, start + rows * SYMBOLS};
        const Levels levels = levels_at(octave[of]);
        const i32 low = lowest[of], high = highest[of];
        const u64 first = sums ? base[b] : 0;
        u64* to = value + begin[b];
        if (components == 1) decode_block(1, count, signs, from, tables, levels, low, high, sums, first, to);
        else if (components == 2) decode_block(2, count, signs, from, tables, levels, low, high, sums, first, to);
        else decode_block(3, count, signs, from, tables, levels, low, high, sums, first, to);
    }
}

// The symbols of all blocks, with contexts known beforehand. As above, damaged words only give wrong symbols.
KERNEL(decode_known)(i64 blocks, i64 n, i64 block, const u8* context SIZE(n), i32 symbols,
                     const i64* word_first SIZE(blocks + 1), const u16* words SIZE(LAST(word_first)),
                     const u32* frequency SIZE(>= symbols), const u32* start SIZE(frequency), u8* symbol SIZE(n))
{
    FOR_EACH(b, blocks) {
        const u16 *word = words + word_first[b], *last_word = words + word_first[b + 1];
        u32 state = word < last_word ? *word++ : 0;
        state = state << 16 | (word < last_word ? *word++ : 0);
        const i64 end = (b + 1) * block < n ? (b + 1) * block : n;
        for (i64 i = b * block; i < end; ++i) {
            const u32 *of_context = frequency + (i64)context[i] * symbols, *first = start + (i64)context[i] * symbols;
            const u32 slot = state & ((1 << PRECISION) - 1);
            i32 s = 0;
            while (s + 1 < symbols && slot >= first[s + 1]) ++s;
            symbol[i] = (u8)s;
            state = of_context[s] * (state >> PRECISION) + slot - first[s];
            if (state < LEAST_STATE) state = state << 16 | (word < last_word ? *word++ : 0);
        }
    }
}
