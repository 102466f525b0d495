// Cells of atoms in the order of a file, each placed by earlier atoms of its molecule: bond lengths, bond angles and
// dihedral angles, as in a Z-matrix, but with bonds that the encoder finds and means that are learned.
//
// An atom is attached to one of the 31 atoms before it, mostly one that it is bonded to: the encoder takes the one from
// which it is coded shortest. The distance to it has a class, an eighth of an octave. Two more earlier atoms that are
// attached nearby span a local frame. In it, atoms in the same situation (the same classes around them) have nearly the
// same length, angle and dihedral angle, with means and mean deviations that are learned. They give a point, and a variance
// along three directions; so they give a mean and a variance of x, of y given x, and of z given both, and the
// differences from these means are coded. Where a length alone is known, x is coded first, then the place on the circle
// that is left. So bonds of fixed length take the bits of a sphere, not those of a ball. An atom that is near no other
// is stored as it is.
//
// All is coded bit by bit with chances that adapt, by a binary range coder. Blocks are independent. The decoder repeats the
// arithmetic, in float64: in a fixed order, without fused multiply-add, and with no function but the square root.
#include "portable.cuh"
#include "pieces.cuh"

static const i32 OFFSET_BITS = 5;            // an atom is attached to one of the last 2^5 - 1 before it, or 0: to none
static const i32 LENGTH_BITS = 8;            // of the class of a distance
static const i32 DIHEDRAL_BITS = 5;          // of the class of a dihedral angle: 32 around
static const i32 OFFSETS = 1024, LENGTHS = 256, DIHEDRALS = 2048;   // contexts of each
static const i32 SCALES = 64;                // of differences: half octaves of the variance
static const i32 FRACTIONS = 4, NEAR = 8;    // chances of small differences, by the fraction of the mean
static const i32 FAR = 136, MANTISSA = 40;   // chances of large ones, first of their lengths
static const i32 CHANCES = 174592;           // of all these
static const i32 SITUATIONS = 8192, ENTRIES = 7;   // of each: see the enumeration below
static const i32 MEANS = 57344;              // of all situations
static const float MOST_COUNTED = 200;       // atoms; with more, means follow the latest
static const i32 LINKS = 4;                  // numbers of each atom's attachment
static const i32 REACH = 9;                  // classes between the lengths of bonds that make a frame
static const i64 MOST_CELLS = 1073741824;    // along an axis
static const u64 FULL_RANGE = 1ULL << 48;    // the range of the coder
static const double BIN = 8;                 // the largest width of a bin on a circle, in cells
static const double MOST_GAIN = 256;         // how much likelier an expected bond is than any as long, at most
static const double LEAST_VARIANCE = 0.08;   // from rounding to cells

static_assert(CHANCES == (OFFSETS << OFFSET_BITS) + (LENGTHS << LENGTH_BITS) + (DIHEDRALS << DIHEDRAL_BITS) +
                             SCALES * (FRACTIONS * NEAR + FAR),
              "the chances of offsets, lengths, dihedral angles and differences");
static_assert(MEANS == SITUATIONS * ENTRIES, "the means of all situations");

namespace {

struct Vector {
    double x, y, z;
};

// Of a situation: how many atoms were in it, means over them, and mean deviations. ALONG is the cosine of the angle between
// bond and axis.
enum { COUNT, LENGTH, LENGTH_OFF, ALONG, ALONG_OFF, DIHEDRAL, DIHEDRAL_OFF };

// Of an atom: what it is attached to, the class of the distance, which atom was attached to the same one before, and which
// atom is the latest attached to it; -1 for none.
enum { BASE, CLASS, BEFORE, LATEST };

// The bits become a binary fraction, 16 bits a word. Carries go into words that are written already.
struct Encoder {
    u64 low, range;
    u16 *out, *begin, *end;
    bool fits;

    DEVICE_METHOD void carry()
    {
        if (low < FULL_RANGE) return;
        low -= FULL_RANGE;
        for (u16* word = out; word > begin;)
            if (++*--word) break;
    }

    DEVICE_METHOD void settle()
    {
        carry();
        for (; range >> 32 == 0; range <<= 16) {
            if (out < end) *out++ = (u16)(low >> 32);
            else fits = false;
            low = low << 16 & (FULL_RANGE - 1);
        }
    }

    DEVICE_METHOD u32 bit(u32 share, u32 bit)
    {
        const u64 bound = (range >> 16) * share;
        low += bit ? 0 : bound;
        range = bit ? bound : range - bound;
        settle();
        return bit;
    }

    DEVICE_METHOD u64 even(u64 value, u64 count)
    {
        range /= count;
        low += value * range;
        settle();
        return value;
    }

