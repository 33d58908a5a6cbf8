// The system calls of the file code as a value, so that tests can make each of them fail.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

namespace tern {

// Each member behaves as the POSIX function of its name.
struct SystemCalls {
  ssize_t (*pread)(int, void*, std::size_t, off_t) = [](int fd, void* to, std::size_t n, off_t at) {
    return ::pread(fd, to, n, at);
  };
  ssize_t (*write)(int, const void*, std::size_t) = [](int fd, const void* from, std::size_t n) {
    return ::write(fd, from, n);
  };
  void* (*mmap)(void*, std::size_t, int, int, int,
                off_t) = [](void* address, std::size_t n, int protection, int flags, int fd,
                            off_t at) { return ::mmap(address, n, protection, flags, fd, at); };
  int (*fsync)(int) = [](int fd) { return ::fsync(fd); };
  int (*fchmod)(int, mode_t) = [](int fd, mode_t mode) { return ::fchmod(fd, mode); };
  int (*link)(const char*, const char*) = [](const char* from, const char* to) {
    return ::link(from, to);
  };
  int (*rename)(const char*, const char*) = [](const char* from, const char* to) {
    return std::rename(from, to);
  };
  int (*unlink)(const char*) = [](const char* path) { return ::unlink(path); };
};

}  // namespace tern
