// A binary arithmetic coder with chances that adapt. All arithmetic is in integers, so that all machines agree.
//
// A state is a probability of 22 bits, and in the low bits how often it was met: it moves fast at first, then ever slower.
#pragma once

static const u32 HALF = 1u << 31;
static const u32 COUNT = 1023;           // the low bits of a state count what was seen, the others are a probability
static const u32 MOST_SEEN = 400;        // the share of the newest in the probability is never less than one over this
static const u32 LEAST_RANGE = 1u << 24;

// The probability of a one, in 1/2^16; never 0 or 1.
DEVICE u32 chance(u32 state)
{
    const u32 p = state >> 16;
    return p < 1 ? 1 : p;
}

DEVICE u32 adapted(u32 state, i32 bit)
{
    const u32 seen = state & COUNT, p = state >> 10;
    const i32 away = (bit ? (1 << 22) - 1 : 0) - (i32)p;
    const u32 next = p + (u32)(away * 2 / (i32)(2 * seen + 3));
    return next << 10 | (seen < MOST_SEEN ? seen + 1 : seen);
}

// Where an arithmetic coder writes; beyond `room` bytes it only counts.
struct Writer {
    u8* out;
    i64 used, room;
    u32 low, range;
};

DEVICE Writer writer_to(u8* out, i64 room)
{
    const Writer to = {out, 0, room, 0, ~0u};
    return to;
}

DEVICE void put(Writer* to)
{
    if (to->used < to->room) to->out[to->used] = (u8)(to->low >> 24);
    ++to->used;
    to->low <<= 8;
    to->range <<= 8;
}

DEVICE void add_low(Writer* to, u32 more)
{
    const u32 low = to->low + more;
    if (low < to->low)   // a carry, into bytes that are written already
        for (i64 i = to->used - 1; i >= 0 && (i >= to->room || ++to->out[i] == 0); --i) {}
    to->low = low;
}

// A bit that is a one with the probability p, in 1/2^16. A reader takes no notice of the bit it is given, and returns the one
// that it finds.
DEVICE i32 code_bit(Writer* to, u32 p, i32 bit)
{
    const u32 share = (to->range >> 16) * p;
    if (bit) to->range = share;
    else {
        add_low(to, share);
        to->range -= share;
    }
    while (to->range < LEAST_RANGE) put(to);
    return bit;
}

// The end of the code: all of it, or the shortest end, behind which a reader finds zeros.
DEVICE void put_all(Writer* to)
{
    for (i32 k = 0; k < 4; ++k) put(to);
}

DEVICE void put_shortest(Writer* to)
{
    add_low(to, LEAST_RANGE - 1);
    put(to);
}

struct Reader {
    const u8 *next, *end;
    u32 code, range;
};

DEVICE void take(Reader* from)
{
    from->code = from->code << 8 | (from->next < from->end ? *from->next++ : 0);
    from->range <<= 8;
}

DEVICE Reader reader_of(const u8* begin, const u8* end)
{
    Reader from = {begin, end, 0, 0};
    for (i32 k = 0; k < 4; ++k) take(&from);
    from.range = ~0u;
    return from;
}

DEVICE i32 code_bit(Reader* from, u32 p, i32)
{
    const u32 share = (from->range >> 16) * p;
    const i32 bit = from->code < share;
    if (bit) from->range = share;
    else {
        from->code -= share;
        from->range -= share;
    }
    while (from->range < LEAST_RANGE) take(from);
    return bit;
}

// A bit whose state follows it.
template <class Coder> DEVICE i32 code_bit(Coder* coder, u32* state, i32 bit)
{
    const i32 coded = code_bit(coder, chance(*state), bit);
    *state = adapted(*state, coded);
    return coded;
}