    DEVICE_METHOD void finish()   // the shortest number in the range; behind it, a decoder finds zeros
    {
        low += (1ULL << 32) - 1;
        carry();
        if (out < end) *out++ = (u16)(low >> 32);
        else fits = false;
    }
};

struct Decoder {
    u64 code, range;
    const u16 *word, *last_word;

    DEVICE_METHOD void open()
    {
        for (i32 k = 0; k < 3; ++k) code = code << 16 | next();
    }

    DEVICE_METHOD u64 next() { return word < last_word ? *word++ : 0; }

    DEVICE_METHOD void settle()
    {
        for (; range >> 32 == 0; range <<= 16) code = code << 16 | next();
    }

    DEVICE_METHOD u32 bit(u32 share, u32)
    {
        const u64 bound = (range >> 16) * share;
        const u32 bit = code < bound;
        code -= bit ? 0 : bound;
        range = bit ? bound : range - bound;
        settle();
        return bit;
    }

    DEVICE_METHOD u64 even(u64, u64 count)
    {
        range /= count;
        const u64 part = code / range, value = part < count ? part : count - 1;
        code -= value * range;
        settle();
        return value;
    }
};

// The atoms of a block. `recent` has the offset and the class of the last two atoms.
struct Atoms {
    const i32* cell;
    i32* link;
    const i64 *last, *period;
    u32* chance;
    float* means;
    i32 recent[4];
};

// The atom that a bond starts from, the two that span a frame with it (-1 for none), the frame, and hashes of the
// situation: of the classes of all of them, and of the atom's own class alone.
struct Frame {
    i32 base, axis, side;
    Vector along, across, third;
    u32 situation, wide;
};

// A point near which an atom is expected, with variances along three directions; its length, cosine and dihedral angle.
struct Guess {
    Vector direction[3];
    double variance[3], length, along, dihedral;
};

}   // namespace

DEVICE Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
DEVICE Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
DEVICE Vector operator*(double s, Vector a) { return {s * a.x, s * a.y, s * a.z}; }
DEVICE double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
DEVICE Vector cross(Vector a, Vector b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }

DEVICE double magnitude(double value) { return value < 0 ? -value : value; }
DEVICE double larger(double a, double b) { return a > b ? a : b; }

// The whole number at or below a value, within what differences of cells can have; 0 for NaN, as of damaged bytes.
DEVICE i64 floored(double value)
{
    const double most = 8.0 * (double)MOST_CELLS;
    return !(value > -most) ? 0 : value < most ? (i64)floor(value) : 0;
}

DEVICE u32 mixed(u32 hash, u32 value)
{
    hash = (hash ^ value) * 0x9e3779b1u;
    hash = (hash ^ hash >> 15) * 0x85ebca6bu;
    return hash ^ hash >> 13;
}

// The class of a squared distance: 0 for the same cell, above that eighths of an octave of the distance.
DEVICE i32 class_of(u64 square)
{
    if (square == 0) return 0;
    const i32 length = bit_length(square);
    const u64 leading = square << (64 - length);   // 2^63 times 1, 2^(1/4), 2^(1/2) and 2^(3/4) begin the quarters
    return 4 * length - 3 + (leading >= 10968499338613645312ULL) + (leading >= 13043817825332783104ULL) +
           (leading >= 15511800964685064192ULL);
}

// The shortest distance of a class.
DEVICE double length_of(i32 size)
{
    const i32 quarter = (size - 1) & 3;
    const double part = quarter == 0 ? 1 : quarter == 1 ? 1.189207115002721 : quarter == 2 ? 1.4142135623730951
                                                                                           : 1.681792830507429;
    return sqrt(part * (double)(1ULL << ((size - 1) >> 2 & 63)));
}

// The half octave of a variance; that of 1 is 12.
DEVICE i32 scale_of(double variance)
{
    union {
        double number;
        u64 bits;
    } as;
    as.number = variance;
    const i32 scale = (i32)(as.bits >> 51 & 4095) - 2046 + 12;
    return scale < 0 ? 0 : scale < SCALES ? scale : SCALES - 1;
}

// Angles without trigonometry: from 0 to 4 around the square |x| + |y| = 1.
DEVICE double angle_of(double x, double y)
{
    const double sum = magnitude(x) + magnitude(y), part = sum > 0 ? magnitude(y) / sum : 0;
    return x >= 0 ? (y >= 0 ? part : 4 - part) : y >= 0 ? 2 - part : 2 + part;
}

