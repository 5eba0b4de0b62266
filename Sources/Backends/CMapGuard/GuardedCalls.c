// LMDB's functions through the guard. See include/CMapGuard.h.
//
// What is left by a jump holds no lock and has half changed nothing that is used again: a read
// transaction's functions change their own transaction and the reader's row, and a write transaction's
// leave a wreck.
#include "internal.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GUARDED(visitor, call)                                 \
  if (!map_guard_enter(visitor, true, false)) return MDB_CORRUPTED; \
  if (map_guard_mark((visitor)->recovery)) {                   \
    map_guard_leave(visitor);                                  \
    return MDB_CORRUPTED;                                      \
  }                                                            \
  int code = (call);                                           \
  map_guard_leave(visitor);                                    \
  return code

#define CLEANING_UP(visitor, call)                    \
  if (!map_guard_enter(visitor, true, true)) return;  \
  if (!map_guard_mark((visitor)->recovery)) {         \
    call;                                             \
  }                                                   \
  map_guard_leave(visitor)

static int open_environment(
    MapVisitor *visitor, MDB_env *env, const char *path, unsigned flags, int mode) {
  GUARDED(visitor, mdb_env_open(env, path, flags, mode));
}

int guarded_env_open(MapVisitor *visitor, MDB_env *env, const char *path, unsigned flags, int mode) {
  mdb_env_set_assert(env, map_guard_assertion_failed);
  visitor->isChangingTheMap = 1;
  int code = open_environment(visitor, env, path, flags, mode);
  visitor->isChangingTheMap = 0;
  return code;
}

static int set_mapsize(MapVisitor *visitor, MDB_env *env, size_t size) {
  GUARDED(visitor, mdb_env_set_mapsize(env, size));
}

int guarded_env_set_mapsize(MapVisitor *visitor, MDB_env *env, size_t size) {
  visitor->isChangingTheMap = 1;
  int code = set_mapsize(visitor, env, size);
  visitor->isChangingTheMap = 0;
  return code;
}

static void close_environment(MapVisitor *visitor, MDB_env *env) {
  CLEANING_UP(visitor, mdb_env_close(env));
}

void guarded_env_close(MapVisitor *visitor, MDB_env *env) {
  visitor->isChangingTheMap = 1;
  close_environment(visitor, env);
  visitor->isChangingTheMap = 0;
}

int guarded_env_info(MapVisitor *visitor, MDB_env *env, MDB_envinfo *information) {
  GUARDED(visitor, mdb_env_info(env, information));
}

int guarded_env_stat(MapVisitor *visitor, MDB_env *env, MDB_stat *statistics) {
  GUARDED(visitor, mdb_env_stat(env, statistics));
}

int guarded_reader_check(MapVisitor *visitor, MDB_env *env, int *dead) {
  GUARDED(visitor, mdb_reader_check(env, dead));
}

static int begin(MapVisitor *visitor, MDB_env *env, unsigned flags, MDB_txn **txn) {
  GUARDED(visitor, mdb_txn_begin(env, NULL, flags, txn));
}

int guarded_txn_begin(MapVisitor *visitor, MDB_env *env, unsigned flags, MDB_txn **txn) {
  bool isWriting = (flags & MDB_RDONLY) == 0;
  if (isWriting) visitor->isWriting = 1;
  int code = begin(visitor, env, flags, txn);
  if (isWriting && code != MDB_SUCCESS) visitor->isWriting = 0;
  return code;
}

static int commit(MapVisitor *visitor, MDB_txn *txn) { GUARDED(visitor, mdb_txn_commit(txn)); }

// Marks the map as damaged where the file is shorter than it must be.
static void look(GuardedMap *map, MDB_env *env) {
  int descriptor = -1;
  struct stat status;
  if (mdb_env_get_fd(env, &descriptor) != MDB_SUCCESS || fstat(descriptor, &status) != 0) return;
  if ((uint64_t)status.st_size < map->fileBytesMin) {
    __atomic_store_n(&map->isDamaged, 1, __ATOMIC_SEQ_CST);
  }
}

int guarded_txn_commit(MapVisitor *visitor, MDB_txn *txn) {
  MDB_env *env = mdb_txn_env(txn);
  look(visitor->map, env);
  if (guarded_map_is_damaged(visitor->map)) {
    // It gives LMDB's lock back, where that can be.
    guarded_txn_abort(visitor, txn);
    return MDB_CORRUPTED;
  }
  int code = commit(visitor, txn);
  // Damaged between the two looks, by another thread: the transaction is still open.
  if (code == MDB_CORRUPTED && visitor->isRefused) guarded_txn_abort(visitor, txn);
  visitor->isWriting = 0;
  look(visitor->map, env);
  return code == MDB_SUCCESS && guarded_map_is_damaged(visitor->map) ? MDB_CORRUPTED : code;
}

static void abort_transaction(MapVisitor *visitor, MDB_txn *txn) {
  CLEANING_UP(visitor, mdb_txn_abort(txn));
}

