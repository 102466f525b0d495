// What translated PTX runs on: values with the widths and rounding of PTX, memory, and the threads of a launch.
//
// Here, threads run one after the other, and memory is accessed directly. With CHECKED, each access is looked up among the
// arrays that the launch was given, threads are suspended between accesses, and conflicts between threads are recorded. With
// COUNTED, instructions and the sectors of memory that they touch are counted.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

typedef bool pred;
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef int8_t s8; typedef int16_t s16; typedef int32_t s32; typedef int64_t s64;
typedef u8 b8; typedef u16 b16; typedef u32 b32; typedef u64 b64;
typedef float f32; typedef double f64;
typedef __int128 s128; typedef unsigned __int128 u128;

// Registers hold bits. An instruction reads as many as its type has, and writes a register that may be wider.

template <class To, class From> static inline To bits(From value)
{
    if constexpr (sizeof(To) == sizeof(From)) { To to; memcpy(&to, &value, sizeof to); return to; }
    else if constexpr (sizeof(To) == 4) { const u32 half = (u32)value; To to; memcpy(&to, &half, 4); return to; }
    else { const u64 whole = (u64)value; To to; memcpy(&to, &whole, sizeof to); return to; }
}

template <class To, class From> static inline To as(From value)
{
    if constexpr (std::is_same_v<To, From>) return value;
    else if constexpr (std::is_floating_point_v<To> || std::is_floating_point_v<From>) {
        static_assert(sizeof(To) == sizeof(From), "a register of another width");
        return bits<To>(value);
    }
    else return (To)value;
}

template <class Register, class Value> static inline void put(Register& target, Value value)
{
    if constexpr (std::is_same_v<Register, Value>) target = value;
    else if constexpr (std::is_floating_point_v<Register> || std::is_floating_point_v<Value>) {
        static_assert(sizeof(Register) == sizeof(Value), "a register of another width");
        target = bits<Register>(value);
    }
    else target = (Register)value;   // extended by the sign of its type
}

// NaN that an operation in single precision returns is always this one.
static inline f32 number(f32 value) { return value == value ? value : bits<f32>(0x7fffffffu); }
static inline f64 number(f64 value) { return value; }

template <class T> static inline bool differ(T a, T b) { return a < b || a > b; }

// The other operand if one is NaN, and -0 is smaller than +0.
template <class T> static inline T smaller(T a, T b)
{
    if constexpr (std::is_floating_point_v<T>) {
        if (a != a || b != b) return number(a != a ? b : a);
        return a < b || (a == b && std::signbit(a)) ? a : b;
    }
    else return a < b ? a : b;
}
template <class T> static inline T larger(T a, T b)
{
    if constexpr (std::is_floating_point_v<T>) {
        if (a != a || b != b) return number(a != a ? b : a);
        return a > b || (a == b && !std::signbit(a)) ? a : b;
    }
    else return a > b ? a : b;
}

template <class T> static inline T magnitude(T a)
{
    if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
    else return a < 0 ? (T)(0 - (std::make_unsigned_t<T>)a) : a;
}

// The nearest integer of the type; NaN is 0, or the top bit if one of the types has 64 bits.
template <class To, class From> static inline To to_integer(From value)
{
    typedef std::numeric_limits<To> Limits;
    if (value != value)
        return sizeof(From) == 8 || sizeof(To) == 8 ? (To)((std::make_unsigned_t<To>)1 << (8 * sizeof(To) - 1)) : (To)0;
    if (value <= (From)Limits::min()) return Limits::min();
    if (value >= (From)Limits::max()) return Limits::max();   // the next power of two where that is no float
    return (To)value;
}

template <class T> static inline T shifted_left(T a, u32 by) { return by < 8 * sizeof(T) ? (T)((u64)a << by) : (T)0; }
template <class T> static inline T shifted_right(T a, u32 by)
{
    if (by >= 8 * sizeof(T)) by = 8 * sizeof(T) - 1, a = (T)(std::is_signed_v<T> ? a : 0);
    return (T)(a >> by);
}
static inline u32 count_ones(u32 a) { return __builtin_popcount(a); }
static inline u32 count_ones(u64 a) { return __builtin_popcountll(a); }
static inline u32 leading_zeros(u32 a) { return a ? __builtin_clz(a) : 32; }
static inline u32 leading_zeros(u64 a) { return a ? __builtin_clzll(a) : 64; }
template <class T> static inline T reversed(T a)
{
    T found = 0;
    for (u32 bit = 0; bit < 8 * sizeof(T); ++bit) found |= (a >> bit & 1) << (8 * sizeof(T) - 1 - bit);
    return found;
}
static inline u32 permuted(u32 a, u32 b, u32 selection)
{
    const u64 both = (u64)b << 32 | a;
    u32 found = 0;
    for (u32 place = 0; place < 4; ++place) {
        const u32 chosen = selection >> 4 * place & 15;
        u32 byte = both >> 8 * (chosen & 7) & 255;
        if (chosen & 8) byte = byte & 128 ? 255 : 0;
        found |= byte << 8 * place;
    }
    return found;
}
template <class T> static inline T inserted(T field, T into, u32 place, u32 length)
{
    const u32 width = 8 * sizeof(T);
    place &= 255, length &= 255;
    const T mask = place >= width ? (T)0 : (T)((length >= width ? (T)~(T)0 : (T)(((T)1 << length) - 1)) << place);
    return (T)((into & ~mask) | (place >= width ? (T)0 : (T)(field << place & mask)));
}
template <class T> static inline T extracted(T a, u32 place, u32 length)
{
    const u32 width = 8 * sizeof(T);
    place &= 255, length &= 255;
    std::make_unsigned_t<T> found = 0;
    const u32 sign_at = place + length - 1 < width - 1 ? place + length - 1 : width - 1;
    const bool sign = std::is_signed_v<T> && length && ((std::make_unsigned_t<T>)a >> sign_at & 1);
    for (u32 bit = 0; bit < width; ++bit) {
        const bool set = bit < length && place + bit < width ? (std::make_unsigned_t<T>)a >> (place + bit) & 1 : sign;
        found |= (std::make_unsigned_t<T>)set << bit;
    }
    return (T)found;
}
static inline u32 by_table(u32 a, u32 b, u32 c, u32 table)
{
    u32 found = 0;
    for (u32 row = 0; row < 8; ++row)
        if (table >> row & 1) found |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    return found;
}