// The direction at an angle, and how far it turns for each unit of the angle.
DEVICE void direction_at(double angle, double* x, double* y, double* speed)
{
    const double within = angle < 0 ? angle + 4 : angle >= 4 ? angle - 4 : angle;
    const i32 quarter = (i32)floored(within) & 3;
    const double part = within - quarter, rest = 1 - part, size = 1 / sqrt(part * part + rest * rest);
    *x = (quarter == 0 ? rest : quarter == 1 ? -part : quarter == 2 ? -rest : part) * size;
    *y = (quarter == 0 ? part : quarter == 1 ? rest : quarter == 2 ? -part : -rest) * size;
    *speed = size * size;
}

// A chance has 16 bits of probability that a bit is 1, and how often it was met.
DEVICE u32 learned(u32 chance, u32 bit)
{
    const i32 share = (i32)(chance >> 16), met = (i32)(chance & 0xffff);
    const i32 next = share + ((bit ? 65535 : 0) - share) * 10 / (10 * met + 16);
    return (u32)(next < 32 ? 32 : next > 65504 ? 65504 : next) << 16 | (u32)(met + (met < 60));
}

template <class Coder> DEVICE u32 bit(Coder* coder, u32* chance, u32 value)
{
    const u32 coded = coder->bit(*chance >> 16, value);
    *chance = learned(*chance, coded);
    return coded;
}

// The chances of a symbol in a narrow context and in a wide one. The narrow one counts more the more often it was met.
struct Pair {
    u32 *narrow, *wide;
};

DEVICE u32 share_of(Pair chances, u32 node)
{
    const u32 narrow = chances.narrow[node], weight = narrow & 0xffff;
    return ((narrow >> 16) * weight + (chances.wide[node] >> 16)) / (weight + 1);
}

// A number of so many bits, the highest first, each with a chance for what was before it.
template <class Coder> DEVICE u32 symbol(Coder* coder, Pair chances, u32 value, i32 bits)
{
    u32 node = 1;
    for (i32 k = bits - 1; k >= 0; --k) {
        const u32 coded = coder->bit(share_of(chances, node), value >> k & 1);
        chances.narrow[node] = learned(chances.narrow[node], coded);
        chances.wide[node] = learned(chances.wide[node], coded);
        node = 2 * node + coded;
    }
    return node - (1u << bits);
}

// How likely a number is.
DEVICE double likelihood(Pair chances, u32 value, i32 bits)
{
    double product = 1;
    u32 node = 1;
    for (i32 k = bits - 1; k >= 0; --k) {
        const u32 one = value >> k & 1, share = share_of(chances, node);
        product *= (double)(one ? share : 65536 - share) * (1.0 / 65536);
        node = 2 * node + one;
    }
    return product;
}

// A number below `count` of which nothing is known.
template <class Coder> DEVICE u64 even(Coder* coder, u64 value, u64 count)
{
    const i32 length = bit_length(count), shift = length > 24 ? length - 24 : 0;
    u64 coded = coder->even(value >> shift, ((count - 1) >> shift) + 1) << shift;
    for (i32 at = 0; at < shift; at += 16) {
        const i32 bits = shift - at < 16 ? shift - at : 16;
        coded |= coder->even(value >> at & ((1ULL << bits) - 1), 1ULL << bits) << at;
    }
    return coded;
}

// A size from 1 on: its length, some bits with chances, the rest without.
template <class Coder> DEVICE i64 size_from_one(Coder* coder, u32* chance, i64 size)
{
    i32 below = 0;
    while (below < MANTISSA - 1 && bit(coder, chance + below, (size >> below) > 1)) ++below;
    const i32 known = below < 3 ? below : 3, rest = below - known;
    u32* bits = chance + MANTISSA + (below < 11 ? below : 11) * 8;
    const i64 top = 1LL << known | symbol(coder, {bits, bits}, (u32)(size >> rest) & ((1u << known) - 1), known);
    return top << rest | (i64)(rest ? even(coder, (u64)size & ((1ULL << rest) - 1), 1ULL << rest) : 0);
}

// A whole number with an expected mean and variance. At small scales it matters where between numbers the mean is.
template <class Coder> DEVICE i64 number_near(Coder* coder, u32* chance, i64 value, double mean, double variance)
{
    const i64 middle = floored(mean + 0.5);
    const double off = mean - (double)middle;
    const i32 scale = scale_of(variance), eighth = scale > 20 ? 0 : (i32)floored(8 * magnitude(off));
    u32* near = chance + (scale * FRACTIONS + (eighth < 0 ? 0 : eighth < 3 ? eighth : 3)) * NEAR;
    u32* far = chance + (SCALES * FRACTIONS) * NEAR + scale * FAR;
    const i64 difference = off < 0 ? middle - value : value - middle;
    if (bit(coder, near, difference == 0)) return middle;
    const u32 negative = bit(coder, near + 1, difference < 0);
    i64 size = difference < 0 ? -difference : difference;
    if (!bit(coder, near + 2 + negative, size > 1)) size = 1;
    else if (!bit(coder, near + 4 + negative, size > 2)) size = 2;
    else size = 2 + size_from_one(coder, far, size - 2);
    return middle + ((negative != 0) != (off < 0) ? -size : size);
}

