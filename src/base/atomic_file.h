// Writes a file so that its name always means either the old file or the whole new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/system_calls.h"

namespace tern {

// Bytes go to a hidden temporary file in the target's folder; commit() makes it the target. Without
// commit() the temporary file is removed and the target is untouched. A process that is killed
// leaves at most its temporary file, which the next AtomicFile for the same target removes. Two
// processes may write the same target: the last commit wins.
//
// Errors: kInvalidArgument (the target exists and overwrite is off, or is no regular file),
// kNotFound (no such folder), kDiskFull (with the number of bytes that are missing), kIo. After an
// error the object is dead.
class AtomicFile {
 public:
  struct Options {
    bool overwrite = false;
    // The size of the file, where known: refused at once when the disk has not that much, and
    // checked at commit().
    std::optional<std::uint64_t> expected_bytes;
    SystemCalls calls;
  };

  // An existing symbolic link is followed: the file it means is replaced.
  [[nodiscard]] static Result<AtomicFile> create(const std::filesystem::path& target,
                                                 const Options& options);
  [[nodiscard]] static Result<AtomicFile> create(const std::filesystem::path& target) {
    return create(target, Options{});
  }

  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;

  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> write(std::string_view text) {
    return write(std::as_bytes(std::span(text.data(), text.size())));
  }
  // Flushes to the disk, compares the size, gives the file its mode and its name, and flushes the
  // folder.
  [[nodiscard]] Result<void> commit();

  [[nodiscard]] std::uint64_t written_bytes() const { return written_; }
  [[nodiscard]] const std::filesystem::path& target() const { return target_; }
  // Where the bytes are until commit().
  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }

 private:
  AtomicFile() = default;
  void discard() noexcept;
  Result<void> open_temporary();
  Result<void> give_name();
  [[nodiscard]] Error write_error(int error_number, std::uint64_t missing) const;

  std::filesystem::path target_;
  std::filesystem::path temporary_;  // empty: none exists
  Options options_;
  int descriptor_ = -1;
  unsigned mode_ = 0;  // of the finished file
  std::uint64_t written_ = 0;
};

// The whole of a small file at once.
[[nodiscard]] Result<void> write_file_atomically(const std::filesystem::path& target,
                                                 std::string_view text,
                                                 const AtomicFile::Options& options);

}  // namespace tern
