// One sequence's place in the KV cache: its pages and its committed length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/executables.h"
#include "runtime/page_pool.h"

namespace tern::runtime {

// Receives the outputs of a step before it is committed.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // kNumeric says that the outputs are not finite; the sequence then finds out where that began.
  // first: number of the first id with an output row, counted from the ids that were given; `count`
  // of them follow. rows: all ids of this step, from number first_row on (for outputs that exist
  // for every row).
  virtual Result<void> take(const StepOutputs& outputs, std::int64_t first, std::int64_t count,
                            std::int64_t first_row, std::int64_t rows) = 0;
};

// Not thread-safe. Gives its pages back when it goes.
class Sequence {
 public:
  // Both must outlive the sequence. `context` is the most positions that it may hold.
  Sequence(Executables& executables, PagePool& pages, std::int64_t context);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  [[nodiscard]] std::int64_t length() const { return length_; }
  [[nodiscard]] std::int64_t context() const { return context_; }
  void truncate(std::int64_t length);

  // Runs ids in steps of at most the form's rows that start at multiples of it, and commits each.
  // The last `outputs` ids have output rows, which `sink` sees (nullptr: nobody). On an error or a
  // cancel the sequence is as long as before.
  [[nodiscard]] Result<void> extend(OutputForm form, std::span<const std::int32_t> ids,
                                    std::int64_t outputs, const ProgressFn& progress,
                                    const CancelToken& cancel, OutputSink* sink);

  // The block of the last step, for diagnostics.
  [[nodiscard]] const program::BatchBlock& last_batch() const { return batch_; }

 private:
  [[nodiscard]] Result<void> reserve(std::int64_t length);
  void fill_batch(std::span<const std::int32_t> ids);

  Executables& executables_;
  PagePool& pool_;
  std::int64_t context_;
  std::int64_t length_ = 0;
  std::vector<std::uint32_t> pages_;
  program::BatchBlock batch_;
};

// The error for logits of the sequence's last step that are not finite: names the first op that
// made such a value.
[[nodiscard]] Error numeric_error(Executables& executables, OutputForm form,
                                  const Sequence& sequence);

}  // namespace tern::runtime
