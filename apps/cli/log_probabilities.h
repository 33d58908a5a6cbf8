// Log-probabilities of a row of logits, and their file for KL divergence.
#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "cli/written_file.h"

namespace tern::cli {

// log p(target) and what is needed for all others: log p(i) = logits[i] - log_sum.
struct RowScore {
  double log_sum = 0;
  double nll = 0;        // -log p(target)
  std::int32_t top = 0;  // lowest id of the largest logit
};
// Errors: kNumeric when a logit is not finite.
[[nodiscard]] RowScore score_row(std::span<const float> logits, std::int32_t target);

// The base of a KL divergence. Little endian:
//   "TERNKLB1", u32 window, u32 vocabulary, u32 windows, u32 rows per window, 64 hexadecimal
//   digits: SHA-256 of the token ids (i32); then per row f32 largest log p, f32 step, i32 top id,
//   f32 nll, u16 code[vocabulary]: code 0: p is taken as 0 (e^-24 below the largest and less); else
//   log p = largest - (code - 1) * step.
struct KlHeader {
  std::uint32_t window = 0, vocabulary = 0, windows = 0, rows = 0;
  std::string ids_sha256;
};

struct KlBaseRow {
  std::vector<double> log_p;  // normalised; -inf where p is 0
  double nll = 0;
  std::int32_t top = 0;
};

class KlBaseWriter {
 public:
  KlBaseWriter(const std::string& path, bool force, const KlHeader& header);
  void add(std::span<const float> logits, const RowScore& score);
  void commit() { file_.commit(); }

 private:
  WrittenFile file_;
  std::vector<std::uint16_t> codes_;
};

class KlBaseReader {
 public:
  // Errors: kNotFound, kInvalidFile when the file is none, is cut, or is about another text, window
  // or vocabulary.
  KlBaseReader(const std::string& path, const KlHeader& expected);
  void next(KlBaseRow& row);

 private:
  std::string path_;
  std::ifstream file_;
  std::vector<std::uint16_t> codes_;
};

}  // namespace tern::cli
