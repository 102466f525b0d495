// The constructs of kernels. The first header of every kernel file; it makes one source compile for two machines.
//
//   KERNEL(name)(i64 n, ...)   an entry point; `n` counts the work items, and the rest are `i32`, `i64`, `double`
//                              scalars or pointers. backend.py reads these declarations to check what it is given.
//   SIZE(elements)             after a pointer: how many elements the array has, `SIZE(>= elements)` at least how many.
//                              workbench/declarations.py says what the expression may be; the launcher evaluates it and
//                              refuses any other array. Indices inside arrays (orders, starts) are not checked there:
//                              what comes from a file is checked where its bytes are decoded.
//   DEVICE                     a function called by kernels
//   DEVICE_METHOD              the same inside a struct; the struct must be in an anonymous namespace, or the linker
//                              confuses the methods of different variants
//   WIDE                       before DEVICE functions that a kernel calls once per work item: the CPU's build holds them in
//                              several versions, and takes the one for the longest vectors of the processor. The same
//                              operations in the same order, so the same result. What they call must be ALWAYS_INLINE.
//   FOR_EACH(i, n)             the loop over work items: a grid-stride loop on a GPU, OpenMP slices on a CPU
//   FOR_EACH_UNEVEN(i, n)      the same for items of very different cost: the CPU hands them out one by one
//   FOR_EACH_LIGHT(i, n)       the same for work so small that waking another CPU thread would take longer
//   ON_CPU                     true in the CPU's build: what pays there alone costs a GPU no registers
//   PREFETCH(p)                asks a CPU for the memory at `p`, which is read soon; a GPU does other work while it waits
//   KEEP_LOOP                  before a loop whose body is long: a GPU's compiler does not write it out several times
//   UNROLL                     before a loop of at most three steps, whose number the compiler knows: it writes out all of them
//   real, DIMENSIONS           float or double, 2 or 3: each file is compiled once for each
//
// The loops need no block cooperation and no launch shape: one statement, any number of threads, the same answer.
// Shared memory and warp intrinsics are left out on purpose, as they have no meaning on a CPU.
// There is no fused multiply-add on either machine (see the compiler flags): results agree to the last bit.
#pragma once

#if !defined(REAL) || !defined(DIMENSIONS) || !defined(VARIANT)
#error "compile kernels with -DREAL=float|double -DDIMENSIONS=2|3 -DVARIANT=f32_3d, as workbench/host_library.py does"
#endif

typedef REAL real;
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define SIZE(elements)   // for the launcher alone: nothing for the compilers

#define JOIN_NAMES(name, suffix) name##_##suffix
#define WITH_SUFFIX(name, suffix) JOIN_NAMES(name, suffix)

#ifdef __CUDACC__

#define KERNEL(name) extern "C" __global__ void WITH_SUFFIX(name, VARIANT)
#define DEVICE static __device__ __forceinline__
#define DEVICE_METHOD __device__ __forceinline__
#define ALWAYS_INLINE
#define WIDE
#define KEEP_LOOP _Pragma("unroll 1")
#define UNROLL _Pragma("unroll")
#define ON_CPU false
#define PREFETCH(p) (void)(p)
#define FOR_EACH(i, n) \
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)
#define FOR_EACH_UNEVEN(i, n) FOR_EACH(i, n)
#define FOR_EACH_LIGHT(i, n) FOR_EACH(i, n)

DEVICE i32 load_shared(const i32* p) { return *(const volatile i32*)p; }
DEVICE void store_shared(i32* p, i32 value) { *(volatile i32*)p = value; }
DEVICE i32 compare_and_swap(i32* p, i32 expected, i32 desired) { return atomicCAS(p, expected, desired); }
DEVICE void add_shared(i64* p, i64 value) { atomicAdd((u64*)p, (u64)value); }
DEVICE void count_shared(u32* p) { atomicAdd(p, 1u); }
DEVICE void xor_shared(u32* p, u32 value) { atomicXor(p, value); }
DEVICE void min_shared(u64* p, u64 value) { atomicMin(p, value); }
DEVICE i32 count_bits(u64 bits) { return __popcll(bits); }
DEVICE i32 lowest_bit(u64 bits) { return __ffsll((i64)bits) - 1; }
DEVICE i32 leading_zeros(u64 bits) { return __clzll((i64)bits); }

