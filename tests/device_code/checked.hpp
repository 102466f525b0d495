// The build that checks: where each access goes, which threads conflict, whether a 32-bit index has overflowed. Threads are
// suspended before accesses and go on in any order.
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <ucontext.h>

struct Extent {   // an array that the launch was given, and where its records of accesses begin
    u64 begin, end, shadow;
};
struct Conflict {
    u32 one, other;   // the instructions
    u64 address;
};

static std::vector<Extent> variables;   // of the module

struct Launch : Common {
    const Extent* arrays;   // in rising order
    u32 array_count, together;
    u64 seed;
    Conflict* conflicts;
    u32 conflict_room, conflict_count;
    u32 nothing, unused;   // the byte that memory has before it is written
    const u8* harmless;    // for each instruction, whether its races are harmless
};

#define KNOWN(variable) \
    static const bool variable##_known = (variables.push_back({(u64)variable, (u64)(variable + 1), 0}), true);
#define FLAG(...) __VA_ARGS__
#define WIDENED(over) if (over) FAULT("a number of 32 bits that has overflowed is used with 64 bits")
#define ALIGNED(at, size) if ((at) % (size)) FAULT("an address that is no multiple of " + std::to_string(size) + " bytes")
#define SITE(number) site = number;
#define LOCAL(name, size) \
    memset(name, launch.nothing, size); \
    thread.locals[thread.local_count++] = {(u64)name, (u64)name + size}
#define NOTHING(type) (type)0xA5A5A5A5A5A5A5A5ull
#define LOAD(type, space, order, at) loaded<type>(launch, thread, at, Space::space, order, site)
#define STORE(type, space, order, at, value) stored<type>(launch, thread, at, value, Space::space, order, site)
#define ATOMIC(type, space, at, operation, ...) \
    replaced<type>(launch, thread, at, Space::space, site, [&](type before) { return operation(before, __VA_ARGS__); })

static inline bool over_add(s32 a, s32 b) { s32 sum; return __builtin_add_overflow(a, b, &sum); }
static inline bool over_sub(s32 a, s32 b) { s32 rest; return __builtin_sub_overflow(a, b, &rest); }
static inline bool over_mul(s32 a, s32 b) { s32 product; return __builtin_mul_overflow(a, b, &product); }
static inline bool over_mad(s32 a, s32 b, s32 c) { const s64 sum = (s64)a * b + c; return sum != (s32)sum; }
static inline bool over_shift(s32 a, u32 by) { return by < 32 ? (s64)a << by != (s32)((u32)a << by) : a != 0; }

enum class Space { GLOBAL, LOCAL, ANY };
enum Access { WEAK = 0, STRONG = 2, WRITE = 1 };   // volatile and atomic accesses are strong
static const u32 MANY = ~0u;

// Who has accessed a byte: weak reads, weak writes, strong reads and strong writes. A thread by its number plus 1.
struct Shadow {
    u32 who[4] = {}, site[4] = {};
};

struct Watch {
    std::vector<Shadow> shadow;
    std::set<std::pair<u32, u32>> seen;
    u64 state = 0;
    u32 last = 0;
    ucontext_t scheduler, *running = nullptr;
};
static thread_local Watch* watch;

