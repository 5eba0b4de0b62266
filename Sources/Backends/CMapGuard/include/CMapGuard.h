/// Reading a store's file through a map that may lose its pages at any moment.
///
/// Where somebody cuts a file short, or the disk cannot read it, a read of the map raises SIGBUS. This
/// owns the process's handler of it, and the calls of LMDB's that read the map, so that such a read
/// ends the call or gives zeros, and never the process. In C, because a handler may do next to
/// nothing: no allocation, no lock, nothing that is set up when it is first used.
///
/// Two kinds of reads:
/// - Within LMDB the call is left, by a jump to where it began, and returns MDB_CORRUPTED. A page of
///   zeros will not do there: LMDB would take it for one with two thousand million keys, or abort. (Its
///   failed assertions, and SIGSEGV within it, end the call likewise.) What is left amid a write
///   transaction is a wreck: nothing of that environment is called any more, and it is never closed.
/// - Elsewhere (records and chunks read in place) a page of zeros is laid over the lost one, once no
///   other thread is within LMDB or hands bytes to the kernel: those who begin later see that the map
///   is damaged, and do not. So a page of zeros is seen by nobody who does not check, after it has
///   read, whether the map is damaged.
/// A fault elsewhere goes to whoever handled the signal before.
///
/// What is left: a cut between a commit's look at the file and the writes that follow it. They make the
/// file longer, pages before them are holes of zeros, and until the look behind the commit a chunk that
/// was verified before may be sent as zeros.
#pragma once

#include "../../CLMDB/shim.h"
#include <stdbool.h>
#include <stdint.h>

/// An environment's map, as the handler knows it. All fields are read by the handler.
typedef struct {
  /// Where it lies; equal: nobody reads it but LMDB.
  uintptr_t start;
  uintptr_t end;
  uint32_t isDamaged;
  /// A call was left amid a write, an opening or a closing: the environment is not to be called again.
  uint32_t isWrecked;
  uint32_t isTaken;
  /// How long the file must be; the writer's. A commit writes nothing into a shorter one: that would
  /// make it longer, and what was cut off before the new end would read as zeros without a fault.
  uint64_t fileBytesMin;
} GuardedMap;

/// A thread's way into a map: one thread uses it at a time, and does one thing by it at a time.
typedef struct MapVisitor MapVisitor;

/// Installs the handler, once a process; false: the system refuses it.
bool map_guard_install(void);

/// NULL: there are too many.
GuardedMap *guarded_map_make(void);
void guarded_map_free(GuardedMap *map);
/// NULL: there are too many.
MapVisitor *map_visitor_make(GuardedMap *map);
void map_visitor_free(MapVisitor *visitor);

/// Whether a page of the map was lost. Asked after something was read in place: false means that what
/// was read is what was there.
static inline bool guarded_map_is_damaged(const GuardedMap *map) {
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&map->isDamaged, __ATOMIC_RELAXED) != 0;
}

/// Before bytes of the map, or made of them, are given to the kernel; false: the map is damaged, and
/// they must not be. Ends with `map_visitor_end_output`, which is told whether the kernel met a lost
/// page.
bool map_visitor_begin_output(MapVisitor *visitor);
void map_visitor_end_output(MapVisitor *visitor, bool hasFailed);
/// As `guarded_map_is_damaged`.
bool map_visitor_is_refused(MapVisitor *visitor);

/// LMDB's functions of the same names, through the guard: MDB_CORRUPTED where a page is lost.
int guarded_env_open(MapVisitor *visitor, MDB_env *env, const char *path, unsigned flags, int mode);
int guarded_env_set_mapsize(MapVisitor *visitor, MDB_env *env, size_t size);
int guarded_env_info(MapVisitor *visitor, MDB_env *env, MDB_envinfo *information);
int guarded_env_stat(MapVisitor *visitor, MDB_env *env, MDB_stat *statistics);
int guarded_reader_check(MapVisitor *visitor, MDB_env *env, int *dead);
int guarded_txn_begin(MapVisitor *visitor, MDB_env *env, unsigned flags, MDB_txn **txn);
int guarded_txn_commit(MapVisitor *visitor, MDB_txn *txn);
int guarded_dbi_open(
    MapVisitor *visitor, MDB_txn *txn, const char *name, unsigned flags, MDB_dbi *dbi);
int guarded_stat(MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_stat *statistics);
int guarded_get(MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data);
int guarded_put(
    MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned flags);
int guarded_del(MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *data);
int guarded_cursor_open(MapVisitor *visitor, MDB_txn *txn, MDB_dbi dbi, MDB_cursor **cursor);
int guarded_cursor_get(
    MapVisitor *visitor, MDB_cursor *cursor, MDB_val *key, MDB_val *data, MDB_cursor_op operation);
int guarded_cursor_put(
    MapVisitor *visitor, MDB_cursor *cursor, MDB_val *key, MDB_val *data, unsigned flags);
int guarded_cursor_del(MapVisitor *visitor, MDB_cursor *cursor, unsigned flags);

/// `mdb_txn_renew` and `mdb_cursor_renew`. Where either fails, the transaction is reset.
int guarded_renew(MapVisitor *visitor, MDB_txn *txn, MDB_cursor *cursor);

/// These are for a damaged map too; what a wreck holds is left as it is.
void guarded_txn_reset(MapVisitor *visitor, MDB_txn *txn);
void guarded_txn_abort(MapVisitor *visitor, MDB_txn *txn);
void guarded_cursor_close(MapVisitor *visitor, MDB_cursor *cursor);
void guarded_env_close(MapVisitor *visitor, MDB_env *env);

/// Finds out where the map lies, which LMDB does not tell, and guards what is read in it from then on.
/// MDB_NOTFOUND: there is no page of a tree yet, and so nothing to read. No transaction of this
/// visitor's is open.
int guarded_map_locate(MapVisitor *visitor, MDB_env *env);
/// The map is about to move.
void guarded_map_forget(GuardedMap *map);