// A point near `mean`, with variances along three directions: x, then y given x, then z given both. x may be known.
template <class Coder>
DEVICE Vector point_near(Coder* coder, u32* chance, Vector value, Vector mean, const Vector* direction,
                         const double* variance, bool x_known)
{
    double xx = LEAST_VARIANCE, yy = LEAST_VARIANCE, zz = LEAST_VARIANCE, xy = 0, xz = 0, yz = 0;
    for (i32 k = 0; k < 3; ++k) {
        const Vector to = direction[k], wide = variance[k] * to;
        xx += wide.x * to.x;
        yy += wide.y * to.y;
        zz += wide.z * to.z;
        xy += wide.x * to.y;
        xz += wide.x * to.z;
        yz += wide.y * to.z;
    }
    Vector point = value;
    if (!x_known) {
        point.x = (double)number_near(coder, chance, (i64)value.x, mean.x, xx);
        const double off = (point.x - mean.x) / xx;
        mean.y += xy * off;
        mean.z += xz * off;
        yy -= xy * xy / xx;
        zz -= xz * xz / xx;
        yz -= xy * xz / xx;
    }
    point.y = (double)number_near(coder, chance, (i64)value.y, mean.y, yy);
    mean.z += yz * ((point.y - mean.y) / yy);
    point.z = (double)number_near(coder, chance, (i64)value.z, mean.z, zz - yz * yz / yy);
    return point;
}

// From one atom to another, the short way round.
DEVICE Vector between(const Atoms& atoms, i32 from, i32 to)
{
    i64 step[3];
    for (i32 axis = 0; axis < 3; ++axis) {
        const i64 period = atoms.period[axis];
        step[axis] = (i64)atoms.cell[to * 3 + axis] - atoms.cell[from * 3 + axis];
        if (period && step[axis] > period / 2) step[axis] -= period;
        if (period && step[axis] < -(period / 2)) step[axis] += period;
    }
    return {(double)step[0], (double)step[1], (double)step[2]};
}

DEVICE Pair chances_of_offset(const Atoms& atoms)
{
    u32 wide = mixed(1, (u32)atoms.recent[0]), narrow = mixed(wide, (u32)atoms.recent[1]);
    narrow = mixed(mixed(narrow, (u32)atoms.recent[2]), (u32)atoms.recent[3]);
    return {atoms.chance + (narrow % OFFSETS << OFFSET_BITS), atoms.chance + (wide % OFFSETS << OFFSET_BITS)};
}

DEVICE Pair chances_of_length(const Atoms& atoms, i32 offset)
{
    u32 *chance = atoms.chance + (OFFSETS << OFFSET_BITS), wide = mixed(2, (u32)offset);
    const u32 narrow = mixed(mixed(mixed(wide, (u32)atoms.recent[0]), (u32)atoms.recent[1]), (u32)atoms.recent[2]);
    return {chance + (narrow % LENGTHS << LENGTH_BITS), chance + (wide % LENGTHS << LENGTH_BITS)};
}

DEVICE Pair chances_of_dihedral(const Atoms& atoms, const Frame& frame)
{
    u32* chance = atoms.chance + (OFFSETS << OFFSET_BITS) + (LENGTHS << LENGTH_BITS);
    return {chance + (frame.situation % DIHEDRALS << DIHEDRAL_BITS), chance + (frame.wide % DIHEDRALS << DIHEDRAL_BITS)};
}

DEVICE u32* chances_of_differences(const Atoms& atoms)
{
    return atoms.chance + (OFFSETS << OFFSET_BITS) + (LENGTHS << LENGTH_BITS) + (DIHEDRALS << DIHEDRAL_BITS);
}

// The hashes of the situation. `kind` says how the frame was chosen.
DEVICE void hash_situation(const Atoms& atoms, i32 atom, u32 kind, i32 beside_axis, i32 beside_side, Frame* frame)
{
    const i32* own = atoms.link + atom * LINKS;
    u32 hash = mixed(mixed(3, (u32)own[CLASS]), kind);
    frame->wide = hash;
    if (frame->axis >= 0) hash = mixed(hash, (u32)atoms.link[beside_axis * LINKS + CLASS]);
    if (frame->side >= 0) hash = mixed(hash, (u32)(atoms.link[beside_side * LINKS + CLASS] + 1));
    frame->situation = kind == 2 || kind == 3 ? mixed(hash, (u32)(atom - own[BASE])) : hash;
}

