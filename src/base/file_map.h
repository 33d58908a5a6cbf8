// A file for reading, mapped into memory or read into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "base/mapped_range.h"
#include "base/system_calls.h"
#include "tern/cancel.h"
#include "tern/progress.h"

namespace tern {

// Move-only; the bytes stay where they are when the object moves. Any thread may read the bytes and
// ask damaged().
//
// A mapped file that somebody cuts short would end the process with a bus error. A handler,
// installed with the first mapping and chained to the one that was there, puts zeros where the
// bytes are gone and marks the mapping: whoever computes from the bytes asks damaged() afterwards,
// and ends the request with damage_error() instead of an answer.
class FileMap {
 public:
  enum class Mode : std::uint8_t {
    kAuto,  // map; where that is impossible, read
    kMmap,  // map, or fail
    kRead,  // read into memory: safe against files that change
  };
  struct Options {
    Mode mode = Mode::kAuto;
    SystemCalls calls{};
    // Where the file is read into memory: asked between pieces of kReadPiece bytes, and told of
    // them.
    CancelToken cancel{};
    ProgressFn progress{};
  };
  static constexpr std::size_t kReadPiece = std::size_t{8} << 20;

  // Opens a regular file that is not empty. Errors: kNotFound (missing), kInvalidFile (a directory,
  // a device, empty, shorter than its size says), kIo (no permission, a read error with its
  // offset), kOutOfMemory, kCancelled.
  [[nodiscard]] static Result<FileMap> open(const std::filesystem::path& path,
                                            const Options& options);
  [[nodiscard]] static Result<FileMap> open(const std::filesystem::path& path,
                                            Mode mode = Mode::kAuto) {
    return open(path, Options{.mode = mode});
  }

  FileMap() = default;
  ~FileMap();
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  // As found at the open descriptor.
  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool is_mapped() const { return range_ != nullptr; }
  // True when kAuto had to read because the file could not be mapped: worth one line in the log.
  [[nodiscard]] bool fell_back() const { return fell_back_; }

  // True once a read of the bytes met a part of the file that is gone.
  [[nodiscard]] bool damaged() const;
  [[nodiscard]] Error damage_error() const;
  // Asks the descriptor: an error when the file has another size or was written to since it was
  // opened.
  [[nodiscard]] Result<void> check_unchanged() const;

  // The caller does not read these bytes again (they have been repacked): the process gives back
  // the whole pages inside [offset, offset + length). The range is cut to the file.
  void drop_pages(std::uint64_t offset, std::uint64_t length) const;
  // The file is about to be read from front to back: read ahead, until advise_normal().
  void advise_sequential() const;
  void advise_normal() const;

 private:
  void close() noexcept;
  Result<void> read_all(const Options& options);

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
  AlignedBuffer buffer_;          // holds the bytes unless mapped
  MappedRange* range_ = nullptr;  // registered with the bus-error handler, when mapped
  int descriptor_ = -1;
  std::int64_t modified_ns_ = 0;  // when opened
  bool fell_back_ = false;
};

}  // namespace tern
