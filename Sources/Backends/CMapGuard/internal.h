// What the handler and the calls through the guard share.
#pragma once

#include <pthread.h>
#include <setjmp.h>

#include "CMapGuard.h"

struct MapVisitor {
  // The thread that is within LMDB or writes to the kernel; 0: none. On a line of its own.
  uintptr_t owner __attribute__((aligned(64)));
  GuardedMap *map;
  uint32_t isWriting;
  uint32_t isChangingTheMap;
  uint32_t isWithinLMDB;
  // The last call was not made, because the map is damaged.
  uint32_t isRefused;
  uint32_t isTaken;
  // Where a call of LMDB's that met a lost page goes on.
  void *recovery[48];
};

// Where a call begins, and how it is left. Without the mask of signals, which the handler leaves as it
// is.
#if defined(__x86_64__)
// Of a few instructions: a hit does it several times.
#define map_guard_mark(recovery) __builtin_setjmp(recovery)
#define map_guard_jump(recovery) __builtin_longjmp(recovery, 1)
#else
_Static_assert(sizeof(sigjmp_buf) <= sizeof(((MapVisitor *)0)->recovery), "a jump fits its place");
#define map_guard_mark(recovery) sigsetjmp(*(sigjmp_buf *)(recovery), 0)
#define map_guard_jump(recovery) siglongjmp(*(sigjmp_buf *)(recovery), 1)
#endif

extern unsigned map_guard_needs_fence;

void map_guard_assertion_failed(MDB_env *env, const char *message);

static inline void map_guard_leave(MapVisitor *visitor) {
  __atomic_store_n(&visitor->owner, 0, __ATOMIC_RELEASE);
}

// False: the map is damaged (or, of what is done then too, a wreck), and nothing is done.
static inline bool map_guard_enter(MapVisitor *visitor, bool isWithinLMDB, bool isCleaningUp) {
  GuardedMap *map = visitor->map;
  visitor->isWithinLMDB = isWithinLMDB;
  __atomic_store_n(&visitor->owner, (uintptr_t)pthread_self(), __ATOMIC_RELAXED);
  if (map_guard_needs_fence) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  } else {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  }
  uint32_t isRefused = isCleaningUp ? map->isWrecked
                                    : __atomic_load_n(&map->isDamaged, __ATOMIC_ACQUIRE);
  visitor->isRefused = isRefused;
  if (isRefused) map_guard_leave(visitor);
  return !isRefused;
}
