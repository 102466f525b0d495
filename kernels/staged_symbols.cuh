// Residuals of large blocks of the codec `staged` as symbols of an entropy coder (rANS), with tables that never change.
//
// A residual is mapped to an even number if it is not negative and to an odd one otherwise. Residuals are coded in contexts,
// by their level and by how they are predicted. For each of these a block has a choice: the number of low bits that are
// stored as they are, and one of the tables of frequencies of what is above them. So no table is stored, blocks adapt to
// their residuals, and no launch waits for a count.
#pragma once

static const i32 CONTEXTS = 7;
static const i32 SYMBOLS = 16;         // of a table; the last one stands for all larger numbers
static const i32 LOG_SLOTS = 11;       // frequencies of a table sum to 2^11
static const i32 SLOTS = 2048;
static const i32 PLAIN = 12;           // choices without low bits; with them, there is one choice for each half octave
static const i32 TABLES = PLAIN + 2;
static const i32 MOST_CHOICE = 103;    // so at most 46 low bits
static const i32 LOG_MEAN = 12;
static const i32 LONGEST = 51;         // bits of magnitudes, as they are counted in means
static const i32 STATES = 4;           // of the coder, taken in turn
static const u32 LEAST_STATE = 1 << 15;
static const i32 LENGTH_BITS = 6;      // of the length of what exceeds a table
static const i32 HEAD = CONTEXTS + 4 * STATES;   // bytes before the words
static const i32 WORDS_ROOM = 8192;              // the most bytes of words
static const i32 NARROW_LARGE_ROOM = 25623, WIDE_LARGE_ROOM = 40983;   // of a block: head, words, other bits

namespace {

// What both directions know.
struct Tables {
    const u16* order;      // the places of residuals in the order in which they are coded: context by context
    const i32* begin;      // where each context begins, and the end
    const u32* share;      // of each symbol of each table, four words: see `put_symbol`
    const u32* slot;       // of each slot of each table: symbol, frequency << 4, and the slot less the first one << 16
    const u32* least;      // 2^12 times the least mean magnitude for which a choice is taken
};

}   // namespace

DEVICE ALWAYS_INLINE i32 low_bits(i32 choice) { return choice < PLAIN ? 0 : (choice - PLAIN + 2) >> 1; }
DEVICE ALWAYS_INLINE i32 table_of(i32 choice) { return choice < PLAIN ? choice : PLAIN + (choice & 1); }

// The choice for so many residuals whose magnitudes have this sum, less than 2^63.
DEVICE ALWAYS_INLINE i32 choice_of(const u32* least, u64 sum, u32 count)
{
    if (!sum) return 0;
    const u64 mean = sum >> 50 ? sum / count << LOG_MEAN : (sum << LOG_MEAN) / count;
    i32 choice = 1;
    while (choice < MOST_CHOICE) {
        const i32 next = choice + 1;
        if (mean < (u64)least[table_of(next)] << (next < PLAIN ? 0 : low_bits(next) - 1)) break;
        choice = next;
    }
    return choice;
}

template <class Number> DEVICE ALWAYS_INLINE Number folded(Number residual)
{
    return residual << 1 ^ (0 - (residual >> (8 * sizeof(Number) - 1)));
}
template <class Number> DEVICE ALWAYS_INLINE Number unfolded(Number number) { return number >> 1 ^ (0 - (number & 1)); }

namespace {

// Bits that follow each other in bytes, lowest first.
struct Writer {
    u8* to;
    u64 held;
    i32 count;
    DEVICE_METHOD void put(u64 bits, i32 length)
    {
        while (length > 0) {
            const i32 some = length < 32 ? length : 32;
            held |= (bits & (((u64)1 << some) - 1)) << count;
            for (count += some; count >= 8; count -= 8, held >>= 8) *to++ = (u8)held;
            bits >>= some;
            length -= some;
        }
    }
    DEVICE_METHOD void finish()
    {
        if (count) *to++ = (u8)held;
    }
};

// Their inverse; behind the end there are zeros, and `beyond` says that they were read.
struct Bits {
    const u8 *from, *end;
    u64 held;
    i32 count;
    bool beyond;
    DEVICE_METHOD u64 take(i32 length)
    {
        u64 bits = 0;
        for (i32 at = 0; at < length;) {
            const i32 some = length - at < 32 ? length - at : 32;
            while (count < some) {
                beyond |= from == end;
                if (from != end) held |= (u64)*from++ << count;
                count += 8;
            }
            bits |= (held & (((u64)1 << some) - 1)) << at;
            held >>= some;
            count -= some;
            at += some;
        }
        return bits;
    }
};

}   // namespace

// Adds a symbol to a state. Its four words: the least state, in units of 2^20, from which on a word is written before; 2^11 less
// the frequency f; what is added; and 2^(31 + k) / f, rounded up, for the least k with 2^k >= f. So quotients by f need no
// division: that by 1 is one too small, for which the third word makes up.
DEVICE ALWAYS_INLINE u32 put_symbol(const u32* share, u32 state, u16** words)
{
    if (state >> (31 - LOG_SLOTS) >= share[0]) {
        *--*words = (u16)state;
        state >>= 16;
    }
    const u32 quotient = (u32)((u64)state * share[3] >> 32) >> (share[2] >> 16);
    return state + (share[2] & 0xffff) + quotient * share[1];
}

// The residuals of a context as symbols below `out`, and their other bits; returns the choice.
template <class Number>
DEVICE ALWAYS_INLINE i32 put_context(const Tables& tables, i32 context, const Number* residual, Number* ordered, u8* symbol,
                                     Writer* writer)
{
    const i32 begin = tables.begin[context], end = tables.begin[context + 1];
    u64 sum = 0;
    for (i32 i = begin; i < end; ++i) ordered[i] = residual[tables.order[i]];
    for (i32 i = begin; i < end; ++i) {
        const Number size = magnitude_of(ordered[i]);
        sum += sizeof(Number) > 4 && size >> (LONGEST % (8 * sizeof(Number))) ? (u64)1 << LONGEST : (u64)size;
    }
    const i32 choice = choice_of(tables.least, sum, (u32)(end - begin)), below = low_bits(choice);
    Number exceed = 0;
    for (i32 i = begin; i < end; ++i) {
        const Number number = folded(ordered[i]), above = number >> below;
        ordered[i] = number;
        exceed |= above >= SYMBOLS - 1 ? 1 : 0;
        symbol[i] = (u8)(above < SYMBOLS - 1 ? above : SYMBOLS - 1);
    }
    if (exceed || below)
        for (i32 i = begin; i < end; ++i) {
            if (symbol[i] == SYMBOLS - 1) {
                const u64 excess = (u64)(ordered[i] >> below) - (SYMBOLS - 2);
                const i32 length = bit_length(excess) - 1;
                writer->put((u64)length, LENGTH_BITS);
                writer->put(excess, length);
            }
            writer->put((u64)ordered[i], below);
        }
    return choice;
}

// Writes the choices, the words and the bits of residuals; returns how many bytes. The other arrays are overwritten.
template <class Number>
DEVICE ALWAYS_INLINE i64 put_symbols(const Tables& tables, const Number* residual, Number* ordered, u8* symbol, u16* word, u8* out)
{
    Writer writer = {out + HEAD + WORDS_ROOM, 0, 0};   // moved to its place when that is known
    KEEP_LOOP for (i32 c = 0; c < CONTEXTS; ++c) out[c] = (u8)put_context(tables, c, residual, ordered, symbol, &writer);
    writer.finish();
    u32 state[STATES];
    for (i32 s = 0; s < STATES; ++s) state[s] = LEAST_STATE;
    u16* words = word + WORDS_ROOM / 2;
    KEEP_LOOP for (i32 c = CONTEXTS - 1; c >= 0; --c) {
        const u32* const share = tables.share + 4 * SYMBOLS * table_of(out[c]);
        const u8* const from = symbol + tables.begin[c];
        const i32 count = tables.begin[c + 1] - tables.begin[c], whole = count / STATES * STATES;
        for (i32 s = STATES - 2; s >= 0; --s)
            if (whole + s < count) state[s] = put_symbol(share + 4 * from[whole + s], state[s], &words);
        KEEP_LOOP for (i32 i = whole - STATES; i >= 0; i -= STATES)
            for (i32 s = STATES - 1; s >= 0; --s) state[s] = put_symbol(share + 4 * from[i + s], state[s], &words);
    }
    u8* to = out + CONTEXTS;
    for (i32 s = 0; s < STATES; ++s)
        for (i32 k = 0; k < 4; ++k) *to++ = (u8)(state[s] >> 8 * k);
    for (; words < word + WORDS_ROOM / 2; ++words) {
        *to++ = (u8)*words;
        *to++ = (u8)(*words >> 8);
    }
    for (const u8* from = out + HEAD + WORDS_ROOM; from < writer.to; ++from) *to++ = *from;
    return to - out;
}

