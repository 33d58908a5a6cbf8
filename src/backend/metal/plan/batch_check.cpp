#include "backend/metal/plan/batch_check.h"

namespace tern::metal {
namespace {

template <class... Args>
Error refuse(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, "[submit] {}",
              fmt::format(text, std::forward<Args>(args)...));
}

Result<void> check_rows(const MetalPlan& plan, const program::BatchBlock& batch) {
  const program::Program& p = plan.program;
  const int rows = batch.rows();
  if (rows < 1 || rows > p.bucket.rows)
    return refuse("a step has {} rows, expected 1 to {}", rows, p.bucket.rows);
  if (batch.ids.size() != batch.sequence.size() || batch.position.size() != batch.sequence.size())
    return refuse("there are {} ids, {} positions and {} rows: expected as many of each",
                  batch.ids.size(), batch.position.size(), batch.sequence.size());
  if (batch.output_rows.size() > static_cast<std::size_t>(p.output_rows))
    return refuse("{} output rows are asked for, expected at most {}", batch.output_rows.size(),
                  p.output_rows);
  for (const std::int32_t id : batch.ids)
    if (id < 0 || id >= p.vocabulary)
      return refuse("token id {} is outside of the vocabulary of {}", id, p.vocabulary);
  for (const std::uint32_t r : batch.output_rows)
    if (r >= static_cast<std::uint32_t>(rows))
      return refuse("output row {} is asked for, the step has {} rows", r, rows);
  return {};
}

}  // namespace

Result<void> check_batch(const MetalPlan& plan, int pages, const program::BatchBlock& batch) {
  TERN_TRY(check_rows(plan, batch));
  for (const std::uint32_t page : batch.pages)
    if (page >= static_cast<std::uint32_t>(pages))
      return refuse("page {} is named, the pool has {} pages", page, pages);
  if (batch.sequences.size() > static_cast<std::size_t>(plan.limits.sequences))
    return refuse("a step has {} sequences, expected at most {}", batch.sequences.size(),
                  plan.limits.sequences);
  std::uint64_t covered = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const program::BatchSequence& s = batch.sequences[i];
    const std::uint64_t end = std::uint64_t{s.kv_length} + s.row_count;
    const bool has_room =
        end <= std::uint64_t{s.page_count} * program::kPagePositions || plan.program.states.empty();
    if (s.first_row != covered || covered + s.row_count > batch.sequence.size() || !has_room ||
        s.page_count > static_cast<std::uint32_t>(plan.limits.pages_per_sequence) ||
        std::uint64_t{s.page_begin} + s.page_count > batch.pages.size())
      return refuse("sequence {} has rows or pages that do not fit the block", i);
    for (std::uint64_t r = s.first_row; r < covered + s.row_count; ++r)
      if (batch.sequence[r] != i ||
          batch.position[r] != static_cast<std::int32_t>(s.kv_length + (r - s.first_row)))
        return refuse("row {} does not belong to sequence {}", r, i);
    covered += s.row_count;
  }
  if (covered != batch.sequence.size())
    return refuse("{} rows belong to no sequence", batch.sequence.size() - covered);
  return {};
}

}  // namespace tern::metal
