#include "backend/cache/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <random>
#include <string_view>
#include <system_error>
#include <thread>

namespace tern::cache {
namespace {

int result_of(int value) { return value < 0 ? -errno : value; }

void fill(const struct stat& from, FileStatus& to) {
  to.type = S_ISREG(from.st_mode)   ? FileStatus::Type::kFile
            : S_ISDIR(from.st_mode) ? FileStatus::Type::kDirectory
            : S_ISLNK(from.st_mode) ? FileStatus::Type::kLink
                                    : FileStatus::Type::kOther;
  to.mode = static_cast<std::uint32_t>(from.st_mode & 07777u);
  to.owner = static_cast<std::uint32_t>(from.st_uid);
  to.bytes = static_cast<std::uint64_t>(from.st_size);
  to.device = static_cast<std::uint64_t>(from.st_dev);
  to.inode = static_cast<std::uint64_t>(from.st_ino);
  to.links = static_cast<std::uint64_t>(from.st_nlink);
#if defined(__APPLE__)
  const struct timespec& modified = from.st_mtimespec;
#else
  const struct timespec& modified = from.st_mtim;
#endif
  to.modified_ns = static_cast<std::int64_t>(modified.tv_sec) * 1'000'000'000 + modified.tv_nsec;
}

class PosixFileSystem final : public FileSystem {
 public:
  // O_NONBLOCK: a pipe that somebody put there must not stop the process.
  int open_read(const std::string& path) override { return open_path(path, O_RDONLY | O_NONBLOCK); }
  int create_new(const std::string& path) override {
    return open_path(path, O_WRONLY | O_CREAT | O_EXCL);
  }
  int open_lock(const std::string& path) override {
    return open_path(path, O_RDWR | O_CREAT | O_NONBLOCK);
  }
  int open_directory(const std::string& path) override {
    return open_path(path, O_RDONLY | O_DIRECTORY);
  }
  std::int64_t read(int descriptor, void* to, std::size_t bytes) override {
    for (;;) {
      const ssize_t n = ::read(descriptor, to, bytes);
      if (n >= 0) return n;
      if (errno != EINTR) return -errno;
    }
  }
  std::int64_t write(int descriptor, const void* from, std::size_t bytes) override {
    for (;;) {
      const ssize_t n = ::write(descriptor, from, bytes);
      if (n >= 0) return n;
      if (errno != EINTR) return -errno;
    }
  }
  int overwrite(int descriptor, const std::string& text) override {
    const ssize_t n = ::pwrite(descriptor, text.data(), text.size(), 0);
    if (n < 0) return -errno;
    return result_of(::ftruncate(descriptor, n));
  }
  int flush(int descriptor) override {
    int result = 0;
    do {
      result = ::fsync(descriptor);
    } while (result != 0 && errno == EINTR);
    return result_of(result);
  }
  int close(int descriptor) override { return result_of(::close(descriptor)); }
  int status(int descriptor, FileStatus& status) override {
    struct stat found = {};
    if (::fstat(descriptor, &found) != 0) return -errno;
    fill(found, status);
    return 0;
  }
  int status_of(const std::string& path, FileStatus& status) override {
    struct stat found = {};
    if (::lstat(path.c_str(), &found) != 0) return -errno;
    fill(found, status);
    return 0;
  }
  int touch(int descriptor, std::int64_t modified_ns) override {
    struct timespec time = {};
    time.tv_sec = static_cast<time_t>(modified_ns / 1'000'000'000);
    time.tv_nsec = static_cast<long>(modified_ns % 1'000'000'000);
    const struct timespec times[2] = {time, time};
    return result_of(::futimens(descriptor, times));
  }
  int try_lock(int descriptor) override {
    int result = 0;
    do {
      result = ::flock(descriptor, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    return result_of(result);
  }
  int rename(const std::string& from, const std::string& to) override {
    return result_of(std::rename(from.c_str(), to.c_str()));
  }
  int remove(const std::string& path) override { return result_of(::unlink(path.c_str())); }
  int make_directory(const std::string& path) override {
    return result_of(::mkdir(path.c_str(), 0700));
  }
  int remove_directory(const std::string& path) override {
    return result_of(::rmdir(path.c_str()));
  }
  int list(const std::string& path, std::vector<std::string>& names) override {
    const int descriptor = open_path(path, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) return descriptor;
    DIR* folder = ::fdopendir(descriptor);
    if (folder == nullptr) {
      const int error = -errno;
      ::close(descriptor);
      return error;
    }
    int error = 0;
    for (;;) {
      errno = 0;
      const struct dirent* item = ::readdir(folder);
      if (item == nullptr) {
        error = -errno;
        break;
      }
      const std::string_view name = static_cast<const char*>(item->d_name);
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(folder);
    return error;
  }
  std::uint32_t user() override { return static_cast<std::uint32_t>(::geteuid()); }
  std::int64_t process_id() override { return ::getpid(); }
  std::uint64_t random_bits() override {
    std::random_device source;
    return (std::uint64_t{source()} << 32) | source();
  }

 private:
  static int open_path(const std::string& path, int flags) {
    for (;;) {
      const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (descriptor >= 0) return descriptor;
      if (errno != EINTR) return -errno;
    }
  }
};

class SystemClock final : public Clock {
 public:
  std::int64_t wall_ns() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::int64_t steady_ns() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void sleep_ms(std::int64_t ms) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  }
};

}  // namespace

std::shared_ptr<FileSystem> posix_file_system() { return std::make_shared<PosixFileSystem>(); }
std::shared_ptr<Clock> system_clock() { return std::make_shared<SystemClock>(); }

std::string describe_errno(std::int64_t negative_errno) {
  return std::generic_category().message(static_cast<int>(-negative_errno));
}

}  // namespace tern::cache
