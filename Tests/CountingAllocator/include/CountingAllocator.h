#pragma once

/// How often the process has asked for memory since it began. Whoever links this target has its
/// calls of malloc, calloc, realloc and aligned_alloc counted; -1 where the C library is not glibc,
/// whose own functions must be reachable under another name.
long counting_allocator_calls(void);
