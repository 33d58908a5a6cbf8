#include "base/hash.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <vector>

namespace tern {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* object) const { EVP_MD_CTX_free(object); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};

  void start() const {
    if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) {
      throw Error(ErrorCode::kInternal, "the crypto library offers no SHA-256");
    }
  }
};

Sha256::Sha256() : state_(std::make_unique<State>()) { state_->start(); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) != 1) {
    throw Error(ErrorCode::kInternal, "the crypto library failed to hash");
  }
}

std::string Sha256::finish_hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size) != 1) {
    throw Error(ErrorCode::kInternal, "the crypto library failed to hash");
  }
  state_->start();
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish_hex();
}

std::string sha256_hex(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

Result<std::string> sha256_hex_of_file(const std::filesystem::path& path) {
  const auto error = [&path](std::string_view what, int number) {
    return fail(number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "{}: {}: {}",
                path.string(), what, std::generic_category().message(number));
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return error("cannot be opened", errno);
  Sha256 hash;
  std::vector<std::byte> piece(std::size_t{1} << 20);
  for (;;) {
    const ssize_t n = ::read(descriptor, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int number = errno;
      ::close(descriptor);
      if (n < 0) return error("cannot be read", number);
      return hash.finish_hex();
    }
    hash.update(std::span(piece).first(static_cast<std::size_t>(n)));
  }
}

}  // namespace tern
