// SHA-256, for the identity of files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tern {

// Hashes a stream piece by piece. Throws Error(kInternal) where the crypto library refuses (no
// SHA-256 provider).
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  // 64 hexadecimal digits in lower case; the object starts afresh.
  [[nodiscard]] std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);
[[nodiscard]] std::string sha256_hex(std::string_view text);
// Reads the file in pieces of 1 MiB.
[[nodiscard]] Result<std::string> sha256_hex_of_file(const std::filesystem::path& path);

}  // namespace tern
