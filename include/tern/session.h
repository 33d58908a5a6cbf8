// A conversation's state on a model: its KV cache, and generation from it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/cancel.h"
#include "tern/error.h"
#include "tern/progress.h"
#include "tern/sampling.h"

namespace tern {

struct GenerateRequest {
  std::vector<std::int32_t> prompt{};  // token ids, appended to what the session holds
  std::int64_t max_tokens =
      -1;  // -1: until the end or the context is full; 0: only evaluate the prompt
  std::int64_t min_tokens = 0;  // end tokens are not chosen before
  bool ignore_end_tokens = false;
  std::vector<std::string> stop{};  // matched on the text, across tokens
  SamplingOptions sampling{};
};

enum class FinishReason : std::uint8_t { kEnd, kStopString, kLength, kContextFull, kCancelled };

struct GenerateStats {
  std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double prompt_seconds = 0, generate_seconds = 0;
};

struct Answer {
  std::string text;
  std::vector<std::int32_t> ids;  // the end token included, when there was one
  FinishReason finish = FinishReason::kLength;
  GenerateStats stats;
};

// Text as it may be shown: whole characters, nothing that could still become a stop string.
// Returning false stops.
using TokenFn = std::function<bool(std::string_view text)>;

// Not thread-safe; several sessions of one model may be used from several threads.
class Session {
 public:
  struct Impl;
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Errors: kContextOverflow with both numbers when the prompt does not fit; kNumeric for logits
  // that are not finite; kInvalidArgument for ids outside of the vocabulary, and for biases and
  // min_tokens that forbid every token. After an error, and after a cancel before the first token,
  // the session holds what it held; a cancel later keeps the tokens of the answer so far.
  [[nodiscard]] Result<Answer> generate(const GenerateRequest& request, const TokenFn& on_text,
                                        const ProgressFn& progress, const CancelToken& cancel);

  // Evaluates ids and appends them. Logits ([last_rows, vocabulary]) of the last `last_rows` of
  // them.
  [[nodiscard]] Result<std::vector<float>> evaluate(std::span<const std::int32_t> ids,
                                                    std::int64_t last_rows,
                                                    const ProgressFn& progress,
                                                    const CancelToken& cancel);

  // Forgets everything after the first `positions`.
  void truncate(std::int64_t positions);
  [[nodiscard]] std::int64_t position() const;
  [[nodiscard]] std::int64_t context_size() const;

  explicit Session(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern
