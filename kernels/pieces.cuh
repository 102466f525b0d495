// An array in pieces of equal length, of which the last may be shorter, as the chunks of an archive: one launch serves all.
//
// Each piece is cut into blocks or groups anew, so its last one may be shorter, too.
#pragma once

struct Span {
    i64 piece, begin, end;
};

// How many blocks a piece has, but perhaps the last piece.
DEVICE i64 blocks_of_piece(i64 piece, i64 block) { return (piece + block - 1) / block; }

// Block `b` of all pieces; `each` is `blocks_of_piece(piece, block)`.
DEVICE Span block_at(i64 b, i64 n, i64 piece, i64 block, i64 each)
{
    const i64 p = b < each ? 0 : b / each;   // there is mostly one piece, and a division takes long
    const i64 end = (p + 1) * piece < n ? (p + 1) * piece : n, begin = p * piece + (b - p * each) * block;
    const Span span = {p, begin, begin + block < end ? begin + block : end};
    return span;
}

// Run `c` of pieces that are cut into `each` nearly equal runs; runs of a short piece may be empty.
DEVICE Span run_at(i64 c, i64 n, i64 piece, i64 each)
{
    const i64 p = c / each, at = p * piece, size = at + piece < n ? piece : n - at;
    const Span span = {p, at + chunk_begin(c - p * each, each, size), at + chunk_begin(c - p * each + 1, each, size)};
    return span;
}

// Which piece holds item `i`.
DEVICE i64 piece_of(i64 i, i64 piece) { return i < piece ? 0 : i / piece; }

// The place of item `i` in its piece: of particles, of which no piece has 2^31, as divisions of 32 bits are faster.
DEVICE u32 place_in_piece(i64 i, i64 piece) { return (u32)(i < piece ? i : i % piece); }
