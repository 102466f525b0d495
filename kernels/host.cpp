// The part of the host library that is not a kernel: how many threads to use, in which order, and which sources it was
// built from.
#include <omp.h>

static int everywhere = omp_get_max_threads();
static thread_local int here = 0;   // for the kernels that one thread of the program starts; 0: as everywhere

extern "C" {
int host_threads() { return here ? here : everywhere; }
int host_threads_here() { return here; }
void host_use_threads(int count) { everywhere = count; }
void host_use_threads_here(int count) { here = count; }
const char* host_source_hash() { return SOURCE_HASH; }
#ifdef SHUFFLED
const char* host_work_order() { return "shuffled"; }
#else
const char* host_work_order() { return "rising"; }
#endif
}
