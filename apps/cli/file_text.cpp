// Reads through descriptors, so that a signal can end a wait.
#include "cli/file_text.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "cli/cli_error.h"

namespace tern::cli {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18U;

// A descriptor that closes itself; stdin stays open.
class Input {
 public:
  explicit Input(const std::string& path) : name_(path == "-" ? "stdin" : path) {
    if (path == "-") return;
    // A named pipe without a writer would be waited for in open(), where a signal can be missed.
    do {
      descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) {
      fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, name_, "cannot be read: {}",
           std::strerror(errno));
    }
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) return;
    if (S_ISDIR(status.st_mode)) {
      close(descriptor_);
      fail(ErrorCode::kIo, name_, "is a folder, not a file");
    }
    if (S_ISREG(status.st_mode)) size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~Input() {
    if (descriptor_ != STDIN_FILENO) close(descriptor_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Bytes read; 0 at the end.
  std::size_t read_some(char* buffer, std::size_t room, const Interrupt& interrupt) const {
    while (true) {
      if (interrupt.requested()) {
        throw Error(ErrorCode::kCancelled, name_ + ": interrupted while reading");
      }
      // Woken up now and then: a signal may come between the question above and the wait.
      constexpr int kWaitMs = 100;
      pollfd ready{descriptor_, POLLIN, 0};
      if (poll(&ready, 1, kWaitMs) <= 0) continue;
      const ssize_t got = read(descriptor_, buffer, room);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR && errno != EAGAIN) {
        fail(ErrorCode::kIo, name_, "cannot be read: {}", std::strerror(errno));
      }
    }
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  // Of a regular file that is not stdin, else 0.
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  std::string name_;
  int descriptor_ = STDIN_FILENO;
  std::uint64_t size_ = 0;
};

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
      throw Error(ErrorCode::kInternal, "sha256: the crypto library refuses SHA-256");
    }
  }
  void update(std::string_view bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  std::string finish() {
    std::array<unsigned char, 32> digest{};
    EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
    std::string hex;
    for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
    return hex;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace

std::string read_file(const std::string& path, InputLimit limit, const Interrupt& interrupt) {
  const Input input(path);
  const auto most = static_cast<std::uint64_t>(limit);
  const auto check = [&](std::uint64_t bytes) {
    if (bytes <= most) return;
    fail(ErrorCode::kInvalidArgument, input.name(),
         "is larger than the {} MiB that are read for this use", most >> 20U);
  };
  check(input.size());
  std::string text;
  std::vector<char> piece(kPiece);
  while (const std::size_t got = input.read_some(piece.data(), piece.size(), interrupt)) {
    check(text.size() + got);
    text.append(piece.data(), got);
  }
  return text;
}

void for_each_line(const std::string& path, const Interrupt& interrupt,
                   const std::function<void(std::string_view line)>& each) {
  const Input input(path);
  std::string rest;
  std::vector<char> piece(kPiece);
  while (const std::size_t got = input.read_some(piece.data(), piece.size(), interrupt)) {
    std::size_t scanned = rest.size();
    rest.append(piece.data(), got);
    std::size_t begin = 0;
    for (std::size_t end; (end = rest.find('\n', scanned)) != std::string::npos;) {
      each(std::string_view(rest).substr(begin, end - begin));
      begin = scanned = end + 1;
    }
    rest.erase(0, begin);
    constexpr auto kMostLine = static_cast<std::size_t>(InputLimit::kJson);
    if (rest.size() > kMostLine) {
      fail(ErrorCode::kInvalidArgument, input.name(), "a line is longer than {} MiB",
           kMostLine >> 20U);
    }
  }
  if (!rest.empty()) each(rest);
}

std::string sha256_of_text(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.finish();
}

std::string sha256_of_file(const std::string& path, const Interrupt& interrupt) {
  const Input input(path);
  Sha256 hash;
  std::vector<char> piece(kPiece);
  while (const std::size_t got = input.read_some(piece.data(), piece.size(), interrupt)) {
    hash.update({piece.data(), got});
  }
  return hash.finish();
}

}  // namespace tern::cli
