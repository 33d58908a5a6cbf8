// Chooses the next token from a row of logits (interfaces.md 3.2 and 9, kernels.md 11.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "tern/sampling.h"

namespace tern::runtime {

// Whether all numbers are finite.
[[nodiscard]] bool is_finite(std::span<const float> values);

// Not thread-safe. Allocates nothing after the first call with a vocabulary.
class Sampler {
 public:
  // Errors: kInvalidArgument for a value outside of its range (NaN, negative temperature, a bias
  // for an id that does not exist), naming it.
  [[nodiscard]] static Result<Sampler> create(const SamplingOptions& options,
                                              std::int64_t vocabulary);

  // The id at `position`. `recent` are the ids before it, the last one last. Ids of `forbidden` are
  // never chosen. Errors: kNumeric for a logit that is not finite; kInvalidArgument when biases and
  // `forbidden` leave no id to choose.
  [[nodiscard]] Result<std::int32_t> sample(std::span<const float> logits, std::uint64_t position,
                                            std::span<const std::int32_t> recent,
                                            std::span<const std::int32_t> forbidden);

 private:
  struct Candidate {
    float logit = 0;
    std::int32_t id = 0;
  };
  Sampler() = default;
  void adjust(std::span<const std::int32_t> recent, std::span<const std::int32_t> forbidden);
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  [[nodiscard]] std::int32_t draw(std::uint64_t position) const;

  SamplingOptions options_;
  std::vector<float> logits_;
  std::vector<Candidate> candidates_;  // logits descending, ids ascending among equals
  mutable std::vector<double> weights_;
  std::vector<std::int32_t> counts_;  // by id, of the penalties' window
};

}  // namespace tern::runtime
