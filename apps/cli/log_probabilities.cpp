// Sums are double; single exponentials are float, whose error of 1e-7 is far below what is
// measured.
#include "cli/log_probabilities.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cli/cli_error.h"

namespace tern::cli {
namespace {

constexpr std::string_view kMagic = "TERNKLB1";
constexpr std::size_t kDigest = 64;
constexpr std::size_t kHeaderBytes = 8 + 4 * 4 + kDigest;
constexpr double kFloor = 24;  // nats below the largest
constexpr double kSteps = 65534;

struct RowHeader {
  float largest, step;
  std::int32_t top;
  float nll;
};
static_assert(sizeof(RowHeader) == 16);

}  // namespace

RowScore score_row(std::span<const float> logits, std::int32_t target) {
  RowScore score;
  float largest = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) {
      throw Error(ErrorCode::kNumeric, fmt::format("logit {} is {}", i, logits[i]));
    }
    if (logits[i] > largest) {
      largest = logits[i];
      score.top = static_cast<std::int32_t>(i);
    }
  }
  double sum = 0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - largest));
  score.log_sum = static_cast<double>(largest) + std::log(sum);
  score.nll = score.log_sum - static_cast<double>(logits[static_cast<std::size_t>(target)]);
  return score;
}

KlBaseWriter::KlBaseWriter(const std::string& path, bool force, const KlHeader& header)
    : file_(path, force), codes_(header.vocabulary) {
  file_.write(kMagic);
  const std::array numbers = {header.window, header.vocabulary, header.windows, header.rows};
  file_.write_values(std::span<const std::uint32_t>(numbers));
  file_.write(header.ids_sha256);
}

void KlBaseWriter::add(std::span<const float> logits, const RowScore& score) {
  const double largest =
      static_cast<double>(logits[static_cast<std::size_t>(score.top)]) - score.log_sum;
  const float smallest_logit = *std::min_element(logits.begin(), logits.end());
  const double range =
      std::min(kFloor, largest - (static_cast<double>(smallest_logit) - score.log_sum));
  const RowHeader header = {static_cast<float>(largest), static_cast<float>(range / kSteps),
                            score.top, static_cast<float>(score.nll)};
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double below = largest - (static_cast<double>(logits[i]) - score.log_sum);
    if (below > kFloor) {
      codes_[i] = 0;
    } else {
      const double steps =
          header.step > 0 ? std::round(below / static_cast<double>(header.step)) : 0;
      codes_[i] = static_cast<std::uint16_t>(1 + std::min(steps, kSteps));
    }
  }
  file_.write_values(std::span(&header, 1));
  file_.write_values(std::span<const std::uint16_t>(codes_));
}

KlBaseReader::KlBaseReader(const std::string& path, const KlHeader& expected)
    : path_(path), file_(path, std::ios::binary | std::ios::ate), codes_(expected.vocabulary) {
  if (!file_) fail(ErrorCode::kNotFound, path, "cannot be read");
  const auto size = static_cast<std::uint64_t>(file_.tellg());
  file_.seekg(0);
  std::array<char, kHeaderBytes> bytes{};
  if (size < kHeaderBytes || !file_.read(bytes.data(), bytes.size()) ||
      std::string_view(bytes.data(), 8) != kMagic) {
    fail(ErrorCode::kInvalidFile, path, "is no file of --kl-divergence-base");
  }
  std::array<std::uint32_t, 4> numbers{};
  std::copy_n(bytes.data() + 8, sizeof(numbers), reinterpret_cast<char*>(numbers.data()));
  const std::string digest(bytes.data() + 24, kDigest);
  const auto check = [&](std::string_view what, std::uint32_t found, std::uint32_t wanted) {
    if (found != wanted) {
      fail(ErrorCode::kInvalidFile, path, "has {} {}, this run has {}", what, found, wanted);
    }
  };
  check("a window of", numbers[0], expected.window);
  check("a vocabulary of", numbers[1], expected.vocabulary);
  check("a number of windows of", numbers[2], expected.windows);
  check("scored rows of", numbers[3], expected.rows);
  if (digest != expected.ids_sha256) {
    fail(ErrorCode::kInvalidFile, path, "was made from other tokens");
  }
  const std::uint64_t rows = std::uint64_t{expected.windows} * expected.rows;
  const std::uint64_t needed = kHeaderBytes + rows * (16 + 2 * std::uint64_t{expected.vocabulary});
  if (size != needed) {
    fail(ErrorCode::kInvalidFile, path, "has {} bytes, {} are needed", size, needed);
  }
}

void KlBaseReader::next(KlBaseRow& row) {
  RowHeader header{};
  if (!file_.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      !file_.read(reinterpret_cast<char*>(codes_.data()),
                  static_cast<std::streamsize>(codes_.size() * sizeof(std::uint16_t)))) {
    fail(ErrorCode::kIo, path_, "ends early");
  }
  row.nll = static_cast<double>(header.nll);
  row.top = header.top;
  row.log_p.resize(codes_.size());
  double sum = 0;
  for (std::size_t i = 0; i < codes_.size(); ++i) {
    if (codes_[i] == 0) {
      row.log_p[i] = -std::numeric_limits<double>::infinity();
      continue;
    }
    row.log_p[i] = static_cast<double>(header.largest) -
                   static_cast<double>(codes_[i] - 1) * static_cast<double>(header.step);
    sum += std::exp(row.log_p[i]);
  }
  const double normalizer = std::log(sum);
  if (!std::isfinite(normalizer))
    fail(ErrorCode::kInvalidFile, path_, "holds a row that is no distribution");
  for (double& value : row.log_p) value -= normalizer;
}

}  // namespace tern::cli