// The two atoms that span a frame with the one that `atom` is attached to. The axis goes to what that one is attached to,
// or to what was attached to it before; then one more.
DEVICE void choose_frame(const Atoms& atoms, i32 atom, Frame* frame)
{
    const i32 *own = atoms.link + atom * LINKS, *base = atoms.link + own[BASE] * LINKS;
    const i32 size = own[CLASS], before = own[BEFORE], beyond = base[BASE];
    const bool attached = beyond >= 0 && base[CLASS] > 0 && base[CLASS] <= size + REACH && size <= base[CLASS] + REACH;
    const bool beside = before >= 0 && size <= atoms.link[before * LINKS + CLASS] + REACH;
    u32 kind = 0;
    frame->base = own[BASE];
    frame->axis = frame->side = -1;
    if (attached) {
        const i32* far = atoms.link + beyond * LINKS;
        frame->axis = beyond;
        if (beside) {
            frame->side = before;
            kind = 1;
        } else if (far[BASE] >= 0 && far[CLASS] <= base[CLASS] + REACH) {
            frame->side = far[BASE];
            kind = 2;
        } else {
            i32 other = far[LATEST];
            if (other == own[BASE]) other = base[BEFORE];
            if (other >= 0 && atoms.link[other * LINKS + CLASS] <= base[CLASS] + REACH) frame->side = other;
            kind = 3;
        }
    } else if (beside) {
        const i32 first = atoms.link[before * LINKS + BEFORE];
        frame->axis = before;
        if (first >= 0 && size <= atoms.link[first * LINKS + CLASS] + REACH) frame->side = first;
        kind = 4;
    }
    hash_situation(atoms, atom, kind, attached ? own[BASE] : before, kind == 2 ? beyond : frame->side, frame);
}

// The frame in numbers; an atom that gives no direction is left out.
DEVICE void span_frame(const Atoms& atoms, Frame* frame)
{
    if (frame->axis < 0) return;
    const Vector axis = between(atoms, frame->base, frame->axis);
    const double length = sqrt(dot(axis, axis));
    if (length < 1) {
        frame->axis = frame->side = -1;
        return;
    }
    frame->along = (1 / length) * axis;
    if (frame->side >= 0) {
        const Vector side = between(atoms, frame->base, frame->side), part = side - dot(side, frame->along) * frame->along;
        const double size = sqrt(dot(part, part));
        if (size >= 2 && size > 0.05 * sqrt(dot(side, side))) frame->across = (1 / size) * part;
        else frame->side = -1;
    }
    if (frame->side < 0) {
        const double x = magnitude(frame->along.x), y = magnitude(frame->along.y), z = magnitude(frame->along.z);
        const Vector side = x < y && x < z ? Vector{1, 0, 0} : y < z ? Vector{0, 1, 0} : Vector{0, 0, 1};
        const Vector part = side - dot(side, frame->along) * frame->along;
        frame->across = (1 / sqrt(dot(part, part))) * part;
    }
    frame->third = cross(frame->along, frame->across);
}

// A bin on a circle, of at most BIN cells; returns the angle at its middle, and the standard deviation in it.
template <class Coder> DEVICE double bin_on_circle(Coder* coder, double angle, double radius, double* deviation)
{
    i32 bits = 0;
    while (bits < 28 && radius * 1.57 > BIN * (double)(1LL << bits)) ++bits;
    const double bins = (double)(1LL << bits);
    const i64 bin = floored(angle * bins), most = (4LL << bits) - 1;
    *deviation = 0.289 / bins;
    return ((double)even(coder, (u64)(bin < 0 ? 0 : bin < most ? bin : most), 4ULL << bits) + 0.5) / bins;
}

// What is expected of a situation: the mean of what was measured and of a guess, which counts as `weight` atoms.
DEVICE double expected(const float* means, i32 which, double guess, double weight)
{
    const double count = (double)means[COUNT];
    return (count * (double)means[which] + weight * guess) / (count + weight);
}

DEVICE void update_mean(float* means, i32 which, double value, double mean)
{
    const double share = 1 / ((double)means[COUNT] + 1);
    means[which] = (float)((double)means[which] + (value - (double)means[which]) * share);
    means[which + 1] = (float)((double)means[which + 1] + (magnitude(value - mean) - (double)means[which + 1]) * share);
}

// The means of bonds of this class without a frame.
DEVICE float* means_in_shell(const Atoms& atoms, i32 size)
{
    return atoms.means + mixed(4, (u32)size) % SITUATIONS * ENTRIES;
}

