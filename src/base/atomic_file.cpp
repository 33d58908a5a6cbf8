#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include "base/control_groups.h"
#include "base/utf8.h"

namespace tern {
namespace {

namespace fs = std::filesystem;

std::string shown(const fs::path& path) { return escape_for_message(path.native(), 4096); }

std::string reason(int number) { return std::generic_category().message(number); }

fs::path folder_of(const fs::path& target) {
  return target.has_parent_path() ? target.parent_path() : fs::path(".");
}

// The temporary files of a target are ".<name>.tern-<16 digits>.tmp", the name cut so that the
// whole stays below the 255 bytes that file systems allow.
std::string temporary_prefix(const fs::path& target) {
  constexpr std::size_t kMostNameBytes = 200;
  return fmt::format(".{}.tern-", target.filename().string().substr(0, kMostNameBytes));
}
constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kDigits = 16;

std::string random_digits() {
  std::random_device source;
  const std::uint64_t number = (std::uint64_t{source()} << 32) | source();
  return fmt::format("{:016x}", number);
}

bool is_temporary_of(std::string_view name, std::string_view prefix) {
  if (name.size() != prefix.size() + kDigits + kSuffix.size()) return false;
  if (!name.starts_with(prefix) || !name.ends_with(kSuffix)) return false;
  const std::string_view digits = name.substr(prefix.size(), kDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A writer holds a lock on its temporary file for as long as it lives, so one that can be locked
// was left behind.
void remove_leftovers(const fs::path& target, const SystemCalls& calls) {
  const std::string prefix = temporary_prefix(target);
  std::error_code error;
  fs::directory_iterator entries(folder_of(target), error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    if (!is_temporary_of(entries->path().filename().string(), prefix)) continue;
    const fs::path& path = entries->path();
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) calls.unlink(path.c_str());
    ::close(descriptor);
  }
}

// 0666 less the process's mask. umask() itself can only be asked by changing it for all threads,
// which is left to systems without /proc.
unsigned default_mode() {
  if (const auto status = read_system_file("/proc/self/status")) {
    const std::size_t at = status->find("\nUmask:");
    if (at != std::string::npos) {
      unsigned mask = 0;
      for (std::size_t i = status->find_first_of("01234567", at);
           i < status->size() && (*status)[i] >= '0' && (*status)[i] <= '7'; ++i) {
        mask = mask * 8 + static_cast<unsigned>((*status)[i] - '0');
      }
      return 0666u & ~mask;
    }
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666u & ~static_cast<unsigned>(mask);
}

// What lies at the target now: its mode when it is a file that may be replaced.
Result<std::optional<unsigned>> look_at_target(const fs::path& target, bool overwrite) {
  struct stat status = {};
  if (::lstat(target.c_str(), &status) != 0) {
    if (errno == ENOENT) return std::optional<unsigned>();
    return fail(errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
                "{}: cannot be written: {}", shown(target), reason(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "{}: is a directory, the name of a file is expected",
                shown(target));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "{}: is not a regular file and will not be replaced",
                shown(target));
  }
  if (!overwrite) {
    return fail(ErrorCode::kInvalidArgument,
                "{}: the file exists; choose another name or allow overwriting with --force",
                shown(target));
  }
  return std::optional<unsigned>(status.st_mode & 07777u);
}

// Refused before the work rather than after an hour of it. A file system that does not tell is
// trusted.
Result<void> check_free_space(const fs::path& target, std::uint64_t needed) {
  struct statvfs status = {};
  if (::statvfs(folder_of(target).c_str(), &status) != 0 || status.f_blocks == 0) return {};
  const std::uint64_t available = std::uint64_t{status.f_bavail} * status.f_frsize;
  if (needed <= available) return {};
  return fail(ErrorCode::kDiskFull,
              "{}: needs {} bytes, but the disk has {} free: {} bytes are missing", shown(target),
              needed, available, needed - available);
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const fs::path& target, const Options& options) {
  AtomicFile file;
  file.options_ = options;
  file.target_ = target;
  std::error_code error;
  if (fs::is_symlink(target, error)) {
    file.target_ = fs::weakly_canonical(target, error);
    if (error) {
      return fail(ErrorCode::kIo, "{}: the link cannot be followed: {}", shown(target),
                  error.message());
    }
  }
  if (!file.target_.has_filename() || file.target_.filename() == "." ||
      file.target_.filename() == "..") {
    return fail(ErrorCode::kInvalidArgument, "{}: is not the name of a file", shown(target));
  }
  TERN_ASSIGN(const std::optional<unsigned> mode, look_at_target(file.target_, options.overwrite));
  file.mode_ = mode ? *mode : default_mode();
  remove_leftovers(file.target_, options.calls);
  if (options.expected_bytes) TERN_TRY(check_free_space(file.target_, *options.expected_bytes));
  TERN_TRY(file.open_temporary());
  return file;
}

Result<void> AtomicFile::open_temporary() {
  constexpr int kAttempts = 16;
  const fs::path folder = folder_of(target_);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const fs::path path =
        folder / (temporary_prefix(target_) + random_digits() + std::string(kSuffix));
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor_ < 0) {
      if (errno == EEXIST || errno == EINTR) continue;
      if (errno == ENOENT) {
        return fail(ErrorCode::kNotFound, "{}: there is no folder {}", shown(target_),
                    shown(folder));
      }
      return write_error(errno, options_.expected_bytes.value_or(0));
    }
    // Another process may have taken the new file for a leftover: then its lock or its missing name
    // shows it.
    struct stat status = {};
    const bool is_lost = (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) ||
                         ::fstat(descriptor_, &status) != 0 || status.st_nlink == 0;
    if (!is_lost) {
      temporary_ = path;
      return {};
    }
    ::close(std::exchange(descriptor_, -1));
  }
  return fail(ErrorCode::kIo, "{}: no temporary file could be made beside it", shown(target_));
}

Error AtomicFile::write_error(int error_number, std::uint64_t missing) const {
  if (error_number == ENOSPC || error_number == EDQUOT) {
    return fail(ErrorCode::kDiskFull,
                "{}: {}: {} bytes are written, {} bytes are missing; nothing was changed",
                shown(target_),
                error_number == ENOSPC ? "the disk is full" : "the disk quota is used up", written_,
                missing);
  }
  if (error_number == EFBIG) {
    return fail(ErrorCode::kDiskFull,
                "{}: a file may not grow beyond {} bytes here (ulimit -f, or the file system's "
                "limit), {} bytes are missing; nothing was changed",
                shown(target_), written_, missing);
  }
  return fail(ErrorCode::kIo, "{}: cannot be written at offset {}: {}; nothing was changed",
              shown(target_), written_, reason(error_number));
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  if (descriptor_ < 0) return fail(ErrorCode::kIo, "{}: writing has failed before", shown(target_));
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t n =
        options_.calls.write(descriptor_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int number = n < 0 ? errno : EIO;
      const std::uint64_t total =
          std::max(options_.expected_bytes.value_or(0), written_ + bytes.size());
      const Error error = write_error(number, total - written_);
      discard();
      return error;
    }
    written_ += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> AtomicFile::commit() {
  if (descriptor_ < 0) return fail(ErrorCode::kIo, "{}: writing has failed before", shown(target_));
  const auto give_up = [this](Error error) {
    discard();
    return error;
  };
  if (options_.expected_bytes && *options_.expected_bytes != written_) {
    return give_up(fail(ErrorCode::kInternal, "{}: {} bytes were written, {} were announced",
                        shown(target_), written_, *options_.expected_bytes));
  }
  int result = 0;
  do {
    result = options_.calls.fsync(descriptor_);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return give_up(write_error(errno, 0));
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) return give_up(write_error(errno, 0));
  if (static_cast<std::uint64_t>(status.st_size) != written_) {
    return give_up(fail(ErrorCode::kIo, "{}: {} bytes were written, but the disk holds {}",
                        shown(target_), written_, status.st_size));
  }
  if (options_.calls.fchmod(descriptor_, static_cast<mode_t>(mode_)) != 0) {
    return give_up(write_error(errno, 0));
  }
  if (Result<void> named = give_name(); !named.ok()) return give_up(named.error());
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));

