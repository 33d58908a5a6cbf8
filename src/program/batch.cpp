#include "program/batch.h"

#include "base/checked.h"

namespace tern::program {

void BatchBlock::clear() {
  ids.clear();
  embeddings.clear();
  sequence.clear();
  position.clear();
  sequences.clear();
  pages.clear();
  output_rows.clear();
}

void BatchBlock::reserve(const BatchLimits& limits) {
  const auto rows_max = static_cast<std::size_t>(limits.rows);
  const auto sequences_max = static_cast<std::size_t>(limits.sequences);
  ids.reserve(rows_max);
  sequence.reserve(rows_max);
  position.reserve(rows_max);
  sequences.reserve(sequences_max);
  pages.reserve(sequences_max * static_cast<std::size_t>(limits.pages_per_sequence));
  output_rows.reserve(static_cast<std::size_t>(limits.output_rows));
}

void BatchBlock::add_sequence(const BatchSequence& s, const std::int32_t* ids_of_rows,
                              const std::uint32_t* page_table) {
  BatchSequence added = s;
  added.first_row = static_cast<std::uint32_t>(sequence.size());
  added.page_begin = static_cast<std::uint32_t>(pages.size());
  const auto index = static_cast<std::uint32_t>(sequences.size());
  for (std::uint32_t i = 0; i < s.row_count; ++i) {
    ids.push_back(ids_of_rows[i]);
    sequence.push_back(index);
    position.push_back(static_cast<std::int32_t>(s.kv_length + i));
  }
  pages.insert(pages.end(), page_table, page_table + s.page_count);
  sequences.push_back(added);
}

BatchLayout batch_layout(const BatchLimits& limits) {
  BatchLayout layout;
  std::uint64_t end = 0;
  // 256 bytes: the strictest alignment that a device asks of a buffer binding.
  const auto place = [&end](std::uint64_t bytes) {
    const std::uint64_t at = end;
    end = static_cast<std::uint64_t>(round_up(static_cast<std::int64_t>(end + bytes), 256));
    return at;
  };
  const auto rows = static_cast<std::uint64_t>(limits.rows);
  const auto sequences = static_cast<std::uint64_t>(limits.sequences);
  layout.counts = place(16);
  const auto width =
      static_cast<std::uint64_t>(limits.embedding_width > 0 ? limits.embedding_width : 1);
  layout.ids = place(rows * width * 4);
  layout.sequence = place(rows * 4);
  layout.position = place(rows * static_cast<std::uint64_t>(limits.axes) * 4);
  layout.sequences = place(sequences * sizeof(BatchSequence));
  layout.pages = place(sequences * static_cast<std::uint64_t>(limits.pages_per_sequence) * 4);
  layout.output_rows = place(static_cast<std::uint64_t>(limits.output_rows) * 4);
  layout.bytes = end;
  return layout;
}

}  // namespace tern::program