// A bond of which the length alone is expected.
template <class Coder> DEVICE Vector bond_in_shell(Coder* coder, const Atoms& atoms, Vector value, i32 size)
{
    float* means = means_in_shell(atoms, size);
    const double shortest = length_of(size), width = length_of(size + 1) - shortest, reach = floor(shortest + width) + 1;
    const double length = means[COUNT] > 0 ? (double)means[LENGTH] : shortest + 0.5 * width;
    const double off = larger(expected(means, LENGTH_OFF, 0.25 * width, 2), 0.3);
    Vector bond = value;
    bond.x = (double)even(coder, (u64)floored(value.x + reach), 2 * (u64)reach + 1) - reach;
    const double square = length * length - bond.x * bond.x, least = 2 * length * off;
    const double radius = square > 0 ? sqrt(square) : 0, known = sqrt(larger(square, least));
    double deviation, speed, y, z;
    direction_at(bin_on_circle(coder, angle_of(value.y, value.z), known, &deviation), &y, &z, &speed);
    const double outward = 1.25 * off * length / known, around = known * speed * deviation;
    const Vector direction[3] = {{0, y, z}, {0, -z, y}, {0, 0, 0}};
    const double variance[3] = {outward * outward, around * around, 0};
    const Vector mean = {bond.x, radius * y, radius * z};
    bond = point_near(coder, chances_of_differences(atoms), bond, mean, direction, variance, true);
    update_mean(means, LENGTH, sqrt(dot(bond, bond)), length);
    means[COUNT] += means[COUNT] < MOST_COUNTED;
    return bond;
}

// The means of a situation, with the class of the dihedral angle if there is one.
DEVICE float* means_in_frame(const Atoms& atoms, const Frame& frame, u32 dihedral)
{
    return atoms.means + mixed(frame.situation, frame.side < 0 ? 64 : dihedral) % SITUATIONS * ENTRIES;
}

// What is expected of a bond in a frame. Without a third atom, the dihedral angle is `middle`, with this deviation.
DEVICE Guess guess_in_frame(const Frame& frame, const float* means, i32 size, u32 dihedral, double middle, double deviation)
{
    Guess guess;
    const double shortest = length_of(size), width = length_of(size + 1) - shortest;
    guess.length = means[COUNT] > 0 ? (double)means[LENGTH] : shortest + 0.5 * width;
    guess.along = expected(means, ALONG, -0.3, 0.5);
    guess.dihedral = expected(means, DIHEDRAL, 0, 0.5);
    const double length_off = 1.25 * expected(means, LENGTH_OFF, 0.2 * width, 3);
    const double along_off = expected(means, ALONG_OFF, 0.05, 3);
    const double sine = sqrt(larger(1 - guess.along * guess.along, 0));
    if (frame.side >= 0) {
        middle = 0.125 * dihedral + guess.dihedral;
        deviation = 1.25 * expected(means, DIHEDRAL_OFF, 0.03, 3);
    }
    double cosine, dihedral_sine, speed;
    direction_at(middle, &cosine, &dihedral_sine, &speed);
    const Vector out = cosine * frame.across + dihedral_sine * frame.third;
    guess.direction[0] = guess.along * frame.along + sine * out;
    guess.direction[1] = guess.along * out - sine * frame.along;
    guess.direction[2] = cosine * frame.third - dihedral_sine * frame.across;
    const double lever = 1.25 * along_off / larger(sine, sqrt(along_off)) * guess.length;
    const double around = guess.length * larger(sine, 0.05) * speed * deviation;
    guess.variance[0] = length_off * length_off;
    guess.variance[1] = lever * lever;
    guess.variance[2] = around * around;
    return guess;
}

DEVICE u32 dihedral_class(double angle) { return (u32)floored(8 * angle + 0.5) & 31; }

// A bond in a frame: its length, its angle to the axis and its dihedral angle are expected.
template <class Coder>
DEVICE Vector bond_in_frame(Coder* coder, const Atoms& atoms, Vector value, i32 size, const Frame& frame)
{
    const bool turned = frame.side >= 0;
    const double angle = angle_of(dot(value, frame.across), dot(value, frame.third));
    const u32 own = dihedral_class(angle);
    const u32 dihedral = turned ? symbol(coder, chances_of_dihedral(atoms, frame), own, DIHEDRAL_BITS) : 0;
    float* means = means_in_frame(atoms, frame, dihedral);
    double middle = 0, deviation = 0;
    if (!turned) {
        const double along = expected(means, ALONG, -0.3, 0.5), longest = length_of(size + 1);
        middle = bin_on_circle(coder, angle, longest * sqrt(larger(1 - along * along, 0.0025)), &deviation);
    }
    const Guess guess = guess_in_frame(frame, means, size, dihedral, middle, deviation);
    const Vector mean = guess.length * guess.direction[0];
    u32* chance = chances_of_differences(atoms);
    const Vector bond = point_near(coder, chance, value, mean, guess.direction, guess.variance, false);
    const double length = sqrt(dot(bond, bond));
    if (length < 1) return bond;   // of damaged bytes
    update_mean(means, LENGTH, length, guess.length);
    update_mean(means, ALONG, dot(bond, frame.along) / length, guess.along);
    const double off = angle_of(dot(bond, frame.across), dot(bond, frame.third)) - 0.125 * dihedral;
    if (turned) update_mean(means, DIHEDRAL, off > 2 ? off - 4 : off < -2 ? off + 4 : off, guess.dihedral);
    means[COUNT] += means[COUNT] < MOST_COUNTED;
    return bond;
}

