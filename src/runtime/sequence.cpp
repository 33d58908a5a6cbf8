#include "runtime/sequence.h"

#include <algorithm>

#include "base/checked.h"
#include "base/progress.h"

namespace tern::runtime {

Sequence::Sequence(Executables& executables, PagePool& pages, std::int64_t context)
    : executables_(executables), pool_(pages), context_(context) {
  const auto most_pages = static_cast<int>(ceil_div(context, program::kPagePositions));
  pages_.reserve(static_cast<std::size_t>(most_pages));
  batch_.reserve({executables.settings().batch_rows, 1, kAllRows, most_pages});
}

Sequence::~Sequence() { pool_.give_back(pages_, 0); }

void Sequence::truncate(std::int64_t length) {
  length_ = std::clamp<std::int64_t>(length, 0, length_);
  pool_.give_back(pages_, static_cast<std::size_t>(ceil_div(length_, program::kPagePositions)));
}

Result<void> Sequence::reserve(std::int64_t length) {
  const auto need = static_cast<std::size_t>(ceil_div(length, program::kPagePositions));
  if (need <= pages_.size()) return {};
  if (!pool_.take(need - pages_.size(), pages_))
    return fail(
        ErrorCode::kOutOfMemory,
        "the KV cache has {} free pages of {} positions, {} more are needed; other sessions "
        "hold the rest",
        pool_.free_pages(), program::kPagePositions, need - pages_.size());
  return {};
}

void Sequence::fill_batch(std::span<const std::int32_t> ids) {
  batch_.clear();
  program::BatchSequence s;
  s.row_count = static_cast<std::uint32_t>(ids.size());
  s.kv_length = static_cast<std::uint32_t>(length_);
  s.page_count = static_cast<std::uint32_t>(pages_.size());
  batch_.add_sequence(s, ids.data(), pages_.data());
}

Result<void> Sequence::extend(OutputForm form, std::span<const std::int32_t> ids,
                              std::int64_t outputs, const ProgressFn& progress,
                              const CancelToken& cancel, OutputSink* sink) {
  const std::int64_t start = length_;
  const auto count = static_cast<std::int64_t>(ids.size());
  const std::int64_t max_rows = executables_.max_rows(form);
  // Whatever ends this before the last commit, an exception of the caller's callback too, leaves
  // the sequence as it was.
  struct Rollback {
    Sequence& sequence;
    std::int64_t length;
    bool is_armed = true;
    ~Rollback() {
      if (is_armed) sequence.truncate(length);
    }
  } rollback{*this, start};
  ProgressMeter meter(count > 1 ? progress : ProgressFn(), "prompt", "tokens",
                      static_cast<std::uint64_t>(count));
  std::int64_t done = 0;
  while (done < count) {
    const std::int64_t to_boundary = max_rows - length_ % max_rows;
    const std::int64_t rows = std::min(count - done, to_boundary);
    if (const Result<void> r = reserve(length_ + rows); !r.ok()) return r.error();
    fill_batch(ids.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(rows)));
    const std::int64_t first_output = std::max(done, count - outputs);
    for (std::int64_t i = first_output; i < done + rows; ++i)
      batch_.output_rows.push_back(static_cast<std::uint32_t>(i - done));
    const std::int64_t wanted = std::max<std::int64_t>(done + rows - first_output, 0);
    Result<void> taken;
    {
      const Result<StepOutputs> outputs_of_step = executables_.step(form, batch_, cancel);
      TERN_TRY(outputs_of_step);
      if (sink) taken = sink->take(*outputs_of_step, first_output, wanted, done, rows);
    }
    // Diagnosed while the pages are still this sequence's: the step is run again.
    if (!taken.ok() && taken.error().code() == ErrorCode::kNumeric)
      return numeric_error(executables_, form, *this);
    TERN_TRY(taken);
    length_ += rows;  // commit
    done += rows;
    if (count > 1) meter.update(static_cast<std::uint64_t>(done));
  }
  if (count > 1) meter.finish();
  rollback.is_armed = false;
  return {};
}

Error numeric_error(Executables& executables, OutputForm form, const Sequence& sequence) {
  const std::string where = executables.first_non_finite(form, sequence.last_batch());
  return fail(
      ErrorCode::kNumeric,
      "logits at position {} are not finite (NaN or Inf){}; the file may be damaged, or its "
      "values overflow: try --activations f32 -ctk f32 -ctv f32",
      sequence.length(), where.empty() ? std::string() : ": first seen in " + where);
}

}  // namespace tern::runtime
