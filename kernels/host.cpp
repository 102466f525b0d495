// The part of the host library that is not a kernel: how many threads to use, and which sources it was built from.
#include <omp.h>

extern "C" {
int host_threads = omp_get_max_threads();
const char* host_source_hash() { return SOURCE_HASH; }
}