// Attaches an atom to the one `offset` before it.
DEVICE void attach(const Atoms& atoms, i32 atom, i32 offset, i32 size)
{
    i32* own = atoms.link + atom * LINKS;
    own[BASE] = offset ? atom - offset : -1;
    own[CLASS] = size;
    own[BEFORE] = own[LATEST] = -1;
    if (!offset) return;
    own[BEFORE] = own[LATEST - LINKS * offset];
    own[LATEST - LINKS * offset] = atom;
}

DEVICE void detach(const Atoms& atoms, i32 atom)
{
    const i32* own = atoms.link + atom * LINKS;
    atoms.link[own[BASE] * LINKS + LATEST] = own[BEFORE];
}

// How likely a bond of this class is at the place it has, about: its share of a shell, or of what is expected in a frame.
DEVICE double likelihood_of_place(const Atoms& atoms, i32 atom, Vector bond, i32 size)
{
    Frame frame;
    choose_frame(atoms, atom, &frame);
    span_frame(atoms, &frame);
    if (frame.axis < 0) {
        const double off = expected(means_in_shell(atoms, size), LENGTH_OFF, 0.02 * length_of(size), 2);
        return 0.01 / (dot(bond, bond) * (4 * off + 1));
    }
    const double angle = angle_of(dot(bond, frame.across), dot(bond, frame.third));
    const u32 dihedral = dihedral_class(angle);
    const Guess guess = guess_in_frame(frame, means_in_frame(atoms, frame, dihedral), size, dihedral, angle, 1.6);
    const Vector off = bond - guess.length * guess.direction[0];
    double share = frame.side < 0 ? 1 : likelihood(chances_of_dihedral(atoms, frame), dihedral, DIHEDRAL_BITS), far = 0;
    for (i32 k = 0; k < 3; ++k) {
        const double variance = guess.variance[k] + LEAST_VARIANCE, along = dot(off, guess.direction[k]);
        share /= sqrt(6.3 * variance);
        far += along * along / variance;
    }
    return share / (1 + far * (0.5 + 0.125 * far));
}

// The atom before this one at which it is coded shortest.
DEVICE i32 best_offset(const Atoms& atoms, i32 atom)
{
    const Pair chance = chances_of_offset(atoms);
    double best = likelihood(chance, 0, OFFSET_BITS);
    for (i32 axis = 0; axis < 3; ++axis) best /= (double)atoms.last[axis] + 1;
    i32 chosen = 0;
    for (i32 offset = 1; offset < 1 << OFFSET_BITS && offset <= atom; ++offset) {
        const Vector bond = between(atoms, atom - offset, atom);
        const double square = dot(bond, bond);
        if (MOST_GAIN / ((square + 1) * sqrt(square + 1)) <= best) continue;
        const i32 size = class_of((u64)square);
        const double named = likelihood(chance, (u32)offset, OFFSET_BITS) *
                             likelihood(chances_of_length(atoms, offset), (u32)size, LENGTH_BITS);
        if (named <= best) continue;
        attach(atoms, atom, offset, size);
        const double total = size ? named * likelihood_of_place(atoms, atom, bond, size) : named;
        detach(atoms, atom);
        if (total > best) {
            best = total;
            chosen = offset;
        }
    }
    return chosen;
}

// One atom. A decoder knows neither `offset` nor `bond`.
template <class Coder> DEVICE Vector code_bond(Coder* coder, Atoms* atoms, i32 atom, i32* offset, Vector bond)
{
    *offset = (i32)symbol(coder, chances_of_offset(*atoms), (u32)*offset, OFFSET_BITS);
    if (*offset > atom) *offset = atom;   // in damaged bytes
    i32 size = 0;
    const u32 own = (u32)class_of((u64)dot(bond, bond));
    if (*offset) size = (i32)symbol(coder, chances_of_length(*atoms, *offset), own, LENGTH_BITS);
    attach(*atoms, atom, *offset, size);
    atoms->recent[2] = atoms->recent[0];
    atoms->recent[3] = atoms->recent[1];
    atoms->recent[0] = *offset;
    atoms->recent[1] = size;
    if (size == 0) return {0, 0, 0};
    Frame frame;
    choose_frame(*atoms, atom, &frame);
    span_frame(*atoms, &frame);
    if (frame.axis < 0) return bond_in_shell(coder, *atoms, bond, size);
    return bond_in_frame(coder, *atoms, bond, size, frame);
}

