// Exclusive temporary name, write, flush, check, rename.
#include "cli/written_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "cli/cli_error.h"

namespace tern::cli {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20U;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// What a killed run of this program left beside the same target: NAME.PID.N.part of a process that
// is gone.
void remove_leftovers(const std::string& path) {
  const std::string folder = folder_of(path);
  const std::string prefix = path.substr(path.rfind('/') + 1) + ".";
  std::error_code ignored;
  std::vector<std::filesystem::path> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    int pid = 0, number = 0, consumed = 0;
    if (name.rfind(prefix, 0) != 0) continue;
    const std::string rest = name.substr(prefix.size());
    if (std::sscanf(rest.c_str(), "%9d.%3d.part%n", &pid, &number, &consumed) != 2 ||
        static_cast<std::size_t>(consumed) != rest.size()) {
      continue;
    }
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) leftovers.push_back(entry.path());
  }
  for (const auto& leftover : leftovers) std::filesystem::remove(leftover, ignored);
}

}  // namespace

WrittenFile::WrittenFile(std::string path, bool force) : path_(std::move(path)), force_(force) {
  struct stat status {};
  const bool exists = lstat(path_.c_str(), &status) == 0;
  if (exists && !force_) {
    fail(ErrorCode::kUsage, path_, "exists already; give --force to replace it");
  }
  if (exists && !S_ISREG(status.st_mode)) {
    fail(ErrorCode::kUsage, path_, "is no ordinary file and is not replaced");
  }
  remove_leftovers(path_);
  for (int attempt = 0; attempt < 100 && descriptor_ < 0; ++attempt) {
    temporary_ = fmt::format("{}.{}.{}.part", path_, getpid(), attempt);
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) {
    const int error_number = errno;
    temporary_.clear();
    fail_with(error_number, "cannot be created");
  }
  // The mode of the file that is replaced, or what a new file would get.
  const mode_t mask = umask(0);
  umask(mask);
  const mode_t mode = exists ? status.st_mode & 07777U : 0666U & ~mask;
  if (fchmod(descriptor_, mode) != 0) fail_with(errno, "cannot be created");
  buffer_.reserve(kBuffer);
}

WrittenFile::~WrittenFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void WrittenFile::refuse_input(const std::string& output, const std::string& input) {
  if (output == "-") {
    fail(ErrorCode::kUsage, output,
         "stdout takes no such file; give the name of one (./- for a file of this name)");
  }
  struct stat a {
  }, b{};
  if (stat(output.c_str(), &a) == 0 && stat(input.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
      a.st_ino == b.st_ino) {
    fail(ErrorCode::kUsage, output, "is the input; an input is never written to");
  }
}

void WrittenFile::fail_with(int error_number, std::string_view doing) {
  if (error_number == EFBIG) {
    fail(
        ErrorCode::kDiskFull, path_,
        "a file may not grow to {} bytes here (ulimit -f, or the file system's limit); nothing was "
        "written",
        bytes_);
  }
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT;
  fail(is_full ? ErrorCode::kDiskFull : ErrorCode::kIo, path_, "{}: {} ({} bytes were to be there)",
       doing, std::strerror(error_number), bytes_);
}

void WrittenFile::write(std::string_view bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kBuffer - buffer_.size());
    buffer_.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (buffer_.size() == kBuffer) flush_buffer();
  }
}

void WrittenFile::flush_buffer() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_with(errno, "cannot be written");
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void WrittenFile::commit() {
  flush_buffer();
  struct stat status {};
  if (fsync(descriptor_) != 0 || fstat(descriptor_, &status) != 0) {
    fail_with(errno, "cannot be flushed");
  }
  if (static_cast<std::size_t>(status.st_size) != bytes_) fail_with(EIO, "was not written whole");
  if (close(descriptor_) != 0) {
    descriptor_ = -1;
    fail_with(errno, "cannot be closed");
  }
  descriptor_ = -1;
  // Without force the name must still be free: link() refuses where rename() would replace.
  const bool moved = force_ ? std::rename(temporary_.c_str(), path_.c_str()) == 0
                            : link(temporary_.c_str(), path_.c_str()) == 0;
  if (!moved && !force_ && errno != EEXIST && access(path_.c_str(), F_OK) != 0) {
    // A file system without hard links.
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail_with(errno, "cannot be renamed");
    temporary_.clear();
  } else if (!moved) {
    fail_with(errno, "cannot be put in place");
  } else if (force_) {
    temporary_.clear();
  }
  const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

}  // namespace tern::cli
