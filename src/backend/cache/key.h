// The key of an entry: canonical text, its hash, and the folder where the entry lies.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tern::cache {

inline constexpr int kFormatVersion = 1;
inline constexpr std::size_t kMostKeyBytes = std::size_t{1} << 20;

struct KeyLine {
  std::string name;
  std::string value;
};

// One `name=value` line per field, sorted by name, UTF-8, each with a newline; the line
// `format=<version>` is always among them. In a value newline, carriage return, NUL and backslash
// are written \n, \r, \0 and \\, and a byte that is not UTF-8 as \xNN.
class Key {
 public:
  // `backend` and `architecture` name folders: other characters than letters, digits and "._+-"
  // become '_' there. Both belong among the lines too where they matter.
  // Errors: kInvalidArgument for a name that is not [a-z][a-z0-9_.]*, that comes twice, or that is
  // `format`; or for a text above 1 MiB.
  [[nodiscard]] static Result<Key> from_lines(std::string_view backend,
                                              std::string_view architecture,
                                              std::vector<KeyLine> lines);

  // The same lines and more: for a record that belongs to an entry (its self-test).
  [[nodiscard]] Result<Key> with(std::vector<KeyLine> more) const;

  [[nodiscard]] const std::string& text() const { return text_; }
  // SHA-256 of the text, 64 hexadecimal digits.
  [[nodiscard]] const std::string& hash() const { return hash_; }
  [[nodiscard]] const std::string& backend() const { return backend_; }
  [[nodiscard]] const std::string& architecture() const { return architecture_; }
  [[nodiscard]] std::string stem() const { return hash_.substr(0, 40); }  // of the file's name
  [[nodiscard]] std::string fan() const { return hash_.substr(0, 2); }    // the folder above it

  friend bool operator==(const Key& a, const Key& b) { return a.text_ == b.text_; }

 private:
  Key() = default;
  std::string backend_;
  std::string architecture_;
  std::vector<KeyLine> lines_;
  std::string text_;
  std::string hash_;
};

// The value of a line of a key text, unescaped; empty when there is none.
[[nodiscard]] std::string value_of_line(std::string_view key_text, std::string_view name);

// A closed struct of key fields. Its visitor takes the struct apart by a structured binding
//
//   template <class Visit> void visit_key_fields(const TableKey& fields, Visit&& visit) {
//     const auto& [device, driver, tern] = fields;      // a new member does not compile here ...
//     visit("device", device);                          // ... until it has a line
//     visit("driver", driver);
//     visit("tern", tern);
//   }
//
// so that a field cannot be forgotten.
template <class T>
concept KeyFields = requires(const T& fields) {
  visit_key_fields(fields, [](std::string_view, const std::string&) {});
};

template <KeyFields T>
[[nodiscard]] Result<Key> make_key(std::string_view backend, std::string_view architecture,
                                   const T& fields) {
  std::vector<KeyLine> lines;
  visit_key_fields(fields, [&lines](std::string_view name, const std::string& value) {
    lines.push_back({std::string(name), value});
  });
  return Key::from_lines(backend, architecture, std::move(lines));
}

}  // namespace tern::cache
