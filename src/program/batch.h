// The batch block: everything that changes from step to step, as indices and never as pointers, so
// that a plan is captured once and replayed for ever.
#pragma once

#include <cstdint>
#include <vector>

namespace tern::program {

inline constexpr int kPagePositions = 32;  // positions in a page of the KV cache
inline constexpr std::uint32_t kNoSlot = 0xFFFFFFFFU;

// Upper bounds that fix the size and the offsets of the block.
struct BatchLimits {
  int rows = 1;
  int sequences = 1;
  int output_rows = 1;
  int pages_per_sequence = 1;
  int axes = 1;             // positions of a row (text 1, pictures in a text 3)
  int embedding_width = 0;  // > 0: rows come as embeddings of this width instead of ids
  bool operator==(const BatchLimits&) const = default;
};

// A sequence's part of a step. Its rows are first_row .. first_row + row_count - 1 and stand at the
// positions kv_length .. kv_length + row_count - 1.
struct BatchSequence {
  std::uint32_t first_row = 0;
  std::uint32_t row_count =
      0;  // 1 decode, 2 to 8 verification of a draft, up to the bucket for a prefill chunk
  std::uint32_t kv_length = 0;   // committed positions before this step
  std::uint32_t page_begin = 0;  // first entry of this sequence in `pages`
  std::uint32_t page_count = 0;  // pages that it owns, enough for kv_length + row_count positions
  std::uint32_t state_read = 0;  // slot of recurrent state that the step starts from
  std::uint32_t state_write =
      0;  // slot that receives the state after the last row; equal to state_read: in place
  // First of row_count slots that receive the state after each row, or kNoSlot. Verification of a
  // draft asks for it: committing r of n rows then means continuing from slot state_rows + r - 1.
  std::uint32_t state_rows = kNoSlot;
};

static_assert(sizeof(BatchSequence) == 32, "host and device disagree");

// Host form. A device sees the same arrays at the fixed offsets that BatchLayout gives.
struct BatchBlock {
  std::vector<std::int32_t> ids;           // [rows] token ids; unused where embeddings are given
  std::vector<float> embeddings;           // [rows, hidden] or empty
  std::vector<std::uint32_t> sequence;     // [rows] index into sequences
  std::vector<std::int32_t> position;      // [rows, axes] (axes is 1 for text)
  std::vector<BatchSequence> sequences;    // [sequences]
  std::vector<std::uint32_t> pages;        // page tables of all sequences, one after the other
  std::vector<std::uint32_t> output_rows;  // [output rows] rows whose outputs are wanted, ascending

  [[nodiscard]] int rows() const { return static_cast<int>(sequence.size()); }

  // Empties the block and keeps the memory: no allocation per token.
  void clear();
  // Appends a sequence's rows ids[0 .. count); positions follow from kv_length.
  void add_sequence(const BatchSequence& s, const std::int32_t* ids_of_rows,
                    const std::uint32_t* page_table);
  void reserve(const BatchLimits& limits);
};

// Byte offsets of the arrays in the device's copy of the block. Pure function of the limits.
struct BatchLayout {
  std::uint64_t counts = 0;  // u32 rows, sequences, output rows, reserved
  std::uint64_t ids = 0;     // i32 [rows], or f32 [rows, embedding_width]
  std::uint64_t sequence = 0;
  std::uint64_t position = 0;
  std::uint64_t sequences = 0;
  std::uint64_t pages = 0;
  std::uint64_t output_rows = 0;
  std::uint64_t bytes = 0;
};
[[nodiscard]] BatchLayout batch_layout(const BatchLimits& limits);

}  // namespace tern::program
