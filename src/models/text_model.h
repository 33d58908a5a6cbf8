// A language model as the layers above see it: what it is, what it multiplies by, and how to build
// its programs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/gguf.h"
#include "models/common/decoder_config.h"
#include "program/program.h"
#include "program/weights.h"

namespace tern::models {

// What a program is built for.
struct ProgramRequest {
  program::Bucket bucket;
  int output_rows = 1;
  program::KvDtype k = program::KvDtype::kF16;
  program::KvDtype v = program::KvDtype::kF16;
  bool taps =
      false;  // outputs "embeddings", "layer_out.i" and "final_norm" for all rows beside "logits"
};

// How a model is sampled when neither the user nor the file says otherwise.
struct SamplingDefaults {
  float temperature = 0.8F;
  float top_p = 0.95F;
  int top_k = 40;
  float min_p = 0.05F;
};

class TextModel {
 public:
  virtual ~TextModel() = default;
  [[nodiscard]] virtual const DecoderConfig& config() const = 0;
  [[nodiscard]] virtual const program::WeightSet& weights() const = 0;
  // The plain program, before any pass: one output "logits" [output rows, vocabulary].
  [[nodiscard]] virtual program::Program build(const ProgramRequest& request) const = 0;
  [[nodiscard]] virtual SamplingDefaults sampling_defaults() const = 0;
};

}  // namespace tern::models