// The next symbol of a state; behind the end, `from` does not move, and `sound` becomes false.
DEVICE ALWAYS_INLINE u8 get_symbol(const u32* slot, u32* state, const u8** from, const u8* end, bool* sound)
{
    const u32 entry = slot[*state & (SLOTS - 1)];
    u32 next = (entry >> 4 & 0xfff) * (*state >> LOG_SLOTS) + (entry >> 16);
    if (next < LEAST_STATE) {
        const bool there = end - *from > 1;
        *sound &= there;
        next = next << 16 | (there ? (u32)(*from)[0] | (u32)(*from)[1] << 8 : 0);
        *from += there ? 2 : 0;
    }
    *state = next;
    return (u8)(entry & (SYMBOLS - 1));
}

// Reads what `put_symbols` wrote between two ends; false where it wrote no such bytes.
template <class Number>
DEVICE ALWAYS_INLINE bool get_symbols(const Tables& tables, const u8* from, const u8* end, u8* symbol, Number* residual)
{
    if (end - from < HEAD) return false;
    const u8* const choice = from;
    for (i32 c = 0; c < CONTEXTS; ++c)
        if (choice[c] > MOST_CHOICE) return false;
    from += CONTEXTS;
    u32 state[STATES];
    for (i32 s = 0; s < STATES; ++s, from += 4)
        state[s] = (u32)from[0] | (u32)from[1] << 8 | (u32)from[2] << 16 | (u32)from[3] << 24;
    bool sound = true;
    KEEP_LOOP for (i32 c = 0; c < CONTEXTS; ++c) {
        const u32* const slot = tables.slot + SLOTS * table_of(choice[c]);
        u8* const to = symbol + tables.begin[c];
        const i32 count = tables.begin[c + 1] - tables.begin[c], whole = count / STATES * STATES;
        KEEP_LOOP for (i32 i = 0; i < whole; i += STATES)
            for (i32 s = 0; s < STATES; ++s) to[i + s] = get_symbol(slot, state + s, &from, end, &sound);
        for (i32 s = 0; s < STATES - 1; ++s)
            if (whole + s < count) to[whole + s] = get_symbol(slot, state + s, &from, end, &sound);
    }
    for (i32 s = 0; s < STATES; ++s) sound &= state[s] == LEAST_STATE;
    Bits bits = {from, end, 0, 0, false};
    KEEP_LOOP for (i32 c = 0; c < CONTEXTS; ++c) {
        const i32 begin = tables.begin[c], stop = tables.begin[c + 1], below = low_bits(choice[c]);
        i32 most = 0;
        for (i32 i = begin; i < stop; ++i) most = symbol[i] > most ? symbol[i] : most;
        if (!below && most < SYMBOLS - 1)
            for (i32 i = begin; i < stop; ++i) residual[tables.order[i]] = unfolded((Number)symbol[i]);
        else
            for (i32 i = begin; i < stop; ++i) {
                u64 above = symbol[i];
                if (above == SYMBOLS - 1) {
                    const i32 length = (i32)bits.take(LENGTH_BITS);
                    above = ((u64)1 << length | bits.take(length)) + (SYMBOLS - 2);
                }
                residual[tables.order[i]] = unfolded((Number)(above << below | bits.take(below)));
            }
    }
    return sound && !bits.beyond && bits.from == end && bits.held == 0;
}
