// Reads through descriptors, so that a signal can end a wait.
#include "cli/file_text.h"

#include <fcntl.h>
#include <openssl/evp.h>
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

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
constexpr std::size_t kMostLine = std::size_t{256} << 20U;
constexpr std::size_t kPiece = std::size_t{1} << 18U;

// A descriptor that closes itself; stdin stays open.
class Input {
 public:
  explicit Input(const std::string& path) : name_(path == "-" ? "stdin" : path) {
    if (path == "-") return;
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) {
      fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, name_, "cannot be read: {}",
           std::strerror(errno));
    }
    struct stat status {};
    if (fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
      close(descriptor_);
      fail(ErrorCode::kIo, name_, "is a folder, not a file");
    }
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
      const ssize_t got = read(descriptor_, buffer, room);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) {
        fail(ErrorCode::kIo, name_, "cannot be read: {}", std::strerror(errno));
      }
    }
  }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
  int descriptor_ = STDIN_FILENO;
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

std::string read_file(const std::string& path, const Interrupt& interrupt) {
  const Input input(path);
  std::string text;
  std::vector<char> piece(kPiece);
  while (const std::size_t got = input.read_some(piece.data(), piece.size(), interrupt)) {
    if (text.size() + got > kMostBytes) {
      fail(ErrorCode::kInvalidArgument, input.name(), "is larger than {} bytes", kMostBytes);
    }
    text.append(piece.data(), got);
  }
  return text;
}

std::string read_stdin(const Interrupt& interrupt) { return read_file("-", interrupt); }

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
    if (rest.size() > kMostLine) {
      fail(ErrorCode::kInvalidArgument, input.name(), "a line is longer than {} bytes", kMostLine);
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
