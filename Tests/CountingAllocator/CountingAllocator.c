// Takes the allocator's place, so that calls can be counted, and hands on to glibc's own.
// Executables' symbols go before those of shared libraries: calls from everywhere come here.
#include "CountingAllocator.h"

#include <stdlib.h>

#ifdef __GLIBC__

#include <stdatomic.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_long calls;

static void count(void) { atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed); }

void *malloc(size_t size) {
  count();
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
  count();
  return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
  count();
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : 12;
}

long counting_allocator_calls(void) { return atomic_load_explicit(&calls, memory_order_relaxed); }

#else

long counting_allocator_calls(void) { return -1; }

#endif