// What a run has: chances and situations for one block at a time.
DEVICE Atoms fresh_atoms(i64 run, i64 block, const i32* cell, const i64* last, const i64* period, u32* chance, float* means,
                         i32* link)
{
    Atoms atoms = {cell,   link + run * block * LINKS, last, period, chance + run * CHANCES, means + run * MEANS,
                   {0, 0, 0, 0}};
    for (i32 k = 0; k < CHANCES; ++k) atoms.chance[k] = 1u << 31;
    for (i32 k = 0; k < MEANS; ++k) atoms.means[k] = 0;
    attach(atoms, 0, 0, 0);
    return atoms;
}

// The words of each block, at the end of its slot; `used` is -1 where that is too short. The caller keeps the first atom of
// each block.
KERNEL(encode_molecules)(i64 runs, i64 blocks, i64 n, i64 piece, i64 block, const i32* cell SIZE(n * 3),
                         const i64* last SIZE(3), const i64* period SIZE(3), u32* chance SIZE(runs * 174592),
                         float* means SIZE(runs * 57344), i32* link SIZE(runs * block * 4), i64 slot,
                         u16* words SIZE(blocks * slot), i64* used SIZE(blocks))
{
    const i64 each = blocks_of_piece(piece, block);
    FOR_EACH(r, runs) {
        const i64 end = chunk_begin(r + 1, runs, blocks);
        for (i64 b = chunk_begin(r, runs, blocks); b < end; ++b) {
            const Span at = block_at(b, n, piece, block, each);
            Atoms atoms = fresh_atoms(r, block, cell + at.begin * 3, last, period, chance, means, link);
            u16* begin = words + b * slot;
            Encoder coder = {0, FULL_RANGE, begin, begin, begin + slot, true};
            for (i32 i = 1; i < (i32)(at.end - at.begin); ++i) {
                i32 offset = best_offset(atoms, i);
                code_bond(&coder, &atoms, i, &offset, between(atoms, i - offset, i));
                for (i32 axis = 0; axis < 3 && !offset; ++axis)
                    even(&coder, (u64)atoms.cell[i * 3 + axis], (u64)last[axis] + 1);
            }
            coder.finish();
            used[b] = coder.fits ? coder.out - begin : -1;
            for (u16* to = coder.end; coder.out > begin;) *--to = *--coder.out;
        }
    }
}

// The reverse. Whatever the words, nothing is read or written outside the arrays: damaged ones only give wrong cells.
KERNEL(decode_molecules)(i64 runs, i64 blocks, i64 n, i64 piece, i64 block, const i64* first SIZE(blocks * 3),
                         const i64* last SIZE(3), const i64* period SIZE(3), const i64* word_first SIZE(blocks + 1),
                         const u16* words SIZE(LAST(word_first)), u32* chance SIZE(runs * 174592),
                         float* means SIZE(runs * 57344), i32* link SIZE(runs * block * 4), i32* cell SIZE(n * 3))
{
    const i64 each = blocks_of_piece(piece, block);
    FOR_EACH(r, runs) {
        const i64 end = chunk_begin(r + 1, runs, blocks);
        for (i64 b = chunk_begin(r, runs, blocks); b < end; ++b) {
            const Span at = block_at(b, n, piece, block, each);
            Atoms atoms = fresh_atoms(r, block, cell + at.begin * 3, last, period, chance, means, link);
            Decoder coder = {0, FULL_RANGE, words + word_first[b], words + word_first[b + 1]};
            coder.open();
            i32* own = cell + at.begin * 3;
            for (i32 axis = 0; axis < 3; ++axis) own[axis] = (i32)first[b * 3 + axis];
            for (i32 i = 1; i < (i32)(at.end - at.begin); ++i) {
                i32 offset = 0;
                const Vector bond = code_bond(&coder, &atoms, i, &offset, {0, 0, 0});
                const double step[3] = {bond.x, bond.y, bond.z};
                for (i32 axis = 0; axis < 3; ++axis) {
                    i64 here = offset ? own[(i - offset) * 3 + axis] + floored(step[axis])
                                      : (i64)even(&coder, 0, (u64)last[axis] + 1);
                    if (period[axis] && here >= period[axis]) here -= period[axis];
                    if (period[axis] && here < 0) here += period[axis];
                    own[i * 3 + axis] = (i32)(here < 0 ? 0 : here < last[axis] ? here : last[axis]);
                }
            }
        }
    }
}
