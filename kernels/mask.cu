// Masks of grids: context modelling with an adaptive binary arithmetic coder, as JBIG codes pictures of two levels.
//
// What is different here: a mask of a field is mostly the same at all times or levels. So the first thing coded of a row is
// whether it equals the row `lag` rows before (the same place one time earlier), and the context of a cell holds the cells
// around it there, which the decoder knows, beside the ten of JBIG above and to the left of it.
//
// A mask is cut into strips of rows, coded independently: in parallel. All arithmetic is in integers.
#include "portable.cuh"
#include "binary_coder.cuh"

static const i32 CONTEXTS = 1 << 15;     // of cells
static const i32 ALL_CONTEXTS = CONTEXTS + 2;   // and of rows, by whether the row before was equal

// The rows that the contexts of a row look at; null where they are before its strip.
struct Rows {
    const u8 *above, *above2;                   // in this plane
    const u8 *earlier, *earlier_up, *earlier_down;   // at the same place, `lag` rows before
};

DEVICE u32 cell_of(const u8* row, i64 x, i64 columns) { return row && x >= 0 && x < columns ? row[x] : 0; }

// The bits of a context that move on by one from cell to cell: windows on three rows, to be filled before the first cell.
struct Window {
    u32 left, above, above2;
};

DEVICE Window window_at_start(Rows rows, i64 columns)
{
    Window window = {0, 0, 0};
    for (i64 x = 0; x < 2; ++x) window.above = window.above << 1 | cell_of(rows.above, x, columns);
    window.above2 = cell_of(rows.above2, 0, columns);
    return window;
}

DEVICE u32 context_of(Window* window, Rows rows, i64 x, i64 columns)
{
    window->above = (window->above << 1 | cell_of(rows.above, x + 2, columns)) & 31;
    window->above2 = (window->above2 << 1 | cell_of(rows.above2, x + 1, columns)) & 7;
    const u32 plane = window->left | window->above << 2 | window->above2 << 7;
    if (!rows.earlier) return plane;
    const u32 cross = cell_of(rows.earlier, x - 1, columns) | cell_of(rows.earlier, x, columns) << 1 |
                      cell_of(rows.earlier, x + 1, columns) << 2 | cell_of(rows.earlier_up, x, columns) << 3 |
                      cell_of(rows.earlier_down, x, columns) << 4;
    return plane | cross << 10;
}

// Row `r` of a strip that begins at row `first`; `lag` 0 means that there are no planes.
DEVICE Rows rows_for(const u8* mask, i64 r, i64 first, i64 lag, i64 columns)
{
    const u8* row = mask + r * columns;
    Rows rows = {nullptr, nullptr, nullptr, nullptr, nullptr};
    if (r - 1 >= first) rows.above = row - columns;
    if (r - 2 >= first) rows.above2 = row - 2 * columns;
    if (lag > 0 && r - lag >= first) {
        rows.earlier = row - lag * columns;
        if (r - lag - 1 >= first) rows.earlier_up = rows.earlier - columns;
        if (lag > 1) rows.earlier_down = rows.earlier + columns;
    }
    return rows;
}

// The row that a row is expected to equal; null: one without set cells.
DEVICE const u8* expected(Rows rows) { return rows.earlier ? rows.earlier : rows.above; }

DEVICE void reset(u32* state)
{
    for (i32 k = 0; k < ALL_CONTEXTS; ++k) state[k] = HALF;
}

// Each strip of `strip` rows in a slot of `room` bytes of `out`; `used` says how many it takes, which may be more.
KERNEL(encode_mask)(i64 strips, i64 strip, i64 rows, i64 columns, i64 lag, const u8* mask SIZE(rows * columns),
                    u32* states SIZE(strips * 32770), i64 room, u8* out SIZE(strips * room), i64* used SIZE(strips))
{
    FOR_EACH_UNEVEN(s, strips) {
        const i64 first = s * strip, end = first + strip < rows ? first + strip : rows;
        u32* state = states + s * ALL_CONTEXTS;
        reset(state);
        Writer to = writer_to(out + s * room, room);
        i32 before = 0;
        for (i64 r = first; r < end; ++r) {
            const u8* row = mask + r * columns;
            const Rows known = rows_for(mask, r, first, lag, columns);
            const u8* like = expected(known);
            i32 equal = 1;
            for (i64 x = 0; x < columns && equal; ++x) equal = row[x] == (like ? like[x] : 0);
            code_bit(&to, state + CONTEXTS + before, equal);
            before = equal;
            if (equal) continue;
            Window window = window_at_start(known, columns);
            for (i64 x = 0; x < columns; ++x) {
                code_bit(&to, state + context_of(&window, known, x, columns), row[x]);
                window.left = (window.left << 1 | row[x]) & 3;
            }
        }
        put_all(&to);
        used[s] = to.used;
    }
}

// Whatever the bytes are, nothing outside a strip's own is read: damaged ones give a wrong mask, which checksums catch.
KERNEL(decode_mask)(i64 strips, i64 strip, i64 rows, i64 columns, i64 lag, const i64* first_byte SIZE(strips + 1),
                    const u8* bytes SIZE(LAST(first_byte)), u32* states SIZE(strips * 32770), u8* mask SIZE(rows * columns))
{
    FOR_EACH_UNEVEN(s, strips) {
        const i64 first = s * strip, end = first + strip < rows ? first + strip : rows;
        u32* state = states + s * ALL_CONTEXTS;
        reset(state);
        Reader from = reader_of(bytes + first_byte[s], bytes + first_byte[s + 1]);
        i32 before = 0;
        for (i64 r = first; r < end; ++r) {
            u8* row = mask + r * columns;
            const Rows known = rows_for(mask, r, first, lag, columns);
            const u8* like = expected(known);
            before = code_bit(&from, state + CONTEXTS + before, 0);
            if (before) {
                for (i64 x = 0; x < columns; ++x) row[x] = like ? like[x] : 0;
                continue;
            }
            Window window = window_at_start(known, columns);
            for (i64 x = 0; x < columns; ++x) {
                row[x] = (u8)code_bit(&from, state + context_of(&window, known, x, columns), 0);
                window.left = (window.left << 1 | row[x]) & 3;
            }
        }
    }
}
