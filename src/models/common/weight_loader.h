// Takes the tensors of a GGUF file, checks their shapes, and declares them as weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/gguf.h"
#include "program/weights.h"

namespace tern::models {

// Where the rows of one tensor lie: a whole weight, or some rows of a joined one.
struct JoinedPart {
  program::WeightId weight = 0;
  std::optional<program::WeightId> bias;
  std::int64_t begin = 0;  // first row within the weight
  std::int64_t rows = 0;
};

// What to join: a tensor's base name ("blk.0.attn_q") and its rows.
struct PartSpec {
  std::string name;
  std::int64_t rows = 0;
};

// Keeps the first error; what it returns after one has no meaning.
class WeightLoader {
 public:
  explicit WeightLoader(const io::GgufFile& file) : file_(file), used_(file.tensors().size()) {}

  // "<name>.weight" as [rows, inputs].
  program::WeightId matrix(const std::string& name, std::int64_t rows, std::int64_t inputs,
                           std::uint8_t uses);
  // "<name>.weight" as a vector of floats.
  program::WeightId vector(const std::string& name, std::int64_t width);
  // Several matrices of the same width. Joined by rows where format and presence of a bias agree,
  // apart otherwise.
  std::vector<JoinedPart> joined(const std::string& label, const std::vector<PartSpec>& parts,
                                 std::int64_t inputs);
  // The numbers of an F32 tensor, or nothing when it is not there.
  std::optional<std::vector<float>> numbers(const std::string& name, std::int64_t count);
  [[nodiscard]] bool has(const std::string& name) const {
    return file_.find_tensor(name) != nullptr;
  }

  [[nodiscard]] bool ok() const { return status_.ok(); }
  // After everything was taken: the first error, or a refusal of a tensor that nobody took.
  [[nodiscard]] Result<void> finish(const std::string& architecture) const;
  [[nodiscard]] program::WeightSet take() && { return std::move(set_); }

 private:
  const io::GgufTensor* take_tensor(const std::string& name, std::int64_t rows,
                                    std::int64_t inputs);
  program::WeightId add_vector(const std::string& label, const std::vector<PartSpec>& parts);
  void record(const Error& error) {
    if (status_.ok()) status_ = error;
  }

  const io::GgufFile& file_;
  std::vector<bool> used_;
  program::WeightSet set_;
  Result<void> status_;
};

}  // namespace tern::models