static u64 random_number()
{
    u64 x = watch->state += 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

// Two threads of a launch, one of which writes, and one of which does so weakly: nothing orders them.
static void conflict(Launch& launch, u64 address, u32 one, u32 other)
{
    if (!watch->seen.insert({one, other}).second) return;
    if (launch.conflict_count < launch.conflict_room) launch.conflicts[launch.conflict_count] = {one, other, address};
    ++launch.conflict_count;
}

static void record(Launch& launch, u64 thread, u64 at, u64 size, const Extent& array, u32 access, u32 site)
{
    const u32 me = (u32)thread + 1;
    for (u64 byte = 0; byte < size; ++byte) {
        Shadow& shadow = watch->shadow[array.shadow + (at - array.begin) + byte];
        for (u32 before = 0; before < 4; ++before) {
            const bool written = (before | access) & WRITE, weak = !(before & STRONG) || !(access & STRONG);
            if (written && weak && shadow.who[before] && shadow.who[before] != me)
                conflict(launch, at + byte, shadow.site[before], site);
        }
        shadow.site[access] = site;
        shadow.who[access] = shadow.who[access] && shadow.who[access] != me ? MANY : me;
    }
}

static const Extent* array_at(const Launch& launch, u64 at)
{
    const auto holds = [&](u32 n) { return n < launch.array_count && launch.arrays[n].begin <= at && at < launch.arrays[n].end; };
    if (holds(watch->last)) return &launch.arrays[watch->last];
    for (u32 n = 0; n < launch.array_count; ++n)
        if (holds(n)) return watch->last = n, &launch.arrays[n];
    return nullptr;
}

static std::string nearest(const Launch& launch, u64 at)
{
    std::string found = "; there are no arrays";
    u64 best = ~0ull;
    for (u32 n = 0; n < launch.array_count; ++n) {
        const Extent& array = launch.arrays[n];
        const u64 away = at < array.begin ? array.begin - at : at - array.end;
        if (away > best) continue;
        best = away;
        found = at < array.begin ? ", " + std::to_string(away) + " bytes before the begin of an array of "
                                 : ", " + std::to_string(away) + " bytes behind the end of an array of ";
        found += std::to_string(array.end - array.begin) + " bytes";
    }
    return found;
}

static void check(Launch& launch, Thread& thread, u64 at, u64 size, Space space, u32 access, u32 site)
{
    if (space != Space::GLOBAL)
        for (u32 n = 0; n < thread.local_count; ++n)
            if (thread.locals[n].begin <= at && at + size <= thread.locals[n].end) return;
    const char* const what = access & WRITE ? "writes" : "reads";
    if (space == Space::LOCAL) throw Fault{std::string(what) + " outside the thread's local memory", site};
    if (watch->running && random_number() % 4 == 0) swapcontext(watch->running, &watch->scheduler);
    for (const Extent& variable : variables)
        if (variable.begin <= at && at + size <= variable.end) return;
    const Extent* const array = array_at(launch, at);
    if (!array || at + size > array->end)
        throw Fault{std::string(what) + " " + std::to_string(size) + " bytes outside all arrays" + nearest(launch, at), site};
    if (launch.conflict_room && !launch.harmless[site]) record(launch, thread.index(), at, size, *array, access, site);
}

template <class T> static inline T loaded(Launch& launch, Thread& thread, u64 at, Space space, u32 order, u32 site)
{
    check(launch, thread, at, sizeof(T), space, order, site);
    T value;
    memcpy(&value, (const void*)at, sizeof value);
    return value;
}
template <class T> static inline void stored(Launch& launch, Thread& thread, u64 at, T value, Space space, u32 order, u32 site)
{
    check(launch, thread, at, sizeof(T), space, order | WRITE, site);
    memcpy((void*)at, &value, sizeof value);
}
template <class T, class Operation>
static inline T replaced(Launch& launch, Thread& thread, u64 at, Space space, u32 site, Operation operation)
{
    check(launch, thread, at, sizeof(T), space, STRONG | WRITE, site);
    T before;
    memcpy(&before, (const void*)at, sizeof before);
    const T after = operation(before);
    memcpy((void*)at, &after, sizeof after);
    return before;
}

typedef void Kernel(Launch&, Thread&);

static Thread numbered(const Launch& launch, u64 index)
{
    return Thread{(u32)(index % launch.block), (u32)(index / launch.block), launch.block, launch.grid};
}

// A thread that can be suspended, with a stack of its own.
struct Fiber {
    static const size_t STACK = 1 << 20;   // a thread has at most 512 KiB of local memory
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    Thread thread;
    Launch* launch;
    Kernel* kernel;
    bool done = true, failed = false;
    Fault fault;

    void begin(Launch& given, Kernel* code, u64 index)
    {
        launch = &given, kernel = code, thread = numbered(given, index), done = false;
        getcontext(&context);
        context.uc_stack.ss_sp = stack.get();
        context.uc_stack.ss_size = STACK;
        context.uc_link = &watch->scheduler;
        const u64 self = (u64)this;
        makecontext(&context, (void (*)())run, 2, (int)(u32)self, (int)(u32)(self >> 32));
    }
    static void run(u32 low, u32 high)
    {
        Fiber& self = *(Fiber*)((u64)high << 32 | low);
        try { self.kernel(*self.launch, self.thread); }
        catch (const Fault& fault) { self.fault = fault, self.failed = true; }
        self.done = true;
    }
    void resume()
    {
        watch->running = &context;
        swapcontext(&watch->scheduler, &context);
        watch->running = nullptr;
        if (!failed) return;
        launch->thread = thread.index();
        throw fault;
    }
};

static void run_interleaved(Launch& launch, Kernel* kernel, u64 total)
{
    std::vector<u32> order(total);
    for (u64 n = 0; n < total; ++n) order[n] = (u32)n;
    for (u64 n = total; n > 1; --n) std::swap(order[n - 1], order[random_number() % n]);
    std::vector<Fiber> fibers(launch.together < total ? launch.together : total);
    u64 begun = 0;
    std::vector<Fiber*> alive;
    for (Fiber& fiber : fibers) fiber.begin(launch, kernel, order[begun++]), alive.push_back(&fiber);
    while (!alive.empty()) {
        const u64 chosen = random_number() % alive.size();
        alive[chosen]->resume();
        if (!alive[chosen]->done) continue;
        if (begun < total) alive[chosen]->begin(launch, kernel, order[begun++]);
        else alive[chosen] = alive.back(), alive.pop_back();
    }
}

static void run(Launch& launch, Kernel* kernel)
{
    Watch here;
    watch = &here;
    here.state = launch.seed;
    if (launch.conflict_room && launch.array_count) {
        const Extent& last = launch.arrays[launch.array_count - 1];
        here.shadow.resize(last.shadow + last.end - last.begin);
    }
    const u64 total = (u64)launch.grid * launch.block;
    if (launch.together > 1) return run_interleaved(launch, kernel, total);
    for (u64 index = 0; index < total; ++index) {
        Thread thread = numbered(launch, index);
        launch.thread = index;
        kernel(launch, thread);
    }
}
