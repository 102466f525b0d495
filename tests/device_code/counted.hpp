// The build that counts: instructions, bytes, and the sectors of memory that the threads of a warp touch together.
//
// A warp is 32 threads of a block that follow each other. Which of their accesses a card would do at once is taken to be: those
// of the same instruction that each thread does for the same time. So threads are assumed to meet again as early as they can.
#include <algorithm>
#include <vector>

struct Counts {   // of one instruction, over all launches
    u64 threads, warps, requests, sectors, bytes;
};

struct Launch : Common {
    Counts* counts;
    u32 sites, unused;
};

struct Entry {
    u32 site, turn;
    u64 at, size;
};

struct Warp {
    std::vector<u32> turns, most;   // for each instruction: how often this thread has done it, and the most of all threads
    std::vector<Entry> entries;
};
static thread_local Warp* warp;

#define KNOWN(variable)
#define FLAG(...)
#define WIDENED(over)
#define ALIGNED(at, size)
#define SITE(number) site = number, ++warp->turns[number];
#define LOCAL(name, size) (void)name
#define NOTHING(type) type()
#define LOAD(type, space, order, at) loaded<type>(launch, at, Space::space, site)
#define STORE(type, space, order, at, value) stored<type>(launch, at, value, Space::space, site)
#define ATOMIC(type, space, at, operation, ...) \
    replaced<type>(launch, at, Space::space, site, [&](type before) { return operation(before, __VA_ARGS__); })

enum class Space { GLOBAL, LOCAL, ANY };
static const u64 SECTOR = 32;

static inline void count(Launch& launch, u64 at, u64 size, Space space, u32 site)
{
    launch.counts[site].bytes += size;
    if (space != Space::LOCAL) warp->entries.push_back({site, warp->turns[site], at, size});
}

template <class T> static inline T loaded(Launch& launch, u64 at, Space space, u32 site)
{
    count(launch, at, sizeof(T), space, site);
    T value;
    memcpy(&value, (const void*)at, sizeof value);
    return value;
}
template <class T> static inline void stored(Launch& launch, u64 at, T value, Space space, u32 site)
{
    count(launch, at, sizeof(T), space, site);
    memcpy((void*)at, &value, sizeof value);
}
template <class T, class Operation> static inline T replaced(Launch& launch, u64 at, Space space, u32 site, Operation operation)
{
    count(launch, at, sizeof(T), space, site);
    T before;
    memcpy(&before, (const void*)at, sizeof before);
    const T after = operation(before);
    memcpy((void*)at, &after, sizeof after);
    return before;
}

// What the threads of a warp asked for: one request for each time that an instruction was done, and its different sectors.
static void add_requests(Launch& launch, std::vector<Entry>& entries)
{
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return a.site != b.site ? a.site < b.site : a.turn != b.turn ? a.turn < b.turn : a.at < b.at;
    });
    for (size_t n = 0; n < entries.size(); ++n) {
        const Entry& entry = entries[n];
        const bool begins = !n || entries[n - 1].site != entry.site || entries[n - 1].turn != entry.turn;
        const u64 first = entry.at / SECTOR, last = (entry.at + entry.size - 1) / SECTOR;
        const u64 before = begins ? ~0ull : (entries[n - 1].at + entries[n - 1].size - 1) / SECTOR;
        launch.counts[entry.site].requests += begins;
        launch.counts[entry.site].sectors += last - first + 1 - (before == first);
    }
    entries.clear();
}

typedef void Kernel(Launch&, Thread&);

static void run(Launch& launch, Kernel* kernel)
{
    Warp here{std::vector<u32>(launch.sites), std::vector<u32>(launch.sites), {}};
    warp = &here;
    for (u32 block = 0; block < launch.grid; ++block)
        for (u32 begin = 0; begin < launch.block; begin += 32) {
            std::fill(here.most.begin(), here.most.end(), 0);
            for (u32 lane = begin; lane < std::min(begin + 32, launch.block); ++lane) {
                std::fill(here.turns.begin(), here.turns.end(), 0);
                Thread thread{lane, block, launch.block, launch.grid};
                launch.thread = (u64)block * launch.block + lane;
                kernel(launch, thread);
                for (u32 site = 0; site < launch.sites; ++site) {
                    launch.counts[site].threads += here.turns[site];
                    here.most[site] = std::max(here.most[site], here.turns[site]);
                }
            }
            for (u32 site = 0; site < launch.sites; ++site) launch.counts[site].warps += here.most[site];
            add_requests(launch, here.entries);
        }
}
