// Sorting by key and finding runs of equal keys, which turn particles into cells, and cells into blocks.
//
// Each work item walks one chunk of the array in order: count first, place after a prefix sum over the counts. Both
// steps keep the order of equal keys, so the result is the stable one whatever the number of chunks.
#include "portable.cuh"

static const i32 MOST_DIGITS = 1 << 11;   // as many counters as fit the first-level cache

// counts[digit * chunks + chunk]: its running sum is where each chunk places its first key of each digit.
KERNEL(count_digits)(i64 chunks, i64 n, const u64* key SIZE(n), i32 shift, i32 digits, i64* counts SIZE(digits * chunks))
{
    FOR_EACH(c, chunks) {
        u32 seen[MOST_DIGITS];
        for (i32 d = 0; d < digits; ++d) seen[d] = 0;
        const i64 end = chunk_begin(c + 1, chunks, n);
        for (i64 i = chunk_begin(c, chunks, n); i < end; ++i) ++seen[(key[i] >> shift) & (digits - 1)];
        for (i32 d = 0; d < digits; ++d) counts[d * chunks + c] = seen[d];
    }
}

KERNEL(place_by_digit)(i64 chunks, i64 n, const u64* key SIZE(n), const i32* value SIZE(n), i32 shift, i32 digits,
                       const i64* first SIZE(digits * chunks), u64* key_out SIZE(n), i32* value_out SIZE(n))
{
    FOR_EACH(c, chunks) {
        u32 next[MOST_DIGITS];   // positions fit: one array holds fewer than 2^31 items
        for (i32 d = 0; d < digits; ++d) next[d] = (u32)first[d * chunks + c];
        const i64 end = chunk_begin(c + 1, chunks, n);
        for (i64 i = chunk_begin(c, chunks, n); i < end; ++i) {
            const u32 to = next[(key[i] >> shift) & (digits - 1)]++;
            key_out[to] = key[i];
            value_out[to] = value[i];
        }
    }
}

// A chunk of the pass below; what is known of the pass is a literal, so that the loop holds no decisions.
template <bool joins, bool splits>
DEVICE void place_chunk(i64 begin, i64 end, const u64* from, i32 bits, i32 shift, i32 digits, u32* next, u64* to, i32* order)
{
    const u64 below = (1ull << bits) - 1;
    for (i64 i = begin; i < end; ++i) {
        const u64 word = joins ? from[i] << bits | (u64)i : from[i];
        const u32 place = next[(word >> shift) & (digits - 1)]++;
        to[place] = splits ? word >> bits : word;
        if (splits) order[place] = (i32)(word & below);
    }
}

// The same for words that hold a key above the number of its place, so that one array carries both; the number takes so many
// bits. `joins`: the words are still keys, and get their number. `splits`: after the last digit, both part again.
KERNEL(place_words)(i64 chunks, i64 n, const u64* from SIZE(n), i32 bits, i32 joins, i32 splits, i32 shift, i32 digits,
                    const i64* first SIZE(digits * chunks), u64* to SIZE(n), i32* order SIZE(n if splits else 0))
{
    FOR_EACH(c, chunks) {
        u32 next[MOST_DIGITS];
        for (i32 d = 0; d < digits; ++d) next[d] = (u32)first[d * chunks + c];
        const i64 begin = chunk_begin(c, chunks, n), end = chunk_begin(c + 1, chunks, n);
        if (joins) place_chunk<true, false>(begin, end, from, bits, shift, digits, next, to, order);
        else if (splits) place_chunk<false, true>(begin, end, from, bits, shift, digits, next, to, order);
        else place_chunk<false, false>(begin, end, from, bits, shift, digits, next, to, order);
    }
}

// Where the sort itself is not ours: key and number of the place in one word, and apart again.
KERNEL(join_words)(i64 n, i32 bits, u64* key SIZE(n))
{
    FOR_EACH(i, n) key[i] = key[i] << bits | (u64)i;
}

KERNEL(split_words)(i64 n, i32 bits, u64* word SIZE(n), i32* order SIZE(n))
{
    FOR_EACH(i, n) {
        order[i] = (i32)(word[i] & ((1ull << bits) - 1));
        word[i] >>= bits;
    }
}

DEVICE bool starts_run(i64 i, const u64* key, i32 shift) { return i == 0 || key[i] >> shift != key[i - 1] >> shift; }

KERNEL(count_runs)(i64 chunks, i64 n, const u64* key SIZE(n), i32 shift, i64* counts SIZE(chunks))
{
    FOR_EACH(c, chunks) {
        const i64 begin = chunk_begin(c, chunks, n), end = chunk_begin(c + 1, chunks, n);
        i64 found = begin < end && starts_run(begin, key, shift);
        for (i64 i = begin + 1; i < end; ++i) found += key[i] >> shift != key[i - 1] >> shift;
        counts[c] = found;
    }
}

// The same, and behind these counts those of the runs of `key >> coarse`: one walk over the keys for both.
KERNEL(count_nested_runs)(i64 chunks, i64 n, const u64* key SIZE(n), i32 shift, i32 coarse, i64* counts SIZE(2 * chunks))
{
    FOR_EACH(c, chunks) {
        const i64 begin = chunk_begin(c, chunks, n), end = chunk_begin(c + 1, chunks, n);
        i64 found = begin < end && starts_run(begin, key, shift), wider = begin < end && starts_run(begin, key, coarse);
        for (i64 i = begin + 1; i < end; ++i) {
            const u64 changed = key[i] ^ key[i - 1];
            found += changed >> shift != 0;
            wider += changed >> coarse != 0;
        }
        counts[c] = found;
        counts[chunks + c] = wider;
    }
}

KERNEL(place_runs)(i64 chunks, i64 n, const u64* key SIZE(n), i32 shift, const i64* first SIZE(chunks),
                   i32* start SIZE(>= LAST(first)))
{
    FOR_EACH(c, chunks) {
        i64 to = first[c];
        const i64 end = chunk_begin(c + 1, chunks, n);
        for (i64 i = chunk_begin(c, chunks, n); i < end; ++i)
            if (starts_run(i, key, shift)) start[to++] = (i32)i;
    }
}

KERNEL(gather_rows)(i64 n, const real* table SIZE(>= 0), const i32* order SIZE(n), real* gathered SIZE(n * D))
{
    FOR_EACH(i, n)
        for (i32 axis = 0; axis < DIMENSIONS; ++axis)
            gathered[i * DIMENSIONS + axis] = table[(i64)order[i] * DIMENSIONS + axis];
}
