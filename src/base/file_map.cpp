#include "base/file_map.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "base/progress.h"
#include "base/utf8.h"

namespace tern {
namespace {

std::string shown(const std::filesystem::path& path) {
  return escape_for_message(path.native(), 4096);
}

std::string reason(int number) { return std::generic_category().message(number); }

std::int64_t modification_time_ns(const struct stat& status) {
#if defined(__APPLE__)
  const struct timespec t = status.st_mtimespec;
#else
  const struct timespec t = status.st_mtim;
#endif
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

Error open_error(const std::filesystem::path& path, int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return fail(ErrorCode::kNotFound, "{}: there is no such file", shown(path));
    case EACCES:
    case EPERM:
      return fail(ErrorCode::kIo, "{}: no permission to read the file", shown(path));
    case ENXIO:  // a socket
      return fail(ErrorCode::kInvalidFile, "{}: is not a regular file", shown(path));
    default:
      return fail(ErrorCode::kIo, "{}: cannot be opened: {}", shown(path), reason(number));
  }
}

Result<void> check_kind(const std::filesystem::path& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kInvalidFile, "{}: is a directory, a file is expected", shown(path));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::kInvalidFile, "{}: is not a regular file", shown(path));
  }
  if (status.st_size <= 0) {
    return fail(ErrorCode::kInvalidFile,
                "{}: the file is empty (0 bytes); is it a download that never started?",
                shown(path));
  }
  return {};
}

}  // namespace

Result<FileMap> FileMap::open(const std::filesystem::path& path, const Options& options) {
  FileMap map;
  map.path_ = path;
  // Without O_NONBLOCK the open of a named pipe would wait for a writer; regular files ignore it.
  do {
    map.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  } while (map.descriptor_ < 0 && errno == EINTR);
  if (map.descriptor_ < 0) return open_error(path, errno);
  struct stat status = {};
  if (::fstat(map.descriptor_, &status) != 0) return open_error(path, errno);
  TERN_TRY(check_kind(path, status));
  map.modified_ns_ = modification_time_ns(status);
  const auto size = static_cast<std::size_t>(status.st_size);

  if (options.mode != Mode::kRead) {
    void* address = options.calls.mmap(nullptr, size, PROT_READ, MAP_PRIVATE, map.descriptor_, 0);
    if (address != MAP_FAILED) {
      map.bytes_ = {static_cast<const std::byte*>(address), size};
      map.range_ = register_mapped_range(address, size);
      return map;
    }
    if (options.mode == Mode::kMmap) {
      return fail(errno == ENOMEM ? ErrorCode::kOutOfMemory : ErrorCode::kIo,
                  "{}: cannot be mapped into memory: {}; try --load-mode read", shown(path),
                  reason(errno));
    }
    map.fell_back_ = true;
  }
  const std::string what = shown(path) + ": reading the file";
  TERN_ASSIGN(map.buffer_, AlignedBuffer::allocate(size, {.what = what}));
  TERN_TRY(map.read_all(options));
  map.bytes_ = std::as_const(map.buffer_).bytes();
  return map;
}

Result<void> FileMap::read_all(const Options& options) {
  const std::span<std::byte> to = buffer_.bytes();
  ProgressMeter meter(options.progress, "reading the file", "bytes", to.size());
  for (std::size_t at = 0; at < to.size();) {
    if (options.cancel.requested())
      return fail(ErrorCode::kCancelled, "{}: loading was cancelled", shown(path_));
    const std::size_t n = std::min(to.size() - at, kReadPiece);
    const ssize_t got = options.calls.pread(descriptor_, to.data() + at, n, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return fail(ErrorCode::kIo, "{}: read error at offset {} of {}: {}", shown(path_), at,
                  to.size(), reason(errno));
    }
    if (got == 0) {
      return fail(ErrorCode::kInvalidFile,
                  "{}: the file ends at {}, but had {} bytes when it was opened; is it still being "
                  "written?",
                  shown(path_), at, to.size());
    }
    at += static_cast<std::size_t>(got);
    meter.update(at);
  }
  meter.finish();
  return {};
}

FileMap::~FileMap() { close(); }

FileMap::FileMap(FileMap&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      buffer_(std::move(other.buffer_)),
      range_(std::exchange(other.range_, nullptr)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      modified_ns_(other.modified_ns_),
      fell_back_(other.fell_back_) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  bytes_ = std::exchange(other.bytes_, {});
  buffer_ = std::move(other.buffer_);
  range_ = std::exchange(other.range_, nullptr);
  descriptor_ = std::exchange(other.descriptor_, -1);
  modified_ns_ = other.modified_ns_;
  fell_back_ = other.fell_back_;
  return *this;
}

void FileMap::close() noexcept {
  if (range_ != nullptr) {
    unregister_mapped_range(range_);
    ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FileMap::damaged() const {
  return range_ != nullptr && range_->is_damaged.load(std::memory_order_acquire);
}

Error FileMap::damage_error() const {
  return fail(ErrorCode::kIo,
              "{}: a part of the file is gone or unreadable since it was loaded; restore it and "
              "load the model again",
              shown(path_));
}

Result<void> FileMap::check_unchanged() const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) {
    return fail(ErrorCode::kIo, "{}: cannot be asked for its size: {}", shown(path_),
                reason(errno));
  }
  if (static_cast<std::uint64_t>(status.st_size) != size()) {
    return fail(ErrorCode::kIo, "{}: the file has {} bytes now, but had {} when it was loaded",
                shown(path_), status.st_size, size());
  }
  if (modification_time_ns(status) != modified_ns_) {
    return fail(ErrorCode::kIo, "{}: the file was written to after it was loaded", shown(path_));
  }
  return {};
}

void FileMap::drop_pages(std::uint64_t offset, std::uint64_t length) const {
  // A small buffer lives in the heap among others.
  if (!is_mapped() && size() < AlignedBuffer::kMapThreshold) return;
  if (offset >= size()) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto base = reinterpret_cast<std::uintptr_t>(bytes_.data());
  const std::uint64_t stop = offset + std::min(length, size() - offset);
  const std::uint64_t first = (base + offset + page - 1) / page * page;
  const std::uint64_t last = (base + stop) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

void FileMap::advise_sequential() const {
  if (is_mapped()) ::madvise(const_cast<std::byte*>(bytes_.data()), size(), MADV_SEQUENTIAL);
}

void FileMap::advise_normal() const {
  if (is_mapped()) ::madvise(const_cast<std::byte*>(bytes_.data()), size(), MADV_NORMAL);
}

}  // namespace tern