// What an atomic operation writes, from what is there and its operands.
template <class T> static T add_of(T before, T value) { return (T)((std::make_unsigned_t<T>)before + (std::make_unsigned_t<T>)value); }
template <class T> static T exch_of(T, T value) { return value; }
template <class T> static T min_of(T before, T value) { return value < before ? value : before; }
template <class T> static T max_of(T before, T value) { return value > before ? value : before; }
template <class T> static T and_of(T before, T value) { return before & value; }
template <class T> static T or_of(T before, T value) { return before | value; }
template <class T> static T xor_of(T before, T value) { return before ^ value; }
template <class T> static T cas_of(T before, T expected, T value) { return before == expected ? value : before; }

struct Thread {
    u32 tid_x, ctaid_x, ntid_x, nctaid_x;
#ifdef CHECKED
    struct { u64 begin, end; } locals[4];
    u32 local_count = 0;
    u64 index() const { return (u64)ctaid_x * ntid_x + tid_x; }
#endif
};

struct Common {   // what every launch has; the builds that check and count have more
    u32 grid, block;
    void* const* arguments;
    char* message;
    u32 message_size, site;
    u64 thread;
};

struct Fault {   // what ends a launch
    std::string what;
    u32 site;
};

#define FAULT(text) throw Fault{text, site}
#define VARIABLE(type, name, value) static type name##_value = value; static type* const name = &name##_value; KNOWN(name)

#if defined(CHECKED)
#include "checked.hpp"
#elif defined(COUNTED)
#include "counted.hpp"
#else

struct Launch : Common {};

#define KNOWN(variable)
#define FLAG(...)
#define WIDENED(over)
#define ALIGNED(at, size)
#define SITE(number) site = number;
#define LOCAL(name, size) (void)name
#define NOTHING(type) type()
#define LOAD(type, space, order, at) loaded<type>(at)
#define STORE(type, space, order, at, value) stored<type>(at, value)
#define ATOMIC(type, space, at, operation, ...) replaced<type>(at, [&](type before) { return operation(before, __VA_ARGS__); })

template <class T> static inline T loaded(u64 at) { T value; memcpy(&value, (const void*)at, sizeof value); return value; }
template <class T> static inline void stored(u64 at, T value) { memcpy((void*)at, &value, sizeof value); }
template <class T, class Operation> static inline T replaced(u64 at, Operation operation)
{
    const T before = loaded<T>(at);
    stored<T>(at, operation(before));
    return before;
}

typedef void Kernel(Launch&, Thread&);

static void run(Launch& launch, Kernel* kernel)
{
    for (u32 block = 0; block < launch.grid; ++block)
        for (u32 lane = 0; lane < launch.block; ++lane) {
            Thread thread{lane, block, launch.block, launch.grid};
            launch.thread = (u64)block * launch.block + lane;
            kernel(launch, thread);
        }
}

#endif

#define QUOTIENT(a, b) quotient(a, b, site)
#define REMAINDER(a, b) rest(a, b, site)

template <class T> static inline T quotient(T a, T b, u32 site)
{
    if (b == 0) throw Fault{"a division by zero", site};
    if (std::is_signed_v<T> && b == (T)-1) return (T)(0 - (std::make_unsigned_t<T>)a);
    return a / b;
}
template <class T> static inline T rest(T a, T b, u32 site)
{
    if (b == 0) throw Fault{"a remainder by zero", site};
    if (std::is_signed_v<T> && b == (T)-1) return 0;
    return a % b;
}

template <class T> static inline T parameter(Launch& launch, u32 number)
{
    T value;
    memcpy(&value, launch.arguments[number], sizeof value);
    return value;
}

// 0, or 1 with the message, the thread and the instruction where it happened.
static int launched(Launch& launch, Kernel* kernel)
{
    try {
        run(launch, kernel);
        return 0;
    }
    catch (const Fault& fault) {
        snprintf(launch.message, launch.message_size, "%s", fault.what.c_str());
        launch.site = fault.site;
        return 1;
    }
}

#define ENTRY(name) extern "C" int name(Launch* launch) { return launched(*launch, name##_thread); }
