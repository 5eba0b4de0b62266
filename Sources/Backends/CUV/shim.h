// libuv, and socket calls whose arguments Swift imports awkwardly.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

// Accepts one connection as a non-blocking, close-on-exec descriptor; -errno on failure.
static inline int larder_accept(int listener, struct sockaddr_storage *peer) {
  socklen_t length = sizeof *peer;
  int descriptor = accept(listener, (struct sockaddr *)peer, &length);
  if (descriptor < 0) return -errno;
  fcntl(descriptor, F_SETFL, O_NONBLOCK);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return descriptor;
}

// A non-blocking, close-on-exec stream socket of a family; -errno on failure.
static inline int larder_socket(int family) {
  int descriptor = socket(family, SOCK_STREAM, 0);
  if (descriptor < 0) return -errno;
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return descriptor;
}
static inline int larder_set_option(int descriptor, int level, int option, int value) {
  return setsockopt(descriptor, level, option, &value, sizeof value) < 0 ? -errno : 0;
}
static inline int larder_bind(int descriptor, const struct sockaddr *address, socklen_t length) {
  return bind(descriptor, address, length) < 0 ? -errno : 0;
}
static inline int larder_listen(int descriptor, int backlog) {
  return listen(descriptor, backlog) < 0 ? -errno : 0;
}

// The heap of glibc, which Swift's module of it leaves out. Elsewhere the allocator is left alone.
#if defined(__GLIBC__)
#include <malloc.h>
static inline int larder_heap_is_glibc(void) { return 1; }
// Bytes that somebody holds: in all arenas, and in maps of their own.
static inline size_t larder_heap_used_bytes(void) {
  struct mallinfo2 information = mallinfo2();
  return information.uordblks + information.hblkhd;
}
static inline void larder_heap_trim(void) { malloc_trim(0); }
static inline void larder_heap_limit_arenas(int count) { mallopt(M_ARENA_MAX, count); }
#else
static inline int larder_heap_is_glibc(void) { return 0; }
static inline size_t larder_heap_used_bytes(void) { return 0; }
static inline void larder_heap_trim(void) {}
static inline void larder_heap_limit_arenas(int count) {}
#endif