  // The name itself is on the disk only when the folder is. Some file systems cannot flush folders,
  // and need not.
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    options_.calls.fsync(folder);
    ::close(folder);
  }
  return {};
}

// Without overwrite the name is given by link(), which fails where a file has appeared meanwhile;
// rename() would replace it.
Result<void> AtomicFile::give_name() {
  const auto exists = [this] {
    return fail(ErrorCode::kInvalidArgument,
                "{}: the file was made by somebody else meanwhile; it is unchanged",
                shown(target_));
  };
  if (!options_.overwrite) {
    if (options_.calls.link(temporary_.c_str(), target_.c_str()) == 0) {
      options_.calls.unlink(temporary_.c_str());
      return {};
    }
    if (errno == EEXIST) return exists();
    const bool has_no_links =
        errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
    if (!has_no_links) return write_error(errno, 0);
    std::error_code ignored;
    if (fs::exists(fs::symlink_status(target_, ignored))) return exists();
  }
  if (options_.calls.rename(temporary_.c_str(), target_.c_str()) != 0) return write_error(errno, 0);
  return {};
}

void AtomicFile::discard() noexcept {
  if (!temporary_.empty()) options_.calls.unlink(temporary_.c_str());
  temporary_.clear();
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

AtomicFile::~AtomicFile() { discard(); }

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      options_(other.options_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      mode_(other.mode_),
      written_(other.written_) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  target_ = std::move(other.target_);
  temporary_ = std::exchange(other.temporary_, {});
  options_ = other.options_;
  descriptor_ = std::exchange(other.descriptor_, -1);
  mode_ = other.mode_;
  written_ = other.written_;
  return *this;
}

Result<void> write_file_atomically(const fs::path& target, std::string_view text,
                                   const AtomicFile::Options& options) {
  AtomicFile::Options sized = options;
  sized.expected_bytes = text.size();
  TERN_ASSIGN(AtomicFile file, AtomicFile::create(target, sized));
  TERN_TRY(file.write(text));
  return file.commit();
}

}  // namespace tern
