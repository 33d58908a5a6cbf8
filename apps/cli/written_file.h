// A file that appears whole or not at all: written beside its target under a name of its own and
// renamed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tern::cli {

// Without commit() nothing remains. Errors: kUsage when the target exists and `force` is false,
// kDiskFull, kIo.
class WrittenFile {
 public:
  WrittenFile(std::string path, bool force);
  ~WrittenFile();
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  // Refuses a target that is the same file as one of the inputs, even with force, and "-".
  static void refuse_input(const std::string& output, const std::string& input);

  void write(std::string_view bytes);
  template <class T>
  void write_values(std::span<const T> values) {
    write({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  // Flushes, compares the size, renames, flushes the folder.
  void commit();

 private:
  void flush_buffer();
  [[noreturn]] void fail_with(int error_number, std::string_view doing);

  std::string path_, temporary_;
  std::string buffer_;
  std::size_t bytes_ = 0;
  int descriptor_ = -1;
  bool force_;
};

}  // namespace tern::cli