void guarded_txn_abort(MapVisitor *visitor, MDB_txn *txn) {
  abort_transaction(visitor, txn);
  visitor->isWriting = 0;
}

void guarded_txn_reset(MapVisitor *visitor, MDB_txn *txn) {
  CLEANING_UP(visitor, mdb_txn_reset(txn));
}

void guarded_cursor_close(MapVisitor *visitor, MDB_cursor *cursor) {
  CLEANING_UP(visitor, mdb_cursor_close(cursor));
}

static int renew(MDB_txn *txn, MDB_cursor *cursor) {
  int code = mdb_txn_renew(txn);
  if (code != MDB_SUCCESS) return code;
  code = mdb_cursor_renew(txn, cursor);
  if (code != MDB_SUCCESS) mdb_txn_reset(txn);
  return code;
}

static int renew_guarded(MapVisitor *visitor, MDB_txn *txn, MDB_cursor *cursor) {
  GUARDED(visitor, renew(txn, cursor));
}

int guarded_renew(MapVisitor *visitor, MDB_txn *txn, MDB_cursor *cursor) {
  return renew_guarded(visitor, txn, cursor);
}

int guarded_dbi_open(
    MapVisitor *visitor, MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *dbi) {
  GUARDED(visitor, mdb_dbi_open(txn, name, flags, dbi));
}

int guarded_stat(MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_stat *statistics) {
  GUARDED(visitor, mdb_stat(txn, dbi, statistics));
}

int guarded_get(MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data) {
  GUARDED(visitor, mdb_get(txn, dbi, key, data));
}

int guarded_put(
    MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned flags) {
  GUARDED(visitor, mdb_put(txn, dbi, key, data, flags));
}

int guarded_del(MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data) {
  GUARDED(visitor, mdb_del(txn, dbi, key, data));
}

int guarded_cursor_open(MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor) {
  GUARDED(visitor, mdb_cursor_open(txn, dbi, cursor));
}

int guarded_cursor_get(
    MapVisitor *visitor, MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op operation) {
  GUARDED(visitor, mdb_cursor_get(cursor, key, data, operation));
}

int guarded_cursor_put(
    MapVisitor *visitor, MDB_cursor *cursor, MDB_val *key, MDB_val *data, unsigned flags) {
  GUARDED(visitor, mdb_cursor_put(cursor, key, data, flags));
}

int guarded_cursor_del(MapVisitor *visitor, MDB_cursor *cursor, unsigned flags) {
  GUARDED(visitor, mdb_cursor_del(cursor, flags));
}

// Every page of a tree begins with its number, and the map with a page whose data begins with LMDB's
// magic number: so an address within a page of a tree gives the map's. Behind the number come two
// bytes and the flags (2: a leaf).
static int locate(MapVisitor *visitor, MDB_env *env) {
  enum { rootTable = 1, numberBytes = 8, flagsOffset = 10, headerBytes = 16, leaf = 2 };
  MDB_envinfo information;
  MDB_stat statistics;
  int code = mdb_env_info(env, &information);
  if (code == MDB_SUCCESS) code = mdb_env_stat(env, &statistics);
  if (code != MDB_SUCCESS) return code;
  MDB_txn *txn = NULL;
  code = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
  if (code != MDB_SUCCESS) return code;
  MDB_cursor *cursor = NULL;
  MDB_val key = {0, NULL};
  MDB_val data = {0, NULL};
  code = mdb_cursor_open(txn, rootTable, &cursor);
  if (code == MDB_SUCCESS) code = mdb_cursor_get(cursor, &key, &data, MDB_FIRST);
  if (code == MDB_SUCCESS) {
    uintptr_t page = (uintptr_t)key.mv_data & ~((uintptr_t)statistics.ms_psize - 1);
    uint64_t number;
    uint16_t flags;
    uint32_t magic = 0;
    memcpy(&number, (void *)page, numberBytes);
    memcpy(&flags, (void *)(page + flagsOffset), sizeof flags);
    uintptr_t start = page - number * statistics.ms_psize;
    bool isPage = statistics.ms_psize <= (unsigned)sysconf(_SC_PAGESIZE)
                  && number <= information.me_last_pgno && (flags & leaf) != 0;
    if (isPage) memcpy(&magic, (void *)(start + headerBytes), sizeof magic);
    if (magic == 0xBEEFC0DE) {
      __atomic_store_n(&visitor->map->start, start, __ATOMIC_RELEASE);
      __atomic_store_n(&visitor->map->end, start + information.me_mapsize, __ATOMIC_RELEASE);
    } else {
      code = MDB_INVALID;
    }
  }
  if (cursor != NULL) mdb_cursor_close(cursor);
  mdb_txn_abort(txn);
  return code;
}

int guarded_map_locate(MapVisitor *visitor, MDB_env *env) {
  GUARDED(visitor, locate(visitor, env));
}