#else

#include <cmath>   // also tells which C library there is

extern "C" int host_threads();   // backend.py decides; the result never depends on it

#define KERNEL(name) extern "C" void WITH_SUFFIX(name, VARIANT)
#define DEVICE static inline
#define DEVICE_METHOD inline
#define ALWAYS_INLINE __attribute__((always_inline))
#define KEEP_LOOP
#define UNROLL _Pragma("GCC unroll 3")
#define ON_CPU true
#define PREFETCH(p) __builtin_prefetch(p)
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define WIDE __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define WIDE
#endif
#define PRAGMA(text) _Pragma(#text)

#ifdef SHUFFLED   // a library for tests: every kernel takes its work items in another order

// A permutation of 0 ... n - 1: the factor is a prime above any number of work items, so it shares no factor with n.
static inline i64 shuffled(i64 i, i64 n) { return (i64)((u64)(n - 1 - i) * 2654435761ull % (u64)n); }
#define IN_SHUFFLED_ORDER(i, n) \
    for (i64 turn_##i = 0; turn_##i < (n); ++turn_##i) \
        for (i64 i = shuffled(turn_##i, n), once_##i = 1; once_##i; once_##i = 0)
#define FOR_EACH(i, n) \
    PRAGMA(omp parallel for schedule(dynamic, 7) num_threads(host_threads())) IN_SHUFFLED_ORDER(i, n)
#define FOR_EACH_LIGHT(i, n) IN_SHUFFLED_ORDER(i, n)
#define FOR_EACH_UNEVEN(i, n) \
    PRAGMA(omp parallel for schedule(dynamic, 1) num_threads(host_threads())) IN_SHUFFLED_ORDER(i, n)

#else

#define FOR_EACH(i, n) \
    PRAGMA(omp parallel for schedule(static) num_threads(host_threads())) for (i64 i = 0; i < (n); ++i)
#define FOR_EACH_LIGHT(i, n) for (i64 i = 0; i < (n); ++i)
#define FOR_EACH_UNEVEN(i, n) \
    PRAGMA(omp parallel for schedule(dynamic, 1) num_threads(host_threads())) for (i64 i = 0; i < (n); ++i)

#endif

// Words that several threads read and write at once. Relaxed order is enough: each caller explains why a stale value
// is harmless, and the end of a kernel is a barrier.
DEVICE i32 load_shared(const i32* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
DEVICE void store_shared(i32* p, i32 value) { __atomic_store_n(p, value, __ATOMIC_RELAXED); }
DEVICE i32 compare_and_swap(i32* p, i32 expected, i32 desired)
{
    __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
DEVICE void add_shared(i64* p, i64 value) { __atomic_fetch_add(p, value, __ATOMIC_RELAXED); }
DEVICE void count_shared(u32* p) { __atomic_fetch_add(p, 1u, __ATOMIC_RELAXED); }
DEVICE void xor_shared(u32* p, u32 value) { __atomic_fetch_xor(p, value, __ATOMIC_RELAXED); }
DEVICE void min_shared(u64* p, u64 value)
{
    u64 before = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (value < before && !__atomic_compare_exchange_n(p, &before, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
DEVICE i32 count_bits(u64 bits) { return __builtin_popcountll(bits); }
DEVICE i32 lowest_bit(u64 bits) { return __builtin_ctzll(bits); }
DEVICE i32 leading_zeros(u64 bits) { return __builtin_clzll(bits); }   // not of zero

#endif

// How many bits a number needs: 0 for 0, 3 for 5.
DEVICE i32 bit_length(u64 value) { return value ? 64 - leading_zeros(value) : 0; }

// The slice of `n` items that chunk `c` of `chunks` works through in order.
DEVICE i64 chunk_begin(i64 c, i64 chunks, i64 n)
{
    return (i64)((u64)n / (u64)chunks * (u64)c + (u64)n % (u64)chunks * (u64)c / (u64)chunks);
}

// The run that holds item `i`: the last of `runs` that begins at or before it.
template <class Index> DEVICE i64 run_of(const Index* start, i64 runs, i64 i)
{
    i64 low = 0, high = runs - 1;
    while (low < high) {
        const i64 middle = (low + high + 1) / 2;
        if ((i64)start[middle] <= i) low = middle;
        else high = middle - 1;
    }
    return low;
}
