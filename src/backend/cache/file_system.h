// The operating system as the cache sees it, as an interface, so that tests make any call fail or
// end the process there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tern::cache {

struct FileStatus {
  enum class Type { kFile, kDirectory, kLink, kOther };
  Type type = Type::kOther;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t owner = 0;
  std::uint64_t bytes = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;
  std::int64_t modified_ns = 0;  // since 1970; for eviction only, never for validity
};

// Every call gives a negative errno value when it fails; otherwise 0, a descriptor or a count.
// Descriptors are close-on-exec, and no call follows a link at the last part of a path. An object
// may be used by several threads at once.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual int open_read(const std::string& path) = 0;
  // A new file of mode 0600; -EEXIST when the name is taken.
  virtual int create_new(const std::string& path) = 0;
  // An existing file, or a new one of mode 0600, for a lock.
  virtual int open_lock(const std::string& path) = 0;
  virtual int open_directory(const std::string& path) = 0;
  virtual std::int64_t read(int descriptor, void* to, std::size_t bytes) = 0;
  virtual std::int64_t write(int descriptor, const void* from, std::size_t bytes) = 0;
  // The whole content of a small file, replaced in place (who holds a lock).
  virtual int overwrite(int descriptor, const std::string& text) = 0;
  virtual int flush(int descriptor) = 0;
  virtual int close(int descriptor) = 0;
  virtual int status(int descriptor, FileStatus& status) = 0;
  virtual int status_of(const std::string& path, FileStatus& status) = 0;
  virtual int touch(int descriptor, std::int64_t modified_ns) = 0;
  // -EWOULDBLOCK: another open descriptor holds it. Ends with the descriptor or the process.
  virtual int try_lock(int descriptor) = 0;

  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int remove(const std::string& path) = 0;
  virtual int make_directory(const std::string& path) = 0;  // mode 0700
  virtual int remove_directory(const std::string& path) = 0;
  // Names without "." and "..", in no order.
  virtual int list(const std::string& path, std::vector<std::string>& names) = 0;

  virtual std::uint32_t user() = 0;  // the effective one
  virtual std::int64_t process_id() = 0;
  virtual std::uint64_t random_bits() = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t wall_ns() = 0;  // since 1970
  virtual std::int64_t steady_ns() = 0;
  virtual void sleep_ms(std::int64_t ms) = 0;
};

// The real ones.
[[nodiscard]] std::shared_ptr<FileSystem> posix_file_system();
[[nodiscard]] std::shared_ptr<Clock> system_clock();

// What everything in this folder works with.
struct System {
  std::shared_ptr<FileSystem> files = posix_file_system();
  std::shared_ptr<Clock> clock = system_clock();
};

// "No space left on device" for -ENOSPC.
[[nodiscard]] std::string describe_errno(std::int64_t negative_errno);

}  // namespace tern::cache
