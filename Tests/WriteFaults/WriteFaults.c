// Lets writes to files fail, in a process that loads it before the system's library (LD_PRELOAD).
//
// $WRITE_FAULTS names a file. What is written there holds from the next call on:
//   (nothing)      every write goes through
//   enospc, eio, erofs
//                  each write to the store's data file fails with that error
//   meta           writes shorter than a page (LMDB's last step of a commit) fail with EIO
// Used by StoreTroubleScenarios. Linux, glibc.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

// Whether the descriptor is the store's data file: regular, and longer than any other of ours.
static int is_data(int descriptor) {
  struct stat status;
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 1 << 20;
}

// The error that a write of so many bytes fails with; 0: none.
static int fault(int descriptor, size_t bytes) {
  char word[16] = "";
  const char *path = getenv("WRITE_FAULTS");
  if (path == NULL || !is_data(descriptor)) return 0;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t count = read(file, word, sizeof word - 1);
  close(file);
  word[count > 0 ? count : 0] = 0;
  if (strcmp(word, "enospc") == 0) return ENOSPC;
  if (strcmp(word, "eio") == 0) return EIO;
  if (strcmp(word, "erofs") == 0) return EROFS;
  if (strcmp(word, "meta") == 0 && bytes < 4096) return EIO;
  return 0;
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
  static ssize_t (*next)(int, const void *, size_t, off_t);
  if (next == NULL) next = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  int error = fault(descriptor, count);
  if (error == 0) return next(descriptor, bytes, count, offset);
  errno = error;
  return -1;
}

ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
  static ssize_t (*next)(int, const struct iovec *, int);
  if (next == NULL) next = (ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
  int error = fault(descriptor, 4096);
  if (error == 0) return next(descriptor, pieces, count);
  errno = error;
  return -1;
}
