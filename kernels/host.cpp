// The part of the host library that is not a kernel: how many threads to use, in which order, and which sources it was
// built from.
#ifdef _OPENMP
#include <omp.h>
static int everywhere = omp_get_max_threads();
#else
static int everywhere = 1;   // the compiler had no OpenMP: a kernel is one loop
#endif

static thread_local int here = 0;   // for the kernels that one thread of the program starts; 0: as everywhere

extern "C" {
int host_threads() { return here ? here : everywhere; }
int host_threads_here() { return here; }
void host_use_threads(int count) { everywhere = count; }
void host_use_threads_here(int count) { here = count; }
int host_openmp()   // the version of OpenMP, as its date; 0 without it
{
#ifdef _OPENMP
    return _OPENMP;
#else
    return 0;
#endif
}
const char* host_source_hash() { return SOURCE_HASH; }
#ifdef SHUFFLED
const char* host_work_order() { return "shuffled"; }
#else
const char* host_work_order() { return "rising"; }
#endif
}
