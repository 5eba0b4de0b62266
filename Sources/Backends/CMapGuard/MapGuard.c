// The handler, its tables, and who is within a map. See include/CMapGuard.h.
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#endif

enum { mapCountMax = 1024, visitorCountMax = 4096 };

static GuardedMap maps[mapCountMax];
static MapVisitor visitors[visitorCountMax];
// How many of either were ever taken: nothing is looked for behind them.
static unsigned mapCount;
static unsigned visitorCount;
static struct sigaction previousOfBus;
static struct sigaction previousOfSegment;
static uintptr_t pageBytes;

// Whether who enters a map issues a barrier; otherwise the handler has the kernel issue it for all.
unsigned map_guard_needs_fence = 1;

// Whoever entered before this sees no page of zeros, and has its `owner` seen; who enters later sees
// that the map is damaged.
static void separate(void) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#if defined(__linux__)
  if (!map_guard_needs_fence) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
#endif
}

static void wait_for_others(uintptr_t self) {
  unsigned count = __atomic_load_n(&visitorCount, __ATOMIC_ACQUIRE);
  for (unsigned index = 0; index < count; index++) {
    // A call of LMDB's or a write to the kernel ends whatever this thread holds: neither takes a lock
    // of ours.
    uintptr_t owner;
    while ((owner = __atomic_load_n(&visitors[index].owner, __ATOMIC_ACQUIRE)) != 0
           && owner != self) {
      struct timespec moment = {0, 20000};
      nanosleep(&moment, NULL);
    }
  }
}

static bool lay_zeros(uintptr_t address) {
  void *page = (void *)(address & ~(pageBytes - 1));
  return mmap(page, pageBytes, PROT_READ, MAP_PRIVATE | MAP_ANON | MAP_FIXED, -1, 0) == page;
}

// Leaves the call of LMDB's that this thread is within; returns where it is within none.
static void leave_call(uintptr_t self) {
  unsigned count = __atomic_load_n(&visitorCount, __ATOMIC_ACQUIRE);
  for (unsigned index = 0; index < count; index++) {
    MapVisitor *visitor = &visitors[index];
    if (__atomic_load_n(&visitor->owner, __ATOMIC_RELAXED) != self || !visitor->isWithinLMDB) {
      continue;
    }
    __atomic_store_n(&visitor->map->isDamaged, 1, __ATOMIC_SEQ_CST);
    if (visitor->isWriting || visitor->isChangingTheMap) visitor->map->isWrecked = 1;
    map_guard_jump(visitor->recovery);
  }
}

// True: the faulting instruction may be tried again.
static bool mend(int number, uintptr_t address) {
  uintptr_t self = (uintptr_t)pthread_self();
  // Of either signal: pages that were cut off and are a hole since, because a commit made the file
  // longer again, read as zeros, and LMDB runs from those to where there is nothing.
  leave_call(self);
  if (number != SIGBUS) return false;
  unsigned count = __atomic_load_n(&mapCount, __ATOMIC_ACQUIRE);
  for (unsigned index = 0; index < count; index++) {
    GuardedMap *map = &maps[index];
    uintptr_t start = __atomic_load_n(&map->start, __ATOMIC_ACQUIRE);
    uintptr_t end = __atomic_load_n(&map->end, __ATOMIC_ACQUIRE);
    if (address < start || address >= end) continue;
    __atomic_store_n(&map->isDamaged, 1, __ATOMIC_SEQ_CST);
    separate();
    wait_for_others(self);
    return lay_zeros(address);
  }
  return false;
}

static void hand_on(int number, siginfo_t *information, void *context) {
  struct sigaction *previous = number == SIGBUS ? &previousOfBus : &previousOfSegment;
  if (previous->sa_flags & SA_SIGINFO) {
    previous->sa_sigaction(number, information, context);
  } else if (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN) {
    previous->sa_handler(number);
  } else {
    // The instruction faults again; a signal that was sent comes again.
    sigaction(number, previous, NULL);
    if (information->si_code <= 0) raise(number);
  }
}

static void handle(int number, siginfo_t *information, void *context) {
  int code = errno;
  // Not one that a process sent.
  bool isFault = information->si_code > 0;
  if (!isFault || !mend(number, (uintptr_t)information->si_addr)) {
    hand_on(number, information, context);
  }
  errno = code;
}

void map_guard_assertion_failed(MDB_env *env, const char *message) {
  (void)env;
  (void)message;
  // LMDB aborts where this returns.
  leave_call((uintptr_t)pthread_self());
}

static bool isInstalled;

static void install(void) {
  pageBytes = (uintptr_t)sysconf(_SC_PAGESIZE);
#if defined(__linux__)
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0) {
    map_guard_needs_fence = 0;
  }
#endif
  if (sigaction(SIGBUS, NULL, &previousOfBus) != 0) return;
  if (sigaction(SIGSEGV, NULL, &previousOfSegment) != 0) return;
  struct sigaction action = {0};
  action.sa_sigaction = handle;
  // Not deferred: the handler is left by a jump, which gives no mask back.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  isInstalled = sigaction(SIGBUS, &action, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0;
}

bool map_guard_install(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
  return isInstalled;
}

static bool take(uint32_t *isTaken) {
  uint32_t isFree = 0;
  return __atomic_compare_exchange_n(
      isTaken, &isFree, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void raise_to(unsigned *count, unsigned wanted) {
  unsigned known = __atomic_load_n(count, __ATOMIC_RELAXED);
  while (known < wanted
         && !__atomic_compare_exchange_n(
             count, &known, wanted, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

GuardedMap *guarded_map_make(void) {
  for (unsigned index = 0; index < mapCountMax; index++) {
    GuardedMap *map = &maps[index];
    if (!take(&map->isTaken)) continue;
    map->isWrecked = 0;
    map->fileBytesMin = 0;
    __atomic_store_n(&map->isDamaged, 0, __ATOMIC_RELEASE);
    raise_to(&mapCount, index + 1);
    return map;
  }
  return NULL;
}

void guarded_map_forget(GuardedMap *map) {
  __atomic_store_n(&map->end, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&map->start, 0, __ATOMIC_RELEASE);
}

void guarded_map_free(GuardedMap *map) {
  guarded_map_forget(map);
  __atomic_store_n(&map->isTaken, 0, __ATOMIC_RELEASE);
}

MapVisitor *map_visitor_make(GuardedMap *map) {
  for (unsigned index = 0; index < visitorCountMax; index++) {
    MapVisitor *visitor = &visitors[index];
    if (!take(&visitor->isTaken)) continue;
    visitor->map = map;
    visitor->isWriting = 0;
    visitor->isChangingTheMap = 0;
    visitor->isWithinLMDB = 0;
    raise_to(&visitorCount, index + 1);
    return visitor;
  }
  return NULL;
}

void map_visitor_free(MapVisitor *visitor) {
  __atomic_store_n(&visitor->isTaken, 0, __ATOMIC_RELEASE);
}

bool map_visitor_begin_output(MapVisitor *visitor) { return map_guard_enter(visitor, false, false); }

void map_visitor_end_output(MapVisitor *visitor, bool hasFailed) {
  if (hasFailed) __atomic_store_n(&visitor->map->isDamaged, 1, __ATOMIC_SEQ_CST);
  map_guard_leave(visitor);
}

bool map_visitor_is_refused(MapVisitor *visitor) { return guarded_map_is_damaged(visitor->map); }
